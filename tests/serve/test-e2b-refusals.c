/*
 * Every refusal of e2b-control-api.md that this server can give, with its exact body
 * (tests/refusals.md has the list). "%s" in a row is the id of a sandbox, which runs, or
 * is paused in the second table.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "daemon.h"
#include "model/gen/routes.h"

TestSuite(serve_e2b_refusals, .init = daemon_begin, .fini = daemon_teardown,
	  .timeout = 120);

#define GONE(id)                                      \
	"{\"code\":404,\"message\":\"Sandbox \\\"" id \
	"\\\" doesn't exist or you don't have access to it\"}"
#define BAD(text) "{\"code\":400,\"message\":\"" text "\"}"
#define TEN "a,a,a,a,a,a,a,a,a,a,"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "a"
#define SECONDS(field) BAD(field " must be a positive integer number of seconds")

#define CONFLICT(text) "{\"code\":409,\"message\":\"" text "\"}"
#define NO_TEMPLATE(name) "{\"code\":404,\"message\":\"template '" name "' not found\"}"
#define SOME_ID "i0123456789abcdefghi"
#define NOT_A_NAME(name)              \
	BAD("Invalid name: \\\"" name \
	    "\\\" is not [namespace/]name[:tag] of a-z, 0-9, - and _")
#define WITH(member) "{\"templateID\":\"base\"," member "}"
#define NOT_YET(field) BAD(field " is not supported by this server yet")
#define SIXTEEN "aaaaaaaaaaaaaaaa"
#define OVER_256                                                                        \
	SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN \
		SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN "a"

typedef struct row {
	const char *method, *path, *body;
	int status;
	const char *text;
} row;

static const row rows[] = {
	/* ids */
	{ "GET", "/sandboxes/gone", NULL, 404, GONE("gone") },
	{ "DELETE", "/sandboxes/gone", NULL, 404, GONE("gone") },
	{ "POST", "/sandboxes/gone/timeout", "{\"timeout\":1}", 404, GONE("gone") },
	{ "POST", "/sandboxes/gone/refreshes", "{}", 404, GONE("gone") },
	{ "POST", "/sandboxes/gone/connect", "{\"timeout\":1}", 404, GONE("gone") },
	{ "POST", "/v2/sandboxes/gone/connect", NULL, 404, GONE("gone") },
	{ "PUT", "/sandboxes/gone/network", "{}", 404, GONE("gone") },
	{ "GET", "/sandboxes/gone-6532622b", NULL, 404, GONE("gone-6532622b") },
	{ "GET", "/sandboxes/far.gone", NULL, 404, GONE("far.gone") },
	{ "GET", "/sandboxes/a-b-c", NULL, 400, BAD("Invalid sandbox ID") },
	{ "GET", "/sandboxes/UPPER", NULL, 400, BAD("Invalid sandbox ID") },
	{ "GET", "/sandboxes/a%2Fb", NULL, 400, BAD("Invalid sandbox ID") },
	{ "GET", "/sandboxes/%20", NULL, 400, BAD("Invalid sandbox ID") },
	{ "GET", "/sandboxes/a..", NULL, 400, BAD("Invalid sandbox ID") },
	{ "POST", "/sandboxes/" SOME_ID "/pause", "{}", 404, GONE(SOME_ID) },
	{ "POST", "/sandboxes/" SOME_ID "/resume", "{}", 404, GONE(SOME_ID) },
	{ "POST", "/sandboxes/" SOME_ID "/fork", "{}", 404, GONE(SOME_ID) },
	{ "POST", "/sandboxes/" SOME_ID "/snapshots", "{}", 404, GONE(SOME_ID) },
	/* bodies */
	{ "POST", "/sandboxes", "", 400,
	  BAD("request body: JSON, line 1, byte 0: the text ends too early") },
	{ "POST", "/v2/sandboxes", "[]", 400,
	  BAD("request body: JSON: an object is expected, not array") },
	{ "POST", "/v2/sandboxes", "{\"templateID\":", 400,
	  BAD("request body: JSON, line 1, byte 14: the text ends too early") },
	{ "POST", "/sandboxes/%s/timeout", "", 400,
	  BAD("request body: JSON, line 1, byte 0: the text ends too early") },
	{ "POST", "/sandboxes/%s/connect", "", 400,
	  BAD("request body: JSON, line 1, byte 0: the text ends too early") },
	{ "PUT", "/sandboxes/%s/network", "", 400,
	  BAD("request body: JSON, line 1, byte 0: the text ends too early") },
	/* paths and methods */
	{ "GET", "/nothing", NULL, 404,
	  "{\"code\":404,\"message\":\"no such path: GET /nothing\"}" },
	{ "PATCH", "/sandboxes", NULL, 405,
	  "{\"code\":405,\"message\":\"method PATCH is not allowed for /sandboxes; "
	  "allowed: GET, POST\"}" },
	/* create */
	{ "POST", "/v2/sandboxes", "{}", 400, BAD("templateID is required") },
	{ "POST", "/sandboxes", "{\"templateID\":\"nope\"}", 400,
	  BAD("sandbox env or pool \\\"nope\\\" not found") },
	{ "POST", "/sandboxes", "{\"templateID\":\"  \"}", 400,
	  BAD("templateID is required") },
	{ "POST", "/sandboxes", "{\"templateID\":7}", 400,
	  BAD("templateID: string expected, not int") },
	{ "POST", "/sandboxes", "{\"templateID\":\"a b\"}", 400,
	  BAD("templateID: address \\\"a b\\\": name \\\"a b\\\" is not valid") },
	{ "POST", "/sandboxes", "{\"templateID\":\"base:v1\"}", 404,
	  "{\"code\":404,\"message\":\"tag 'v1' does not exist for template 'base'\"}" },
	{ "POST", "/sandboxes", "{\"templateID\":\"base//UPPER CASE\"}", 400,
	  BAD("templateID: address \\\"base//UPPER CASE\\\": image \\\"UPPER CASE\\\": "
	      "blanks and control characters are not allowed") },
	{ "POST", "/sandboxes", WITH("\"what\":1"), 400, BAD("unknown field what") },
	{ "POST", "/sandboxes", WITH("\"timeout\":\"x\""), 400, SECONDS("timeout") },
	{ "POST", "/sandboxes", WITH("\"timeout\":1.5"), 400, SECONDS("timeout") },
	{ "POST", "/sandboxes", WITH("\"timeout\":99999999999"), 400,
	  SECONDS("timeout") },
	{ "POST", "/sandboxes", WITH("\"autoPauseMemory\":false"), 400,
	  BAD("autoPauseMemory: false says how a timeout pauses: it needs autoPause") },
	{ "POST", "/sandboxes",
	  WITH("\"autoPause\":true,\"autoPauseMemory\":false,"
	       "\"autoResume\":{\"enabled\":true}"),
	  400,
	  BAD("autoPauseMemory: false does not go with autoResume: without its memory a "
	      "sandbox is resumed explicitly only") },
	{ "POST", "/sandboxes", WITH("\"autoResume\":{}"), 400,
	  BAD("autoResume: enabled is required") },
	{ "POST", "/sandboxes",
	  WITH("\"iam\":{\"tokens\":{\"a\":{\"audience\":\"x\",\"tokenType\":\"JWT-"
	       "SVID\"}}}"),
	  400, NOT_YET("iam.tokens") },
	{ "POST", "/sandboxes",
	  WITH("\"volumeMounts\":[{\"name\":\"v\",\"path\":\"/v\"}]"), 400,
	  NOT_YET("volumeMounts") },
	{ "POST", "/sandboxes", WITH("\"envVars\":{\"A\":1}"), 400,
	  BAD("envVars[\\\"A\\\"] must be a string") },
	{ "POST", "/sandboxes", WITH("\"envVars\":{\"A=B\":\"x\"}"), 400,
	  BAD("envVars: \\\"A=B\\\" is not a name") },
	{ "POST", "/sandboxes", WITH("\"metadata\":{\"a\":1}"), 400,
	  BAD("metadata[\\\"a\\\"] must be a string") },
	{ "POST", "/sandboxes",
	  WITH("\"metadata\":{\"agentbox.scitix.ai/startup-timeout\":\"x\"}"), 400,
	  BAD("metadata \\\"agentbox.scitix.ai/startup-timeout\\\" is 1 to 86400 "
	      "seconds, "
	      "not \\\"x\\\"") },
	{ "POST", "/sandboxes", WITH("\"network\":{\"nope\":1}"), 400,
	  BAD("network: unknown field nope") },
	{ "POST", "/sandboxes", WITH("\"network\":{\"httpsPorts\":[0]}"), 400,
	  BAD("network.httpsPorts: a port is 1 to 65535, not 0") },
	{ "POST", "/sandboxes", "{\"templateID\":\"base\",\"timeout\":0}", 400,
	  SECONDS("timeout") },
	{ "POST", "/sandboxes", "{\"templateID\":\"base\",\"timeout\":-1}", 400,
	  SECONDS("timeout") },
	{ "POST", "/sandboxes",
	  "{\"templateID\":\"base\",\"network\":{\"allowPublicTraffic\":false}}", 400,
	  BAD("You cannot create a sandbox without public access unless you enable "
	      "secure "
	      "envd access via 'secure' flag.") },
	{ "POST", "/v2/sandboxes",
	  "{\"templateID\":\"base\",\"network\":{\"maskRequestHost\":\"-https://abcd\"}}",
	  400, BAD("mask request host is not valid: -https://abcd") },
	{ "POST", "/v2/sandboxes",
	  "{\"templateID\":\"base\",\"network\":{\"httpsPorts\":[49983]}}", 400,
	  BAD("network.httpsPorts: port 49983 is envd's and does not speak TLS") },
	{ "POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"secure\":false}", 400,
	  BAD("secure: sandboxes created with v2 are always secure") },
	/* timeouts */
	{ "POST", "/sandboxes/%s/timeout", "{\"timeout\":0}", 400, SECONDS("timeout") },
	{ "POST", "/sandboxes/%s/timeout", "{\"timeout\":-3}", 400, SECONDS("timeout") },
	{ "POST", "/sandboxes/%s/timeout", "{}", 400, BAD("timeout is required") },
	{ "POST", "/sandboxes/%s/connect", "{}", 400, BAD("timeout is required") },
	{ "POST", "/sandboxes/%s/connect", "{\"timeout\":0}", 400, SECONDS("timeout") },
	{ "POST", "/v2/sandboxes/%s/connect", "{\"timeout\":0}", 400,
	  SECONDS("timeout") },
	{ "POST", "/sandboxes/%s/timeout", "{\"timeout\":30,\"x\":1}", 400,
	  BAD("unknown field x") },
	{ "POST", "/sandboxes/%s/timeout", "{\"timeout\":\"x\"}", 400,
	  SECONDS("timeout") },
	{ "POST", "/sandboxes/%s/connect", "{\"timeout\":1,\"memory\":7}", 400,
	  BAD("memory: boolean expected, not int") },
	{ "POST", "/sandboxes/%s/refreshes", "{\"duration\":3601}", 400,
	  BAD("duration: 3601 is outside 0..3600") },
	{ "POST", "/sandboxes/%s/refreshes", "{\"duration\":-1}", 400,
	  BAD("duration: -1 is outside 0..3600") },
	/* pause, resume, snapshots, fork */
	{ "POST", "/sandboxes/%s/resume", "{}", 409,
	  CONFLICT("Sandbox %s is already running") },
	{ "POST", "/sandboxes/%s/pause", "{\"memory\":1}", 400,
	  BAD("memory: boolean expected, not int") },
	{ "POST", "/sandboxes/%s/pause", "{\"disk\":true}", 400,
	  BAD("unknown field disk") },
	{ "POST", "/sandboxes/%s/snapshots", "{\"name\":\"a b\"}", 400,
	  NOT_A_NAME("a b") },
	{ "POST", "/sandboxes/%s/snapshots", "{\"name\":\"base\"}", 400,
	  BAD("Invalid name: \\\"base\\\" is the name of an env") },
	{ "POST", "/sandboxes/%s/snapshots", "{\"name\":\"x/mine\"}", 400,
	  BAD("namespace \\\"x\\\" is not your team's, which is \\\"admin\\\"") },
	{ "POST", "/sandboxes/%s/snapshots", "{\"names\":[]}", 400,
	  BAD("unknown field names") },
	{ "GET", "/snapshots?limit=0", NULL, 400,
	  BAD("limit is 1 to 100, not \\\"0\\\"") },
	{ "GET", "/snapshots?limit=101", NULL, 400,
	  BAD("limit is 1 to 100, not \\\"101\\\"") },
	{ "GET", "/snapshots?nextToken=x", NULL, 400, BAD("Invalid next token") },
	{ "GET", "/snapshots?name=a%20b", NULL, 400, NOT_A_NAME("a b") },
	{ "POST", "/sandboxes/%s/fork", "{\"count\":0}", 400,
	  BAD("Count must be at least 1") },
	{ "POST", "/sandboxes/%s/fork", "{\"count\":101}", 400,
	  BAD("Count cannot be greater than 100") },
	{ "POST", "/sandboxes/%s/fork", "{\"timeout\":0}", 400, SECONDS("timeout") },
	{ "POST", "/sandboxes/%s/fork", "{\"memory\":true}", 400,
	  BAD("unknown field memory") },
	/* listing */
	{ "GET", "/v2/sandboxes?limit=0", NULL, 400,
	  BAD("limit is 1 to 100, not \\\"0\\\"") },
	{ "GET", "/v2/sandboxes?limit=101", NULL, 400,
	  BAD("limit is 1 to 100, not \\\"101\\\"") },
	{ "GET", "/v2/sandboxes?limit=-1", NULL, 400,
	  BAD("limit is 1 to 100, not \\\"-1\\\"") },
	{ "GET", "/v2/sandboxes?limit=x", NULL, 400,
	  BAD("limit is 1 to 100, not \\\"x\\\"") },
	{ "GET", "/v2/sandboxes?nextToken=zzz", NULL, 400, BAD("Invalid next token") },
	{ "GET", "/v2/sandboxes?order=up", NULL, 400,
	  BAD("order is asc or desc, not \\\"up\\\"") },
	{ "GET", "/v2/sandboxes?state=dead", NULL, 400,
	  BAD("state is running, paused or both, not \\\"dead\\\"") },
	{ "GET", "/v2/sandboxes?startedAfter=now", NULL, 400,
	  BAD("startedAfter is an RFC 3339 time, not \\\"now\\\"") },
	{ "GET", "/v2/sandboxes?template=base:v1", NULL, 400,
	  BAD("template \\\"base:v1\\\": a tag is not accepted in the filter") },
	{ "GET", "/v2/sandboxes?metadata=a", NULL, 400,
	  BAD("Invalid metadata filter: one '=' a pair, as in k=v&k2=v2") },
	{ "GET", "/sandboxes?metadata=a%3Db%3Dc", NULL, 400,
	  BAD("Invalid metadata filter: one '=' a pair, as in k=v&k2=v2") },
	/* metrics */
	{ "GET", "/sandboxes/%s/metrics?start=6&end=5", NULL, 400,
	  BAD("start must be earlier than end") },
	{ "GET", "/sandboxes/%s/metrics?start=x", NULL, 400,
	  BAD("start is a time in Unix seconds, not \\\"x\\\"") },
	{ "GET", "/sandboxes/%s/metrics?end=-1", NULL, 400,
	  BAD("end is a time in Unix seconds, not \\\"-1\\\"") },
	{ "GET", "/sandboxes/gone/metrics", NULL, 404, GONE("gone") },
	{ "GET", "/sandboxes/metrics", NULL, 400, BAD("sandbox_ids is required") },
	{ "GET", "/sandboxes/metrics?sandbox_ids=" HUNDRED, NULL, 400,
	  BAD("Too many sandboxes requested, maximum is 100") },
	/* logs */
	{ "GET", "/sandboxes/gone/logs", NULL, 404, GONE("gone") },
	{ "GET", "/v2/sandboxes/gone/logs", NULL, 404, GONE("gone") },
	{ "GET", "/sandboxes/%s/logs?limit=1001", NULL, 400,
	  BAD("limit is 0 to 1000, not \\\"1001\\\"") },
	{ "GET", "/sandboxes/%s/logs?limit=-1", NULL, 400,
	  BAD("limit is 0 to 1000, not \\\"-1\\\"") },
	{ "GET", "/sandboxes/%s/logs?start=x", NULL, 400,
	  BAD("start is a time in Unix milliseconds, not \\\"x\\\"") },
	{ "GET", "/v2/sandboxes/%s/logs?limit=1001", NULL, 400,
	  BAD("limit is 0 to 1000, not \\\"1001\\\"") },
	{ "GET", "/v2/sandboxes/%s/logs?search=" OVER_256, NULL, 400,
	  BAD("search has over 256 bytes") },
	{ "GET", "/v2/sandboxes/%s/logs?direction=up", NULL, 400,
	  BAD("direction is forward or backward, not \\\"up\\\"") },
	{ "GET", "/v2/sandboxes/%s/logs?level=loud", NULL, 400,
	  BAD("level is debug, info, warn or error, not \\\"loud\\\"") },
	{ "GET", "/v2/sandboxes/%s/logs?cursor=x", NULL, 400,
	  BAD("cursor is a time in Unix milliseconds, not \\\"x\\\"") },
	/* network updates */
	{ "PUT", "/sandboxes/%s/network", "{\"allowOut\":[\"a.b\"]}", 400,
	  BAD("network.allowOut is not supported by this server yet") },
	{ "PUT", "/sandboxes/%s/network", "{\"allow_internet_access\":false}", 400,
	  BAD("allow_internet_access: false is not supported by this server yet") },
	/* templates, keys, teams */
	{ "GET", "/templates/nope", NULL, 404,
	  "{\"code\":404,\"message\":\"template 'nope' not found\"}" },
	{ "DELETE", "/templates/no-such", NULL, 404, NO_TEMPLATE("no-such") },
	{ "DELETE", "/templates/base", NULL, 400,
	  BAD("template 'base' is an env: delete it with `abx delete envs base`") },
	{ "POST", "/api-keys", "{}", 400, BAD("name is required") },
	{ "POST", "/api-keys", "{\"name\":\"\"}", 400, BAD("name has 1 to 128 bytes") },
	{ "GET", "/templates/aliases/nope", NULL, 404,
	  "{\"code\":404,\"message\":\"template 'nope' not found\"}" },
	{ "GET", "/templates/aliases/base:v1", NULL, 404,
	  "{\"code\":404,\"message\":\"tag 'v1' does not exist for template 'base'\"}" },
	{ "GET", "/templates/aliases/a%20b", NULL, 400,
	  BAD("Invalid alias format: \\\"a b\\\"") },
	{ "GET", "/templates/aliases/other%2Fbase", NULL, 400,
	  BAD("Invalid alias format: \\\"other/base\\\"") },
	{ "POST", "/access-tokens", "{\"name\":\"x\"}", 410,
	  "{\"code\":410,\"message\":\"access tokens are not issued by this server; use "
	  "an "
	  "API key\"}" },
	{ "DELETE", "/access-tokens/x", NULL, 404,
	  "{\"code\":404,\"message\":\"access token 'x' not found\"}" },
	{ "DELETE", "/api-keys/x", NULL, 404,
	  "{\"code\":404,\"message\":\"API key x not found\"}" },
	{ "POST", "/volumes", "{\"name\":\"v\"}", 501,
	  "{\"code\":501,\"message\":\"CreateVolume is not implemented by this "
	  "server\"}" },
	{ "GET", "/nodes", NULL, 501,
	  "{\"code\":501,\"message\":\"ListNodes is not implemented by this server\"}" },
};

static const row rows_of_a_paused_one[] = {
	{ "POST", "/sandboxes/%s/pause", "{}", 409,
	  CONFLICT("Error pausing sandbox - sandbox '%s' is already paused") },
	{ "POST", "/sandboxes/%s/timeout", "{\"timeout\":30}", 409,
	  CONFLICT("sandbox %s is paused: resume it first") },
	{ "POST", "/sandboxes/%s/refreshes", "{}", 409,
	  CONFLICT("sandbox %s is paused: resume it first") },
	{ "POST", "/sandboxes/%s/snapshots", "{}", 409,
	  CONFLICT("Sandbox '%s' cannot be snapshotted while in 'paused' state") },
	{ "POST", "/sandboxes/%s/fork", "{}", 409,
	  CONFLICT("Sandbox '%s' is paused and cannot be forked; resume it first") },
	{ "POST", "/sandboxes/%s/resume", "{\"timeout\":0}", 400, SECONDS("timeout") },
};

/* `text` with the id for each "%s". */
static char *with_id(const char *text, const char *id)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
	const char *hole;

	for (; text && (hole = strstr(text, "%s")); text = hole + 2) {
		abx__buf_add(&out, text, (size_t)(hole - text));
		abx__buf_adds(&out, id);
	}
	return text ? (abx__buf_adds(&out, text), abx__buf_take(&out)) : NULL;
}

static void try_rows(const row *all, size_t count, const char *id)
{
	for (size_t i = 0; i < count; i++) {
		ABX_CLEANUP(abx__freep) char *path = with_id(all[i].path, id);
		ABX_CLEANUP(abx__freep) char *text = with_id(all[i].text, id);
		answer a = ask(all[i].method, path, all[i].body);

		cr_expect_eq(a.status, all[i].status, "row %zu, %s %s: %s", i,
			     all[i].method, path, a.text);
		cr_expect_str_eq(a.text, text, "row %zu, %s %s %s: %s", i, all[i].method,
				 path, all[i].body, a.text);
		cr_expect(strstr(a.headers, "application/json"), "row %zu", i);
		answer_done(&a);
	}
}

Test(serve_e2b_refusals, each_with_its_exact_body)
{
	char id[32];

	make_env("base", 1);
	make_sandbox("base", id);
	try_rows(rows, sizeof(rows) / sizeof(rows[0]), id);
	expect("GET", "/v2/sandboxes", NULL, 200, id);
}

/* The path of a route with something in each hole. */
static char *any_path(const char *path)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
	const char *hole;

	for (; (hole = strchr(path, '{')); path = strchr(hole, '}') + 1) {
		abx__buf_add(&out, path, (size_t)(hole - path));
		abx__buf_adds(&out, "gone");
	}
	abx__buf_adds(&out, path);
	return abx__buf_take(&out);
}

/* Each operation of the specification is answered: when not done, with its name. */
Test(serve_e2b_refusals, what_is_not_done_is_501_by_name)
{
	size_t not_done = 0;

	for (size_t i = 0; i < ABX__M_E2B_ROUTE_COUNT; i++) {
		const abx__route *route = &abx__m_e2b_routes[i];
		ABX_CLEANUP(abx__freep) char *path = any_path(route->path);
		ABX_CLEANUP(abx__freep)
		char *want =
			abx__strf("{\"code\":501,\"message\":\"%s is not implemented "
				  "by this server\"}",
				  route->operation_id);
		answer a = ask(route->method, path, route->request ? "{}" : NULL);

		cr_expect(a.status != 405 && !strstr(a.text, "no such path"), "%s: %s",
			  route->operation_id, a.text);
		if (a.status == 501)
			cr_expect_str_eq(a.text, want, "%s", a.text);
		not_done += a.status == 501;
		answer_done(&a);
	}
	cr_expect_geq(not_done, 1);
}

Test(serve_e2b_refusals, of_a_paused_sandbox)
{
	ABX_CLEANUP(abx__freep) char *path = NULL;
	char id[32];

	make_env("base", 1);
	make_sandbox("base", id);
	path = abx__strf("/sandboxes/%s/pause", id);
	expect("POST", path, "{}", 204, NULL);
	try_rows(rows_of_a_paused_one,
		 sizeof(rows_of_a_paused_one) / sizeof(rows_of_a_paused_one[0]), id);
	expect("GET", "/v2/sandboxes?state=paused", NULL, 200, id);
}

Test(serve_e2b_refusals, more_variables_than_are_kept)
{
	ABX_CLEANUP(abx__freep) char *value = abx__malloc(70001);
	ABX_CLEANUP(abx__freep) char *body = NULL;

	memset(value, 'v', 70000);
	value[70000] = '\0';
	body = abx__strf("{\"templateID\":\"base\",\"envVars\":{\"K\":\"%s\"}}", value);
	make_env("base", 1);
	expect("POST", "/sandboxes", body, 413, "environment variables: ");
	expect("GET", "/v2/sandboxes", NULL, 200, "[]");
}

Test(serve_limits, a_timeout_above_the_servers_is_refused, .fini = daemon_teardown,
     .timeout = 60)
{
	static const char text[] = "Timeout cannot be greater than 24 hours";
	static const char more[] = "{\"timeout\":86401}", most[] = "{\"timeout\":86400}";
	char id[32], path[96];

	daemon_start("--max-timeout", "24h", NULL);
	make_env("base", 1);
	expect("POST", "/sandboxes", "{\"templateID\":\"base\",\"timeout\":86401}", 400,
	       text);
	expect("POST", "/v1/sandboxes", "{\"poolName\":\"base\",\"idleTimeout\":\"25h\"}",
	       400, text);
	expect("POST", "/v1/sandboxes", "{\"poolName\":\"base\",\"idleTimeout\":\"0\"}",
	       400, text);
	make_sandbox("base", id);
	/* E2B's order: before it is looked for. */
	expect("POST", "/sandboxes/i0123456789abcdefghi/connect", more, 400, text);
	for (int i = 0; i < 4; i++) {
		static const char *const calls[] = { "connect", "resume", "fork",
						     "timeout" };

		snprintf(path, sizeof(path), "/sandboxes/%s/%s", id, calls[i]);
		expect("POST", path, more, 400, text);
	}
	expect("POST", path, most, 204, NULL);
}

Test(serve_limits, a_limit_below_the_defaults_is_no_start)
{
	static const char *const little[] = { "--max-timeout", "1m", NULL };
	static const char *const junk[] = { "--max-timeout", "soon", NULL };
	char out[512];

	cr_assert_neq(run_to_end(out, sizeof(out), little), 0);
	cr_assert(strstr(out, "is less than 5m"), "%s", out);
	cr_assert_neq(run_to_end(out, sizeof(out), junk), 0);
	cr_assert(strstr(out, "--max-timeout"), "%s", out);
}

/*
 * Every refusal of e2b-control-api.md that this server can give, with its exact body.
 * "%s" in a path or body is the id of a sandbox that runs.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "daemon.h"

TestSuite(serve_e2b_refusals, .init = daemon_begin, .fini = daemon_teardown,
	  .timeout = 120);

#define GONE(id)                                      \
	"{\"code\":404,\"message\":\"Sandbox \\\"" id \
	"\\\" doesn't exist or you don't have access to it\"}"
#define BAD(text) "{\"code\":400,\"message\":\"" text "\"}"
#define TEN "a,a,a,a,a,a,a,a,a,a,"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "a"
#define SECONDS(field) BAD(field " must be a positive integer number of seconds")

static const struct row {
	const char *method, *path, *body;
	int status;
	const char *text;
} rows[] = {
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
	/* create */
	{ "POST", "/v2/sandboxes", "{}", 400, BAD("templateID is required") },
	{ "POST", "/sandboxes", "{\"templateID\":\"nope\"}", 400,
	  BAD("sandbox env or pool \\\"nope\\\" not found") },
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
	/* listing */
	{ "GET", "/v2/sandboxes?limit=0", NULL, 400,
	  BAD("limit is 1 to 100, not \\\"0\\\"") },
	{ "GET", "/v2/sandboxes?limit=101", NULL, 400,
	  BAD("limit is 1 to 100, not \\\"101\\\"") },
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

Test(serve_e2b_refusals, each_with_its_exact_body)
{
	char id[32];

	make_env("base", 1);
	make_sandbox("base", id);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		const char *hole = strstr(row->path, "/%s");
		ABX_CLEANUP(abx__freep)
		char *path = hole ? abx__strf("%.*s/%s%s", (int)(hole - row->path),
					      row->path, id, hole + 3)
				  : abx__strdup(row->path);
		answer a = ask(row->method, path, row->body);

		cr_assert_eq(a.status, row->status, "row %zu, %s %s: %s", i, row->method,
			     path, a.text);
		cr_assert_str_eq(a.text, row->text, "row %zu", i);
		cr_assert(strstr(a.headers, "application/json"), "row %zu", i);
		answer_done(&a);
	}
	expect("GET", "/v2/sandboxes", NULL, 200, id);
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

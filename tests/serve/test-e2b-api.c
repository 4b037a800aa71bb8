/* The E2B control API: every status and body promised, asked of the daemon. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "daemon.h"
#include "io/json.h"

TestSuite(serve_e2b, .init = daemon_begin, .fini = daemon_teardown, .timeout = 120);

Test(serve_e2b, health_needs_no_key)
{
	answer a = ask_with("GET", "/health", NULL, NULL);

	cr_assert_eq(a.status, 204);
	cr_assert_str_empty(a.text);
	cr_assert_not_null(answer_header(&a, "X-AgentBox-Server-Version"));
	answer_done(&a);
}

Test(serve_e2b, wants_a_valid_key_in_any_of_its_headers)
{
	char good[4][128];
	const char *const bad[][2] = { { "X-API-Key: e2b_00", NULL },
				       { "X-API-Key: agbx_", NULL },
				       { "Authorization: Bearer x", NULL } };
	answer a = ask_with("GET", "/v2/sandboxes", NULL, NULL);

	cr_assert_eq(a.status, 401);
	cr_assert_str_eq(at(a.json, "message"), "missing api key");
	cr_assert_str_eq(at(a.json, "code"), "401");
	answer_done(&a);
	for (size_t i = 0; i < 3; i++) {
		a = ask_with("GET", "/v2/sandboxes", NULL, bad[i]);
		cr_assert_eq(a.status, 401);
		cr_assert_str_eq(at(a.json, "message"), "invalid api key");
		answer_done(&a);
	}
	snprintf(good[0], 128, "X-API-KEY: %s", d.e2b);
	snprintf(good[1], 128, "AGENTBOX-API-KEY:  %s ", d.agbx);
	snprintf(good[2], 128, "Authorization: Bearer %s", d.agbx);
	snprintf(good[3], 128, "x-api-key: %s", d.agbx);
	for (size_t i = 0; i < 4; i++) {
		const char *const headers[] = { good[i], NULL };

		a = ask_with("GET", "/v2/sandboxes", NULL, headers);
		cr_assert_eq(a.status, 200, "%s: %s", good[i], a.text);
		answer_done(&a);
	}
}

Test(serve_e2b, the_unix_socket_needs_no_key)
{
	answer a = ask_unix("GET", "/v2/sandboxes", NULL);

	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(a.text, "[]");
	answer_done(&a);
}

Test(serve_e2b, answers_below_its_prefixes_too)
{
	expect("GET", "/e2b/v2/sandboxes", NULL, 200, "[]");
	expect("GET", "/agent-sandbox/api/e2b/v2/sandboxes", NULL, 200, "[]");
	expect("GET", "/e2bx/v2/sandboxes", NULL, 404, "no such path");
}

Test(serve_e2b, unknown_paths_methods_and_operations_say_so)
{
	answer a = ask("PATCH", "/v2/sandboxes", NULL);

	cr_assert_eq(a.status, 405);
	cr_assert_str_eq(answer_header(&a, "Allow"), "GET, POST");
	answer_done(&a);
	expect("GET", "/nothing", NULL, 404, "\"code\":404");
	expect("POST", "/templates/tags", "{}", 501, "is not implemented");
	expect("GET", "/secrets", NULL, 501, "ListSecrets");
	expect("POST", "/v3/templates", "{}", 501, "BuildTemplateV3");
}

Test(serve_e2b, create_get_list_kill)
{
	char id[32], path[96];
	answer a;

	make_env("base", 2);
	a = ask("POST", "/v2/sandboxes",
		"{\"templateID\":\"base\",\"timeout\":60,\"metadata\":{\"run\":\"7\","
		"\"agentbox.scitix.ai/"
		"startup-timeout\":\"20\"},\"envVars\":{\"A\":\"1\"}}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	snprintf(id, sizeof(id), "%s", at(a.json, "sandboxID"));
	cr_assert_eq(strlen(id), 20);
	cr_assert_eq(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789"), 20);
	cr_assert_str_eq(at(a.json, "templateID"), "base");
	cr_assert_str_eq(at(a.json, "alias"), "base");
	cr_assert_str_eq(at(a.json, "clientID"), "6532622b");
	cr_assert_str_eq(at(a.json, "envdVersion"), "0.6.13");
	cr_assert_eq(strlen(at(a.json, "envdAccessToken")), 64, "v2 is secure");
	cr_assert(json_object_object_get_ex(a.json, "domain", NULL));
	cr_assert_null(at(a.json, "domain"));
	answer_done(&a);

	snprintf(path, sizeof(path), "/sandboxes/%s", id);
	a = ask("GET", path, NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "state"), "running");
	cr_assert_str_eq(at(a.json, "metadata.run"), "7");
	cr_assert_eq(json_object_object_length(node(a.json, "metadata")), 1,
		     "reserved keys are not stored");
	cr_assert_str_eq(at(a.json, "cpuCount"), "1");
	cr_assert_str_eq(at(a.json, "memoryMB"), "2048");
	cr_assert_str_eq(at(a.json, "lifecycle.onTimeout"), "kill");
	cr_assert_not_null(at(a.json, "startedAt"));
	cr_assert_not_null(at(a.json, "endAt"));
	cr_assert_eq(strlen(at(a.json, "envdAccessToken")), 64);
	answer_done(&a);

	a = ask("GET", "/v2/sandboxes?metadata=run%3D7", NULL);
	cr_assert_eq(json_object_array_length(a.json), 1);
	cr_assert_str_eq(at(a.json, "0.sandboxID"), id);
	cr_assert_null(at(a.json, "0.envdAccessToken"), "a listing shows no tokens");
	cr_assert_str_eq(answer_header(&a, "X-Total-Running"), "1");
	cr_assert_null(answer_header(&a, "X-Next-Token"));
	answer_done(&a);
	expect("GET", "/sandboxes?metadata=run%3D8", NULL, 200, "[]");
	a = ask("GET", "/sandboxes", NULL);
	cr_assert_eq(json_object_array_length(a.json), 1);
	answer_done(&a);

	expect("DELETE", path, NULL, 204, NULL);
	expect("DELETE", path, NULL, 404, "doesn't exist or you don't have access to it");
	expect("GET", path, NULL, 404, "\"code\":404");
	expect("GET", "/v2/sandboxes", NULL, 200, "[]");
	wait_idle("base", 2);
}

Test(serve_e2b, v1_is_secure_only_when_asked)
{
	answer a;

	make_env("base", 3);
	a = ask("POST", "/sandboxes",
		"{\"templateID\":\"base\",\"timeout\":60,\"secure\":false}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_null(at(a.json, "envdAccessToken"));
	answer_done(&a);
	a = ask("POST", "/sandboxes",
		"{\"templateID\":\"base\",\"timeout\":60,\"secure\":true}");
	cr_assert_eq(a.status, 201);
	cr_assert_not_null(at(a.json, "envdAccessToken"));
	answer_done(&a);
	a = ask("POST", "/sandboxes", "{\"templateID\":\"local::base\",\"timeout\":60}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	answer_done(&a);
}

Test(serve_e2b, a_sandbox_without_public_traffic_has_a_token_for_it)
{
	char id[32], path[96], token[80];
	answer a;

	make_env("base", 1);
	a = ask("POST", "/v2/sandboxes",
		"{\"templateID\":\"base\",\"network\":{\"allowPublicTraffic\":false,"
		"\"maskRequestHost\":\"h:${PORT}\"}}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	snprintf(id, sizeof(id), "%s", at(a.json, "sandboxID"));
	snprintf(token, sizeof(token), "%s", at(a.json, "trafficAccessToken"));
	cr_assert_eq(strlen(token), 64);
	cr_assert_str_neq(token, at(a.json, "envdAccessToken"));
	answer_done(&a);
	snprintf(path, sizeof(path), "/sandboxes/%s", id);
	a = ask("GET", path, NULL);
	cr_assert_str_eq(at(a.json, "network.allowPublicTraffic"), "false");
	cr_assert_str_eq(at(a.json, "network.maskRequestHost"), "h:${PORT}");
	cr_assert_null(strstr(a.text, token), "the token is told on create and connect");
	answer_done(&a);
	snprintf(path, sizeof(path), "/v2/sandboxes/%s/connect", id);
	a = ask("POST", path, NULL);
	cr_assert_eq(a.status, 200, "%s", a.text);
	cr_assert_str_eq(at(a.json, "trafficAccessToken"), token);
	answer_done(&a);
}

Test(serve_e2b, bad_creates_are_refused_and_change_nothing)
{
	char *big = calloc(1, (1 << 20) + 64);
	answer a;

	make_env("base", 1);
	expect("POST", "/v2/sandboxes", "{\"templateID\":\"nope\"}", 400,
	       "sandbox env or pool \\\"nope\\\" not found");
	expect("POST", "/v2/sandboxes", "{\"templateID\":\"far::base\"}", 400,
	       "cluster \\\"far\\\" is not connected");
	expect("POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"timeout\":0}", 400,
	       "timeout must be a positive integer number of seconds");
	expect("POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"timeout\":-5}", 400,
	       "timeout");
	expect("POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"what\":1}", 400,
	       "what");
	expect("POST", "/v2/sandboxes", "{}", 400, "templateID is required");
	expect("POST", "/v2/sandboxes", "", 400, "request body");
	expect("POST", "/v2/sandboxes", "[]", 400, "request body");
	expect("POST", "/v2/sandboxes", "{\"templateID\":", 400, "request body");
	expect("POST", "/v2/sandboxes",
	       "{\"templateID\":\"base\",\"metadata\":{\"agentbox.scitix.ai/"
	       "scaling-group\":\"9c9gi\"}}",
	       503, "9c9gi");
	expect("POST", "/v2/sandboxes", "{\"templateID\":\"base//UPPER CASE\"}", 400,
	       NULL);
	memset(big, ' ', (1 << 20) + 1);
	a = ask("POST", "/v2/sandboxes", big);
	cr_assert_eq(a.status, 413);
	cr_assert(strstr(at(a.json, "message"), "1048576"));
	answer_done(&a);
	free(big);
	expect("GET", "/v2/sandboxes", NULL, 200, "[]");
	wait_idle("base", 1);
}

Test(serve_e2b, a_refusal_that_stays_is_not_to_be_retried)
{
	answer a;

	make_env("base", 1);
	a = ask("POST", "/v2/sandboxes",
		"{\"templateID\":\"base\",\"metadata\":{\"agentbox.scitix.ai/"
		"scaling-group\":\"9c9gi\"}}");
	cr_assert_eq(a.status, 503);
	cr_assert_str_eq(answer_header(&a, "Should-Retry"), "false");
	answer_done(&a);
}

Test(serve_e2b, a_full_pool_is_429_with_retry_after)
{
	char id[32];
	answer a;

	make_env("base", 1);
	make_sandbox("base", id);
	a = ask("POST", "/v2/sandboxes",
		"{\"templateID\":\"base\",\"metadata\":{\"agentbox.scitix.ai/"
		"no-wait\":\"true\"}}");
	cr_assert_eq(a.status, 429, "%s", a.text);
	cr_assert_not_null(answer_header(&a, "Retry-After"));
	answer_done(&a);
	a = ask("POST", "/v2/sandboxes",
		"{\"templateID\":\"base\",\"metadata\":{\"agentbox.scitix.ai/"
		"startup-timeout\":\"1\"}}");
	cr_assert_eq(a.status, 429, "a claim waits up to its startup timeout: %s",
		     a.text);
	answer_done(&a);
}

Test(serve_e2b, a_caller_that_leaves_takes_its_claim_along)
{
	static const char request[] =
		"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Type: "
		"application/json\r\n"
		"Content-Length: 21\r\n\r\n{\"templateID\":\"base\"}";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char id[32], path[96];
	int fd;

	make_env("base", 1);
	make_sandbox("base", id);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strncpy(address.sun_path, d.socket, sizeof(address.sun_path) - 1);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(write(fd, request, sizeof(request) - 1),
		     (ssize_t)sizeof(request) - 1);
	usleep(100000); /* it waits in the queue */
	close(fd);
	usleep(100000);
	snprintf(path, sizeof(path), "/sandboxes/%s", id);
	expect("DELETE", path, NULL, 204, NULL);
	wait_idle("base", 1);
	expect("GET", "/v2/sandboxes", NULL, 200, "[]");
}

Test(serve_e2b, timeouts)
{
	char id[32], path[96], connect_path[96], v2[96];
	answer a;

	make_env("base", 1);
	make_sandbox("base", id);
	snprintf(path, sizeof(path), "/sandboxes/%s/timeout", id);
	expect("POST", path, "{\"timeout\":30}", 204, NULL);
	expect("POST", path, "{\"timeout\":0}", 400, "positive integer");
	expect("POST", path, "{\"timeout\":-1}", 400, "positive integer");
	expect("POST", path, "{}", 400, "timeout is required");
	expect("POST", path, "{\"timeout\":30,\"x\":1}", 400, "x");
	expect("POST", "/sandboxes/abc/timeout", "{\"timeout\":30}", 404, "abc");
	snprintf(path, sizeof(path), "/sandboxes/%s/refreshes", id);
	expect("POST", path, "{\"duration\":60}", 204, NULL);
	expect("POST", path, NULL, 204, NULL);
	expect("POST", path, "{\"duration\":3601}", 400, "duration");
	snprintf(connect_path, sizeof(connect_path), "/sandboxes/%s/connect", id);
	expect("POST", connect_path, "{}", 400, "timeout is required");
	a = ask("POST", connect_path, "{\"timeout\":60}");
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "sandboxID"), id);
	cr_assert_eq(strlen(at(a.json, "envdAccessToken")), 64);
	answer_done(&a);
	snprintf(v2, sizeof(v2), "/v2/sandboxes/%s/connect", id);
	expect("POST", v2, NULL, 200, id);
	expect("POST", v2, "{\"memory\":false}", 200, id);
	expect("POST", v2, "{\"timeout\":0}", 400, "positive integer");
	expect("POST", "/v2/sandboxes/abc/connect", "{}", 404, "abc");
}

static int64_t seconds_left(const char *id)
{
	char path[96];
	answer a;
	struct tm tm = { 0 };
	int64_t end;

	snprintf(path, sizeof(path), "/sandboxes/%s", id);
	a = ask("GET", path, NULL);
	cr_assert_eq(a.status, 200);
	cr_assert(strptime(at(a.json, "endAt"), "%Y-%m-%dT%H:%M:%S", &tm));
	end = timegm(&tm);
	answer_done(&a);
	return end - time(NULL);
}

Test(serve_e2b, connect_extends_and_never_shortens)
{
	char id[32], path[96];

	make_env("base", 1);
	make_sandbox("base", id);
	cr_assert_geq(seconds_left(id), 298);
	snprintf(path, sizeof(path), "/v2/sandboxes/%s/connect", id);
	expect("POST", path, "{\"timeout\":10}", 200, id);
	cr_assert_geq(seconds_left(id), 295);
	expect("POST", path, "{\"timeout\":1000}", 200, id);
	cr_assert_geq(seconds_left(id), 995);
	snprintf(path, sizeof(path), "/sandboxes/%s/timeout", id);
	expect("POST", path, "{\"timeout\":10}", 204, NULL);
	cr_assert_leq(seconds_left(id), 10, "timeout does shorten");
}

Test(serve_e2b, a_create_without_timeout_gets_300_seconds)
{
	char id[32];
	answer a;

	make_env("base", 1);
	a = ask("POST", "/v2/sandboxes", "{\"templateID\":\"base\"}");
	cr_assert_eq(a.status, 201);
	snprintf(id, sizeof(id), "%s", at(a.json, "sandboxID"));
	answer_done(&a);
	cr_assert_geq(seconds_left(id), 297);
	cr_assert_leq(seconds_left(id), 300);
}

Test(serve_e2b, idle_sandboxes_end)
{
	char id[32], path[96];

	make_env("base", 1);
	make_sandbox("base", id);
	snprintf(path, sizeof(path), "/sandboxes/%s/timeout", id);
	expect("POST", path, "{\"timeout\":1}", 204, NULL);
	usleep(2200000);
	snprintf(path, sizeof(path), "/sandboxes/%s", id);
	expect("GET", path, NULL, 404, id);
	wait_idle("base", 1);
}

Test(serve_e2b, pages_over_the_wire)
{
	char id[32], path[512];
	char *token = NULL;
	unsigned pages = 0, seen = 0;

	make_env("base", 5);
	for (int i = 0; i < 5; i++)
		make_sandbox("base", id);
	do {
		ABX_CLEANUP(abx__freep)
		char *escaped = token ? abx__url_encode(token) : NULL;
		answer a;

		snprintf(path, sizeof(path), "/v2/sandboxes?limit=2%s%s",
			 token ? "&nextToken=" : "", escaped ? escaped : "");
		a = ask("GET", path, NULL);
		cr_assert_eq(a.status, 200, "%s", a.text);
		seen += (unsigned)json_object_array_length(a.json);
		abx__free(token);
		token = abx__strdup(answer_header(&a, "X-Next-Token"));
		answer_done(&a);
		pages++;
	} while (token);
	cr_assert_eq(pages, 3);
	cr_assert_eq(seen, 5);
	expect("GET", "/v2/sandboxes?limit=0", NULL, 400, "limit");
	expect("GET", "/v2/sandboxes?nextToken=zzz", NULL, 400, "Invalid next token");
	expect("GET", "/v2/sandboxes?order=up", NULL, 400, "order");
}

Test(serve_e2b, templates_are_envs)
{
	answer a;

	make_env("base", 1);
	a = ask("GET", "/templates", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_eq(json_object_array_length(a.json), 1);
	cr_assert_str_eq(at(a.json, "0.templateID"), "base");
	cr_assert_str_eq(at(a.json, "0.buildStatus"), "ready");
	cr_assert_str_eq(at(a.json, "0.names.0"), "base");
	cr_assert_str_eq(at(a.json, "0.cpuCount"), "1");
	cr_assert_str_eq(at(a.json, "0.memoryMB"), "2048");
	answer_done(&a);
	a = ask("GET", "/templates/base", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_eq(json_object_array_length(node(a.json, "builds")), 0);
	answer_done(&a);
	expect("GET", "/templates/base-1c2gi", NULL, 200, "base-1c2gi");
	expect("GET", "/templates/nope", NULL, 404, "template 'nope' not found");
}

Test(serve_e2b, aliases_are_envs_of_the_tag_default)
{
	static const char *const spelled[] = { "base", "base:default", "%20Base%20",
					       "default%2Fbase" };

	make_env("base", 1);
	for (size_t i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++) {
		char path[96];

		snprintf(path, sizeof(path), "/templates/aliases/%s", spelled[i]);
		expect("GET", path, NULL, 200,
		       "{\"templateID\":\"base\",\"public\":false}");
	}
}

Test(serve_e2b, a_key_has_one_team)
{
	answer a = ask("GET", "/teams", NULL);

	cr_assert_eq(a.status, 200, "%s", a.text);
	cr_assert_eq(json_object_array_length(a.json), 1);
	cr_assert_not_null(at(a.json, "0.teamID"));
	cr_assert_str_eq(at(a.json, "0.teamID"), at(a.json, "0.name"));
	cr_assert_str_eq(at(a.json, "0.isDefault"), "true");
	cr_assert_str_eq(at(a.json, "0.apiKey"), "", "a key is not told twice");
	answer_done(&a);
}

Test(serve_e2b, a_network_update_without_rules_is_what_there_is)
{
	char id[32], path[96];

	make_env("base", 1);
	make_sandbox("base", id);
	snprintf(path, sizeof(path), "/sandboxes/%s/network", id);
	expect("PUT", path, "{}", 204, NULL);
	expect("PUT", path, "{\"allowOut\":[],\"denyOut\":[],\"rules\":{}}", 204, NULL);
	expect("PUT", path, "{\"allow_internet_access\":true}", 204, NULL);
}

Test(serve_e2b, metrics_come_with_time_and_in_a_window)
{
	char id[32], path[128];
	json_object *list;
	answer a;

	make_env("base", 1);
	make_sandbox("base", id);
	snprintf(path, sizeof(path), "/sandboxes/%s/metrics", id);
	expect("GET", path, NULL, 200, "[]");
	for (int i = 0; i < 100; i++) {
		a = ask("GET", path, NULL);
		if (json_object_array_length(a.json) > 0)
			break;
		answer_done(&a);
		usleep(200000);
	}
	list = json_object_array_get_idx(a.json, 0);
	cr_assert_eq(json_object_object_length(list), 9, "%s", a.text);
	cr_assert_str_eq(at(a.json, "0.cpuCount"), "1");
	cr_assert_float_eq(json_object_get_double(node(a.json, "0.cpuUsedPct")), 50.0,
			   5.0);
	cr_assert_str_eq(at(a.json, "0.memUsed"), "104857600");
	cr_assert_str_eq(at(a.json, "0.memTotal"), "2147483648");
	cr_assert_str_eq(at(a.json, "0.memCache"), "10485760");
	cr_assert_str_eq(at(a.json, "0.diskUsed"), "1073741824");
	cr_assert_str_eq(at(a.json, "0.diskTotal"), "10737418240");
	cr_assert_not_null(at(a.json, "0.timestamp"));
	snprintf(path, sizeof(path), "/sandboxes/%s/metrics?start=1&end=%s", id,
		 at(a.json, "0.timestampUnix"));
	answer_done(&a);
	a = ask("GET", path, NULL);
	cr_assert_eq(json_object_array_length(a.json), 1, "both ends belong to it");
	answer_done(&a);
	snprintf(path, sizeof(path), "/sandboxes/%s/metrics?start=2&end=2", id);
	expect("GET", path, NULL, 200, "[]");
	snprintf(path, sizeof(path), "/sandboxes/metrics?sandbox_ids=%s,nosuch", id);
	a = ask("GET", path, NULL);
	cr_assert_eq(json_object_object_length(node(a.json, "sandboxes")), 1, "%s",
		     a.text);
	cr_assert(json_object_object_get_ex(node(a.json, "sandboxes"), id, &list));
	cr_assert_eq(json_object_object_length(list), 9);
	answer_done(&a);
}

Test(serve_e2b, logs_of_the_container_and_the_platform)
{
	char id[32], path[128];
	answer a;

	make_env("base", 1);
	make_sandbox("base", id);
	snprintf(path, sizeof(path), "/v2/sandboxes/%s/logs?direction=forward", id);
	a = ask("GET", path, NULL);
	cr_assert_eq(a.status, 200, "%s", a.text);
	cr_assert_eq(json_object_array_length(node(a.json, "logs")), 4, "%s", a.text);
	cr_assert_str_eq(at(a.json, "logs.0.message"), "first light");
	cr_assert_not_null(strstr(a.text, "\"message\":\"sandbox started\""));
	cr_assert_not_null(strstr(a.text, "\"env\":\"base\""));
	answer_done(&a);
	snprintf(path, sizeof(path), "/v2/sandboxes/%s/logs?level=error", id);
	a = ask("GET", path, NULL);
	cr_assert_str_eq(at(a.json, "logs.0.message"), "ERROR: it broke");
	answer_done(&a);
	snprintf(path, sizeof(path), "/sandboxes/%s/logs?limit=1", id);
	a = ask("GET", path, NULL);
	cr_assert_eq(json_object_array_length(node(a.json, "logs")), 1);
	cr_assert_eq(json_object_array_length(node(a.json, "logEntries")), 1);
	cr_assert_not_null(strstr(at(a.json, "logs.0.line"), "\"logger\":\"main\""));
	answer_done(&a);
}

Test(serve_e2b, the_older_spelling_of_an_id_works)
{
	char id[32], path[96];

	make_env("base", 1);
	make_sandbox("base", id);
	snprintf(path, sizeof(path), "/sandboxes/%s-6532622b", id);
	expect("GET", path, NULL, 200, id);
	expect("DELETE", path, NULL, 204, NULL);
}

Test(serve_e2b, api_keys)
{
	char header[128], id[64], path[128];
	const char *const headers[] = { header, NULL };
	answer a = ask("POST", "/api-keys", "{\"name\":\"ci\"}");

	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_eq(strncmp(at(a.json, "key"), "e2b_", 4), 0);
	cr_assert_str_eq(at(a.json, "name"), "ci");
	cr_assert_str_eq(at(a.json, "mask.prefix"), "e2b_");
	snprintf(header, sizeof(header), "X-API-Key: %s", at(a.json, "key"));
	snprintf(id, sizeof(id), "%s", at(a.json, "id"));
	answer_done(&a);
	a = ask_with("GET", "/api-keys", NULL, headers);
	cr_assert_eq(a.status, 200, "the new key works");
	cr_assert_eq(json_object_array_length(a.json), 3);
	cr_assert_null(at(a.json, "0.key"), "a listing shows no keys");
	answer_done(&a);
	snprintf(path, sizeof(path), "/api-keys/%s", id);
	expect("DELETE", path, NULL, 204, NULL);
	expect("DELETE", path, NULL, 404, "\"code\":404");
	a = ask_with("GET", "/api-keys", NULL, headers);
	cr_assert_eq(a.status, 401, "a deleted key stops at once");
	answer_done(&a);
	expect("POST", "/api-keys", "{}", 400, "name is required");
	expect("POST", "/api-keys", "{\"name\":\"\"}", 400, "name has");
}

Test(serve_e2b, keys_work_after_a_restart)
{
	char before[80];

	snprintf(before, sizeof(before), "%s", d.agbx);
	daemon_again();
	cr_assert_str_eq(before, d.agbx);
	expect("GET", "/v2/sandboxes", NULL, 200, "[]");
}

/*
 * test-envd-http.c - the plain endpoints of the real daemon: health, init, token, user,
 * CORS, envs, metrics.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "envd-child.h"

static envd_child child;

static void start(void)
{
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
}

static void start_waiting(void)
{
	envd_child_start(&child,
			 (const char *const[]){ "--isnotfc", "--await-init=true", NULL });
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_http, .init = start, .fini = stop, .timeout = 60);
TestSuite(envd_await, .init = start_waiting, .fini = stop, .timeout = 60);

#define JSON "Content-Type: application/json\r\n"

static void expect(const char *method, const char *target, const char *headers,
		   const char *body, int status, const char *text)
{
	envd_answer answer = envd_child_request(&child, method, target, headers, body,
						body ? strlen(body) : 0);

	cr_assert(answer.status == status, "%s %s: %d %s", method, target, answer.status,
		  abx__buf_str(&answer.body));
	cr_assert(strstr(abx__buf_str(&answer.body), text), "%s %s: %s", method, target,
		  abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

static void expect_init(const char *body, int status, const char *text)
{
	expect("POST", "/init", NULL, body, status, text);
}

Test(envd_http, health_answers_204)
{
	envd_answer answer = envd_child_request(&child, "GET", "/health", NULL, NULL, 0);

	cr_assert(answer.status == 204 && answer.body.len == 0);
	cr_assert(envd_answer_has(&answer, "Cache-Control", "no-store"));
	envd_answer_done(&answer);
}

Test(envd_http, unknown_routes_and_methods_are_refused)
{
	envd_answer answer =
		envd_child_request(&child, "DELETE", "/files", NULL, NULL, 0);

	cr_assert(answer.status == 405 && envd_answer_has(&answer, "Allow", "GET, POST"));
	envd_answer_done(&answer);
	expect("GET", "/nothing", NULL, NULL, 404, "404 page not found");
	expect("POST", "/freeze", NULL, "", 501, "not supported");
}

Test(envd_http, init_sets_variables_and_replaces_them)
{
	envd_answer answer = envd_child_request(&child, "POST", "/init", NULL, "", 0);

	cr_assert(answer.status == 204);
	cr_assert(envd_answer_has(&answer, "X-Envd-Version", "0.6.13"));
	envd_answer_done(&answer);
	expect_init("{\"envVars\":{\"A\":\"1\",\"E2B_SANDBOX\":\"no\"}}", 204, "");
	expect("GET", "/envs", NULL, NULL, 200,
	       "{\"A\":\"1\",\"E2B_SANDBOX\":\"false\"}");
	expect_init("{}", 204, ""); /* absent: unchanged */
	expect("GET", "/envs", NULL, NULL, 200, "\"A\":\"1\"");
	expect_init("{\"envVars\":{\"B\":\"2\"}}", 204, "");
	expect("GET", "/envs", NULL, NULL, 200,
	       "{\"B\":\"2\",\"E2B_SANDBOX\":\"false\"}");
}

Test(envd_http, init_refuses_what_it_cannot_do_by_name)
{
	static const struct {
		const char *body, *text;
	} rows[] = {
		{ "nonsense", "JSON" },
		{ "[]", "object" },
		{ "{\"envVars\":{\"A\":1}}", "envVars" },
		{ "{\"envVars\":{\"A=B\":\"1\"}}", "A=B" },
		{ "{\"envVars\":[]}", "envVars" },
		{ "{\"hyperloopIP\":\"10.0.0.1\"}", "hyperloopIP" },
		{ "{\"hyperloopIP\":167772161}", "hyperloopIP" },
		{ "{\"volumeMounts\":[{\"nfs_target\":\"a\",\"path\":\"/b\"}]}",
		  "volumeMounts" },
		{ "{\"timestamp\":\"yesterday\"}", "timestamp" },
		{ "{\"caBundle\":\"none\"}", "caBundle" },
		{ "{\"surprise\":1}", "surprise" },
		{ "{\"defaultUser\":7}", "defaultUser" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_init(rows[i].body, 400, rows[i].text);
	expect("GET", "/envs", NULL, NULL, 200, "{\"E2B_SANDBOX\":\"false\"}");
	expect_init("{\"volumeMounts\":[],\"hyperloopIP\":\"\",\"caBundle\":null,"
		    "\"lifecycleID\":\"x\"}",
		    204, "");
}

Test(envd_http, older_init_is_skipped)
{
	expect_init(
		"{\"timestamp\":\"2026-01-01T00:00:01Z\",\"envVars\":{\"A\":\"new\"}}",
		204, "");
	expect_init(
		"{\"timestamp\":\"2026-01-01T00:00:00Z\",\"envVars\":{\"A\":\"old\"}}",
		204, "");
	expect_init(
		"{\"timestamp\":\"2026-01-01T00:00:01Z\",\"envVars\":{\"A\":\"same\"}}",
		204, "");
	expect("GET", "/envs", NULL, NULL, 200, "\"A\":\"new\"");
	expect_init("{\"timestamp\":\"2026-01-01T00:00:02.5Z\",\"envVars\":{\"A\":"
		    "\"newer\"}}",
		    204, "");
	expect("GET", "/envs", NULL, NULL, 200, "\"A\":\"newer\"");
}

Test(envd_http, a_token_closes_everything_but_its_exceptions)
{
	expect_init("{\"accessToken\":\"secret\"}", 204, "");
	expect("GET", "/health", NULL, NULL, 204, "");
	expect("GET", "/envs", NULL, NULL, 401,
	       "{\"code\":401,\"message\":\"unauthorized access, please provide a valid "
	       "access token or "
	       "method signing if supported\"}\n");
	expect("GET", "/envs", "X-Access-Token: wrong\r\n", NULL, 401,
	       "unauthorized access");
	expect("GET", "/envs", "X-Access-Token: secret\r\n", NULL, 200, "E2B_SANDBOX");
	expect("POST", "/process.Process/List", JSON, "{}", 401, "unauthorized access");
	expect("POST", "/process.Process/List", JSON "X-Access-Token: secret\r\n", "{}",
	       200, "{}");
	expect("GET", "/files?path=/etc/hostname", NULL, NULL, 401,
	       "missing signature query parameter");
	expect("GET", "/files?path=/etc/hostname&signature=v1_x", NULL, NULL, 401,
	       "invalid signature");
	expect("GET", "/files?path=/etc/hostname", "X-Access-Token: no\r\n", NULL, 401,
	       "access token present in header but does not match");
	expect("GET", "/files?path=/etc/passwd", "X-Access-Token: secret\r\n", NULL, 200,
	       "root:");
	expect("POST", "/files?path=/tmp/x", "Content-Type: application/octet-stream\r\n",
	       "x", 401, "missing signature query parameter");
	expect_init("{}", 401, "access token reset not authorized");
	expect_init("{\"accessToken\":\"other\"}", 401, "access token validation failed");
	expect_init("{\"accessToken\":\"secret\",\"envVars\":{\"A\":\"1\"}}", 204, "");
}

Test(envd_http, basic_user_must_exist_on_every_route)
{
	/* nosuchuser: and root: */
	expect("GET", "/health", "Authorization: Basic bm9zdWNodXNlcjo=\r\n", NULL, 401,
	       "{\"code\":\"unauthenticated\",\"message\":\"invalid username: "
	       "'nosuchuser'\"}");
	expect("POST", "/process.Process/List",
	       JSON "Authorization: Basic bm9zdWNodXNlcjo=\r\n", "{}", 401,
	       "unauthenticated");
	expect("POST", "/process.Process/List", JSON "Authorization: Basic cm9vdDo=\r\n",
	       "{}", 200, "{}");
	expect("POST", "/process.Process/List", JSON "Authorization: Bearer x\r\n", "{}",
	       200, "{}");
	expect_init("{\"defaultUser\":\"nosuchuser\"}", 204, "");
	expect("POST", "/process.Process/List", JSON, "{}", 401,
	       "invalid username: 'nosuchuser'");
	expect("GET", "/files?path=/etc/passwd", NULL, NULL, 401,
	       "error looking up user 'nosuchuser'");
}

Test(envd_http, cors_lets_browsers_in)
{
	envd_answer answer = envd_child_request(
		&child, "OPTIONS", "/process.Process/List",
		"Origin: http://a\r\nAccess-Control-Request-Method: POST\r\n", NULL, 0);

	cr_assert(answer.status == 204);
	cr_assert(envd_answer_has(&answer, "Access-Control-Allow-Origin", "*"));
	cr_assert(envd_answer_has(&answer, "Access-Control-Max-Age", "7200"));
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "GET", "/health", "Origin: http://a\r\n",
				    NULL, 0);
	cr_assert(envd_answer_has(&answer, "Access-Control-Allow-Origin", "*"));
	envd_answer_done(&answer);
}

static double number(json_object *obj, const char *key)
{
	json_object *value = NULL;

	cr_assert(json_object_object_get_ex(obj, key, &value), "%s", key);
	cr_assert(json_object_is_type(value, json_type_int) ||
			  json_object_is_type(value, json_type_double),
		  "%s", key);
	return json_object_get_double(value);
}

Test(envd_http, metrics_are_these_ten_figures)
{
	envd_answer answer = envd_child_request(&child, "GET", "/metrics", NULL, NULL, 0);
	json_object *m = json_tokener_parse(abx__buf_str(&answer.body));
	double pct;

	cr_assert(answer.status == 200);
	cr_assert(envd_answer_has(&answer, "Cache-Control", "no-store"));
	cr_assert(envd_answer_has(&answer, "Content-Type", "application/json"));
	cr_assert_eq(json_object_object_length(m), 10);
	cr_assert(number(m, "ts") > 1.7e9 && number(m, "ts") <= (double)time(NULL));
	cr_assert(number(m, "cpu_count") >= 1);
	pct = number(m, "cpu_used_pct");
	cr_assert(pct >= 0 && pct <= 100);
	cr_assert(number(m, "mem_total") >= number(m, "mem_used"));
	cr_assert(number(m, "mem_used") > 0 && number(m, "mem_cache") >= 0);
	cr_assert_eq((int64_t)number(m, "mem_total_mib"),
		     (int64_t)number(m, "mem_total") >> 20);
	cr_assert_eq((int64_t)number(m, "mem_used_mib"),
		     (int64_t)number(m, "mem_used") >> 20);
	cr_assert(number(m, "disk_total") >= number(m, "disk_used"));
	cr_assert(number(m, "disk_used") > 0);
	json_object_put(m);
	envd_answer_done(&answer);
}

Test(envd_http, envs_are_a_map_that_nobody_keeps)
{
	envd_answer answer;

	expect_init("{\"envVars\":{\"B\":\"\",\"A\":\"a \\\"b\\\" \\u00fc\"}}", 204, "");
	answer = envd_child_request(&child, "GET", "/envs", NULL, NULL, 0);
	cr_assert(answer.status == 200);
	cr_assert_str_eq(abx__buf_str(&answer.body),
			 "{\"A\":\"a \\\"b\\\" \xc3\xbc\",\"B\":\"\",\"E2B_SANDBOX\":"
			 "\"false\"}");
	cr_assert(envd_answer_has(&answer, "Cache-Control", "no-store"));
	cr_assert(strstr(answer.head, "Content-Type: application/json"));
	envd_answer_done(&answer);
}

Test(envd_http, ca_bundle_that_is_no_certificate_changes_nothing)
{
	expect_init("{\"caBundle\":\"x\",\"envVars\":{\"A\":\"1\"}}", 400, "caBundle");
	expect("GET", "/envs", NULL, NULL, 200, "{\"E2B_SANDBOX\":\"false\"}");
}

Test(envd_await, rpcs_wait_for_the_first_init)
{
	envd_run run;

	expect("GET", "/health", NULL, NULL, 204, "");
	expect("POST", "/process.Process/List", JSON, "{}", 400,
	       "\"failed_precondition\"");
	expect("POST", "/filesystem.Filesystem/Stat", JSON, "{\"path\":\"/\"}", 400,
	       "\"failed_precondition\"");
	expect_init("nonsense", 400, "");
	expect("POST", "/process.Process/List", JSON, "{}", 400,
	       "\"failed_precondition\"");
	expect_init("{\"envVars\":{\"A\":\"armed\"}}", 204, "");
	run = envd_child_run(
		&child,
		"{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"echo $A\"]}}");
	cr_assert_str_eq(abx__buf_str(&run.out), "armed\n");
	envd_run_done(&run);
}

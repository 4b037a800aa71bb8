/* Pausing and resuming over the E2B API: every status and body, asked of the daemon. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon.h"

TestSuite(serve_pause, .init = daemon_begin, .fini = daemon_teardown, .timeout = 120);

static char path[128];

static const char *of(const char *id, const char *rest)
{
	snprintf(path, sizeof(path), "/sandboxes/%s%s", id, rest);
	return path;
}

static void create(const char *fields, char id[32])
{
	char body[512];
	answer a;

	snprintf(body, sizeof(body), "{\"templateID\":\"base\"%s}", fields);
	a = ask("POST", "/sandboxes", body);
	cr_assert_eq(a.status, 201, "%s", a.text);
	snprintf(id, 32, "%s", at(a.json, "sandboxID"));
	answer_done(&a);
}

static void expect_state(const char *id, const char *state)
{
	answer a = ask("GET", of(id, ""), NULL);

	cr_assert_eq(a.status, 200, "%s", a.text);
	cr_assert_str_eq(at(a.json, "state"), state);
	answer_done(&a);
}

static void wait_state(const char *id, const char *state)
{
	for (int i = 0; i < 1000; i++) {
		answer a = ask("GET", of(id, ""), NULL);
		bool is = a.status == 200 && strcmp(at(a.json, "state"), state) == 0;

		answer_done(&a);
		if (is)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	cr_assert(0, "%s is not %s", id, state);
}

Test(serve_pause, pause_resume_and_what_does_not_fit)
{
	char id[32], text[160];
	answer a;

	make_env("base", 1);
	create(",\"timeout\":60", id);
	expect("POST", of(id, "/resume"), "{}", 409, "is already running");
	expect("POST", of(id, "/pause"), NULL, 204, NULL);
	expect_state(id, "paused");
	snprintf(text, sizeof(text),
		 "{\"code\":409,\"message\":\"Error pausing sandbox - sandbox '%s' is "
		 "already paused\"}",
		 id);
	expect("POST", of(id, "/pause"), "{}", 409, text);
	expect("POST", of(id, "/timeout"), "{\"timeout\":60}", 409, "is paused");
	expect("POST", of(id, "/refreshes"), "{}", 409, "is paused");
	a = ask("POST", of(id, "/resume"), "{\"timeout\":40}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_str_eq(at(a.json, "sandboxID"), id);
	answer_done(&a);
	expect_state(id, "running");
	expect("POST", of("i0123456789abcdefghi", "/pause"), "{}", 404,
	       "Sandbox \\\"i0123456789abcdefghi\\\" doesn't exist or you don't have "
	       "access to it");
	expect("POST", of("i0123456789abcdefghi", "/resume"), "{}", 404, "\"code\":404");
	expect("POST", of(id, "/pause"), "{\"memory\":1}", 400, "memory");
	expect("POST", of(id, "/pause"), "{\"disk\":true}", 400, "disk");
	expect("POST", of(id, "/pause"), "{\"memory\":true}", 204, NULL);
	expect("POST", of(id, "/resume"), "{\"timeout\":0}", 400, "timeout");
	expect("POST", of(id, "/resume"), "{\"autoPause\":true}", 400, "autoPause");
	expect("POST", of(id, "/resume"), "{\"autoPause\":false}", 201, NULL);
	expect("POST", of(id, "/pause"), "{\"memory\":false}", 204, NULL);
	expect("DELETE", of(id, ""), NULL, 204, NULL);
	expect("POST", of(id, "/pause"), "{}", 404, NULL);
	wait_idle("base", 1);
}

Test(serve_pause, connect_resumes_a_paused_one_with_201)
{
	char id[32], end[40];
	answer a;

	make_env("base", 1);
	create(",\"timeout\":300", id);
	a = ask("GET", of(id, ""), NULL);
	snprintf(end, sizeof(end), "%s", at(a.json, "endAt"));
	answer_done(&a);
	expect("POST", of(id, "/connect"), "{\"timeout\":10}", 200, id);
	a = ask("GET", of(id, ""), NULL);
	cr_assert_str_eq(at(a.json, "endAt"), end, "a connect never shortens");
	answer_done(&a);
	expect("POST", of(id, "/pause"), "{}", 204, NULL);
	expect("POST", of(id, "/connect"), "{}", 400, "timeout is required");
	expect("POST", of(id, "/connect"), "{\"timeout\":10}", 201, id);
	expect_state(id, "running");
	expect("POST", of(id, "/pause"), "{}", 204, NULL);
	snprintf(path, sizeof(path), "/v2/sandboxes/%s/connect", id);
	expect("POST", path, "{\"memory\":false}", 201, id);
	expect_state(id, "running");
}

Test(serve_pause, lists_tell_the_states_apart)
{
	char one[32], two[32];
	answer a;

	make_env("base", 2);
	create("", one);
	create("", two);
	expect("POST", of(one, "/pause"), "{}", 204, NULL);
	a = ask("GET", "/v2/sandboxes", NULL);
	cr_assert_eq(json_object_array_length(a.json), 2);
	cr_assert_str_eq(answer_header(&a, "X-Total-Running"), "1");
	answer_done(&a);
	a = ask("GET", "/v2/sandboxes?state=paused", NULL);
	cr_assert_eq(json_object_array_length(a.json), 1);
	cr_assert_str_eq(at(a.json, "0.sandboxID"), one);
	cr_assert_str_eq(at(a.json, "0.state"), "paused");
	cr_assert_null(answer_header(&a, "X-Total-Running"));
	answer_done(&a);
	a = ask("GET", "/v2/sandboxes?state=running", NULL);
	cr_assert_eq(json_object_array_length(a.json), 1);
	cr_assert_str_eq(at(a.json, "0.sandboxID"), two);
	answer_done(&a);
	a = ask("GET", "/sandboxes", NULL);
	cr_assert_eq(json_object_array_length(a.json), 1, "v1 lists what runs");
	answer_done(&a);
	a = ask("GET", "/v1/sandboxes?pageSize=10", NULL);
	cr_assert(strstr(a.text, "\"Paused\""), "%s", a.text);
	answer_done(&a);
}

Test(serve_pause, the_lifecycle_is_told_and_kept)
{
	char id[32];
	answer a;

	make_env("base", 2);
	create(",\"timeout\":60,\"autoPause\":true,\"autoResume\":{\"enabled\":true}",
	       id);
	a = ask("GET", of(id, ""), NULL);
	cr_assert_str_eq(at(a.json, "lifecycle.onTimeout"), "pause");
	cr_assert_str_eq(at(a.json, "lifecycle.autoResume"), "true");
	answer_done(&a);
	expect("POST", of(id, "/timeout"), "{\"timeout\":0}", 204, NULL);
	expect_state(id, "paused");
	expect("POST", of(id, "/resume"), "{}", 201, NULL);
	create(",\"timeout\":1,\"autoPause\":true", id);
	wait_state(id, "paused");
}

Test(serve_pause, zero_is_a_timeout_only_for_what_it_pauses)
{
	char id[32];

	make_env("base", 1);
	create(",\"timeout\":60", id);
	expect("POST", of(id, "/timeout"), "{\"timeout\":0}", 400, "positive");
	expect_state(id, "running");
}

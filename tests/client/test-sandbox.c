/*
 * test-sandbox.c - create, connect, info, timeout, kill, is running, hosts: what is sent
 * and what comes back.
 */
#include "fixture.h"

static const char sandbox_json[] = "{\"sandboxID\":\"abc123\",\"templateID\":\"base\","
				   "\"clientID\":\"c\",\"envdVersion\":\"0.6.2\","
				   "\"envdAccessToken\":\"tok\",\"domain\":null}";

TestSuite(client_sandbox, .timeout = 30);

Test(client_sandbox, create_sends_what_was_asked)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = "/e2b/v2/sandboxes",
		  .status = 201,
		  .body = sandbox_json },
		{ .method = "GET", .path = "/health", .status = 204 },
		{ 0 },
	};
	const char *const envs[] = { "A=1", "B=x=y", NULL };
	const char *const metadata[] = { "who=me", NULL };
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
	abx_sandbox *sandbox = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.template_id = "e2b";
	o.env_vars = envs;
	o.metadata = metadata;
	o.image = "debian:12";
	o.timeout_ms = 1500;
	o.startup_timeout_ms = 20000;
	o.scaling_group = "1c2gi";
	o.no_wait = 1;
	cr_assert(abx_sandbox_create(f.client, &o, &sandbox, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_expect_str_eq(abx_sandbox_id(sandbox), "abc123");
	cr_expect_str_eq(abx_sandbox_template_id(sandbox), "base");
	expect_seen(&f, 0, "x-api-key: agbx_secret\n");
	expect_seen(&f, 0, "\"templateID\":\"e2b\"");
	expect_seen(&f, 0, "\"envVars\":{\"A\":\"1\",\"B\":\"x=y\"}");
	expect_seen(&f, 0, "\"who\":\"me\"");
	expect_seen(&f, 0, "\"agentbox.scitix.ai/image\":\"debian:12\"");
	expect_seen(&f, 0, "\"agentbox.scitix.ai/startup-timeout\":\"20\"");
	expect_seen(&f, 0, "\"agentbox.scitix.ai/scaling-group\":\"1c2gi\"");
	expect_seen(&f, 0, "\"agentbox.scitix.ai/no-wait\":\"true\"");
	expect_seen(&f, 0, "\"timeout\":2");
	/* The token of the answer opens the sandbox; the platform's key does not go
	 * there. */
	cr_expect(abx_sandbox_is_running(sandbox, &f.err) == 1);
	expect_seen(&f, 1, "x-access-token: tok\n");
	expect_seen(&f, 1, "e2b-sandbox-id: abc123\n");
	expect_seen(&f, 1, "e2b-sandbox-port: 49983\n");
	expect_not_seen(&f, 1, "agbx_secret");
	abx_sandbox_free(sandbox);
	fixture_down(&f);
}

Test(client_sandbox, create_without_options_asks_for_base)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = "/e2b/v2/sandboxes",
		  .status = 201,
		  .body = sandbox_json },
		{ 0 },
	};
	abx_sandbox *sandbox = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_create(f.client, NULL, &sandbox, &f.err) == ABX_OK);
	expect_seen(&f, 0, "{\"templateID\":\"base\"}");
	abx_sandbox_free(sandbox);
	fixture_down(&f);
}

Test(client_sandbox, refusals_of_the_platform_become_codes_and_texts)
{
	static const struct {
		fake_answer answer;
		int code;
		const char *text;
		const char *hint;
	} rows[] = {
		{ { .status = 400,
		    .body = "{\"code\":400,\"message\":\"env 'nope' is unknown\"}" },
		  ABX_EINVAL,
		  "create a sandbox from nope: env 'nope' is unknown",
		  NULL },
		{ { .status = 404,
		    .body = "{\"code\":404,\"message\":\"template 'nope' not found\"}" },
		  ABX_ENOTFOUND,
		  "template 'nope' not found",
		  NULL },
		{ { .status = 401,
		    .body = "{\"code\":401,\"message\":\"invalid api key\"}" },
		  ABX_EUNAUTHENTICATED,
		  "invalid api key",
		  "AGENTBOX_API_KEY" },
		{ { .status = 403, .body = "{\"code\":403,\"message\":\"not yours\"}" },
		  ABX_EDENIED,
		  "not yours",
		  NULL },
		{ { .status = 429,
		    .body = "{\"code\":429,\"message\":\"no idle Pod\"}",
		    .headers = { "Retry-After: 7" } },
		  ABX_EEXHAUSTED,
		  "no idle Pod",
		  "7 seconds" },
		{ { .status = 429,
		    .body = "{\"code\":429,\"message\":\"store /s: write: full\"}",
		    .headers = { "Retry-After: 7" } },
		  ABX_EEXHAUSTED,
		  "store /s: write: full",
		  "free disk space" },
		{ { .status = 501,
		    .body = "{\"code\":501,\"message\":\"no pause here\"}" },
		  ABX_EUNSUPPORTED,
		  "no pause here",
		  NULL },
		{ { .status = 500, .type = "text/plain", .body = "oops\nsecond line" },
		  ABX_EFAIL,
		  "HTTP status 500: oops",
		  NULL },
		{ { .status = 503 }, ABX_EUNAVAILABLE, "HTTP status 503", NULL },
		{ { .status = 504, .body = "{\"code\":504,\"message\":\"placement\"}" },
		  ABX_ETIMEDOUT,
		  "placement",
		  NULL },
		{ { .status = 201, .body = "not json" },
		  ABX_EPROTO,
		  "not a JSON object",
		  NULL },
		{ { .status = 201, .body = "{\"templateID\":\"x\"}" },
		  ABX_EPROTO,
		  "has no sandboxID",
		  NULL },
		{ { .status = 201, .body = "{\"sandboxID\":\"../evil\"}" },
		  ABX_EPROTO,
		  "has no sandboxID",
		  NULL },
		{ { .status = 201, .body = "{\"sandboxID\":\"a", .ending = FAKE_ABORT },
		  ABX_EUNAVAILABLE,
		  "connection broke",
		  NULL },
		{ { .status = 302, .body = "{}" }, ABX_EFAIL, "", NULL },
	};
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;

	o.template_id = "nope";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_answer answers[2] = { rows[i].answer };
		abx_sandbox *sandbox =
			(abx_sandbox *)&answers; /* a failed call leaves it */
		fixture f;
		int r;

		fixture_up(&f, answers);
		r = abx_sandbox_create(f.client, &o, &sandbox, &f.err);
		cr_expect(sandbox == (abx_sandbox *)&answers, "row %zu changed ret", i);
		if (rows[i].hint)
			cr_expect(abx_error_hint(f.err) &&
					  strstr(abx_error_hint(f.err), rows[i].hint),
				  "row %zu: hint '%s'", i, abx_error_hint(f.err));
		expect_error(&f, r, rows[i].code, rows[i].text);
		fixture_down(&f);
	}
}

Test(client_sandbox, wrong_options_are_refused_before_anything_is_sent)
{
	static const fake_answer answers[] = { { 0 } };
	const char *const broken[] = { "A=1", "secretvalue", NULL };
	const char *const no_key[] = { "=x", NULL };
	const char *const blank[] = { "A=1", "A B=secretvalue", NULL };
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
	abx_sandbox *sandbox = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.env_vars = broken;
	int r = abx_sandbox_create(f.client, &o, &sandbox, &f.err);
	cr_expect(strstr(abx_error_message(f.err), "secretvalue") == NULL);
	expect_error(&f, r, ABX_EINVAL, "env_vars: entry 1 is not KEY=VALUE");
	o.env_vars = blank;
	r = abx_sandbox_create(f.client, &o, &sandbox, &f.err);
	expect_error(&f, r, ABX_EINVAL, "env_vars: the name of entry 1 has a blank");
	o.env_vars = NULL;
	o.metadata = no_key;
	r = abx_sandbox_create(f.client, &o, &sandbox, &f.err);
	expect_error(&f, r, ABX_EINVAL, "metadata: entry 0");
	o.metadata = NULL;
	o.size = 3;
	r = abx_sandbox_create(f.client, &o, &sandbox, &f.err);
	expect_error(&f, r, ABX_EINVAL, "size 3");
	expect_error(&f, abx_sandbox_create(f.client, NULL, NULL, &f.err), ABX_EINVAL,
		     "ret is NULL");
	expect_error(&f, abx_sandbox_create(NULL, NULL, &sandbox, &f.err), ABX_EINVAL,
		     "client is NULL");
	expect_error(&f, abx_sandbox_open(f.client, "../x", &sandbox, &f.err), ABX_EINVAL,
		     "'../x'");
	expect_error(&f, abx_sandbox_open(f.client, "", &sandbox, &f.err), ABX_EINVAL,
		     "not a sandbox id");
	expect_error(&f, abx_sandbox_connect(f.client, "a b", NULL, &sandbox, &f.err),
		     ABX_EINVAL, "'a b'");
	cr_expect(fake_server_count(f.server) == 0);
	fixture_down(&f);
}

Test(client_sandbox, connect_gives_a_usable_handle)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = "/e2b/v2/sandboxes/abc123/connect",
		  .status = 200,
		  .body = sandbox_json },
		{ .status = 404,
		  .body = "{\"code\":404,\"message\":\"no sandbox gone\"}" },
		{ 0 },
	};
	abx_sandbox_connect_options o = ABX_SANDBOX_CONNECT_OPTIONS_INIT;
	abx_sandbox *sandbox = NULL;
	fixture f;
	int r;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_connect(f.client, "abc123", NULL, &sandbox, &f.err) ==
		  ABX_OK);
	expect_seen(&f, 0, "\n\n{}");
	abx_sandbox_free(sandbox);
	o.timeout_ms = 60001;
	cr_assert(abx_sandbox_connect(f.client, "abc123", &o, &sandbox, &f.err) ==
		  ABX_OK);
	expect_seen(&f, 1, "{\"timeout\":61}");
	abx_sandbox_free(sandbox);
	r = abx_sandbox_connect(f.client, "gone", NULL, &sandbox, &f.err);
	expect_error(&f, r, ABX_ENOTFOUND, "connect to sandbox gone: no sandbox gone");
	fixture_down(&f);
}

Test(client_sandbox, info_reads_every_field)
{
	static const fake_answer answers[] = {
		{ .method = "GET",
		  .path = "/e2b/sandboxes/sb1",
		  .status = 200,
		  .body = "{\"sandboxID\":\"sb1\",\"templateID\":\"base\",\"alias\":"
			  "\"al\",\"clientID\":\"c\","
			  "\"startedAt\":\"2026-01-02T03:04:05Z\",\"endAt\":\"2026-01-"
			  "02T03:09:05.5Z\","
			  "\"envdVersion\":\"0.6.2\",\"cpuCount\":2,\"memoryMB\":2048,"
			  "\"diskSizeMB\":0,"
			  "\"state\":\"running\",\"metadata\":{\"a\":\"1\"},"
			  "\"envdAccessToken\":\"tok\"}" },
		{ 0 },
	};
	abx_sandbox_info *info = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_get_info(f.sandbox, &info, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_expect_str_eq(info->id, "sb1");
	cr_expect_str_eq(info->template_id, "base");
	cr_expect_str_eq(info->alias, "al");
	cr_expect(info->state == ABX_SANDBOX_RUNNING);
	cr_expect(info->started_at_ms == 1767323045000);
	cr_expect(info->end_at_ms == 1767323345500);
	cr_expect(info->cpu_count == 2 && info->memory_mb == 2048 &&
		  info->disk_size_mb == 0);
	cr_expect_str_eq(info->envd_version, "0.6.2");
	cr_expect_str_eq(info->metadata[0], "a=1");
	cr_expect_null(info->metadata[1]);
	cr_expect(strstr(info->json, "\"memoryMB\":2048") != NULL);
	cr_expect_null(strstr(info->json, "tok"));
	cr_expect(info->size == sizeof(*info));
	abx_sandbox_info_free(info);
	fixture_down(&f);
}

Test(client_sandbox, a_state_that_is_not_known_is_accepted)
{
	static const fake_answer answers[] = {
		{ .status = 200,
		  .body = "{\"sandboxID\":\"sb1\",\"state\":\"dreaming\"}" },
		{ 0 },
	};
	abx_sandbox_info *info = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_get_info(f.sandbox, &info, &f.err) == ABX_OK);
	cr_expect(info->state == ABX_SANDBOX_UNKNOWN);
	cr_expect_str_eq(info->template_id, "");
	cr_expect_null(info->alias);
	abx_sandbox_info_free(info);
	fixture_down(&f);
}

Test(client_sandbox, killed_twice_is_one_then_zero)
{
	static const fake_answer answers[] = {
		{ .method = "DELETE",
		  .path = "/e2b/sandboxes/sb1",
		  .status = 204,
		  .times = 1 },
		{ .method = "DELETE",
		  .status = 404,
		  .body = "{\"code\":404,\"message\":\"gone\"}",
		  .times = 1 },
		{ .method = "DELETE",
		  .status = 500,
		  .body = "{\"code\":500,\"message\":\"stuck\"}" },
		{ 0 },
	};
	fixture f;

	fixture_up(&f, answers);
	cr_expect(abx_sandbox_kill(f.sandbox, &f.err) == 1);
	cr_expect(abx_sandbox_kill(f.sandbox, &f.err) == 0);
	cr_expect_null(f.err);
	expect_error(&f, abx_sandbox_kill(f.sandbox, &f.err), ABX_EFAIL,
		     "kill sandbox sb1: stuck");
	fixture_down(&f);
}

Test(client_sandbox, timeout_is_rounded_up_and_its_refusal_told)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = "/e2b/sandboxes/sb1/timeout",
		  .status = 204,
		  .times = 1 },
		{ .status = 400,
		  .body = "{\"code\":400,\"message\":\"timeout must be positive\"}" },
		{ 0 },
	};
	fixture f;

	fixture_up(&f, answers);
	cr_expect(abx_sandbox_set_timeout(f.sandbox, 30001, &f.err) == ABX_OK);
	expect_seen(&f, 0, "{\"timeout\":31}");
	expect_error(&f, abx_sandbox_set_timeout(f.sandbox, 0, &f.err), ABX_EINVAL,
		     "must be positive");
	fixture_down(&f);
}

Test(client_sandbox, is_running_tells_dead_from_broken)
{
	static const fake_answer answers[] = {
		{ .path = "/health", .status = 204, .times = 1 },
		{ .path = "/health",
		  .status = 502,
		  .times = 1,
		  .body = "{\"sandboxId\":\"sb1\",\"message\":\"The sandbox was not "
			  "found\",\"code\":502}" },
		{ .path = "/health",
		  .status = 401,
		  .body = "{\"code\":401,\"message\":\"no token\"}" },
		{ 0 },
	};
	fixture f;

	fixture_up(&f, answers);
	cr_expect(abx_sandbox_is_running(f.sandbox, &f.err) == 1);
	cr_expect(abx_sandbox_is_running(f.sandbox, &f.err) == 0);
	expect_error(&f, abx_sandbox_is_running(f.sandbox, &f.err), ABX_EUNAUTHENTICATED,
		     "no token");
	fixture_down(&f);
}

Test(client_sandbox, hosts_follow_the_kind_of_platform)
{
	static const fake_answer answers[] = { { 0 } };
	abx_client_options o = ABX_CLIENT_OPTIONS_INIT;
	abx_client *client = NULL;
	abx_sandbox *sandbox = NULL;
	char expected[128];
	char *text = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_get_url(f.sandbox, 8000, &text, &f.err) == ABX_OK);
	snprintf(expected, sizeof(expected), "%s/sandboxes/sb1/8000",
		 fake_server_url(f.server));
	cr_expect_str_eq(text, expected);
	abx_free(text);
	cr_assert(abx_sandbox_get_host(f.sandbox, 8000, &text, &f.err) == ABX_OK);
	cr_expect_str_eq(text, expected + strlen("http://"));
	abx_free(text);
	expect_error(&f, abx_sandbox_get_url(f.sandbox, 0, &text, &f.err), ABX_EINVAL,
		     "port 0");
	expect_error(&f, abx_sandbox_get_url(f.sandbox, 65536, &text, &f.err), ABX_EINVAL,
		     "65536");

	o.flags = ABX_CLIENT_NO_ENVIRONMENT | ABX_CLIENT_NO_CONTEXT;
	o.e2b_domain = "boxes.example";
	cr_assert(abx_client_new(&o, &client, &f.err) == ABX_OK);
	cr_assert(abx_sandbox_open(client, "sb1", &sandbox, &f.err) == ABX_OK);
	cr_assert(abx_sandbox_get_url(sandbox, 80, &text, &f.err) == ABX_OK);
	cr_expect_str_eq(text, "https://80-sb1.boxes.example");
	abx_free(text);
	abx_sandbox_free(sandbox);
	abx_client_free(client);

	o.e2b_domain = NULL;
	o.socket_path = fake_server_socket(f.server);
	cr_assert(abx_client_new(&o, &client, &f.err) == ABX_OK);
	cr_assert(abx_sandbox_open(client, "sb1", &sandbox, &f.err) == ABX_OK);
	expect_error(&f, abx_sandbox_get_url(sandbox, 80, &text, &f.err),
		     ABX_EUNSUPPORTED, "socket");
	abx_sandbox_free(sandbox);
	abx_client_free(client);
	fixture_down(&f);
}

Test(client_sandbox, the_unix_socket_carries_everything)
{
	static const fake_answer answers[] = {
		{ .method = "DELETE", .path = "/e2b/sandboxes/sb1", .status = 204 },
		{ .path = "/health", .status = 204 },
		{ .path = "/v1/envs", .status = 200, .body = "{\"items\":[]}" },
		{ 0 },
	};
	abx_client_options o = ABX_CLIENT_OPTIONS_INIT;
	abx_client *client = NULL;
	abx_sandbox *sandbox = NULL;
	char *json = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.flags = ABX_CLIENT_NO_ENVIRONMENT | ABX_CLIENT_NO_CONTEXT;
	o.socket_path = fake_server_socket(f.server);
	cr_assert(abx_client_new(&o, &client, &f.err) == ABX_OK);
	cr_expect(strncmp(abx_client_address(client), "unix:/", 6) == 0);
	cr_assert(abx_sandbox_open(client, "sb1", &sandbox, &f.err) == ABX_OK);
	cr_expect(abx_sandbox_is_running(sandbox, &f.err) == 1);
	cr_expect(abx_sandbox_kill(sandbox, &f.err) == 1);
	cr_expect(abx_platform_get(client, "/envs", &json, &f.err) == ABX_OK);
	cr_expect_str_eq(json, "{\"items\":[]}");
	expect_not_seen(&f, 2, "api-key");
	abx_free(json);
	abx_sandbox_free(sandbox);
	abx_client_free(client);
	fixture_down(&f);
}

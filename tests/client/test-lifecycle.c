/*
 * test-lifecycle.c - what a timeout does, who may reach the ports, pausing and resuming.
 */
#include "fixture.h"

TestSuite(client_lifecycle, .timeout = 30);

#define SANDBOX                                                                     \
	"{\"templateID\":\"base\",\"sandboxID\":\"sb1\",\"clientID\":\"c\","        \
	"\"envdVersion\":\"0.6.13\",\"envdAccessToken\":\"tok2\",\"domain\":\"box." \
	"dev\","                                                                    \
	"\"trafficAccessToken\":\"traffic\"}"

Test(client_lifecycle, create_says_what_its_timeout_does)
{
	static const fake_answer answers[] = {
		{ .path = "/e2b/v2/sandboxes", .status = 201, .body = SANDBOX },
		{ 0 },
	};
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
	abx_sandbox *sandbox = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_create(f.client, &o, &sandbox, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_not_seen(&f, 0, "autoPause");
	expect_not_seen(&f, 0, "autoResume");
	expect_not_seen(&f, 0, "network");
	cr_expect_str_eq(abx_sandbox_traffic_token(sandbox), "traffic");
	abx_sandbox_free(sandbox);
	cr_expect(abx_sandbox_traffic_token(f.sandbox) == NULL);
	o.on_timeout = ABX_ON_TIMEOUT_PAUSE;
	o.auto_resume = 1;
	o.private_ports = 1;
	o.mask_request_host = "localhost:${PORT}";
	cr_assert(abx_sandbox_create(f.client, &o, &sandbox, &f.err) == ABX_OK);
	abx_sandbox_free(sandbox);
	expect_seen(&f, 1, "\"autoPause\":true");
	expect_seen(&f, 1, "\"autoResume\":{\"enabled\":true}");
	expect_seen(&f, 1, "\"allowPublicTraffic\":false");
	expect_seen(&f, 1, "\"maskRequestHost\":\"localhost:${PORT}\"");
	expect_not_seen(&f, 1, "autoPauseMemory");
	o.auto_resume = 0;
	o.pause_files_only = 1;
	cr_assert(abx_sandbox_create(f.client, &o, &sandbox, &f.err) == ABX_OK);
	abx_sandbox_free(sandbox);
	expect_seen(&f, 2, "\"autoPauseMemory\":false");
	fixture_down(&f);
}

Test(client_lifecycle, what_does_not_go_together_is_not_sent)
{
	static const fake_answer answers[] = { { 0 } };
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
	abx_sandbox *sandbox = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.on_timeout = 7;
	expect_error(&f, abx_sandbox_create(f.client, &o, &sandbox, &f.err), ABX_EINVAL,
		     "on_timeout 7");
	o.on_timeout = ABX_ON_TIMEOUT_KILL;
	o.pause_files_only = 1;
	expect_error(&f, abx_sandbox_create(f.client, &o, &sandbox, &f.err), ABX_EINVAL,
		     "ABX_ON_TIMEOUT_PAUSE");
	o.on_timeout = ABX_ON_TIMEOUT_PAUSE;
	o.auto_resume = 1;
	expect_error(&f, abx_sandbox_create(f.client, &o, &sandbox, &f.err), ABX_EINVAL,
		     "auto_resume");
	cr_expect(fake_server_count(f.server) == 0);
	fixture_down(&f);
}

Test(client_lifecycle, info_tells_it)
{
	static const fake_answer answers[] = {
		{ .status = 200,
		  .body = "{\"sandboxID\":\"sb1\",\"state\":\"paused\",\"lifecycle\":{"
			  "\"autoResume\":true,\"onTimeout\":\"pause\"}}" },
		{ 0 },
	};
	abx_sandbox_info *info = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_get_info(f.sandbox, &info, &f.err) == ABX_OK);
	cr_expect(info->state == ABX_SANDBOX_PAUSED);
	cr_expect(info->on_timeout == ABX_ON_TIMEOUT_PAUSE && info->auto_resume);
	abx_sandbox_info_free(info);
	fixture_down(&f);
}

#define PAUSE "/e2b/sandboxes/sb1/pause"

Test(client_lifecycle, pause_gives_1_then_0)
{
	static const fake_answer answers[] = {
		{ .method = "POST", .path = PAUSE, .status = 204, .times = 1 },
		{ .path = PAUSE,
		  .status = 409,
		  .times = 1,
		  .body = "{\"code\":409,\"message\":\"Error pausing sandbox - sandbox "
			  "'sb1' is already paused\"}" },
		{ .path = PAUSE,
		  .status = 409,
		  .times = 1,
		  .body = "{\"code\":409,\"message\":\"it is being killed\"}" },
		{ .path = PAUSE,
		  .status = 404,
		  .body = "{\"code\":404,\"message\":\"no such sandbox\"}" },
		{ 0 },
	};
	abx_sandbox_pause_options o = ABX_SANDBOX_PAUSE_OPTIONS_INIT;
	fixture f;

	fixture_up(&f, answers);
	o.files_only = 1;
	cr_expect(abx_sandbox_pause(f.sandbox, &o, &f.err) == 1);
	expect_seen(&f, 0, "\n\n{\"memory\":false}");
	cr_expect(abx_sandbox_pause(f.sandbox, NULL, &f.err) == 0 && f.err == NULL);
	expect_seen(&f, 1, "\n\n{}");
	expect_error(&f, abx_sandbox_pause(f.sandbox, NULL, &f.err), ABX_ECONFLICT,
		     "pause sandbox sb1: it is being killed");
	expect_error(&f, abx_sandbox_pause(f.sandbox, NULL, &f.err), ABX_ENOTFOUND,
		     "no such sandbox");
	expect_error(&f, abx_sandbox_pause(NULL, NULL, &f.err), ABX_EINVAL, "NULL");
	fixture_down(&f);
}

#define CONNECT "/e2b/v2/sandboxes/sb1/connect"

static void note(void *userdata, int r, const abx_error *err)
{
	(void)err;
	*(int *)userdata = r;
}

Test(client_lifecycle, resume_gives_1_when_it_did_and_renews_the_handle)
{
	static const fake_answer answers[] = {
		{ .path = CONNECT, .status = 201, .body = SANDBOX, .times = 1 },
		{ .path = CONNECT, .status = 200, .body = SANDBOX, .times = 2 },
		{ .path = CONNECT, .status = 200, .body = "{}", .times = 1 },
		{ .path = CONNECT,
		  .status = 404,
		  .body = "{\"code\":404,\"message\":\"gone\"}" },
		{ 0 },
	};
	abx_sandbox_connect_options o = ABX_SANDBOX_CONNECT_OPTIONS_INIT;
	abx_sandbox *sandbox = NULL;
	char *host = NULL;
	int r = 7;
	fixture f;

	fixture_up(&f, answers);
	o.timeout_ms = 1001;
	o.reboot = 1;
	cr_expect(abx_sandbox_resume(f.sandbox, &o, &f.err) == 1);
	expect_seen(&f, 0, "\"timeout\":2");
	expect_seen(&f, 0, "\"memory\":false");
	cr_expect(abx_sandbox_get_host(f.sandbox, 80, &host, &f.err) == ABX_OK);
	cr_expect_str_eq(host, "80-sb1.box.dev");
	abx_free(host);
	cr_expect_str_eq(abx_sandbox_traffic_token(f.sandbox), "traffic");
	cr_expect(abx_sandbox_resume(f.sandbox, NULL, &f.err) == 0);
	/* The handle may go while it is under way. */
	cr_assert(abx_sandbox_open(f.client, "sb1", &sandbox, &f.err) == ABX_OK);
	cr_assert(abx_sandbox_resume_async(sandbox, NULL, note, &r, NULL, NULL, &f.err) ==
		  ABX_OK);
	abx_sandbox_free(sandbox);
	while (abx_client_wait(f.client, 1000, NULL) > 0)
		;
	cr_expect(r == 0);
	expect_error(&f, abx_sandbox_resume(f.sandbox, NULL, &f.err), ABX_EPROTO,
		     "no sandboxID");
	cr_expect_str_eq(abx_sandbox_traffic_token(f.sandbox), "traffic");
	expect_error(&f, abx_sandbox_resume(f.sandbox, NULL, &f.err), ABX_ENOTFOUND,
		     "resume sandbox sb1: gone");
	expect_error(&f, abx_sandbox_resume(NULL, NULL, &f.err), ABX_EINVAL, "NULL");
	fixture_down(&f);
}

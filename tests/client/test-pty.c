/*
 * test-pty.c - terminals: what their start says, their one stream of output, input,
 * sizes.
 */
#include "fixture.h"

TestSuite(client_pty, .timeout = 30);

/* "hi\r\n", then "bye" */
static const char *const session[] = {
	"{\"event\":{\"start\":{\"pid\":9}}}",
	"{\"event\":{\"data\":{\"pty\":\"aGkNCg==\"}}}",
	"{\"event\":{\"data\":{\"pty\":\"Ynll\"}}}",
	"{\"event\":{\"end\":{\"exitCode\":4,\"exited\":true,\"status\":\"exit status "
	"4\",\"error\":\"exit status 4\"}}}",
	"!{}",
	NULL,
};

struct screen {
	char text[64];
	size_t len;
};

static int show(void *userdata, const char *data, size_t len)
{
	struct screen *screen = userdata;

	cr_assert(screen->len + len < sizeof(screen->text));
	memcpy(screen->text + screen->len, data, len);
	screen->len += len;
	return ABX_OK;
}

Test(client_pty, start_sends_the_size_and_shows_the_output)
{
	fake_answer answers[2] = { { .method = "POST",
				     .path = "/process.Process/Start",
				     .status = 200,
				     .type = STREAM,
				     .split = 7 } };
	const char *const env_vars[] = { "TERM=dumb", "A=b", NULL };
	abx_pty_options o = ABX_PTY_OPTIONS_INIT;
	abx_command_result *result = NULL;
	struct screen screen = { "", 0 };
	abx_process *pty = NULL;
	char *body = frames(session, &answers[0].len);
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	o.cols = 120;
	o.rows = 40;
	o.env_vars = env_vars;
	o.cwd = "/srv";
	o.tag = "shell";
	o.on_output = show;
	o.userdata = &screen;
	cr_assert(abx_pty_start(f.sandbox, &o, &pty, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_expect(abx_process_pid(pty) == 9);
	cr_assert(abx_process_wait(pty, &result, &f.err) == ABX_OK);
	cr_expect(result->exit_code == 4 && result->out_len == 0);
	cr_expect(screen.len == 7 && memcmp(screen.text, "hi\r\nbye", 7) == 0);
	abx_command_result_free(result);
	abx_process_free(pty);
	expect_seen(&f, 0, "\"pty\":{\"size\":{\"cols\":120,\"rows\":40}}");
	expect_seen(&f, 0, "\"cmd\":\"/bin/bash\"");
	expect_seen(&f, 0, "\"args\":[\"-i\",\"-l\"]");
	expect_seen(&f, 0, "\"cwd\":\"/srv\"");
	expect_seen(&f, 0, "\"tag\":\"shell\"");
	expect_seen(&f, 0, "\"TERM\":\"dumb\"");
	expect_seen(&f, 0, "\"LANG\":\"C.UTF-8\"");
	expect_seen(&f, 0, "\"LC_ALL\":\"C.UTF-8\"");
	expect_not_seen(&f, 0, "\"stdin\"");
	expect_not_seen(&f, 0, "connect-timeout-ms");
	fixture_down(&f);
	abx_free(body);
}

Test(client_pty, without_a_callback_the_output_is_the_result)
{
	fake_answer answers[2] = { { .status = 200, .type = STREAM } };
	const char *const argv[] = { "vi", "a file", NULL };
	abx_pty_options o = ABX_PTY_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_process *pty = NULL;
	char *body = frames(session, &answers[0].len);
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	o.argv = argv;
	o.user = "root";
	o.timeout_ms = 9000;
	cr_assert(abx_pty_start(f.sandbox, &o, &pty, &f.err) == ABX_OK);
	cr_assert(abx_process_wait(pty, &result, &f.err) == ABX_OK);
	cr_expect_str_eq(result->out, "hi\r\nbye");
	abx_command_result_free(result);
	abx_process_free(pty);
	expect_seen(&f, 0, "\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}");
	expect_seen(&f, 0, "\"cmd\":\"vi\"");
	expect_seen(&f, 0, "\"args\":[\"a file\"]");
	expect_seen(&f, 0, "\"TERM\":\"xterm-256color\"");
	expect_seen(&f, 0, "authorization: Basic cm9vdDo=\n");
	expect_seen(&f, 0, "connect-timeout-ms: 9000\n");
	o.max_output_bytes = 5;
	cr_assert(abx_pty_start(f.sandbox, &o, &pty, &f.err) == ABX_OK);
	expect_error(&f, abx_process_wait(pty, &result, &f.err), ABX_ETOOBIG,
		     "max_output_bytes");
	abx_process_free(pty);
	fixture_down(&f);
	abx_free(body);
}

Test(client_pty, connect_listens_by_pid)
{
	fake_answer answers[3] = {
		{ .path = "/process.Process/Connect",
		  .status = 200,
		  .type = STREAM,
		  .times = 1 },
		{ .status = 404,
		  .body = "{\"code\":\"not_found\",\"message\":\"process with pid 9 not "
			  "found\"}" },
	};
	abx_pty_options o = ABX_PTY_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_process *pty = NULL;
	char *body = frames(session, &answers[0].len);
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	cr_assert(abx_pty_connect(f.sandbox, 9, NULL, &pty, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_assert(abx_process_wait(pty, &result, &f.err) == ABX_OK);
	cr_expect_str_eq(result->out, "hi\r\nbye");
	abx_command_result_free(result);
	abx_process_free(pty);
	expect_seen(&f, 0, "{\"process\":{\"pid\":9}}");
	expect_error(&f, abx_pty_connect(f.sandbox, 9, NULL, &pty, &f.err), ABX_ENOTFOUND,
		     "connect to terminal 9");
	o.cols = 10;
	expect_error(&f, abx_pty_connect(f.sandbox, 9, &o, &pty, &f.err), ABX_EINVAL,
		     "only the callback");
	fixture_down(&f);
	abx_free(body);
}

Test(client_pty, input_and_sizes_go_to_the_process)
{
	static const fake_answer answers[] = {
		{ .path = "/process.Process/SendInput", .status = 200, .body = "{}" },
		{ .path = "/process.Process/Update", .status = 200, .body = "{}" },
		{ 0 },
	};
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_pty_send_input(f.sandbox, 9, "ls\n", 3, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_seen(&f, 0, "{\"process\":{\"pid\":9},\"input\":{\"pty\":\"bHMK\"}}");
	cr_assert(abx_pty_resize(f.sandbox, 9, 100, 30, &f.err) == ABX_OK);
	expect_seen(&f, 1,
		    "{\"process\":{\"pid\":9},\"pty\":{\"size\":{\"cols\":100,\"rows\":"
		    "30}}}");
	fixture_down(&f);
}

Test(client_pty, a_process_without_a_terminal_is_a_state_error)
{
	static const fake_answer answers[] = {
		{ .path = "/process.Process/SendInput",
		  .status = 500,
		  .body = "{\"code\":\"internal\",\"message\":\"error writing to tty: "
			  "the process has no tty\"}" },
		{ .path = "/process.Process/Update",
		  .status = 500,
		  .body = "{\"code\":\"internal\",\"message\":\"error resizing tty: the "
			  "process has no tty\"}" },
		{ 0 },
	};
	fixture f;

	fixture_up(&f, answers);
	expect_error(&f, abx_pty_send_input(f.sandbox, 9, "x", 1, &f.err), ABX_ESTATE,
		     "no terminal");
	expect_error(&f, abx_pty_resize(f.sandbox, 9, 1, 1, &f.err), ABX_ESTATE,
		     "no terminal");
	fixture_down(&f);
}

Test(client_pty, wrong_arguments_send_nothing)
{
	static const fake_answer answers[] = { { 0 } };
	const char *const none[] = { NULL };
	abx_pty_options o = ABX_PTY_OPTIONS_INIT;
	abx_process *pty = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.cols = 65536;
	expect_error(&f, abx_pty_start(f.sandbox, &o, &pty, &f.err), ABX_EINVAL, "65536");
	o.cols = 0;
	o.argv = none;
	expect_error(&f, abx_pty_start(f.sandbox, &o, &pty, &f.err), ABX_EINVAL, "argv");
	o.argv = NULL;
	o.cwd = "\xff";
	expect_error(&f, abx_pty_start(f.sandbox, &o, &pty, &f.err), ABX_EINVAL, "cwd");
	expect_error(&f, abx_pty_start(f.sandbox, NULL, NULL, &f.err), ABX_EINVAL, "ret");
	expect_error(&f, abx_pty_start(NULL, NULL, &pty, &f.err), ABX_EINVAL, "NULL");
	expect_error(&f, abx_pty_resize(f.sandbox, 9, 0, 5, &f.err), ABX_EINVAL, "0");
	expect_error(&f, abx_pty_resize(f.sandbox, 9, 5, 70000, &f.err), ABX_EINVAL,
		     "70000");
	expect_error(&f, abx_pty_send_input(NULL, 9, "x", 1, &f.err), ABX_EINVAL, "NULL");
	cr_expect(fake_server_count(f.server) == 0);
	fixture_down(&f);
}

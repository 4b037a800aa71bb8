/*
 * test-commands.c - streams of commands: events at any split, ends of every kind,
 * pausing, and the calls by pid.
 */
#include "base/alloc.h"
#include "base/id.h"
#include "client/output-event.h"
#include "fixture.h"

TestSuite(client_commands, .timeout = 30);

static const char *const hello[] = {
	"{\"event\":{\"start\":{\"pid\":42}}}",
	"{\"event\":{\"keepalive\":{}}}",
	"{\"event\":{\"data\":{\"stdout\":\"aGVsbG8K\"}}}",
	"{\"event\":{\"data\":{\"stderr\":\"d29lCg==\"}}}",
	"{\"event\":{\"somethingNew\":{}}}",
	"{\"event\":{\"data\":{\"stdout\":\"AAECAw==\"}}}",
	"{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status "
	"3\",\"error\":\"exit "
	"status 3\"}}}",
	"!{}",
	NULL,
};

static void expect_hello(const abx_command_result *result)
{
	cr_expect(result->pid == 42);
	cr_expect(result->exit_code == 3);
	cr_expect(result->out_len == 10 &&
		  memcmp(result->out, "hello\n\0\1\2\3", 11) == 0);
	cr_expect(result->err_len == 4);
	cr_expect_str_eq(result->err, "woe\n");
	cr_expect_str_eq(result->error, "exit status 3");
}

Test(client_commands, run_collects_output_and_the_exit_code)
{
	fake_answer answers[2] = { { .method = "POST",
				     .path = "/process.Process/Start",
				     .status = 200,
				     .type = STREAM } };
	const char *const env_vars[] = { "K=V", NULL };
	abx_command_options o = ABX_COMMAND_OPTIONS_INIT;
	abx_command_result *result = NULL;
	char *body = frames(hello, &answers[0].len);
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	o.user = "root";
	o.cwd = "/srv";
	o.env_vars = env_vars;
	o.tag = "job";
	o.timeout_ms = 2500;
	cr_assert(abx_command_run(f.sandbox, "echo hi", &o, &result, &f.err) == ABX_OK,
		  "%s", abx_error_message(f.err));
	expect_hello(result);
	abx_command_result_free(result);
	expect_seen(&f, 0, "content-type: application/connect+json\n");
	expect_seen(&f, 0, "connect-protocol-version: 1\n");
	expect_seen(&f, 0, "connect-timeout-ms: 2500\n");
	expect_seen(&f, 0, "keepalive-ping-interval: 50\n");
	expect_seen(&f, 0, "authorization: Basic cm9vdDo=\n");
	fixture_down(&f);
	abx_free(body);
}

/* What one message of output is, by the reader that parses no JSON. */
static int read_output(const char *text, bool *ret_is_stderr, char *ret)
{
	uint8_t *data = NULL;
	size_t len = 0;
	int r = abx__output_event_read(text, strlen(text), ret_is_stderr, &data, &len);

	if (r > 0)
		snprintf(ret, 32, "%.*s", (int)len, (const char *)data);
	abx__free(data);
	return r;
}

Test(client_commands, output_is_read_without_json_in_one_spelling_alone)
{
	static const char *const others[] = {
		"",
		"{\"event\":{\"data\":{\"",
		"{\"event\":{\"data\":{\"stdout\":\"",
		"{\"event\":{\"data\":{\"stdout\":\"}}}",
		"{\"event\":{\"data\":{\"stdout\": \"aGVsbG8K\"}}}",
		"{\"event\":{\"data\":{\"stdout\":\"aGVsbG8\"}}}",
		"{\"event\":{\"data\":{\"stdout\":\"aGVs\\/G8K\"}}}",
		"{\"event\":{\"data\":{\"stdout\":\"aGVsbG8K\"}}} ",
		"{\"event\":{\"data\":{\"stdout\":\"aGVs\",\"stderr\":\"aGVs\"}}}",
		"{\"event\":{\"data\":{\"other\":\"aGVsbG8K\"}}}",
	};
	char text[32] = "";
	bool is_stderr = true;

	cr_expect(read_output("{\"event\":{\"data\":{\"stdout\":\"aGVsbG8K\"}}}",
			      &is_stderr, text) == 1);
	cr_expect_str_eq(text, "hello\n");
	cr_expect_not(is_stderr);
	cr_expect(read_output("{\"event\":{\"data\":{\"stderr\":\"d29lCg==\"}}}",
			      &is_stderr, text) == 1);
	cr_expect_str_eq(text, "woe\n");
	cr_expect(is_stderr);
	cr_expect(read_output("{\"event\":{\"data\":{\"pty\":\"\"}}}", &is_stderr,
			      text) == 1);
	cr_expect_str_eq(text, "");
	cr_expect_not(is_stderr);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect(read_output(others[i], &is_stderr, text) == 0, "%s", others[i]);
}

/* Spelt with blanks and escapes, as Go's JSON may, it is the same output. */
Test(client_commands, output_in_any_spelling_is_read)
{
	static const char *const spelt[] = {
		"{\"event\": {\"start\": {\"pid\": 42}}}",
		"{\"event\": {\"data\": {\"stdout\": \"aGVsbG8K\"}}}",
		"{\"event\":{\"data\":{\"stderr\":\"d29l\\u0043g==\"}}}",
		"{\"event\":{\"data\":{\"stdout\":\"AAECAw==\"}} }",
		"{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"error\":\"exit "
		"status 3\"}}}",
		"!{}",
		NULL,
	};
	fake_answer answers[2] = { { .status = 200, .type = STREAM } };
	abx_command_result *result = NULL;
	char *body = frames(spelt, &answers[0].len);
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	cr_assert(abx_command_run(f.sandbox, "x", NULL, &result, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_hello(result);
	abx_command_result_free(result);
	fixture_down(&f);
	abx_free(body);
}

Test(client_commands, the_request_says_what_to_run)
{
	/* The server echoes the request, which is then an event that cannot be read. */
	static const fake_answer answers[] = {
		{ .status = 400, .ending = FAKE_ECHO, .type = STREAM },
		{ 0 },
	};
	const char *const argv[] = { "ls", "-l", NULL };
	abx_command_options o = ABX_COMMAND_OPTIONS_INIT;
	abx_error *err = NULL;
	fixture f;

	fixture_up(&f, answers);
	abx_command_run(f.sandbox, "a 'b' \"c\"", NULL, NULL, &err);
	cr_expect(strstr(abx_error_message(err), "") != NULL);
	abx_error_free(err);
	expect_seen(&f, 0, "\"cmd\":\"/bin/bash\"");
	expect_seen(&f, 0, "\"-c\",\"a 'b' \\\"c\\\"\"");
	o.argv = argv;
	o.stdin_open = 1;
	o.timeout_ms = ABX_NO_TIMEOUT;
	abx_command_run(f.sandbox, NULL, &o, NULL, NULL);
	expect_not_seen(&f, 1, "connect-timeout-ms");
	expect_seen(&f, 1, "\"cmd\":\"ls\"");
	expect_seen(&f, 1, "\"stdin\":true");
	expect_seen(&f, 0, "connect-timeout-ms: 60000\n");
	fixture_down(&f);
}

Test(client_commands, a_stream_may_be_split_at_any_byte)
{
	fake_answer answers[2] = { { .status = 200, .type = STREAM } };
	char *body = frames(hello, &answers[0].len);

	answers[0].body = body;
	for (size_t split = 1; split < 40; split += split < 8 ? 1 : 9) {
		abx_command_result *result = NULL;
		fixture f;

		answers[0].split = split;
		fixture_up(&f, answers);
		cr_assert(abx_command_run(f.sandbox, "x", NULL, &result, &f.err) ==
				  ABX_OK,
			  "split %zu: %s", split, abx_error_message(f.err));
		expect_hello(result);
		abx_command_result_free(result);
		fixture_down(&f);
	}
	abx_free(body);
}

Test(client_commands, the_connection_of_a_stream_is_used_again)
{
	fake_answer answers[2] = { { .status = 200, .type = STREAM } };
	char *body = frames(hello, &answers[0].len);
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	for (int i = 0; i < 50; i++)
		cr_assert(abx_command_run(f.sandbox, "x", NULL, NULL, &f.err) == ABX_OK);
	cr_expect(fake_server_aborted(f.server) == 0, "%u streams were cut",
		  fake_server_aborted(f.server));
	fixture_down(&f);
	abx_free(body);
}

static const struct {
	const char *messages[5];
	enum fake_ending ending;
	int code;
	const char *text;
} bad_streams[] = {
	{ { "!{\"error\":{\"code\":\"invalid_argument\",\"message\":\"cwd '/x' does not "
	    "exist\"}}" },
	  FAKE_WHOLE,
	  ABX_EINVAL,
	  "run 'x' in sandbox sb1: cwd '/x' does not exist" },
	{ { "!{\"error\":{\"code\":\"unauthenticated\",\"message\":\"invalid username: "
	    "'who'\"}}" },
	  FAKE_WHOLE,
	  ABX_EINVAL,
	  "invalid username: 'who'" },
	{ { "!{\"error\":{\"code\":\"unauthenticated\",\"message\":\"no\"}}" },
	  FAKE_WHOLE,
	  ABX_EUNAUTHENTICATED,
	  "no" },
	{ { "!{\"error\":{\"code\":\"unavailable\"}}" },
	  FAKE_WHOLE,
	  ABX_EUNAVAILABLE,
	  "unavailable" },
	{ { "{\"event\":{\"start\":{\"pid\":1}}}",
	    "!{\"error\":{\"code\":\"deadline_exceeded\"}}" },
	  FAKE_WHOLE,
	  ABX_ETIMEDOUT,
	  "longer than its 60000 ms" },
	{ { "{\"event\":{\"start\":{\"pid\":1}}}", "!{}" },
	  FAKE_WHOLE,
	  ABX_EPROTO,
	  "without the command's end" },
	{ { "{\"event\":{\"start\":{\"pid\":1}}}" },
	  FAKE_WHOLE,
	  ABX_EUNAVAILABLE,
	  "without the command's end" },
	{ { "{\"event\":{\"start\":{\"pid\":1}}}" },
	  FAKE_ABORT,
	  ABX_EUNAVAILABLE,
	  "connection broke" },
	{ { "{\"event\":{\"data\":{\"stdout\":\"eA==\"}}}" },
	  FAKE_WHOLE,
	  ABX_EPROTO,
	  "cannot be read" },
	{ { "{\"event\":{\"start\":{\"pid\":0}}}" },
	  FAKE_WHOLE,
	  ABX_EPROTO,
	  "cannot be read" },
	{ { "{\"event\":{\"start\":{\"pid\":1}}}",
	    "{\"event\":{\"data\":{\"stdout\":\"*\"}}}" },
	  FAKE_WHOLE,
	  ABX_EPROTO,
	  "cannot be read" },
	{ { "not json" }, FAKE_WHOLE, ABX_EPROTO, "cannot be read" },
	{ { "{\"no\":1}" }, FAKE_WHOLE, ABX_EPROTO, "cannot be read" },
};

Test(client_commands, streams_that_go_wrong_say_how)
{
	for (size_t i = 0; i < sizeof(bad_streams) / sizeof(bad_streams[0]); i++) {
		fake_answer answers[2] = { { .status = 200,
					     .type = STREAM,
					     .split = 7,
					     .ending = bad_streams[i].ending } };
		char *body = frames(bad_streams[i].messages, &answers[0].len);
		abx_process *process = NULL;
		fixture f;
		int r;

		answers[0].body = body;
		fixture_up(&f, answers);
		r = abx_command_run(f.sandbox, "x", NULL, NULL, &f.err);
		expect_error(&f, r, bad_streams[i].code, bad_streams[i].text);
		/* The same through a handle: refused at once, or at its end. */
		r = abx_command_start(f.sandbox, "x", NULL, &process, &f.err);
		if (r >= 0)
			r = abx_process_wait(process, NULL, &f.err);
		expect_error(&f, r, bad_streams[i].code, "");
		abx_process_free(process);
		fixture_down(&f);
		abx_free(body);
	}
}

Test(client_commands, a_compressed_message_is_refused)
{
	abx__buf buf = ABX__BUF_INIT;
	fake_answer answers[2] = { { .status = 200, .type = STREAM } };
	fixture f;

	abx__connect_frame_add(&buf, ABX__CONNECT_COMPRESSED, "zz", 2);
	answers[0].body = buf.data;
	answers[0].len = buf.len;
	fixture_up(&f, answers);
	expect_error(&f, abx_command_run(f.sandbox, "x", NULL, NULL, &f.err), ABX_EPROTO,
		     "cannot be read");
	fixture_down(&f);
	abx__buf_done(&buf);
}

Test(client_commands, an_answer_that_is_no_stream_says_why)
{
	static const fake_answer answers[] = {
		{ .status = 502,
		  .times = 1,
		  .body = "{\"sandboxId\":\"sb1\",\"message\":\"The sandbox was not "
			  "found\",\"code\":502}" },
		{ .status = 401,
		  .body = "{\"code\":401,\"message\":\"unauthorized access\"}" },
		{ 0 },
	};
	fixture f;

	fixture_up(&f, answers);
	expect_error(&f, abx_command_run(f.sandbox, "x", NULL, NULL, &f.err),
		     ABX_ENOTFOUND, "run 'x' in sandbox sb1: The sandbox was not found");
	expect_error(&f, abx_command_run(f.sandbox, "x", NULL, NULL, &f.err),
		     ABX_EUNAUTHENTICATED, "unauthorized access");
	fixture_down(&f);
}

Test(client_commands, wrong_arguments_are_refused_before_anything_is_sent)
{
	static const fake_answer answers[] = { { 0 } };
	const char *const argv[] = { "ls", NULL };
	const char *const none[] = { NULL };
	abx_command_options o = ABX_COMMAND_OPTIONS_INIT;
	abx_process *process = NULL;
	fixture f;

	fixture_up(&f, answers);
	expect_error(&f, abx_command_run(f.sandbox, NULL, NULL, NULL, &f.err), ABX_EINVAL,
		     "either");
	o.argv = argv;
	expect_error(&f, abx_command_run(f.sandbox, "x", &o, NULL, &f.err), ABX_EINVAL,
		     "either");
	o.argv = none;
	expect_error(&f, abx_command_run(f.sandbox, NULL, &o, NULL, &f.err), ABX_EINVAL,
		     "either");
	o.argv = NULL;
	o.cwd = "\xff";
	expect_error(&f, abx_command_run(f.sandbox, "x", &o, NULL, &f.err), ABX_EINVAL,
		     "cwd is not UTF-8");
	expect_error(&f, abx_command_connect(f.sandbox, 1, &o, &process, &f.err),
		     ABX_EINVAL, "only callbacks and limits");
	expect_error(&f, abx_command_send_stdin(f.sandbox, 1, "", (8u << 20) + 1, &f.err),
		     ABX_ETOOBIG, "at most");
	expect_error(&f, abx_command_send_stdin(f.sandbox, 1, NULL, 5, &f.err),
		     ABX_EINVAL, "data is NULL");
	expect_error(&f, abx_command_run(NULL, "x", NULL, NULL, &f.err), ABX_EINVAL,
		     "NULL");
	cr_expect(fake_server_count(f.server) == 0);
	fixture_down(&f);
}

struct sink {
	char text[64];
	unsigned calls;
	int answer;
};

static int take(void *userdata, const char *data, size_t len)
{
	struct sink *sink = userdata;

	strncat(sink->text, data, len);
	sink->calls++;
	return sink->answer;
}

Test(client_commands, callbacks_get_the_output_instead_of_the_result)
{
	fake_answer answers[2] = { { .status = 200, .type = STREAM, .split = 11 } };
	char *body = frames(hello, &answers[0].len);
	abx_command_options o = ABX_COMMAND_OPTIONS_INIT;
	abx_command_result *result = NULL;
	struct sink sink = { .answer = ABX_OK };
	fixture f;
	int r;

	answers[0].body = body;
	fixture_up(&f, answers);
	o.on_stdout = take;
	o.userdata = &sink;
	cr_assert(abx_command_run(f.sandbox, "x", &o, &result, &f.err) == ABX_OK);
	cr_expect(sink.calls == 2 && strncmp(sink.text, "hello\n", 6) == 0);
	cr_expect(result->out_len == 0 && result->err_len == 4);
	abx_command_result_free(result);
	o.collect = 1;
	cr_assert(abx_command_run(f.sandbox, "x", &o, &result, &f.err) == ABX_OK);
	cr_expect(result->out_len == 10);
	abx_command_result_free(result);
	sink.answer = ABX_EDENIED;
	r = abx_command_run(f.sandbox, "x", &o, &result, &f.err);
	expect_error(&f, r, ABX_EDENIED, "output callback");
	sink.answer = ABX_PAUSE;
	r = abx_command_run(f.sandbox, "x", &o, &result, &f.err);
	expect_error(&f, r, ABX_EINVAL, "");
	o.on_stdout = NULL;
	o.max_output_bytes = 5;
	r = abx_command_run(f.sandbox, "x", &o, &result, &f.err);
	expect_error(&f, r, ABX_ETOOBIG, "max_output_bytes");
	fixture_down(&f);
	abx_free(body);
}

Test(client_commands, a_paused_process_goes_on_where_it_stopped)
{
	fake_answer answers[2] = { { .status = 200, .type = STREAM } };

	for (size_t split = 0; split < 30; split += 5) {
		char *body = frames(hello, &answers[0].len);
		abx_command_options o = ABX_COMMAND_OPTIONS_INIT;
		abx_command_result *result = NULL;
		struct sink sink = { .answer = ABX_PAUSE };
		abx_process *process = NULL;
		fixture f;

		answers[0].body = body;
		answers[0].split = split;
		fixture_up(&f, answers);
		o.on_stdout = take;
		o.on_stderr = take;
		o.userdata = &sink;
		cr_assert(abx_command_start(f.sandbox, "x", &o, &process, &f.err) ==
			  ABX_OK);
		cr_expect(abx_process_pid(process) == 42);
		for (unsigned i = 0; i < 20 && sink.calls == 0; i++)
			abx_client_wait(f.client, 50, NULL);
		for (unsigned i = 0; i < 5; i++)
			abx_client_wait(f.client, 5, NULL);
		cr_expect(sink.calls == 1, "split %zu: %u calls while paused", split,
			  sink.calls);
		abx_process_resume(process);
		for (unsigned i = 0; i < 20 && sink.calls == 1; i++)
			abx_client_wait(f.client, 50, NULL);
		cr_expect(sink.calls == 2, "split %zu: %u calls after one resume", split,
			  sink.calls);
		sink.answer = ABX_OK;
		abx_process_resume(process);
		cr_assert(abx_process_wait(process, &result, &f.err) == ABX_OK,
			  "split %zu: %s", split, abx_error_message(f.err));
		cr_expect(sink.calls == 3);
		cr_expect(strncmp(sink.text, "hello\nwoe\n", 10) == 0);
		cr_expect(result->exit_code == 3);
		abx_command_result_free(result);
		expect_error(&f, abx_process_wait(process, NULL, &f.err), ABX_ESTATE,
			     "waited for before");
		abx_process_free(process);
		fixture_down(&f);
		abx_free(body);
	}
}

Test(client_commands, freeing_a_process_that_runs_cuts_its_stream)
{
	fake_answer answers[2] = {
		{ .status = 200, .type = STREAM, .ending = FAKE_STALL }
	};
	const char *const started[] = { "{\"event\":{\"start\":{\"pid\":7}}}", NULL };
	char *body = frames(started, &answers[0].len);
	abx_process *process = NULL;
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	cr_assert(abx_command_start(f.sandbox, "x", NULL, &process, &f.err) == ABX_OK,
		  "%s", abx_error_message(f.err));
	cr_expect(abx_process_pid(process) == 7);
	abx_process_free(process);
	for (int i = 0; i < 100 && fake_server_aborted(f.server) == 0; i++)
		abx_client_wait(f.client, 20, NULL);
	cr_expect(fake_server_aborted(f.server) == 1);
	fixture_down(&f);
	abx_free(body);
}

Test(client_commands, a_process_outlives_its_client_to_be_freed)
{
	fake_answer answers[2] = {
		{ .status = 200, .type = STREAM, .ending = FAKE_STALL }
	};
	const char *const started[] = { "{\"event\":{\"start\":{\"pid\":7}}}", NULL };
	char *body = frames(started, &answers[0].len);
	abx_process *process = NULL;
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	cr_assert(abx_command_start(f.sandbox, "x", NULL, &process, &f.err) == ABX_OK);
	abx_client_free(f.client);
	f.client = NULL;
	expect_error(&f, abx_process_wait(process, NULL, &f.err), ABX_ESTATE,
		     "client was freed");
	expect_error(&f, abx_sandbox_kill(f.sandbox, &f.err), ABX_ESTATE,
		     "client was freed");
	abx_process_free(process);
	fixture_down(&f);
	abx_free(body);
}

Test(client_commands, calls_by_pid)
{
	static const fake_answer answers[] = {
		{ .path = "/process.Process/SendSignal",
		  .status = 200,
		  .body = "{}",
		  .times = 2 },
		{ .path = "/process.Process/SendSignal",
		  .status = 404,
		  .times = 1,
		  .body = "{\"code\":\"not_found\",\"message\":\"process with pid 9 not "
			  "found\"}" },
		{ .path = "/process.Process/SendSignal",
		  .status = 404,
		  .body = "{\"code\":404,\"message\":\"The sandbox was not found\"}" },
		{ .path = "/process.Process/SendInput",
		  .status = 200,
		  .body = "{}",
		  .times = 1 },
		{ .path = "/process.Process/SendInput",
		  .status = 500,
		  .times = 1,
		  .body = "{\"code\":\"internal\",\"message\":\"error writing to stdin: "
			  "stdin not enabled or "
			  "closed\"}" },
		{ .path = "/process.Process/SendInput",
		  .status = 404,
		  .body = "{\"code\":\"not_found\",\"message\":\"process with pid 9 not "
			  "found\"}" },
		{ .path = "/process.Process/CloseStdin", .status = 200, .body = "{}" },
		{ 0 },
	};
	fixture f;

	fixture_up(&f, answers);
	cr_expect(abx_command_kill(f.sandbox, 9, &f.err) == 1);
	expect_seen(&f, 0, "{\"process\":{\"pid\":9},\"signal\":\"SIGNAL_SIGKILL\"}");
	expect_seen(&f, 0, "content-type: application/json\n");
	cr_expect(abx_command_terminate(f.sandbox, 9, &f.err) == 1);
	expect_seen(&f, 1, "SIGNAL_SIGTERM");
	cr_expect(abx_command_kill(f.sandbox, 9, &f.err) == 0);
	expect_error(&f, abx_command_kill(f.sandbox, 9, &f.err), ABX_ENOTFOUND,
		     "sandbox was not found");
	cr_expect(abx_command_send_stdin(f.sandbox, 9, "a\0b", 3, &f.err) == ABX_OK);
	expect_seen(&f, 4, "{\"process\":{\"pid\":9},\"input\":{\"stdin\":\"YQBi\"}}");
	expect_error(&f, abx_command_send_stdin(f.sandbox, 9, "a", 1, &f.err), ABX_ESTATE,
		     "not open");
	expect_error(&f, abx_command_send_stdin(f.sandbox, 9, "a", 1, &f.err),
		     ABX_ENOTFOUND, "pid 9");
	cr_expect(abx_command_close_stdin(f.sandbox, 9, &f.err) == ABX_OK);
	fixture_down(&f);
}

Test(client_commands, list_reads_every_field)
{
	static const fake_answer answers[] = {
		{ .path = "/process.Process/List",
		  .status = 200,
		  .times = 1,
		  .body = "{\"processes\":[{\"config\":{\"cmd\":\"/bin/"
			  "bash\",\"args\":[\"-l\",\"-c\",\"x\"],"
			  "\"envs\":{\"A\":\"1\"},\"cwd\":\"/"
			  "\"},\"pid\":12,\"tag\":\"t\"},"
			  "{\"config\":{\"cmd\":\"top\"},\"pid\":13}]}" },
		{ .path = "/process.Process/List",
		  .status = 200,
		  .body = "{}",
		  .times = 1 },
		{ .path = "/process.Process/List",
		  .status = 200,
		  .body = "{\"processes\":[{}]}" },
		{ 0 },
	};
	abx_process_list *list = NULL;
	const abx_process_info *info;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_command_list(f.sandbox, &list, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_assert(abx_process_list_count(list) == 2);
	info = abx_process_list_at(list, 0);
	cr_expect(info->pid == 12 && strcmp(info->cmd, "/bin/bash") == 0 &&
		  strcmp(info->tag, "t") == 0);
	cr_expect(strcmp(info->args[2], "x") == 0 && !info->args[3]);
	cr_expect(strcmp(info->env_vars[0], "A=1") == 0 && !info->env_vars[1]);
	cr_expect_str_eq(info->cwd, "/");
	info = abx_process_list_at(list, 1);
	cr_expect(info->pid == 13 && !info->tag && !info->cwd && !info->args[0]);
	cr_expect_null(abx_process_list_at(list, 2));
	abx_process_list_free(list);
	cr_assert(abx_command_list(f.sandbox, &list, &f.err) == ABX_OK);
	cr_expect(abx_process_list_count(list) == 0);
	abx_process_list_free(list);
	expect_error(&f, abx_command_list(f.sandbox, &list, &f.err), ABX_EPROTO,
		     "not a list of processes");
	fixture_down(&f);
}

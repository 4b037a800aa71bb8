/*
 * test-code.c - cells: what is sent, what comes of the lines, how they end.
 */
#include "fixture.h"

TestSuite(client_code, .timeout = 30);

#define LINES "application/x-ndjson"
#define COUNT "{\"type\":\"number_of_executions\",\"execution_count\":3}\n"
#define END "{\"type\":\"end_of_execution\"}\n"
#define OUT(kind, text) \
	"{\"type\":\"" kind "\",\"text\":\"" text "\",\"timestamp\":\"now\"}\n"

Test(client_code, a_cell_yields_its_output_results_and_number)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .split = 7,
		  .body = COUNT OUT("stdout", "one\\n")
			  OUT("stderr", "bad\\n") "{\"type\":\"keepalive\"}\n" OUT(
				  "stdout",
				  "two\\n") "{\"type\":\"result\",\"is_main_result\":"
					    "false,\"png\":\"aGk=\","
					    "\"chart\":{\"type\":\"bar\"},\"extra\":{}}\n"
					    "{\"type\":\"result\",\"is_main_result\":"
					    "true,\"text\":\"42\","
					    "\"json\":[1],\"extra\":{\"a/b\":1}}\n"
					    "{\"type\":\"of a later release\"}\n" END },
		{ 0 },
	};
	const char *const env_vars[] = { "A=1", NULL };
	abx_code_options o = ABX_CODE_OPTIONS_INIT;
	abx_code_execution *e = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.env_vars = env_vars;
	o.language = "python";
	cr_assert(abx_code_run(f.sandbox, "x", &o, &e, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_seen(&f, 0, "e2b-sandbox-port: 49999\n");
	expect_seen(
		&f, 0,
		"{\"code\":\"x\",\"language\":\"python\",\"env_vars\":{\"A\":\"1\"}}");
	cr_expect(e->size == sizeof(*e) && e->count == 3 && !e->error_name);
	cr_expect_str_eq(e->out, "one\ntwo\n");
	cr_expect_str_eq(e->err, "bad\n");
	cr_expect(e->out_len == 8 && e->err_len == 4);
	cr_assert_eq(e->result_count, 2);
	cr_expect_str_eq(e->text, "42");
	cr_expect_str_eq(e->results[0].png, "aGk=");
	cr_expect_str_eq(e->results[0].chart, "{\"type\":\"bar\"}");
	cr_expect(!e->results[0].is_main && !e->results[0].text && !e->results[0].extra);
	cr_expect(e->results[1].is_main);
	cr_expect_str_eq(e->results[1].json, "[1]");
	cr_expect_str_eq(e->results[1].extra, "{\"a/b\":1}");
	abx_code_execution_free(e);
	abx_code_execution_free(NULL);
	fixture_down(&f);
}

struct heard {
	char text[64];
	int refuse;
};

static int hear(void *userdata, const char *data, size_t len)
{
	struct heard *heard = userdata;

	strncat(heard->text, data, len);
	return heard->refuse;
}

static int hear_result(void *userdata, const abx_code_result *result)
{
	struct heard *heard = userdata;

	strcat(heard->text, result->text);
	return ABX_OK;
}

Test(client_code, callbacks_hear_everything_in_its_order_and_may_end_it)
{
	static const fake_answer answers[] = {
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .body = OUT("stdout", "a")
			  OUT("stderr", "b") "{\"type\":\"result\",\"is_main_result\":"
					     "true,\"text\":\"c\"}"
					     "\n" OUT("stdout", "d") END },
		{ 0 },
	};
	abx_code_options o = ABX_CODE_OPTIONS_INIT;
	struct heard heard = { 0 };
	abx_code_execution *e = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.on_stdout = o.on_stderr = hear;
	o.on_result = hear_result;
	o.userdata = &heard;
	cr_assert(abx_code_run(f.sandbox, "x", &o, &e, &f.err) == ABX_OK);
	cr_expect_str_eq(heard.text, "abcd");
	cr_expect(e->result_count == 0 && !e->text && e->out_len == 0);
	cr_expect_str_eq(e->out, "");
	abx_code_execution_free(e);
	heard.refuse = ABX_EDENIED;
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_EDENIED,
		     "run code in sandbox sb1");
	heard.refuse = ABX_PAUSE; /* in a blocking call */
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_EINVAL,
		     "run code");
	fixture_down(&f);
}

Test(client_code, a_cell_that_raises_is_no_failed_call)
{
	static const fake_answer answers[] = {
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .body = COUNT "{\"type\":\"error\",\"name\":\"ValueError\",\"value\":"
				"\"no\",\"traceback\":\"line 1\"}\n" END },
		{ 0 },
	};
	abx_code_execution *e = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_code_run(f.sandbox, "x", NULL, &e, &f.err) == ABX_OK);
	cr_expect_str_eq(e->error_name, "ValueError");
	cr_expect_str_eq(e->error_value, "no");
	cr_expect_str_eq(e->error_traceback, "line 1");
	abx_code_execution_free(e);
	cr_expect(abx_code_run(f.sandbox, "x", NULL, NULL, &f.err) == ABX_OK);
	fixture_down(&f);
}

Test(client_code, ends_that_are_failures)
{
	static const fake_answer answers[] = {
		{ .path = "/execute",
		  .status = 404,
		  .type = "text/plain",
		  .times = 1,
		  .body = "language: no kernel for r in this sandbox, only for python" },
		{ .path = "/execute",
		  .status = 429,
		  .type = "text/plain",
		  .times = 1,
		  .body = "64 executions wait" },
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .times = 1,
		  .body = COUNT },
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .times = 1,
		  .body = "nonsense\n" },
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .times = 1,
		  .body = OUT("stdout", "more than ten bytes") END },
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .times = 1,
		  .body = COUNT,
		  .ending = FAKE_ABORT },
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .body = COUNT,
		  .ending = FAKE_STALL },
		{ 0 },
	};
	abx_code_options o = ABX_CODE_OPTIONS_INIT;
	abx_code_execution *e = NULL;
	fixture f;

	fixture_up(&f, answers);
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_ENOTFOUND,
		     "no kernel for r");
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_EEXHAUSTED,
		     "64 executions wait");
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_EUNAVAILABLE,
		     "the stream ended before the cell did");
	cr_expect(abx_code_run(f.sandbox, "x", &o, &e, &f.err) == ABX_EPROTO);
	abx_error_free(f.err);
	f.err = NULL;
	o.max_output_bytes = 100; /* the line itself is longer */
	cr_expect(abx_code_run(f.sandbox, "x", &o, &e, &f.err) == ABX_OK);
	abx_code_execution_free(e);
	e = NULL;
	cr_expect(abx_code_run(f.sandbox, "x", &o, &e, &f.err) < 0);
	abx_error_free(f.err);
	f.err = NULL;
	o.timeout_ms = 200;
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_ETIMEDOUT,
		     "interrupted after 200 ms");
	cr_expect_null(e);
	fixture_down(&f);
}

Test(client_code, too_much_output_ends_it)
{
	static const fake_answer answers[] = {
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .body = OUT("stdout", "0123456789012345678901234567890123456789") OUT(
			  "stdout", "0123456789012345678901234567890123456789")
			  OUT("stdout", "0123456789012345678901234567890123456789") END },
		{ 0 },
	};
	abx_code_options o = ABX_CODE_OPTIONS_INIT;
	abx_code_execution *e = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.max_output_bytes = 100;
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_ETOOBIG,
		     "over 100 bytes");
	fixture_down(&f);
}

Test(client_code, contexts)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = "/contexts",
		  .status = 200,
		  .times = 1,
		  .body = "{\"id\":\"c/1\",\"language\":\"python\",\"cwd\":\"/w\"}" },
		{ .method = "POST",
		  .path = "/contexts",
		  .status = 400,
		  .times = 1,
		  .type = "text/plain",
		  .body = "cwd: there is no folder /nope" },
		{ .method = "POST", .path = "/contexts", .status = 200, .body = "{}" },
		{ .method = "POST",
		  .path = "/contexts/c%2F1/restart",
		  .status = 200,
		  .body = "null" },
		{ .method = "DELETE",
		  .path = "/contexts/c%2F1",
		  .status = 404,
		  .type = "text/plain",
		  .body = "Context c/1 not found" },
		{ 0 },
	};
	char *id = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_code_context_create(f.sandbox, "python", "/w", &id, &f.err) ==
		  ABX_OK);
	expect_seen(&f, 0, "{\"language\":\"python\",\"cwd\":\"/w\"}");
	expect_seen(&f, 0, "e2b-sandbox-port: 49999\n");
	cr_expect_str_eq(id, "c/1");
	expect_error(&f, abx_code_context_create(f.sandbox, NULL, "/nope", &id, &f.err),
		     ABX_EINVAL, "there is no folder /nope");
	expect_error(&f, abx_code_context_create(f.sandbox, NULL, NULL, &id, &f.err),
		     ABX_EPROTO, "no id");
	cr_expect(abx_code_context_restart(f.sandbox, id, &f.err) == ABX_OK);
	expect_error(&f, abx_code_context_remove(f.sandbox, id, &f.err), ABX_ENOTFOUND,
		     "Context c/1 not found");
	abx_free(id);
	fixture_down(&f);
}

Test(client_code, wrong_arguments_are_told)
{
	static const fake_answer answers[] = { { 0 } };
	const char *const broken[] = { "A", NULL };
	abx_code_options o = ABX_CODE_OPTIONS_INIT;
	abx_code_execution *e = NULL;
	fixture f;

	fixture_up(&f, answers);
	expect_error(&f, abx_code_run(NULL, "x", NULL, &e, &f.err), ABX_EINVAL, "NULL");
	expect_error(&f, abx_code_run(f.sandbox, NULL, NULL, &e, &f.err), ABX_EINVAL,
		     "the code is NULL");
	expect_error(&f, abx_code_run(f.sandbox, "\xff", NULL, &e, &f.err), ABX_EINVAL,
		     "not UTF-8");
	o.env_vars = broken;
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_EINVAL,
		     "env_vars");
	o.env_vars = NULL;
	o.language = "r";
	o.context_id = "c";
	expect_error(&f, abx_code_run(f.sandbox, "x", &o, &e, &f.err), ABX_EINVAL,
		     "not both");
	expect_error(&f, abx_code_context_remove(f.sandbox, "", &f.err), ABX_EINVAL,
		     "the id is empty");
	expect_error(&f, abx_code_context_create(NULL, NULL, NULL, NULL, &f.err),
		     ABX_EINVAL, "NULL");
	cr_expect_eq(fake_server_count(f.server), 0);
	fixture_down(&f);
}

struct ended {
	bool is_over;
	int r;
};

static void note_end(void *userdata, int r, abx_code_execution *execution,
		     const abx_error *err)
{
	struct ended *ended = userdata;

	(void)err;
	ended->is_over = true;
	ended->r = r;
	abx_code_execution_free(execution);
}

Test(client_code, an_operation_ends_by_itself_or_cancelled)
{
	static const fake_answer answers[] = {
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .times = 1,
		  .body = OUT("stdout", "a") END },
		{ .path = "/execute",
		  .status = 200,
		  .type = LINES,
		  .body = COUNT,
		  .ending = FAKE_STALL },
		{ 0 },
	};
	struct ended ended = { 0 };
	abx_op *op = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_code_run_async(f.sandbox, "x", NULL, note_end, &ended, NULL, &op,
				     &f.err) == ABX_OK);
	while (!ended.is_over)
		abx_client_wait(f.client, 100, NULL);
	cr_expect_eq(ended.r, ABX_OK);
	abx_op_free(op);
	ended = (struct ended){ 0 };
	cr_assert(abx_code_run_async(f.sandbox, "x", NULL, note_end, &ended, NULL, &op,
				     &f.err) == ABX_OK);
	abx_op_cancel(op);
	while (!ended.is_over)
		abx_client_wait(f.client, 100, NULL);
	cr_expect_eq(ended.r, ABX_ECANCELED);
	abx_op_free(op);
	fixture_down(&f);
}

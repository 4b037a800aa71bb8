/*
 * process-call.c - the messages envd's process service takes: what to start, a process by
 * its id, input for it.
 */
#include "client/process.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/sandbox.h"
#include "io/json.h"

#define MAX_STDIN ((size_t)8 << 20)

/* ---- starting ---- */

int abx__process_check_text(const char *what, const char *text, abx_error **reterr)
{
	if (!text || abx__utf8_is_valid(text, strlen(text)))
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "%s is not UTF-8", what);
}

static int push_str(json_object *array, const char *text)
{
	json_object *item = json_object_new_string(text);

	return item ? abx__json_push_take(array, item) : ABX_ENOMEM;
}

static int add_args(json_object *process, const char *cmd, const char *const *argv)
{
	json_object *args = json_object_new_array();
	const char *const shell[] = { "/bin/bash", "-l", "-c", cmd, NULL };

	if (!args || abx__json_set_take(process, "args", args) < 0)
		return ABX_ENOMEM;
	if (cmd)
		argv = shell;
	if (abx__json_set_str(process, "cmd", argv[0]) < 0)
		return ABX_ENOMEM;
	for (size_t i = 1; argv[i]; i++)
		if (push_str(args, argv[i]) < 0)
			return ABX_ENOMEM;
	return ABX_OK;
}

int abx__process_message(const char *cmd, const abx_command_options *opts,
			 json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *message = json_object_new_object();
	ABX_CLEANUP_JSON json_object *envs = NULL;
	json_object *process = json_object_new_object();
	int r;

	if (!message || !process || abx__json_set_take(message, "process", process) < 0)
		return abx__error_nomem(reterr);
	r = abx__pairs_json("env_vars", opts->env_vars, &envs, reterr);
	if (r < 0)
		return r;
	if (add_args(process, cmd, opts->argv) < 0 ||
	    abx__json_set_take(process, "envs", abx_take(envs)) < 0 ||
	    (opts->cwd && abx__json_set_str(process, "cwd", opts->cwd) < 0) ||
	    (opts->tag && abx__json_set_str(message, "tag", opts->tag) < 0) ||
	    abx__json_set_bool(message, "stdin", opts->stdin_open != 0) < 0)
		return abx__error_nomem(reterr);
	*ret = abx_take(message);
	return ABX_OK;
}

int abx__process_open(abx_op *op, abx__request *req, const abx_command_options *opts,
		      json_object *message, abx_error **reterr)
{
	abx_process *process = abx__process_new(op->client, opts);

	if (process)
		return abx__stream_open(&process->stream, op, req, message, reterr);
	json_object_put(message);
	return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
}

/* ---- calls on any process ---- */

json_object *abx__process_selector(uint32_t pid)
{
	ABX_CLEANUP_JSON json_object *message = json_object_new_object();
	json_object *selector = json_object_new_object();

	if (!message || !selector ||
	    abx__json_set_take(message, "process", selector) < 0 ||
	    abx__json_set_i64(selector, "pid", pid) < 0)
		return NULL;
	return abx_take(message);
}

int abx__process_call(abx_sandbox *sandbox, const abx__then *then, const char *method,
		      json_object *message, int (*on_answer)(abx_op *, int, abx_error **),
		      abx_error **reterr, const char *what, uint32_t pid)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .method = "POST",
			     .path = method,
			     .sandbox = sandbox,
			     .is_rpc = true };
	ABX_CLEANUP_JSON json_object *json = message;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL, "%s: the sandbox is NULL",
				      what);
	if (pid)
		r = abx__op_new(sandbox->client, then, &op, reterr, "%s %u in sandbox %s",
				what, pid, sandbox->id);
	else
		r = abx__op_new(sandbox->client, then, &op, reterr, "%s in sandbox %s",
				what, sandbox->id);
	if (r < 0)
		return r;
	op->on_answer = on_answer;
	r = abx__request_json(op, abx_take(json), reterr);
	return r < 0 ? abx__op_abandon(op, r, reterr)
		     : abx__request_send(op, &req, reterr);
}

static int input_answer(abx_op *op, int status, abx_error **reterr)
{
	int code;

	if (status == 200)
		return ABX_OK;
	code = abx__answer_failed(op, status, reterr);
	/* envd has no better code for an input that was never opened or is closed. */
	if (status == 500 && strstr(abx__buf_str(&op->in), "stdin not enabled or closed"))
		return abx__error_set(reterr, ABX_ESTATE,
				      "its standard input is not open");
	if (status == 500 && strstr(abx__buf_str(&op->in), "has no tty"))
		return abx__error_set(reterr, ABX_ESTATE, "it has no terminal");
	if (status == 500 && strstr(abx__buf_str(&op->in), "has a tty"))
		return abx__error_set(
			reterr, ABX_ESTATE,
			"it is a terminal; abx_pty_send_input() types into it");
	return code;
}

int abx__process_send(abx_sandbox *sandbox, uint32_t pid, const char *kind,
		      const char *data, size_t len, const abx__then *then,
		      abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *coded = NULL;
	ABX_CLEANUP_JSON json_object *message = NULL;
	json_object *input;

	if (len && !data)
		return abx__error_set(reterr, ABX_EINVAL,
				      "send %zu bytes to process %u: data is NULL", len,
				      pid);
	if (len > MAX_STDIN)
		return abx__error_set(reterr, ABX_ETOOBIG,
				      "send %zu bytes to process %u: at most %zu at once",
				      len, pid, MAX_STDIN);
	coded = abx__base64_encode(data, len);
	message = coded ? abx__process_selector(pid) : NULL;
	input = message ? json_object_new_object() : NULL;
	if (!input || abx__json_set_take(message, "input", input) < 0 ||
	    abx__json_set_str(input, kind, coded) < 0)
		return abx__error_nomem(reterr);
	return abx__process_call(sandbox, then, "/process.Process/SendInput",
				 abx_take(message), input_answer, reterr,
				 "send input to process", pid);
}

/*
 * commands.c - the calls of <agentbox/commands.h> on top of process streams and envd's
 * unary calls.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/options.h"
#include "client/process.h"
#include "client/sandbox.h"
#include "client/strings.h"
#include "io/json.h"

#define DEFAULT_TIMEOUT_MS 60000
#define MAX_STDIN ((size_t)8 << 20)

/* ---- requests ---- */

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

static int check_text(const char *what, const char *text, abx_error **reterr)
{
	if (!text || abx__utf8_is_valid(text, strlen(text)))
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "%s is not UTF-8", what);
}

static int check_command(const char *cmd, const abx_command_options *opts,
			 abx_error **reterr)
{
	int r;

	if (!cmd == !opts->argv || (opts->argv && !opts->argv[0]))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"a command needs either a line or an argument vector");
	if ((r = check_text("the command", cmd, reterr)) < 0 ||
	    (r = check_text("cwd", opts->cwd, reterr)) < 0 ||
	    (r = check_text("the tag", opts->tag, reterr)) < 0)
		return r;
	for (size_t i = 0; opts->argv && opts->argv[i]; i++)
		if ((r = check_text("an argument", opts->argv[i], reterr)) < 0)
			return r;
	return ABX_OK;
}

static int start_message(const char *cmd, const abx_command_options *opts,
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

/* {"process": {"pid": N}}, what every call on a process begins with. */
static json_object *selector_message(uint32_t pid)
{
	ABX_CLEANUP_JSON json_object *message = json_object_new_object();
	json_object *selector = json_object_new_object();

	if (!message || !selector ||
	    abx__json_set_take(message, "process", selector) < 0 ||
	    abx__json_set_i64(selector, "pid", pid) < 0)
		return NULL;
	return abx_take(message);
}

/* ---- streams ---- */

static void free_process_state(void *state)
{
	abx_process_free(state);
}

static void cancel_stream(abx_op *op)
{
	abx_process *process = op->state;
	abx_error *err = NULL;

	if (process->call) {
		abx__http_call_cancel(process->call, ABX_ECANCELED);
		return;
	}
	abx__error_set(&err, ABX_ECANCELED, "cancelled");
	abx__op_finish(op, ABX_ECANCELED, err);
	process->start_op = NULL;
	process->end_op = NULL;
}

static void resume_stream(abx_op *op)
{
	abx_process_resume(op->state);
}

static uint32_t command_timeout(const abx_command_options *opts)
{
	if (opts->timeout_ms == ABX_NO_TIMEOUT)
		return 0;
	return opts->timeout_ms ? opts->timeout_ms : DEFAULT_TIMEOUT_MS;
}

/* Opens a stream for `op`, which owns the process until it gives it away. Takes
 * `message`. */
static int open_stream(abx_op *op, abx__request *req, const abx_command_options *opts,
		       json_object *message, abx_error **reterr)
{
	abx_process *process = abx__process_new(op->client, opts);
	int r;

	if (!process) {
		json_object_put(message);
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	}
	op->state = process;
	op->free_state = free_process_state;
	op->on_cancel = cancel_stream;
	op->on_resume = resume_stream;
	if (op->then.kind == ABX__OP_COMMAND) {
		process->end_op = op;
		process->may_pause = !op->then.wait;
	} else {
		process->start_op = op;
	}
	r = abx__process_open(process, req, message, reterr);
	if (r >= 0)
		return abx__op_started(op);
	process->start_op = NULL;
	process->end_op = NULL;
	return abx__op_abandon(op, r, reterr);
}

/* abx_command_run() and abx_command_start() differ in what `then` waits for. */
static int start_command(abx_sandbox *sandbox, const char *cmd,
			 const abx_command_options *user_opts, const abx__then *then,
			 abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .path = "/process.Process/Start",
			     .sandbox = sandbox };
	abx_command_options opts;
	json_object *message = NULL;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "run a command: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_command_options",
				   reterr)) < 0 ||
	    (r = check_command(cmd, &opts, reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr,
			     "run '%.60s' in sandbox %s", cmd ? cmd : opts.argv[0],
			     sandbox->id)) < 0)
		return r;
	r = start_message(cmd, &opts, &message, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	req.user = opts.user;
	req.server_timeout_ms = command_timeout(&opts);
	return open_stream(op, &req, &opts, message, reterr);
}

int abx_command_run(abx_sandbox *sandbox, const char *cmd,
		    const abx_command_options *opts, abx_command_result **ret,
		    abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_COMMAND, &wait);
	int r = start_command(sandbox, cmd, opts, &then, reterr);

	if (r < 0)
		return r;
	r = abx__wait_end(sandbox->client, &wait, r, reterr);
	if (r >= 0 && ret)
		*ret = wait.result;
	else
		abx_command_result_free(wait.result);
	return r;
}

int abx_command_run_async(abx_sandbox *sandbox, const char *cmd,
			  const abx_command_options *opts, abx_command_fn done,
			  void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			  abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_COMMAND, command, done);

	return abx__then_end(&then, start_command(sandbox, cmd, opts, &then, reterr));
}

int abx_command_start(abx_sandbox *sandbox, const char *cmd,
		      const abx_command_options *opts, abx_process **ret,
		      abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_PROCESS, &wait);
	int r;

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_command_start: ret is NULL");
	r = start_command(sandbox, cmd, opts, &then, reterr);
	if (r < 0)
		return r;
	r = abx__wait_end(sandbox->client, &wait, r, reterr);
	if (r >= 0)
		*ret = wait.result;
	return r;
}

int abx_command_start_async(abx_sandbox *sandbox, const char *cmd,
			    const abx_command_options *opts, abx_process_fn done,
			    void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			    abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_PROCESS, process, done);

	return abx__then_end(&then, start_command(sandbox, cmd, opts, &then, reterr));
}

static int check_connect(const abx_command_options *opts, abx_error **reterr)
{
	if (opts->argv || opts->user || opts->cwd || opts->env_vars || opts->tag ||
	    opts->stdin_open)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"abx_command_connect: only callbacks and limits can be set");
	return ABX_OK;
}

static int start_listening(abx_sandbox *sandbox, uint32_t pid,
			   const abx_command_options *user_opts, const abx__then *then,
			   abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .path = "/process.Process/Connect",
			     .sandbox = sandbox };
	abx_command_options opts;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "connect to a process: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_command_options",
				   reterr)) < 0 ||
	    (r = check_connect(&opts, reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr,
			     "connect to process %u of sandbox %s", pid, sandbox->id)) <
		    0)
		return r;
	if (opts.timeout_ms != ABX_NO_TIMEOUT)
		req.server_timeout_ms = opts.timeout_ms;
	return open_stream(op, &req, &opts, selector_message(pid), reterr);
}

int abx_command_connect(abx_sandbox *sandbox, uint32_t pid,
			const abx_command_options *opts, abx_process **ret,
			abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_PROCESS, &wait);
	int r;

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_command_connect: ret is NULL");
	r = start_listening(sandbox, pid, opts, &then, reterr);
	if (r < 0)
		return r;
	r = abx__wait_end(sandbox->client, &wait, r, reterr);
	if (r >= 0)
		*ret = wait.result;
	return r;
}

int abx_command_connect_async(abx_sandbox *sandbox, uint32_t pid,
			      const abx_command_options *opts, abx_process_fn done,
			      void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			      abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_PROCESS, process, done);

	return abx__then_end(&then, start_listening(sandbox, pid, opts, &then, reterr));
}

/* ---- waiting ---- */

static void cancel_wait(abx_op *op)
{
	abx_process *process = op->state;
	abx_error *err = NULL;

	process->end_op = NULL;
	process->was_waited = false;
	abx__error_set(&err, ABX_ECANCELED, "cancelled");
	abx__op_finish(op, ABX_ECANCELED, err);
}

static int start_wait(abx_process *process, const abx__then *then, abx_error **reterr)
{
	abx_command_result *result = NULL;
	abx_error *err = NULL;
	abx_op *op = NULL;
	int r;

	if (!process)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_process_wait: the process is NULL");
	if (process->was_waited)
		return abx__error_set(reterr, ABX_ESTATE,
				      "process %u was waited for before", process->pid);
	r = abx__op_new(process->client, then, &op, reterr, "wait for process %u",
			process->pid);
	if (r < 0)
		return r;
	process->was_waited = true;
	op->state = process;
	op->on_cancel = cancel_wait;
	if (!process->has_ended) {
		process->end_op = op;
		return abx__op_started(op);
	}
	err = abx_take(process->end_err);
	r = process->end_r;
	if (r >= 0)
		r = abx__process_result(process, &result, &err);
	op->result = result;
	abx__op_finish(op, r, err);
	return abx__op_started(op);
}

int abx_process_wait(abx_process *process, abx_command_result **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_COMMAND, &wait);
	int r = start_wait(process, &then, reterr);

	if (r < 0)
		return r;
	r = abx__wait_end(process->client, &wait, r, reterr);
	if (r >= 0 && ret)
		*ret = wait.result;
	else
		abx_command_result_free(wait.result);
	return r;
}

int abx_process_wait_async(abx_process *process, abx_command_fn done, void *userdata,
			   abx_free_fn free_userdata, abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_COMMAND, command, done);

	return abx__then_end(&then, start_wait(process, &then, reterr));
}

/* ---- calls on any process ---- */

/* Takes `message`. */
static int start_call(abx_sandbox *sandbox, const abx__then *then, const char *method,
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

static int signal_answer(abx_op *op, int status, abx_error **reterr)
{
	if (status == 200)
		return 1;
	if (status == 404 && abx__answer_is_connect(op, "not_found"))
		return 0;
	return abx__answer_failed(op, status, reterr);
}

static int start_signal(abx_sandbox *sandbox, uint32_t pid, const char *signal,
			const abx__then *then, abx_error **reterr)
{
	json_object *message = selector_message(pid);

	if (!message || abx__json_set_str(message, "signal", signal) < 0) {
		json_object_put(message);
		return abx__error_nomem(reterr);
	}
	return start_call(sandbox, then, "/process.Process/SendSignal", message,
			  signal_answer, reterr, "signal process", pid);
}

int abx_command_kill(abx_sandbox *sandbox, uint32_t pid, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_signal(sandbox, pid, "SIGNAL_SIGKILL", &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_command_kill_async(abx_sandbox *sandbox, uint32_t pid, abx_done_fn done,
			   void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			   abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then,
			     start_signal(sandbox, pid, "SIGNAL_SIGKILL", &then, reterr));
}

int abx_command_terminate(abx_sandbox *sandbox, uint32_t pid, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_signal(sandbox, pid, "SIGNAL_SIGTERM", &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_command_terminate_async(abx_sandbox *sandbox, uint32_t pid, abx_done_fn done,
				void *userdata, abx_free_fn free_userdata,
				abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then,
			     start_signal(sandbox, pid, "SIGNAL_SIGTERM", &then, reterr));
}

static int stdin_answer(abx_op *op, int status, abx_error **reterr)
{
	int code;

	if (status == 200)
		return ABX_OK;
	code = abx__answer_failed(op, status, reterr);
	/* envd has no better code for an input that was never opened or is closed. */
	if (status == 500 && strstr(abx__buf_str(&op->in), "stdin not enabled or closed"))
		return abx__error_set(reterr, ABX_ESTATE,
				      "its standard input is not open");
	return code;
}

static int start_send(abx_sandbox *sandbox, uint32_t pid, const char *data, size_t len,
		      const abx__then *then, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *coded = NULL;
	ABX_CLEANUP_JSON json_object *message = NULL;
	json_object *input;

	if (len > MAX_STDIN || (len && !data))
		return abx__error_set(reterr, len > MAX_STDIN ? ABX_ETOOBIG : ABX_EINVAL,
				      "send %zu bytes to process %u: at most %zu at once",
				      len, pid, MAX_STDIN);
	coded = abx__base64_encode(data, len);
	message = coded ? selector_message(pid) : NULL;
	input = message ? json_object_new_object() : NULL;
	if (!input || abx__json_set_take(message, "input", input) < 0 ||
	    abx__json_set_str(input, "stdin", coded) < 0)
		return abx__error_nomem(reterr);
	return start_call(sandbox, then, "/process.Process/SendInput", abx_take(message),
			  stdin_answer, reterr, "send input to process", pid);
}

int abx_command_send_stdin(abx_sandbox *sandbox, uint32_t pid, const char *data,
			   size_t len, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_send(sandbox, pid, data, len, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_command_send_stdin_async(abx_sandbox *sandbox, uint32_t pid, const char *data,
				 size_t len, abx_done_fn done, void *userdata,
				 abx_free_fn free_userdata, abx_op **ret_op,
				 abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_send(sandbox, pid, data, len, &then, reterr));
}

static int start_close(abx_sandbox *sandbox, uint32_t pid, const abx__then *then,
		       abx_error **reterr)
{
	return start_call(sandbox, then, "/process.Process/CloseStdin",
			  selector_message(pid), abx__answer_none, reterr,
			  "close the input of process", pid);
}

int abx_command_close_stdin(abx_sandbox *sandbox, uint32_t pid, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_close(sandbox, pid, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_command_close_stdin_async(abx_sandbox *sandbox, uint32_t pid, abx_done_fn done,
				  void *userdata, abx_free_fn free_userdata,
				  abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_close(sandbox, pid, &then, reterr));
}

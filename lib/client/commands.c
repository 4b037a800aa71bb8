/*
 * commands.c - the calls of <agentbox/commands.h> on top of process streams and envd's
 * unary calls.
 */
#include "base/error.h"
#include "client/answer.h"
#include "client/options.h"
#include "client/process.h"
#include "client/sandbox.h"
#include "io/json.h"

#define DEFAULT_TIMEOUT_MS 60000

/* ---- requests ---- */

static int check_command(const char *cmd, const abx_command_options *opts,
			 abx_error **reterr)
{
	int r;

	if (!cmd == !opts->argv || (opts->argv && !opts->argv[0]))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"a command needs either a line or an argument vector");
	if ((r = abx__process_check_text("the command", cmd, reterr)) < 0 ||
	    (r = abx__process_check_text("cwd", opts->cwd, reterr)) < 0 ||
	    (r = abx__process_check_text("the tag", opts->tag, reterr)) < 0)
		return r;
	for (size_t i = 0; opts->argv && opts->argv[i]; i++)
		if ((r = abx__process_check_text("an argument", opts->argv[i], reterr)) <
		    0)
			return r;
	return ABX_OK;
}

/* ---- streams ---- */

static uint32_t command_timeout(const abx_command_options *opts)
{
	if (opts->timeout_ms == ABX_NO_TIMEOUT)
		return 0;
	return opts->timeout_ms ? opts->timeout_ms : DEFAULT_TIMEOUT_MS;
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
	r = abx__process_message(cmd, &opts, &message, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	req.user = opts.user;
	req.server_timeout_ms = command_timeout(&opts);
	return abx__process_open(op, &req, &opts, message, reterr);
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
	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_command_start: ret is NULL");
	ABX__BLOCK(sandbox->client, ABX__OP_PROCESS,
		   start_command(sandbox, cmd, opts, &then, reterr));
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
	return abx__process_open(op, &req, &opts, abx__process_selector(pid), reterr);
}

int abx_command_connect(abx_sandbox *sandbox, uint32_t pid,
			const abx_command_options *opts, abx_process **ret,
			abx_error **reterr)
{
	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_command_connect: ret is NULL");
	ABX__BLOCK(sandbox->client, ABX__OP_PROCESS,
		   start_listening(sandbox, pid, opts, &then, reterr));
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

/* ---- calls on any process ---- */

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
	json_object *message = abx__process_selector(pid);

	if (!message || abx__json_set_str(message, "signal", signal) < 0) {
		json_object_put(message);
		return abx__error_nomem(reterr);
	}
	return abx__process_call(sandbox, then, "/process.Process/SendSignal", message,
				 signal_answer, reterr, "signal process", pid);
}

int abx_command_kill(abx_sandbox *sandbox, uint32_t pid, abx_error **reterr)
{
	ABX__BLOCK(sandbox->client, ABX__OP_DONE,
		   start_signal(sandbox, pid, "SIGNAL_SIGKILL", &then, reterr));
	return r;
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
	ABX__BLOCK(sandbox->client, ABX__OP_DONE,
		   start_signal(sandbox, pid, "SIGNAL_SIGTERM", &then, reterr));
	return r;
}

int abx_command_terminate_async(abx_sandbox *sandbox, uint32_t pid, abx_done_fn done,
				void *userdata, abx_free_fn free_userdata,
				abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then,
			     start_signal(sandbox, pid, "SIGNAL_SIGTERM", &then, reterr));
}

int abx_command_send_stdin(abx_sandbox *sandbox, uint32_t pid, const char *data,
			   size_t len, abx_error **reterr)
{
	ABX__BLOCK(sandbox->client, ABX__OP_DONE,
		   abx__process_send(sandbox, pid, "stdin", data, len, &then, reterr));
	return r;
}

int abx_command_send_stdin_async(abx_sandbox *sandbox, uint32_t pid, const char *data,
				 size_t len, abx_done_fn done, void *userdata,
				 abx_free_fn free_userdata, abx_op **ret_op,
				 abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, abx__process_send(sandbox, pid, "stdin", data, len,
						      &then, reterr));
}

static int start_close(abx_sandbox *sandbox, uint32_t pid, const abx__then *then,
		       abx_error **reterr)
{
	return abx__process_call(sandbox, then, "/process.Process/CloseStdin",
				 abx__process_selector(pid), abx__answer_none, reterr,
				 "close the input of process", pid);
}

int abx_command_close_stdin(abx_sandbox *sandbox, uint32_t pid, abx_error **reterr)
{
	ABX__BLOCK(sandbox->client, ABX__OP_DONE,
		   start_close(sandbox, pid, &then, reterr));
	return r;
}

int abx_command_close_stdin_async(abx_sandbox *sandbox, uint32_t pid, abx_done_fn done,
				  void *userdata, abx_free_fn free_userdata,
				  abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_close(sandbox, pid, &then, reterr));
}

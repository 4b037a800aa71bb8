/*
 * pty.c - the calls of <agentbox/pty.h>: a terminal is a process whose start has a size
 * and whose input and output are one stream each.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/options.h"
#include "client/process.h"
#include "client/sandbox.h"
#include "io/json.h"

#define DEFAULT_COLS 80
#define DEFAULT_ROWS 24
#define MAX_SIZE 65535

/* {"size": {"cols": C, "rows": R}} as the member "pty" of `message`. */
static int add_size(json_object *message, uint32_t cols, uint32_t rows)
{
	json_object *pty = json_object_new_object();
	json_object *size = json_object_new_object();

	if (!pty || abx__json_set_take(message, "pty", pty) < 0) {
		json_object_put(size);
		return ABX_ENOMEM;
	}
	if (!size || abx__json_set_take(pty, "size", size) < 0 ||
	    abx__json_set_i64(size, "cols", cols) < 0 ||
	    abx__json_set_i64(size, "rows", rows) < 0)
		return ABX_ENOMEM;
	return ABX_OK;
}

/* ---- start ---- */

static bool has_var(const char *const *vars, const char *pair)
{
	size_t len = (size_t)(strchr(pair, '=') - pair) + 1;

	for (size_t i = 0; vars && vars[i]; i++)
		if (strncmp(vars[i], pair, len) == 0)
			return true;
	return false;
}

/* The caller's variables, and what a terminal cannot do without. The array is to be
 * freed, its strings are borrowed. */
static const char **with_defaults(const char *const *vars)
{
	static const char *const defaults[] = { "TERM=xterm-256color", "LANG=C.UTF-8",
						"LC_ALL=C.UTF-8" };
	const size_t n_defaults = sizeof(defaults) / sizeof(defaults[0]);
	size_t n = 0;
	const char **all;

	while (vars && vars[n])
		n++;
	all = abx__calloc(n + n_defaults + 1, sizeof(*all));
	if (!all)
		return NULL;
	for (size_t i = 0; i < n; i++)
		all[i] = vars[i];
	for (size_t i = 0; i < n_defaults; i++)
		if (!has_var(vars, defaults[i]))
			all[n++] = defaults[i];
	return all;
}

static int start_message(const abx_pty_options *opts, json_object **ret,
			 abx_error **reterr)
{
	static const char *const shell[] = { "/bin/bash", "-i", "-l", NULL };
	ABX_CLEANUP_JSON json_object *message = NULL;
	abx_command_options command = {
		.argv = opts->argv ? opts->argv : shell,
		.cwd = opts->cwd,
		.tag = opts->tag,
	};
	int r;

	command.env_vars = with_defaults(opts->env_vars);
	if (!command.env_vars)
		return abx__error_nomem(reterr);
	r = abx__process_message(NULL, &command, &message, reterr);
	abx__free((void *)(uintptr_t)command.env_vars);
	if (r < 0)
		return r;
	json_object_object_del(message, "stdin"); /* a terminal has no other input */
	if (add_size(message, opts->cols ? opts->cols : DEFAULT_COLS,
		     opts->rows ? opts->rows : DEFAULT_ROWS) < 0)
		return abx__error_nomem(reterr);
	*ret = abx_take(message);
	return ABX_OK;
}

static int check_size(uint32_t cols, uint32_t rows, abx_error **reterr)
{
	if (cols <= MAX_SIZE && rows <= MAX_SIZE)
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL,
			      "a terminal of %u columns and %u rows: at most %d of each",
			      cols, rows, MAX_SIZE);
}

static int check_start(const abx_pty_options *opts, abx_error **reterr)
{
	int r = check_size(opts->cols, opts->rows, reterr);

	if (r >= 0 && opts->argv && !opts->argv[0])
		return abx__error_set(reterr, ABX_EINVAL, "argv is empty");
	if (r >= 0)
		r = abx__process_check_text("cwd", opts->cwd, reterr);
	if (r >= 0)
		r = abx__process_check_text("the tag", opts->tag, reterr);
	for (size_t i = 0; r >= 0 && opts->argv && opts->argv[i]; i++)
		r = abx__process_check_text("an argument", opts->argv[i], reterr);
	return r;
}

/* How the process gives what it got. */
static abx_command_options listener(const abx_pty_options *opts)
{
	return (abx_command_options){ .on_stdout = opts->on_output,
				      .userdata = opts->userdata,
				      .max_output_bytes = opts->max_output_bytes };
}

static uint32_t server_timeout(const abx_pty_options *opts)
{
	return opts->timeout_ms == ABX_NO_TIMEOUT ? 0 : opts->timeout_ms;
}

static int start_pty(abx_sandbox *sandbox, const abx_pty_options *user_opts,
		     const abx__then *then, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .path = "/process.Process/Start",
			     .sandbox = sandbox };
	json_object *message = NULL;
	abx_command_options how;
	abx_pty_options opts;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "start a terminal: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_pty_options",
				   reterr)) < 0 ||
	    (r = check_start(&opts, reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr,
			     "start a terminal in sandbox %s", sandbox->id)) < 0)
		return r;
	r = start_message(&opts, &message, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	how = listener(&opts);
	req.user = opts.user;
	req.server_timeout_ms = server_timeout(&opts);
	return abx__process_open(op, &req, &how, message, reterr);
}

int abx_pty_start(abx_sandbox *sandbox, const abx_pty_options *opts, abx_process **ret,
		  abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_PROCESS, &wait);

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL, "abx_pty_start: ret is NULL");
	return abx__wait_object(ABX__CLIENT_OF(sandbox), &then,
				start_pty(sandbox, opts, &then, reterr), ret, reterr);
}

int abx_pty_start_async(abx_sandbox *sandbox, const abx_pty_options *opts,
			abx_process_fn done, void *userdata, abx_free_fn free_userdata,
			abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_PROCESS, process, done);

	return abx__then_end(&then, start_pty(sandbox, opts, &then, reterr));
}

/* ---- connect ---- */

static int check_connect(const abx_pty_options *opts, abx_error **reterr)
{
	if (opts->cols || opts->rows || opts->argv || opts->user || opts->cwd ||
	    opts->env_vars || opts->tag)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"abx_pty_connect: only the callback and limits can be set");
	return ABX_OK;
}

static int start_listening(abx_sandbox *sandbox, uint32_t pid,
			   const abx_pty_options *user_opts, const abx__then *then,
			   abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .path = "/process.Process/Connect",
			     .sandbox = sandbox };
	abx_command_options how;
	abx_pty_options opts;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "connect to a terminal: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_pty_options",
				   reterr)) < 0 ||
	    (r = check_connect(&opts, reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr,
			     "connect to terminal %u of sandbox %s", pid, sandbox->id)) <
		    0)
		return r;
	how = listener(&opts);
	req.server_timeout_ms = server_timeout(&opts);
	return abx__process_open(op, &req, &how, abx__process_selector(pid), reterr);
}

int abx_pty_connect(abx_sandbox *sandbox, uint32_t pid, const abx_pty_options *opts,
		    abx_process **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_PROCESS, &wait);

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL, "abx_pty_connect: ret is NULL");
	return abx__wait_object(ABX__CLIENT_OF(sandbox), &then,
				start_listening(sandbox, pid, opts, &then, reterr), ret,
				reterr);
}

int abx_pty_connect_async(abx_sandbox *sandbox, uint32_t pid, const abx_pty_options *opts,
			  abx_process_fn done, void *userdata, abx_free_fn free_userdata,
			  abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_PROCESS, process, done);

	return abx__then_end(&then, start_listening(sandbox, pid, opts, &then, reterr));
}

/* ---- input ---- */

int abx_pty_send_input(abx_sandbox *sandbox, uint32_t pid, const char *data, size_t len,
		       abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = abx__process_send(sandbox, pid, "pty", data, len, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_pty_send_input_async(abx_sandbox *sandbox, uint32_t pid, const char *data,
			     size_t len, abx_done_fn done, void *userdata,
			     abx_free_fn free_userdata, abx_op **ret_op,
			     abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(
		&then, abx__process_send(sandbox, pid, "pty", data, len, &then, reterr));
}

/* ---- resize ---- */

static int resize_answer(abx_op *op, int status, abx_error **reterr)
{
	int code;

	if (status == 200)
		return ABX_OK;
	code = abx__answer_failed(op, status, reterr);
	if (status == 500 && strstr(abx__buf_str(&op->in), "has no tty"))
		return abx__error_set(reterr, ABX_ESTATE, "it has no terminal");
	return code;
}

static int start_resize(abx_sandbox *sandbox, uint32_t pid, uint32_t cols, uint32_t rows,
			const abx__then *then, abx_error **reterr)
{
	json_object *message;
	int r;

	if (!cols || !rows)
		return abx__error_set(reterr, ABX_EINVAL,
				      "a terminal of %u columns and %u rows: at least 1 "
				      "of each",
				      cols, rows);
	r = check_size(cols, rows, reterr);
	if (r < 0)
		return r;
	message = abx__process_selector(pid);
	if (!message || add_size(message, cols, rows) < 0) {
		json_object_put(message);
		return abx__error_nomem(reterr);
	}
	return abx__process_call(sandbox, then, "/process.Process/Update", message,
				 resize_answer, reterr, "resize terminal", pid);
}

int abx_pty_resize(abx_sandbox *sandbox, uint32_t pid, uint32_t cols, uint32_t rows,
		   abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_resize(sandbox, pid, cols, rows, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_pty_resize_async(abx_sandbox *sandbox, uint32_t pid, uint32_t cols, uint32_t rows,
			 abx_done_fn done, void *userdata, abx_free_fn free_userdata,
			 abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then,
			     start_resize(sandbox, pid, cols, rows, &then, reterr));
}

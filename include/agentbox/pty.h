/*
 * agentbox/pty.h - terminals in a sandbox.
 *
 * A terminal is a process (commands.h): abx_process_pid(), abx_process_wait(),
 * abx_process_resume() and abx_process_free() are for its handle, abx_command_kill() and
 * abx_command_list() know it by its pid. What it writes comes in one stream, stdout and
 * stderr alike; what is typed goes in by abx_pty_send_input(), where "\003" is Ctrl-C and
 * "\004" ends the input. It runs on when nobody listens, and any number may listen. Every
 * call can fail as sandbox.h says at its top, and with ABX_ENOTFOUND when the sandbox has
 * ended.
 */
#ifndef AGENTBOX_PTY_H
#define AGENTBOX_PTY_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/commands.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to start a terminal, or listen to one. Strings are borrowed for the call. */
typedef struct abx_pty_options {
	size_t size;             /* set by ABX_PTY_OPTIONS_INIT */
	uint32_t cols;           /* its width, up to 65535; 0: 80 */
	uint32_t rows;           /* its height, up to 65535; 0: 24 */
	const char *const *argv; /* what runs in it, NULL at the end; NULL: /bin/bash -i
				    -l */
	const char *user;        /* NULL: the sandbox's default */
	const char *cwd;         /* NULL: the sandbox's default */
	const char *const *env_vars; /* "KEY=VALUE", NULL at the end; TERM, LANG and
					LC_ALL have defaults */
	const char *tag;             /* a name to list it by, or NULL */
	uint32_t timeout_ms;         /* then it is killed; 0: never */
	abx_sink_fn on_output;       /* NULL: collected into the result's `out` */
	void *userdata;          /* of on_output; must live until the end is delivered */
	size_t max_output_bytes; /* most to collect; 0: 64 MiB; then ABX_ETOOBIG */
} abx_pty_options;
#define ABX_PTY_OPTIONS_INIT ABX_OPTIONS_INIT(abx_pty_options)
/** Does what ABX_PTY_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_pty_options_init(abx_pty_options *opts);

/**
 * Starts a terminal and returns when it runs. Its output goes to `opts->on_output`, from
 * abx_client_process(), abx_client_wait() or any blocking call.
 *
 * Errors: ABX_EINVAL (a size over 65535, no such user or cwd, a broken "KEY=VALUE").
 * Owner: the caller, abx_process_free(). Since: 0.1.0
 *
 *     abx_pty_options o = ABX_PTY_OPTIONS_INIT;
 *     o.cols = 120;
 *     o.rows = 40;
 *     o.on_output = show;
 *     r = abx_pty_start(sandbox, &o, &terminal, &err);
 *     r = abx_pty_send_input(sandbox, abx_process_pid(terminal), "ls\n", 3, &err);
 */
ABX_API int abx_pty_start(abx_sandbox *sandbox, const abx_pty_options *opts,
			  abx_process **ret, abx_error **reterr);
/** abx_pty_start() as an operation (op.h); complete when it runs. */
ABX_API int abx_pty_start_async(abx_sandbox *sandbox, const abx_pty_options *opts,
				abx_process_fn done, void *userdata,
				abx_free_fn free_userdata, abx_op **ret_op,
				abx_error **reterr);

/**
 * Listens to a terminal that runs already: new output from now on, and its end. Of `opts`
 * on_output, userdata, max_output_bytes and timeout_ms count (here the time limit ends
 * the listening); the others must be unset.
 *
 * Errors: ABX_ENOTFOUND (no such process). Owner: the caller, abx_process_free().
 * Since: 0.1.0
 */
ABX_API int abx_pty_connect(abx_sandbox *sandbox, uint32_t pid,
			    const abx_pty_options *opts, abx_process **ret,
			    abx_error **reterr);
/** abx_pty_connect() as an operation (op.h). */
ABX_API int abx_pty_connect_async(abx_sandbox *sandbox, uint32_t pid,
				  const abx_pty_options *opts, abx_process_fn done,
				  void *userdata, abx_free_fn free_userdata,
				  abx_op **ret_op, abx_error **reterr);

/**
 * Types into a terminal: up to 8 MiB at once.
 *
 * Errors: ABX_ENOTFOUND (no such process), ABX_ESTATE (it has no terminal), ABX_ETOOBIG.
 * Since: 0.1.0
 */
ABX_API int abx_pty_send_input(abx_sandbox *sandbox, uint32_t pid, const char *data,
			       size_t len, abx_error **reterr);
/** abx_pty_send_input() as an operation (op.h). Wait for one before you start the next.
 */
ABX_API int abx_pty_send_input_async(abx_sandbox *sandbox, uint32_t pid, const char *data,
				     size_t len, abx_done_fn done, void *userdata,
				     abx_free_fn free_userdata, abx_op **ret_op,
				     abx_error **reterr);

/**
 * Gives a terminal another size; what runs in it gets SIGWINCH.
 *
 * Errors: ABX_EINVAL (0, or over 65535), ABX_ENOTFOUND (no such process), ABX_ESTATE (it
 * has no terminal). Since: 0.1.0
 */
ABX_API int abx_pty_resize(abx_sandbox *sandbox, uint32_t pid, uint32_t cols,
			   uint32_t rows, abx_error **reterr);
/** abx_pty_resize() as an operation (op.h). */
ABX_API int abx_pty_resize_async(abx_sandbox *sandbox, uint32_t pid, uint32_t cols,
				 uint32_t rows, abx_done_fn done, void *userdata,
				 abx_free_fn free_userdata, abx_op **ret_op,
				 abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif

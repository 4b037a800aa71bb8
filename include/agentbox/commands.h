/*
 * agentbox/commands.h - run commands in a sandbox.
 *
 * A command is a line for "/bin/bash -l -c", or an argument vector that runs without a
 * shell. Bytes of a command's output are its own; no encoding is assumed. A command that
 * fails is not a failed call: look at `exit_code`. Every call can fail as sandbox.h says
 * at its top, and with ABX_ENOTFOUND when the sandbox has ended.
 */
#ifndef AGENTBOX_COMMANDS_H
#define AGENTBOX_COMMANDS_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to run a command. Strings are borrowed for the call. */
typedef struct abx_command_options {
	size_t size;                 /* set by ABX_COMMAND_OPTIONS_INIT */
	const char *const *argv;     /* instead of a command line; NULL at the end */
	const char *user;            /* NULL: the sandbox's default */
	const char *cwd;             /* NULL: the sandbox's default */
	const char *const *env_vars; /* "KEY=VALUE", no blank in KEY, NULL at the end */
	const char *tag;             /* a name to list it by, or NULL */
	uint32_t timeout_ms;         /* then it is killed; 0: 60000; ABX_NO_TIMEOUT */
	int stdin_open;              /* not 0: a pipe to write to; 0: nothing to read */
	abx_sink_fn on_stdout;       /* NULL: collected into the result */
	abx_sink_fn on_stderr;       /* NULL: collected into the result */
	void *userdata; /* of both; must live until the command's end is delivered */
	int collect;    /* not 0: collected even where there is a callback */
	size_t max_output_bytes; /* most to collect of each; 0: 64 MiB; then ABX_ETOOBIG
				  */
} abx_command_options;
#define ABX_COMMAND_OPTIONS_INIT ABX_OPTIONS_INIT(abx_command_options)
/** Does what ABX_COMMAND_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_command_options_init(abx_command_options *opts);

/** How a command ended. */
typedef struct abx_command_result {
	size_t size; /* what this library filled */
	uint32_t pid;
	int exit_code;   /* -1: ended by a signal */
	const char *out; /* collected stdout, NUL behind it; never NULL */
	size_t out_len;
	const char *err; /* collected stderr, NUL behind it; never NULL */
	size_t err_len;
	const char *error; /* such as "exit status 3" or "signal: killed"; NULL after exit
			      0 */
} abx_command_result;
/** Frees a result. NULL is fine. Since: 0.1.0 */
ABX_API void abx_command_result_free(abx_command_result *result);

/** A completion with a result, which is the completion's: abx_command_result_free(). */
typedef void (*abx_command_fn)(void *userdata, int r, abx_command_result *result,
			       const abx_error *err);

/**
 * Runs a command and waits for its end. `cmd` is a shell's line, or NULL with
 * `opts->argv`.
 *
 * Errors: ABX_EINVAL (both or neither of `cmd` and argv, no such user or cwd, a broken
 * "KEY=VALUE"), ABX_ETIMEDOUT (it ran out of its time and was killed), ABX_ETOOBIG (over
 * max_output_bytes; it runs on, unheard). Owner: the caller, abx_command_result_free().
 * Since: 0.1.0
 *
 *     if (abx_command_run(sandbox, "python3 --version", NULL, &res, &err) == ABX_OK)
 *             printf("%s (exit %d)\n", res->out, res->exit_code);
 */
ABX_API int abx_command_run(abx_sandbox *sandbox, const char *cmd,
			    const abx_command_options *opts, abx_command_result **ret,
			    abx_error **reterr);
/** abx_command_run() as an operation (op.h). Cancelling leaves the command running,
 * unheard. */
ABX_API int abx_command_run_async(abx_sandbox *sandbox, const char *cmd,
				  const abx_command_options *opts, abx_command_fn done,
				  void *userdata, abx_free_fn free_userdata,
				  abx_op **ret_op, abx_error **reterr);

/* ---- in the background ---- */

/** A command that runs, and the stream of its output to here. */
typedef struct abx_process abx_process;

/** A completion with a process, which is the completion's: abx_process_free(). */
typedef void (*abx_process_fn)(void *userdata, int r, abx_process *process,
			       const abx_error *err);

/**
 * Starts a command and returns when it runs. Its output goes to the callbacks of `opts`,
 * from abx_client_process(), abx_client_wait() or any blocking call.
 *
 * Errors: as abx_command_run(). Owner: the caller, abx_process_free(). Since: 0.1.0
 */
ABX_API int abx_command_start(abx_sandbox *sandbox, const char *cmd,
			      const abx_command_options *opts, abx_process **ret,
			      abx_error **reterr);
/** abx_command_start() as an operation (op.h); complete when the command runs. */
ABX_API int abx_command_start_async(abx_sandbox *sandbox, const char *cmd,
				    const abx_command_options *opts, abx_process_fn done,
				    void *userdata, abx_free_fn free_userdata,
				    abx_op **ret_op, abx_error **reterr);

/**
 * Listens to a command that runs already: new output from now on, and its end. Of `opts`
 * the callbacks, userdata, collect, max_output_bytes and timeout_ms count (here the time
 * limit ends the listening, and 0 means none); the others must be unset.
 *
 * Errors: ABX_ENOTFOUND (no such process). Owner: the caller, abx_process_free(). Since:
 * 0.1.0
 */
ABX_API int abx_command_connect(abx_sandbox *sandbox, uint32_t pid,
				const abx_command_options *opts, abx_process **ret,
				abx_error **reterr);
/** abx_command_connect() as an operation (op.h). */
ABX_API int abx_command_connect_async(abx_sandbox *sandbox, uint32_t pid,
				      const abx_command_options *opts,
				      abx_process_fn done, void *userdata,
				      abx_free_fn free_userdata, abx_op **ret_op,
				      abx_error **reterr);

/** Its process id in the sandbox. Since: 0.1.0 */
ABX_API uint32_t abx_process_pid(abx_process *process);
/** Lets the output go on after a callback answered ABX_PAUSE. Since: 0.1.0 */
ABX_API void abx_process_resume(abx_process *process);

/**
 * Waits for the end of a command. Once for each process, else ABX_ESTATE.
 *
 * Errors: ABX_ETIMEDOUT, ABX_ETOOBIG as abx_command_run(); ABX_EUNAVAILABLE (the stream
 * broke; the sandbox ended or the platform restarted). Owner of the result: the caller,
 * abx_command_result_free(). Since: 0.1.0
 */
ABX_API int abx_process_wait(abx_process *process, abx_command_result **ret,
			     abx_error **reterr);
/** abx_process_wait() as an operation (op.h). Cancelling it leaves the process and its
 * stream. */
ABX_API int abx_process_wait_async(abx_process *process, abx_command_fn done,
				   void *userdata, abx_free_fn free_userdata,
				   abx_op **ret_op, abx_error **reterr);
/** Stops listening and frees the handle; the command runs on. NULL is fine. Since: 0.1.0
 */
ABX_API void abx_process_free(abx_process *process);

/* ---- any process of the sandbox, by its id ---- */

/**
 * Kills a process (SIGKILL).
 *
 * Returns 1 when there was one, 0 when there was none. Since: 0.1.0
 */
ABX_API int abx_command_kill(abx_sandbox *sandbox, uint32_t pid, abx_error **reterr);
/** abx_command_kill() as an operation (op.h). */
ABX_API int abx_command_kill_async(abx_sandbox *sandbox, uint32_t pid, abx_done_fn done,
				   void *userdata, abx_free_fn free_userdata,
				   abx_op **ret_op, abx_error **reterr);

/**
 * Asks a process to end (SIGTERM).
 *
 * Returns 1 when there was one, 0 when there was none. Since: 0.1.0
 */
ABX_API int abx_command_terminate(abx_sandbox *sandbox, uint32_t pid, abx_error **reterr);
/** abx_command_terminate() as an operation (op.h). */
ABX_API int abx_command_terminate_async(abx_sandbox *sandbox, uint32_t pid,
					abx_done_fn done, void *userdata,
					abx_free_fn free_userdata, abx_op **ret_op,
					abx_error **reterr);

/**
 * Writes to the standard input of a process that was started with `stdin_open`; returns
 * when the sandbox has taken the bytes. At most 8 MiB a call. `data` is copied.
 *
 * Errors: ABX_ENOTFOUND (no such process), ABX_ETOOBIG, ABX_ESTATE (its input is not
 * open). Since: 0.1.0
 */
ABX_API int abx_command_send_stdin(abx_sandbox *sandbox, uint32_t pid, const char *data,
				   size_t len, abx_error **reterr);
/** abx_command_send_stdin() as an operation (op.h). Wait for one before you start the
 * next. */
ABX_API int abx_command_send_stdin_async(abx_sandbox *sandbox, uint32_t pid,
					 const char *data, size_t len, abx_done_fn done,
					 void *userdata, abx_free_fn free_userdata,
					 abx_op **ret_op, abx_error **reterr);

/**
 * Ends the standard input of a process. Errors: ABX_ENOTFOUND (no such process). Since:
 * 0.1.0
 */
ABX_API int abx_command_close_stdin(abx_sandbox *sandbox, uint32_t pid,
				    abx_error **reterr);
/** abx_command_close_stdin() as an operation (op.h). */
ABX_API int abx_command_close_stdin_async(abx_sandbox *sandbox, uint32_t pid,
					  abx_done_fn done, void *userdata,
					  abx_free_fn free_userdata, abx_op **ret_op,
					  abx_error **reterr);

/** A process of the sandbox. Strings belong to the list. */
typedef struct abx_process_info {
	size_t size; /* what this library filled */
	uint32_t pid;
	const char *tag; /* or NULL */
	const char *cmd;
	const char *const *args;     /* NULL at the end */
	const char *const *env_vars; /* "KEY=VALUE", NULL at the end */
	const char *cwd;             /* or NULL */
} abx_process_info;

/** The processes of a sandbox at one moment. */
typedef struct abx_process_list abx_process_list;
/** A completion with a list, which is the completion's: abx_process_list_free(). */
typedef void (*abx_process_list_fn)(void *userdata, int r, abx_process_list *list,
				    const abx_error *err);

/**
 * Lists what was started through these calls (or by another client) and still runs.
 * Owner: the caller, abx_process_list_free(). Since: 0.1.0
 */
ABX_API int abx_command_list(abx_sandbox *sandbox, abx_process_list **ret,
			     abx_error **reterr);
/** abx_command_list() as an operation (op.h). */
ABX_API int abx_command_list_async(abx_sandbox *sandbox, abx_process_list_fn done,
				   void *userdata, abx_free_fn free_userdata,
				   abx_op **ret_op, abx_error **reterr);
/** How many. Since: 0.1.0 */
ABX_API size_t abx_process_list_count(abx_process_list *list);
/** The one at `index`, or NULL past the end. Owner: the list. Since: 0.1.0 */
ABX_API const abx_process_info *abx_process_list_at(abx_process_list *list, size_t index);
/** Frees a list. NULL is fine. Since: 0.1.0 */
ABX_API void abx_process_list_free(abx_process_list *list);

#ifdef __cplusplus
}
#endif
#endif

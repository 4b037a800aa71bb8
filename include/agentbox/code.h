/*
 * agentbox/code.h - run code in a sandbox's code interpreter: cells that keep their
 * state.
 *
 * The sandbox's image needs python3 with ipykernel (docs/code-interpreter.md); without
 * them the calls are ABX_ENOTFOUND, saying so. A cell that raises is not a failed call:
 * look at `error_name`. Every call can fail as sandbox.h says at its top, and with
 * ABX_ENOTFOUND when the sandbox has ended. Source of the wire: the E2B code interpreter
 * SDKs.
 */
#ifndef AGENTBOX_CODE_H
#define AGENTBOX_CODE_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Something a cell showed, in every form it has. NULL: not in that one. */
typedef struct abx_code_result {
	size_t size;      /* what this library filled */
	int is_main;      /* the cell's last expression, rather than displayed */
	const char *text; /* as Python's repr; a string's own text */
	const char *html;
	const char *markdown;
	const char *svg;
	const char *latex;
	const char *javascript;
	const char *png;   /* base64 */
	const char *jpeg;  /* base64 */
	const char *pdf;   /* base64 */
	const char *json;  /* JSON text, as the next three */
	const char *data;  /* of a table: {"COLUMN": [VALUES]} */
	const char *chart; /* of a plot: {"type": "line", "elements": ...} */
	const char *extra; /* {"MIME/TYPE": VALUE} for forms that have no name here */
} abx_code_result;

/**
 * Takes a result while its cell runs. `result` lives until the function returns.
 *
 * Returns ABX_OK, or a negative ABX_E... code, which ends the operation with that code.
 */
typedef int (*abx_code_result_fn)(void *userdata, const abx_code_result *result);

/** How to run a cell. Strings are borrowed for the call. */
typedef struct abx_code_options {
	size_t size;            /* set by ABX_CODE_OPTIONS_INIT */
	const char *language;   /* NULL: python */
	const char *context_id; /* abx_code_context_create(); excludes `language`. NULL:
				   the language's own context */
	const char *const *env_vars; /* for this cell; "KEY=VALUE", NULL at the end */
	uint32_t timeout_ms;   /* then it is interrupted; 0: 300000; ABX_NO_TIMEOUT */
	abx_sink_fn on_stdout; /* while it runs; NULL: collected. ABX_PAUSE is
				  ABX_EINVAL: who is slow takes its time */
	abx_sink_fn on_stderr; /* the same */
	abx_code_result_fn on_result; /* NULL: collected */
	void *userdata;               /* of the three; must live until the end */
	size_t max_output_bytes; /* most to collect, and the most of one result; 0: 64
				    MiB; then ABX_ETOOBIG, and the cell is interrupted */
} abx_code_options;
#define ABX_CODE_OPTIONS_INIT ABX_OPTIONS_INIT(abx_code_options)
/** Does what ABX_CODE_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_code_options_init(abx_code_options *opts);

/** What came of a cell. */
typedef struct abx_code_execution {
	size_t size;      /* what this library filled */
	int64_t count;    /* its number in its context; 0: it never began */
	const char *text; /* of the main result; NULL: none, or it went to on_result */
	const char *out;  /* collected stdout; never NULL */
	size_t out_len;
	const char *err; /* collected stderr; never NULL */
	size_t err_len;
	const abx_code_result *results; /* collected, in their order */
	size_t result_count;
	const char
		*error_name; /* such as "ZeroDivisionError"; NULL: it ended well.
				"ContextRestarting": its kernel died or was restarted */
	const char *error_value;
	const char *error_traceback;
} abx_code_execution;
/** Frees an execution. NULL is fine. Since: 0.1.0 */
ABX_API void abx_code_execution_free(abx_code_execution *execution);

/** A completion with an execution, which is the completion's: abx_code_execution_free().
 */
typedef void (*abx_code_fn)(void *userdata, int r, abx_code_execution *execution,
			    const abx_error *err);

/**
 * Runs a cell and waits for its end. Cells of one context run one after the other.
 *
 * Errors: ABX_EINVAL (`code` is NULL or not UTF-8, a broken "KEY=VALUE", what the
 * interpreter refuses), ABX_ENOTFOUND (no interpreter, language or context of that name),
 * ABX_ETIMEDOUT (it was interrupted), ABX_ETOOBIG, ABX_EEXHAUSTED (too many cells wait),
 * ABX_EUNAVAILABLE (the stream broke; the sandbox ended), and what a callback answered.
 * Owner: the caller, abx_code_execution_free(). Since: 0.1.0
 *
 *     if (abx_code_run(sandbox, "x = 41\nx + 1", NULL, &execution, &err) == ABX_OK)
 *             printf("%s\n", execution->text);
 */
ABX_API int abx_code_run(abx_sandbox *sandbox, const char *code,
			 const abx_code_options *opts, abx_code_execution **ret,
			 abx_error **reterr);
/** abx_code_run() as an operation (op.h). Cancelling interrupts the cell. */
ABX_API int abx_code_run_async(abx_sandbox *sandbox, const char *code,
			       const abx_code_options *opts, abx_code_fn done,
			       void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			       abx_error **reterr);

/**
 * Makes a context: a kernel with a state of its own. `language` NULL: python; `cwd` NULL:
 * /home/user.
 *
 * Errors: ABX_EINVAL (no such folder), ABX_ENOTFOUND (no kernel for that language),
 * ABX_EEXHAUSTED (too many contexts). Owner of the id: the caller, abx_free(). Since:
 * 0.1.0
 */
ABX_API int abx_code_context_create(abx_sandbox *sandbox, const char *language,
				    const char *cwd, char **ret_id, abx_error **reterr);
/** abx_code_context_create() as an operation (op.h). */
ABX_API int abx_code_context_create_async(abx_sandbox *sandbox, const char *language,
					  const char *cwd, abx_text_fn done,
					  void *userdata, abx_free_fn free_userdata,
					  abx_op **ret_op, abx_error **reterr);

/**
 * Gives a context a fresh kernel; its id stays, a cell that runs ends with an error.
 *
 * Errors: ABX_ENOTFOUND (no such context). Since: 0.1.0
 */
ABX_API int abx_code_context_restart(abx_sandbox *sandbox, const char *context_id,
				     abx_error **reterr);
/** abx_code_context_restart() as an operation (op.h). */
ABX_API int abx_code_context_restart_async(abx_sandbox *sandbox, const char *context_id,
					   abx_done_fn done, void *userdata,
					   abx_free_fn free_userdata, abx_op **ret_op,
					   abx_error **reterr);

/** Removes a context with its kernel. Errors: ABX_ENOTFOUND (no such context). Since:
 * 0.1.0 */
ABX_API int abx_code_context_remove(abx_sandbox *sandbox, const char *context_id,
				    abx_error **reterr);
/** abx_code_context_remove() as an operation (op.h). */
ABX_API int abx_code_context_remove_async(abx_sandbox *sandbox, const char *context_id,
					  abx_done_fn done, void *userdata,
					  abx_free_fn free_userdata, abx_op **ret_op,
					  abx_error **reterr);

#ifdef __cplusplus
}
#endif

#endif

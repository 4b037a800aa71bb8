/*
 * agentbox/op.h - one asynchronous operation.
 *
 * Every `abx_<noun>_<verb>_async` function starts an operation and ends with the same
 * five arguments: the completion, its `userdata`, what frees that, `ret_op` and `reterr`.
 *
 * - The call returns ABX_OK when the operation started. Then the completion runs exactly
 * once, from abx_client_process(), abx_client_wait() or abx_client_free(), never from
 * inside the call that started it. When the call returns a negative code, the completion
 * never runs.
 * - A completion gets `r` (what the blocking call would have returned), the result, and
 * the error, which is NULL unless `r` is negative and lives until the completion returns.
 * The result belongs to the completion, which frees it with the function its type names.
 * - `free_userdata` runs once, after the completion, or before the call returns when it
 * failed.
 * - Inside a completion or any other callback of the library new operations may be
 * started and others cancelled; blocking calls, abx_client_process() and
 * abx_client_wait() give ABX_ESTATE.
 */
#ifndef AGENTBOX_OP_H
#define AGENTBOX_OP_H

#include <stddef.h>

#include <agentbox/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the ..._OPTIONS_INIT macros stand for: `size` set, everything else zero. */
#ifdef __cplusplus
#define ABX_OPTIONS_INIT(type) \
	{                      \
		sizeof(type)   \
	}
#else
#define ABX_OPTIONS_INIT(type)       \
	{                            \
		.size = sizeof(type) \
	}
#endif

/** One operation under way. */
typedef struct abx_op abx_op;

/** Frees what a caller handed over as `userdata`. */
typedef void (*abx_free_fn)(void *userdata);
/** The completion of an operation without a result. `r` as the blocking call returns it.
 */
typedef void (*abx_done_fn)(void *userdata, int r, const abx_error *err);
/** The completion of an operation with a text: `text` is the completion's, abx_free(). */
typedef void (*abx_text_fn)(void *userdata, int r, char *text, const abx_error *err);

/** A stream callback's answer: what was given is taken, but no more until
 * abx_op_resume(). */
#define ABX_PAUSE 1
/** "No limit" for a timeout in milliseconds. */
#define ABX_NO_TIMEOUT 0xFFFFFFFFu

/**
 * Takes bytes of a stream. `data` lives until the function returns.
 *
 * Returns ABX_OK, ABX_PAUSE, or a negative ABX_E... code, which ends the operation with
 * that code.
 */
typedef int (*abx_sink_fn)(void *userdata, const char *data, size_t len);

/**
 * Gives the next bytes of a stream: up to `size` of them into `buf`, their number into
 * `*ret_len`.
 *
 * Returns ABX_OK (0 bytes: the stream ends here), ABX_PAUSE (nothing now; asked again
 * after abx_op_resume()), or a negative ABX_E... code, which ends the operation with that
 * code.
 */
typedef int (*abx_source_fn)(void *userdata, char *buf, size_t size, size_t *ret_len);

/**
 * Asks an operation to end. Its completion runs with ABX_ECANCELED, unless it is over
 * already. What the other side has begun may still happen there. Any number of times;
 * NULL is fine.
 *
 * Threads: the client's. Since: 0.1.0
 */
ABX_API void abx_op_cancel(abx_op *op);

/**
 * Lets a stream that answered ABX_PAUSE go on. Nothing happens when it is not paused.
 *
 * Threads: the client's. Since: 0.1.0
 */
ABX_API void abx_op_resume(abx_op *op);

/**
 * Gives the handle back that `*ret_op` received; the operation itself goes on. NULL is
 * fine.
 *
 * Threads: the client's. Since: 0.1.0
 */
ABX_API void abx_op_free(abx_op *op);

#ifdef __cplusplus
}
#endif
#endif

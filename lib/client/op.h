/*
 * op.h - the life of an operation (<agentbox/op.h>): from its start, over one HTTP
 * exchange or a stream, to its completion out of the client's queue.
 *
 * Invariants: an operation is unfinished, then finished and queued, then delivered and
 * gone (its handle may outlive it). Only abx__op_finish() finishes one. Its result
 * belongs to it until delivery. A blocking call is an operation whose completion is an
 * abx__wait.
 */
#ifndef ABX_CLIENT_OP_H
#define ABX_CLIENT_OP_H

#include <stdbool.h>
#include <stddef.h>

#include <agentbox/agentbox.h>

#include "base/buf.h"
#include "io/http-client.h"

enum abx__op_kind {
	ABX__OP_DONE,
	ABX__OP_TEXT,
	ABX__OP_DATA,
	ABX__OP_SANDBOX,
	ABX__OP_SANDBOX_INFO,
	ABX__OP_SANDBOX_NEXT,
	ABX__OP_COMMAND,
	ABX__OP_PROCESS,
	ABX__OP_PROCESS_LIST,
	ABX__OP_FILE_INFO,
	ABX__OP_FILE_LIST,
	ABX__OP_WATCH,
	ABX__OP_METRICS,
	ABX__OP_LOGS,
	ABX__OP_SNAPSHOT,
	ABX__OP_SNAPSHOT_NEXT,
	ABX__OP_FORKS,
	ABX__OP_CODE,
};

union abx__done {
	abx_done_fn done;
	abx_text_fn text;
	abx_file_data_fn data;
	abx_sandbox_fn sandbox;
	abx_sandbox_info_fn sandbox_info;
	abx_sandbox_next_fn next;
	abx_command_fn command;
	abx_process_fn process;
	abx_process_list_fn process_list;
	abx_file_info_fn file_info;
	abx_file_list_fn file_list;
	abx_watch_fn watch;
	abx_metrics_fn metrics;
	abx_logs_fn logs;
	abx_snapshot_info_fn snapshot;
	abx_snapshot_next_fn snapshot_next;
	abx_forks_fn forks;
	abx_code_fn code;
};

/* Where a blocking call finds how it went. */
typedef struct abx__wait {
	bool is_over;
	int r;
	void *result;
	size_t len;
	abx_error *err;
} abx__wait;

/* What happens at the end of an operation. */
typedef struct abx__then {
	enum abx__op_kind kind;
	union abx__done fn;
	void *userdata;
	abx_free_fn free_userdata;
	abx_op **ret_op;
	abx__wait *wait; /* instead of fn */
} abx__then;

#define ABX__THEN(kind_, member, done_)                                             \
	{                                                                           \
		.kind = (kind_), .fn = { .member = (done_) }, .userdata = userdata, \
		.free_userdata = free_userdata, .ret_op = ret_op                    \
	}
#define ABX__THEN_WAIT(kind_, wait_)             \
	{                                        \
		.kind = (kind_), .wait = (wait_) \
	}

struct abx_op {
	abx_client *client;
	unsigned refs;       /* the client's, and the handle's */
	abx_op *prev, *next; /* of client->ops, until delivered */
	abx_op *next_done;
	abx__then then;
	bool is_finished;
	int r;
	void *result;
	size_t result_len;
	abx_error *err;
	char *what; /* begins the message of its error */

	abx__http_call *call; /* under way, or NULL */
	abx__buf in;          /* the answer's body */
	char *out;            /* the request's body */
	size_t out_len;
	/* Makes the result of a whole answer (op->in, `status`); returns what the
	 * operation returns. */
	int (*on_answer)(abx_op *op, int status, abx_error **reterr);
	void (*on_cancel)(abx_op *op); /* instead of cancelling `call` */
	void (*on_resume)(abx_op *op); /* instead of resuming `call` */
	void *state;
	void (*free_state)(void *state);
};

/* A new one, counted and linked. ABX_ESTATE when the client is freed, or busy and this
   one would block. `what_fmt` says what it does: "create a sandbox from base". */
int abx__op_new(abx_client *client, const abx__then *then, abx_op **ret,
		abx_error **reterr, const char *what_fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Undoes abx__op_new() when the start failed: no completion. Puts op->what before the
 * error. Returns `r`. */
int abx__op_abandon(abx_op *op, int r, abx_error **reterr);
/* Started: hands the handle out. Returns ABX_OK. */
int abx__op_started(abx_op *op);
/* Ends it with `r`, queues its completion. Takes `err`. A second call only frees `err`.
 */
void abx__op_finish(abx_op *op, int r, abx_error *err);
/* Runs the completions that are queued now; how many ran. */
size_t abx__op_deliver(abx_client *client);
/* Ends every operation that has no HTTP call of its own. */
void abx__op_cancel_all(abx_client *client);
void abx__op_free_result(enum abx__op_kind kind, void *result);

/* The end of an _async function: frees the userdata when the start failed. Returns `r`.
 */
int abx__then_end(const abx__then *then, int r);
/* The end of a blocking function: pumps until it is over. Returns what the operation
 * returns. */
int abx__wait_end(abx_client *client, abx__wait *wait, int r, abx_error **reterr);
/* The body of a blocking function that has a `reterr`: runs what `start` begins (with
 * &then) to its end; `r` and `wait` tell what came. `client` is asked for only when it
 * has started. */
#define ABX__BLOCK(client, kind, start)               \
	abx__wait wait = { 0 };                       \
	abx__then then = ABX__THEN_WAIT(kind, &wait); \
	int r = (start);                              \
	if (r >= 0)                                   \
	r = abx__wait_end(client, &wait, r, reterr)
#define ABX__CLIENT_OF(handle) ((handle) ? (handle)->client : NULL)
/* The same for one that yields an object: `ret` is the address of the pointer it goes
   to; NULL: it is freed. With `r` negative `client` may be NULL. */
int abx__wait_object(abx_client *client, const abx__then *then, int r, void *ret,
		     abx_error **reterr);
/* The same for one whose result is a text; `ret` may be NULL. */
int abx__wait_text(abx_client *client, abx__wait *wait, int r, char **ret,
		   abx_error **reterr);

#endif

/*
 * process.h - a process of a sandbox as it is seen from here: the stream of its events,
 * and envd's calls on one by its id.
 *
 * Invariant: the pid is known before any output is given.
 */
#ifndef ABX_CLIENT_PROCESS_H
#define ABX_CLIENT_PROCESS_H

#include <agentbox/agentbox.h>
#include <json-c/json.h>

#include "client/stream.h"

struct abx_process {
	abx__stream stream; /* first */
	uint32_t pid;
	abx_sink_fn on_stdout, on_stderr; /* a terminal's output is stdout */
	void *userdata;
	bool collect;
	abx__buf out, err;
	int exit_code;
	char *error;
};

/* A handle that listens to nothing yet; opts are complete. */
abx_process *abx__process_new(abx_client *client, const abx_command_options *opts);

/* ---- process-call.c ---- */

/* Sends `message` (taken) to Start or Connect for `op`. Ends a start function. */
int abx__process_open(abx_op *op, abx__request *req, const abx_command_options *opts,
		      json_object *message, abx_error **reterr);
/* {"process": {"pid": N}}, what every call on a process begins with; NULL when out of
 * memory. */
json_object *abx__process_selector(uint32_t pid);
/* A unary call, named `what` in messages. Takes `message`; pid 0: no process of its own.
   Ends a start function. */
int abx__process_call(abx_sandbox *sandbox, const abx__then *then, const char *method,
		      json_object *message, int (*on_answer)(abx_op *, int, abx_error **),
		      abx_error **reterr, const char *what, uint32_t pid);
/* Input to a process; `kind` is "stdin" or "pty". */
int abx__process_send(abx_sandbox *sandbox, uint32_t pid, const char *kind,
		      const char *data, size_t len, const abx__then *then,
		      abx_error **reterr);
/* What to start, as a StartRequest. `cmd` is a line for the shell, or NULL. */
int abx__process_message(const char *cmd, const abx_command_options *opts,
			 json_object **ret, abx_error **reterr);
/* `text` (may be NULL) is UTF-8; `what` names it in the message. */
int abx__process_check_text(const char *what, const char *text, abx_error **reterr);

#endif

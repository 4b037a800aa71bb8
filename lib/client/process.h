/*
 * process.h - the stream of one command: a Start or Connect call of envd, from its first
 * event to its end.
 *
 * Invariants: the pid is known before any output is given; output goes to the sinks in
 * order and never while one of them has paused; the end is noted once. The handle's owner
 * holds one reference and the HTTP call another, so the tail of a stream is still read
 * (and its connection kept) after the handle is gone.
 */
#ifndef ABX_CLIENT_PROCESS_H
#define ABX_CLIENT_PROCESS_H

#include <agentbox/agentbox.h>
#include <json-c/json.h>

#include "client/client.h"
#include "client/request.h"
#include "io/connect-frame.h"

struct abx_process {
	abx_client *client;
	unsigned refs;
	abx__http_call *call; /* NULL once the stream is over */
	abx__buf request;     /* what was sent; lives as long as the call */
	abx__connect_parser parser;
	abx__kick kick;   /* gives the backlog */
	abx__buf backlog; /* whole messages that came while paused */
	abx__buf refusal; /* the body of an answer that is not 200 */
	uint32_t pid;
	abx_sink_fn on_stdout, on_stderr;
	void *userdata;
	bool collect;
	abx__buf out, err;
	bool is_paused;
	bool may_pause;
	bool is_over;   /* the HTTP call's end came */
	bool has_ended; /* end_r and the rest are set */
	int end_r;
	abx_error *end_err;
	int exit_code;
	char *error;
	uint32_t timeout_ms; /* for the message */
	abx_op *start_op;    /* waits for the pid; not a reference */
	abx_op *end_op;      /* waits for the end; not a reference */
	bool was_waited;
};

/* A handle that listens to nothing yet; opts are complete. */
abx_process *abx__process_new(abx_client *client, const abx_command_options *opts);
/* Sends `message` (taken) to a streaming method; `req` has the rest. */
int abx__process_open(abx_process *process, abx__request *req, json_object *message,
		      abx_error **reterr);
/* The result of an ended command; ABX_ENOMEM. Takes the collected output along. */
int abx__process_result(abx_process *process, abx_command_result **ret,
			abx_error **reterr);

#endif

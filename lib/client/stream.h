/*
 * stream.h - one server stream of envd: a JSON message out, JSON messages in Connect
 * envelopes back, until its end. A command's output and a watched directory are such.
 *
 * Invariants: messages are given in order, and none while paused; the end is noted once.
 * The handle's owner holds one reference and the HTTP call another, so the tail of a
 * stream is still read (and its connection kept) after the handle is gone; nothing is
 * given to a closed one. A stream is the first member of what owns it.
 */
#ifndef ABX_CLIENT_STREAM_H
#define ABX_CLIENT_STREAM_H

#include <agentbox/agentbox.h>
#include <json-c/json.h>

#include "client/client.h"
#include "client/request.h"
#include "io/connect-frame.h"

#define ABX__STREAM_MAX_MESSAGE ((size_t)8 << 20)

typedef struct abx__stream abx__stream;

typedef struct abx__stream_ops {
	enum abx__op_kind start_kind; /* of the operation that waits for its begin */
	const char *no_end;           /* said of a stream that ends without saying why */
	/* May take a message by its bytes, in the one spelling that most come in, so that
	 * no JSON is parsed for it. 1: taken; 0: on_message is to have it; a negative
	 * answer ends the stream. NULL: takes none. */
	int (*on_bytes)(abx__stream *stream, const char *data, size_t len);
	/* One message that is not the stream's end. A negative answer ends the stream. */
	int (*on_message)(abx__stream *stream, json_object *message);
	/* What its end yields, for the operation that waits for it; NULL: nothing. */
	int (*result)(abx__stream *stream, void **ret, abx_error **reterr);
	/* The end of its memory, but for what is the stream's own. */
	void (*destroy)(abx__stream *stream);
} abx__stream_ops;

struct abx__stream {
	const abx__stream_ops *ops;
	abx_client *client;
	unsigned refs;
	abx__http_call *call; /* NULL once the stream is over */
	abx__buf request;     /* what was sent; lives as long as the call */
	abx__connect_parser parser;
	abx__kick kick;   /* gives the backlog */
	abx__buf backlog; /* whole messages that came while paused */
	abx__buf refusal; /* the body of an answer that is not 200 */
	bool is_paused;
	bool may_pause;
	bool is_closed; /* the owner is gone */
	bool is_over;   /* the HTTP call's end came */
	bool has_ended; /* end_r and end_err are set */
	bool was_waited;
	int end_r;
	abx_error *end_err;
	uint32_t timeout_ms; /* for the message */
	abx_op *start_op;    /* waits for the begin; not a reference */
	abx_op *end_op;      /* waits for the end; not a reference */
};

void abx__stream_init(abx__stream *stream, abx_client *client,
		      const abx__stream_ops *ops);
/* Sends `message` (taken) to a streaming method, `req` has the rest; `op` owns the stream
   until it gives it away. Ends a start function. */
int abx__stream_open(abx__stream *stream, abx_op *op, abx__request *req,
		     json_object *message, abx_error **reterr);
/* It has begun: who waits for that gets the handle. Later calls do nothing. */
void abx__stream_begun(abx__stream *stream);
/* It has ended. Takes `err`; only the first end counts. */
void abx__stream_end(abx__stream *stream, int r, abx_error *err);
/* What a callback answered, as on_message should: ABX_PAUSE is noted. */
int abx__stream_answered(abx__stream *stream, int r);
void abx__stream_resume(abx__stream *stream);
/* Waits for the end; `what` names it: "process 7". Ends a start function. */
int abx__stream_wait(abx__stream *stream, const abx__then *then, const char *what,
		     abx_error **reterr);
/* The owner goes: a wait ends with ABX_ECANCELED, and the stream with it unless it is at
 * its end. */
void abx__stream_close(abx__stream *stream);

#endif

/*
 * http2-priv.h - what http2.c (the session on a link), http2-stream.c (its streams, which
 * are the exchanges) and http2-answer.c share.
 *
 * nghttp2's callbacks only take down what came; handlers run afterwards, from the list of
 * due streams (h2_run_due()), within a frame of the link (http-server-priv.h). So no call
 * of a handler's meets nghttp2 in the middle of its own.
 */
#ifndef ABX_IO_HTTP2_PRIV_H
#define ABX_IO_HTTP2_PRIV_H

#include <nghttp2/nghttp2.h>

#include "io/http-server-priv.h"
#include "io/http2.h"

#define H2_STREAMS_MAX 128
#define H2_WINDOW_READ (1 << 20) /* of a stream whose body is read */
#define H2_WINDOW_LINK (8 << 20) /* of all; given back as bytes come */
#define H2_QUEUE_MOST                                                              \
	((size_t)128 << 10)            /* in the socket's queue: more waits in the \
					  streams */
#define H2_JUNK_MOST ((size_t)1 << 20) /* of a head that is refused already */

#define H2_CANCELS_MOST 1000 /* streams given up for the peer's sake... */
#define H2_CANCELS_PER_S 33  /* ... and so many more each second */

/* Bytes of an answer on their way. */
struct h2_piece {
	struct h2_piece *next;
	const char *data;
	size_t len, size;
	void (*done)(void *userdata); /* the bytes are the caller's */
	void *userdata;
	char own[];
};

struct h2_stream {
	abx__http_req req; /* first */
	struct h2_session *session;
	struct h2_stream *prev, *next;
	struct h2_stream *due_next;
	int32_t id;
	bool is_due;
	/* what came */
	abx__buf text; /* of the head: "name\0value\0"... */
	abx__buf cookie;
	char *method, *target, *authority;
	size_t fields, junk;
	int refuse;    /* the head is answered with this by ourselves */
	bool is_whole; /* the head */
	bool is_given; /* to on_request */
	bool in_ended;
	bool is_wide; /* its window is */
	abx__buf in;  /* of the body, not taken yet */
	/* what leaves */
	struct h2_piece *out, *out_last;
	size_t out_len;
	bool sleeps; /* nghttp2 waits for more of it */
	bool out_ended;
	/* the end */
	bool is_closed; /* nghttp2 is through with it */
	bool is_broken; /* aborted by the handler */
	bool is_over;   /* `closed` ran, or nobody will ever be told */
	uint64_t moved; /* loop time */
};

struct h2_session {
	abx__http_link *link;
	nghttp2_session *ng;
	struct h2_stream *streams;
	struct h2_stream *due, **due_tail;
	struct h2_piece *spent; /* out; their `done` is to be called */
	uint64_t began;         /* loop time */
	uint64_t cancelled;     /* streams that ended in an error that is not ours */
	bool heard;             /* the peer's SETTINGS */
	bool is_dead;
};

static inline uint64_t h2_now(const struct h2_stream *stream)
{
	return uv_now(stream->session->link->server->opts.loop);
}

/* http2.c */
void h2_due(struct h2_stream *stream); /* from callbacks */
void h2_kick(struct h2_stream *stream);
void h2_spend(struct h2_session *session, struct h2_piece *piece);

/* http2-stream.c */
struct h2_stream *h2_stream_new(struct h2_session *session, int32_t id);
void h2_stream_free(struct h2_stream *stream);
/* A field of the head. ABX_ENOMEM; ABX_EPROTO: too much of what is refused already. */
int h2_stream_field(struct h2_stream *stream, const char *name, size_t name_len,
		    const char *value, size_t value_len);
/* Hands over what is due. False: it is gone. */
bool h2_stream_run(struct h2_stream *stream);
/* Tells the handler that the exchange is over. */
void h2_stream_finish(struct h2_stream *stream, bool answered);

/* http2-answer.c */
extern const abx__http_req_ops h2_req_ops;
int h2_stream_send(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head,
		   size_t len, nghttp2_data_source *source, void *userdata);

#endif

/*
 * http-conn.h - an HTTP/1.1 client on a descriptor that is already connected: for the
 * gateway and for arming.
 *
 * One request at a time: start it, stream its body, receive head and body, then start the
 * next, park the connection or close it. Both directions push back. A 101 answer turns
 * the connection raw.
 *
 * The program must ignore SIGPIPE: libuv writes without MSG_NOSIGNAL.
 *
 * Callbacks run from the loop, and from abx__http_conn_resume() (what was read already is
 * delivered there). Every one of them may close the connection; after
 * abx__http_conn_close() none runs. `fail` and `lost` are final: close is the only call
 * left.
 */
#ifndef ABX_IO_HTTP_CONN_H
#define ABX_IO_HTTP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <uv.h>

#include "io/http-body.h"
#include "io/http-head.h"
#include "io/tube.h"

typedef struct abx__http_conn abx__http_conn;

/* One read buffer for all connections of a loop; lives while any of them does. */
typedef struct abx__http_scratch {
	size_t size; /* body pieces are at most this */
	char *data;  /* made on need, given back with the last connection */
	unsigned users;
} abx__http_scratch;

typedef struct abx__http_conn_events {
	/* 1xx, not 101. NULL: they are dropped. */
	void (*interim)(void *userdata, const abx__http_head *head);
	/* The answer's head; lives for the call. Behind a 101 everything is raw. */
	void (*head)(void *userdata, const abx__http_head *head);
	/* Pieces of the answer's body; NULL at its end (raw: when the peer has ended its
	 * side). */
	void (*body)(void *userdata, const char *data, size_t len);
	/* So many further bytes of it are in the tube. NULL without one. */
	void (*tube)(void *userdata, size_t len);
	/* The queue has fallen to the low mark (abx__http_conn_set_low()) or below. May
	 * be NULL. */
	void (*drain)(void *userdata);
	/* ABX_EIO: the peer went; ABX_EPROTO: it does not speak HTTP/1.1; ABX_ENOMEM.
	 * `why` is one line. */
	void (*fail)(void *userdata, int r, const char *why);
} abx__http_conn_events;

/* Takes the descriptor over when it succeeds. */
int abx__http_conn_new(uv_loop_t *loop, int fd, abx__http_scratch *scratch,
		       abx__http_conn **ret, abx_error **reterr);
/* Closes and frees; NULL is fine. */
void abx__http_conn_close(abx__http_conn *conn);

/* Sends `head` (a request line and fields, with the blank line) and expects an answer.
   The framing of the body that will be written must be what the head says.
   `no_answer_body`: the method is HEAD. */
int abx__http_conn_request(abx__http_conn *conn, const char *head, size_t len,
			   enum abx__http_framing framing, uint64_t length,
			   bool no_answer_body, const abx__http_conn_events *events,
			   void *userdata);
/* A head with a body to come waits for the body's first piece; this sends it now. */
void abx__http_conn_flush(abx__http_conn *conn);
/* Allowed in `head`: what is still to come of this answer's body may go into the tube,
   as the `tube` event says; the rest comes as `body` in its turn. The tube must live
   until the connection is closed or parked. */
void abx__http_conn_use_tube(abx__http_conn *conn, abx__tube *tube);
/* The request's body, framed here; raw bytes after 101. Copies what the kernel does not
   take. A peer that has gone is not reported here but by `fail`, so that an answer it
   sent first is still read. */
int abx__http_conn_write(abx__http_conn *conn, const void *data, size_t len);
/* The same for the last `len` bytes that were filled into the tube; not in chunks. What
   the kernel does not take stays there, and counts as queued. */
int abx__http_conn_pour(abx__http_conn *conn, abx__tube *tube, size_t len);
/* A field to go behind the request's body, before its end; dropped when that is not
 * chunked. */
int abx__http_conn_trailer(abx__http_conn *conn, const char *name, const char *value);
/* Fields that came behind the answer's body, in order, from the end's `body` event on:
   false when `index` is past the end. */
bool abx__http_conn_trailer_at(const abx__http_conn *conn, size_t index,
			       const char **ret_name, const char **ret_value);
/* Ends the request's body; after 101 it half-closes. */
int abx__http_conn_end(abx__http_conn *conn);
size_t abx__http_conn_queued(const abx__http_conn *conn);
void abx__http_conn_set_low(abx__http_conn *conn, size_t low);

void abx__http_conn_pause(abx__http_conn *conn); /* no `body` until resumed */
void abx__http_conn_resume(abx__http_conn *conn);

/* Has a byte of the present answer come? If not, and the request may be sent again,
 * another connection may serve. */
bool abx__http_conn_has_answer(const abx__http_conn *conn);
/* May another request be sent: both bodies are through and the peer keeps the connection.
 */
bool abx__http_conn_is_reusable(const abx__http_conn *conn);
/* Waits for the next request; `lost` runs when the peer closes it (or speaks out of turn)
 * meanwhile. */
void abx__http_conn_park(abx__http_conn *conn, void (*lost)(void *userdata),
			 void *userdata);

#endif

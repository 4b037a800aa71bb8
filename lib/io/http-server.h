/*
 * http-server.h - an HTTP server on a libuv loop, for envd, agentboxd's APIs and the
 * gateway alike: HTTP/1.1, and for who asks for them TLS (tls.h) and HTTP/2 (http2.h).
 *
 * Shape: one request object `abx__http_req` carries a request and its answer.
 * `on_request` runs when the head is complete; the body is not read from the socket until
 * the handler asks, so a handler that cannot take bytes makes TCP push back. Answers
 * stream the same way: what is queued is counted, and `drain` tells when to go on. One
 * request of a connection is handled at a time; pipelined ones wait.
 *
 * Heads are parsed by http-head.c (http_parser underneath), bodies by http-body.c. Caps:
 * head 64 KiB, 100 headers, idle and head deadlines from the options; a peer that neither
 * sends the body it owes nor takes the answer for the idle deadline is gone. Once an
 * answer has begun, and in an upgraded connection, silence has no deadline. Refused by
 * the server itself: broken or ambiguous framing (400; both Content-Length and chunked is
 * ambiguous), head over a cap (431), a method or transfer coding nobody knows (501, 400),
 * HTTP/2 prior knowledge where it is not spoken (400), a head that comes too slowly
 * (408).
 *
 * The program must ignore SIGPIPE: libuv writes without MSG_NOSIGNAL.
 *
 * Threads: everything on the loop's thread. Memory: a request's strings live until its
 * `closed` callback returned.
 */
#ifndef ABX_IO_HTTP_SERVER_H
#define ABX_IO_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <uv.h>

#include "io/tube.h"

typedef struct abx__http_server abx__http_server;
typedef struct abx__http_req abx__http_req;

typedef struct abx__http_protocol abx__http_protocol;
struct abx__tls_context;

typedef void (*abx__http_handler)(abx__http_req *req, void *userdata);

typedef struct abx__http_server_options {
	uv_loop_t *loop;
	abx__http_handler on_request; /* must answer, or keep `req` and answer later */
	void *userdata;
	uint64_t idle_timeout_ms; /* between requests; 0: 640 s (envd.md section 1) */
	uint64_t head_timeout_ms; /* to send a whole head; 0: 30 s */
	unsigned max_connections; /* 0: 10000; over it a connection is closed at once */
	size_t read_chunk_bytes;  /* 0: 64 KiB; body pieces are at most this */
	struct abx__tls_context *tls;  /* NULL: plain; outlives the server */
	uint64_t handshake_timeout_ms; /* of TLS; 0: 10 s */
	unsigned max_handshakes; /* at one time; 0: 512; over it connections are closed */
	const abx__http_protocol *http2; /* &abx__http2, by ALPN or prior knowledge;
					    NULL: HTTP/1 alone */
} abx__http_server_options;

int abx__http_server_new(const abx__http_server_options *opts, abx__http_server **ret,
			 abx_error **reterr);
/* Listens; may be called several times. `port` 0 picks one; `ret_port` may be NULL. */
int abx__http_server_listen_tcp(abx__http_server *server, const char *ip, uint16_t port,
				uint16_t *ret_port, abx_error **reterr);
/* Replaces a stale socket file nobody listens on; refuses one that answers (ABX_EEXISTS).
 */
int abx__http_server_listen_unix(abx__http_server *server, const char *path,
				 unsigned mode, abx_error **reterr);
/* Takes over a descriptor that is already listening (socket activation, tests). */
int abx__http_server_listen_fd(abx__http_server *server, int fd, abx_error **reterr);
/* Takes over a connected stream socket as if it had just been accepted. */
int abx__http_server_adopt_fd(abx__http_server *server, int fd, abx_error **reterr);
/* Stops listening, closes every connection, frees the server, then calls `done` from the
 * loop. */
void abx__http_server_close(abx__http_server *server, void (*done)(void *userdata),
			    void *userdata);

/* ---- the request ---- */

const char *abx__http_req_method(const abx__http_req *req);
const char *
abx__http_req_target(const abx__http_req *req); /* as sent: path and query, undecoded */
const char *
abx__http_req_path(const abx__http_req *req); /* target up to '?', undecoded */
const char *
abx__http_req_query(const abx__http_req *req); /* behind '?', undecoded; NULL when none */
/* First header of that name, any case; NULL when absent. */
const char *abx__http_req_header(const abx__http_req *req, const char *name);
/* All headers in order: false when `index` is past the end. */
bool abx__http_req_header_at(const abx__http_req *req, size_t index,
			     const char **ret_name, const char **ret_value);
/* Is `token` an element of the comma-separated lists under that name? Any case. */
bool abx__http_req_header_has(const abx__http_req *req, const char *name,
			      const char *token);
bool abx__http_req_has_body(const abx__http_req *req);
int64_t
abx__http_req_content_length(const abx__http_req *req); /* -1: chunked; 0: no body */
/* Have bytes of the body (or of what follows) come already? Then reading delivers some
 * within this turn. */
bool abx__http_req_is_buffered(const abx__http_req *req);
bool abx__http_req_is_upgrade(const abx__http_req *req);
bool abx__http_req_is_unix(const abx__http_req *req); /* came over a Unix socket */
bool abx__http_req_is_tls(const abx__http_req *req);
uv_loop_t *abx__http_req_loop(const abx__http_req *req);

/* A callback that runs exactly once, when the exchange is over for whatever reason
   (answered, aborted, peer gone); after it `req` is invalid. `answered` is false when the
   peer went first or the exchange was aborted. Never inside a call of the handler's. A
   peer that closes its sending side while it waits for an answer counts as gone. */
void abx__http_req_on_closed(abx__http_req *req,
			     void (*closed)(abx__http_req *req, bool answered,
					    void *userdata),
			     void *userdata);

/* Starts delivering the body. `on_body` gets len > 0 pieces, then once data NULL and r
   ABX_OK at its end, or a negative r (ABX_EPROTO broken framing, ABX_EIO peer gone).
   "Expect: 100-continue" is answered here. */
typedef void (*abx__http_body_fn)(abx__http_req *req, const char *data, size_t len, int r,
				  void *userdata);
void abx__http_req_read(abx__http_req *req, abx__http_body_fn on_body, void *userdata);
/* Bytes of the body, of one of known length, may go into this tube from now on (NULL: no
   longer) instead of coming as pieces: `on_tube` says how many more it holds. Pieces, the
   end and failures still come by `on_body`, all in the body's order. Allowed at any time,
   also in `on_tube`; the tube must live until another takes its place or `closed`. Not
   used where bytes are not the socket's own (TLS, HTTP/2): `takes_tube` is false then. */
typedef void (*abx__http_tube_fn)(abx__http_req *req, size_t len, void *userdata);
bool abx__http_req_takes_tube(const abx__http_req *req);
void abx__http_req_use_tube(abx__http_req *req, abx__tube *tube,
			    abx__http_tube_fn on_tube);
/* Fields that came behind the body, in order, once its end was delivered: false when
   `index` is past the end. Those that may not come there (http-body.h) are not among
   them. */
bool abx__http_req_trailer_at(const abx__http_req *req, size_t index,
			      const char **ret_name, const char **ret_value);
void abx__http_req_pause(abx__http_req *req); /* allowed inside on_body */
void abx__http_req_resume(abx__http_req *req);
/* Collects the whole body up to `max` bytes, then calls `done` once: ABX_OK with the
   bytes (NUL behind them), ABX_ETOOBIG (the handler should answer 413), ABX_EPROTO or
   ABX_EIO. The bytes live until `done` returns. */
void abx__http_req_read_all(abx__http_req *req, size_t max,
			    void (*done)(abx__http_req *req, int r, const char *data,
					 size_t len, void *userdata),
			    void *userdata);

/* ---- the answer ---- */

/* Headers for the answer to come, in order; copies. ABX_EINVAL: a name or value that may
   not be sent, Content-Length and Transfer-Encoding (the framing follows from the calls
   below). Of Connection only "close" counts. A Date is added when there is none. */
int abx__http_res_header(abx__http_req *req, const char *name, const char *value);
/* All of these: ABX_EIO when the peer is gone (`closed` follows or has begun), ABX_ESTATE
   out of order, ABX_ETOOBIG past the length announced. Ending short of that length breaks
   the connection off. */

/* A whole answer. content_type may be NULL when len is 0. Sets Content-Length (not for
 * 204/304). */
int abx__http_res_send(abx__http_req *req, int status, const char *content_type,
		       const void *data, size_t len);
/* An interim answer (100..199, not 101) with the headers set so far, which are then
 * forgotten. */
int abx__http_res_interim(abx__http_req *req, int status);
/* A streamed answer: length >= 0 sends Content-Length, -1 chunks (to an HTTP/1.0 client:
   up to the connection's end). The head leaves with the first bytes, at the latest when
   the loop turns. An answer to HEAD, 204 or 304 has no body: what is written is dropped;
   `length` still names the Content-Length. */
int abx__http_res_begin(abx__http_req *req, int status, int64_t length);
int abx__http_res_write(abx__http_req *req, const void *data, size_t len); /* copies */
/* No copy: `done` runs once, later, when the bytes are out or the connection is gone.
   When the call itself fails (a negative result) `done` does not run. */
int abx__http_res_write_ref(abx__http_req *req, const void *data, size_t len,
			    void (*done)(void *userdata), void *userdata);
/* The last `len` bytes that were filled into the tube; of an answer of known length. What
   the kernel does not take stays there and counts as queued; the tube must live until
   that is gone or `closed`. */
int abx__http_res_pour(abx__http_req *req, abx__tube *tube, size_t len);
/* A field to go behind the answer's body, between begin and end. ABX_EINVAL as for
   headers. Dropped where there is no place for it: an answer of known length over
   HTTP/1.1, one without a body, an HTTP/1.0 client. */
int abx__http_res_trailer(abx__http_req *req, const char *name, const char *value);
int abx__http_res_end(abx__http_req *req);
/* Ends the connection without finishing the answer, so the client sees it broken. */
void abx__http_res_abort(abx__http_req *req);
bool abx__http_res_begun(const abx__http_req *req);
/* Bytes handed to write and not yet in the kernel. */
size_t abx__http_res_queued(const abx__http_req *req);
/* From now on `drain` runs each time they have been above `low` and are at or below it
   again, and once soon after this call when they are already. Never inside a call of the
   handler's; a call with nothing to do is possible. */
void abx__http_res_on_drain(abx__http_req *req, size_t low,
			    void (*drain)(abx__http_req *req, void *userdata),
			    void *userdata);

/* ---- upgrades (WebSocket and others) ---- */

/* Sends nothing and leaves HTTP: from here `abx__http_req_read` delivers raw bytes
   (starting with those that came behind the head), `abx__http_res_write*` sends raw
   bytes, and `abx__http_res_end` shuts the sending side down (half-close). The exchange
   closes when both sides have ended or on abort. ABX_ENOTSUP: HTTP/2 has no such thing
   (is_upgrade is false there). */
int abx__http_req_hijack(abx__http_req *req);

#endif

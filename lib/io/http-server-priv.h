/*
 * http-server-priv.h - what http-server.c (connections, deadlines), http-listen.c,
 * http-req.c (HTTP/1.1's side of reading), http-exchange.c (the request as handlers see
 * it), http-res.c (the answer), http-secure.c (TLS below) and http2*.c share. Nobody else
 * includes it.
 *
 * A link is one accepted connection with the one exchange it is at; under HTTP/2 the
 * exchanges are its streams', and the link's own stays unused. A handler's calls reach
 * their exchange through req->ops. Rules that keep it simple:
 *
 * - Frames. Every entry from the loop, and every stretch in which handlers run, raises
 * `depth`. What an exchange's end brings about (its `closed`, the next request) happens
 * in abx__http_link_run() only, never inside a call a handler made: such calls ask for a
 * run with abx__http_link_kick(), which comes with the loop's next turn.
 * - A link is freed in its handle's close callback only, so it may be touched to the end
 * of any frame.
 * - Bytes are read only while somebody takes them: abx__http_link_run() starts and stops
 * the reading as it leaves.
 */
#ifndef ABX_IO_HTTP_SERVER_PRIV_H
#define ABX_IO_HTTP_SERVER_PRIV_H

#include <time.h>

#include "base/buf.h"
#include "io/http-body.h"
#include "io/http-head.h"
#include "io/http-server.h"
#include "io/outq.h"
#include "io/tls.h"

#define READ_SMALL ((size_t)16 << 10) /* heads and short bodies */
/* Bytes of later requests kept while one is answered. */
#define PIPELINE_MOST ((size_t)64 << 10)
/* An unread body up to this does not cost the connection. */
#define DISCARD_MOST ((size_t)64 << 10)
#define LINGER_MS 2000
#define LINGER_MOST ((uint64_t)16 << 20)

enum link_state {
	LINK_HANDSHAKE, /* TLS's; nothing of HTTP yet */
	LINK_HEAD,      /* between requests, or collecting a head */
	LINK_EXCHANGE,
	LINK_RAW,     /* hijacked */
	LINK_OTHER,   /* link->protocol's: HTTP/2 */
	LINK_DISCARD, /* answered; the rest of a short body is skipped */
	LINK_LINGER,  /* answered, sending side shut; reading on so that the answer
			 is not lost in a reset */
	LINK_CLOSING,
};

enum res_state { RES_NONE, RES_BEGUN, RES_ENDED };
enum res_kind { RES_NO_BODY, RES_LENGTH, RES_CHUNKED, RES_UNTIL_CLOSE, RES_RAW };

typedef struct abx__http_link abx__http_link;

/* What a step may take. */
struct cursor {
	const char *data;
	size_t len;
};

/* How an exchange's answer and body travel: HTTP/1.1 (http-res.c) or a stream of HTTP/2
 * (http2-stream.c). What holds for both is checked before these are called. */
typedef struct abx__http_req_ops {
	bool (*is_dead)(const abx__http_req *req);
	void (*kick)(abx__http_req *req); /* runs it soon */
	size_t (*queued)(const abx__http_req *req);
	bool (*is_buffered)(const abx__http_req *req);
	/* Heads are made from req->fields; `begin` finds req->kind and req->left set. */
	int (*interim)(abx__http_req *req, int status);
	int (*begin)(abx__http_req *req, int status, int64_t length,
		     const char *content_type);
	int (*write)(abx__http_req *req, const void *data, size_t len);
	/* `len` may be 0. */
	int (*write_ref)(abx__http_req *req, const void *data, size_t len,
			 void (*done)(void *userdata), void *userdata);
	int (*end)(abx__http_req *req);    /* what frames the end */
	void (*ended)(abx__http_req *req); /* req->res is RES_ENDED now */
	int (*hijack)(abx__http_req *req);
	void (*abort)(abx__http_req *req);
} abx__http_req_ops;

/* What may take a whole link over (http2.c). `step` is as in http-req.c: true means
 * "again". */
struct abx__http_protocol {
	int (*start)(abx__http_link *link); /* ABX_ENOMEM */
	bool (*step)(abx__http_link *link, struct cursor *in);
	bool (*wants_read)(const abx__http_link *link);
	/* The peer has gone: tell the bodies that are being read. `closed` follows. */
	void (*gone)(abx__http_link *link);
	/* Looks at deadlines of its own; loop time of the next one, 0: none. */
	uint64_t (*look)(abx__http_link *link, uint64_t now);
	void (*leave)(abx__http_link *link); /* the link is being closed, in good order */
	void (*free)(abx__http_link *link);  /* runs `closed` of what lives */
};

struct abx__http_req {
	abx__http_link *link;
	const abx__http_req_ops *ops;
	abx__http_head head;
	bool live; /* between on_request and `closed` */
	void (*closed)(abx__http_req *req, bool answered, void *userdata);
	void *closed_userdata;

	abx__http_body body;
	abx__http_body_fn on_body; /* NULL: nobody reads */
	void *body_userdata;
	abx__buf trailers; /* lines while they come, then http-body.h's list */
	abx__tube *tube;   /* NULL: none */
	abx__http_tube_fn on_tube;
	bool tube_asked; /* libuv was told that nothing is read into memory now */
	bool tube_stuck; /* no more fits into it: read into memory once */
	bool paused;
	bool body_told;      /* its end or its failure was delivered */
	bool expect_pending; /* the client waits for 100 (Continue) */
	struct {
		abx__buf buf;
		size_t max;
		int r;
		void (*done)(abx__http_req *req, int r, const char *data, size_t len,
			     void *userdata);
		void *userdata;
	} all;

	enum res_state res;
	enum res_kind kind;
	int64_t left;    /* RES_LENGTH */
	abx__buf fields; /* "Name: value\r\n"... of the answer to come, then its trailers
			  */
	bool has_date;
	bool close; /* this answer is the connection's last */
	void (*drain)(abx__http_req *req, void *userdata);
	void *drain_userdata;
	size_t drain_low;
	bool drain_due;
};

struct abx__http_link {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io; /* first */
	abx__http_server *server;
	abx__http_link *prev, *next;
	abx__http_link *kick_next;
	enum link_state state;
	unsigned depth;
	bool kicked;
	bool is_unix;
	bool is_reading;
	bool is_bulk;      /* counts in server->bulk */
	bool is_used;      /* a request came */
	bool in_handshake; /* counts in server->handshakes */
	bool eof;          /* LINK_RAW: the peer has ended its side */
	bool shut;         /* our side is shut down, or about to be */
	bool shut_done;
	abx__buf in;    /* read and not yet taken */
	size_t ahead;   /* while on_request runs: bytes behind the head */
	size_t scanned; /* of a head that is not whole */
	abx__outq out;
	uint64_t deadline;    /* of the present state, in loop time; 0: none */
	uint64_t write_since; /* the send queue last moved then; 0: it is empty */
	size_t write_left;
	uint64_t lingered;
	uv_shutdown_t shutdown;
	abx__tls *tls;                      /* NULL: plain */
	const abx__http_protocol *protocol; /* NULL: HTTP/1.1 */
	void *session;                      /* the protocol's */
	abx__http_req req;
};

struct listener {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io; /* first */
	abx__http_server *server;
	struct listener *next;
	bool is_unix;
	bool blocked; /* a connection waits for memory to take it */
	char *path;   /* to remove when closed, if it still is ours */
	dev_t dev;
	ino_t ino;
};

struct abx__http_server {
	abx__http_server_options opts;
	struct listener *listeners;
	abx__http_link *links;
	unsigned link_count;
	unsigned bulk;       /* links that read into the large buffer */
	unsigned handshakes; /* links that are not through it */
	char *read_small, *read_large;
	char *plain;    /* what TLS has opened, for one frame */
	uv_idle_t idle; /* runs kicked links */
	uv_timer_t sweep;
	uint64_t sweep_at; /* 0: the timer sleeps */
	abx__http_link *kicks, **kicks_tail;
	unsigned handles; /* open; the server is freed with the last */
	bool closing;
	void (*closed)(void *userdata);
	void *closed_userdata;
	time_t date_at;
	char date[40];
};

/* http-listen.c */
void abx__http_listener_close(struct listener *listener);

/* http-server.c */
void abx__http_server_connection(uv_stream_t *stream,
				 int status);           /* libuv's, of a listener */
void abx__http_server_unhold(abx__http_server *server); /* a handle less of the server */
void abx__http_link_kick(abx__http_link *link);
void abx__http_link_abort(abx__http_link *link); /* closes at once; `closed` says false */
void abx__http_link_set_deadline(abx__http_link *link, uint64_t after_ms); /* 0: none */
/* Its protocol's look() runs then at the latest. */
void abx__http_link_watch(abx__http_link *link, uint64_t after_ms);
void abx__http_link_write_queued(
	abx__http_link *link); /* bytes wait for the peer: watch them */
const char *abx__http_server_date(abx__http_server *server);

/* http-req.c: takes bytes, runs the exchange on, leaves the reading switched as it should
 * be. */
void abx__http_link_feed(abx__http_link *link, const char *data, size_t len);
void abx__http_link_run(abx__http_link *link);
void abx__http_link_peer_ended(abx__http_link *link);
void abx__http_link_peer_failed(abx__http_link *link);
/* Shuts the sending side and reads on for a while, so that what was said last is not lost
 * in a reset. */
void abx__http_link_linger(abx__http_link *link);
/* Hands the link to its server's other protocol. */
void abx__http_link_switch(abx__http_link *link);

/* http-exchange.c */
void abx__http_req_done(abx__http_req *req);
/* The body's framing, from the head. */
void abx__http_req_frame(abx__http_req *req);
bool abx__http_req_wants_body(const abx__http_req *req);
void abx__http_req_tell(abx__http_req *req, const char *data, size_t len, int r);
/* Runs `drain` when it is due; true: it ran. */
bool abx__http_req_drain(abx__http_req *req);

/* http-res.c */
extern const abx__http_req_ops abx__http1_ops;
void abx__http_link_flush(abx__http_link *link);
size_t abx__http_link_queued(const abx__http_link *link);
void abx__http_link_refuse(abx__http_link *link, int status, const char *why);
void abx__http_link_shut(abx__http_link *link);
/* The queue has grown: `drain` is due when it has fallen again. */
void abx__http_res_note_queue(abx__http_req *req);

/* http-secure.c */
#define ABX__HTTP_PLAIN_BYTES ((size_t)64 << 10)
int abx__http_link_secure(abx__http_link *link); /* ABX_ENOMEM */
void abx__http_link_feed_wire(abx__http_link *link, const char *data, size_t len);
void abx__http_link_unsecure(abx__http_link *link);
/* The wire has ended: did the peer say so before? */
void abx__http_link_wire_ended(abx__http_link *link);

#endif

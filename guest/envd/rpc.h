/*
 * rpc.h - one Connect call: its codec, its message, its answer (contract/envd.md, section
 * 6).
 *
 * A call lives until the exchange is over and nobody holds a reference. After the peer is
 * gone `req` is NULL and every answering function does nothing, so handlers need not ask.
 */
#ifndef ABX_ENVD_RPC_H
#define ABX_ENVD_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

#include "envd/users.h"
#include "io/connect-code.h"
#include "io/connect-frame.h"
#include "io/http-server.h"

struct abx__envd;
typedef struct abx__rpc abx__rpc;

enum abx__rpc_kind { ABX__RPC_UNARY, ABX__RPC_SERVER_STREAM, ABX__RPC_CLIENT_STREAM };

typedef struct abx__rpc_method {
	const char *path; /* "/process.Process/Start" */
	enum abx__rpc_kind kind;
	const ProtobufCMessageDescriptor *input;
	size_t max_bytes; /* of one request message; 0: 8 MiB */
	/* Unary and server streams: `rpc->in` is there. Must answer, now or later. */
	void (*handle)(abx__rpc *rpc);
	/* Client streams: each message, given back by the caller; then the end of the
	 * input. */
	void (*on_message)(abx__rpc *rpc, ProtobufCMessage *msg);
	void (*on_end)(abx__rpc *rpc);
} abx__rpc_method;

struct abx__rpc {
	struct abx__envd *envd;
	abx__http_req *req; /* NULL once the exchange is over */
	const abx__rpc_method *method;
	ProtobufCMessage *in;
	abx__user user;
	bool is_json;
	bool is_done; /* answered in full */
	unsigned refs;
	uint64_t timeout_ms;  /* Connect-Timeout-Ms; 0: none */
	uint64_t deadline_ms; /* on the loop's clock; 0: none. Start takes it over for its
				 process */
	uint64_t keepalive_ms;
	uint64_t sent_ms;  /* when a stream last sent something */
	uv_timer_t *timer; /* made when a call has to wait */
	abx__connect_parser parser;
	bool has_input;                    /* the one message of a server stream came */
	const ProtobufCMessage *keepalive; /* of this stream; NULL: none */
	/* Runs once, when the exchange is over (answered or not); may be NULL. */
	void (*on_gone)(abx__rpc *rpc);
	void *data;
};

/* Takes a request whose path names `method`. */
void abx__rpc_accept(struct abx__envd *envd, abx__http_req *req,
		     const abx__rpc_method *method, const abx__user *user);
abx__rpc *abx__rpc_ref(abx__rpc *rpc);
void abx__rpc_unref(abx__rpc *rpc);

/* The answer of a unary or client-stream call. */
void abx__rpc_reply(abx__rpc *rpc, const ProtobufCMessage *msg);
/* The same with the message printed already, in the call's codec. */
void abx__rpc_reply_encoded(abx__rpc *rpc, const abx__buf *encoded);
void abx__rpc_fail(abx__rpc *rpc, enum abx__connect_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As above with the code of one of our errors. */
void abx__rpc_fail_error(abx__rpc *rpc, const abx_error *err);

/* Server streams: messages, then the end. `encoded` comes from abx__rpc_encode() with
 * this call's codec. */
int abx__rpc_encode(bool is_json, const ProtobufCMessage *msg, abx__buf *buf);
void abx__rpc_send(abx__rpc *rpc, const ProtobufCMessage *msg);
void abx__rpc_send_encoded(abx__rpc *rpc, const void *encoded, size_t len);
/* From now on this is sent when nothing else was for the call's interval. Borrowed. */
void abx__rpc_set_keepalive(abx__rpc *rpc, const ProtobufCMessage *msg);
/* The last message and the end in one piece. */
void abx__rpc_send_last(abx__rpc *rpc, const ProtobufCMessage *msg);

/* A Connect error outside a call: refused before its handler (authentication). */
void abx__rpc_refuse(abx__http_req *req, enum abx__connect_code code,
		     const char *message);

#endif

/*
 * request.h - one exchange with the platform or a sandbox: addresses, headers and
 * credentials in one place.
 */
#ifndef ABX_CLIENT_REQUEST_H
#define ABX_CLIENT_REQUEST_H

#include <agentbox/agentbox.h>
#include <json-c/json.h>

#include "client/client.h"
#include "client/op.h"

#define ABX__ENVD_PORT 49983
#define ABX__INTERPRETER_PORT 49999
#define ABX__MAX_METADATA 64
#define ABX__MAX_REQUEST_HEADERS (12 + ABX__MAX_METADATA)

enum abx__where {
	ABX__TO_E2B,     /* the control API, path behind its base */
	ABX__TO_NATIVE,  /* path behind /v1 */
	ABX__TO_SANDBOX, /* a port of `sandbox` */
	ABX__TO_CONSOLE, /* path behind a console's /api; behind /v1 where there is none
			  */
};

typedef struct abx__request {
	enum abx__where where;
	const char *method;
	const char *path;     /* begins with '/', encoded */
	abx_sandbox *sandbox; /* of ABX__TO_SANDBOX */
	uint16_t port;        /* of ABX__TO_SANDBOX; 0: envd's */
	const char *user;     /* Basic user for envd's services; NULL: the default */
	const char
		*content_type; /* of the body; NULL: application/json when there is one */
	uint32_t timeout_ms;   /* 0: the client's; ABX_NO_TIMEOUT */
	uint32_t server_timeout_ms; /* Connect-Timeout-Ms; 0: none is sent */
	bool is_rpc;                /* Connect-Protocol-Version */
	bool is_stream;             /* Keepalive-Ping-Interval */
	size_t max_answer;          /* 0: 16 MiB */
	const char *const *headers; /* more of them, "Name: value"; NULL at the end */
} abx__request;

/* Everything of an exchange that is text. Zero-initialised is empty. */
typedef struct abx__prepared {
	char *url;
	char *headers[ABX__MAX_REQUEST_HEADERS + 1];
	size_t header_count;
} abx__prepared;

void abx__prepared_done(abx__prepared *prepared); /* wipes: keys and tokens are in it */
/* ABX_EUNSUPPORTED (no native API there), ABX_EINVAL (no cluster chosen), ABX_ENOMEM. */
int abx__request_prepare(abx_client *client, const abx__request *req,
			 abx__prepared *prepared, abx_error **reterr);
/* Fills url, headers, socket, peer and deadlines of `opts`; they borrow from `prepared`
 * and `client`. */
void abx__request_apply(abx_client *client, const abx__request *req,
			const abx__prepared *prepared, abx__http_call_options *opts);

/* Sends `op`'s request; op->out is its body (op->out_len), the answer is collected and
   given to op->on_answer. Started or abandoned when it returns, so `return
   abx__request_send(...)` ends a start function. */
int abx__request_send(abx_op *op, const abx__request *req, abx_error **reterr);
/* From on_answer (or a start): sends another request for the same operation, with op->out
   as its body. When this gives ABX_OK, return ABX_OK from on_answer and leave the result
   for the next answer. */
int abx__request_again(abx_op *op, const abx__request *req, abx_error **reterr);
/* Takes `json` and prints it as op's body. */
int abx__request_json(abx_op *op, json_object *json, abx_error **reterr);

#endif

/*
 * gateway-priv.h - what gateway.c (life, refusals), passage.c (one request on its way)
 * and arm.c share.
 */
#ifndef ABX_GATEWAY_GATEWAY_PRIV_H
#define ABX_GATEWAY_GATEWAY_PRIV_H

#include "gateway/gateway.h"
#include "gateway/route.h"
#include "gateway/upstream.h"

typedef struct passage passage;
typedef struct arming arming;

struct abx__gateway {
	abx__gateway_options opts;
	abx__upstreams *pool;
	passage *passages;
	arming *armings;
	abx__runtime runtime;
	uv_timer_t sweep;
	bool sweeping;
	bool closing;
	unsigned pending; /* what must be gone before `closed` */
	void (*closed)(void *userdata);
	void *closed_userdata;
};

/* The deadlines need a look now and then from here on. */
void abx__gateway_wake(abx__gateway *gateway);
/* One thing less that holds the gateway open. */
void abx__gateway_unhold(abx__gateway *gateway);

/* Words of refusals that have a page of their own. */
#define ABX__GATEWAY_TOKEN_HEADER "e2b-traffic-access-token"
#define ABX__GATEWAY_NOT_FOUND "The sandbox was not found"
#define ABX__GATEWAY_NOT_RUNNING "The sandbox is not running"
#define ABX__GATEWAY_PAUSED "The sandbox is paused"
#define ABX__GATEWAY_RESERVED                                           \
	"This path is reserved for the E2B control plane; a sandbox's " \
	"address does not reach it"
#define ABX__GATEWAY_WAKES_NOT                                         \
	"The sandbox is paused, and wakes up for requests that carry " \
	"its access token in the header 'X-Access-Token'"
#define ABX__GATEWAY_PORT_CLOSED "The sandbox is running but port is not open"
#define ABX__GATEWAY_NO_INTERPRETER                                                 \
	"This sandbox has no code interpreter: its image's python3 needs the "      \
	"package ipykernel (Debian: python3-ipykernel). Use an image that has it, " \
	"as the template code-interpreter-v1 does"
#define ABX__GATEWAY_TOKEN_MISSING                                    \
	"Sandbox is secured with traffic access token. Token header " \
	"'" ABX__GATEWAY_TOKEN_HEADER "' is missing"
#define ABX__GATEWAY_TOKEN_WRONG                                                  \
	"Sandbox is secured with traffic access token. Provided token in header " \
	"'" ABX__GATEWAY_TOKEN_HEADER "' is invalid"

/* pages.c: the data plane's error answers, a page for a browser; `form` decides about the
 * JSON's shape. `port` 0: not named. */
void abx__gateway_refuse(abx__http_req *req, enum abx__route_form form, int status,
			 const char *id, uint16_t port, const char *message);

/* 400 for what names no sandbox and port: text for E2B's forms, {"error": text} for
 * Agent-Sandbox's. */
void abx__gateway_refuse_route(abx__http_req *req, const abx__route *route);
/* 404 for one of envd's control routes. */
void abx__gateway_refuse_control(abx__http_req *req, const char *target);

/* admit.c */

/* The words of the 403 for a request that may not come in; NULL: it may. */
const char *abx__gateway_bars(const abx__sandbox_rec *rec, uint16_t port,
			      const abx__http_req *req);
/* The same for one that would wake a paused sandbox. */
const char *abx__gateway_bars_waking(const abx__sandbox_rec *rec, const abx__route *route,
				     const abx__http_req *req);
/* The request carries a proof that is as good as a key: the traffic token, or a signature
   that envd will check. */
bool abx__gateway_has_proof(const abx__sandbox_rec *rec, const abx__route *route,
			    const abx__http_req *req);
/* Its ports of this number speak TLS. */
bool abx__gateway_speaks_tls(const abx__sandbox_rec *rec, uint16_t port);
/* The Host the sandbox is told instead of the client's; *ret stays when it is that. */
int abx__gateway_host(const abx__sandbox_rec *rec, uint16_t port, char **ret);

/* passage.c: carries the request, once the sandbox runs; the record is valid for this
 * turn. */
void abx__passage_start(abx__gateway *gateway, abx__http_req *req,
			const abx__route *route, const abx__sandbox_rec *rec);
/* Breaks off what has not moved since `before` (loop time). */
void abx__passages_expire(abx__gateway *gateway, uint64_t before);
void abx__passages_abort(abx__gateway *gateway);

/* arm.c */
extern const abx__runtime_ops abx__gateway_runtime_ops;
void abx__armings_abort(abx__gateway *gateway);

#endif

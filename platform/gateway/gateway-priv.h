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

/* The data plane's error answers; `form` decides about the body's shape. `port` 0: not
 * named. */
void abx__gateway_refuse(abx__http_req *req, enum abx__route_form form, int status,
			 const char *id, uint16_t port, const char *message);

/* passage.c: carries the request; the record is valid for this turn. */
void abx__passage_start(abx__gateway *gateway, abx__http_req *req,
			const abx__route *route, const abx__sandbox_rec *rec);
/* Breaks off what has not moved since `before` (loop time). */
void abx__passages_expire(abx__gateway *gateway, uint64_t before);
void abx__passages_abort(abx__gateway *gateway);

/* arm.c */
extern const abx__runtime_ops abx__gateway_runtime_ops;
void abx__armings_abort(abx__gateway *gateway);

#endif

/*
 * gateway.c - see gateway.h: which requests are the gateway's, which of them are refused,
 * and its own life.
 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/error.h"
#include "gateway/gateway-priv.h"

#define SWEEP_MS 5000

/* ---- the decision ---- */

static void read_route(const abx__gateway *gateway, const abx__http_req *req,
		       abx__route *ret)
{
	abx__route_input in = {
		.domain = gateway->opts.domain,
		.target = abx__http_req_target(req),
		.host = abx__http_req_header(req, "host"),
		.e2b_id = abx__http_req_header(req, "e2b-sandbox-id"),
		.e2b_port = abx__http_req_header(req, "e2b-sandbox-port"),
		.x_id = abx__http_req_header(req, "x-sandbox-id"),
		.x_port = abx__http_req_header(req, "x-sandbox-port"),
	};

	abx__route_parse(&in, ret);
}

bool abx__gateway_match(const abx__gateway *gateway, const abx__http_req *req)
{
	abx__route route;

	read_route(gateway, req, &route);
	return route.form != ABX__ROUTE_NONE;
}

static bool key_passes(abx__gateway *gateway, const abx__http_req *req,
		       const abx__route *route, const abx__sandbox_rec *rec)
{
	const char *key;

	if (!gateway->opts.check_key || (rec && abx__gateway_has_proof(rec, route, req)))
		return true;
	key = abx__http_req_header(req, "agentbox-api-key");
	if (!key)
		key = abx__http_req_header(req, "x-api-key");
	return gateway->opts.check_key(gateway->opts.userdata, req, key, rec) == ABX_OK;
}

/* Envd's control routes are nobody's business out here, whether the sandbox exists or
 * not. True: answered. */
static bool refuse_control_route(abx__http_req *req, const abx__route *route)
{
	int r;

	if (route->port != ABX__ROUTE_ENVD_PORT)
		return false;
	r = abx__route_is_control(route->rest);
	if (r == 1)
		abx__gateway_refuse_control(req, route->rest);
	else if (r == ABX_EINVAL)
		abx__gateway_refuse(req, route->form, 400, route->id, 0,
				    "The path's percent encoding is broken");
	else if (r < 0)
		abx__http_res_abort(req);
	return r != 0;
}

/* A host may carry anything behind the id (PORT-ID-anything): it is not the id's, and not
 * told. */
static const abx__sandbox_rec *find(abx__gateway *gateway, abx__route *route)
{
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(gateway->opts.sandboxes, route->id);

	if (route->form != ABX__ROUTE_HOST)
		return rec;
	route->id[strcspn(route->id, "-")] = '\0';
	return rec ? rec : abx__sandboxes_find(gateway->opts.sandboxes, route->id);
}

void abx__gateway_serve(abx__gateway *gateway, abx__http_req *req)
{
	const abx__sandbox_rec *rec;
	const char *refusal;
	abx__route route;

	read_route(gateway, req, &route);
	if (gateway->closing || route.form == ABX__ROUTE_NONE) {
		abx__http_res_abort(req);
		return;
	}
	if (route.wrong) {
		abx__gateway_refuse_route(req, &route);
		return;
	}
	if (refuse_control_route(req, &route))
		return;
	rec = find(gateway, &route);
	refusal = rec ? abx__gateway_bars(rec, route.port, req) : NULL;
	if (rec && !refusal && rec->state == ABX__SANDBOX_PAUSED)
		refusal = abx__gateway_bars_waking(rec, &route, req);
	if (!key_passes(gateway, req, &route, rec))
		abx__gateway_refuse(req, route.form, 401, route.id, 0, "unauthorized");
	else if (!rec)
		abx__gateway_refuse(req, route.form, 502, route.id, 0,
				    ABX__GATEWAY_NOT_FOUND);
	else if (refusal)
		abx__gateway_refuse(req, route.form, 403, route.id, 0, refusal);
	else if (rec->state == ABX__SANDBOX_STARTING ||
		 rec->state == ABX__SANDBOX_STOPPING)
		abx__gateway_refuse(req, route.form, 502, route.id, 0,
				    ABX__GATEWAY_NOT_RUNNING);
	else if (route.port == rec->runtime_port && route.port != ABX__ROUTE_ENVD_PORT &&
		 abx__route_is_control(route.rest) != 0)
		abx__gateway_refuse_control(req, route.rest);
	else
		abx__passage_start(gateway, req, &route, rec);
}

/* ---- life ---- */

static void sweep_cb(uv_timer_t *timer)
{
	abx__gateway *gateway = timer->data;
	uint64_t now = uv_now(gateway->opts.loop);

	if (now > gateway->opts.idle_timeout_ms)
		abx__passages_expire(gateway, now - gateway->opts.idle_timeout_ms);
	abx__upstreams_sweep(gateway->pool);
	if (!gateway->passages && abx__upstreams_kept(gateway->pool) == 0) {
		gateway->sweeping = false;
		uv_timer_stop(timer);
	}
}

void abx__gateway_wake(abx__gateway *gateway)
{
	uint64_t every = SWEEP_MS;

	if (gateway->sweeping || gateway->closing)
		return;
	if (gateway->opts.idle_timeout_ms / 4 < every)
		every = gateway->opts.idle_timeout_ms / 4 + 1;
	if (gateway->opts.kept_ms / 4 < every)
		every = gateway->opts.kept_ms / 4 + 1;
	gateway->sweeping = true;
	uv_timer_start(&gateway->sweep, sweep_cb, every, every);
}

static void set_defaults(abx__gateway_options *opts)
{
	if (!opts->idle_timeout_ms)
		opts->idle_timeout_ms = 640 * 1000;
	if (!opts->connect_ms)
		opts->connect_ms = 10 * 1000;
	if (!opts->retry_ms)
		opts->retry_ms = 100;
	if (!opts->piece_bytes)
		opts->piece_bytes = (size_t)256 << 10;
	if (!opts->kept_most)
		opts->kept_most = 32;
	if (!opts->kept_ms)
		opts->kept_ms = 60 * 1000;
}

int abx__gateway_new(const abx__gateway_options *opts, abx__gateway **ret,
		     abx_error **reterr)
{
	abx__gateway *gateway;

	if (!opts || !opts->loop || !opts->engine || !opts->sandboxes)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"a gateway needs a loop, an engine and the sandboxes");
	gateway = abx__calloc(1, sizeof(*gateway));
	if (!gateway)
		return abx__error_nomem(reterr);
	gateway->opts = *opts;
	set_defaults(&gateway->opts);
	gateway->runtime.ops = &abx__gateway_runtime_ops;
	gateway->pool = abx__upstreams_new(&(abx__upstreams_options){
		.loop = opts->loop,
		.engine = opts->engine,
		.piece_bytes = gateway->opts.piece_bytes,
		.kept_most = gateway->opts.kept_most,
		.kept_ms = gateway->opts.kept_ms,
		.connect_ms = gateway->opts.connect_ms,
		.secure = gateway->opts.secure,
		.userdata = gateway->opts.secure_userdata,
	});
	if (!gateway->pool) {
		abx__free(gateway);
		return abx__error_nomem(reterr);
	}
	uv_timer_init(opts->loop, &gateway->sweep);
	uv_unref((uv_handle_t *)&gateway->sweep);
	gateway->sweep.data = gateway;
	*ret = gateway;
	return ABX_OK;
}

static void pool_closed(void *userdata)
{
	abx__gateway *gateway = userdata;
	void (*closed)(void *) = gateway->closed;
	void *closed_userdata = gateway->closed_userdata;

	abx__free(gateway);
	if (closed)
		closed(closed_userdata);
}

void abx__gateway_unhold(abx__gateway *gateway)
{
	if (--gateway->pending == 0 && gateway->closing)
		abx__upstreams_close(gateway->pool, pool_closed, gateway);
}

static void sweep_closed(uv_handle_t *handle)
{
	abx__gateway_unhold(handle->data);
}

void abx__gateway_close(abx__gateway *gateway, void (*done)(void *userdata),
			void *userdata)
{
	gateway->closing = true;
	gateway->closed = done;
	gateway->closed_userdata = userdata;
	gateway->pending++;
	uv_close((uv_handle_t *)&gateway->sweep, sweep_closed);
	abx__passages_abort(gateway);
	abx__armings_abort(gateway);
}

abx__runtime *abx__gateway_runtime(abx__gateway *gateway)
{
	return &gateway->runtime;
}

/*
 * router.c - from a request to its handler: surface, route, key, role, body, in this
 * order.
 *
 * A path nobody knows is 404, a known path with another method 405 with Allow, a known
 * operation that is not built yet 501 with its name. The body is read whole, at most 1
 * MiB, in at most 30 s, before the handler runs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/gen/routes.h"
#include "serve/call.h"

#define TIMER_MS 1000

/* ---- matching ---- */

typedef struct match {
	const abx__route *route; /* NULL: none with this method */
	abx__buf allow;          /* methods of routes with this path */
} match;

/* The first of the table that fits: in it, literal segments come before {parameters}.
   ABX_OK with the outcome in `m`, or ABX_ENOMEM. */
static int find_route(const abx__route *routes, size_t count, const char *method,
		      const char *path, match *m, char *params[ABX__CALL_PARAMS])
{
	for (size_t i = 0; i < count && !m->route; i++) {
		char *found[ABX__CALL_PARAMS] = { 0 };
		int r = abx__route_match(routes[i].path, path, found);

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (strcmp(routes[i].method, method) == 0) {
			m->route = &routes[i];
			memcpy(params, found, sizeof(found));
			return ABX_OK;
		}
		abx__route_params_free(found);
		if (m->allow.len && strstr(abx__buf_str(&m->allow), routes[i].method))
			continue;
		r = abx__buf_addf(&m->allow, "%s%s", m->allow.len ? ", " : "",
				  routes[i].method);
		if (r < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

static int find_in_surface(enum abx__surface surface, const char *method,
			   const char *path, match *m, char *params[ABX__CALL_PARAMS])
{
	int r;

	if (surface == ABX__SURFACE_E2B)
		return find_route(abx__m_e2b_routes, ABX__M_E2B_ROUTE_COUNT, method, path,
				  m, params);
	r = find_route(abx__m_native_routes, ABX__M_NATIVE_ROUTE_COUNT, method, path, m,
		       params);
	if (r < 0 || m->route)
		return r;
	return find_route(abx__native_extra_routes, abx__native_extra_route_count, method,
			  path, m, params);
}

static const abx__endpoint *find_endpoint(enum abx__surface surface,
					  const char *operation)
{
	bool e2b = surface == ABX__SURFACE_E2B;
	const abx__endpoint *table = e2b ? abx__e2b_endpoints : abx__native_endpoints;
	size_t count = e2b ? abx__e2b_endpoint_count : abx__native_endpoint_count;

	for (size_t i = 0; i < count; i++)
		if (strcmp(table[i].operation, operation) == 0)
			return &table[i];
	return NULL;
}

/* ---- the body ---- */

static void on_timer(uv_timer_t *timer)
{
	abx__serve *serve = timer->data;
	int64_t now = serve->clock->mono_ms(serve->clock->userdata);
	bool reading = false;

	for (abx__call *call = serve->calls, *next; call; call = next) {
		next = call->next;
		if (!call->reading)
			continue;
		if (now < call->deadline_ms) {
			reading = true;
			continue;
		}
		/* No orderly answer: the rest of the body would be taken for the next
		 * request. */
		call->reading = false;
		if (call->req)
			abx__http_res_abort(call->req);
	}
	if (!reading)
		uv_timer_stop(timer);
}

/* By the operation's schema: unknown members at any depth, types, ranges. The body
   becomes what was understood, so that a quantity written as a number is text from here
   on. */
static int check_body(abx__call *call, abx_error **reterr)
{
	const abx__schema *schema = call->route->request;
	json_object *understood;
	void *parsed = NULL;
	int r;

	if (!schema || (call->endpoint->flags & ABX__BODY_OWN))
		return ABX_OK;
	r = abx__schema_parse(schema, call->body, 0, &parsed, reterr);
	if (r < 0)
		return r;
	understood = abx__schema_print(schema, parsed, 0);
	abx__schema_free(schema, parsed);
	if (!understood)
		return abx__error_nomem(reterr);
	json_object_put(call->body);
	call->body = understood;
	return ABX_OK;
}

/* False when the call was answered. */
static bool parse_body(abx__call *call, const char *data, size_t len)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r;

	if (len == 0 && (call->endpoint->flags & ABX__BODY_MAYBE)) {
		call->body = json_object_new_object();
		r = call->body ? ABX_OK : abx__error_nomem(&err);
	} else {
		r = abx__json_parse_object(data, len, ABX__SERVE_BODY_MAX, &call->body,
					   &err);
		if (r < 0)
			abx__error_prefix(&err, "request body");
	}
	if (r == ABX_OK)
		r = check_body(call, &err);
	if (r < 0)
		abx__call_error(call, err);
	return r == ABX_OK;
}

static void on_body(abx__http_req *req, int r, const char *data, size_t len,
		    void *userdata)
{
	abx__call *call = userdata;

	(void)req;
	call->reading = false;
	if (r == ABX_ETOOBIG)
		abx__call_fail(call, 413, "request body is over %zu bytes",
			       ABX__SERVE_BODY_MAX);
	else if (r < 0 && call->req)
		abx__http_res_abort(call->req);
	else if (r == ABX_OK && parse_body(call, data, len))
		call->endpoint->handle(call);
	abx__call_drop(call);
}

static void read_body(abx__call *call)
{
	abx__serve *serve = call->serve;

	call->reading = true;
	call->deadline_ms = serve->clock->mono_ms(serve->clock->userdata) +
			    ABX__SERVE_BODY_TIMEOUT_MS;
	if (!uv_is_active((uv_handle_t *)&serve->timer))
		uv_timer_start(&serve->timer, on_timer, TIMER_MS, TIMER_MS);
	abx__call_hold(call);
	abx__http_req_read_all(call->req, ABX__SERVE_BODY_MAX, on_body, call);
}

/* ---- the way ---- */

/* An admin who acts as somebody else must not act as itself instead. True when the call
 * was answered. */
static bool asks_for_another(abx__call *call)
{
	static const char *const names[] = { "X-Impersonate-Team", "X-Impersonate-User" };

	for (size_t i = 0; call->who.admin && i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = abx__http_req_header(call->req, names[i]);

		if (!value || !*value)
			continue;
		abx__call_fail(call, 501, "%s is not implemented by this server",
			       names[i]);
		return true;
	}
	return false;
}

/* False when the call was answered. */
static bool authenticate(abx__call *call)
{
	const abx__identity *who;
	const char *why = NULL;

	if (call->route->auth == ABX__AUTH_NONE)
		return true;
	who = abx__auth_check(call->serve, call->req, &why);
	if (!who) {
		abx__call_fail(call, 401, "%s", why);
		return false;
	}
	call->who.admin = who->admin;
	call->who.key_name = "";
	call->who.team = abx__strdup(who->team);
	call->who.user = abx__strdup(who->user);
	call->who.namespace_ = abx__strdup(who->namespace_);
	if (asks_for_another(call))
		return false;
	if (!call->who.team || !call->who.user || !call->who.namespace_) {
		abx__call_nomem(call);
		return false;
	}
	if (call->route->auth == ABX__AUTH_ADMIN && !call->who.admin) {
		abx__call_fail(call, 403, "admin api key required");
		return false;
	}
	return true;
}

static void dispatch(abx__call *call, const match *m, const char *path)
{
	if (!m->route && m->allow.len == 0) {
		abx__call_fail(call, 404, "no such path: %s %s",
			       abx__http_req_method(call->req), path);
		return;
	}
	if (!m->route) {
		abx__call_header(call, "Allow", abx__buf_str(&m->allow));
		abx__call_fail(call, 405, "method %s is not allowed for %s; allowed: %s",
			       abx__http_req_method(call->req), path,
			       abx__buf_str(&m->allow));
		return;
	}
	call->route = m->route;
	if (!authenticate(call))
		return;
	call->endpoint = find_endpoint(call->surface, m->route->operation_id);
	if (!call->endpoint)
		abx__call_fail(call, 501, "%s is not implemented by this server",
			       m->route->operation_id);
	else if (call->endpoint->flags & (ABX__BODY | ABX__BODY_MAYBE))
		read_body(call);
	else
		call->endpoint->handle(call);
}

static const char *strip(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	if (strncmp(path, prefix, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return path + n;
}

static enum abx__surface surface_of(const char **path, bool e2b_only)
{
	static const char *const e2b[] = { "/agent-sandbox/api/e2b", "/e2b" };
	const char *rest;

	for (size_t i = 0; i < sizeof(e2b) / sizeof(e2b[0]); i++) {
		rest = strip(*path, e2b[i]);
		if (rest) {
			*path = rest;
			return ABX__SURFACE_E2B;
		}
	}
	if (e2b_only)
		return ABX__SURFACE_E2B;
	rest = strip(*path, "/agent-sandbox/api/native");
	if (rest)
		*path = rest;
	if (rest || strip(*path, "/v1") || strip(*path, "/ping") ||
	    strip(*path, "/openapi.json"))
		return ABX__SURFACE_NATIVE;
	return ABX__SURFACE_E2B;
}

void abx__serve_request(abx__serve *serve, abx__http_req *req, bool e2b_only)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strdup(abx__http_req_path(req));
	const char *rest = path ? path : "/";
	enum abx__surface surface = surface_of(&rest, e2b_only);
	match m = { 0 };
	abx__call *call = abx__call_new(serve, req, surface);

	if (!call)
		return;
	abx__call_hold(call); /* it may be over before this function is */
	if (!path || find_in_surface(surface, abx__http_req_method(req), rest, &m,
				     call->params) < 0)
		abx__call_nomem(call);
	else
		dispatch(call, &m, rest);
	abx__buf_done(&m.allow);
	abx__call_drop(call);
}

/* ---- the room ---- */

int abx__serve_new(const abx__serve_options *opts, abx__serve **ret, abx_error **reterr)
{
	abx__serve *serve = abx__calloc(1, sizeof(*serve));

	if (!serve)
		return abx__error_nomem(reterr);
	serve->cluster_id = abx__strdup(opts->cluster_id);
	serve->base_url = abx__strdup(opts->base_url);
	if (!serve->cluster_id || !serve->base_url) {
		abx__free(serve->cluster_id);
		abx__free(serve->base_url);
		abx__free(serve);
		return abx__error_nomem(reterr);
	}
	serve->loop = opts->loop;
	serve->control = opts->control;
	serve->keys = opts->keys;
	serve->clock = opts->clock;
	serve->log = opts->log;
	uv_timer_init(opts->loop, &serve->timer);
	serve->timer.data = serve;
	*ret = serve;
	return ABX_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
	abx__serve *serve = handle->data;

	serve->closed(serve->closed_userdata);
	abx__free(serve->cluster_id);
	abx__free(serve->base_url);
	abx__free(serve);
}

void abx__serve_close(abx__serve *serve, void (*done)(void *userdata), void *userdata)
{
	serve->closed = done;
	serve->closed_userdata = userdata;
	uv_close((uv_handle_t *)&serve->timer, on_timer_closed);
}

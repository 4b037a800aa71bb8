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
#include "serve/pod-call.h"
#include "serve/prometheus.h"
#include "serve/sandbox-process.h"

#define TIMER_MS 1000
#define POD_PIECE ((size_t)64 << 10)
#define VERSION_HEADER "X-AgentBox-Client-Version"

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

/* E2B's API refuses what it does not know everywhere; of the native one the routes its
   document says so of. */
static bool is_strict(const abx__call *call)
{
	return call->surface == ABX__SURFACE_E2B || call->route->strict;
}

/* By the operation's schema: types, ranges, and where the route is strict unknown members
   at any depth. The body becomes what was understood, so that a quantity written as a
   number is text from here on. */
static int check_body(abx__call *call, abx_error **reterr)
{
	const abx__schema *schema = call->route->request;
	unsigned flags = is_strict(call) ? 0 : ABX__SCHEMA_TOLERANT;
	json_object *understood;
	void *parsed = NULL;
	int r;

	if (!schema || (call->endpoint->flags & ABX__BODY_OWN))
		return ABX_OK;
	r = abx__schema_parse(schema, call->body, flags, &parsed, reterr);
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

static int parse_body(abx__call *call, const char *data, size_t len, abx_error **reterr)
{
	int r;

	if (len == 0 && (call->endpoint->flags & ABX__BODY_MAYBE)) {
		call->body = json_object_new_object();
		return call->body ? ABX_OK : abx__error_nomem(reterr);
	}
	r = abx__json_parse_object(data, len, ABX__SERVE_BODY_MAX, &call->body, reterr);
	if (r < 0)
		abx__error_prefix(reterr, "request body");
	return r;
}

/* Unknown members of a strict route are refused before the gate, everything else that may
   be wrong with the body after it: nobody is asked to approve a misspelt field, and an
   agent is not told more than that the write waits. */
static void take_body(abx__call *call, const char *data, size_t len)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = parse_body(call, data, len, &err);

	if (r == ABX_OK)
		r = check_body(call, &err);
	if (r < 0 && is_strict(call) &&
	    abx__str_ends(abx_error_message(err), ": unknown field"))
		abx__call_error(call, err);
	else if (!abx__gate_pass(call, data, len))
		return;
	else if (r < 0)
		abx__call_error(call, err);
	else
		call->endpoint->handle(call);
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
	else if (r == ABX_OK)
		take_body(call, data, len);
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

/* False when the call was answered. */
static bool authenticate(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	bool admins = call->route->auth == ABX__AUTH_ADMIN;
	int r;

	if (call->route->auth == ABX__AUTH_NONE)
		return true;
	r = abx__auth_check(call->serve, call->req, &call->who, &err);
	if (r == ABX_OK)
		r = abx__auth_impersonate(call->serve, call->req, &call->who, &err);
	if (r < 0) {
		abx__call_error(call, err);
		return false;
	}
	if (admins && !call->who.admin) {
		abx__call_fail(call, 403,
			       call->who.session ? "admin access required"
						 : "admin api key required");
		return false;
	}
	return true;
}

/* MAJOR.MINOR.PATCH with or without "v", -PRERELEASE and +BUILD (semver.org, 2.0.0). */
static bool is_semver(const char *s)
{
	static const char digits[] = "0123456789";
	static const char rest[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ-.";

	s += *s == 'v';
	for (int part = 0; part < 3; part++) {
		size_t n = strspn(s, digits);

		if (n == 0 || n > 9 || (n > 1 && *s == '0'))
			return false;
		s += n;
		if (part < 2 && *s++ != '.')
			return false;
	}
	for (const char *mark = "-+"; *mark; mark++) {
		if (*s != *mark)
			continue;
		s += 1 + strspn(s + 1, rest);
		if (s[-1] == *mark)
			return false;
	}
	return *s == '\0';
}

/* Writes of a client that tells its key in the native header; false when the call was
   answered. Clients from 0.0.0 on are served, so a version is refused that is none. */
static bool check_version(abx__call *call)
{
	const char *method = abx__http_req_method(call->req);
	const char *version = abx__http_req_header(call->req, VERSION_HEADER);
	ABX_CLEANUP_JSON json_object *detail = NULL;

	if (call->surface != ABX__SURFACE_NATIVE || strcmp(method, "GET") == 0 ||
	    !abx__http_req_header(call->req, "AGENTBOX-API-KEY") || !version ||
	    is_semver(version))
		return true;
	detail = json_object_new_string("the oldest client this server takes is 0.0.0; "
					"the header is a semantic version, like 1.2.3");
	if (!detail)
		abx__call_nomem(call);
	else
		abx__call_fail_detail(call, 426, abx_take(detail),
				      VERSION_HEADER " is not a version: upgrade "
						     "the client");
	return false;
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
	if (!authenticate(call) || !check_version(call))
		return;
	call->endpoint = find_endpoint(call->surface, m->route->operation_id);
	if (!call->endpoint)
		abx__call_fail(call, 501, "%s is not implemented by this server",
			       m->route->operation_id);
	else if (call->endpoint->flags & (ABX__BODY | ABX__BODY_MAYBE))
		read_body(call);
	else if (abx__gate_pass(call, NULL, 0))
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
	if (rest || strip(*path, "/v1") || strip(*path, "/ws") || strip(*path, "/ping") ||
	    strip(*path, "/openapi.json") || strip(*path, "/metrics"))
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
	call->path = abx__strdup(rest);
	if (!path || !call->path ||
	    find_in_surface(surface, abx__http_req_method(req), rest, &m, call->params) <
		    0)
		abx__call_nomem(call);
	else
		dispatch(call, &m, rest);
	abx__buf_done(&m.allow);
	abx__call_drop(call);
}

/* ---- the room ---- */

static void serve_free(abx__serve *serve)
{
	abx__approvals_free(serve->approvals);
	abx__free(serve->exec_tokens.items);
	abx__free(serve->cluster_id);
	abx__free(serve->base_url);
	abx__free(serve->console_url);
	abx__meters_free(serve->meters);
	abx__free(serve);
}

int abx__serve_new(const abx__serve_options *opts, abx__serve **ret, abx_error **reterr)
{
	abx__serve *serve = abx__calloc(1, sizeof(*serve));

	if (!serve)
		return abx__error_nomem(reterr);
	serve->cluster_id = abx__strdup(opts->cluster_id);
	serve->base_url = abx__strdup(opts->base_url);
	serve->console_url = abx__strdup(opts->console_url);
	serve->meters = abx__prometheus_new();
	if (!serve->cluster_id || !serve->base_url || !serve->meters ||
	    (opts->console_url && !serve->console_url) ||
	    abx__approvals_new(opts->clock, &serve->approvals, NULL) < 0) {
		serve_free(serve);
		return abx__error_nomem(reterr);
	}
	serve->loop = opts->loop;
	serve->engine = opts->engine;
	serve->jwt_secret = opts->jwt_secret;
	serve->control = opts->control;
	serve->keys = opts->keys;
	serve->clock = opts->clock;
	serve->log = opts->log;
	serve->max_timeout_ms = opts->max_timeout_ms;
	uv_timer_init(opts->loop, &serve->timer);
	serve->timer.data = serve;
	uv_timer_init(opts->loop, &serve->sweep);
	serve->sweep.data = serve;
	serve->scratch.size = POD_PIECE;
	serve->handles = 2;
	*ret = serve;
	return ABX_OK;
}

void abx__serve_retain(abx__serve *serve)
{
	serve->handles++;
}

void abx__serve_release(abx__serve *serve)
{
	if (--serve->handles > 0)
		return;
	serve->closed(serve->closed_userdata);
	serve_free(serve);
}

static void on_timer_closed(uv_handle_t *handle)
{
	abx__serve_release(handle->data);
}

void abx__serve_close(abx__serve *serve, void (*done)(void *userdata), void *userdata)
{
	serve->closed = done;
	serve->closed_userdata = userdata;
	abx__sandbox_processes_abort(serve);
	abx__pod_calls_abort(serve);
	uv_close((uv_handle_t *)&serve->timer, on_timer_closed);
	uv_close((uv_handle_t *)&serve->sweep, on_timer_closed);
}

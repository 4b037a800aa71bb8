/*
 * server.c - layers, outermost first: CORS, access token, Basic user, start gate, routes
 * (contract/envd.md, section 1).
 */
#include "envd/server.h"

#include <string.h>

#include "base/alloc.h"
#include "envd/answer.h"
#include "envd/auth.h"
#include "envd/env-vars.h"
#include "envd/envd.h"
#include "envd/files.h"
#include "envd/fs-rpc.h"
#include "envd/init.h"
#include "envd/metrics.h"
#include "envd/process-rpc.h"
#include "envd/watch-rpc.h"
#include "io/json.h"

#define EXPOSED_HEADERS                                                                 \
	"Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, Cache-Control, " \
	"X-Content-Type-Options"

/* ---- CORS ---- */

/* True when the request was a preflight and is answered. */
static bool handle_cors(abx__http_req *req)
{
	const char *method = abx__http_req_header(req, "Access-Control-Request-Method");
	const char *headers = abx__http_req_header(req, "Access-Control-Request-Headers");

	if (strcmp(abx__http_req_method(req), "OPTIONS") == 0 && method) {
		abx__http_res_header(req, "Vary",
				     "Origin, Access-Control-Request-Method, "
				     "Access-Control-Request-Headers");
		abx__http_res_header(req, "Access-Control-Allow-Origin", "*");
		abx__http_res_header(req, "Access-Control-Allow-Methods",
				     "HEAD, GET, POST, PUT, PATCH, DELETE");
		abx__http_res_header(req, "Access-Control-Allow-Headers",
				     headers ? headers : "*");
		abx__http_res_header(req, "Access-Control-Max-Age", "7200");
		abx__http_res_send(req, 204, NULL, NULL, 0);
		return true;
	}
	if (abx__http_req_header(req, "Origin")) {
		abx__http_res_header(req, "Vary", "Origin");
		abx__http_res_header(req, "Access-Control-Allow-Origin", "*");
		abx__http_res_header(req, "Access-Control-Expose-Headers",
				     EXPOSED_HEADERS);
	}
	return false;
}

/* ---- small endpoints ---- */

static void handle_health(abx__envd *envd, abx__http_req *req)
{
	(void)envd;
	abx__http_res_header(req, "Cache-Control", "no-store");
	abx__http_res_send(req, 204, NULL, NULL, 0);
}

static void handle_envs(abx__envd *envd, abx__http_req *req)
{
	abx__map vars = ABX__MAP_INIT;
	json_object *obj = json_object_new_object();
	int r = abx__env_vars_defaults(envd, &vars);

	for (size_t i = 0; obj && r >= 0 && i < vars.count; i++)
		r = abx__json_set_str(obj, vars.items[i].key, vars.items[i].value);
	if (r < 0) {
		json_object_put(obj);
		obj = NULL;
	}
	abx__http_res_header(req, "Cache-Control", "no-store");
	abx__answer_json_take(req, 200, "application/json; charset=utf-8", obj);
	abx__map_done(&vars);
}

static void handle_unsupported(abx__envd *envd, abx__http_req *req)
{
	(void)envd;
	abx__answer_error(req, 501, "%s is not supported yet", abx__http_req_path(req));
}

static const struct route {
	const char *path;
	const char *method;
	void (*handle)(abx__envd *envd, abx__http_req *req);
} routes[] = {
	{ "/health", "GET", handle_health },
	{ "/metrics", "GET", abx__metrics_handle },
	{ "/envs", "GET", handle_envs },
	{ "/init", "POST", abx__init_handle },
	{ "/files", "GET", abx__files_handle_get },
	{ "/files", "POST", abx__files_handle_post },
	{ "/files/compose", "POST", abx__files_handle_compose },
	{ "/freeze", "POST", handle_unsupported },
	{ "/unfreeze", "POST", handle_unsupported },
	{ "/collapse", "POST", handle_unsupported },
	{ "/fsfreeze", "POST", handle_unsupported },
	{ "/fsthaw", "POST", handle_unsupported },
	{ "/upgrade", "POST", handle_unsupported },
};

/* ---- RPCs ---- */

static const abx__rpc_method *find_method(const char *path)
{
	const abx__rpc_method *tables[] = { abx__process_methods, abx__fs_methods,
					    abx__watch_methods };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const abx__rpc_method *m = tables[i]; m->path; m++)
			if (strcmp(m->path, path) == 0)
				return m;
	return NULL;
}

/* `name` is the Basic user or NULL. */
static void handle_rpc(abx__envd *envd, abx__http_req *req, const abx__rpc_method *method,
		       const abx__user *basic)
{
	ABX_CLEANUP(abx__user_done) abx__user user = { 0 };
	ABX_CLEANUP_BUF abx__buf message = ABX__BUF_INIT;

	if (envd->await_init && !envd->is_initialized) {
		abx__rpc_refuse(
			req, ABX__CONNECT_FAILED_PRECONDITION,
			"the sandbox is not ready: envd waits for its first /init");
		return;
	}
	if (basic->name) {
		abx__rpc_accept(envd, req, method, basic);
		return;
	}
	if (abx__users_find(&envd->users, envd->default_user, &user, NULL) == ABX_OK) {
		abx__rpc_accept(envd, req, method, &user);
		return;
	}
	abx__buf_addf(&message, "invalid username: '%.256s'", envd->default_user);
	abx__rpc_refuse(req, ABX__CONNECT_UNAUTHENTICATED, abx__buf_str(&message));
}

/* ---- the way through ---- */

/* A Basic user that exists, or none named: true. Else answered. */
static bool find_basic_user(abx__envd *envd, abx__http_req *req, abx__user *ret)
{
	ABX_CLEANUP(abx__freep) char *name = NULL;
	ABX_CLEANUP_BUF abx__buf message = ABX__BUF_INIT;
	int r = abx__auth_basic_user(abx__http_req_header(req, "Authorization"), &name);

	if (r == 0)
		return true;
	if (r > 0)
		r = abx__users_find(&envd->users, name, ret, NULL);
	if (r == ABX_OK)
		return true;
	if (r == ABX_ENOMEM) {
		abx__rpc_refuse(req, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return false;
	}
	abx__buf_addf(&message, "invalid username: '%.256s'", name);
	abx__rpc_refuse(req, ABX__CONNECT_UNAUTHENTICATED, abx__buf_str(&message));
	return false;
}

static void dispatch(abx__envd *envd, abx__http_req *req, const abx__user *basic)
{
	const char *path = abx__http_req_path(req), *method = abx__http_req_method(req);
	const abx__rpc_method *rpc = find_method(path);
	const char *allowed = NULL;

	if (rpc) {
		handle_rpc(envd, req, rpc, basic);
		return;
	}
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(routes[i].path, path) != 0)
			continue;
		if (strcmp(routes[i].method, method) == 0) {
			routes[i].handle(envd, req);
			return;
		}
		allowed = allowed ? "GET, POST" : routes[i].method;
	}
	if (allowed) {
		abx__http_res_header(req, "Allow", allowed);
		abx__http_res_send(req, 405, NULL, NULL, 0);
		return;
	}
	abx__answer_text(req, 404, "404 page not found\n");
}

void abx__server_on_request(abx__http_req *req, void *userdata)
{
	abx__envd *envd = userdata;
	ABX_CLEANUP(abx__user_done) abx__user basic = { 0 };

	abx__log_debug(&envd->log, "request", "method=%s path=%s",
		       abx__http_req_method(req), abx__http_req_path(req));
	if (handle_cors(req) || !abx__auth_check_token(envd, req) ||
	    !find_basic_user(envd, req, &basic))
		return;
	dispatch(envd, req, &basic);
}

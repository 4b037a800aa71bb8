/*
 * call.c - the life of a call and the shape of its answers.
 */
#include "serve/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/list.h"
#include "serve/prometheus.h"

#define SERVER_VERSION_HEADER "X-AgentBox-Server-Version"

static void call_free(abx__call *call)
{
	if (call->prev)
		call->prev->next = call->next;
	else
		call->serve->calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
	for (size_t i = 0; i < ABX__CALL_PARAMS; i++)
		abx__free(call->params[i]);
	abx__free(call->subject);
	abx__free(call->created);
	abx__free(call->path);
	abx__identity_done(&call->who);
	json_object_put(call->body);
	abx__free(call);
}

void abx__call_hold(abx__call *call)
{
	call->refs++;
}

void abx__call_drop(abx__call *call)
{
	if (--call->refs == 0)
		call_free(call);
}

static void on_orphan_killed(void *userdata, int r, const abx_error *err)
{
	const abx__log *log = userdata;

	if (r < 0 && r != ABX_ENOTFOUND)
		abx__log_warn(log,
			      "sandbox nobody was told about stays until its timeout",
			      "error=\"%s\"", abx_error_message(err));
}

/* The caller left before it read the answer: nobody knows this sandbox. */
static void kill_orphan(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = abx__control_kill(call->serve->control, call->created, "Canceled",
				  on_orphan_killed, (void *)call->serve->log, &err);

	if (r < 0)
		on_orphan_killed((void *)call->serve->log, r, err);
}

static void on_exchange_closed(abx__http_req *req, bool answered, void *userdata)
{
	abx__call *call = userdata;

	(void)req;
	if (!answered && call->created)
		kill_orphan(call);
	call->req = NULL;
	call->reading = false;
	if (call->claim) {
		/* Its `done` will not run: what it held goes here. */
		abx__control_claim_cancel(call->serve->control, call->claim);
		call->claim = NULL;
		abx__call_drop(call);
	}
	if (call->on_gone) {
		void (*gone)(abx__call *) = call->on_gone;

		call->on_gone = NULL;
		gone(call);
	}
	abx__call_drop(call);
}

abx__call *abx__call_new(abx__serve *serve, abx__http_req *req, enum abx__surface surface)
{
	abx__call *call = abx__calloc(1, sizeof(*call));

	if (!call) {
		abx__http_res_abort(req);
		return NULL;
	}
	call->serve = serve;
	call->began_ms = serve->clock->mono_ms(serve->clock->userdata);
	call->req = req;
	call->surface = surface;
	call->refs = 1;
	call->next = serve->calls;
	if (call->next)
		call->next->prev = call;
	serve->calls = call;
	abx__http_req_on_closed(req, on_exchange_closed, call);
	return call;
}

void abx__call_header(abx__call *call, const char *name, const char *value)
{
	if (call->req)
		abx__http_res_header(call->req, name, value);
}

void abx__call_version(abx__call *call)
{
	abx__call_header(call, SERVER_VERSION_HEADER, abx_version());
}

void abx__call_text(abx__call *call, int status, const char *content_type,
		    const char *data, size_t len)
{
	if (!call->req || abx__http_res_begun(call->req))
		return;
	call->reading = false;
	abx__prometheus_answered(call, status);
	if (abx__http_res_header(call->req, SERVER_VERSION_HEADER, abx_version()) < 0 ||
	    abx__http_res_send(call->req, status, content_type, data, len) < 0)
		abx__http_res_abort(call->req);
}

static void send_bytes(abx__call *call, int status, const char *data, size_t len)
{
	abx__call_text(call, status, data ? "application/json" : NULL, data, len);
}

void abx__call_nomem(abx__call *call)
{
	static const char e2b[] = "{\"code\":500,\"message\":\"out of memory\"}";
	static const char native[] = "{\"error\":\"out of memory\"}";
	bool is_e2b = call->surface == ABX__SURFACE_E2B;

	send_bytes(call, 500, is_e2b ? e2b : native, strlen(is_e2b ? e2b : native));
}

void abx__call_json(abx__call *call, int status, json_object *value)
{
	size_t len = 0;
	ABX_CLEANUP(abx__freep) char *text = value ? abx__json_text(value, &len) : NULL;

	json_object_put(value);
	if (text)
		send_bytes(call, status, text, len);
	else
		abx__call_nomem(call);
}

void abx__call_empty(abx__call *call, int status)
{
	send_bytes(call, status, NULL, 0);
}

void abx__call_on_gone(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_empty(call, 204);
	abx__call_drop(call);
}

static json_object *error_body(const abx__call *call, int status, const char *code,
			       json_object *detail, const char *message)
{
	json_object *o = json_object_new_object();
	int r;

	if (!o) {
		json_object_put(detail);
		return NULL;
	}
	if (call->surface == ABX__SURFACE_E2B) {
		json_object_put(detail);
		r = abx__json_set_i64(o, "code", status);
		if (r == ABX_OK)
			r = abx__json_set_str(o, "message", message);
	} else {
		r = detail ? abx__json_set_take(o, "detail", detail) : ABX_OK;
		if (r == ABX_OK && code)
			r = abx__json_set_str(o, "errorCode", code);
		if (r == ABX_OK)
			r = abx__json_set_str(o, "error", message);
	}
	if (r < 0) {
		json_object_put(o);
		return NULL;
	}
	return o;
}

void abx__call_fail_code(abx__call *call, int status, const char *code,
			 json_object *detail, const char *message)
{
	abx__call_json(call, status, error_body(call, status, code, detail, message));
}

void abx__call_fail_detail(abx__call *call, int status, json_object *detail,
			   const char *message)
{
	abx__call_fail_code(call, status, NULL, detail, message);
}

void abx__call_fail(abx__call *call, int status, const char *fmt, ...)
{
	char message[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	abx__utf8_repair(message);
	abx__call_fail_detail(call, status, NULL, message);
}

bool abx__call_timeout_fits(abx__call *call, int64_t ms)
{
	int64_t max = call->serve->max_timeout_ms;
	bool hours = max % 3600000 == 0;

	if (max == 0 || (ms > 0 && ms <= max))
		return true;
	abx__call_fail(call, 400, "Timeout cannot be greater than %lld %s",
		       (long long)(max / (hours ? 3600000 : 1000)),
		       hours ? "hours" : "seconds");
	return false;
}

int abx__call_status_of(const abx_error *err)
{
	switch (abx_error_code(err)) {
	case ABX_EINVAL:
	case ABX_EUNSUPPORTED: /* of a field or value; a whole operation is 501 by its
				  route */
		return 400;
	case ABX_EUNAUTHENTICATED:
		return 401;
	case ABX_EDENIED:
		return 403;
	case ABX_ENOTFOUND:
		return 404;
	case ABX_EEXISTS:
	case ABX_ECONFLICT:
	case ABX_ESTATE:
		return 409;
	case ABX_ETOOBIG:
		return 413;
	case ABX_EEXHAUSTED:
		return 429;
	case ABX_EUNAVAILABLE:
	case ABX_ECANCELED:
		return 503;
	case ABX_ETIMEDOUT:
		return 504;
	default:
		return 500;
	}
}

void abx__call_error(abx__call *call, const abx_error *err)
{
	const char *hint = abx_error_hint(err);
	int status = abx__call_status_of(err);

	if (status == 500)
		abx__log_error(call->serve->log, "request failed",
			       "operation=%s error=\"%s\"",
			       call->route ? call->route->operation_id : "",
			       abx_error_message(err));
	abx__call_fail(call, status, "%s%s%s", abx_error_message(err), hint ? "; " : "",
		       hint ? hint : "");
}

/* [CLUSTER.]ID[-CLUSTER or -CLIENTID], the id itself in E2B's characters. */
static bool id_is_valid(const char *id, const char *cluster)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	const char *dot = strrchr(id, '.');
	const char *tail = dot ? dot + 1 : id;
	size_t n = strspn(tail, plain);

	if (n == 0 || dot == id)
		return false;
	if (!tail[n])
		return true;
	tail += n + 1;
	return tail[-1] == '-' &&
	       (strcmp(tail, cluster) == 0 || tail[strspn(tail, plain)] == '\0');
}

const abx__sandbox_rec *abx__call_sandbox(abx__call *call)
{
	const char *id = call->params[0];
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(abx__control_sandboxes(call->serve->control), id);

	if (call->surface == ABX__SURFACE_E2B &&
	    !id_is_valid(id, call->serve->cluster_id)) {
		abx__call_fail(call, 400, "Invalid sandbox ID");
		return NULL;
	}
	if (rec && rec->state != ABX__SANDBOX_STARTING &&
	    rec->state != ABX__SANDBOX_STOPPING && abx__list_visible(&call->who, rec))
		return rec;
	abx__call_fail(call, 404,
		       "Sandbox \"%s\" doesn't exist or you don't have access to it", id);
	return NULL;
}

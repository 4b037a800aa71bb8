/*
 * gate.c - where a request meets the approvals: which writes are held, and what their
 * caller is told (native-api.md, section 3).
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/call.h"

#define SESSION_HEADER "X-AgentBox-Session-Id"

/* {console}/clusters/{clusterID}/REST; 1, 0 when the console is not known, ABX_ENOMEM. */
static int console_link(const abx__serve *serve, const char *rest, char **ret)
{
	ABX_CLEANUP(abx__freep) char *cluster = NULL;

	if (!serve->console_url)
		return 0;
	cluster = abx__url_encode(serve->cluster_id);
	if (cluster)
		*ret = abx__strf("%s/clusters/%s/%s", serve->console_url, cluster, rest);
	return *ret ? 1 : ABX_ENOMEM;
}

static int put_link(json_object *o, const abx__serve *serve, const char *rest)
{
	ABX_CLEANUP(abx__freep) char *url = NULL;
	int r = console_link(serve, rest, &url);

	return r == 1 ? abx__json_set_str(o, "url", url) : r;
}

static json_object *detail_of(const abx__gated *gated, const char *id,
			      const char *summary, bool once_only)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "approvalId", id) < 0 ||
	    abx__json_set_str(o, "operation", gated->operation) < 0 ||
	    abx__json_set_str(o, "summary", summary) < 0 ||
	    abx__json_set_bool(o, "onceOnly", once_only) < 0)
		return NULL;
	return abx_take(o);
}

static void refuse(abx__call *call, const abx__gated *gated)
{
	ABX_CLEANUP_JSON json_object *o = detail_of(gated, "", gated->summary, false);
	ABX_CLEANUP(abx__freep)
	char *text = abx__strf("%s: never allowed to an agent's key; a person does it",
			       gated->summary);

	if (!o || !text || put_link(o, call->serve, "api-keys") < 0 ||
	    abx__json_set_str(o, "pollUrl", "") < 0 ||
	    abx__json_set_str(o, "expiresAt", "") < 0)
		abx__call_nomem(call);
	else
		abx__call_fail_code(call, 403, "FORBIDDEN_FOR_AGENT", abx_take(o), text);
}

static void hold(abx__call *call, const abx__approval *q)
{
	ABX_CLEANUP_JSON json_object *o =
		detail_of(q->gated, q->id, q->summary, q->gated->once_only);
	ABX_CLEANUP(abx__freep) char *link = abx__strf("approvals?id=%s", q->id);
	ABX_CLEANUP(abx__freep) char *poll = abx__strf("/v1/approvals/%s", q->id);
	ABX_CLEANUP(abx__freep)
	char *text = abx__strf("approval required: %s", q->summary);

	/* To the second, as the documentation has it. */
	if (!o || !link || !poll || !text || put_link(o, call->serve, link) < 0 ||
	    abx__json_set_str(o, "pollUrl", poll) < 0 ||
	    abx__json_set_time(o, "expiresAt", q->expires_ms / 1000 * 1000) < 0)
		abx__call_nomem(call);
	else
		abx__call_fail_code(call, 428, "APPROVAL_REQUIRED", abx_take(o), text);
}

static void on_sweep(uv_timer_t *timer)
{
	abx__serve *serve = timer->data;

	abx__approvals_sweep(serve->approvals);
	if (abx__approvals_is_empty(serve->approvals))
		uv_timer_stop(timer);
}

static void wake_sweep(abx__serve *serve)
{
	if (!uv_is_active((uv_handle_t *)&serve->sweep))
		uv_timer_start(&serve->sweep, on_sweep, ABX__APPROVAL_SWEEP_MS,
			       ABX__APPROVAL_SWEEP_MS);
}

static bool ask(abx__call *call, const abx__gated *gated, const char *body, size_t len)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const char *names[ABX__CALL_PARAMS + 1] = { NULL };
	const abx__gate_call wanted = {
		.gated = gated,
		.path = call->path,
		.names = names,
		.body = body,
		.body_len = len,
		.team = call->who.team,
		.user = call->who.user,
		.key_id = call->who.key_name,
		.session_id = abx__http_req_header(call->req, SESSION_HEADER),
	};
	const abx__approval *q = NULL;
	int r;

	for (size_t i = 0; i < ABX__CALL_PARAMS; i++)
		names[i] = call->params[i];
	r = abx__approvals_check(call->serve->approvals, &wanted, &q, &err);
	if (r == 0) {
		wake_sweep(call->serve);
		hold(call, q);
	} else if (r < 0) {
		abx__call_error(call, err);
	}
	return r == 1;
}

bool abx__gate_pass(abx__call *call, const char *body, size_t len)
{
	const abx__gated *gated;

	if (!call->who.agent || call->surface != ABX__SURFACE_NATIVE)
		return true;
	gated = abx__gated_find(call->route->method, call->route->path);
	if (!gated)
		return true;
	if (gated->refused) {
		refuse(call, gated);
		return false;
	}
	if (abx__keys_has_grant(call->serve->keys, call->who.key_name, gated->operation))
		return true;
	return ask(call, gated, body, len);
}

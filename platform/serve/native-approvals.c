/*
 * native-approvals.c - approvals of the native API (native-api.md, section 13.1): who
 * asked for what, and a person's decision. A grant of key scope is recorded on the key
 * and known by an id made of both, "grk_" + base64url(KEY LF OPERATION).
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "serve/native.h"

#define KEY_GRANT "grk_"

static const char *const status_names[] = { "pending", "approved", "denied", "expired" };
static const char *const scope_names[] = { NULL, "once", "session", "key" };

/* ---- the objects on the wire ---- */

static int put_principal(json_object *o, const char *team, const char *user,
			 const char *key_id)
{
	json_object *p = json_object_new_object();

	if (!p || abx__json_set_take(o, "principal", p) < 0 ||
	    abx__json_set_str(p, "team", team) < 0 ||
	    abx__json_set_str(p, "user", user) < 0)
		return ABX_ENOMEM;
	return *key_id ? abx__json_set_str(p, "keyId", key_id) : ABX_OK;
}

static int put_decision(json_object *o, const abx__approval *q)
{
	if (!q->decided_by)
		return ABX_OK;
	if (abx__json_set_str(o, "decidedBy", q->decided_by) < 0 ||
	    abx__json_set_time(o, "decidedAt", q->decided_ms) < 0)
		return ABX_ENOMEM;
	return abx__native_put_str(o, "scope", scope_names[q->scope]);
}

static json_object *request_view(const abx__approval *q)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "id", q->id) < 0 ||
	    put_principal(o, q->team, q->user, q->key_id) < 0 ||
	    abx__json_set_str(o, "operation", q->gated->operation) < 0 ||
	    abx__json_set_bool(o, "onceOnly", q->gated->once_only) < 0 ||
	    abx__json_set_str(o, "method", q->gated->method) < 0 ||
	    abx__json_set_str(o, "path", q->path) < 0 ||
	    abx__json_set_str(o, "summary", q->summary) < 0 ||
	    abx__json_set_time(o, "createdAt", q->created_ms) < 0 ||
	    abx__json_set_time(o, "expiresAt", q->expires_ms) < 0 ||
	    abx__json_set_str(o, "status", status_names[q->status]) < 0 ||
	    (*q->session_id && abx__json_set_str(o, "sessionId", q->session_id) < 0) ||
	    put_decision(o, q) < 0)
		return NULL;
	return abx_take(o);
}

static json_object *grant_view(const char *id, const char *scope, const char *operation,
			       int64_t created_ms, const char *by)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "id", id) < 0 ||
	    abx__json_set_str(o, "scope", scope) < 0 ||
	    abx__json_set_str(o, "operation", operation) < 0 ||
	    abx__json_set_time(o, "createdAt", created_ms) < 0 ||
	    abx__json_set_str(o, "grantedBy", by) < 0)
		return NULL;
	return abx_take(o);
}

static json_object *session_grant_view(const abx__approval_grant *g)
{
	ABX_CLEANUP_JSON json_object *o = grant_view(
		g->id, "session", g->gated->operation, g->created_ms, g->granted_by);

	if (!o || put_principal(o, g->team, g->user, g->key_id) < 0 ||
	    abx__json_set_str(o, "sessionId", g->session_id) < 0 ||
	    abx__json_set_time(o, "expiresAt", g->expires_ms) < 0)
		return NULL;
	return abx_take(o);
}

static char *key_grant_id(const char *key_name, const char *operation)
{
	ABX_CLEANUP(abx__freep) char *both = abx__strf("%s\n%s", key_name, operation);
	ABX_CLEANUP(abx__freep)
	char *code = both ? abx__base64url_encode(both, strlen(both)) : NULL;

	return code ? abx__strf(KEY_GRANT "%s", code) : NULL;
}

static json_object *key_grant_view(const abx__api_key *key, const abx__key_grant *g)
{
	ABX_CLEANUP(abx__freep) char *id = key_grant_id(key->name, g->operation);
	ABX_CLEANUP_JSON json_object *o =
		id ? grant_view(id, "key", g->operation, g->granted_ms, g->granted_by)
		   : NULL;

	if (!o || put_principal(o, key->who.team, key->who.user, key->name) < 0)
		return NULL;
	return abx_take(o);
}

/* ---- reads ---- */

static int add_pending(const abx__call *call, json_object *list)
{
	const abx__approvals *all = call->serve->approvals;
	const abx__approval *q = NULL;

	while ((q = abx__approvals_next(all, q, call->who.team, call->who.user))) {
		json_object *view;

		if (q->status != ABX__APPROVAL_PENDING)
			continue;
		view = request_view(q);
		if (!view || abx__json_push_take(list, view) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

static int add_key_grants(const abx__call *call, json_object *list)
{
	const abx__keys *keys = call->serve->keys;
	const abx__api_key *key;
	abx__key_grant g;

	for (size_t i = 0; abx__keys_at(keys, i, &key); i++) {
		if (!abx__identity_is(&call->who, key->who.team, key->who.user))
			continue;
		for (size_t n = 0; abx__keys_grant_at(keys, key->name, n, &g); n++) {
			json_object *view = key_grant_view(key, &g);

			if (!view || abx__json_push_take(list, view) < 0)
				return ABX_ENOMEM;
		}
	}
	return ABX_OK;
}

static int add_session_grants(const abx__call *call, json_object *list)
{
	const abx__approvals *all = call->serve->approvals;
	const abx__approval_grant *g = NULL;

	while ((g = abx__approvals_next_grant(all, g, call->who.team, call->who.user))) {
		json_object *view = session_grant_view(g);

		if (!view || abx__json_push_take(list, view) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

void abx__native_approval_list(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *pending = json_object_new_array();
	ABX_CLEANUP_JSON json_object *grants = json_object_new_array();

	if (!o || !pending || !grants || add_pending(call, pending) < 0 ||
	    add_session_grants(call, grants) < 0 || add_key_grants(call, grants) < 0 ||
	    abx__json_set_take(o, "pending", abx_take(pending)) < 0 ||
	    abx__json_set_take(o, "grants", abx_take(grants)) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
}

/* Of the caller, or the call is answered 404. */
static abx__approval *request_of(abx__call *call)
{
	abx__approval *q = abx__approvals_find(call->serve->approvals, call->params[0],
					       call->who.team, call->who.user);

	if (!q)
		abx__call_fail(call, 404, "approval \"%s\" not found", call->params[0]);
	return q;
}

void abx__native_approval_get(abx__call *call)
{
	const abx__approval *q = request_of(call);

	if (q)
		abx__call_json(call, 200, request_view(q));
}

/* ---- decisions ---- */

static enum abx__approval_scope scope_of(const char *name)
{
	for (size_t i = ABX__SCOPE_ONCE; i <= ABX__SCOPE_KEY; i++)
		if (name && strcmp(scope_names[i], name) == 0)
			return (enum abx__approval_scope)i;
	return ABX__SCOPE_ONCE;
}

/* Answers. */
static void decide(abx__call *call, abx__approval *q, bool approve,
		   enum abx__approval_scope scope)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *by = abx__identity_signature(&call->who);

	if (!by)
		abx__call_nomem(call);
	else if (abx__approvals_decide(call->serve->approvals, q, approve, scope, by,
				       &err) < 0)
		abx__call_error(call, err);
	else
		abx__call_json(call, 200, request_view(q));
}

static void on_written(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;
	abx__approval *q = r < 0 ? NULL : request_of(call);

	if (r < 0)
		abx__call_fail(call, 400, "the grant could not be written on the key: %s",
			       abx_error_message(err));
	else if (q)
		decide(call, q, true, ABX__SCOPE_KEY);
	abx__call_drop(call);
}

/* First on the key, then here: what is approved is so after a restart, too. */
static void decide_for_key(abx__call *call, abx__approval *q)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *by = abx__identity_signature(&call->who);

	if (!by) {
		abx__call_nomem(call);
	} else if (abx__approvals_may(call->serve->approvals, q, true, ABX__SCOPE_KEY,
				      &err) < 0) {
		abx__call_error(call, err);
	} else {
		abx__call_hold(call);
		abx__keys_grant(call->serve->keys, q->key_id, q->gated->operation, by,
				on_written, call);
	}
}

void abx__native_approval_decide(abx__call *call)
{
	const char *decision = NULL, *scope = NULL;
	abx__approval *q;
	bool approve;

	if (!call->who.session) {
		abx__call_fail(call, 403,
			       "approvals are decided in a console session, not with an "
			       "API key");
		return;
	}
	q = request_of(call);
	if (!q)
		return;
	abx__json_get_str(call->body, "decision", &decision, NULL);
	abx__json_get_str(call->body, "scope", &scope, NULL);
	approve = abx__str_eq(decision, "approve");
	if (approve && scope_of(scope) == ABX__SCOPE_KEY)
		decide_for_key(call, q);
	else
		decide(call, q, approve, scope_of(scope));
}

/* ---- grants ---- */

/* KEY LF OPERATION of a key grant's id, split; false for any other. */
static bool split_grant_id(const char *id, char **ret_both, const char **ret_operation)
{
	size_t len = 0;
	uint8_t *bytes = NULL;
	char *both, *mark;

	if (!abx__str_starts(id, KEY_GRANT) ||
	    abx__base64url_decode(id + strlen(KEY_GRANT), strlen(id) - strlen(KEY_GRANT),
				  &bytes, &len) < 0)
		return false;
	both = abx__strndup((const char *)bytes, len);
	abx__free(bytes);
	mark = both ? strchr(both, '\n') : NULL;
	if (!mark) {
		abx__free(both);
		return false;
	}
	*mark = '\0';
	*ret_both = both;
	*ret_operation = mark + 1;
	return true;
}

/* True: it is one of the caller's, and the call will be answered. */
static bool revoke_key_grant(abx__call *call, const char *id)
{
	ABX_CLEANUP(abx__freep) char *both = NULL;
	const char *operation = NULL;
	const abx__api_key *key;

	if (!split_grant_id(id, &both, &operation))
		return false;
	key = abx__keys_by_id(call->serve->keys, both);
	if (!key || !abx__identity_is(&call->who, key->who.team, key->who.user) ||
	    !abx__keys_has_grant(call->serve->keys, key->name, operation))
		return false;
	abx__call_hold(call);
	abx__keys_revoke(call->serve->keys, key->name, operation, abx__call_on_gone,
			 call);
	return true;
}

void abx__native_grant_revoke(abx__call *call)
{
	const char *id = call->params[0];

	if (call->who.session && revoke_key_grant(call, id))
		return;
	if (call->who.session &&
	    abx__approvals_revoke(call->serve->approvals, id, call->who.team,
				  call->who.user) == ABX_OK)
		abx__call_empty(call, 204);
	else
		abx__call_fail(call, 404, "grant \"%s\" not found", id);
}

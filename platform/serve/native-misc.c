/*
 * native-misc.c - the native API's small operations, and what its handlers share.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "model/gen/openapi.h"
#include "serve/native.h"
#include "serve/view.h"

int abx__native_put(json_object *o, const char *key, json_object *value)
{
	return value ? abx__json_set_take(o, key, json_object_get(value)) : ABX_OK;
}

int abx__native_put_str(json_object *o, const char *key, const char *value)
{
	return value ? abx__json_set_str(o, key, value) : ABX_OK;
}

void abx__native_page(abx__call *call, json_object *items, bool with_limits)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	int64_t total = items ? (int64_t)json_object_array_length(items) : 0;

	if (!o || !items) {
		json_object_put(items);
		abx__call_nomem(call);
		return;
	}
	if (abx__json_set_take(o, "items", items) < 0 ||
	    abx__json_set_i64(o, "total", total) < 0 ||
	    (with_limits && (abx__json_set_i64(o, "limit", total) < 0 ||
			     abx__json_set_i64(o, "offset", 0) < 0)))
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
}

json_object *abx__native_env_of(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = NULL;
	int r = abx__control_env_get(call->serve->control, call->who.namespace_,
				     call->params[0], &env, &err);

	if (r == ABX_ENOTFOUND || (r == ABX_OK && !abx__view_visible(&call->who, env)))
		abx__call_fail(call, 404, "sandbox env \"%s\" not found",
			       call->params[0]);
	else if (r < 0)
		abx__call_error(call, err);
	else
		return abx_take(env);
	return NULL;
}

void abx__native_terminating(abx__call *call, int status, const char *name,
			     const char *state)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "name", name) < 0 ||
	    abx__json_set_str(o, "namespace", call->who.namespace_) < 0 ||
	    abx__json_set_str(o, "status", state) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, status, abx_take(o));
}

void abx__native_ping(abx__call *call)
{
	json_object *o = json_object_new_object();

	if (o && abx__json_set_str(o, "status", "ok") < 0) {
		json_object_put(o);
		o = NULL;
	}
	abx__call_json(call, 200, o);
}

void abx__native_openapi(abx__call *call)
{
	json_object *o = NULL;

	(void)abx__json_parse(abx__m_native_openapi, abx__m_native_openapi_len, 0, &o,
			      NULL);
	abx__call_json(call, 200, o);
}

void abx__native_whoami(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o ||
	    abx__json_set_str(o, "role", call->who.admin ? "admin" : "tenant") < 0 ||
	    abx__json_set_str(o, "mode", call->who.agent ? "agent" : "unrestricted") <
		    0 ||
	    abx__json_set_str(o, "user", call->who.user) < 0 ||
	    abx__json_set_str(o, "team", call->who.team) < 0 ||
	    abx__json_set_str(o, "namespace", call->who.namespace_) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
}

void abx__native_clusters(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *here = json_object_new_object();
	ABX_CLEANUP_JSON json_object *all = json_object_new_array();
	const char *id = call->serve->cluster_id;

	if (!o || !here || !all || abx__json_set_str(here, "id", id) < 0 ||
	    abx__json_set_str(here, "name", id) < 0 ||
	    abx__json_set_bool(here, "local", true) < 0 ||
	    abx__json_push_take(all, abx_take(here)) < 0 ||
	    abx__json_set_take(o, "clusters", abx_take(all)) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
}

/*
 * e2b-keys.c - API keys of the E2B API. A caller sees and makes keys of its own team and
 * user; an admin sees all. A key made here has E2B's form, so that an unpatched SDK takes
 * it.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/e2b.h"

#define LABEL_MAX 128

static bool owns(const abx__identity *who, const abx__api_key *key)
{
	return abx__identity_sees_all(who) || (abx__str_eq(who->team, key->who.team) &&
					       abx__str_eq(who->user, key->who.user));
}

static json_object *mask_of(const abx__api_key *key)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "prefix", key->prefix) < 0 ||
	    abx__json_set_i64(o, "valueLength", (int64_t)key->digits) < 0 ||
	    abx__json_set_str(o, "maskedValuePrefix", key->head) < 0 ||
	    abx__json_set_str(o, "maskedValueSuffix", key->tail) < 0)
		return NULL;
	return abx_take(o);
}

static json_object *key_of(const abx__api_key *key)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *mask = mask_of(key);

	if (!o || !mask) {
		json_object_put(mask);
		return NULL;
	}
	if (abx__json_set_take(o, "mask", mask) < 0 ||
	    abx__json_set_str(o, "id", key->id) < 0 ||
	    abx__json_set_str(o, "name", key->label) < 0 ||
	    abx__json_set_time(o, "createdAt", key->created_ms) < 0 ||
	    abx__json_set_str(o, "createdBy", NULL) < 0 ||
	    abx__json_set_str(o, "lastUsed", NULL) < 0)
		return NULL;
	return abx_take(o);
}

void abx__e2b_keys_list(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *array = json_object_new_array();
	const abx__api_key *key;

	for (size_t i = 0; array && abx__keys_at(call->serve->keys, i, &key); i++) {
		json_object *o;

		if (!owns(&call->who, key))
			continue;
		o = key_of(key);
		if (!o || abx__json_push_take(array, o) < 0) {
			abx__call_nomem(call);
			return;
		}
	}
	abx__call_json(call, 200, abx_take(array));
}

static void on_key_made(void *userdata, int r, const abx__api_key *key,
			const abx__secret *raw, const abx_error *err)
{
	abx__call *call = userdata;
	json_object *o = NULL;

	if (r < 0) {
		abx__call_error(call, err);
	} else {
		o = key_of(key);
		if (o && abx__json_set_str(o, "key", abx__secret_reveal(raw)) < 0) {
			json_object_put(o);
			o = NULL;
		}
		abx__call_header(call, "Cache-Control", "no-store");
		abx__call_json(call, 201, o);
	}
	abx__call_drop(call);
}

/* An agent that could make a key could make one that nobody has to release. */
static bool refuse_agent(abx__call *call)
{
	if (call->who.agent)
		abx__call_fail(call, 403,
			       "an agent's key neither makes nor deletes API keys");
	return call->who.agent;
}

void abx__e2b_keys_create(abx__call *call)
{
	static const char *const known[] = { "name", NULL };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__api_key_spec spec = { .form = ABX__KEY_E2B,
				   .admin = abx__identity_sees_all(&call->who),
				   .team = call->who.team,
				   .user = call->who.user,
				   .namespace_ = call->who.namespace_,
				   .created_by = call->who.user };
	int r;

	if (refuse_agent(call))
		return;
	r = abx__json_only(call->body, known, &err);
	if (r == ABX_OK)
		r = abx__json_get_str(call->body, "name", &spec.label, &err);
	if (r == 0)
		r = abx__error_set(&err, ABX_EINVAL, "name is required");
	if (r == 1 && (!*spec.label || strlen(spec.label) > LABEL_MAX))
		r = abx__error_set(&err, ABX_EINVAL, "name has 1 to %d bytes", LABEL_MAX);
	if (r < 0) {
		abx__call_error(call, err);
		return;
	}
	abx__call_hold(call);
	abx__keys_create(call->serve->keys, &spec, on_key_made, call);
}

void abx__e2b_keys_delete(abx__call *call)
{
	const abx__api_key *key = abx__keys_by_id(call->serve->keys, call->params[0]);

	if (refuse_agent(call))
		return;
	if (!key || !owns(&call->who, key)) {
		abx__call_fail(call, 404, "API key %s not found", call->params[0]);
		return;
	}
	abx__call_hold(call);
	abx__keys_remove(call->serve->keys, key->id, abx__call_on_gone, call);
}

/*
 * native-keys.c - API keys of the native API (native-api.md, section 12): a person's own,
 * and those an admin keeps for others. A key's text is shown when it is made, and to its
 * owner again; never to an agent.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/native.h"

#define KEYS_PER_PERSON 100
#define DIGITS_OF_PREFIX 16

static int put_common(json_object *o, const abx__api_key *key)
{
	if (abx__json_set_str(o, "keyId", key->name) < 0 ||
	    abx__json_set_str(o, "role", key->who.admin ? "admin" : "tenant") < 0 ||
	    abx__json_set_time(o, "issuedAt", key->created_ms) < 0 ||
	    abx__json_set_str(o, "user", key->who.user) < 0 ||
	    abx__json_set_str(o, "team", key->who.team) < 0 ||
	    (*key->label && abx__json_set_str(o, "description", key->label) < 0))
		return ABX_ENOMEM;
	return key->expires_ms ? abx__json_set_time(o, "expiresAt", key->expires_ms)
			       : ABX_OK;
}

/* ---- lists ---- */

/* Only to the owner, and not to an agent. */
static int put_text(const abx__call *call, json_object *o, const abx__api_key *key)
{
	ABX_CLEANUP(abx__secret_freep) abx__secret *raw = NULL;

	if (call->who.agent ||
	    !abx__identity_is(&call->who, key->who.team, key->who.user))
		return ABX_OK;
	if (abx__keys_reveal(call->serve->keys, key, &raw, NULL) != 1)
		return ABX_OK; /* it is not kept, or sealed by another server's key */
	return abx__json_set_str(o, "rawToken", abx__secret_reveal(raw));
}

static json_object *item_of(const abx__call *call, const abx__api_key *key)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || put_common(o, key) < 0 || put_text(call, o, key) < 0 ||
	    abx__json_set_str(o, "mode", key->who.agent ? "agent" : "unrestricted") < 0)
		return NULL;
	return abx_take(o);
}

static int newest_first(const void *a, const void *b)
{
	const abx__api_key *x = *(const abx__api_key *const *)a;
	const abx__api_key *y = *(const abx__api_key *const *)b;

	if (x->created_ms != y->created_ms)
		return x->created_ms > y->created_ms ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool is_asked(const abx__call *call, const abx__api_key *key,
		     const char *namespace_)
{
	if (call->route->auth != ABX__AUTH_ADMIN)
		return abx__identity_is(&call->who, key->who.team, key->who.user);
	return !namespace_ || abx__str_eq(namespace_, key->who.namespace_);
}

/* A bare array. */
static json_object *list_of(const abx__call *call, const char *namespace_)
{
	ABX_CLEANUP_JSON json_object *list = json_object_new_array();
	ABX_CLEANUP(abx__freep) const abx__api_key **found = NULL;
	const abx__api_key *key;
	size_t all = 0, count = 0;

	while (abx__keys_at(call->serve->keys, all, &key))
		all++;
	found = abx__calloc(all + 1, sizeof(*found));
	if (!list || !found)
		return NULL;
	for (size_t i = 0; abx__keys_at(call->serve->keys, i, &key); i++)
		if (is_asked(call, key, namespace_))
			found[count++] = key;
	qsort(found, count, sizeof(*found), newest_first);
	for (size_t i = 0; i < count; i++) {
		json_object *item = item_of(call, found[i]);

		if (!item || abx__json_push_take(list, item) < 0)
			return NULL;
	}
	return abx_take(list);
}

void abx__native_key_list(abx__call *call)
{
	const char *query = abx__http_req_query(call->req);
	ABX_CLEANUP(abx__freep) char *namespace_ = NULL;

	if (query && abx__query_get(query, "namespace", &namespace_) < 0) {
		abx__call_fail(call, 400, "the query is not well encoded");
		return;
	}
	abx__call_header(call, "Cache-Control", "no-store");
	abx__call_json(call, 200,
		       list_of(call, namespace_ && *namespace_ ? namespace_ : NULL));
}

/* ---- making ---- */

static void on_made(void *userdata, int r, const abx__api_key *key,
		    const abx__secret *raw, const abx_error *err)
{
	abx__call *call = userdata;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	abx__call_header(call, "Cache-Control", "no-store");
	if (r < 0)
		abx__call_error(call, err);
	else if (!o || put_common(o, key) < 0 ||
		 abx__json_set_str(o, "apiKey", raw ? abx__secret_reveal(raw) : "") < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 201, abx_take(o));
	abx__call_drop(call);
}

/* The body's date into `ret_ms`: 1, 0 when absent; the schema has seen that it is one. */
static int get_date(json_object *body, const char *name, int64_t *ret_ms,
		    abx_error **reterr)
{
	const char *text = NULL;
	int64_t us = 0;
	int r = abx__json_get_str(body, name, &text, reterr);

	if (r <= 0)
		return r;
	if (abx__rfc3339_parse(text, &us) < 0 || us <= 0)
		return abx__error_set(reterr, ABX_EINVAL, "%s is no date", name);
	*ret_ms = us / 1000;
	return 1;
}

static int get_expiry(const abx__call *call, abx__api_key_spec *spec, abx_error **reterr)
{
	const abx__clock *clock = call->serve->clock;
	int r = get_date(call->body, "expiresAt", &spec->expires_ms, reterr);

	if (r == 1 && spec->expires_ms <= clock->wall_ms(clock->userdata))
		return abx__error_set(reterr, ABX_EINVAL, "expiresAt is in the past");
	return r < 0 ? r : ABX_OK;
}

static void make(abx__call *call, const abx__api_key_spec *spec)
{
	size_t own = abx__keys_count_of(call->serve->keys, spec->team, spec->user);

	if (own >= KEYS_PER_PERSON) {
		abx__call_fail(call, 409,
			       "%s/%s has %zu API keys, and no more than %d are kept: "
			       "delete one first",
			       spec->team, spec->user, own, KEYS_PER_PERSON);
		return;
	}
	abx__call_hold(call);
	abx__keys_create(call->serve->keys, spec, on_made, call);
}

void abx__native_key_create(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__api_key_spec spec = { .form = ABX__KEY_AGBX,
				   .label = "",
				   .team = call->who.team,
				   .user = call->who.user,
				   .namespace_ = call->who.namespace_,
				   .created_by = call->who.user };
	const char *mode = NULL;

	abx__json_get_str(call->body, "description", &spec.label, NULL);
	abx__json_get_str(call->body, "mode", &mode, NULL);
	spec.agent = abx__str_eq(mode, "agent");
	/* An agent's key never is an admin's: admin routes are not gated. */
	spec.admin = abx__identity_sees_all(&call->who) && !spec.agent;
	if (get_expiry(call, &spec, &err) < 0)
		abx__call_error(call, err);
	else
		make(call, &spec);
}

/* ---- making for others ---- */

static int required(json_object *body, const char *name, const char **ret,
		    abx_error **reterr)
{
	int r = abx__json_get_str(body, name, ret, reterr);

	if (r == 0 || (r == 1 && !**ret))
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s is required: a key belongs to a person", name);
	return r < 0 ? r : ABX_OK;
}

static bool is_dns_label(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len <= 63 && s[0] != '-' && s[len - 1] != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static int get_import(const abx__call *call, abx__api_key_spec *spec, abx_error **reterr)
{
	const char *prefix = NULL;
	int has_issued = get_date(call->body, "issuedAt", &spec->issued_ms, reterr);

	if (has_issued < 0)
		return has_issued;
	abx__json_get_str(call->body, "tokenHash", &spec->token_hash, NULL);
	abx__json_get_str(call->body, "hashPrefix", &prefix, NULL);
	if (!spec->token_hash && (prefix || has_issued))
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s goes with tokenHash, to take a key over",
				      prefix ? "hashPrefix" : "issuedAt");
	if (prefix && strncmp(prefix, spec->token_hash, DIGITS_OF_PREFIX) != 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "hashPrefix is not the beginning of tokenHash");
	return ABX_OK;
}

static int get_person(const abx__call *call, abx__api_key_spec *spec, abx_error **reterr)
{
	int r = required(call->body, "team", &spec->team, reterr);

	if (r == ABX_OK)
		r = required(call->body, "user", &spec->user, reterr);
	if (r < 0)
		return r;
	spec->namespace_ =
		abx__keys_namespace_of(call->serve->keys, spec->team, spec->user);
	r = abx__json_get_str(call->body, "namespace", &spec->namespace_, reterr);
	if (r == 1 && !is_dns_label(spec->namespace_))
		return abx__error_set(reterr, ABX_EINVAL,
				      "namespace \"%s\" is no DNS label",
				      spec->namespace_);
	return r < 0 ? r : ABX_OK;
}

void abx__native_key_create_for(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__api_key_spec spec = { .form = ABX__KEY_AGBX,
				   .label = "",
				   .created_by = call->who.user };
	int r = get_person(call, &spec, &err);

	abx__json_get_str(call->body, "description", &spec.label, NULL);
	if (r == ABX_OK)
		r = get_expiry(call, &spec, &err);
	if (r == ABX_OK)
		r = get_import(call, &spec, &err);
	if (r < 0)
		abx__call_error(call, err);
	else
		make(call, &spec);
}

/* ---- deleting, promoting ---- */

/* NAME or NAMESPACE/NAME; NULL when unknown, and the call is answered. */
static const abx__api_key *key_of(abx__call *call)
{
	const char *name = call->params[0], *slash = strrchr(name, '/');
	const abx__api_key *key =
		abx__keys_by_id(call->serve->keys, slash ? slash + 1 : name);

	if (!key)
		abx__call_fail(call, 404, "API key \"%s\" not found", name);
	return key;
}

static void on_removed(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_json(call, 200, json_object_get(call->body));
	abx__call_drop(call);
}

static void remove_key(abx__call *call, const abx__api_key *key)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "keyId", key->name) < 0 ||
	    abx__json_set_str(o, "status", "Deleted") < 0) {
		abx__call_nomem(call);
		return;
	}
	json_object_put(call->body);
	call->body = abx_take(o);
	abx__call_hold(call);
	abx__keys_remove(call->serve->keys, key->name, on_removed, call);
}

void abx__native_key_delete(abx__call *call)
{
	const abx__api_key *key = key_of(call);

	if (!key)
		return;
	if (abx__identity_is(&call->who, key->who.team, key->who.user))
		remove_key(call, key);
	else
		abx__call_fail(call, 403, "API key \"%s\" is somebody else's",
			       call->params[0]);
}

void abx__native_key_delete_any(abx__call *call)
{
	const abx__api_key *key = key_of(call);

	if (key)
		remove_key(call, key);
}

void abx__native_key_promote(abx__call *call)
{
	if (key_of(call))
		abx__call_fail(call, 503,
			       "no hub is connected: this cluster is the only one that "
			       "can know API key \"%s\"",
			       call->params[0]);
}

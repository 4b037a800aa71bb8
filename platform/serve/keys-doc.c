/*
 * keys-doc.c - an API key as a document: what is written of a new one, and what a stored
 * one must have.
 */
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "serve/keys-priv.h"

static const struct {
	const char *prefix;
	size_t bytes;
} forms[] = {
	[ABX__KEY_AGBX] = { "agbx_", 32 },
	[ABX__KEY_E2B] = { "e2b_", 20 },
};

const char *abx__key_prefix(enum abx__key_form form)
{
	return forms[form].prefix;
}

void abx__key_entry_free(abx__key_entry *e)
{
	if (!e)
		return;
	json_object_put(e->body);
	abx__free(e);
}

/* ---- reading ---- */

static const char *text_of(json_object *body, const char *field)
{
	const char *value = NULL;

	return abx__json_get_str(body, field, &value, NULL) == 1 ? value : NULL;
}

const char *abx__key_text(const abx__key_entry *e, const char *field)
{
	return text_of(e->body, field);
}

static int unhex(const char *hex, uint8_t *out, size_t len)
{
	if (!hex || strlen(hex) != 2 * len)
		return ABX_EINVAL;
	for (size_t i = 0; i < len; i++) {
		int high = abx__hex_value(hex[2 * i]);
		int low = abx__hex_value(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return ABX_EINVAL;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return ABX_OK;
}

static bool fill_who(abx__identity *who, json_object *body)
{
	const char *role = text_of(body, "role");

	who->team = text_of(body, "team");
	who->user = text_of(body, "user");
	who->namespace_ = text_of(body, "namespace");
	who->email = "";
	who->admin = role && strcmp(role, "admin") == 0;
	abx__json_get_bool(body, "requireApproval", &who->agent, NULL);
	return role && who->team && who->user && who->namespace_;
}

static bool fill_key(abx__api_key *key, json_object *body)
{
	int64_t digits = 0;

	key->id = text_of(body, "id");
	key->label = text_of(body, "label");
	key->created_by = text_of(body, "createdBy");
	key->prefix = text_of(body, "prefix");
	key->head = text_of(body, "head");
	key->tail = text_of(body, "tail");
	abx__json_get_i64(body, "digits", 0, 256, &digits, NULL);
	key->digits = (size_t)digits;
	abx__json_get_i64(body, "createdMs", 0, INT64_MAX, &key->created_ms, NULL);
	abx__json_get_i64(body, "expiresMs", 0, INT64_MAX, &key->expires_ms, NULL);
	abx__json_get_bool(body, "imported", &key->imported, NULL);
	return fill_who(&key->who, body) && key->id && key->label && key->created_by &&
	       key->prefix && key->head && key->tail &&
	       (key->imported || text_of(body, "sealed"));
}

int abx__key_entry_new(const char *name, json_object *body, abx__key_entry **ret,
		       abx_error **reterr)
{
	ABX_CLEANUP(abx__key_entry_freep)
	abx__key_entry *e = abx__calloc(1, sizeof(*e));

	if (!e) {
		json_object_put(body);
		return abx__error_nomem(reterr);
	}
	e->body = body;
	if (abx__str_copy(e->name, sizeof(e->name), name) < 0 ||
	    !fill_key(&e->key, body) ||
	    unhex(text_of(body, "hash"), e->hash, sizeof(e->hash)) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "API key document %s is damaged", name);
	e->key.name = e->name;
	e->key.who.key_name = e->name;
	*ret = abx_take(e);
	return ABX_OK;
}

/* ---- writing ---- */

static int make_raw(enum abx__key_form form, abx__secret **ret, abx_error **reterr)
{
	uint8_t bytes[32];
	char text[8 + 2 * sizeof(bytes) + 1];
	size_t n = strlen(forms[form].prefix);

	if (abx__random(bytes, forms[form].bytes) < 0)
		return abx__error_set(reterr, ABX_EIO, "no random bytes for an API key");
	memcpy(text, forms[form].prefix, n);
	abx__hex(bytes, forms[form].bytes, text + n);
	*ret = abx__secret_new(text, strlen(text));
	abx__wipe(bytes, sizeof(bytes));
	abx__wipe(text, sizeof(text));
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

static bool add_text(json_object *o, const char *field, const char *value)
{
	return abx__json_set_str(o, field, value) == ABX_OK;
}

static bool add_who(json_object *o, const abx__keys *keys, const abx__api_key_spec *spec)
{
	int64_t now = keys->clock->wall_ms(keys->clock->userdata);
	char uuid[ABX__UUID_LEN + 1];

	return abx__id_uuid(uuid) == ABX_OK && add_text(o, "id", uuid) &&
	       add_text(o, "label", spec->label) &&
	       add_text(o, "role", spec->admin ? "admin" : "tenant") &&
	       add_text(o, "team", spec->team) && add_text(o, "user", spec->user) &&
	       add_text(o, "namespace", spec->namespace_) &&
	       add_text(o, "createdBy", spec->created_by ? spec->created_by : "") &&
	       abx__json_set_i64(o, "createdMs",
				 spec->issued_ms ? spec->issued_ms : now) == ABX_OK &&
	       (!spec->expires_ms ||
		abx__json_set_i64(o, "expiresMs", spec->expires_ms) == ABX_OK) &&
	       (!spec->agent || abx__json_set_bool(o, "requireApproval", true) == ABX_OK);
}

static bool add_hash(json_object *o, const uint8_t hash[ABX__SHA256_LEN])
{
	char hex[2 * ABX__SHA256_LEN + 1];

	abx__hex(hash, ABX__SHA256_LEN, hex);
	return add_text(o, "hash", hex);
}

static bool add_shape(json_object *o, const char *prefix, const char *head,
		      const char *tail, size_t digits)
{
	return add_text(o, "prefix", prefix) && add_text(o, "head", head) &&
	       add_text(o, "tail", tail) &&
	       abx__json_set_i64(o, "digits", (int64_t)digits) == ABX_OK;
}

static int add_raw(json_object *o, const abx__keys *keys, enum abx__key_form form,
		   const char *name, const abx__secret *raw, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *sealed = NULL;
	const char *text = abx__secret_reveal(raw);
	size_t len = abx__secret_len(raw), skip = strlen(forms[form].prefix);
	uint8_t hash[ABX__SHA256_LEN];
	char head[3] = { text[skip], text[skip + 1], '\0' };
	int r = abx__seal_wrap(keys->seal, name, text, len, &sealed, reterr);

	if (r < 0)
		return r;
	if (abx__seal_lookup_hash(keys->seal, text, len, hash) < 0)
		return abx__error_set(reterr, ABX_EIO, "cannot hash an API key");
	if (!add_hash(o, hash) || !add_text(o, "sealed", sealed) ||
	    !add_shape(o, forms[form].prefix, head, text + len - 4, len - skip))
		return abx__error_nomem(reterr);
	return ABX_OK;
}

static int add_import(json_object *o, const abx__keys *keys, const char *sha_hex,
		      abx_error **reterr)
{
	uint8_t hash[ABX__SHA256_LEN];

	if (abx__keys_import_hash(keys, sha_hex, hash) < 0)
		return abx__error_set(reterr, ABX_EIO, "cannot hash an API key");
	if (!add_hash(o, hash) || !add_shape(o, "", "", "", 0) ||
	    abx__json_set_bool(o, "imported", true) < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

static int make_name(const abx__secret *raw, char name[ABX__KEYS_NAME_SIZE])
{
	size_t n = strlen(ABX__KEYS_NAME_PREFIX);
	uint8_t sha[ABX__SHA256_LEN];

	memcpy(name, ABX__KEYS_NAME_PREFIX, n);
	if (abx__sha256(abx__secret_reveal(raw), abx__secret_len(raw), sha) < 0)
		return ABX_EIO;
	abx__hex(sha, 8, name + n);
	return ABX_OK;
}

int abx__key_entry_make(const abx__keys *keys, const abx__api_key_spec *spec,
			abx__key_entry **ret, abx__secret **ret_raw, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP(abx__secret_freep) abx__secret *raw = NULL;
	char name[ABX__KEYS_NAME_SIZE] = ABX__KEYS_NAME_PREFIX;
	int r = ABX_OK;

	if (!spec->token_hash)
		r = make_raw(spec->form, &raw, reterr);
	if (r < 0)
		return r;
	if (spec->token_hash)
		memcpy(name + strlen(name), spec->token_hash, 16);
	else if (make_name(raw, name) < 0)
		return abx__error_set(reterr, ABX_EIO, "cannot hash an API key");
	if (!o || !add_who(o, keys, spec))
		return abx__error_nomem(reterr);
	r = spec->token_hash ? add_import(o, keys, spec->token_hash, reterr)
			     : add_raw(o, keys, spec->form, name, raw, reterr);
	if (r == ABX_OK)
		r = abx__key_entry_new(name, abx_take(o), ret, reterr);
	if (r == ABX_OK)
		*ret_raw = abx_take(raw);
	return r;
}

/*
 * keys.c - the index of API keys over the store's ApiKey documents.
 *
 * Lookup is by keyed hash through a hash table, so what a guess costs tells nothing about
 * the keys that exist; the full hash is compared in constant time on top.
 */
#include "serve/keys.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "serve/keys-priv.h"

#define KEYS_MAX 10000
#define RAW_MAX 256

int abx__keys_new(abx__store *store, const abx__seal *seal, const abx__clock *clock,
		  const char *pair_path, abx__keys **ret, abx_error **reterr)
{
	abx__keys *keys = abx__calloc(1, sizeof(*keys));
	char *path = abx__strdup(pair_path);

	if (!keys || !path) {
		abx__free(keys);
		abx__free(path);
		return abx__error_nomem(reterr);
	}
	keys->store = store;
	keys->seal = seal;
	keys->clock = clock;
	keys->pair_path = path;
	*ret = keys;
	return ABX_OK;
}

void abx__keys_free(abx__keys *keys)
{
	abx__key_entry *e, *next;

	if (!keys)
		return;
	HASH_ITER(hh, keys->index, e, next)
	{
		HASH_DEL(keys->index, e);
		abx__key_entry_free(e);
	}
	abx__free(keys->pair_path);
	abx__free(keys);
}

int abx__keys_index_add(abx__keys *keys, abx__key_entry *e, abx_error **reterr)
{
	if (HASH_COUNT(keys->index) >= KEYS_MAX)
		return abx__error_set(reterr, ABX_EEXHAUSTED, "no more than %d API keys",
				      KEYS_MAX);
	e->indexed = true;
	HASH_ADD(hh, keys->index, hash, sizeof(e->hash), e);
	return e->indexed ? ABX_OK : abx__error_nomem(reterr);
}

/* ---- lookups ---- */

/* The prefix keeps it apart from the hash of any text that could be presented: find()
   asks for either kind by itself. */
int abx__keys_import_hash(const abx__keys *keys, const char *sha_hex,
			  uint8_t out[ABX__SHA256_LEN])
{
	char text[8 + 2 * ABX__SHA256_LEN + 1] = "sha256:";

	if (abx__str_copy(text + 7, sizeof(text) - 7, sha_hex) < 0)
		return ABX_EINVAL;
	return abx__seal_lookup_hash(keys->seal, text, strlen(text), out);
}

static const abx__key_entry *by_hash(const abx__keys *keys,
				     const uint8_t hash[ABX__SHA256_LEN], bool imported)
{
	abx__key_entry *e = NULL;

	HASH_FIND(hh, keys->index, hash, ABX__SHA256_LEN, e);
	return e && e->key.imported == imported &&
			       CRYPTO_memcmp(e->hash, hash, ABX__SHA256_LEN) == 0
		       ? e
		       : NULL;
}

static const abx__key_entry *find_imported(const abx__keys *keys, const char *raw)
{
	uint8_t sha[ABX__SHA256_LEN], hash[ABX__SHA256_LEN];
	char hex[2 * ABX__SHA256_LEN + 1];

	if (abx__sha256(raw, strlen(raw), sha) < 0)
		return NULL;
	abx__hex(sha, sizeof(sha), hex);
	return abx__keys_import_hash(keys, hex, hash) < 0 ? NULL
							  : by_hash(keys, hash, true);
}

const abx__api_key *abx__keys_find(const abx__keys *keys, const char *raw)
{
	uint8_t hash[ABX__SHA256_LEN];
	size_t len = strlen(raw);
	const abx__key_entry *e;

	if (len > RAW_MAX || abx__seal_lookup_hash(keys->seal, raw, len, hash) < 0)
		return NULL;
	e = by_hash(keys, hash, false);
	if (!e)
		e = find_imported(keys, raw);
	if (!e || (e->key.expires_ms &&
		   keys->clock->wall_ms(keys->clock->userdata) >= e->key.expires_ms))
		return NULL;
	return &e->key;
}

bool abx__keys_at(const abx__keys *keys, size_t index, const abx__api_key **ret)
{
	const abx__key_entry *e = keys->index;

	while (e && index--)
		e = e->hh.next;
	if (e)
		*ret = &e->key;
	return e != NULL;
}

abx__key_entry *abx__keys_entry(const abx__keys *keys, const char *id)
{
	for (abx__key_entry *e = keys->index; e; e = e->hh.next)
		if (strcmp(e->key.id, id) == 0 || strcmp(e->name, id) == 0)
			return e;
	return NULL;
}

const abx__api_key *abx__keys_by_id(const abx__keys *keys, const char *id)
{
	abx__key_entry *e = abx__keys_entry(keys, id);

	return e ? &e->key : NULL;
}

size_t abx__keys_count_of(const abx__keys *keys, const char *team, const char *user)
{
	size_t n = 0;

	for (const abx__key_entry *e = keys->index; e; e = e->hh.next)
		n += abx__identity_is(&e->key.who, team, user);
	return n;
}

const char *abx__keys_namespace_of(const abx__keys *keys, const char *team,
				   const char *user)
{
	const char *of_team = NULL;

	for (const abx__key_entry *e = keys->index; e; e = e->hh.next) {
		if (abx__identity_is(&e->key.who, team, user))
			return e->key.who.namespace_;
		if (!of_team && abx__str_eq(e->key.who.team, team))
			of_team = e->key.who.namespace_;
	}
	return of_team ? of_team : "default";
}

int abx__keys_reveal(const abx__keys *keys, const abx__api_key *key, abx__secret **ret,
		     abx_error **reterr)
{
	const abx__key_entry *e = abx__keys_entry(keys, key->name);
	const char *sealed = e ? abx__key_text(e, "sealed") : NULL;
	int r;

	if (!sealed)
		return 0;
	r = abx__seal_unwrap(keys->seal, e->name, sealed, ret, reterr);
	return r < 0 ? r : 1;
}

/* ---- standing approvals ---- */

static json_object *grants_of(const abx__keys *keys, const char *name)
{
	const abx__key_entry *e = abx__keys_entry(keys, name);
	json_object *grants = NULL;

	return e && abx__json_get_object(e->body, "grants", &grants, NULL) == 1 ? grants
										: NULL;
}

bool abx__keys_has_grant(const abx__keys *keys, const char *name, const char *operation)
{
	json_object *grants = grants_of(keys, name);

	return grants && json_object_object_get_ex(grants, operation, NULL);
}

bool abx__keys_grant_at(const abx__keys *keys, const char *name, size_t index,
			abx__key_grant *ret)
{
	json_object *grants = grants_of(keys, name);

	if (!grants)
		return false;
	json_object_object_foreach(grants, operation, grant)
	{
		if (index-- > 0)
			continue;
		ret->operation = operation;
		ret->granted_by = "";
		ret->granted_ms = 0;
		abx__json_get_str(grant, "grantedBy", &ret->granted_by, NULL);
		abx__json_get_i64(grant, "grantedMs", 0, INT64_MAX, &ret->granted_ms,
				  NULL);
		return true;
	}
	return false;
}

/*
 * keys-priv.h - what the files of API keys share: an entry of the index and how its
 * document is read and written. Inside of serve/ only.
 */
#ifndef ABX_SERVE_KEYS_PRIV_H
#define ABX_SERVE_KEYS_PRIV_H

#include "base/alloc.h"
#include "io/json.h"
#include "serve/keys.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(sz) abx__malloc(sz)
#define uthash_free(p, sz) abx__free(p)
#define uthash_nonfatal_oom(e) ((e)->indexed = false)
#include <uthash.h>

#define ABX__KEYS_KIND "ApiKey"
#define ABX__KEYS_NAME_PREFIX "agentbox-apikey-"
#define ABX__KEYS_NAME_SIZE (sizeof(ABX__KEYS_NAME_PREFIX) + 16)
#define ABX__KEYS_FIRST_LABEL "first"

typedef struct abx__key_entry {
	abx__api_key key;
	json_object *body; /* owns every string of `key` but the static ones */
	char name[ABX__KEYS_NAME_SIZE];
	uint8_t hash[ABX__SHA256_LEN];
	bool indexed;
	UT_hash_handle hh;
} abx__key_entry;

struct abx__keys {
	abx__store *store;
	const abx__seal *seal;
	const abx__clock *clock;
	char *pair_path;
	abx__key_entry *index;
	unsigned pending;
};

void abx__key_entry_free(abx__key_entry *e);
ABX_DEFINE_FREEP(abx__key_entry_freep, abx__key_entry, abx__key_entry_free)

/* From a document; takes `body`, also on failure. ABX_EINVAL naming a damaged one. */
int abx__key_entry_new(const char *name, json_object *body, abx__key_entry **ret,
		       abx_error **reterr);
/* A new key, not in the index; `ret_raw` is NULL for an import. */
int abx__key_entry_make(const abx__keys *keys, const abx__api_key_spec *spec,
			abx__key_entry **ret, abx__secret **ret_raw, abx_error **reterr);
const char *abx__key_prefix(enum abx__key_form form);
/* A string of its document. */
const char *abx__key_text(const abx__key_entry *e, const char *field);

/* What is found by an imported key's SHA-256 (hex digits). */
int abx__keys_import_hash(const abx__keys *keys, const char *sha_hex,
			  uint8_t out[ABX__SHA256_LEN]);
int abx__keys_index_add(abx__keys *keys, abx__key_entry *e, abx_error **reterr);
abx__key_entry *abx__keys_entry(const abx__keys *keys, const char *id);

#endif

/*
 * keys.h - API keys: documents of kind ApiKey in the store, an index of them in memory.
 *
 * A key is `agbx_` + 64 hex digits, or `e2b_` + 40 where an unpatched E2B SDK is to be
 * served. Its document holds a keyed hash, by which it is found, and the text sealed with
 * the server's key, since its owner may ask for it again; neither the store nor the log
 * ever sees the text. At the first start an admin's key of each form is made and written
 * to a 0600 file: {"agbx": ..., "e2b": ...}; when that file is lost it is written again
 * from the documents.
 *
 * Everything on the loop's thread.
 */
#ifndef ABX_SERVE_KEYS_H
#define ABX_SERVE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "base/clock.h"
#include "base/secret.h"
#include "control/port-store.h"
#include "serve/seal.h"

enum abx__key_form { ABX__KEY_AGBX, ABX__KEY_E2B };

/* Who asks. Strings are borrowed from the key, or static. */
typedef struct abx__identity {
	bool admin;
	const char *team, *user, *namespace_;
	const char *key_name; /* "" when no key was needed (Unix socket) */
} abx__identity;

/* The owner of the instance, over its Unix socket. */
extern const abx__identity abx__identity_local;

typedef struct abx__api_key {
	const char *id;    /* UUID, the E2B API's name for it */
	const char *name;  /* the document: agentbox-apikey-<16 hex> */
	const char *label; /* what its maker called it */
	const char *created_by;
	const char *prefix; /* "agbx_" or "e2b_" */
	const char *head,
		*tail; /* the first two and last four digits, to recognise it by */
	size_t digits;
	int64_t created_ms;
	abx__identity who;
} abx__api_key;

typedef struct abx__api_key_spec {
	enum abx__key_form form;
	const char *label;
	bool admin;
	const char *team, *user, *namespace_;
	const char *created_by;
} abx__api_key_spec;

typedef struct abx__keys abx__keys;

/* `pair_path`: where the first pair is written. All pointers are borrowed and outlive the
 * keys. */
int abx__keys_new(abx__store *store, const abx__seal *seal, const abx__clock *clock,
		  const char *pair_path, abx__keys **ret, abx_error **reterr);
/* Loads the index; makes the first pair when there is none. `done` once, later. */
void abx__keys_start(abx__keys *keys,
		     void (*done)(void *userdata, int r, const abx_error *err),
		     void *userdata);
/* Only when no call is pending. */
void abx__keys_free(abx__keys *keys);

/* The key a caller presented; NULL when there is none like it. Borrowed until the loop
 * turns. */
const abx__api_key *abx__keys_find(const abx__keys *keys, const char *raw);
/* In no order: false past the end. */
bool abx__keys_at(const abx__keys *keys, size_t index, const abx__api_key **ret);
/* By UUID or by document name; NULL when unknown. */
const abx__api_key *abx__keys_by_id(const abx__keys *keys, const char *id);

/* `raw` is the text, shown to its maker this once. Both are borrowed for the call of
 * `done`. */
typedef void (*abx__key_done)(void *userdata, int r, const abx__api_key *key,
			      const abx__secret *raw, const abx_error *err);
void abx__keys_create(abx__keys *keys, const abx__api_key_spec *spec, abx__key_done done,
		      void *userdata);
/* ABX_ENOTFOUND when it is not there. The key stops working at once. */
void abx__keys_remove(abx__keys *keys, const char *id,
		      void (*done)(void *userdata, int r, const abx_error *err),
		      void *userdata);

#endif

/*
 * keys.h - API keys: documents of kind ApiKey in the store, an index of them in memory.
 *
 * A key is `agbx_` + 64 hex digits, or `e2b_` + 40 where an unpatched E2B SDK is to be
 * served. Its document holds a keyed hash, by which it is found, and the text sealed with
 * the server's key, since its owner may ask for it again; neither the store nor the log
 * ever sees the text. Of an imported key only the SHA-256 of its text came here: it is
 * found by a keyed hash of that, and its text is nobody's to give. An expired key is
 * still listed, but nobody is let in with it.
 *
 * Standing approvals of an agent's key (approvals.h) are on its document.
 *
 * At the first start an admin's key of each form is made and written to a 0600 file:
 * {"agbx": ..., "e2b": ...}; when that file is lost it is written again from the
 * documents.
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
#include "serve/identity.h"
#include "serve/seal.h"

enum abx__key_form { ABX__KEY_AGBX, ABX__KEY_E2B };

/* Strings are borrowed from the index. */
typedef struct abx__api_key {
	const char *id;    /* UUID, the E2B API's name for it */
	const char *name;  /* the document: agentbox-apikey-<16 hex> */
	const char *label; /* what its maker called it */
	const char *created_by;
	const char *prefix; /* "agbx_" or "e2b_"; "" of an imported one */
	const char *head,
		*tail; /* the first two and last four digits, to recognise it by */
	size_t digits;
	int64_t created_ms;
	int64_t expires_ms; /* 0: never */
	bool imported;
	abx__identity who;
} abx__api_key;

typedef struct abx__api_key_spec {
	enum abx__key_form form;
	const char *label;
	bool admin;
	bool agent;
	const char *team, *user, *namespace_;
	const char *created_by;
	int64_t expires_ms; /* 0: never */
	/* An import: the SHA-256 of the text, as hex digits, and when it was issued (0:
	   now). NULL: a new key. */
	const char *token_hash;
	int64_t issued_ms;
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

/* The key a caller presented; NULL when there is none like it, or it has expired.
 * Borrowed until the loop turns. */
const abx__api_key *abx__keys_find(const abx__keys *keys, const char *raw);
/* In no order: false past the end. */
bool abx__keys_at(const abx__keys *keys, size_t index, const abx__api_key **ret);
/* By UUID or by document name; NULL when unknown. */
const abx__api_key *abx__keys_by_id(const abx__keys *keys, const char *id);
/* How many a person has. */
size_t abx__keys_count_of(const abx__keys *keys, const char *team, const char *user);
/* The namespace a person's keys say, else those of the team; "default" when there are
 * none. */
const char *abx__keys_namespace_of(const abx__keys *keys, const char *team,
				   const char *user);
/* The text again: 1, 0 when it is not kept here (imported), or an error. */
int abx__keys_reveal(const abx__keys *keys, const abx__api_key *key, abx__secret **ret,
		     abx_error **reterr);

/* `raw` is the text, shown to its maker this once; NULL for an import. Both are borrowed
 * for the call of `done`. */
typedef void (*abx__key_done)(void *userdata, int r, const abx__api_key *key,
			      const abx__secret *raw, const abx_error *err);
/* Importing a hash that is known already gives the key it is. */
void abx__keys_create(abx__keys *keys, const abx__api_key_spec *spec, abx__key_done done,
		      void *userdata);
typedef void (*abx__keys_done)(void *userdata, int r, const abx_error *err);
/* ABX_ENOTFOUND when it is not there. The key stops working at once. */
void abx__keys_remove(abx__keys *keys, const char *id, abx__keys_done done,
		      void *userdata);

/* --- Standing approvals */

typedef struct abx__key_grant {
	const char *operation, *granted_by;
	int64_t granted_ms;
} abx__key_grant;

bool abx__keys_has_grant(const abx__keys *keys, const char *name, const char *operation);
/* Of the key of that document name: false past the end, or no such key. */
bool abx__keys_grant_at(const abx__keys *keys, const char *name, size_t index,
			abx__key_grant *ret);
/* Completes when it is on the document. ABX_ENOTFOUND. */
void abx__keys_grant(abx__keys *keys, const char *name, const char *operation,
		     const char *granted_by, abx__keys_done done, void *userdata);
void abx__keys_revoke(abx__keys *keys, const char *name, const char *operation,
		      abx__keys_done done, void *userdata);

#endif

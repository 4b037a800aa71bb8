/*
 * seal.h - the server's key and what is derived from it: the lookup hash of API keys, the
 * seal over secrets at rest, the envd access token of a sandbox.
 *
 * The key is 32 random bytes in a 0600 file of the state directory, made at the first
 * start. Each use has a key of its own (HMAC-SHA256 of a label), so no output of one use
 * helps with another. A sealed text is base64(nonce 12 | ciphertext | tag 16),
 * AES-256-GCM, bound to the name of the object it belongs to: moved to another object it
 * does not open.
 */
#ifndef ABX_SERVE_SEAL_H
#define ABX_SERVE_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "base/id.h"
#include "base/secret.h"

#define ABX__SEAL_KEY_LEN 32

typedef struct abx__seal abx__seal;

/* Reads the key file, or makes it when it is not there. A file of another size, or one
   that others may read, is refused (ABX_EDENIED, ABX_EINVAL) rather than replaced: what
   it sealed would be lost. */
int abx__seal_load(const char *path, abx__seal **ret, abx_error **reterr);
int abx__seal_new(const uint8_t key[ABX__SEAL_KEY_LEN], abx__seal **ret,
		  abx_error **reterr);
void abx__seal_free(abx__seal *seal);

/* `name` is the object the secret belongs to. A new string in `ret`. */
int abx__seal_wrap(const abx__seal *seal, const char *name, const char *plain, size_t len,
		   char **ret, abx_error **reterr);
/* ABX_EDENIED when the text was changed, moved to another object or sealed by another
 * key. */
int abx__seal_unwrap(const abx__seal *seal, const char *name, const char *sealed,
		     abx__secret **ret, abx_error **reterr);
int abx__seal_lookup_hash(const abx__seal *seal, const char *raw, size_t len,
			  uint8_t out[ABX__SHA256_LEN]);
/* The key control/ makes access tokens with: ABX__SHA256_LEN bytes, living as long as the
 * seal. */
const uint8_t *abx__seal_token_key(const abx__seal *seal);

ABX_DEFINE_FREEP(abx__seal_freep, abx__seal, abx__seal_free)

#endif

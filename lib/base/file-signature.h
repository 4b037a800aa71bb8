/*
 * file-signature.h - the signature of a file URL, as the SDKs and envd make it
 * (contract/e2b-control-api.md, section 8): it stands in for the access token on one
 * path, one operation, one user, and until one moment.
 */
#ifndef ABX_BASE_FILE_SIGNATURE_H
#define ABX_BASE_FILE_SIGNATURE_H

#include <stdint.h>

#include "base/secret.h"

#define ABX__FILE_SIGNATURE_SIZE 47 /* "v1_", 43 characters of base64, NUL */

/* `path` as the caller gave it, neither resolved nor URL-encoded; `operation` is "read"
   or "write"; `username` may be empty; `expires_s` NULL: never. ABX_ENOMEM or ABX_EIO. */
int abx__file_signature(const char *path, const char *operation, const char *username,
			const abx__secret *token, const int64_t *expires_s,
			char out[ABX__FILE_SIGNATURE_SIZE]);

#endif

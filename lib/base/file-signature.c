/*
 * file-signature.c - SHA-256 of PATH:OPERATION:USER:TOKEN[:EXPIRATION], in base64 without
 * its padding.
 */
#include "base/file-signature.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"

int abx__file_signature(const char *path, const char *operation, const char *username,
			const abx__secret *token, const int64_t *expires_s,
			char out[ABX__FILE_SIGNATURE_SIZE])
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *base64 = NULL;
	uint8_t hash[ABX__SHA256_LEN];
	int r;

	/* Room at once: growing would leave copies of the token behind. */
	r = abx__buf_reserve(&text, strlen(path) + strlen(operation) + strlen(username) +
					    abx__secret_len(token) + 32);
	if (r >= 0)
		r = abx__buf_addf(&text, "%s:%s:%s:%s", path, operation, username,
				  abx__secret_reveal(token));
	if (r >= 0 && expires_s)
		r = abx__buf_addf(&text, ":%" PRId64, *expires_s);
	if (r >= 0)
		r = abx__sha256(text.data, text.len, hash);
	if (text.data)
		abx__wipe(text.data, text.size);
	if (r < 0)
		return r;
	base64 = abx__base64_encode(hash, sizeof(hash));
	if (!base64)
		return ABX_ENOMEM;
	base64[43] = '\0'; /* one '=' of padding */
	memcpy(out, "v1_", 3);
	memcpy(out + 3, base64, ABX__FILE_SIGNATURE_SIZE - 3);
	return ABX_OK;
}

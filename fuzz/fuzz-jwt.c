/* Tokens of console sessions: whatever is said about one, it is said without reading past
 * it, and what is taken names a user. Half of the input is signed as ours, so that the
 * claims are reached. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "serve/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char secret_text[] = "0123456789abcdef0123456789abcdef";

static void verify(const char *token)
{
	abx__secret *secret = abx__secret_new(secret_text, strlen(secret_text));
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__jwt jwt;
	int r = abx__jwt_verify(token, secret, INT64_C(1700000000000), &jwt, &err);

	if (r == ABX_OK && (!*jwt.user || !abx__jwt_looks_like(token)))
		abort();
	if (r < 0 && !*abx_error_message(err))
		abort();
	abx__secret_free(secret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char head[] = "{\"alg\":\"HS256\"}";
	char *text = abx__strndup((const char *)data, size);
	char *h = abx__base64url_encode(head, strlen(head));
	char *c = abx__base64url_encode(data, size);
	char *both = abx__strf("%s.%s", h, c);
	uint8_t mac[ABX__SHA256_LEN];
	char *s, *token;

	verify(text);
	abx__hmac_sha256(secret_text, strlen(secret_text), both, strlen(both), mac);
	s = abx__base64url_encode(mac, sizeof(mac));
	token = abx__strf("%s.%s", both, s);
	verify(token);
	abx__free(text);
	abx__free(h);
	abx__free(c);
	abx__free(both);
	abx__free(s);
	abx__free(token);
	return 0;
}

/*
 * secret.c - secrets at rest in memory.
 */
#include "base/secret.h"

#include <string.h>

#include <openssl/crypto.h>

#include "base/alloc.h"

struct abx__secret {
	size_t len;
	char bytes[];
};

abx__secret *abx__secret_new(const char *value, size_t len)
{
	abx__secret *secret = abx__malloc(sizeof(*secret) + len + 1);

	if (!secret)
		return NULL;
	secret->len = len;
	memcpy(secret->bytes, value, len);
	secret->bytes[len] = '\0';
	return secret;
}

void abx__secret_free(abx__secret *secret)
{
	if (!secret)
		return;
	abx__wipe(secret->bytes, secret->len);
	abx__free(secret);
}

const char *abx__secret_reveal(const abx__secret *secret)
{
	return secret ? secret->bytes : "";
}

size_t abx__secret_len(const abx__secret *secret)
{
	return secret ? secret->len : 0;
}

bool abx__secret_equals(const abx__secret *secret, const char *other, size_t len)
{
	if (!secret || !other || secret->len != len)
		return false;
	return CRYPTO_memcmp(secret->bytes, other, len) == 0;
}

void abx__wipe(void *p, size_t len)
{
	OPENSSL_cleanse(p, len);
}

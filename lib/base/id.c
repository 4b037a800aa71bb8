/*
 * id.c - ids, hashes, hex and base64, over OpenSSL.
 */
#include "base/id.h"

#include <limits.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/alloc.h"
#include <agentbox/error.h>

int abx__random(void *out, size_t len)
{
	if (len > INT_MAX || RAND_bytes(out, (int)len) != 1)
		return ABX_EIO;
	return ABX_OK;
}

int abx__id_random(char *out, size_t len)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint8_t bytes[64];
	size_t n = 0;

	/* Rejection keeps the distribution even: 252 = 7 * 36, 234 = 9 * 26. */
	while (n < len) {
		if (abx__random(bytes, sizeof(bytes)) < 0)
			return ABX_EIO;
		for (size_t i = 0; i < sizeof(bytes) && n < len; i++) {
			if (n == 0 && bytes[i] < 234)
				out[n++] = alphabet[bytes[i] % 26];
			else if (n > 0 && bytes[i] < 252)
				out[n++] = alphabet[bytes[i] % 36];
		}
	}
	out[len] = '\0';
	return ABX_OK;
}

int abx__id_sandbox(char out[ABX__SANDBOX_ID_LEN + 1])
{
	return abx__id_random(out, ABX__SANDBOX_ID_LEN);
}

static void uuid_text(uint8_t b[16], uint8_t version, char out[ABX__UUID_LEN + 1])
{
	char hex[33];
	size_t n = 0;

	b[6] = (uint8_t)((b[6] & 0x0f) | version << 4);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	abx__hex(b, 16, hex);
	for (size_t i = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			out[n++] = '-';
		out[n++] = hex[i];
	}
	out[n] = '\0';
}

int abx__id_uuid(char out[ABX__UUID_LEN + 1])
{
	uint8_t b[16];

	if (abx__random(b, sizeof(b)) < 0)
		return ABX_EIO;
	uuid_text(b, 4, out);
	return ABX_OK;
}

int abx__id_uuid_of(const char *text, char out[ABX__UUID_LEN + 1])
{
	uint8_t hash[ABX__SHA256_LEN];
	int r = abx__sha256(text, strlen(text), hash);

	if (r == ABX_OK)
		uuid_text(hash, 8, out);
	return r;
}

void abx__hex(const void *data, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	out[2 * len] = '\0';
}

int abx__sha256(const void *data, size_t len, uint8_t out[ABX__SHA256_LEN])
{
	return EVP_Digest(data, len, out, NULL, EVP_sha256(), NULL) == 1 ? ABX_OK
									 : ABX_EFAIL;
}

int abx__hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
		     uint8_t out[ABX__SHA256_LEN])
{
	unsigned n = 0;

	if (key_len > INT_MAX ||
	    !HMAC(EVP_sha256(), key, (int)key_len, data, len, out, &n))
		return ABX_EFAIL;
	return ABX_OK;
}

uint32_t abx__fnv1a32(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 16777619u;
	return hash;
}

uint64_t abx__fnv1a64(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t hash = 14695981039346656037ull;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 1099511628211ull;
	return hash;
}

char *abx__base64_encode(const void *data, size_t len)
{
	char *out;

	if (len > INT_MAX / 2)
		return NULL;
	out = abx__malloc((len + 2) / 3 * 4 + 1);
	if (out)
		EVP_EncodeBlock((unsigned char *)out, data, (int)len);
	return out;
}

int abx__base64_decode(const char *s, size_t len, uint8_t **ret, size_t *ret_len)
{
	ABX_CLEANUP(abx__freep) uint8_t *out = NULL;
	size_t padding = 0;
	int n;

	if (len % 4 || len > INT_MAX / 2)
		return ABX_EINVAL;
	/* EVP_DecodeBlock skips blanks at the ends and counts padding as bytes: refuse
	 * one, correct the other. */
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '=' && i + 2 >= len)
			padding++;
		else if (padding ||
			 !((s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z') ||
			   (s[i] >= '0' && s[i] <= '9') || s[i] == '+' || s[i] == '/'))
			return ABX_EINVAL;
	}
	out = abx__malloc(len / 4 * 3 + 1);
	if (!out)
		return ABX_ENOMEM;
	n = len ? EVP_DecodeBlock(out, (const unsigned char *)s, (int)len) : 0;
	if (n < 0 || (size_t)n < padding)
		return ABX_EINVAL;
	*ret_len = (size_t)n - padding;
	out[*ret_len] = '\0';
	*ret = abx_take(out);
	return ABX_OK;
}

char *abx__base64url_encode(const void *data, size_t len)
{
	char *s = abx__base64_encode(data, len);

	if (!s)
		return NULL;
	for (char *p = s; *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	s[strcspn(s, "=")] = '\0';
	return s;
}

int abx__base64url_decode(const char *s, size_t len, uint8_t **ret, size_t *ret_len)
{
	size_t padded = (len + 3) / 4 * 4;
	ABX_CLEANUP(abx__freep) char *copy = abx__malloc(padded + 1);

	if (!copy)
		return ABX_ENOMEM;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '+' || s[i] == '/' || s[i] == '=')
			return ABX_EINVAL;
		copy[i] = s[i] == '-' ? '+' : s[i] == '_' ? '/' : s[i];
	}
	memset(copy + len, '=', padded - len);
	return abx__base64_decode(copy, padded, ret, ret_len);
}

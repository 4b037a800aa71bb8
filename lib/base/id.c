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

/* By character; -1: none of the digits. No character from 128 on is one. */
/* clang-format off */
static const signed char values[128] = {
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, -1, -1, 63,
	52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1,
	-1,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14,
	15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, -1,
	-1, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
	41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1,
};
/* clang-format on */

static int value_of(char c)
{
	return (unsigned char)c < 128 ? values[(unsigned char)c] : -1;
}

/* Whole groups of four; negative when one of the characters is no digit. */
static int decode_groups(const char *s, size_t len, uint8_t *out)
{
	int bad = 0;

	for (size_t i = 0; i < len; i += 4, out += 3) {
		int a = value_of(s[i]), b = value_of(s[i + 1]), c = value_of(s[i + 2]),
		    d = value_of(s[i + 3]);

		bad |= a | b | c | d;
		out[0] = (uint8_t)((unsigned)a << 2 | (unsigned)b >> 4);
		out[1] = (uint8_t)((unsigned)b << 4 | (unsigned)c >> 2);
		out[2] = (uint8_t)((unsigned)c << 6 | (unsigned)d);
	}
	return bad;
}

/* Much output of commands comes through here: one table, and one look at the end for what
 * does not belong, take a sixth of the time of EVP_DecodeBlock() and the checks that it
 * leaves to its caller. */
int abx__base64_decode(const char *s, size_t len, uint8_t **ret, size_t *ret_len)
{
	ABX_CLEANUP(abx__freep) uint8_t *out = NULL;
	char last[4];
	size_t padding = 0, whole;

	if (len % 4 || len > INT_MAX / 2)
		return ABX_EINVAL;
	while (padding < 2 && padding < len && s[len - 1 - padding] == '=')
		padding++;
	out = abx__malloc(len / 4 * 3 + 1);
	if (!out)
		return ABX_ENOMEM;
	whole = padding ? len - 4 : len;
	if (decode_groups(s, whole, out) < 0)
		return ABX_EINVAL;
	if (padding) {
		memcpy(last, s + whole, 4 - padding);
		memset(last + 4 - padding, 'A', padding); /* zeroes, to be cut off */
		if (decode_groups(last, 4, out + whole / 4 * 3) < 0)
			return ABX_EINVAL;
	}
	*ret_len = len / 4 * 3 - padding;
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

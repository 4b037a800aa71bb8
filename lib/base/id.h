/*
 * id.h - random ids, hashes and their text forms.
 */
#ifndef ABX_BASE_ID_H
#define ABX_BASE_ID_H

#include <stddef.h>
#include <stdint.h>

#define ABX__SANDBOX_ID_LEN 20
#define ABX__UUID_LEN 36
#define ABX__SHA256_LEN 32

/* Random bytes from the kernel's generator through OpenSSL; ABX_EIO when it fails. */
int abx__random(void *out, size_t len);
/* 20 characters of [a-z0-9], the first a letter (architecture.md, settled questions). */
int abx__id_sandbox(char out[ABX__SANDBOX_ID_LEN + 1]);
/* `len` characters of [a-z0-9], the first a letter; out has len + 1 bytes. */
int abx__id_random(char *out, size_t len);
/* Version 4 UUID in lower case. */
int abx__id_uuid(char out[ABX__UUID_LEN + 1]);
/* Version 8 UUID: always the same of the same text, for who insists on one. */
int abx__id_uuid_of(const char *text, char out[ABX__UUID_LEN + 1]);
/* Lower-case hex; out has 2 * len + 1 bytes. */
void abx__hex(const void *data, size_t len, char *out);
int abx__sha256(const void *data, size_t len, uint8_t out[ABX__SHA256_LEN]);
int abx__hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
		     uint8_t out[ABX__SHA256_LEN]);
/* FNV-1a (crds.md, section 5 and 9). */
uint32_t abx__fnv1a32(const void *data, size_t len);
uint64_t abx__fnv1a64(const void *data, size_t len);
/* Standard base64 with padding. Encode: a new string or NULL. Decode: ABX_EINVAL for
 * foreign bytes. */
char *abx__base64_encode(const void *data, size_t len);
int abx__base64_decode(const char *s, size_t len, uint8_t **ret, size_t *ret_len);
/* URL-safe alphabet, no padding (RFC 4648 section 5). */
char *abx__base64url_encode(const void *data, size_t len);
int abx__base64url_decode(const char *s, size_t len, uint8_t **ret, size_t *ret_len);

#endif

/*
 * seal.c - the server's key file and the cryptography over it. OpenSSL's EVP calls only;
 * no key or plain text leaves this file but through an abx__secret.
 */
#include "serve/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

#define NONCE_LEN 12
#define TAG_LEN 16
#define PLAIN_MAX ((size_t)64 << 10)

struct abx__seal {
	uint8_t lookup[ABX__SHA256_LEN];
	uint8_t wrap[ABX__SHA256_LEN];
	uint8_t token[ABX__SHA256_LEN];
};

static int derive(const uint8_t key[ABX__SEAL_KEY_LEN], const char *label,
		  uint8_t out[ABX__SHA256_LEN])
{
	return abx__hmac_sha256(key, ABX__SEAL_KEY_LEN, label, strlen(label), out);
}

int abx__seal_new(const uint8_t key[ABX__SEAL_KEY_LEN], abx__seal **ret,
		  abx_error **reterr)
{
	ABX_CLEANUP(abx__seal_freep) abx__seal *seal = abx__calloc(1, sizeof(*seal));

	if (!seal)
		return abx__error_nomem(reterr);
	if (derive(key, "agentbox api-key lookup 1", seal->lookup) < 0 ||
	    derive(key, "agentbox seal 1", seal->wrap) < 0 ||
	    derive(key, "agentbox envd token 1", seal->token) < 0)
		return abx__error_set(reterr, ABX_EIO,
				      "cannot derive keys from the server key");
	*ret = abx_take(seal);
	return ABX_OK;
}

void abx__seal_free(abx__seal *seal)
{
	if (!seal)
		return;
	abx__wipe(seal, sizeof(*seal));
	abx__free(seal);
}

static int read_key(int fd, const char *path, uint8_t key[ABX__SEAL_KEY_LEN],
		    abx_error **reterr)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "server key %s", path);
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077))
		return abx__error_set(reterr, ABX_EDENIED,
				      "server key %s may be read by others: chmod 600 it",
				      path);
	if (st.st_size != ABX__SEAL_KEY_LEN)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"server key %s has %lld bytes, not 32: restore it from a copy",
			path, (long long)st.st_size);
	n = read(fd, key, ABX__SEAL_KEY_LEN);
	if (n != ABX__SEAL_KEY_LEN)
		return abx__error_errno(reterr, ABX_EIO, n < 0 ? errno : EIO,
					"server key %s", path);
	return ABX_OK;
}

/* Written beside its place and renamed, so that a crash leaves a whole key or none. */
static int make_key(const char *path, uint8_t key[ABX__SEAL_KEY_LEN], abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *tmp = abx__strf("%s.new", path);
	ABX_CLEANUP(abx__closep) int fd = -1;

	if (!tmp)
		return abx__error_nomem(reterr);
	if (abx__random(key, ABX__SEAL_KEY_LEN) < 0)
		return abx__error_set(reterr, ABX_EIO,
				      "no random bytes for the server key");
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fchmod(fd, 0600) < 0 ||
	    write(fd, key, ABX__SEAL_KEY_LEN) != ABX__SEAL_KEY_LEN || fsync(fd) < 0 ||
	    rename(tmp, path) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "server key %s", path);
	return ABX_OK;
}

int abx__seal_load(const char *path, abx__seal **ret, abx_error **reterr)
{
	uint8_t key[ABX__SEAL_KEY_LEN];
	ABX_CLEANUP(abx__closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r;

	if (fd >= 0)
		r = read_key(fd, path, key, reterr);
	else if (errno == ENOENT)
		r = make_key(path, key, reterr);
	else
		r = abx__error_errno(reterr, ABX_EIO, errno, "server key %s", path);
	if (r == ABX_OK)
		r = abx__seal_new(key, ret, reterr);
	abx__wipe(key, sizeof(key));
	return r;
}

static void cipher_freep(EVP_CIPHER_CTX **ctx)
{
	EVP_CIPHER_CTX_free(*ctx);
}

int abx__seal_wrap(const abx__seal *seal, const char *name, const char *plain, size_t len,
		   char **ret, abx_error **reterr)
{
	ABX_CLEANUP(cipher_freep) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	ABX_CLEANUP(abx__freep) uint8_t *out = NULL;
	char *text;
	int n = 0, tail = 0;

	if (len > PLAIN_MAX)
		return abx__error_set(reterr, ABX_ETOOBIG, "secret of %s is over 64 KiB",
				      name);
	out = abx__malloc(NONCE_LEN + len + TAG_LEN);
	if (!out || !ctx)
		return abx__error_nomem(reterr);
	if (abx__random(out, NONCE_LEN) < 0 ||
	    EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, seal->wrap, out) != 1 ||
	    EVP_EncryptUpdate(ctx, NULL, &n, (const uint8_t *)name, (int)strlen(name)) !=
		    1 ||
	    EVP_EncryptUpdate(ctx, out + NONCE_LEN, &n, (const uint8_t *)plain,
			      (int)len) != 1 ||
	    EVP_EncryptFinal_ex(ctx, out + NONCE_LEN + n, &tail) != 1 ||
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_LEN,
				out + NONCE_LEN + len) != 1)
		return abx__error_set(reterr, ABX_EIO, "cannot seal the secret of %s",
				      name);
	text = abx__base64_encode(out, NONCE_LEN + len + TAG_LEN);
	if (!text)
		return abx__error_nomem(reterr);
	*ret = text;
	return ABX_OK;
}

/* 1 when `raw` opened into `out`, which has room for len - NONCE_LEN - TAG_LEN bytes. */
static int decrypt(EVP_CIPHER_CTX *ctx, const abx__seal *seal, const char *name,
		   uint8_t *raw, size_t len, uint8_t *out)
{
	size_t body = len - NONCE_LEN - TAG_LEN;
	int n = 0, tail = 0;

	return EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, seal->wrap, raw) == 1 &&
	       EVP_DecryptUpdate(ctx, NULL, &n, (const uint8_t *)name,
				 (int)strlen(name)) == 1 &&
	       EVP_DecryptUpdate(ctx, out, &n, raw + NONCE_LEN, (int)body) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_LEN,
				   raw + NONCE_LEN + body) == 1 &&
	       EVP_DecryptFinal_ex(ctx, out + n, &tail) == 1;
}

int abx__seal_unwrap(const abx__seal *seal, const char *name, const char *sealed,
		     abx__secret **ret, abx_error **reterr)
{
	ABX_CLEANUP(cipher_freep) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	ABX_CLEANUP(abx__freep) uint8_t *raw = NULL;
	uint8_t *out;
	size_t len = 0;
	int r;

	if (!ctx)
		return abx__error_nomem(reterr);
	r = abx__base64_decode(sealed, strlen(sealed), &raw, &len);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0 || len < NONCE_LEN + TAG_LEN || len > NONCE_LEN + PLAIN_MAX + TAG_LEN)
		return abx__error_set(reterr, ABX_EDENIED,
				      "sealed secret of %s is damaged", name);
	out = abx__malloc(len);
	if (!out)
		return abx__error_nomem(reterr);
	if (decrypt(ctx, seal, name, raw, len, out))
		*ret = abx__secret_new((const char *)out, len - NONCE_LEN - TAG_LEN);
	else
		r = abx__error_set(reterr, ABX_EDENIED,
				   "secret of %s was not sealed by this server's key",
				   name);
	if (r == ABX_OK && !*ret)
		r = abx__error_nomem(reterr);
	abx__wipe(out, len);
	abx__free(out);
	return r;
}

int abx__seal_lookup_hash(const abx__seal *seal, const char *raw, size_t len,
			  uint8_t out[ABX__SHA256_LEN])
{
	return abx__hmac_sha256(seal->lookup, sizeof(seal->lookup), raw, len, out);
}

const uint8_t *abx__seal_token_key(const abx__seal *seal)
{
	return seal->token;
}

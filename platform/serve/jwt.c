/*
 * jwt.c - a token's parts, its signature, its claims (RFC 7519, RFC 7515).
 */
#include "serve/jwt.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "io/json.h"

#define SECRET_MAX 4096

typedef struct parts {
	const char *head, *claims, *signature;
	size_t head_len, claims_len, signature_len;
} parts;

static bool split(const char *token, parts *p)
{
	const char *first = strchr(token, '.');
	const char *second = first ? strchr(first + 1, '.') : NULL;

	if (!second || strchr(second + 1, '.') || strlen(token) > ABX__JWT_MAX)
		return false;
	p->head = token;
	p->head_len = (size_t)(first - token);
	p->claims = first + 1;
	p->claims_len = (size_t)(second - first - 1);
	p->signature = second + 1;
	p->signature_len = strlen(second + 1);
	return p->head_len > 0 && p->claims_len > 0;
}

bool abx__jwt_looks_like(const char *token)
{
	parts p;

	return split(token, &p);
}

static int refuse(abx_error **reterr, const char *why)
{
	return abx__error_set(reterr, ABX_EUNAUTHENTICATED, "invalid session token: %s",
			      why);
}

static int check_signature(const parts *p, const abx__secret *secret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) uint8_t *given = NULL;
	uint8_t wanted[ABX__SHA256_LEN];
	size_t len = 0;

	if (abx__hmac_sha256(abx__secret_reveal(secret), abx__secret_len(secret), p->head,
			     p->head_len + 1 + p->claims_len, wanted) < 0)
		return abx__error_set(reterr, ABX_EFAIL, "cannot verify a session token");
	if (abx__base64url_decode(p->signature, p->signature_len, &given, &len) < 0 ||
	    len != sizeof(wanted) || CRYPTO_memcmp(given, wanted, sizeof(wanted)) != 0)
		return refuse(reterr, "its signature is not ours");
	return ABX_OK;
}

static int decode(const char *text, size_t len, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) uint8_t *json = NULL;
	size_t json_len = 0;

	if (abx__base64url_decode(text, len, &json, &json_len) < 0 ||
	    abx__json_parse_object((const char *)json, json_len, ABX__JWT_MAX, ret,
				   NULL) < 0)
		return refuse(reterr, "it is damaged");
	return ABX_OK;
}

static int check_head(const parts *p, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *head = NULL;
	const char *alg = NULL;
	int r = decode(p->head, p->head_len, &head, reterr);

	if (r < 0)
		return r;
	if (abx__json_get_str(head, "alg", &alg, NULL) != 1 || strcmp(alg, "HS256") != 0)
		return refuse(reterr, "its alg is not HS256");
	if (json_object_object_get_ex(head, "crit", NULL))
		return refuse(reterr, "it has critical extensions");
	return ABX_OK;
}

/* A NumericDate, which may have a fraction. 1, 0 when absent, ABX_EINVAL. */
static int get_date(json_object *claims, const char *name, double *ret_ms)
{
	json_object *v = NULL;

	if (!json_object_object_get_ex(claims, name, &v) || !v)
		return 0;
	if (!json_object_is_type(v, json_type_int) &&
	    !json_object_is_type(v, json_type_double))
		return ABX_EINVAL;
	*ret_ms = json_object_get_double(v) * 1000;
	return 1;
}

static int check_time(json_object *claims, int64_t now_ms, abx_error **reterr)
{
	double end = 0, begin = 0;
	int has_end = get_date(claims, "exp", &end);
	int has_begin = get_date(claims, "nbf", &begin);

	if (has_end < 0 || has_begin < 0)
		return refuse(reterr, "exp or nbf is no number");
	if (has_end && !((double)now_ms < end))
		return refuse(reterr, "it has expired");
	if (has_begin && !((double)now_ms >= begin))
		return refuse(reterr, "it is not valid yet");
	return ABX_OK;
}

/* 1, 0 when absent or empty, ABX_EINVAL: no string, or too long. */
static int get_text(json_object *claims, const char *name,
		    char out[ABX__JWT_CLAIM_MAX + 1])
{
	const char *text = NULL;
	int r = abx__json_get_str(claims, name, &text, NULL);

	out[0] = '\0';
	if (r <= 0)
		return r;
	if (abx__str_copy(out, ABX__JWT_CLAIM_MAX + 1, text) < 0)
		return ABX_EINVAL;
	return *text ? 1 : 0;
}

static int read_claims(json_object *claims, abx__jwt *ret, abx_error **reterr)
{
	char role[ABX__JWT_CLAIM_MAX + 1];
	int r = get_text(claims, "user", ret->user);

	if (r == 0)
		r = get_text(claims, "sub", ret->user);
	if (r <= 0)
		return refuse(reterr, "it names no user");
	if (get_text(claims, "team", ret->team) < 0 ||
	    get_text(claims, "email", ret->email) < 0 ||
	    get_text(claims, "role", role) < 0)
		return refuse(reterr, "a claim is no text of at most 253 bytes");
	if (*role && strcmp(role, "tenant") != 0 && strcmp(role, "admin") != 0)
		return refuse(reterr, "its role is neither tenant nor admin");
	ret->admin = strcmp(role, "admin") == 0;
	return ABX_OK;
}

int abx__jwt_verify(const char *token, const abx__secret *secret, int64_t now_ms,
		    abx__jwt *ret, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *claims = NULL;
	abx__jwt jwt = { 0 };
	parts p;
	int r;

	if (!split(token, &p))
		return refuse(reterr, "it is not HEAD.CLAIMS.SIGNATURE");
	r = check_signature(&p, secret, reterr);
	if (r == ABX_OK)
		r = check_head(&p, reterr);
	if (r == ABX_OK)
		r = decode(p.claims, p.claims_len, &claims, reterr);
	if (r == ABX_OK)
		r = check_time(claims, now_ms, reterr);
	if (r == ABX_OK)
		r = read_claims(claims, &jwt, reterr);
	if (r == ABX_OK)
		*ret = jwt;
	return r;
}

int abx__jwt_secret_load(const char *path, abx__secret **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char text[SECRET_MAX + 1];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "JWT secret %s", path);
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077))
		return abx__error_set(reterr, ABX_EDENIED,
				      "JWT secret %s may be read by others: chmod 600 it",
				      path);
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "JWT secret %s", path);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n < ABX__JWT_SECRET_MIN || n > SECRET_MAX) {
		abx__wipe(text, sizeof(text));
		return abx__error_set(reterr, ABX_EINVAL,
				      "JWT secret %s must have %d to %d bytes", path,
				      ABX__JWT_SECRET_MIN, SECRET_MAX);
	}
	*ret = abx__secret_new(text, (size_t)n);
	abx__wipe(text, sizeof(text));
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

/*
 * signing.c - signed file URLs.
 */
#include "envd/signing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file-signature.h"
#include "base/str.h"

/* One parameter of the query; absent leaves *ret NULL. */
static int read_one(const char *query, const char *name, char **ret, abx_error **reterr)
{
	int r = abx__query_get(query, name, ret);

	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "the %s parameter is broken or holds a NUL byte",
				      name);
	return ABX_OK;
}

static int read_expiration(const char *query, abx__signing *signing, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int r = read_one(query, "signature_expiration", &text, reterr);

	if (r < 0 || !text)
		return r;
	if (abx__parse_i64(text, INT64_MIN, INT64_MAX, &signing->expires_s) < 0)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"signature_expiration: expected a number of seconds");
	signing->expires = true;
	return ABX_OK;
}

int abx__signing_read(const char *query, abx__signing *ret, abx_error **reterr)
{
	int r;

	*ret = (abx__signing){ 0 };
	r = read_one(query, "path", &ret->path, reterr);
	if (r >= 0)
		r = read_one(query, "username", &ret->username, reterr);
	if (r >= 0)
		r = read_one(query, "signature", &ret->signature, reterr);
	if (r >= 0)
		r = read_expiration(query, ret, reterr);
	if (r < 0)
		abx__signing_done(ret);
	return r;
}

void abx__signing_done(abx__signing *signing)
{
	abx__free(signing->path);
	abx__free(signing->username);
	abx__free(signing->signature);
	*signing = (abx__signing){ 0 };
}

const char *abx__signing_check(const abx__signing *signing, const abx__secret *token,
			       const char *operation, int64_t now_s)
{
	char text[ABX__FILE_SIGNATURE_SIZE];
	abx__secret *expected;
	bool equal;

	if (!signing->signature)
		return "missing signature query parameter";
	if (abx__file_signature(signing->path ? signing->path : "", operation,
				signing->username ? signing->username : "", token,
				signing->expires ? &signing->expires_s : NULL, text) < 0)
		return "invalid signature";
	expected = abx__secret_new(text, strlen(text));
	equal = abx__secret_equals(expected, signing->signature,
				   strlen(signing->signature));
	abx__secret_free(expected);
	abx__wipe(text, sizeof(text));
	if (!equal)
		return "invalid signature";
	if (signing->expires && signing->expires_s < now_s)
		return "signature is already expired";
	return NULL;
}

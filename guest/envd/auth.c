/*
 * auth.c - credentials of a request. With a token set nothing passes without it but what
 * has a rule of its own: on files a signature may stand in for it.
 */
#include "envd/auth.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/secret.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/envd.h"

int abx__auth_basic_user(const char *header, char **ret)
{
	ABX_CLEANUP(abx__freep) uint8_t *text = NULL;
	const char *colon;
	size_t len;
	int r;

	if (!header || strncasecmp(header, "Basic ", 6) != 0)
		return 0;
	header += 6;
	r = abx__base64_decode(header, strlen(header), &text, &len);
	if (r == ABX_ENOMEM)
		return r;
	colon = r < 0 ? NULL : memchr(text, ':', len);
	if (!colon || memchr(text, '\0', len))
		return 0;
	*ret = abx__strndup((const char *)text, (size_t)(colon - (const char *)text));
	return *ret ? 1 : ABX_ENOMEM;
}

/* Exactly these have rules of their own, or none. */
static bool is_exempt(const abx__http_req *req)
{
	static const char *const exempt[][2] = { { "GET", "/health" },
						 { "GET", "/files" },
						 { "POST", "/files" },
						 { "POST", "/init" } };

	for (size_t i = 0; i < sizeof(exempt) / sizeof(exempt[0]); i++)
		if (strcmp(abx__http_req_method(req), exempt[i][0]) == 0 &&
		    strcmp(abx__http_req_path(req), exempt[i][1]) == 0)
			return true;
	return false;
}

static bool has_token(const struct abx__envd *envd, const abx__http_req *req)
{
	const char *token = abx__http_req_header(req, "X-Access-Token");

	return token && abx__secret_equals(envd->token, token, strlen(token));
}

bool abx__auth_check_token(const struct abx__envd *envd, abx__http_req *req)
{
	if (!envd->token || is_exempt(req) || has_token(envd, req))
		return true;
	abx__answer_error(
		req, 401,
		"unauthorized access, please provide a valid access token or method "
		"signing if supported");
	return false;
}

bool abx__auth_check_file_token(const struct abx__envd *envd, abx__http_req *req,
				const abx__signing *signing, const char *operation)
{
	const char *header = abx__http_req_header(req, "X-Access-Token"), *problem;

	if (!envd->token || has_token(envd, req))
		return true;
	/* An empty header is none, as in the reference. */
	problem = header && *header ? "access token present in header but does not match"
				    : abx__signing_check(signing, envd->token, operation,
							 abx__wall_ms() / 1000);
	if (!problem)
		return true;
	abx__answer_error(req, 401, "%s", problem);
	return false;
}

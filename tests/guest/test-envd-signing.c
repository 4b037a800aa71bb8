/*
 * test-envd-signing.c - access tokens and signed file URLs at the real daemon: what
 * passes, and the exact words of what does not.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file-signature.h"
#include "base/str.h"
#include "envd-expect.h"

static envd_child child;

static void start(void)
{
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
	envd_expect(&child, "POST", "/init", NULL, "{\"accessToken\":\"tok\"}", 204, "");
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_signing, .init = start, .fini = stop, .timeout = 60);

#define TOKEN "X-Access-Token: tok\r\n"
#define UNAUTHORIZED                                                                  \
	"unauthorized access, please provide a valid access token or method signing " \
	"if supported"

/* "/files?path=PATH&username=USER&signature=...", as an SDK makes it. */
static char *sign(const char *name, const char *operation, const char *user,
		  const int64_t *expires_s)
{
	ABX_CLEANUP(abx__freep) char *path = envd_expand(&child, name);
	ABX_CLEANUP(abx__freep) char *encoded = NULL;
	abx__secret *token = abx__secret_new("tok", 3);
	char signature[ABX__FILE_SIGNATURE_SIZE];
	char *target;

	cr_assert_eq(
		abx__file_signature(path, operation, user, token, expires_s, signature),
		0);
	abx__secret_free(token);
	encoded = abx__url_encode(signature);
	target = expires_s ? abx__strf("/files?path=%s&username=%s&signature=%s"
				       "&signature_expiration=%" PRId64,
				       path, user, encoded, *expires_s)
			   : abx__strf("/files?path=%s&username=%s&signature=%s", path,
				       user, encoded);
	cr_assert(target);
	return target;
}

Test(envd_signing, signed_uploads_and_downloads_pass)
{
	const int64_t later = time(NULL) + 60;
	ABX_CLEANUP(abx__freep) char *put = sign("@/f", "write", "", NULL);
	ABX_CLEANUP(abx__freep) char *get = sign("@/f", "read", "", NULL);
	ABX_CLEANUP(abx__freep) char *get_root = sign("@/f", "read", "root", &later);
	ABX_CLEANUP(abx__freep) char *none = sign("@/none", "read", "", &later);

	envd_expect(&child, "POST", put, OCTETS, "hello", 200,
		    "[{\"path\":\"@/f\",\"name\":\"f\",\"type\":\"file\"}]");
	envd_expect(&child, "POST", put, FORM,
		    "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
		    "filename=\"g\"\r\n\r\nhello you\r\n--XX--\r\n",
		    200, NULL);
	envd_expect(&child, "GET", get, NULL, NULL, 200, "hello you");
	envd_expect(&child, "GET", get_root, NULL, NULL, 200, "hello you");
	envd_expect_error(&child, "GET", none, NULL, NULL, 404,
			  "path '@/none' does not exist");
}

Test(envd_signing, other_signatures_are_refused_in_these_words)
{
	const int64_t past = time(NULL) - 3600;
	ABX_CLEANUP(abx__freep) char *write = sign("/etc/passwd", "write", "", NULL);
	ABX_CLEANUP(abx__freep) char *read = sign("/etc/passwd", "read", "", NULL);
	ABX_CLEANUP(abx__freep) char *expired = sign("/etc/passwd", "read", "", &past);
	ABX_CLEANUP(abx__freep)
	char *moved = abx__strf("%s&signature_expiration=%" PRId64, read, past);
	ABX_CLEANUP(abx__freep) char *soon = abx__strf("%s&signature_expiration=x", read);

	envd_expect_error(&child, "GET", "/files?path=/etc/passwd", NULL, NULL, 401,
			  "missing signature query parameter");
	envd_expect_error(&child, "POST", "/files?path=@/f", OCTETS, "x", 401,
			  "missing signature query parameter");
	envd_expect_error(&child, "GET", "/files?path=/etc/passwd&signature=v1_x", NULL,
			  NULL, 401, "invalid signature");
	envd_expect_error(&child, "GET", write, NULL, NULL, 401, "invalid signature");
	envd_expect_error(&child, "POST", read, OCTETS, "x", 401, "invalid signature");
	envd_expect_error(&child, "GET", expired, NULL, NULL, 401,
			  "signature is already expired");
	envd_expect_error(&child, "GET", moved, NULL, NULL, 401, "invalid signature");
	envd_expect_error(&child, "GET", soon, NULL, NULL, 400,
			  "signature_expiration: expected a number of seconds");
	/* A wrong token is not made good by a good signature; an empty one is none. */
	envd_expect_error(&child, "GET", read, "X-Access-Token: no\r\n", NULL, 401,
			  "access token present in header but does not match");
	envd_expect(&child, "GET", read, "X-Access-Token: \r\n", NULL, 200, NULL);
	envd_expect(&child, "GET", "/files?path=/etc/passwd&signature=v1_x", TOKEN, NULL,
		    200, NULL);
}

Test(envd_signing, only_four_routes_go_without_the_token)
{
	static const char *const closed[][2] = {
		{ "GET", "/envs" },
		{ "GET", "/metrics" },
		{ "POST", "/health" },
		{ "GET", "/health/" },
		{ "HEAD", "/files" },
		{ "GET", "/files/" },
		{ "POST", "/files/compose" },
		{ "GET", "/init" },
		{ "POST", "/freeze" },
		{ "POST", "/unfreeze" },
		{ "POST", "/collapse" },
		{ "POST", "/fsfreeze" },
		{ "POST", "/fsthaw" },
		{ "POST", "/upgrade" },
		{ "GET", "/nothing" },
		{ "POST", "/process.Process/List" },
		{ "POST", "/filesystem.Filesystem/ListDir" },
	};

	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) {
		envd_answer answer =
			envd_ask(&child, closed[i][0], closed[i][1], JSON, "{}");

		cr_assert(answer.status == 401, "%s %s: %d", closed[i][0], closed[i][1],
			  answer.status);
		envd_answer_done(&answer);
		if (strcmp(closed[i][0], "HEAD") != 0)
			envd_expect_error(&child, closed[i][0], closed[i][1],
					  JSON "X-Access-Token: tok2\r\n", "{}", 401,
					  UNAUTHORIZED);
	}
	envd_expect(&child, "GET", "/health", NULL, NULL, 204, "");
	envd_expect(&child, "GET", "/envs", TOKEN, NULL, 200,
		    "{\"E2B_SANDBOX\":\"false\"}");
	envd_expect(&child, "POST", "/process.Process/List", JSON TOKEN, "{}", 200, "{}");
}

Test(envd_signing, init_again_needs_the_token_and_keeps_it)
{
	envd_answer answer;

	envd_expect(&child, "POST", "/init", NULL, "", 401,
		    "access token reset not authorized");
	envd_expect(&child, "POST", "/init", NULL, "{}", 401,
		    "access token reset not authorized");
	envd_expect(&child, "POST", "/init", TOKEN, "{\"envVars\":{\"A\":\"1\"}}", 401,
		    "access token reset not authorized");
	envd_expect(&child, "POST", "/init", NULL, "{\"accessToken\":\"\"}", 401,
		    "access token reset not authorized");
	envd_expect(&child, "POST", "/init", NULL, "{\"accessToken\":\"no\"}", 401,
		    "access token validation failed");
	envd_expect(&child, "GET", "/envs", TOKEN, NULL, 200,
		    "{\"E2B_SANDBOX\":\"false\"}");
	/* A stale call that knows the token is taken and changes nothing. */
	envd_expect(&child, "POST", "/init", NULL,
		    "{\"accessToken\":\"tok\",\"timestamp\":\"2026-01-01T00:00:02Z\","
		    "\"envVars\":{\"A\":\"2\"}}",
		    204, "");
	envd_expect(&child, "POST", "/init", NULL,
		    "{\"accessToken\":\"tok\",\"timestamp\":\"2026-01-01T00:00:01Z\","
		    "\"envVars\":{\"A\":\"1\"}}",
		    204, "");
	envd_expect(&child, "POST", "/init", NULL,
		    "{\"accessToken\":\"no\",\"timestamp\":\"2026-01-01T00:00:01Z\"}",
		    401, "access token validation failed");
	envd_expect(&child, "GET", "/envs", TOKEN, NULL, 200,
		    "{\"A\":\"2\",\"E2B_SANDBOX\":\"false\"}");
	envd_expect(&child, "GET", "/envs", NULL, NULL, 401, NULL);
	answer = envd_ask(&child, "POST", "/init", NULL, "{}");
	cr_assert(envd_answer_has(&answer, "X-Envd-Version", "0.6.13"));
	envd_answer_done(&answer);
}

/* Console sessions: what is taken, and what is not and why. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "serve/jwt.h"

#define SECRET "0123456789abcdef0123456789abcdef"
#define NOW_MS INT64_C(1700000000000)

static char *token_of(const char *head, const char *claims, const char *secret)
{
	char *h = abx__base64url_encode(head, strlen(head));
	char *c = abx__base64url_encode(claims, strlen(claims));
	char *signed_text = abx__strf("%s.%s", h, c);
	uint8_t mac[ABX__SHA256_LEN];
	char *s, *token;

	abx__hmac_sha256(secret, strlen(secret), signed_text, strlen(signed_text), mac);
	s = abx__base64url_encode(mac, sizeof(mac));
	token = abx__strf("%s.%s", signed_text, s);
	abx__free(h);
	abx__free(c);
	abx__free(signed_text);
	abx__free(s);
	return token;
}

static int verify(const char *token, abx__jwt *ret, abx_error **reterr)
{
	abx__secret *secret = abx__secret_new(SECRET, strlen(SECRET));
	int r = abx__jwt_verify(token, secret, NOW_MS, ret, reterr);

	abx__secret_free(secret);
	return r;
}

static const char hs256[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";

Test(serve_jwt, says_who_it_is)
{
	static const struct {
		const char *claims, *user, *team, *email;
		bool admin;
	} rows[] = {
		{ "{\"user\":\"u\",\"team\":\"t\",\"email\":\"u@x\"}", "u", "t", "u@x",
		  false },
		{ "{\"sub\":\"s\"}", "s", "", "", false },
		{ "{\"sub\":\"s\",\"user\":\"\",\"team\":\"t\"}", "s", "t", "", false },
		{ "{\"user\":\"u\",\"sub\":\"s\",\"role\":\"admin\"}", "u", "", "",
		  true },
		{ "{\"user\":\"u\",\"role\":\"tenant\",\"exp\":1700000001}", "u", "", "",
		  false },
		{ "{\"user\":\"u\",\"nbf\":1700000000,\"exp\":1700000000.5}", "u", "", "",
		  false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__freep)
		char *token = token_of(hs256, rows[i].claims, SECRET);
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
		abx__jwt jwt;

		cr_assert(abx__jwt_looks_like(token));
		cr_assert_eq(verify(token, &jwt, &err), ABX_OK, "%s: %s", rows[i].claims,
			     abx_error_message(err));
		cr_assert_str_eq(jwt.user, rows[i].user);
		cr_assert_str_eq(jwt.team, rows[i].team);
		cr_assert_str_eq(jwt.email, rows[i].email);
		cr_assert_eq(jwt.admin, rows[i].admin);
	}
}

Test(serve_jwt, refuses_everything_else)
{
	static const struct {
		const char *head, *claims, *secret, *why;
	} rows[] = {
		{ hs256, "{\"user\":\"u\"}", "another secret of the same length",
		  "ours" },
		{ "{\"alg\":\"none\"}", "{\"user\":\"u\"}", SECRET, "HS256" },
		{ "{\"alg\":\"HS512\"}", "{\"user\":\"u\"}", SECRET, "HS256" },
		{ "{}", "{\"user\":\"u\"}", SECRET, "HS256" },
		{ "{\"alg\":\"HS256\",\"crit\":[\"x\"]}", "{\"user\":\"u\"}", SECRET,
		  "critical" },
		{ "no json", "{\"user\":\"u\"}", SECRET, "damaged" },
		{ hs256, "[]", SECRET, "damaged" },
		{ hs256, "{}", SECRET, "no user" },
		{ hs256, "{\"user\":7}", SECRET, "no user" },
		{ hs256, "{\"user\":\"u\",\"exp\":1700000000}", SECRET, "expired" },
		{ hs256, "{\"user\":\"u\",\"exp\":\"soon\"}", SECRET, "no number" },
		{ hs256, "{\"user\":\"u\",\"nbf\":1700000001}", SECRET, "not valid yet" },
		{ hs256, "{\"user\":\"u\",\"role\":\"root\"}", SECRET, "role" },
		{ hs256, "{\"user\":\"u\",\"team\":[]}", SECRET, "claim" },
	};
	abx__jwt jwt;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__freep)
		char *token = token_of(rows[i].head, rows[i].claims, rows[i].secret);
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		cr_assert_eq(verify(token, &jwt, &err), ABX_EUNAUTHENTICATED, "%s %s",
			     rows[i].head, rows[i].claims);
		cr_assert(strstr(abx_error_message(err), rows[i].why), "%s: %s",
			  rows[i].claims, abx_error_message(err));
	}
}

Test(serve_jwt, every_changed_byte_is_noticed)
{
	ABX_CLEANUP(abx__freep) char *token = token_of(hs256, "{\"user\":\"u\"}", SECRET);
	size_t len = strlen(token);
	abx__jwt jwt;

	/* Not the very last: its low bits are padding. */
	for (size_t i = 0; i + 1 < len; i++) {
		char before = token[i];

		token[i] = before == 'A' ? 'B' : 'A';
		cr_assert_eq(verify(token, &jwt, NULL), ABX_EUNAUTHENTICATED, "byte %zu",
			     i);
		token[i] = before;
	}
	token[len - 43] = '\0'; /* no signature */
	cr_assert_eq(verify(token, &jwt, NULL), ABX_EUNAUTHENTICATED);
	cr_assert_eq(verify("", &jwt, NULL), ABX_EUNAUTHENTICATED);
	cr_assert_eq(verify("a.b", &jwt, NULL), ABX_EUNAUTHENTICATED);
	cr_assert_eq(verify("a.b.c.d", &jwt, NULL), ABX_EUNAUTHENTICATED);
	cr_assert_not(abx__jwt_looks_like("agbx_0123"));
}

static int load(const char *text, mode_t mode)
{
	char path[] = "/tmp/jwt-secret-XXXXXX";
	abx__secret *secret = NULL;
	int fd = mkstemp(path), r;

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fchmod(fd, mode);
	close(fd);
	r = abx__jwt_secret_load(path, &secret, NULL);
	if (r == ABX_OK)
		cr_assert_str_eq(abx__secret_reveal(secret), SECRET);
	abx__secret_free(secret);
	unlink(path);
	return r;
}

Test(serve_jwt, the_secret_is_a_file_of_its_own)
{
	abx__secret *secret = NULL;

	cr_assert_eq(load(SECRET "\n", 0600), ABX_OK);
	cr_assert_eq(load(SECRET, 0644), ABX_EDENIED);
	cr_assert_eq(load("short\n", 0600), ABX_EINVAL);
	cr_assert_eq(abx__jwt_secret_load("/nonexistent/secret", &secret, NULL), ABX_EIO);
}

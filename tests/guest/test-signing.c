/*
 * test-signing.c - the parameters of signed URLs and their judgement.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file-signature.h"
#include "envd/signing.h"

#define NOW 1700000000

static const char *check(const char *query, const char *operation)
{
	abx__secret *token = abx__secret_new("tok", 3);
	abx__signing signing;
	const char *problem;

	cr_assert_eq(abx__signing_read(query, &signing, NULL), ABX_OK, "%s", query);
	problem = abx__signing_check(&signing, token, operation, NOW);
	abx__signing_done(&signing);
	abx__secret_free(token);
	return problem ? problem : "good";
}

/* A query signed for `path`, `user` and `expires_s` (0: never), with `more` behind it. */
static const char *sign(const char *path, const char *user, int64_t expires_s,
			const char *more)
{
	static char query[512];
	char signature[ABX__FILE_SIGNATURE_SIZE], encoded[160] = "";
	abx__secret *token = abx__secret_new("tok", 3);

	abx__file_signature(path, "read", user, token, expires_s ? &expires_s : NULL,
			    signature);
	abx__secret_free(token);
	for (const char *p = signature; *p; p++)
		snprintf(encoded + strlen(encoded), sizeof(encoded) - strlen(encoded),
			 "%%%02X", (unsigned)*p);
	snprintf(query, sizeof(query), "path=%s&signature=%s%s", path, encoded, more);
	return query;
}

Test(guest_signing, a_signature_is_for_one_path_operation_user_and_moment)
{
	const char *good = "good", *bad = "invalid signature";

	cr_assert_str_eq(check(sign("/a", "", 0, ""), "read"), good);
	cr_assert_str_eq(check(sign("/a", "", 0, "&username="), "read"), good);
	cr_assert_str_eq(check(sign("/a", "user", 0, "&username=user"), "read"), good);
	cr_assert_str_eq(check(sign("/a", "", 0, ""), "write"), bad);
	cr_assert_str_eq(check(sign("/a", "user", 0, ""), "read"), bad);
	cr_assert_str_eq(check(sign("/a", "", 0, "&username=root"), "read"), bad);
	cr_assert_str_eq(
		check(sign("/a", "", NOW, "&signature_expiration=1700000000"), "read"),
		good);
	cr_assert_str_eq(
		check(sign("/a", "", NOW - 1, "&signature_expiration=1699999999"),
		      "read"),
		"signature is already expired");
	/* The expiration is part of what is signed, so it can neither be added nor moved.
	 */
	cr_assert_str_eq(
		check(sign("/a", "", 0, "&signature_expiration=1800000000"), "read"),
		bad);
	cr_assert_str_eq(
		check(sign("/a", "", NOW, "&signature_expiration=1800000000"), "read"),
		bad);
	cr_assert_str_eq(check(sign("/a", "", NOW, ""), "read"), bad);
}

Test(guest_signing, what_is_missing_or_malformed_is_told)
{
	const char *missing = "missing signature query parameter";

	cr_assert_str_eq(check(NULL, "read"), missing);
	cr_assert_str_eq(check("path=/a", "read"), missing);
	cr_assert_str_eq(check("path=/a&signature=", "read"), "invalid signature");
	cr_assert_str_eq(check("path=/a&signature=v1_", "read"), "invalid signature");
	cr_assert_str_eq(check("path=/a&signature=v2_x", "read"), "invalid signature");
}

Test(guest_signing, broken_parameters_are_named)
{
	static const struct {
		const char *query, *text;
	} rows[] = {
		{ "signature_expiration=", "signature_expiration: expected a number" },
		{ "signature_expiration=soon",
		  "signature_expiration: expected a number" },
		{ "signature_expiration=9223372036854775808",
		  "signature_expiration: expected a number" },
		{ "path=%zz", "the path parameter is broken or holds a NUL byte" },
		{ "path=a%00b", "the path parameter is broken or holds a NUL byte" },
		{ "username=%", "the username parameter is broken" },
		{ "signature=%00", "the signature parameter is broken" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx_error *err = NULL;
		abx__signing signing;

		cr_assert_eq(abx__signing_read(rows[i].query, &signing, &err), ABX_EINVAL,
			     "%s", rows[i].query);
		cr_assert(strstr(abx_error_message(err), rows[i].text), "%s",
			  abx_error_message(err));
		abx_error_free(err);
		cr_assert_null(signing.path);
	}
}

/* Ids, hashes and base64. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include <agentbox/error.h>

Test(base_id, a_sandbox_id_is_20_lower_alphanumerics_with_a_leading_letter)
{
	char id[ABX__SANDBOX_ID_LEN + 1];

	for (int i = 0; i < 1000; i++) {
		cr_assert_eq(abx__id_sandbox(id), ABX_OK);
		cr_assert_eq(strlen(id), 20);
		cr_assert(islower((unsigned char)id[0]));
		cr_assert_eq(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789"), 20);
	}
}

Test(base_id, fnv_matches_the_published_vectors)
{
	cr_assert_eq(abx__fnv1a32("", 0), 0x811c9dc5u);
	cr_assert_eq(abx__fnv1a32("foobar", 6), 0xbf9cf968u);
	cr_assert_eq(abx__fnv1a64("foobar", 6), 0x85944171f73967e8ull);
}

Test(base_id, base64_round_trips_and_refuses_foreign_bytes)
{
	static const char *const bad[] = { "a",      "ab=c", "YQ=", "Y Q=",
					   "YQ==\n", "====", "!!!!" };
	uint8_t data[100], *back = NULL;
	size_t len;

	for (size_t n = 0; n < sizeof(data); n++) {
		char *text, *url;

		abx__random(data, n);
		text = abx__base64_encode(data, n);
		url = abx__base64url_encode(data, n);
		cr_assert_null(strpbrk(url, "+/="));
		cr_assert_eq(abx__base64_decode(text, strlen(text), &back, &len), ABX_OK);
		cr_assert(len == n && memcmp(back, data, n) == 0);
		abx__free(back);
		cr_assert_eq(abx__base64url_decode(url, strlen(url), &back, &len),
			     ABX_OK);
		cr_assert(len == n && memcmp(back, data, n) == 0);
		abx__free(back);
		abx__free(text);
		abx__free(url);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(abx__base64_decode(bad[i], strlen(bad[i]), &back, &len),
			     ABX_EINVAL, "%s", bad[i]);
}

Test(base_id, base64_refuses_each_foreign_byte_at_each_place)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789+/";
	static const char *const good[] = { "QUJDREVG", "QUJDREU=", "QUJDRA==" };
	uint8_t *back = NULL;
	size_t len;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		for (size_t at = 0; good[i][at] && good[i][at] != '='; at++)
			for (int c = 0; c < 256; c++) {
				char text[9];
				int r;

				memcpy(text, good[i], sizeof(text));
				text[at] = (char)c;
				/* Padding where it may be. */
				if (c == '=' && at >= 6 &&
				    strspn(text + at, "=") == 8 - at)
					continue;
				r = abx__base64_decode(text, 8, &back, &len);
				cr_assert_eq(r,
					     c && strchr(digits, c) ? ABX_OK : ABX_EINVAL,
					     "%s at %zu: byte %d", good[i], at, c);
				if (r == ABX_OK)
					abx__free(back);
			}
}

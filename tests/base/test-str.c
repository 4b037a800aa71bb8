/* Strings, checked numbers, URL components. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include <agentbox/error.h>

Test(base_str, numbers_are_whole_and_in_range)
{
	static const struct {
		const char *text;
		bool ok;
	} rows[] = {
		{ "0", true },    { "42", true },  { "18446744073709551615", true },
		{ "", false },    { "-1", false }, { "18446744073709551616", false },
		{ " 1", false },  { "1 ", false }, { "0x1", false },
		{ "1e3", false }, { NULL, false },
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(abx__parse_u64(rows[i].text, 0, UINT64_MAX, &value),
			     rows[i].ok ? ABX_OK : ABX_EINVAL, "%s", rows[i].text);
	cr_assert_eq(abx__parse_u64("70000", 1, 65535, &value), ABX_EINVAL);
}

Test(base_str, signed_numbers_reach_both_ends)
{
	int64_t value;

	cr_assert_eq(abx__parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &value),
		     ABX_OK);
	cr_assert_eq(value, INT64_MIN);
	cr_assert_eq(abx__parse_i64("9223372036854775808", INT64_MIN, INT64_MAX, &value),
		     ABX_EINVAL);
}

Test(base_str, url_components_decode_or_are_refused)
{
	static const char *const bad[] = { "%", "%1", "a%2", "%zz", "%00" };
	char *out = NULL;

	cr_assert_eq(abx__url_decode("a%20b+c", 7, true, &out), ABX_OK);
	cr_assert_str_eq(out, "a b c");
	abx__free(out);
	cr_assert_eq(abx__url_decode("%41%7e", 6, false, &out), ABX_OK);
	cr_assert_str_eq(out, "A~");
	abx__free(out);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(abx__url_decode(bad[i], strlen(bad[i]), false, &out),
			     ABX_EINVAL);
	out = abx__url_encode("a b/é");
	cr_assert_str_eq(out, "a%20b%2F%C3%A9");
	abx__free(out);
}

Test(base_str, a_query_value_is_found_by_its_decoded_key)
{
	char *out = NULL;

	cr_assert_eq(abx__query_get("x=1&pa%74h=%2Ftmp&y", "path", &out), 1);
	cr_assert_str_eq(out, "/tmp");
	abx__free(out);
	cr_assert_eq(abx__query_get("x=1&y", "y", &out), 1);
	cr_assert_str_eq(out, "");
	abx__free(out);
	cr_assert_eq(abx__query_get("x=1", "z", &out), 0);
	cr_assert_eq(abx__query_get(NULL, "z", &out), 0);
}

Test(base_str, what_a_cut_left_of_a_character_is_repaired)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "gr\xc3\xbc\xc3", "gr\xc3\xbc?" },
		{ "\xf2\x90\"", "??\"" },
		{ "a\xff\xe2\x82\xac", "a?\xe2\x82\xac" },
	};
	char text[16];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "%s", rows[i][0]);
		abx__utf8_repair(text);
		cr_expect_str_eq(text, rows[i][1], "row %zu: %s", i, text);
	}
}

Test(base_str, utf8_is_checked_strictly)
{
	cr_assert(abx__utf8_is_valid("gr\xc3\xbc\xc3\x9f", 6));
	cr_assert_not(abx__utf8_is_valid("\xc0\x80", 2));
	cr_assert_not(abx__utf8_is_valid("\xed\xa0\x80", 3));
	cr_assert_not(abx__utf8_is_valid("\xf4\x90\x80\x80", 4));
	cr_assert_not(abx__utf8_is_valid("\xe2\x82", 2));
}

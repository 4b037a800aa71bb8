/*
 * test-conditions.c - conditional requests against a tag and a date.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "envd/conditions.h"

#define TAG "\"a-b\""
#define MTIME 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define SAME "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER "Sun, 06 Nov 1994 08:49:38 GMT"

Test(guest_conditions, dates_have_three_forms)
{
	static const char *const good[] = { SAME, "Sunday, 06-Nov-94 08:49:37 GMT",
					    "Sun Nov  6 08:49:37 1994" };
	static const char *const bad[] = { "", "yesterday", "784111777", SAME "x",
					   "Sun, 06 Nov 1994 08:49:37 CET" };
	time_t t;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		t = 0;
		cr_assert(abx__http_date_parse(good[i], &t), "%s", good[i]);
		cr_assert_eq(t, MTIME, "%s", good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(abx__http_date_parse(bad[i], &t), "%s", bad[i]);
}

Test(guest_conditions, judgement_follows_the_order_of_the_rfc)
{
	static const struct {
		abx__conditions c;
		int want;
	} rows[] = {
		{ { 0 }, 200 },
		{ { .if_match = TAG }, 200 },
		{ { .if_match = "*" }, 200 },
		{ { .if_match = "\"x\", " TAG }, 200 },
		{ { .if_match = "\"x\"" }, 412 },
		{ { .if_match = "W/" TAG }, 412 },
		{ { .if_match = "a-b" }, 412 },
		{ { .if_match = TAG, .if_unmodified_since = BEFORE }, 200 },
		{ { .if_unmodified_since = BEFORE }, 412 },
		{ { .if_unmodified_since = SAME }, 200 },
		{ { .if_unmodified_since = AFTER }, 200 },
		{ { .if_unmodified_since = "junk" }, 200 },
		{ { .if_none_match = TAG }, 304 },
		{ { .if_none_match = "W/" TAG }, 304 },
		{ { .if_none_match = "*" }, 304 },
		{ { .if_none_match = "\"x\",\t" TAG }, 304 },
		{ { .if_none_match = "\"x\"" }, 200 },
		{ { .if_none_match = "\"a-b" }, 200 },
		{ { .if_none_match = "\"x\"", .if_modified_since = SAME }, 200 },
		{ { .if_modified_since = SAME }, 304 },
		{ { .if_modified_since = AFTER }, 304 },
		{ { .if_modified_since = BEFORE }, 200 },
		{ { .if_modified_since = "junk" }, 200 },
		{ { .if_modified_since = "" }, 200 },
		{ { .if_match = "\"x\"", .if_none_match = TAG }, 412 },
		{ { .if_match = TAG, .if_none_match = TAG }, 304 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(abx__conditions_judge(&rows[i].c, TAG, MTIME), rows[i].want,
			     "row %zu", i);
	cr_assert_eq(abx__conditions_judge(
			     &(abx__conditions){ .if_modified_since = SAME }, TAG, 0),
		     200, "the epoch says nothing");
}

Test(guest_conditions, a_range_counts_while_the_file_is_the_same)
{
	static const struct {
		const char *header;
		bool want;
	} rows[] = {
		{ NULL, true },      { "", true },     { TAG, true },  { "\"x\"", false },
		{ "W/" TAG, false }, { "a-b", false }, { SAME, true }, { BEFORE, false },
		{ AFTER, false },    { "*", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(abx__conditions_keep_range(
				     &(abx__conditions){ .if_range = rows[i].header },
				     TAG, MTIME),
			     rows[i].want, "%s", rows[i].header);
}

Test(guest_conditions, a_tag_changes_with_the_file)
{
	struct stat st = { .st_ino = 1, .st_size = 2, .st_mtim = { 3, 4 } };
	char a[ABX__ETAG_SIZE], b[ABX__ETAG_SIZE];

	abx__etag_of(&st, a);
	cr_assert_str_eq(a, "\"1-2-3.4\"");
	st.st_mtim.tv_nsec++;
	abx__etag_of(&st, b);
	cr_assert_str_neq(a, b);
	st = (struct stat){ .st_ino = ~0ull >> 1,
			    .st_size = INT64_MAX,
			    .st_mtim = { INT64_MAX, 999999999 } };
	abx__etag_of(&st, b);
	cr_assert_eq(b[strlen(b) - 1], '"');
}

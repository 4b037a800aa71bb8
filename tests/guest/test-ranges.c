/*
 * test-ranges.c - byte ranges of headers.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "envd/ranges.h"

/* "whole", "START+LENGTH ...", or the error. */
static const char *parse(const char *header, int64_t size)
{
	static char text[4096];
	abx__range ranges[ABX__RANGES_MAX];
	abx_error *err = NULL;
	int count = abx__ranges_parse(header, size, ranges, &err);

	snprintf(text, sizeof(text), "%s",
		 count < 0    ? abx_error_message(err)
		 : count == 0 ? "whole"
			      : "");
	abx_error_free(err);
	for (int i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%lld+%lld",
			 i ? " " : "", (long long)ranges[i].start,
			 (long long)ranges[i].length);
	return text;
}

Test(guest_ranges, headers_give_these_ranges)
{
	static const struct {
		const char *header, *want;
	} rows[] = {
		{ NULL, "whole" },
		{ "", "whole" },
		{ "bytes=", "whole" },
		{ "bytes=,", "whole" },
		{ "bytes=0-0", "0+1" },
		{ "Bytes=0-0", "0+1" },
		{ "bytes=0-9", "0+10" },
		{ "bytes=0-", "0+10" },
		{ "bytes=3-5", "3+3" },
		{ "bytes= 3 - 5 ", "3+3" },
		{ "bytes=9-9", "9+1" },
		{ "bytes=5-100", "5+5" },
		{ "bytes=5-9223372036854775807", "5+5" },
		{ "bytes=-3", "7+3" },
		{ "bytes=-10", "0+10" },
		{ "bytes=-100", "0+10" },
		{ "bytes=0-1,8-9", "0+2 8+2" },
		{ "bytes=8-9, 0-1", "8+2 0+2" },
		{ "bytes=0-0,,-1", "0+1 9+1" },
		{ "bytes=0-0,20-30", "0+1" },
		{ "bytes=0-0,-0", "0+1" },
		/* more than there is: nobody gains */
		{ "bytes=0-9,0-0", "whole" },
		{ "bytes=0-,0-", "whole" },
		{ "bytes=10-", "invalid range: failed to overlap" },
		{ "bytes=10-20,30-", "invalid range: failed to overlap" },
		{ "bytes=-0", "invalid range: failed to overlap" },
		{ "bytes=9223372036854775807-", "invalid range: failed to overlap" },
		{ "bytes=9223372036854775808-", "invalid range" },
		{ "bytes=5", "invalid range" },
		{ "bytes=5-4", "invalid range" },
		{ "bytes=--1", "invalid range" },
		{ "bytes=-", "invalid range" },
		{ "bytes=-1-", "invalid range" },
		{ "bytes=a-b", "invalid range" },
		{ "bytes=0x1-", "invalid range" },
		{ "bytes=1-2-3", "invalid range" },
		{ "bytes=0-0,x", "invalid range" },
		{ "bytes = 0-0", "invalid range" },
		{ "octets=0-0", "invalid range" },
		{ "0-0", "invalid range" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_str_eq(parse(rows[i].header, 10), rows[i].want, "%s: %s",
				 rows[i].header, parse(rows[i].header, 10));
}

Test(guest_ranges, an_empty_file_has_none)
{
	cr_assert_str_eq(parse("bytes=0-", 0), "whole");
	cr_assert_str_eq(parse("bytes=-5", 0), "whole");
	cr_assert_str_eq(parse("bytes=x", 0), "invalid range");
}

Test(guest_ranges, sums_do_not_overflow)
{
	cr_assert_str_eq(parse("bytes=1-,0-", INT64_MAX), "whole");
	cr_assert_str_eq(parse("bytes=1-,0-0", INT64_MAX), "1+9223372036854775806 0+1");
}

Test(guest_ranges, more_than_64_are_not_cut_out)
{
	abx__buf header = ABX__BUF_INIT;

	abx__buf_adds(&header, "bytes=0-0");
	for (int i = 1; i < ABX__RANGES_MAX; i++)
		abx__buf_adds(&header, ",0-0");
	cr_assert_str_neq(parse(header.data, 1000), "whole");
	abx__buf_adds(&header, ",0-0");
	cr_assert_str_eq(parse(header.data, 1000), "whole");
	abx__buf_done(&header);
}

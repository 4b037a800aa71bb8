/* RFC 3339 both ways. */
#include <criterion/criterion.h>

#include "base/clock.h"
#include <agentbox/error.h>

Test(base_clock, formats_utc_with_milliseconds_only_when_there_are_any)
{
	char out[ABX__RFC3339_SIZE];

	abx__rfc3339_format(0, out);
	cr_assert_str_eq(out, "1970-01-01T00:00:00Z");
	abx__rfc3339_format(1767322245007, out);
	cr_assert_str_eq(out, "2026-01-02T02:50:45.007Z");
}

Test(base_clock, microseconds_show_only_what_milliseconds_do_not_say)
{
	char out[ABX__RFC3339_SIZE];

	abx__rfc3339_format_us(1767322245007000, out);
	cr_assert_str_eq(out, "2026-01-02T02:50:45.007Z");
	abx__rfc3339_format_us(1767322245007001, out);
	cr_assert_str_eq(out, "2026-01-02T02:50:45.007001Z");
	abx__rfc3339_format_us(-1, out);
	cr_assert_str_eq(out, "1969-12-31T23:59:59.999999Z");
}

Test(base_clock, parses_what_the_standard_allows)
{
	static const struct {
		const char *text;
		int64_t us; /* -1: refused */
	} rows[] = {
		{ "1970-01-01T00:00:01Z", 1000000 },
		{ "1970-01-01T01:00:00.5+01:00", 500000 },
		{ "1970-01-01t00:00:00.000001z", 1 },
		{ "1970-01-01", -1 },
		{ "2026-02-31T00:00:00Z", -1 },
		{ "2026-13-01T00:00:00Z", -1 },
		{ "1970-01-01T00:00:00.Z", -1 },
		{ "1970-01-01T00:00:00Z ", -1 },
		{ "", -1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t us = -1;
		int r = abx__rfc3339_parse(rows[i].text, &us);

		cr_assert_eq(r, rows[i].us < 0 ? ABX_EINVAL : ABX_OK, "%s", rows[i].text);
		cr_assert_eq(us, rows[i].us, "%s", rows[i].text);
	}
}

/* Go durations. */
#include <criterion/criterion.h>

#include "base/error.h"
#include "model/duration.h"

Test(model_duration, parses_what_go_parses)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "30s", 30000 },
		{ "2m", 120000 },
		{ "1h30m", 5400000 },
		{ "1.5s", 1500 },
		{ "-5s", -5000 },
		{ "+1s", 1000 },
		{ "300ms", 300 },
		{ ".5s", 500 },
		{ "1.s", 1000 },
		{ "1m0.5s", 60500 },
		{ "1us", 1 },
		{ "1ns", 1 },
		{ "-1ns", -1 },
		{ "1\xc2\xb5s", 1 },
		{ "1500us", 2 },
		{ "-0", 0 },
		{ "0.9223372036854775807999h", 3320414 },
		{ "2562047h47m16.854s", 9223372036854 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ms = 42;

		cr_expect_eq(abx__duration_parse(cases[i].text, &ms, NULL), ABX_OK, "%s",
			     cases[i].text);
		cr_expect_eq(ms, cases[i].ms, "%s gave %lld", cases[i].text,
			     (long long)ms);
	}
}

Test(model_duration, refuses_what_go_refuses)
{
	static const char *const cases[] = {
		"",
		"3",
		"-",
		"s",
		".",
		"-.",
		".s",
		"+.s",
		"1d",
		"1e3s",
		" 1s",
		"1s ",
		"1 s",
		"1h-5m",
		"9223372036855s",
		"3000000h",
		"2562047h47m16.854775807s",
		"1:30",
		"--1s",
		"11111111111111111111111111111111111111111111111111111111111111111s",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		abx_error *err = NULL;
		int64_t ms = 42;

		cr_expect_eq(abx__duration_parse(cases[i], &ms, &err), ABX_EINVAL, "%s",
			     cases[i]);
		cr_expect_eq(ms, 42);
		cr_expect(abx_error_hint(err));
		abx_error_free(err);
	}
}

Test(model_duration, prints_the_short_form)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "0s" },
		{ 30000, "30s" },
		{ 120000, "2m" },
		{ 5400000, "1h30m" },
		{ 3600000, "1h" },
		{ 3601000, "1h1s" },
		{ 1500, "1.5s" },
		{ 5, "0.005s" },
		{ 60010, "1m0.01s" },
		{ -5000, "-5s" },
		{ INT64_MIN / 1000000, "-2562047h47m16.854s" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[ABX__DURATION_SIZE];
		int64_t ms;

		abx__duration_print(cases[i].ms, text);
		cr_expect_str_eq(text, cases[i].text);
		cr_expect_eq(abx__duration_parse(text, &ms, NULL), ABX_OK);
		cr_expect_eq(ms, cases[i].ms);
	}
}

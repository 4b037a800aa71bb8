/* Kubernetes quantities. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/error.h"
#include "model/quantity.h"

#define BAD -1

Test(model_quantity, cpu_is_counted_in_thousandths)
{
	static const struct {
		const char *text;
		int64_t milli;
	} cases[] = {
		{ "0", 0 },
		{ "1", 1000 },
		{ "500m", 500 },
		{ "20m", 20 },
		{ "0.5", 500 },
		{ "1.250", 1250 },
		{ "2.", 2000 },
		{ ".5", 500 },
		{ "+2", 2000 },
		{ "1k", 1000000 },
		{ "1e3", 1000000 },
		{ "1E3", 1000000 },
		{ "1e+2", 100000 },
		{ "5e-1", 500 },
		{ "500000u", 500 },
		{ "1000000n", 1 },
		{ "1u", BAD },
		{ "0.0001", BAD },
		{ "-1", BAD },
		{ "", BAD },
		{ ".", BAD },
		{ "m", BAD },
		{ "1 ", BAD },
		{ " 1", BAD },
		{ "1mm", BAD },
		{ "1K", BAD },
		{ "1ki", BAD },
		{ "0x10", BAD },
		{ "1e", BAD },
		{ "1e99", BAD },
		{ "1e-99", BAD },
		{ "nan", BAD },
		{ "9223372036854775.807", INT64_MAX },
		{ "9223372036854775.808", BAD },
		{ "99999999999999999999", BAD },
		{ "10Ei", BAD },
		{ "0.50000000000000000000000000000000", 500 },
		{ "00000000000000000000000000000000000000000001", 1000 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = 42;
		int r = abx__quantity_milli(cases[i].text, &value, NULL);

		cr_expect_eq(r, cases[i].milli == BAD ? ABX_EINVAL : ABX_OK, "%s gave %d",
			     cases[i].text, r);
		cr_expect_eq(value, cases[i].milli == BAD ? 42 : cases[i].milli,
			     "%s gave %lld", cases[i].text, (long long)value);
	}
}

Test(model_quantity, memory_is_counted_in_bytes)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} cases[] = {
		{ "128Mi", 134217728 },  { "2Gi", 2147483648 },
		{ "1500M", 1500000000 }, { "1.5Gi", 1610612736 },
		{ "1e3", 1000 },         { "1024", 1024 },
		{ "0.5Ki", 512 },        { "1Ei", 1152921504606846976 },
		{ "7.999Ei", BAD },      { "7.5Ei", 8646911284551352320 },
		{ "8Ei", BAD },          { "400m", BAD },
		{ "4000m", 4 },          { "0.1Ki", BAD },
		{ "1Gib", BAD },         { "1GB", BAD },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = 42;
		int r = abx__quantity_bytes(cases[i].text, &value, NULL);

		cr_expect_eq(r, cases[i].bytes == BAD ? ABX_EINVAL : ABX_OK, "%s gave %d",
			     cases[i].text, r);
		if (cases[i].bytes != BAD)
			cr_expect_eq(value, cases[i].bytes, "%s gave %lld", cases[i].text,
				     (long long)value);
	}
}

Test(model_quantity, an_error_says_what_is_wrong)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "-1", "quantity \"-1\" is negative" },
		{ "1GB", "\"1GB\" is not a quantity" },
		{ "400m", "quantity \"400m\" is finer than one unit" },
		{ "9Ei", "quantity \"9Ei\" is too large" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		abx_error *err = NULL;
		int64_t value;

		cr_assert_eq(abx__quantity_bytes(cases[i].text, &value, &err),
			     ABX_EINVAL);
		cr_expect_str_eq(abx_error_message(err), cases[i].message);
		abx_error_free(err);
	}
}

Test(model_quantity, printing_parses_back)
{
	static const struct {
		int64_t bytes;
		const char *text;
	} cases[] = { { 0, "0" },
		      { 1, "1" },
		      { 2147483648, "2Gi" },
		      { 1610612736, "1536Mi" },
		      { 1500000000, "1500M" },
		      { 1001, "1001" },
		      { INT64_MAX, "9223372036854775807" } };
	char text[ABX__QUANTITY_SIZE];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value;

		abx__quantity_print_bytes(cases[i].bytes, text);
		cr_expect_str_eq(text, cases[i].text);
		cr_expect_eq(abx__quantity_bytes(text, &value, NULL), ABX_OK);
		cr_expect_eq(value, cases[i].bytes);
	}
	abx__quantity_print_milli(1500, text);
	cr_expect_str_eq(text, "1500m");
	abx__quantity_print_milli(2000, text);
	cr_expect_str_eq(text, "2");
}

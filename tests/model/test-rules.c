/* Rules between fields. */
#include <criterion/criterion.h>

#include "model/rules.h"

Test(model_rules, unavailable_pods_are_rounded_down_but_at_least_one)
{
	static const struct {
		const char *text;
		int32_t replicas, want;
	} cases[] = {
		{ NULL, 10, 2 },
		{ NULL, 4, 1 },
		{ NULL, 0, 1 },
		{ "20%", 14, 2 },
		{ "50%", 5, 2 },
		{ "100%", 7, 7 },
		{ "0", 5, 1 },
		{ "3", 5, 3 },
		{ "7", 5, 7 },
		{ "0%", 100, 1 },
		{ "999999999%", INT32_MAX, INT32_MAX },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(abx__rules_max_unavailable(cases[i].text, cases[i].replicas),
			     cases[i].want, "%s of %d",
			     cases[i].text ? cases[i].text : "default",
			     cases[i].replicas);
}

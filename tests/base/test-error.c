/* Errors: code, message, prefix, hint, and running out of memory. */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/error.h"

Test(base_error, a_set_error_carries_code_message_and_hint)
{
	abx_error *err = NULL;

	cr_assert_eq(abx__error_http(&err, ABX_ENOTFOUND, 404, "env %s", "x"),
		     ABX_ENOTFOUND);
	abx__error_hint(&err, "create it");
	cr_assert_eq(abx__error_prefix(&err, "claim"), ABX_ENOTFOUND);
	cr_assert_str_eq(abx_error_message(err), "claim: env x");
	cr_assert_str_eq(abx_error_hint(err), "create it");
	cr_assert_eq(abx_error_http_status(err), 404);
	abx_error_free(err);
}

Test(base_error, an_errno_is_named)
{
	abx_error *err = NULL;

	abx__error_errno(&err, ABX_EIO, ENOENT, "open /x");
	cr_assert_str_eq(abx_error_message(err), "open /x: No such file or directory");
	cr_assert_eq(abx_error_errno(err), ENOENT);
	abx_error_free(err);
}

Test(base_error, running_out_of_memory_is_reported_without_allocating)
{
	abx_error *err = NULL;

	abx__test_fail_alloc_after(0);
	cr_assert_eq(abx__error_set(&err, ABX_EINVAL, "x"), ABX_EINVAL);
	abx__test_alloc_reset();
	cr_assert_eq(abx_error_code(err), ABX_ENOMEM);
	cr_assert_str_eq(abx_error_message(err), "out of memory");
	abx_error_free(err);
}

Test(base_error, names_come_from_the_one_list)
{
	cr_assert_str_eq(abx_error_name(ABX_EEXHAUSTED), "EEXHAUSTED");
	cr_assert_str_eq(abx_error_name(-999), "EUNKNOWN");
}

Test(base_error, http_statuses_map_both_ways)
{
	cr_assert_eq(abx__error_code_from_http(429), ABX_EEXHAUSTED);
	cr_assert_eq(abx__error_http_from_code(ABX_EEXHAUSTED), 429);
	cr_assert_eq(abx__error_http_from_code(ABX_EUNAVAILABLE), 503);
	cr_assert_eq(abx__error_code_from_http(418), ABX_EINVAL);
}

/* The byte buffer: growth, cap, consumption, and failing allocations. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include <agentbox/error.h>

Test(base_buf, grows_and_stays_terminated)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;

	for (int i = 0; i < 1000; i++)
		cr_assert_eq(abx__buf_addf(&buf, "%d,", i % 10), ABX_OK);
	cr_assert_eq(buf.len, 2000);
	cr_assert_eq(strlen(buf.data), 2000);
}

Test(base_buf, refuses_to_pass_its_cap_and_keeps_its_content)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT_CAP(4);

	cr_assert_eq(abx__buf_adds(&buf, "abcd"), ABX_OK);
	cr_assert_eq(abx__buf_addc(&buf, 'e'), ABX_ETOOBIG);
	cr_assert_str_eq(abx__buf_str(&buf), "abcd");
}

Test(base_buf, consume_drops_the_front)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;

	abx__buf_adds(&buf, "hello world");
	abx__buf_consume(&buf, 6);
	cr_assert_str_eq(buf.data, "world");
	abx__buf_consume(&buf, 99);
	cr_assert_eq(buf.len, 0);
}

Test(base_buf, a_failed_allocation_is_a_code)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;

	abx__test_fail_alloc_after(0);
	cr_assert_eq(abx__buf_adds(&buf, "x"), ABX_ENOMEM);
	abx__test_alloc_reset();
	cr_assert_str_eq(abx__buf_str(&buf), "");
}

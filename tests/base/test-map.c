/* The ordered string map. */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "base/map.h"
#include <agentbox/error.h>

Test(base_map, keeps_keys_sorted_and_unique)
{
	abx__map map = ABX__MAP_INIT;

	abx__map_set(&map, "b", "1");
	abx__map_set(&map, "a", "2");
	abx__map_set(&map, "b", "3");
	cr_assert_eq(map.count, 2);
	cr_assert_str_eq(map.items[0].key, "a");
	cr_assert_str_eq(abx__map_get(&map, "b"), "3");
	cr_assert_null(abx__map_get(&map, "c"));
	cr_assert(abx__map_remove(&map, "a"));
	cr_assert_not(abx__map_remove(&map, "a"));
	abx__map_done(&map);
}

Test(base_map, a_failed_copy_leaves_the_target)
{
	abx__map src = ABX__MAP_INIT, dst = ABX__MAP_INIT;
	int r = ABX_ENOMEM;

	abx__map_set(&src, "k", "v");
	abx__map_set(&dst, "old", "1");
	for (unsigned n = 0; r != ABX_OK; n++) {
		abx__test_fail_alloc_after(n);
		r = abx__map_copy(&dst, &src);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || (r == ABX_ENOMEM && abx__map_get(&dst, "old")));
	}
	cr_assert(abx__map_equal(&src, &dst));
	abx__map_done(&src);
	abx__map_done(&dst);
}

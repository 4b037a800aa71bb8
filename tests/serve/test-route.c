/* Paths against patterns. */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "serve/call.h"

static int match(const char *pattern, const char *path, const char *first,
		 const char *second)
{
	char *params[ABX__CALL_PARAMS] = { 0 };
	int r = abx__route_match(pattern, path, params);

	if (first)
		cr_assert_str_eq(params[0], first);
	else
		cr_assert_null(params[0]);
	if (second)
		cr_assert_str_eq(params[1], second);
	abx__route_params_free(params);
	return r;
}

Test(serve_route, matches_whole_paths_and_decodes_their_parts)
{
	cr_assert_eq(match("/sandboxes", "/sandboxes", NULL, NULL), 1);
	cr_assert_eq(match("/sandboxes", "/sandboxes/", NULL, NULL), 0);
	cr_assert_eq(match("/sandboxes", "/sandboxe", NULL, NULL), 0);
	cr_assert_eq(match("/s/{id}", "/s/abc", "abc", NULL), 1);
	cr_assert_eq(match("/s/{id}", "/s/a%2Fb", "a/b", NULL), 1);
	cr_assert_eq(match("/s/{id}", "/s/", NULL, NULL), 0);
	cr_assert_eq(match("/s/{id}", "/s/a%00b", NULL, NULL), 0);
	cr_assert_eq(match("/s/{id}", "/s/a%zz", NULL, NULL), 0);
	cr_assert_eq(match("/s/{id}/x/{y}", "/s/a/x/b", "a", "b"), 1);
	cr_assert_eq(match("/s/{id}/x/{y}", "/s/a/z/b", NULL, NULL), 0);
	cr_assert_eq(match("/s/{id}", "", NULL, NULL), 0);
	cr_assert_eq(match("/s/{id}", "*", NULL, NULL), 0);
}

Test(serve_route, reports_out_of_memory)
{
	char *params[ABX__CALL_PARAMS] = { 0 };
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != 1; n++) {
		abx__test_fail_alloc_after(n);
		r = abx__route_match("/s/{id}/x/{y}", "/s/a/x/b", params);
		abx__test_alloc_reset();
		cr_assert(r == 1 || (r == ABX_ENOMEM && !params[0]));
	}
	abx__route_params_free(params);
}

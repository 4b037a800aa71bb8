/*
 * test-list.c - the walk over sandboxes: pages, filters, ends.
 */
#include "fixture.h"

static const fake_answer pages[] = {
	{ .path = "/e2b/v2/sandboxes",
	  .query = "nextToken=t%2B1",
	  .status = 200,
	  .headers = { "X-Next-Token: t2" },
	  .body = "[{\"sandboxID\":\"c\"}]" },
	{ .path = "/e2b/v2/sandboxes",
	  .query = "nextToken=t2",
	  .status = 200,
	  .body = "[{\"sandboxID\":\"d\"}]" },
	{ .path = "/e2b/v2/sandboxes",
	  .status = 200,
	  .headers = { "X-Next-Token: t+1" },
	  .body = "[{\"sandboxID\":\"a\"},{\"sandboxID\":\"b\"}]" },
	{ 0 },
};

TestSuite(client_list, .timeout = 30);

Test(client_list, pages_are_walked_to_the_end)
{
	const abx_sandbox_info *info = NULL;
	abx_sandbox_iter *iter = NULL;
	char ids[16] = "";
	fixture f;
	int r;

	fixture_up(&f, pages);
	cr_assert(abx_sandbox_list(f.client, NULL, &iter, &f.err) == ABX_OK);
	cr_expect(fake_server_count(f.server) == 0, "a walk begins with its first step");
	while ((r = abx_sandbox_iter_next(iter, &info, &f.err)) == 1)
		strncat(ids, info->id, sizeof(ids) - strlen(ids) - 1);
	cr_expect(r == 0, "%s", abx_error_message(f.err));
	cr_expect_str_eq(ids, "abcd");
	cr_expect(abx_sandbox_iter_next(iter, &info, &f.err) == 0,
		  "the end stays the end");
	cr_expect(fake_server_count(f.server) == 3);
	expect_seen(&f, 0, "?limit=100\n");
	abx_sandbox_iter_free(iter);
	fixture_down(&f);
}

Test(client_list, filters_travel_in_the_query)
{
	const char *const metadata[] = { "team=a b", "x=1&2", NULL };
	abx_sandbox_list_options o = ABX_SANDBOX_LIST_OPTIONS_INIT;
	const abx_sandbox_info *info = NULL;
	abx_sandbox_iter *iter = NULL;
	static const fake_answer empty[] = { { .status = 200, .body = "[]" }, { 0 } };
	fixture f;

	fixture_up(&f, empty);
	o.metadata = metadata;
	o.template_id = "e2b";
	o.states = 1u << ABX_SANDBOX_RUNNING | 1u << ABX_SANDBOX_PAUSED;
	o.oldest_first = 1;
	o.page_count = 7;
	o.started_after_ms = INT64_C(1796119276008);
	cr_assert(abx_sandbox_list(f.client, &o, &iter, &f.err) == ABX_OK);
	cr_expect(abx_sandbox_iter_next(iter, &info, &f.err) == 0);
	expect_seen(&f, 0, "?limit=7&order=asc&template=e2b&");
	expect_seen(&f, 0,
		    "&metadata=team%3Da%2520b%26x%3D1%25262&state=running,paused\n");
	abx_sandbox_iter_free(iter);

	expect_seen(&f, 0, "&startedAfter=2026-12-01T10:01:16.008Z");
	o.started_after_ms = -1;
	expect_error(&f, abx_sandbox_list(f.client, &o, &iter, &f.err), ABX_EINVAL,
		     "started_after_ms");
	o.started_after_ms = 0;
	o.page_count = 101;
	expect_error(&f, abx_sandbox_list(f.client, &o, &iter, &f.err), ABX_EINVAL,
		     "page_count 101");
	o.page_count = 0;
	o.states = 1;
	expect_error(&f, abx_sandbox_list(f.client, &o, &iter, &f.err), ABX_EINVAL,
		     "states 0x1");
	fixture_down(&f);
}

Test(client_list, a_page_that_cannot_be_read_is_an_error)
{
	static const char *const bodies[] = { "{}", "[{}]", "[1]", "x", "" };
	const abx_sandbox_info *info = NULL;

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		fake_answer answers[2] = { { .status = 200, .body = bodies[i] } };
		abx_sandbox_iter *iter = NULL;
		fixture f;

		fixture_up(&f, answers);
		cr_assert(abx_sandbox_list(f.client, NULL, &iter, &f.err) == ABX_OK);
		expect_error(&f, abx_sandbox_iter_next(iter, &info, &f.err), ABX_EPROTO,
			     "list sandboxes: ");
		abx_sandbox_iter_free(iter);
		fixture_down(&f);
	}
}

Test(client_list, an_endless_walk_is_ended)
{
	static const fake_answer answers[] = {
		{ .status = 200, .headers = { "X-Next-Token: again" }, .body = "[]" },
		{ 0 },
	};
	const abx_sandbox_info *info = NULL;
	abx_sandbox_iter *iter = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_list(f.client, NULL, &iter, &f.err) == ABX_OK);
	expect_error(&f, abx_sandbox_iter_next(iter, &info, &f.err), ABX_EPROTO,
		     "empty page");
	abx_sandbox_iter_free(iter);
	fixture_down(&f);
}

struct walk {
	abx_sandbox_iter *iter;
	char ids[16];
	int end;
	bool over;
};

static void step(void *userdata, int r, const abx_sandbox_info *info,
		 const abx_error *err)
{
	struct walk *walk = userdata;

	(void)err;
	walk->end = r;
	if (r == 1)
		strncat(walk->ids, info->id, sizeof(walk->ids) - strlen(walk->ids) - 1);
	if (r != 1 ||
	    abx_sandbox_iter_next_async(walk->iter, step, walk, NULL, NULL, NULL) < 0)
		walk->over = true;
}

Test(client_list, steps_can_follow_from_completions)
{
	struct walk walk = { 0 };
	fixture f;

	fixture_up(&f, pages);
	cr_assert(abx_sandbox_list(f.client, NULL, &walk.iter, &f.err) == ABX_OK);
	cr_assert(abx_sandbox_iter_next_async(walk.iter, step, &walk, NULL, NULL,
					      &f.err) == ABX_OK);
	expect_error(
		&f,
		abx_sandbox_iter_next_async(walk.iter, step, &walk, NULL, NULL, &f.err),
		ABX_ESTATE, "under way");
	while (!walk.over && abx_client_wait(f.client, 5000, NULL) >= 0)
		;
	cr_expect(walk.end == 0);
	cr_expect_str_eq(walk.ids, "abcd");
	abx_sandbox_iter_free(walk.iter);
	fixture_down(&f);
}

Test(client_list, freeing_a_walk_cancels_its_step)
{
	static const fake_answer answers[] = { { .status = 200, .ending = FAKE_HANG },
					       { 0 } };
	struct walk walk = { 0 };
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_list(f.client, NULL, &walk.iter, &f.err) == ABX_OK);
	cr_assert(abx_sandbox_iter_next_async(walk.iter, step, &walk, NULL, NULL,
					      &f.err) == ABX_OK);
	abx_client_process(f.client, NULL);
	abx_sandbox_iter_free(walk.iter);
	while (!walk.over && abx_client_wait(f.client, 5000, NULL) > 0)
		;
	cr_expect(walk.end == ABX_ECANCELED);
	fixture_down(&f);
}

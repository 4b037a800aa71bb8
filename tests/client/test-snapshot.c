/*
 * test-snapshot.c - snapshots made, listed and deleted; forks, of which some may fail.
 */
#include "fixture.h"

TestSuite(client_snapshot, .timeout = 30);

#define SNAPSHOTS "/e2b/sandboxes/sb1/snapshots"

Test(client_snapshot, create_gives_its_id_and_names)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = SNAPSHOTS,
		  .status = 201,
		  .times = 1,
		  .body = "{\"snapshotID\":\"team/warm:t1\",\"names\":[\"team/warm\"]}" },
		{ .path = SNAPSHOTS,
		  .status = 201,
		  .times = 1,
		  .body = "{\"snapshotID\":\"x1:t2\",\"names\":[]}" },
		{ .path = SNAPSHOTS, .status = 201, .times = 1, .body = "{}" },
		{ .path = SNAPSHOTS,
		  .status = 409,
		  .body = "{\"code\":409,\"message\":\"it is paused\"}" },
		{ 0 },
	};
	abx_snapshot_options o = ABX_SNAPSHOT_OPTIONS_INIT;
	abx_snapshot_info *info = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.name = "warm";
	cr_assert(abx_snapshot_create(f.sandbox, &o, &info, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_expect_str_eq(info->id, "team/warm:t1");
	cr_expect(info->names[0] && strcmp(info->names[0], "team/warm") == 0 &&
		  !info->names[1]);
	cr_expect(strstr(info->json, "team/warm") != NULL);
	abx_snapshot_info_free(info);
	expect_seen(&f, 0, "\n\n{\"name\":\"warm\"}");
	cr_assert(abx_snapshot_create(f.sandbox, NULL, &info, &f.err) == ABX_OK);
	cr_expect(info->names && !info->names[0]);
	abx_snapshot_info_free(info);
	expect_seen(&f, 1, "\n\n{}");
	expect_error(&f, abx_snapshot_create(f.sandbox, NULL, &info, &f.err), ABX_EPROTO,
		     "no snapshotID");
	expect_error(&f, abx_snapshot_create(f.sandbox, NULL, &info, &f.err),
		     ABX_ECONFLICT, "make a snapshot of sandbox sb1: it is paused");
	expect_error(&f, abx_snapshot_create(NULL, NULL, &info, &f.err), ABX_EINVAL,
		     "NULL");
	fixture_down(&f);
}

Test(client_snapshot, delete_gives_1_then_0)
{
	static const fake_answer answers[] = {
		{ .method = "DELETE",
		  .path = "/e2b/templates/team%2Fwarm%3At1",
		  .status = 204,
		  .times = 1 },
		{ .status = 404,
		  .body = "{\"code\":404,\"message\":\"no\"}",
		  .times = 1 },
		{ .status = 403, .body = "{\"code\":403,\"message\":\"not yours\"}" },
		{ 0 },
	};
	fixture f;

	fixture_up(&f, answers);
	cr_expect(abx_snapshot_delete(f.client, "team/warm:t1", &f.err) == 1);
	cr_expect(abx_snapshot_delete(f.client, "team/warm:t1", &f.err) == 0);
	expect_error(&f, abx_snapshot_delete(f.client, "x", &f.err), ABX_EDENIED,
		     "delete snapshot x: not yours");
	expect_error(&f, abx_snapshot_delete(f.client, "", &f.err), ABX_EINVAL, "empty");
	expect_error(&f, abx_snapshot_delete(NULL, "x", &f.err), ABX_EINVAL, "NULL");
	fixture_down(&f);
}

Test(client_snapshot, pages_are_walked_to_the_end)
{
	static const fake_answer answers[] = {
		{ .path = "/e2b/snapshots",
		  .query = "nextToken=t1",
		  .status = 200,
		  .body = "[{\"snapshotID\":\"c:3\",\"names\":[]}]" },
		{ .path = "/e2b/snapshots",
		  .status = 200,
		  .headers = { "X-Next-Token: t1" },
		  .body = "[{\"snapshotID\":\"a:1\",\"names\":[]},{\"snapshotID\":\"b:"
			  "2\","
			  "\"names\":[\"b\"]}]" },
		{ 0 },
	};
	abx_snapshot_list_options o = ABX_SNAPSHOT_LIST_OPTIONS_INIT;
	const abx_snapshot_info *info = NULL;
	abx_snapshot_iter *iter = NULL;
	char ids[32] = "";
	fixture f;
	int r;

	fixture_up(&f, answers);
	o.sandbox_id = "sb1";
	o.name = "a/b";
	o.page_count = 2;
	cr_assert(abx_snapshot_list(f.client, &o, &iter, &f.err) == ABX_OK);
	while ((r = abx_snapshot_iter_next(iter, &info, &f.err)) == 1)
		strncat(ids, info->id, sizeof(ids) - strlen(ids) - 1);
	cr_expect(r == 0, "%s", abx_error_message(f.err));
	cr_expect_str_eq(ids, "a:1b:2c:3");
	expect_seen(&f, 0, "?limit=2&sandboxID=sb1&name=a%2Fb\n");
	abx_snapshot_iter_free(iter);
	o.page_count = 101;
	expect_error(&f, abx_snapshot_list(f.client, &o, &iter, &f.err), ABX_EINVAL,
		     "page_count 101");
	expect_error(&f, abx_snapshot_list(NULL, NULL, &iter, &f.err), ABX_EINVAL,
		     "NULL");
	expect_error(&f, abx_snapshot_iter_next(NULL, &info, &f.err), ABX_EINVAL, "NULL");
	fixture_down(&f);
}

#define FORK "/e2b/sandboxes/sb1/fork"

Test(client_snapshot, forks_are_sandboxes_or_errors)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = FORK,
		  .status = 201,
		  .times = 1,
		  .body = "[{\"sandbox\":{\"sandboxID\":\"f1\",\"templateID\":\"base\"}},"
			  "{\"error\":{\"code\":429,\"message\":\"no room\"}},"
			  "{\"sandbox\":{\"sandboxID\":\"f3\"}}]" },
		{ .path = FORK,
		  .status = 201,
		  .times = 1,
		  .body = "[{\"error\":{\"code\":503,\"message\":\"no room\"}}]" },
		{ .path = FORK, .status = 201, .times = 1, .body = "[{}]" },
		{ .path = FORK, .status = 201, .times = 1, .body = "{}" },
		{ .path = FORK,
		  .status = 409,
		  .body = "{\"code\":409,\"message\":\"it is paused\"}" },
		{ 0 },
	};
	abx_fork_options o = ABX_FORK_OPTIONS_INIT;
	abx_forks *forks = NULL;
	abx_sandbox *taken;
	fixture f;

	fixture_up(&f, answers);
	o.count = 3;
	o.timeout_ms = 60001;
	cr_assert(abx_sandbox_fork(f.sandbox, &o, &forks, &f.err) == 2, "%s",
		  abx_error_message(f.err));
	expect_seen(&f, 0, "\"count\":3");
	expect_seen(&f, 0, "\"timeout\":61");
	cr_assert(abx_forks_count(forks) == 3);
	cr_expect_str_eq(abx_sandbox_id(abx_forks_at(forks, 0)->sandbox), "f1");
	cr_expect(abx_forks_at(forks, 0)->err == NULL);
	cr_expect(abx_forks_at(forks, 1)->sandbox == NULL);
	cr_expect(abx_error_code(abx_forks_at(forks, 1)->err) == ABX_EEXHAUSTED);
	cr_expect_str_eq(abx_error_message(abx_forks_at(forks, 1)->err), "no room");
	cr_expect(abx_forks_at(forks, 3) == NULL);
	taken = abx_forks_take(forks, 2);
	cr_expect(taken && abx_forks_at(forks, 2)->sandbox == NULL);
	cr_expect(abx_forks_take(forks, 2) == NULL && abx_forks_take(forks, 9) == NULL);
	abx_forks_free(forks);
	cr_expect_str_eq(abx_sandbox_id(taken), "f3");
	abx_sandbox_free(taken);
	cr_assert(abx_sandbox_fork(f.sandbox, NULL, &forks, &f.err) == 0);
	expect_seen(&f, 1, "\n\n{\"count\":1}");
	cr_expect(abx_forks_count(forks) == 1);
	abx_forks_free(forks);
	expect_error(&f, abx_sandbox_fork(f.sandbox, NULL, &forks, &f.err), ABX_EPROTO,
		     "not a list of forks");
	expect_error(&f, abx_sandbox_fork(f.sandbox, NULL, &forks, &f.err), ABX_EPROTO,
		     "not a list of forks");
	expect_error(&f, abx_sandbox_fork(f.sandbox, NULL, &forks, &f.err), ABX_ECONFLICT,
		     "fork sandbox sb1: it is paused");
	o.count = 101;
	expect_error(&f, abx_sandbox_fork(f.sandbox, &o, &forks, &f.err), ABX_EINVAL,
		     "count 101");
	expect_error(&f, abx_sandbox_fork(f.sandbox, NULL, NULL, &f.err), ABX_EINVAL,
		     "ret");
	expect_error(&f, abx_sandbox_fork(NULL, NULL, &forks, &f.err), ABX_EINVAL,
		     "NULL");
	fixture_down(&f);
}

/*
 * test-reclaim.c - timeouts to the second, activity, restarts.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"
#include "model/keys.h"
#include "world.h"

static world w;

static void setup(void)
{
	world_init(&w);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_reclaim, .init = setup, .fini = teardown, .timeout = 60);

static answer claim_for(int64_t idle_timeout_ms)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .idle_timeout_ms = idle_timeout_ms };
	answer a = { 0 };

	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	for (int i = 0; i < 200 && !a.calls; i++)
		world_pass(&w, 1);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	return a;
}

static const abx__sandbox_rec *find(const char *id)
{
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(abx__control_sandboxes(w.control), id);

	return rec && rec->state == ABX__SANDBOX_RUNNING ? rec : NULL;
}

/* It must be there. */
static abx__sandbox_rec the(const char *id)
{
	const abx__sandbox_rec *rec = find(id);

	cr_assert(rec, "sandbox %s is not there", id);
	return rec ? *rec : (abx__sandbox_rec){ 0 };
}

static int64_t end_of(const char *id)
{
	abx__sandbox_rec rec = the(id);

	return abx__sandbox_end_ms(&rec);
}

static answer set_timeout(const char *id, int64_t ms, bool extend_only)
{
	abx_error *err = NULL;
	answer a = { 0 };
	int r = abx__control_set_timeout(w.control, id, ms, extend_only, on_claim, &a,
					 &err);

	if (r < 0) {
		on_done(&a, r, err);
		abx_error_free(err);
	}
	world_pass(&w, 2);
	cr_assert_eq(a.calls, 1);
	return a;
}

Test(control_reclaim, an_idle_sandbox_ends_at_its_timeout_and_not_before)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(3000);
	world_pass(&w, 2990);
	cr_assert(find(a.id));
	world_pass(&w, 20);
	cr_assert_null(find(a.id));
	world_pass(&w, 100);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	cr_assert_eq(set_timeout(a.id, 1000, false).r, ABX_ENOTFOUND);
}

Test(control_reclaim, without_a_timeout_it_lives_on)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(0);
	cr_assert_eq(end_of(a.id), 0);
	world_pass(&w, 10000000);
	cr_assert(find(a.id));
}

Test(control_reclaim, the_envs_default_counts_unless_the_claim_says_none)
{
	answer a, b;

	world_env(&w, "demo", 2, "{\"defaultIdleTimeout\":\"5s\"}", NULL);
	a = claim_for(0);
	b = claim_for(-1);
	cr_assert_eq(the(a.id).idle_timeout_ms, 5000);
	cr_assert_eq(the(b.id).idle_timeout_ms, 0);
	world_pass(&w, 6000);
	cr_assert_null(find(a.id));
	cr_assert(find(b.id));
}

Test(control_reclaim, activity_starts_the_clock_over)
{
	abx__sandboxes *table;
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(3000);
	table = abx__control_sandboxes(w.control);
	for (int i = 0; i < 5; i++) {
		world_pass(&w, 2000);
		abx__sandboxes_touch(table, a.id);
	}
	cr_assert(find(a.id));
	cr_assert_eq(end_of(a.id), w.clock.now_ms + TURNED_CLOCK_WALL_OFFSET + 3000);
	world_pass(&w, 2990);
	cr_assert(find(a.id));
	world_pass(&w, 20);
	cr_assert_null(find(a.id));
}

Test(control_reclaim, an_open_stream_holds_it)
{
	abx__sandboxes *table;
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(2000);
	table = abx__control_sandboxes(w.control);
	abx__sandboxes_stream_begin(table, a.id);
	abx__sandboxes_stream_begin(table, a.id);
	world_pass(&w, 60500);
	cr_assert(find(a.id));
	abx__sandboxes_stream_end(table, a.id);
	world_pass(&w, 5000);
	cr_assert(find(a.id), "one is still open");
	abx__sandboxes_stream_end(table, a.id);
	world_pass(&w, 1990);
	cr_assert(find(a.id));
	world_pass(&w, 20);
	cr_assert_null(find(a.id));
}

Test(control_reclaim, set_timeout_counts_from_now_and_may_shorten)
{
	answer a, b;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(100000);
	world_pass(&w, 5000);
	b = set_timeout(a.id, 2000, false);
	cr_assert_eq(b.r, ABX_OK, "%s", b.message);
	cr_assert_str_eq(pod_annotation(&w, a.pod, ABX__ANNOTATION_IDLE_TIMEOUT), "2");
	world_pass(&w, 1990);
	cr_assert(find(a.id));
	world_pass(&w, 20);
	cr_assert_null(find(a.id));
}

Test(control_reclaim, extend_only_never_shortens)
{
	answer a;
	int64_t end;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(100000);
	end = end_of(a.id);
	cr_assert_eq(set_timeout(a.id, 2000, true).r, ABX_OK);
	cr_assert_eq(end_of(a.id), end);
	world_pass(&w, 1000);
	cr_assert_eq(set_timeout(a.id, 200000, true).r, ABX_OK);
	cr_assert_gt(end_of(a.id), end);
	cr_assert_eq(set_timeout(a.id, 0, false).r, ABX_OK);
	cr_assert_eq(set_timeout(a.id, 5000, true).r, ABX_OK);
	cr_assert_eq(end_of(a.id), 0, "no end is later than any");
	cr_assert_eq(set_timeout(a.id, -5, false).r, ABX_EINVAL);
	cr_assert_eq(set_timeout("nosuch", 5000, false).r, ABX_ENOTFOUND);
}

Test(control_reclaim, a_timeout_that_cannot_be_written_is_reported)
{
	answer a, b;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(100000);
	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 0, 1, ABX_EIO);
	b = set_timeout(a.id, 2000, false);
	cr_assert_eq(b.r, ABX_EIO);
}

Test(control_reclaim, activity_is_written_down_now_and_then)
{
	unsigned before;
	char first[64];
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(600000);
	snprintf(first, sizeof(first), "%s",
		 pod_annotation(&w, a.pod, ABX__ANNOTATION_LAST_ACTIVE));
	before = abx__fake_engine_calls(w.engine, ABX__FAKE_CHANGE);
	for (int i = 0; i < 100; i++) {
		abx__sandboxes_touch(abx__control_sandboxes(w.control), a.id);
		world_pass(&w, 1000);
	}
	cr_assert_str_neq(pod_annotation(&w, a.pod, ABX__ANNOTATION_LAST_ACTIVE), first);
	cr_assert_leq(abx__fake_engine_calls(w.engine, ABX__FAKE_CHANGE) - before, 4,
		      "lazily");
}

/* --- restarts --- */

Test(control_restart, running_sandboxes_come_back_with_all_they_had)
{
	abx__map metadata = ABX__MAP_INIT;
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .metadata = &metadata,
				       .secure = true,
				       .idle_timeout_ms = 60000,
				       .image = "python:3",
				       .team = "red",
				       .user = "ann" };
	const abx__sandbox_rec *rec;
	char token[80];
	answer a = { 0 };

	world_init(&w);
	world_env(&w, "demo", 2, NULL, NULL);
	abx__map_set(&metadata, "task", "42");
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	snprintf(token, sizeof(token), "%s", abx__secret_reveal(the(a.id).access_token));
	world_crash(&w);
	w.clock.now_ms += 5000;
	world_boot(&w);
	rec = find(a.id);
	cr_assert(rec);
	cr_assert_str_eq(rec->pod, a.pod);
	cr_assert_str_eq(rec->env, "demo");
	cr_assert_str_eq(rec->image, "python:3");
	cr_assert_str_eq(rec->team, "red");
	cr_assert_str_eq(rec->user, "ann");
	cr_assert_str_eq(rec->template_, "tmpl");
	cr_assert_str_eq(abx__map_get(&rec->metadata, "task"), "42");
	cr_assert_str_eq(abx__secret_reveal(rec->access_token), token);
	cr_assert_eq(rec->idle_timeout_ms, 60000);
	cr_assert_gt(rec->started_ms, 0);
	world_pass(&w, 100);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_OK);
	abx__map_done(&metadata);
	world_done(&w);
}

static int64_t started_us(const char *id)
{
	const abx__sandbox_rec *rec = find(id);

	cr_assert(rec);
	cr_assert_eq(rec->started_us / 1000, rec->started_ms);
	return rec->started_us;
}

Test(control_restart, sandboxes_of_one_millisecond_keep_their_order)
{
	abx__claim_request request = { .namespace_ = "default", .name = "demo" };
	answer a[3] = { 0 };
	int64_t before[3];

	world_init(&w);
	world_env(&w, "demo", 3, NULL, NULL);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(claim_with(&w, &request, &a[i], NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	for (int i = 0; i < 3; i++) {
		before[i] = started_us(a[i].id);
		cr_assert(i == 0 || before[i] > before[i - 1]);
	}
	cr_assert_eq(before[2] / 1000, before[0] / 1000, "the case in question");
	world_crash(&w);
	world_boot(&w);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(started_us(a[i].id), before[i]);
	world_done(&w);
}

Test(control_restart, a_sandbox_nobody_was_told_of_is_given_back)
{
	answer a = { 0 };

	world_init(&w);
	world_env(&w, "demo", 1, NULL, NULL);
	w.runtime.hold = true;
	cr_assert_eq(claim_start(&w, "demo", &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	world_crash(&w);
	w.runtime.hold = false;
	world_boot(&w);
	world_pass(&w, 200);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	cr_assert_eq(world_counts(&w, "demo").unavailable_idle, 0);
	cr_assert_eq(world_counts(&w, "demo").running, 0);
	world_done(&w);
}

Test(control_restart, a_sandbox_is_not_reclaimed_early_for_activity_not_written_down)
{
	answer a;

	world_init(&w);
	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(20000);
	world_pass(&w, 15000);
	abx__sandboxes_touch(abx__control_sandboxes(w.control), a.id);
	world_pass(&w, 4000);
	world_crash(&w);
	world_boot(&w);
	world_pass(&w, 14000);
	cr_assert(find(a.id));
	world_pass(&w, 60000);
	cr_assert_null(find(a.id), "but in the end it is");
	world_done(&w);
}

Test(control_restart, pods_of_an_env_that_is_gone_are_removed)
{
	answer gone = { 0 };

	world_init(&w);
	world_env(&w, "demo", 2, NULL, NULL);
	abx__fake_engine_fail(w.engine, ABX__FAKE_DELETE, 0, 100, ABX_EIO);
	cr_assert_eq(abx__control_env_delete(w.control, "default", "demo", on_done, &gone,
					     NULL),
		     ABX_OK);
	world_settle(&w);
	cr_assert_eq(gone.r, ABX_OK);
	world_crash(&w);
	abx__fake_engine_fail(w.engine, ABX__FAKE_DELETE, 0, 0, 0);
	world_boot(&w);
	world_pass(&w, 1000);
	cr_assert_eq(abx__fake_engine_count(w.engine), 0);
	world_done(&w);
}

static void nobody_hears(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	(void)userdata, (void)r, (void)doc, (void)err;
}

Test(control_restart, start_fails_when_the_store_holds_no_json)
{
	abx__control_config config;
	const uint8_t key[ABX__CONTROL_TOKEN_KEY_LEN] = { 1 };
	abx__control *control = NULL;
	answer a = { 0 };

	world_init(&w);
	w.store->ops->create(w.store, "SandboxTemplate", "", "bad", "{", 1, nobody_hears,
			     NULL);
	fake_store_step(w.store); /* applied */
	fake_store_detach(w.store);
	world_crash(&w);
	config = (abx__control_config){ .cluster_id = "local",
					.token_key = key,
					.store = w.store,
					.engine = w.engine,
					.runtime = &w.runtime.base,
					.clock = &w.clock.clock };
	cr_assert_eq(abx__control_new(&config, &control, NULL), ABX_OK);
	cr_assert_eq(abx__control_start(control, on_done, &a, NULL), ABX_OK);
	world_settle(&w);
	cr_assert_eq(a.r, ABX_EIO);
	cr_assert(strstr(a.message, "bad"), "%s", a.message);
	abx__control_free(control);
	abx__fake_engine_free(w.engine);
	fake_store_free(w.store);
}

/* --- the table --- */

Test(control_reclaim, any_spelling_of_an_id_finds_it)
{
	abx__sandboxes *table = abx__control_sandboxes(w.control);
	char spelled[64];
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim_for(0);
	snprintf(spelled, sizeof(spelled), "local.%s", a.id);
	cr_assert(abx__sandboxes_find(table, spelled));
	snprintf(spelled, sizeof(spelled), "%s-local", a.id);
	cr_assert(abx__sandboxes_find(table, spelled));
	snprintf(spelled, sizeof(spelled), "%s-6532622b", a.id);
	cr_assert(abx__sandboxes_find(table, spelled));
	snprintf(spelled, sizeof(spelled), "far.%s", a.id);
	cr_assert_null(abx__sandboxes_find(table, spelled));
	snprintf(spelled, sizeof(spelled), "%s-far", a.id);
	cr_assert_null(abx__sandboxes_find(table, spelled));
	cr_assert_null(abx__sandboxes_find(table, ""));
}

Test(control_reclaim, the_table_is_in_order_of_start)
{
	const abx__sandbox_rec *rec;
	answer a[3];

	world_env(&w, "demo", 3, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		a[i] = claim_for(0);
		world_pass(&w, 10);
	}
	for (size_t i = 0; i < 3; i++) {
		cr_assert(abx__sandboxes_at(abx__control_sandboxes(w.control), i, &rec));
		cr_assert_str_eq(rec->id, a[i].id);
	}
	cr_assert_not(abx__sandboxes_at(abx__control_sandboxes(w.control), 3, &rec));
}

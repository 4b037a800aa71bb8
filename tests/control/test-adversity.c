/*
 * test-adversity.c - what goes wrong around control: an engine that fails at any call, a
 * store that is full or locked, a wall clock that somebody sets. Each leaves everything
 * as it was, or says so, and afterwards nothing is lost, leaked or stuck.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"
#include "model/keys.h"
#include "world.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

static world w;

static void setup(void)
{
	world_init(&w);
	world_env(&w, "demo", 2, NULL, NULL);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_adversity, .init = setup, .fini = teardown, .timeout = 120);

static void expect_whole(const char *when)
{
	abx__pool_counts c;

	for (int op = 0; op < ABX__FAKE_OP_COUNT; op++)
		abx__fake_engine_fail(w.engine, (enum abx__fake_op)op, 0, 0, 0);
	fake_store_fail(w.store, 0, 0);
	world_pass(&w, 200000);
	c = world_counts(&w, "demo");
	cr_assert_eq(c.idle, 2, "%s: %d idle", when, c.idle);
	cr_assert_eq(c.unavailable_idle + c.running + c.starting + c.stopping + c.failed +
			     c.pending,
		     0, "%s", when);
	cr_assert_eq((int)abx__fake_engine_count(w.engine), 2, "%s: a Pod is leaked",
		     when);
}

static bool is_documented(int r)
{
	switch (r) {
	case ABX_OK:
	case ABX_EINVAL:
	case ABX_EEXHAUSTED:
	case ABX_EUNAVAILABLE:
	case ABX_ETIMEDOUT:
	case ABX_ENOTFOUND:
	case ABX_ECONFLICT:
	case ABX_EIO:
		return true;
	default:
		return false;
	}
}

static void on_snapshot(void *userdata, int r, const abx__snapshot_rec *s,
			const abx_error *err)
{
	(void)s;
	on_done(userdata, r, err);
}

/* Everything the engine is asked for: a start with another image, a pause, a resume, a
   snapshot, a look at what is used, an end. Whatever starts is ended. */
static void live_a_life(const char *when)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = "other:1",
				       .startup_timeout_ms = 3000 };
	answer made = { 0 }, step[4] = { { 0 } };
	const abx__sandbox_rec *rec;

	if (claim_with(&w, &request, &made, NULL, NULL) == ABX_OK)
		world_pass(&w, 4000);
	cr_assert_eq(made.calls, 1, "%s: the claim hangs", when);
	cr_assert(is_documented(made.r), "%s: claim gave %d %s", when, made.r,
		  made.message);
	if (made.r < 0)
		return;
	if (abx__control_snapshot(w.control, made.id, "n", NULL, false, on_snapshot,
				  &step[0], NULL) == ABX_OK) {
		world_pass(&w, 5000);
		cr_assert_eq(step[0].calls, 1, "%s: the snapshot hangs", when);
		cr_assert(is_documented(step[0].r), "%s: %d", when, step[0].r);
	}
	if (abx__control_pause(w.control, made.id, true, on_done, &step[1], NULL) ==
	    ABX_OK) {
		world_pass(&w, 60000);
		cr_assert_eq(step[1].calls, 1, "%s: the pause hangs", when);
		cr_assert(is_documented(step[1].r), "%s: %d", when, step[1].r);
	}
	if (abx__control_resume(w.control, made.id, 0, false, on_claim, &step[2], NULL) ==
	    ABX_OK) {
		world_pass(&w, 200000);
		cr_assert_eq(step[2].calls, 1, "%s: the resume hangs", when);
		cr_assert(is_documented(step[2].r), "%s: %d", when, step[2].r);
	}
	rec = abx__sandboxes_find(abx__control_sandboxes(w.control), made.id);
	if (rec && abx__control_kill(w.control, made.id, "Completed", on_done, &step[3],
				     NULL) == ABX_OK) {
		world_pass(&w, 5000);
		cr_assert_eq(step[3].calls, 1, "%s: the kill hangs", when);
	}
	/* A kill that could not be had said so and goes on by itself. */
}

Test(control_adversity, the_engine_fails_at_every_call)
{
	static const int codes[] = { ABX_EIO, ABX_EUNAVAILABLE, ABX_ECONFLICT };
	static const char *const ops[] = { "create", "change", "delete", "snapshot",
					   "stat" };

	for (int op = 0; op < ABX__FAKE_OP_COUNT; op++) {
		for (unsigned nth = 0; nth < 8; nth++) {
			for (size_t c = 0; c < 3; c++) {
				char when[64];

				snprintf(when, sizeof(when), "%s %u fails with %d",
					 ops[op], nth, codes[c]);
				abx__fake_engine_fail(w.engine, (enum abx__fake_op)op,
						      nth, 1, codes[c]);
				live_a_life(when);
				expect_whole(when);
			}
		}
	}
}

Test(control_adversity, the_engine_fails_for_a_while)
{
	static const enum abx__fake_op ops[] = { ABX__FAKE_CHANGE, ABX__FAKE_DELETE,
						 ABX__FAKE_CREATE };

	for (size_t i = 0; i < 3; i++) {
		abx__fake_engine_fail(w.engine, ops[i], 0, 1000, ABX_EUNAVAILABLE);
		live_a_life("for a while");
		expect_whole("after a while");
	}
}

/* --- the store --- */

Test(control_adversity, a_full_or_locked_store_refuses_writes_and_serves_on)
{
	static const int codes[] = { ABX_EEXHAUSTED, ABX_EUNAVAILABLE };

	for (size_t i = 0; i < 2; i++) {
		answer a, made, killed;

		fake_store_fail(w.store, 100000, codes[i]);
		a = world_apply(&w, env_doc("demo", 5, NULL, NULL), false);
		cr_assert_eq(a.r, codes[i], "%d %s", a.r, a.message);
		cr_assert_eq(world_counts(&w, "demo").replicas, 2, "as it was");
		a = world_apply(&w, env_doc("more", 1, NULL, NULL), true);
		cr_assert_eq(a.r, codes[i]);
		/* Pods and sandboxes go on: they are the engine's. */
		made = world_claim(&w, "demo");
		cr_assert_eq(made.r, ABX_OK, "%s", made.message);
		killed = world_kill(&w, made.id);
		cr_assert_eq(killed.r, ABX_OK, "%s", killed.message);
		world_pass(&w, 120000);
		cr_assert_not_null(abx__control_ended(w.control, made.id),
				   "its end is known though it is not written");
		fake_store_fail(w.store, 0, 0);
		a = world_apply(&w, env_doc("demo", 2, NULL, NULL), false);
		cr_assert_eq(a.r, ABX_OK, "%s", a.message);
		answer_done(&a);
		world_pass(&w, 60000);
		world_crash(&w);
		world_boot(&w);
		cr_assert_not_null(abx__control_ended(w.control, made.id),
				   "and is written when there is room");
		expect_whole("after the store");
	}
}

Test(control_adversity, an_autoscaler_that_cannot_write_says_failed_and_tries_again)
{
	static answer a;
	json_object *doc = NULL;
	const char *result;

	world_env(&w, "auto", 0, NULL,
		  "{\"name\":\"1c2gi\",\"enabled\":true,\"scaleUpPolicy\":{"
		  "\"saturationCooldownSeconds\":30}}");
	fake_store_fail(w.store, 100000, ABX_EEXHAUSTED);
	cr_assert_eq(claim_start(&w, "auto", &a, NULL, NULL), ABX_OK);
	world_pass(&w, 5000);
	cr_assert_eq(world_counts(&w, "auto").replicas, 0);
	cr_assert_eq(abx__control_pool_get(w.control, "default", "auto", "auto-1c2gi",
					   &doc, NULL),
		     ABX_OK);
	result = abx__field_str(
		abx__field_object(abx__field_object(doc, "status"), "autoscaling"),
		"lastScaleUpAttemptResult");
	cr_assert_str_eq(result, "Failed");
	json_object_put(doc);
	fake_store_fail(w.store, 0, 0);
	world_pass(&w, 60000);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(a.calls, 1);
}

/* --- the wall clock --- */

static answer claim_for(int64_t idle_ms)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .idle_timeout_ms = idle_ms };
	answer a = { 0 };

	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 100);
	cr_assert_eq(a.r, ABX_OK);
	return a;
}

static bool lives(const answer *a)
{
	return abx__sandboxes_find(abx__control_sandboxes(w.control), a->id) != NULL;
}

Test(control_adversity, a_wall_clock_set_a_day_either_way_ends_nobody_early_or_late)
{
	static const int64_t jumps[] = { DAY_MS, -DAY_MS };

	for (size_t i = 0; i < 2; i++) {
		answer a = claim_for(60000);

		world_pass(&w, 10000);
		w.clock.jump_ms += jumps[i];
		world_pass(&w, 45000);
		cr_assert(lives(&a), "jump %zu", i);
		world_pass(&w, 10000);
		cr_assert_not(lives(&a), "jump %zu", i);
		cr_assert_eq(abx__control_ended(w.control, a.id)->status,
			     ABX__STATUS_RELEASED);
	}
	expect_whole("after the jumps");
}

Test(control_adversity, a_wall_clock_set_while_nobody_ran_ends_nobody_at_once)
{
	static const int64_t jumps[] = { DAY_MS, -DAY_MS };

	for (size_t i = 0; i < 2; i++) {
		answer a = claim_for(60000);

		world_crash(&w);
		w.clock.jump_ms += jumps[i];
		world_boot(&w);
		cr_assert(lives(&a), "jump %zu", i);
		world_pass(&w, 5000);
		cr_assert(lives(&a), "jump %zu: it has a moment to show itself", i);
		world_pass(&w, 120000);
		cr_assert_not(lives(&a), "jump %zu: and not forever", i);
	}
	expect_whole("after the jumps");
}

Test(control_adversity, a_queued_claim_waits_by_its_own_clock)
{
	static answer a[3];

	for (int i = 0; i < 3; i++) {
		abx__claim_request request = { .namespace_ = "default",
					       .name = "demo",
					       .max_wait_ms = 10000 };

		cr_assert_eq(claim_with(&w, &request, &a[i], NULL, NULL), ABX_OK);
	}
	world_pass(&w, 1000);
	w.clock.jump_ms += DAY_MS;
	world_pass(&w, 5000);
	cr_assert_eq(a[2].calls, 0);
	w.clock.jump_ms -= 2 * DAY_MS;
	world_pass(&w, 5000);
	cr_assert_eq(a[2].calls, 1);
	cr_assert_eq(a[2].r, ABX_EEXHAUSTED);
}

Test(control_adversity, records_and_the_autoscaler_survive_a_jump)
{
	static answer late[3];
	answer a = claim_for(0), b;

	world_kill(&w, a.id);
	w.clock.jump_ms += DAY_MS;
	world_pass(&w, 120000);
	cr_assert_not_null(abx__control_ended(w.control, a.id));
	w.clock.jump_ms -= 2 * DAY_MS;
	b = claim_for(0);
	world_kill(&w, b.id);
	world_pass(&w, 120000);
	cr_assert_not_null(abx__control_ended(w.control, a.id));
	cr_assert_not_null(abx__control_ended(w.control, b.id));
	world_env(&w, "auto", 0, NULL, "{\"name\":\"1c2gi\",\"enabled\":true}");
	cr_assert_eq(world_claim(&w, "auto").r, ABX_OK);
	world_pass(&w, 10000);
	world_crash(&w);
	w.clock.jump_ms -= DAY_MS;
	world_boot(&w);
	/* A cooldown that would end tomorrow ends in its own time. */
	for (int i = 0; i < 3; i++)
		cr_assert_eq(claim_start(&w, "auto", &late[i], NULL, NULL), ABX_OK);
	world_pass(&w, 60000);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(late[i].calls, 1, "claim %d still waits", i);
}

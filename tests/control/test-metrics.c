/* What sandboxes use, sampled in turn. The fake engine's Pods use half a core. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/error.h"
#include "control/metrics.h"
#include "world.h"

static world w;

static void setup(void)
{
	world_init(&w);
	world_template(&w, "base");
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_metrics, .init = setup, .fini = teardown);

static size_t kept(const char *id)
{
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(abx__control_sandboxes(w.control), id);
	abx__metric m;
	size_t n = 0;

	cr_assert(rec);
	while (abx__metrics_at(rec, n, &m))
		n++;
	return n;
}

static abx__metric at(const char *id, size_t index)
{
	abx__metric m = { 0 };

	cr_assert(abx__metrics_at(
		abx__sandboxes_find(abx__control_sandboxes(w.control), id), index, &m));
	return m;
}

/* From an env whose sandboxes do not end. */
static answer claim(void)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .idle_timeout_ms = -1 };
	answer a = { 0 };

	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	return a;
}

Test(control_metrics, a_sample_every_five_seconds_after_one_to_compare_with)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim();
	cr_assert_eq(kept(a.id), 0);
	world_pass(&w, 1100);
	cr_assert_eq(kept(a.id), 0, "the first is only to compare with");
	world_pass(&w, 5000);
	cr_assert_eq(kept(a.id), 1);
	world_pass(&w, 50000);
	cr_assert_eq(kept(a.id), 11);
	cr_assert_float_eq(at(a.id, 3).cpu_pct, 50.0, 0.1);
	cr_assert_eq(at(a.id, 3).unix_s, at(a.id, 2).unix_s + 5);
	cr_assert_eq(at(a.id, 3).memory_used, (uint64_t)100 << 20);
	cr_assert_eq(at(a.id, 3).memory_total, (uint64_t)2 << 30);
	cr_assert_eq(at(a.id, 3).memory_cache, (uint64_t)10 << 20);
	cr_assert_eq(at(a.id, 3).disk_used, (uint64_t)1 << 30);
	cr_assert_eq(at(a.id, 3).disk_total, (uint64_t)10 << 30);
}

Test(control_metrics, the_last_half_hour_is_kept_oldest_first)
{
	answer a;
	int64_t last;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim();
	world_pass(&w, INT64_C(40) * 60 * 1000);
	cr_assert_eq(kept(a.id), ABX__METRICS_MOST);
	last = at(a.id, 0).unix_s;
	for (size_t i = 1; i < ABX__METRICS_MOST; i++) {
		cr_assert_eq(at(a.id, i).unix_s, last + 5, "%zu", i);
		last = at(a.id, i).unix_s;
	}
	cr_assert_geq(last * 1000 + 6000, w.clock.now_ms + TURNED_CLOCK_WALL_OFFSET);
}

Test(control_metrics, several_are_asked_in_turn)
{
	answer a[5];

	world_env(&w, "demo", 5, NULL, NULL);
	for (int i = 0; i < 5; i++)
		a[i] = claim();
	world_pass(&w, 61000);
	for (int i = 0; i < 5; i++) {
		cr_assert_geq(kept(a[i].id), 10, "%d: %zu", i, kept(a[i].id));
		cr_assert_leq(kept(a[i].id), 12, "%d: %zu", i, kept(a[i].id));
	}
}

Test(control_metrics, without_a_sandbox_nothing_is_asked)
{
	answer a;
	unsigned before;

	world_env(&w, "demo", 1, NULL, NULL);
	world_pass(&w, 60000);
	cr_assert_eq(abx__fake_engine_calls(w.engine, ABX__FAKE_STAT), 0);
	a = claim();
	world_pass(&w, 10000);
	before = abx__fake_engine_calls(w.engine, ABX__FAKE_STAT);
	cr_assert_gt(before, 0);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_OK);
	world_pass(&w, 60000);
	cr_assert_leq(abx__fake_engine_calls(w.engine, ABX__FAKE_STAT), before + 1);
}

Test(control_metrics, an_answer_that_fails_is_no_sample)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = claim();
	abx__fake_engine_fail(w.engine, ABX__FAKE_STAT, 1, 2, ABX_EUNAVAILABLE);
	world_pass(&w, 16100);
	cr_assert_eq(kept(a.id), 1, "%zu", kept(a.id));
	cr_assert_float_eq(at(a.id, 0).cpu_pct, 50.0, 0.1, "over the whole time");
}

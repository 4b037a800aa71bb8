/*
 * test-faults.c - memory that runs out at every allocation of a create, a kill and a
 * document's write: each ends with a documented error, and afterwards everything works as
 * if nothing had been.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "world.h"

#define MOST_ALLOCATIONS 2000

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

TestSuite(control_faults, .init = setup, .fini = teardown, .timeout = 120);

/* With failing allocations until the call has answered, or a while has passed. */
static void run_failing(const answer *a)
{
	for (int i = 0; i < 2000 && !a->calls; i++)
		if (!world_step(&w))
			w.clock.now_ms++;
	abx__test_alloc_reset();
}

static void assert_whole(unsigned n, int running)
{
	abx__pool_counts c;

	world_pass(&w, 100000);
	c = world_counts(&w, "demo");
	cr_assert_eq(c.running, running, "allocation %u: %d running", n, c.running);
	cr_assert_eq(c.idle, 2 - running, "allocation %u: %d idle", n, c.idle);
	cr_assert_eq(c.unavailable_idle + c.failed + c.stopping + c.starting + c.pending,
		     0, "allocation %u", n);
	cr_assert_eq((int)abx__fake_engine_count(w.engine), 2,
		     "allocation %u: a Pod is leaked", n);
}

static int claim_failing(unsigned n, answer *a)
{
	abx__map vars = ABX__MAP_INIT;
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .secure = true,
				       .image = "python:3",
				       .team = "red",
				       .metadata = &vars,
				       .labels = &vars,
				       .env_vars = &vars };
	abx_error *err = NULL;
	int r;

	abx__map_set(&vars, "key", "value");
	abx__test_fail_alloc_after(n);
	r = claim_with(&w, &request, a, NULL, &err);
	if (r == ABX_OK) {
		run_failing(a);
		cr_assert_eq(a->calls, 1, "allocation %u: no answer", n);
		r = a->r;
	}
	abx__test_alloc_reset();
	abx_error_free(err);
	abx__map_done(&vars);
	return r;
}

Test(control_faults, a_create_ends_in_nomem_and_leaves_nothing)
{
	int r = ABX_ENOMEM;
	unsigned n;

	for (n = 0; r != ABX_OK; n++) {
		answer a = { 0 };

		cr_assert_lt(n, MOST_ALLOCATIONS);
		r = claim_failing(n, &a);
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d %s", n,
			  r, a.message);
		assert_whole(n, r == ABX_OK);
	}
	cr_assert_gt(n, 20, "only %u allocations were tried", n);
}

Test(control_faults, a_kill_succeeds_or_ends_in_nomem_and_leaves_nothing)
{
	bool failed_once = true;

	for (unsigned n = 0; failed_once && n < MOST_ALLOCATIONS; n++) {
		answer made = world_claim(&w, "demo"), a = { 0 };
		abx_error *err = NULL;
		int r;

		cr_assert_eq(made.r, ABX_OK, "%s", made.message);
		abx__test_fail_alloc_after(n);
		r = abx__control_kill(w.control, made.id, "Completed", on_done, &a, &err);
		if (r == ABX_OK) {
			run_failing(&a);
			cr_assert_eq(a.calls, 1);
			r = a.r;
		}
		abx__test_alloc_reset();
		abx_error_free(err);
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d %s", n,
			  r, a.message);
		/* What failed before anything was done is simply asked for again. */
		if (r < 0 &&
		    abx__sandboxes_find(abx__control_sandboxes(w.control), made.id))
			world_kill(&w, made.id);
		assert_whole(n, 0);
		failed_once = n < 60;
	}
}

Test(control_faults, a_documents_write_ends_in_nomem_and_can_be_repeated)
{
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != ABX_OK; n++) {
		json_object *doc = env_doc("second", 1, NULL, NULL);
		abx_error *err = NULL;
		answer a = { 0 };

		cr_assert_lt(n, MOST_ALLOCATIONS);
		abx__test_fail_alloc_after(n);
		r = abx__control_env_create(w.control, doc, on_object, &a, &err);
		if (r == ABX_OK) {
			run_failing(&a);
			cr_assert_eq(a.calls, 1);
			r = a.r;
		}
		abx__test_alloc_reset();
		json_object_put(doc);
		abx_error_free(err);
		answer_done(&a);
		if (r == ABX_EEXISTS) {
			/* Stored, but memory ran out while it was taken in: a restart
			 * finds it. */
			world_crash(&w);
			world_boot(&w);
			break;
		}
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d %s", n,
			  r, a.message);
	}
	world_pass(&w, 100000);
	cr_assert_eq(world_counts(&w, "second").idle, 1);
	cr_assert_eq(world_counts(&w, "demo").idle, 2);
	cr_assert_eq((int)abx__fake_engine_count(w.engine), 3);
}

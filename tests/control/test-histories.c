/*
 * test-histories.c - random histories of claims, kills, scaling, failing engines and
 * crashes, against what must hold: no Pod with two owners, no acknowledged sandbox lost,
 * none leaked, every pool back at its size.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "books.h"
#include "model/keys.h"

typedef struct history {
	books b;
	int replicas;
	bool faults;
} history;

/* A kill that failed, and said so: a crash may bring the sandbox back. */
static bool in_limbo(const booked *call)
{
	return call->is_kill;
}

static void do_claim(history *h)
{
	static const char *const images[] = { NULL, NULL, "python:3", "nosuch:1" };
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = images[books_random(&h->b, 4)],
				       .startup_timeout_ms =
					       500 + 500 * books_random(&h->b, 4),
				       .secure = books_random(&h->b, 2) };
	booked *c = books_call(&h->b);
	abx__claim *claim = NULL;

	if (!c)
		return;
	if (claim_with(&h->b.w, &request, &c->a, &claim, NULL) < 0) {
		c->used = false;
	} else if (books_random(&h->b, 8) == 0) {
		for (unsigned n = books_random(&h->b, 12); n > 0 && !c->a.calls; n--)
			world_step(&h->b.w);
		if (!c->a.calls) {
			abx__control_claim_cancel(h->b.w.control, claim);
			c->used = false;
		}
	}
}

static void do_kill(history *h)
{
	char id[32];
	booked *c;

	if (h->b.told_count == 0 || !(c = books_call(&h->b)))
		return;
	c->is_kill = true;
	books_take(&h->b, id);
	cr_assert_eq(
		abx__control_kill(h->b.w.control, id, "Completed", on_done, &c->a, NULL),
		ABX_OK, "acknowledged sandbox %s is lost", id);
}

static void do_scale(history *h)
{
	int replicas = 2 + (int)books_random(&h->b, 5);
	abx_error *err = NULL;
	static answer a; /* outlives a crash in the middle */
	json_object *doc = env_doc("demo", replicas, NULL, NULL);

	answer_done(&a);
	memset(&a, 0, sizeof(a));
	cr_assert_eq(abx__control_env_update(h->b.w.control, doc, on_object, &a, &err),
		     ABX_OK);
	json_object_put(doc);
	for (int i = 0; i < 1000 && !a.calls; i++)
		if (!world_step(&h->b.w))
			h->b.w.clock.now_ms++;
	if (a.r == ABX_OK)
		h->replicas = replicas;
}

static void do_fault(history *h)
{
	static const int codes[] = { ABX_EIO, ABX_ECONFLICT, ABX_ENOTFOUND,
				     ABX_EUNAVAILABLE };
	enum abx__fake_op op = (enum abx__fake_op)books_random(&h->b, ABX__FAKE_OP_COUNT);
	int code = codes[books_random(&h->b, 4)];

	/* A change that is lied about as "not found" would be a Pod that is there and is
	 * not. */
	if (code == ABX_ENOTFOUND)
		code = ABX_EIO;
	if (h->faults)
		abx__fake_engine_fail(h->b.w.engine, op, books_random(&h->b, 3),
				      1 + books_random(&h->b, 2), code);
	if (h->faults && books_random(&h->b, 3) == 0) {
		h->b.w.runtime.fail_count = 1;
		h->b.w.runtime.fail_code = ABX_EUNAVAILABLE;
	}
}

static void do_crash(history *h)
{
	int unknown;

	books_read(&h->b);
	unknown = books_forget_calls(&h->b);
	world_crash(&h->b.w);
	abx__fake_engine_fail(h->b.w.engine, ABX__FAKE_CHANGE, 0, 0, 0);
	world_boot(&h->b.w);
	books_count_untold(&h->b, unknown + h->b.limbo);
	books_check_owners(&h->b);
}

static void quiesce(history *h)
{
	abx__pool_counts c;

	for (int op = 0; op < ABX__FAKE_OP_COUNT; op++)
		abx__fake_engine_fail(h->b.w.engine, (enum abx__fake_op)op, 0, 0, 0);
	h->b.w.runtime.fail_count = 0;
	world_pass(&h->b.w, 200000);
	books_read(&h->b);
	books_count_untold(&h->b, 0);
	books_check_owners(&h->b);
	c = world_counts(&h->b.w, "demo");
	cr_assert_eq(c.running, h->b.told_count, "%d run, %d were acknowledged",
		     c.running, h->b.told_count);
	cr_assert_eq(c.starting + c.stopping + c.failed + c.pending + c.unavailable_idle,
		     0);
	cr_assert_eq(c.idle, h->replicas > c.running ? h->replicas - c.running : 0,
		     "%d idle of %d replicas, %d running", c.idle, h->replicas,
		     c.running);
	cr_assert_eq((int)abx__fake_engine_count(h->b.w.engine), c.idle + c.running,
		     "a Pod is leaked");
}

static void run_history(unsigned seed, bool crashes, bool faults)
{
	static history h;

	books_begin(&h.b, seed, in_limbo);
	h.faults = faults;
	h.replicas = 4;
	abx__fake_engine_bad_image(h.b.w.engine, "nosuch:1", "ErrImagePull");
	world_env(&h.b.w, "demo", 4, NULL, NULL);
	for (int i = 0; i < 150; i++) {
		unsigned what = books_random(&h.b, 20);

		if (what < 8)
			do_claim(&h);
		else if (what < 13)
			do_kill(&h);
		else if (what < 14)
			do_scale(&h);
		else if (what < 16)
			do_fault(&h);
		else if (what < 17 && crashes)
			do_crash(&h);
		for (unsigned n = books_random(&h.b, 30); n > 0; n--)
			if (!world_step(&h.b.w))
				h.b.w.clock.now_ms += 1 + books_random(&h.b, 20);
		books_read(&h.b);
		if (i % 50 == 49)
			quiesce(&h);
	}
	world_done(&h.b.w);
}

Test(control_histories, without_crashes, .timeout = 120)
{
	for (unsigned seed = 1; seed <= 100; seed++)
		run_history(seed, false, false);
}

Test(control_histories, with_a_failing_engine, .timeout = 120)
{
	for (unsigned seed = 1; seed <= 100; seed++)
		run_history(seed, false, true);
}

Test(control_histories, with_crashes, .timeout = 120)
{
	for (unsigned seed = 1; seed <= 100; seed++)
		run_history(seed, true, false);
}

Test(control_histories, with_crashes_and_a_failing_engine, .timeout = 120)
{
	for (unsigned seed = 1; seed <= 100; seed++)
		run_history(seed, true, true);
}

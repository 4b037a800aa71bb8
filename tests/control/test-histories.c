/*
 * test-histories.c - random histories of claims, kills, scaling, failing engines and
 * crashes, against what must hold: no Pod with two owners, no acknowledged sandbox lost,
 * none leaked, every pool back at its size.
 *
 * A crash may fall between the write of "running" and its answer: such a sandbox exists
 * although nobody was told. No protocol avoids that; the test counts them against the
 * claims that were in flight.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/keys.h"
#include "world.h"

#define MAX_CALLS 64
#define MAX_ACKED 64

typedef struct call {
	bool used;
	bool is_kill;
	bool reported; /* taken over into the history's own books */
	answer a;
	char id[32]; /* of a kill */
} call;

typedef struct history {
	world w;
	unsigned seed;
	call calls[MAX_CALLS];
	char acked[MAX_ACKED][32];
	int acked_count;
	int replicas;
	int limbo; /* kills that failed, and said so: a crash may bring the sandbox back
		    */
	bool faults;
} history;

static unsigned next_random(history *h, unsigned below)
{
	h->seed = h->seed * 1103515245u + 12345u;
	return (h->seed >> 16) % below;
}

static int acked_find(const history *h, const char *id)
{
	for (int i = 0; i < h->acked_count; i++)
		if (strcmp(h->acked[i], id) == 0)
			return i;
	return -1;
}

static void acked_add(history *h, const char *id)
{
	cr_assert_lt(h->acked_count, MAX_ACKED);
	cr_assert_eq(acked_find(h, id), -1, "sandbox %s was given to two", id);
	cr_assert_lt(strlen(id), 32);
	memcpy(h->acked[h->acked_count++], id, strlen(id) + 1);
}

static void acked_remove(history *h, int i)
{
	memmove(h->acked[i], h->acked[h->acked_count - 1], 32);
	h->acked_count--;
}

static call *call_new(history *h)
{
	for (int i = 0; i < MAX_CALLS; i++) {
		if (h->calls[i].used)
			continue;
		memset(&h->calls[i], 0, sizeof(h->calls[i]));
		h->calls[i].used = true;
		return &h->calls[i];
	}
	return NULL;
}

/* What was answered since the last look. */
static void read_answers(history *h)
{
	for (int i = 0; i < MAX_CALLS; i++) {
		call *c = &h->calls[i];

		if (!c->used || !c->a.calls)
			continue;
		cr_assert_eq(c->a.calls, 1);
		if (!c->is_kill && c->a.r == ABX_OK)
			acked_add(h, c->a.id);
		if (c->is_kill && c->a.r < 0)
			h->limbo++;
		c->used = false;
	}
}

static void do_claim(history *h)
{
	static const char *const images[] = { NULL, NULL, "python:3", "nosuch:1" };
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = images[next_random(h, 4)],
				       .startup_timeout_ms =
					       500 + 500 * next_random(h, 4),
				       .secure = next_random(h, 2) };
	call *c = call_new(h);
	abx__claim *claim = NULL;

	if (!c)
		return;
	if (claim_with(&h->w, &request, &c->a, &claim, NULL) < 0) {
		c->used = false;
	} else if (next_random(h, 8) == 0) {
		for (unsigned n = next_random(h, 12); n > 0 && !c->a.calls; n--)
			world_step(&h->w);
		if (!c->a.calls) {
			abx__control_claim_cancel(h->w.control, claim);
			c->used = false;
		}
	}
}

static void do_kill(history *h)
{
	call *c;
	int i;

	if (h->acked_count == 0 || !(c = call_new(h)))
		return;
	i = (int)next_random(h, (unsigned)h->acked_count);
	c->is_kill = true;
	memcpy(c->id, h->acked[i], sizeof(c->id));
	cr_assert_eq(
		abx__control_kill(h->w.control, c->id, "Completed", on_done, &c->a, NULL),
		ABX_OK, "acknowledged sandbox %s is lost", c->id);
	acked_remove(h, i);
}

static void do_scale(history *h)
{
	int replicas = 2 + (int)next_random(h, 5);
	abx_error *err = NULL;
	static answer a; /* outlives a crash in the middle */
	json_object *doc = env_doc("demo", replicas, NULL, NULL);

	answer_done(&a);
	memset(&a, 0, sizeof(a));
	cr_assert_eq(abx__control_env_update(h->w.control, doc, on_object, &a, &err),
		     ABX_OK);
	json_object_put(doc);
	for (int i = 0; i < 1000 && !a.calls; i++)
		if (!world_step(&h->w))
			h->w.clock.now_ms++;
	if (a.r == ABX_OK)
		h->replicas = replicas;
}

static void do_fault(history *h)
{
	static const int codes[] = { ABX_EIO, ABX_ECONFLICT, ABX_ENOTFOUND,
				     ABX_EUNAVAILABLE };
	enum abx__fake_op op = (enum abx__fake_op)next_random(h, ABX__FAKE_OP_COUNT);
	int code = codes[next_random(h, 4)];

	/* A change that is lied about as "not found" would be a Pod that is there and is
	 * not. */
	if (code == ABX_ENOTFOUND)
		code = ABX_EIO;
	if (h->faults)
		abx__fake_engine_fail(h->w.engine, op, next_random(h, 3),
				      1 + next_random(h, 2), code);
	if (h->faults && next_random(h, 3) == 0) {
		h->w.runtime.fail_count = 1;
		h->w.runtime.fail_code = ABX_EUNAVAILABLE;
	}
}

static void check_owners(history *h)
{
	abx__pod a, b;

	for (size_t i = 0; abx__fake_engine_at(h->w.engine, i, &a); i++) {
		const char *id = abx__map_get(&a.labels, ABX__LABEL_SANDBOX_ID);

		for (size_t k = 0; id && k < i; k++) {
			const char *other;

			abx__fake_engine_at(h->w.engine, k, &b);
			other = abx__map_get(&b.labels, ABX__LABEL_SANDBOX_ID);
			cr_assert(!other || strcmp(id, other) != 0,
				  "sandbox %s on two Pods (seed %u)", id, h->seed);
		}
	}
	for (int i = 0; i < h->acked_count; i++) {
		const abx__sandbox_rec *rec = abx__sandboxes_find(
			abx__control_sandboxes(h->w.control), h->acked[i]);

		cr_assert(rec, "acknowledged sandbox %s is lost", h->acked[i]);
		cr_assert_eq(rec->state, ABX__SANDBOX_RUNNING);
		cr_assert_str_eq(pod_label(&h->w, rec->pod, ABX__LABEL_SANDBOX_ID),
				 h->acked[i]);
	}
}

/* Those in the table nobody was told of become known; at most `allowed`. */
static void count_untold(history *h, int allowed)
{
	const abx__sandbox_rec *rec;

	for (size_t i = 0;
	     abx__sandboxes_at(abx__control_sandboxes(h->w.control), i, &rec); i++) {
		if (rec->state != ABX__SANDBOX_RUNNING || acked_find(h, rec->id) >= 0)
			continue;
		cr_assert_gt(allowed--, 0, "sandbox %s is leaked", rec->id);
		acked_add(h, rec->id);
	}
}

static void do_crash(history *h)
{
	int unknown = 0;

	read_answers(h);
	for (int i = 0; i < MAX_CALLS; i++) {
		/* A claim may have become a sandbox; a kill may not have happened. */
		unknown += h->calls[i].used;
		h->calls[i].used = false;
	}
	world_crash(&h->w);
	abx__fake_engine_fail(h->w.engine, ABX__FAKE_CHANGE, 0, 0, 0);
	world_boot(&h->w);
	count_untold(h, unknown + h->limbo);
	check_owners(h);
}

static void quiesce(history *h)
{
	abx__pool_counts c;

	for (int op = 0; op < ABX__FAKE_OP_COUNT; op++)
		abx__fake_engine_fail(h->w.engine, (enum abx__fake_op)op, 0, 0, 0);
	h->w.runtime.fail_count = 0;
	world_pass(&h->w, 200000);
	read_answers(h);
	count_untold(h, 0);
	check_owners(h);
	c = world_counts(&h->w, "demo");
	cr_assert_eq(c.running, h->acked_count, "%d run, %d were acknowledged", c.running,
		     h->acked_count);
	cr_assert_eq(c.starting + c.stopping + c.failed + c.pending + c.unavailable_idle,
		     0);
	cr_assert_eq(c.idle, h->replicas > c.running ? h->replicas - c.running : 0,
		     "%d idle of %d replicas, %d running", c.idle, h->replicas,
		     c.running);
	cr_assert_eq((int)abx__fake_engine_count(h->w.engine), c.idle + c.running,
		     "a Pod is leaked");
}

static void run_history(unsigned seed, bool crashes, bool faults)
{
	static history h;

	memset(&h, 0, sizeof(h));
	h.seed = seed;
	h.faults = faults;
	h.replicas = 4;
	world_init(&h.w);
	abx__fake_engine_bad_image(h.w.engine, "nosuch:1", "ErrImagePull");
	world_env(&h.w, "demo", 4, NULL, NULL);
	for (int i = 0; i < 150; i++) {
		unsigned what = next_random(&h, 20);

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
		for (unsigned n = next_random(&h, 30); n > 0; n--)
			if (!world_step(&h.w))
				h.w.clock.now_ms += 1 + next_random(&h, 20);
		read_answers(&h);
		if (i % 50 == 49)
			quiesce(&h);
	}
	world_done(&h.w);
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

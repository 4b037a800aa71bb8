/*
 * test-snapshot.c - snapshots: made, kept, replaced, deleted, created from; crashes.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/keys.h"
#include "world.h"

static world w;

static void setup(void)
{
	world_init(&w);
	world_env(&w, "demo", 3, NULL, NULL);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_snapshot, .init = setup, .fini = teardown, .timeout = 60);

typedef struct made {
	int calls, r;
	char id[32], message[256];
	int64_t bytes;
} made;

static void on_made(void *userdata, int r, const abx__snapshot_rec *s,
		    const abx_error *err)
{
	made *m = userdata;

	m->calls++;
	m->r = r;
	snprintf(m->message, sizeof(m->message), "%s", abx_error_message(err));
	if (r == ABX_OK) {
		snprintf(m->id, sizeof(m->id), "%s", s->id);
		m->bytes = s->bytes;
	}
}

static void ask(const char *sandbox, const char *name, const char *tag, bool hidden,
		made *m)
{
	abx_error *err = NULL;
	int r = abx__control_snapshot(w.control, sandbox, name, tag, hidden, on_made, m,
				      &err);

	if (r < 0)
		on_made(m, r, NULL, err);
	abx_error_free(err);
}

static made make(const char *sandbox, const char *name, const char *tag)
{
	made m = { 0 };

	ask(sandbox, name, tag, false, &m);
	world_pass(&w, 20);
	cr_assert_eq(m.calls, 1);
	return m;
}

static int count(void)
{
	const abx__snapshot_rec *s = NULL;
	int n = 0;

	while ((s = abx__control_snapshot_next(w.control, s)))
		n++;
	return n;
}

static answer drop(const char *id)
{
	abx_error *err = NULL;
	answer a = { 0 };
	int r = abx__control_snapshot_delete(w.control, id, on_done, &a, &err);

	if (r < 0)
		on_done(&a, r, err);
	abx_error_free(err);
	world_pass(&w, 20);
	cr_assert_eq(a.calls, 1);
	return a;
}

static answer create_from(const char *id)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .snapshot_id = id,
				       .snapshot = "shown" };
	answer a = { 0 };

	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	for (int i = 0; i < 200 && !a.calls; i++)
		world_pass(&w, 1);
	return a;
}

static void pause_it(const char *id)
{
	answer a = { 0 };

	cr_assert_eq(abx__control_pause(w.control, id, true, on_done, &a, NULL), ABX_OK);
	world_pass(&w, 20);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
}

Test(control_snapshot, it_is_made_listed_created_from_and_deleted)
{
	answer a = world_claim(&w, "demo"), b;
	made m = make(a.id, NULL, NULL);
	char image[64];

	cr_assert_eq(m.r, ABX_OK, "%s", m.message);
	cr_assert_eq(m.bytes, 4096);
	cr_assert_eq(count(), 1);
	cr_assert_str_eq(abx__control_snapshot_find(w.control, m.id)->sandbox, a.id);
	cr_assert_str_eq(abx__control_snapshot_find(w.control, m.id)->tag, "default");
	cr_assert_eq(w.runtime.armed, 1, "the sandbox is not touched");
	b = create_from(m.id);
	cr_assert_eq(b.r, ABX_OK, "%s", b.message);
	snprintf(image, sizeof(image), "snapshot:%s", m.id);
	cr_assert_str_eq(b.image, image);
	cr_assert_str_eq(
		abx__sandboxes_find(abx__control_sandboxes(w.control), b.id)->snapshot,
		"shown");
	cr_assert_str_eq(abx__control_snapshot_user(w.control, m.id)->id, b.id);
	world_kill(&w, b.id);
	cr_assert_null(abx__control_snapshot_user(w.control, m.id));
	cr_assert_eq(drop(m.id).r, ABX_OK);
	cr_assert_eq(drop(m.id).r, ABX_ENOTFOUND);
	cr_assert_eq(count(), 0);
	cr_assert_eq(abx__fake_engine_snapshots(w.engine), 0);
	b = create_from(m.id);
	cr_assert_eq(b.r, ABX_EUNAVAILABLE);
}

Test(control_snapshot, the_same_name_and_tag_is_another_one)
{
	answer a = world_claim(&w, "demo");
	made one = make(a.id, "n", "v1"), two = make(a.id, "n", "v2"), three;

	cr_assert_eq(count(), 2);
	three = make(a.id, "n", "v1");
	world_pass(&w, 20);
	cr_assert_eq(count(), 2);
	cr_assert_null(abx__control_snapshot_find(w.control, one.id));
	cr_assert(abx__control_snapshot_find(w.control, two.id));
	cr_assert(abx__control_snapshot_find(w.control, three.id));
	cr_assert_str_eq(abx__control_snapshot_next(w.control, NULL)->id, three.id,
			 "the newest first");
	cr_assert_eq(abx__fake_engine_snapshots(w.engine), 2);
}

Test(control_snapshot, states_that_do_not_fit_are_refused)
{
	answer a = world_claim(&w, "demo"), p = { 0 };
	made one = { 0 }, two = { 0 };

	cr_assert_eq(make("nobody", NULL, NULL).r, ABX_ENOTFOUND);
	ask(a.id, NULL, NULL, false, &one);
	world_pass(&w, 1);
	abx__fake_engine_set_snapshot(w.engine, 50);
	world_pass(&w, 20);
	cr_assert_eq(one.r, ABX_OK, "%s", one.message);
	one = (made){ 0 };
	ask(a.id, NULL, NULL, false, &one);
	world_pass(&w, 5);
	ask(a.id, NULL, NULL, false, &two);
	cr_assert_eq(two.r, ABX_ESTATE);
	cr_assert(strstr(two.message, "'snapshotting' state"), "%s", two.message);
	/* A pause waits for it. */
	cr_assert_eq(abx__control_pause(w.control, a.id, true, on_done, &p, NULL),
		     ABX_OK);
	world_pass(&w, 10);
	cr_assert_eq(p.calls, 0);
	world_pass(&w, 100);
	cr_assert_eq(one.r, ABX_OK);
	cr_assert_eq(p.r, ABX_OK);
	two = make(a.id, NULL, NULL);
	cr_assert_eq(two.r, ABX_ESTATE);
	cr_assert(strstr(two.message, "'paused' state"), "%s", two.message);
}

Test(control_snapshot, a_sandbox_that_is_paused_before_its_turn)
{
	answer a = world_claim(&w, "demo"), p = { 0 };
	made m = { 0 };

	cr_assert_eq(abx__control_pause(w.control, a.id, true, on_done, &p, NULL),
		     ABX_OK);
	ask(a.id, NULL, NULL, false, &m);
	world_pass(&w, 50);
	cr_assert_eq(p.r, ABX_OK);
	cr_assert_eq(m.r, ABX_ESTATE, "%s", m.message);
	cr_assert_eq(count(), 0);
	cr_assert_eq(fake_store_count(w.store), 2, "its document is gone");
}

Test(control_snapshot, failures_leave_nothing)
{
	answer a = world_claim(&w, "demo");
	size_t documents = fake_store_count_of(w.store, ABX__KIND_SNAPSHOT);

	for (unsigned i = 0; i < 2; i++) {
		made m = { 0 };

		fake_store_fail(w.store, 0, 0);
		abx__fake_engine_fail(w.engine, ABX__FAKE_SNAPSHOT, 0, i == 0,
				      ABX_EUNAVAILABLE);
		if (i == 1)
			fake_store_fail(w.store, 1, ABX_EIO);
		m = make(a.id, "n", NULL);
		cr_assert_eq(m.r, i == 0 ? ABX_EUNAVAILABLE : ABX_EIO);
		world_pass(&w, 6000);
		cr_assert_eq(count(), 0);
		cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_SNAPSHOT), documents);
	}
	cr_assert_eq(make(a.id, "n", NULL).r, ABX_OK);
	cr_assert_eq(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id)->state,
		     ABX__SANDBOX_RUNNING);
}

Test(control_snapshot, killing_does_not_wait_for_it)
{
	answer a = world_claim(&w, "demo");
	made m = { 0 };

	abx__fake_engine_set_snapshot(w.engine, 50);
	ask(a.id, NULL, NULL, false, &m);
	world_pass(&w, 5);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_OK);
	world_pass(&w, 100);
	cr_assert_eq(m.calls, 1);
}

Test(control_snapshot, they_survive_a_restart_and_hidden_ones_do_not)
{
	answer a = world_claim(&w, "demo");
	made m = make(a.id, "kept", "v1"), hidden = { 0 };
	const abx__snapshot_rec *s;

	ask(a.id, NULL, NULL, true, &hidden);
	world_pass(&w, 20);
	cr_assert_eq(hidden.r, ABX_OK);
	cr_assert_eq(count(), 1);
	cr_assert(abx__control_snapshot_find(w.control, hidden.id));
	world_crash(&w);
	world_boot(&w);
	world_pass(&w, 20);
	cr_assert_eq(count(), 1);
	s = abx__control_snapshot_find(w.control, m.id);
	cr_assert(s);
	cr_assert_str_eq(s->name, "kept");
	cr_assert_str_eq(s->tag, "v1");
	cr_assert_eq(s->bytes, 4096);
	cr_assert_eq(abx__fake_engine_snapshots(w.engine), 1);
	cr_assert_eq(create_from(m.id).r, ABX_OK);
}

/* Wherever it dies, the documents and what the engine keeps agree afterwards. */
Test(control_snapshot, a_crash_on_the_way_leaves_nothing_half)
{
	for (int steps = 0; steps < 16; steps++) {
		answer a = world_claim(&w, "demo");
		made m = { 0 };

		ask(a.id, NULL, NULL, false, &m);
		for (int i = 0; i < steps; i++)
			if (!world_step(&w))
				w.clock.now_ms++;
		world_crash(&w);
		world_boot(&w);
		world_pass(&w, 6000);
		cr_assert_eq((size_t)count(), abx__fake_engine_snapshots(w.engine),
			     "after %d steps", steps);
		while (count())
			drop(abx__control_snapshot_next(w.control, NULL)->id);
		cr_assert_eq(abx__fake_engine_snapshots(w.engine), 0);
		world_kill(&w, a.id);
		world_pass(&w, 100);
	}
}

Test(control_snapshot, an_image_may_not_name_one)
{
	answer a = world_claim(&w, "demo"), b = { 0 };
	made m = make(a.id, NULL, NULL);
	char image[64];
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = image };
	abx_error *err = NULL;

	snprintf(image, sizeof(image), "snapshot:%s", m.id);
	cr_assert_eq(claim_with(&w, &request, &b, NULL, &err), ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "snapshot"), "%s",
		  abx_error_message(err));
	abx_error_free(err);
	pause_it(a.id);
}

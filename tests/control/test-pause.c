/*
 * test-pause.c - pausing and resuming: states, their order, timeouts, traffic, crashes.
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
	world_env(&w, "demo", 2, NULL, NULL);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_pause, .init = setup, .fini = teardown, .timeout = 60);

static answer claim(int64_t idle_timeout_ms, abx__lifecycle lifecycle, bool secure)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .idle_timeout_ms = idle_timeout_ms,
				       .lifecycle = lifecycle,
				       .secure = secure };
	answer a = { 0 };

	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	for (int i = 0; i < 200 && !a.calls; i++)
		world_pass(&w, 1);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	return a;
}

static const abx__sandbox_rec *rec_of(const char *id)
{
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(abx__control_sandboxes(w.control), id);

	cr_assert(rec, "sandbox %s is gone", id);
	return rec;
}

/* Asked for, not waited for. A refusal is the answer, too. */
static void ask_pause(const char *id, bool keep_memory, answer *a)
{
	abx_error *err = NULL;
	int r = abx__control_pause(w.control, id, keep_memory, on_done, a, &err);

	if (r < 0)
		on_done(a, r, err);
	abx_error_free(err);
}

static void ask_resume(const char *id, int64_t timeout_ms, bool cold, answer *a)
{
	abx_error *err = NULL;
	int r = abx__control_resume(w.control, id, timeout_ms, cold, on_claim, a, &err);

	if (r < 0)
		on_done(a, r, err);
	abx_error_free(err);
}

static void ask_wake(const char *id, answer *a)
{
	abx_error *err = NULL;
	int r = abx__control_wake(w.control, id, on_done, a, &err);

	if (r < 0)
		on_done(a, r, err);
	abx_error_free(err);
}

static void wait_answer(answer *a)
{
	for (int i = 0; i < 300 && !a->calls; i++)
		world_pass(&w, 1);
	cr_assert_eq(a->calls, 1, "answered %d times", a->calls);
}

static answer pause_it(const char *id, bool keep_memory)
{
	answer a = { 0 };

	ask_pause(id, keep_memory, &a);
	wait_answer(&a);
	return a;
}

static answer resume_it(const char *id, int64_t timeout_ms, bool cold)
{
	answer a = { 0 };

	ask_resume(id, timeout_ms, cold, &a);
	wait_answer(&a);
	return a;
}

static void assert_paused(const char *id)
{
	cr_assert_eq(rec_of(id)->state, ABX__SANDBOX_PAUSED);
	cr_assert_str_eq(pod_label(&w, rec_of(id)->pod, ABX__LABEL_PHASE),
			 ABX__PHASE_PAUSED);
}

static void assert_running(const char *id)
{
	cr_assert_eq(rec_of(id)->state, ABX__SANDBOX_RUNNING);
	cr_assert_str_eq(pod_label(&w, rec_of(id)->pod, ABX__LABEL_PHASE),
			 ABX__PHASE_RUNNING);
	cr_assert_eq(rec_of(id)->paused_ms, 0);
}

static const abx__lifecycle none;

Test(control_pause, pausing_and_resuming_restarts_nothing)
{
	answer a = claim(0, none, false), b;
	unsigned armed = w.runtime.armed;
	char pod[64];

	snprintf(pod, sizeof(pod), "%s", rec_of(a.id)->pod);
	cr_assert_eq(pause_it(a.id, true).r, ABX_OK);
	assert_paused(a.id);
	cr_assert_eq(world_counts(&w, "demo").running, 1, "it keeps its Pod");
	b = resume_it(a.id, 60000, false);
	cr_assert_eq(b.r, ABX_OK, "%s", b.message);
	cr_assert_str_eq(b.id, a.id);
	assert_running(a.id);
	cr_assert_str_eq(rec_of(a.id)->pod, pod);
	cr_assert_eq(rec_of(a.id)->idle_timeout_ms, 60000);
	cr_assert_eq(w.runtime.armed, armed, "what runs on needs no arming");
}

Test(control_pause, states_that_do_not_fit_are_refused)
{
	answer a = claim(0, none, false), r;

	r = resume_it(a.id, 0, false);
	cr_assert_eq(r.r, ABX_ESTATE);
	cr_assert(strstr(r.message, "already running"), "%s", r.message);
	pause_it(a.id, true);
	r = pause_it(a.id, true);
	cr_assert_eq(r.r, ABX_ESTATE);
	cr_assert(strstr(r.message, "already paused"), "%s", r.message);
	cr_assert_eq(pause_it("nobody", true).r, ABX_ENOTFOUND);
	cr_assert_eq(resume_it("nobody", 0, false).r, ABX_ENOTFOUND);
	world_kill(&w, a.id);
	cr_assert_eq(pause_it(a.id, true).r, ABX_ENOTFOUND);
	cr_assert_eq(resume_it(a.id, 0, false).r, ABX_ENOTFOUND);
}

Test(control_pause, pauses_asked_for_together_are_one)
{
	answer a = claim(0, none, false), r[5] = { 0 };

	for (int i = 0; i < 5; i++)
		ask_pause(a.id, true, &r[i]);
	world_pass(&w, 50);
	for (int i = 0; i < 5; i++) {
		cr_assert_eq(r[i].calls, 1);
		cr_assert_eq(r[i].r, ABX_OK, "%s", r[i].message);
	}
	assert_paused(a.id);
}

Test(control_pause, moves_are_made_in_the_order_they_were_asked_for)
{
	answer a = claim(0, none, false), r[6] = { 0 };

	for (int i = 0; i < 3; i++) {
		ask_pause(a.id, true, &r[2 * i]);
		ask_resume(a.id, 0, false, &r[2 * i + 1]);
	}
	cr_assert_eq(rec_of(a.id)->state, ABX__SANDBOX_PAUSING);
	world_pass(&w, 100);
	for (int i = 0; i < 6; i++)
		cr_assert_eq(r[i].r, ABX_OK, "%d: %s", i, r[i].message);
	assert_running(a.id);
}

Test(control_pause, killing_goes_before_what_waits)
{
	answer a = claim(0, none, false), p = { 0 }, r = { 0 };

	ask_pause(a.id, true, &p);
	ask_resume(a.id, 0, false, &r);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_OK);
	cr_assert_eq(p.calls + r.calls, 2);
	cr_assert_eq(r.r, ABX_ENOTFOUND);
	world_pass(&w, 100);
	cr_assert_eq(world_counts(&w, "demo").idle, 2);
}

Test(control_pause, a_paused_one_can_be_killed_and_its_pod_comes_back)
{
	answer a = claim(0, none, false);
	char pod[64];

	snprintf(pod, sizeof(pod), "%s", rec_of(a.id)->pod);
	pause_it(a.id, true);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_OK);
	world_pass(&w, 100);
	cr_assert_eq(world_counts(&w, "demo").idle, 2);
	cr_assert_null(pod_annotation(&w, pod, ABX__ANNOTATION_PAUSED_AT));
	cr_assert_null(pod_annotation(&w, pod, ABX__ANNOTATION_PAUSED_MEMORY));
}

Test(control_pause, the_idle_clock_stands_still)
{
	answer a = claim(3000, none, false);
	int64_t at;

	world_pass(&w, 2000);
	at = w.clock.now_ms + TURNED_CLOCK_WALL_OFFSET;
	pause_it(a.id, true);
	cr_assert_eq(abx__sandbox_end_ms(rec_of(a.id)), at, "it ends when it was paused");
	world_pass(&w, 100000);
	assert_paused(a.id);
	resume_it(a.id, 0, false);
	world_pass(&w, 2900);
	assert_running(a.id);
	world_pass(&w, 200);
	cr_assert_null(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
}

Test(control_pause, a_timeout_of_a_paused_one_is_refused)
{
	answer a = claim(3000, none, false), r = { 0 };
	abx_error *err = NULL;

	pause_it(a.id, true);
	cr_assert_eq(abx__control_set_timeout(w.control, a.id, 5000, false, on_claim, &r,
					      &err),
		     ABX_ESTATE);
	cr_assert(strstr(abx_error_message(err), "paused"), "%s", abx_error_message(err));
	abx_error_free(err);
}

Test(control_pause, a_timeout_pauses_when_it_was_asked_to)
{
	answer a = claim(3000, (abx__lifecycle){ .auto_pause = true }, false);

	world_pass(&w, 2900);
	assert_running(a.id);
	world_pass(&w, 200);
	assert_paused(a.id);
	cr_assert(rec_of(a.id)->memory_kept);
	/* And again after it was resumed. */
	resume_it(a.id, 2000, false);
	world_pass(&w, 2100);
	assert_paused(a.id);
}

Test(control_pause, traffic_wakes_what_may_be_woken)
{
	answer a = claim(
		3000, (abx__lifecycle){ .auto_pause = true, .auto_resume = true }, false);
	answer x = { 0 }, y = { 0 };

	world_pass(&w, 3100);
	assert_paused(a.id);
	ask_wake(a.id, &x);
	ask_wake(a.id, &y);
	world_pass(&w, 50);
	cr_assert_eq(x.r, ABX_OK, "%s", x.message);
	cr_assert_eq(y.r, ABX_OK, "%s", y.message);
	assert_running(a.id);
	cr_assert_eq(rec_of(a.id)->idle_timeout_ms, 300000, "long enough to answer");
}

Test(control_pause, traffic_wakes_to_the_timeout_of_the_create)
{
	answer a =
		claim(420000, (abx__lifecycle){ .auto_pause = true, .auto_resume = true },
		      false);
	answer x = { 0 }, t = { 0 };

	cr_assert_eq(abx__control_set_timeout(w.control, a.id, 600000, false, on_claim,
					      &t, NULL),
		     ABX_OK);
	world_pass(&w, 10);
	pause_it(a.id, true);
	world_crash(&w);
	world_boot(&w);
	ask_wake(a.id, &x);
	wait_answer(&x);
	cr_assert_eq(rec_of(a.id)->idle_timeout_ms, 420000);
}

Test(control_pause, traffic_does_not_wake_the_others)
{
	answer a = claim(0, none, false), x = { 0 };
	answer b = claim(0, (abx__lifecycle){ .auto_pause = true, .auto_resume = true },
			 false);
	answer y = { 0 };

	pause_it(a.id, true);
	ask_wake(a.id, &x);
	wait_answer(&x);
	cr_assert_eq(x.r, ABX_EDENIED);
	assert_paused(a.id);
	/* Without its memory a program is started, not woken: that takes a word. */
	pause_it(b.id, false);
	ask_wake(b.id, &y);
	wait_answer(&y);
	cr_assert_eq(y.r, ABX_EDENIED);
	assert_paused(b.id);
}

Test(control_pause, files_only_starts_again_and_is_armed)
{
	answer a = claim(0, none, true), r;
	unsigned armed = w.runtime.armed;

	cr_assert_eq(pause_it(a.id, false).r, ABX_OK);
	assert_paused(a.id);
	cr_assert_not(rec_of(a.id)->memory_kept);
	r = resume_it(a.id, 0, false);
	cr_assert_eq(r.r, ABX_OK, "%s", r.message);
	assert_running(a.id);
	cr_assert_eq(w.runtime.armed, armed + 1);
	cr_assert(strstr(w.runtime.last_body, "accessToken"));
	cr_assert(strstr(w.runtime.last_body, "\"defaultUser\":\"user\""));
}

Test(control_pause, memory_that_was_kept_can_be_given_up)
{
	answer a = claim(0, none, false), r;
	unsigned armed = w.runtime.armed;

	pause_it(a.id, true);
	r = resume_it(a.id, 0, true);
	cr_assert_eq(r.r, ABX_OK, "%s", r.message);
	assert_running(a.id);
	cr_assert_eq(w.runtime.armed, armed + 1, "a new runtime");
}

Test(control_pause, what_does_not_stand_still_in_time_runs_on)
{
	answer a = claim(0, none, false), r = { 0 };

	abx__fake_engine_set_freeze(w.engine, 20000);
	ask_pause(a.id, true, &r);
	world_pass(&w, 14000);
	cr_assert_eq(r.calls, 0);
	world_pass(&w, 2000);
	cr_assert_eq(r.r, ABX_ETIMEDOUT);
	assert_running(a.id);
	world_pass(&w, 30000);
	abx__fake_engine_set_freeze(w.engine, 0);
	cr_assert_eq(pause_it(a.id, true).r, ABX_OK);
	cr_assert_eq(resume_it(a.id, 0, false).r, ABX_OK);
}

Test(control_pause, a_write_that_fails_leaves_it_as_it_was)
{
	answer a = claim(0, none, false);

	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 0, 1, ABX_EIO);
	cr_assert_eq(pause_it(a.id, true).r, ABX_EIO);
	assert_running(a.id);
	cr_assert_eq(pause_it(a.id, true).r, ABX_OK);
	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 0, 1, ABX_EIO);
	cr_assert_eq(resume_it(a.id, 0, false).r, ABX_EIO);
	assert_paused(a.id);
	cr_assert_eq(resume_it(a.id, 0, false).r, ABX_OK);
}

Test(control_pause, a_runtime_that_cannot_be_armed_stays_paused)
{
	answer a = claim(0, none, false), r;

	pause_it(a.id, false);
	w.runtime.fail_count = 1;
	w.runtime.fail_code = ABX_EUNAVAILABLE;
	r = resume_it(a.id, 0, false);
	cr_assert_eq(r.r, ABX_EUNAVAILABLE);
	cr_assert(strstr(r.message, "could not be armed"), "%s", r.message);
	assert_paused(a.id);
	cr_assert_eq(resume_it(a.id, 0, false).r, ABX_OK);
	assert_running(a.id);
}

Test(control_pause, an_image_that_stopped_running_loses_no_files)
{
	answer a = claim(0, none, false), r;
	char image[64];

	snprintf(image, sizeof(image), "%s", rec_of(a.id)->image);
	pause_it(a.id, false);
	abx__fake_engine_bad_image(w.engine, image, "StartError");
	r = resume_it(a.id, 0, false);
	cr_assert_eq(r.r, ABX_EUNAVAILABLE);
	assert_paused(a.id);
	abx__fake_engine_bad_image(w.engine, image, NULL);
	cr_assert_eq(resume_it(a.id, 0, false).r, ABX_OK);
	assert_running(a.id);
}

Test(control_pause, a_crash_while_paused_changes_nothing)
{
	answer a = claim(
		3000, (abx__lifecycle){ .auto_pause = true, .auto_resume = true }, true);
	answer b = claim(3000, none, true);

	pause_it(a.id, true);
	pause_it(b.id, false);
	world_crash(&w);
	w.clock.now_ms += 60000;
	world_boot(&w);
	world_pass(&w, 60000);
	assert_paused(a.id);
	assert_paused(b.id);
	cr_assert(rec_of(a.id)->memory_kept);
	cr_assert(rec_of(a.id)->lifecycle.auto_pause);
	cr_assert(rec_of(a.id)->lifecycle.auto_resume);
	cr_assert(rec_of(a.id)->access_token);
	cr_assert_not(rec_of(b.id)->memory_kept);
	cr_assert_eq(resume_it(a.id, 0, false).r, ABX_OK);
	cr_assert_eq(resume_it(b.id, 0, false).r, ABX_OK);
	assert_running(a.id);
	assert_running(b.id);
	cr_assert(strstr(w.runtime.last_body, "accessToken"));
}

/* Wherever it dies on the way, the sandbox is afterwards one of the two and moves on. */
Test(control_pause, a_crash_on_the_way_leaves_one_of_the_two)
{
	for (int memory = 0; memory < 2; memory++) {
		for (int steps = 0; steps < 24; steps++) {
			answer a = claim(0, none, false), p = { 0 }, r = { 0 };
			const abx__sandbox_rec *rec;

			ask_pause(a.id, memory, &p);
			ask_resume(a.id, 0, false, &r);
			for (int i = 0; i < steps; i++)
				if (!world_step(&w))
					w.clock.now_ms++;
			world_crash(&w);
			world_boot(&w);
			world_pass(&w, 100);
			rec = rec_of(a.id);
			if (rec->state == ABX__SANDBOX_PAUSED)
				cr_assert_eq(resume_it(a.id, 0, false).r, ABX_OK,
					     "memory %d, after %d steps", memory, steps);
			assert_running(a.id);
			cr_assert_eq(pause_it(a.id, true).r, ABX_OK);
			cr_assert_eq(world_kill(&w, a.id).r, ABX_OK);
			world_pass(&w, 100);
			cr_assert_eq(world_counts(&w, "demo").idle, 2);
		}
	}
}

Test(control_pause, closing_answers_what_waits)
{
	answer a = claim(0, none, false), p = { 0 };

	abx__fake_engine_set_freeze(w.engine, 100000);
	ask_pause(a.id, true, &p);
	world_pass(&w, 10);
	world_done(&w);
	cr_assert_eq(p.calls, 1);
	cr_assert_eq(p.r, ABX_ECANCELED);
	setup();
}

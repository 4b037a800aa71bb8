/*
 * suite-engine-activity.c - Pods stand still, stop, and become images.
 */
#include "suite-engine-priv.h"

static suite_answer become(suite_engine *s, const char *name,
			   enum abx__pod_activity activity)
{
	suite_answer a =
		suite_change(s, name, &(abx__pod_change){ .activity = activity });

	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	return a;
}

/* A ready Pod that was told to stand still, or to stop, and does. */
static suite_view *resting_pod(suite_engine *s, const char *name,
			       enum abx__pod_activity activity)
{
	suite_view *v = suite_ready_pod(s, name, s->image_a);

	become(s, name, activity);
	WAIT_FOR(v->activity == activity);
	return v;
}

void suite_engine_a_frozen_pod_stands_still_until_it_is_thawed(suite_engine *s)
{
	uint64_t generation;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "frozen", s->image_a);
	cr_assert_eq(v->activity, ABX__POD_RUN);
	generation = v->running_generation;
	become(s, "frozen", ABX__POD_FREEZE);
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	cr_assert_eq(v->running_generation, generation, "nothing was restarted");
	cr_assert_eq(v->phase, ABX__POD_RUNNING);
	become(s, "frozen", ABX__POD_RUN);
	WAIT_FOR(v->activity == ABX__POD_RUN && v->ready);
	cr_assert_eq(v->running_generation, generation);
}

void suite_engine_freezing_twice_is_one_freeze(suite_engine *s)
{
	uint64_t generation;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "twice", s->image_a);
	generation = v->generation;
	become(s, "twice", ABX__POD_FREEZE);
	become(s, "twice", ABX__POD_FREEZE);
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	become(s, "twice", ABX__POD_RUN);
	WAIT_FOR(v->activity == ABX__POD_RUN);
	cr_assert_eq(v->generation, generation);
}

void suite_engine_a_restart_makes_a_frozen_pod_run(suite_engine *s)
{
	uint64_t generation;
	suite_view *v;

	suite_start(s);
	v = resting_pod(s, "again", ABX__POD_FREEZE);
	generation = v->generation;
	cr_assert_eq(suite_change(s, "again", &(abx__pod_change){ .restart = true }).r,
		     ABX_OK);
	WAIT_FOR(v->ready && v->running_generation == generation + 1);
	cr_assert_eq(v->activity, ABX__POD_RUN);
}

void suite_engine_a_frozen_pod_can_be_deleted(suite_engine *s)
{
	suite_answer a = { 0 };
	suite_view *v;

	suite_start(s);
	v = resting_pod(s, "cold", ABX__POD_FREEZE);
	s->engine->ops->delete_pod(s->engine, NS, "cold", suite_on_done, &a);
	WAIT_FOR(a.calls && v->phase == ABX__POD_GONE);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
}

void suite_engine_a_frozen_pod_stays_frozen_over_a_reopen(suite_engine *s)
{
	uint64_t generation;
	suite_view *v;

	suite_start(s);
	v = resting_pod(s, "asleep", ABX__POD_FREEZE);
	generation = v->running_generation;
	s->reopen(s);
	suite_start(s);
	v = suite_seen("asleep");
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	become(s, "asleep", ABX__POD_RUN);
	WAIT_FOR(v->activity == ABX__POD_RUN && v->ready);
	cr_assert_eq(v->running_generation, generation, "it is still the same container");
}

void suite_engine_a_stopped_pod_starts_a_generation_further(suite_engine *s)
{
	uint64_t generation;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "stopped", s->image_a);
	generation = v->running_generation;
	become(s, "stopped", ABX__POD_STOP);
	WAIT_FOR(v->activity == ABX__POD_STOP);
	cr_assert(!v->ready);
	become(s, "stopped", ABX__POD_RUN);
	WAIT_FOR(v->ready && v->running_generation == generation + 1);
	cr_assert_eq(v->activity, ABX__POD_RUN);
}

void suite_engine_a_stopped_pod_stays_stopped_over_a_reopen(suite_engine *s)
{
	uint64_t generation;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "off", s->image_a);
	generation = v->running_generation;
	become(s, "off", ABX__POD_STOP);
	WAIT_FOR(v->activity == ABX__POD_STOP);
	s->reopen(s);
	suite_start(s);
	v = suite_seen("off");
	WAIT_FOR(v->activity == ABX__POD_STOP);
	cr_assert(!v->ready);
	become(s, "off", ABX__POD_RUN);
	WAIT_FOR(v->ready && v->running_generation == generation + 1);
}

/* ---- snapshots ---- */

static void on_snapshot(void *userdata, int r, int64_t bytes, const abx_error *err)
{
	cr_assert(r < 0 || bytes >= 0);
	suite_on_done(userdata, r, err);
}

static suite_answer snapshot(suite_engine *s, const char *name, const char *id)
{
	suite_answer a = { 0 };

	s->engine->ops->snapshot_pod(s->engine, NS, name, id, on_snapshot, &a);
	suite_await(s, &a);
	return a;
}

static suite_answer delete_snapshot(suite_engine *s, const char *id)
{
	suite_answer a = { 0 };

	s->engine->ops->delete_snapshot(s->engine, id, suite_on_done, &a);
	suite_await(s, &a);
	return a;
}

void suite_engine_a_snapshot_is_an_image_until_it_is_deleted(suite_engine *s)
{
	uint64_t generation;
	suite_answer a;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "origin", s->image_a);
	generation = v->running_generation;
	a = snapshot(s, "origin", "shot1");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(v->running_generation, generation, "it runs on");
	cr_assert_eq(v->activity, ABX__POD_RUN);
	cr_assert_eq(snapshot(s, "origin", "shot1").r, ABX_EEXISTS);
	v = suite_ready_pod(s, "copy", "snapshot:shot1");
	cr_assert_str_eq(v->running_image, "snapshot:shot1");
	cr_assert_eq(delete_snapshot(s, "shot1").r, ABX_OK);
	cr_assert_eq(delete_snapshot(s, "shot1").r, ABX_OK, "absent is fine");
	cr_assert(v->ready, "what runs from it runs on");
	cr_assert_eq(snapshot(s, "nobody", "shot2").r, ABX_ENOTFOUND);
	suite_create(s, "late", "snapshot:shot3");
	WAIT_FOR(suite_seen("late")->phase == ABX__POD_FAILED);
	cr_assert_str_eq(suite_seen("late")->reason, "ErrImagePull");
}

void suite_engine_what_does_not_run_cannot_be_snapshotted(suite_engine *s)
{
	suite_start(s);
	resting_pod(s, "still", ABX__POD_STOP);
	cr_assert_eq(snapshot(s, "still", "shot4").r, ABX_ECONFLICT);
}

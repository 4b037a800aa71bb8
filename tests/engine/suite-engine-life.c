/*
 * suite-engine-life.c - Pods end, and outlive the engine that made them.
 */
#include "suite-engine-priv.h"

void suite_engine_deleted_pod_is_gone_and_its_name_free(suite_engine *s)
{
	suite_answer a;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "p1", s->image_a);
	a = suite_delete(s, "p1");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR(v->phase == ABX__POD_GONE);
	a = suite_change(s, "p1", &(abx__pod_change){ .restart = true });
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	a = suite_create(s, "p1", s->image_a);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR(v->ready);
}

static struct {
	suite_engine *s;
	suite_answer deleted;
} inside;

static void delete_inside(void *userdata, int r, const abx__pod *pod,
			  const abx_error *err)
{
	suite_on_pod_done(userdata, r, pod, err);
	inside.s->engine->ops->delete_pod(inside.s->engine, NS, "p1", suite_on_done,
					  &inside.deleted);
}

/* As control/ does with a Pod that could not be released. */
void suite_engine_a_pod_may_be_deleted_inside_a_changes_callback(suite_engine *s)
{
	suite_answer changed = { 0 };
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "p1", s->image_a);
	memset(&inside, 0, sizeof(inside));
	inside.s = s;
	s->engine->ops->change_pod(s->engine, NS, "p1",
				   &(abx__pod_change){ .restart = true }, delete_inside,
				   &changed);
	WAIT_FOR(v->phase == ABX__POD_GONE);
	cr_assert_eq(changed.calls, 1);
	cr_assert_eq(changed.r, ABX_OK);
	cr_assert_eq(inside.deleted.calls, 1);
	cr_assert_eq(inside.deleted.r, ABX_OK, "%s", inside.deleted.message);
	changed = suite_create(s, "p1", s->image_a);
	cr_assert_eq(changed.r, ABX_OK, "%s", changed.message);
	WAIT_FOR(v->ready);
}

void suite_engine_delete_of_an_absent_pod_is_not_found(suite_engine *s)
{
	suite_answer a;

	suite_start(s);
	a = suite_delete(s, "nosuch");
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert(strstr(a.message, "nosuch"), "%s", a.message);
}

void suite_engine_pods_are_adopted_after_a_reopen(suite_engine *s)
{
	abx__map labels = ABX__MAP_INIT;
	uint64_t generation;

	suite_start(s);
	abx__map_set(&labels, "who", "me");
	suite_create_with(s, "p1", s->pod_template(s, s->image_a), &labels, NULL);
	WAIT_FOR(suite_seen("p1")->ready);
	generation = suite_seen("p1")->generation;
	s->reopen(s);
	suite_start(s);
	cr_assert(suite_seen("p1")->known, "reported before synced");
	cr_assert_geq(suite_watch.events_before_sync, 1);
	cr_assert_str_eq(suite_value_of(suite_seen("p1")->labels, "who"), "me");
	WAIT_FOR(suite_seen("p1")->ready);
	cr_assert_eq(suite_seen("p1")->generation, generation,
		     "the container went on running");
	abx__map_done(&labels);
}

void suite_engine_changes_before_a_reopen_are_kept(suite_engine *s)
{
	abx__map set = ABX__MAP_INIT;
	suite_answer a;

	suite_start(s);
	suite_ready_pod(s, "p1", s->image_a);
	abx__map_set(&set, "sandbox", "s1");
	a = suite_change(s, "p1",
			 &(abx__pod_change){ .set_labels = &set, .image = s->image_b });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	s->reopen(s);
	suite_start(s);
	cr_assert_str_eq(suite_value_of(suite_seen("p1")->labels, "sandbox"), "s1");
	WAIT_FOR(suite_seen("p1")->ready &&
		 strcmp(suite_seen("p1")->running_image, s->image_b) == 0);
	abx__map_done(&set);
}

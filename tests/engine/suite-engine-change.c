/*
 * suite-engine-change.c - Pods are made and changed: labels, versions, images.
 */
#include "suite-engine-priv.h"

void suite_engine_start_without_pods_reports_synced(suite_engine *s)
{
	suite_start(s);
	cr_assert_eq(suite_watch.events_before_sync, 0);
}

void suite_engine_created_pod_becomes_ready(suite_engine *s)
{
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "p1", s->image_a);
	cr_assert_eq(v->phase, ABX__POD_RUNNING);
	cr_assert_str_eq(v->image, s->image_a);
	cr_assert_str_eq(v->running_image, s->image_a);
	cr_assert_eq(v->running_generation, v->generation);
	cr_assert_str_eq(v->reason, "");
}

void suite_engine_create_completes_later_with_the_pod(suite_engine *s)
{
	suite_answer a;

	suite_start(s);
	a = suite_create(s, "p1", s->image_a);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(a.pod.name, "p1");
	cr_assert_gt(a.pod.version, 0);
	cr_assert_gt(a.pod.generation, 0);
}

void suite_engine_create_keeps_labels_and_annotations(suite_engine *s)
{
	abx__map labels = ABX__MAP_INIT, annotations = ABX__MAP_INIT;
	suite_answer a;

	suite_start(s);
	abx__map_set(&labels, "agentbox.navix.sh/sandbox-pool", "demo-1c2gi");
	abx__map_set(&annotations, "agentbox.navix.sh/sandbox-metadata", "{\"k\":\"v\"}");
	a = suite_create_with(s, "p1", s->pod_template(s, s->image_a), &labels,
			      &annotations);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(suite_value_of(a.pod.labels, "agentbox.navix.sh/sandbox-pool"),
			 "demo-1c2gi");
	cr_assert_str_eq(
		suite_value_of(a.pod.annotations, "agentbox.navix.sh/sandbox-metadata"),
		"{\"k\":\"v\"}");
	abx__map_done(&labels);
	abx__map_done(&annotations);
}

void suite_engine_create_twice_is_exists(suite_engine *s)
{
	suite_answer a;

	suite_start(s);
	suite_create(s, "p1", s->image_a);
	a = suite_create(s, "p1", s->image_a);
	cr_assert_eq(a.r, ABX_EEXISTS);
	cr_assert(strstr(a.message, "p1"), "%s", a.message);
}

static json_object *with_runtime_class(suite_engine *s, const char *class)
{
	json_object *t = s->pod_template(s, s->image_a);
	json_object *spec;

	cr_assert(json_object_object_get_ex(t, "spec", &spec));
	json_object_object_add(spec, "runtimeClassName", json_object_new_string(class));
	return t;
}

void suite_engine_create_with_an_unknown_runtime_class_is_refused(suite_engine *s)
{
	suite_answer a;

	suite_start(s);
	a = suite_create_with(s, "p1", with_runtime_class(s, "no-such-class"), NULL,
			      NULL);
	cr_assert_eq(a.r, ABX_EUNSUPPORTED);
	cr_assert(strstr(a.message, "no-such-class"), "%s", a.message);
	cr_assert_not(suite_seen("p1")->known);
}

void suite_engine_check_template_names_what_it_cannot_do(suite_engine *s)
{
	json_object *t = with_runtime_class(s, "no-such-class");
	abx_error *err = NULL;

	cr_assert_eq(s->engine->ops->check_template(s->engine, t, &err),
		     ABX_EUNSUPPORTED);
	cr_assert(strstr(abx_error_message(err), "runtimeClassName"), "%s",
		  abx_error_message(err));
	cr_assert(strstr(abx_error_message(err), "no-such-class"), "%s",
		  abx_error_message(err));
	abx_error_free(err);
	json_object_put(t);
	t = s->pod_template(s, s->image_a);
	cr_assert_eq(s->engine->ops->check_template(s->engine, t, NULL), ABX_OK);
	json_object_put(t);
}

void suite_engine_change_sets_and_removes_in_one_write(suite_engine *s)
{
	static const char *const gone[] = { "old", "never-there", NULL };
	abx__map labels = ABX__MAP_INIT, set = ABX__MAP_INIT;
	suite_answer a;

	suite_start(s);
	abx__map_set(&labels, "old", "1");
	abx__map_set(&labels, "kept", "1");
	suite_create_with(s, "p1", s->pod_template(s, s->image_a), &labels, &labels);
	abx__map_set(&set, "new", "2");
	a = suite_change(s, "p1",
			 &(abx__pod_change){ .set_labels = &set,
					     .set_annotations = &set,
					     .remove_labels = gone,
					     .remove_annotations = gone });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_null(suite_value_of(a.pod.labels, "old"));
	cr_assert_str_eq(suite_value_of(a.pod.labels, "kept"), "1");
	cr_assert_str_eq(suite_value_of(a.pod.labels, "new"), "2");
	cr_assert_null(suite_value_of(a.pod.annotations, "old"));
	cr_assert_str_eq(suite_value_of(a.pod.annotations, "new"), "2");
	WAIT_FOR(suite_value_of(suite_seen("p1")->labels, "new"));
	abx__map_done(&labels);
	abx__map_done(&set);
}

void suite_engine_change_of_an_absent_pod_is_not_found(suite_engine *s)
{
	suite_answer a;

	suite_start(s);
	a = suite_change(s, "nosuch", &(abx__pod_change){ .restart = true });
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert(strstr(a.message, "nosuch"), "%s", a.message);
}

void suite_engine_change_of_an_old_version_conflicts(suite_engine *s)
{
	abx__map set = ABX__MAP_INIT;
	uint64_t old;
	suite_answer a;

	suite_start(s);
	old = suite_ready_pod(s, "p1", s->image_a)->version;
	abx__map_set(&set, "owner", "one");
	a = suite_change(s, "p1",
			 &(abx__pod_change){ .expect_version = old, .set_labels = &set });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	abx__map_set(&set, "owner", "two");
	a = suite_change(s, "p1",
			 &(abx__pod_change){ .expect_version = old, .set_labels = &set });
	cr_assert_eq(a.r, ABX_ECONFLICT);
	a = suite_change(s, "p1", &(abx__pod_change){ 0 });
	cr_assert_str_eq(suite_value_of(a.pod.labels, "owner"), "one");
	abx__map_done(&set);
}

void suite_engine_every_write_moves_the_version(suite_engine *s)
{
	abx__map set = ABX__MAP_INIT;
	suite_answer first, second;

	suite_start(s);
	suite_ready_pod(s, "p1", s->image_a);
	abx__map_set(&set, "k", "1");
	first = suite_change(s, "p1", &(abx__pod_change){ .set_labels = &set });
	abx__map_set(&set, "k", "2");
	second = suite_change(s, "p1", &(abx__pod_change){ .set_labels = &set });
	cr_assert_gt(second.pod.version, first.pod.version);
	abx__map_done(&set);
}

void suite_engine_other_image_is_swapped_in_place(suite_engine *s)
{
	uint64_t before;
	suite_answer a;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "p1", s->image_a);
	before = v->generation;
	a = suite_change(s, "p1", &(abx__pod_change){ .image = s->image_b });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_gt(a.pod.generation, before);
	cr_assert_str_eq(a.pod.image, s->image_b);
	WAIT_FOR(v->ready && v->running_generation >= a.pod.generation);
	cr_assert_str_eq(v->running_image, s->image_b);
	cr_assert_eq(v->phase, ABX__POD_RUNNING);
}

void suite_engine_same_image_restarts_nothing(suite_engine *s)
{
	uint64_t before;
	suite_answer a;

	suite_start(s);
	before = suite_ready_pod(s, "p1", s->image_a)->generation;
	a = suite_change(s, "p1", &(abx__pod_change){ .image = s->image_a });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(a.pod.generation, before);
	cr_assert(a.pod.ready);
}

void suite_engine_restart_makes_the_container_anew(suite_engine *s)
{
	uint64_t before;
	suite_answer a;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "p1", s->image_a);
	before = v->generation;
	a = suite_change(s, "p1", &(abx__pod_change){ .restart = true });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_gt(a.pod.generation, before);
	cr_assert_not(a.pod.ready && a.pod.running_generation == before,
		      "ready of the old container counts for the old generation only");
	WAIT_FOR(v->ready && v->running_generation >= a.pod.generation);
	cr_assert_str_eq(v->running_image, s->image_a);
}

void suite_engine_an_image_that_does_not_run_fails_the_pod(suite_engine *s)
{
	suite_answer a;
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "p1", s->image_a);
	a = suite_change(s, "p1", &(abx__pod_change){ .image = s->image_bad });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR(v->phase == ABX__POD_FAILED);
	cr_assert_eq(v->generation, a.pod.generation);
	cr_assert_not(v->ready);
	cr_assert_neq(v->reason[0], '\0', "a failed Pod says why");
	cr_assert(strstr(v->message, s->image_bad), "the message names the image: %s",
		  v->message);
}

void suite_engine_a_failed_pod_recovers_with_another_image(suite_engine *s)
{
	suite_answer a;
	suite_view *v;

	suite_start(s);
	a = suite_create(s, "p1", s->image_bad);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	v = suite_seen("p1");
	WAIT_FOR(v->phase == ABX__POD_FAILED);
	a = suite_change(s, "p1", &(abx__pod_change){ .image = s->image_b });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR(v->ready);
	cr_assert_eq(v->phase, ABX__POD_RUNNING);
	cr_assert_str_eq(v->running_image, s->image_b);
	cr_assert_str_eq(v->reason, "");
}

/*
 * test-pool.c - pools follow their envs, and Pods their pools.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"
#include "model/keys.h"
#include "world.h"

static world w;

static void setup(void)
{
	world_init(&w);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_pool, .init = setup, .fini = teardown, .timeout = 60);

static void scale(const char *env, int replicas)
{
	answer a = world_apply(&w, env_doc(env, replicas, NULL, NULL), false);

	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
}

static json_object *pool_doc(const char *pool)
{
	json_object *doc = NULL;

	cr_assert_eq(abx__control_pool_get(w.control, "default", NULL, pool, &doc, NULL),
		     ABX_OK);
	return doc;
}

static void assert_phase(const char *phase)
{
	json_object *doc = pool_doc("demo-1c2gi");
	const char *is = abx__field_str(abx__field_object(doc, "status"), "phase");

	cr_assert_str_eq(is, phase);
	json_object_put(doc);
}

static int64_t status_int(const char *field)
{
	json_object *doc = pool_doc("demo-1c2gi");
	int64_t value = abx__field_int(abx__field_object(doc, "status"), field, -1);

	json_object_put(doc);
	return value;
}

/* The engine's Pods know by it when they are ready; without it a claim meets an envd that
 * does not listen yet. */
Test(control_pool, pods_carry_the_readiness_probe_of_their_runtime)
{
	abx__pod pod;
	const char *probe;

	world_env(&w, "demo", 1, NULL, NULL);
	cr_assert(abx__fake_engine_at(w.engine, 0, &pod));
	probe = abx__map_get(&pod.annotations, ABX__POD_READINESS_ANNOTATION);
	cr_assert_str_eq(probe ? probe : "none", "{\"port\":49983,\"path\":\"/health\"}");
}

static json_object *first_runtime(json_object *doc)
{
	json_object *spec = abx__field_object(doc, "spec");

	return json_object_array_get_idx(abx__field_array(spec, "runtimes"), 0);
}

static answer offer_template(json_object *doc)
{
	abx_error *err = NULL;
	answer a = { 0 };

	cr_assert_eq(abx__control_template_put(w.control, doc, true, on_object, &a, &err),
		     ABX_OK, "%s", abx_error_message(err));
	json_object_put(doc);
	world_settle(&w);
	return a;
}

/* The same world with a template of its own. */
static void env_from(json_object *doc)
{
	answer a = offer_template(doc);

	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	a = world_apply(&w, env_doc("demo", 1, NULL, NULL), true);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(&w, 500);
}

Test(control_pool, what_a_probe_says_of_time_reaches_the_engine)
{
	json_object *doc = template_doc("tmpl", IDLE_IMAGE);
	json_object *probe = abx__field_object(first_runtime(doc), "readinessProbe");
	abx__pod pod;

	json_object_object_del(abx__field_object(probe, "httpGet"), "path");
	abx__field_set_int(probe, "initialDelaySeconds", 1);
	abx__field_set_int(probe, "timeoutSeconds", 2);
	abx__field_set_int(probe, "periodSeconds", 3);
	abx__field_set_int(probe, "successThreshold", 4);
	abx__field_set_int(probe, "failureThreshold", 5);
	/* A runtime that claims do not arm may be the one that is asked. */
	abx__field_set_str(first_runtime(doc), "name", "other");
	env_from(doc);
	cr_assert(abx__fake_engine_at(w.engine, 0, &pod));
	cr_assert_str_eq(abx__map_get(&pod.annotations, ABX__POD_READINESS_ANNOTATION),
			 "{\"port\":49983,\"path\":\"/\",\"initialDelaySeconds\":1,"
			 "\"timeoutSeconds\":2,\"periodSeconds\":3,"
			 "\"successThreshold\":4,\"failureThreshold\":5}");
}

Test(control_pool, a_second_probe_is_refused_by_its_path)
{
	json_object *doc = template_doc("tmpl", IDLE_IMAGE);
	json_object *more = NULL;
	answer a;

	cr_assert_eq(json_object_deep_copy(first_runtime(doc), &more, NULL), 0);
	abx__field_set_str(more, "name", "other");
	json_object_array_add(
		abx__field_array(abx__field_object(doc, "spec"), "runtimes"), more);
	a = offer_template(doc);
	cr_assert_eq(a.r, ABX_EUNSUPPORTED);
	cr_assert(strstr(a.message, "spec.runtimes[1].readinessProbe"), "%s", a.message);
	answer_done(&a);
}

Test(control_pool, pods_wear_the_labels_and_annotations_of_their_template)
{
	json_object *doc = template_doc("tmpl", IDLE_IMAGE);
	json_object *meta = abx__field_object(
		abx__field_object(abx__field_object(doc, "spec"), "template"),
		"metadata");
	abx__pod pod;

	json_object_object_add(meta, "annotations",
			       json_tokener_parse("{\"team\":\"red\"}"));
	env_from(doc);
	cr_assert(abx__fake_engine_at(w.engine, 0, &pod));
	cr_assert_str_eq(abx__map_get(&pod.labels, "app"), "x");
	cr_assert_str_eq(abx__map_get(&pod.annotations, "team"), "red");
}

Test(control_pool, is_filled_to_its_replicas_on_the_idle_image)
{
	abx__pod view;

	world_env(&w, "demo", 5, NULL, NULL);
	cr_assert_eq(abx__fake_engine_count(w.engine), 5);
	for (size_t i = 0; abx__fake_engine_at(w.engine, i, &view); i++) {
		cr_assert_str_eq(view.running_image, IDLE_IMAGE);
		cr_assert_str_eq(abx__map_get(&view.labels, ABX__LABEL_PHASE), "idle");
		cr_assert_str_eq(abx__map_get(&view.labels, ABX__LABEL_ENV), "demo");
		cr_assert_eq(strlen(abx__map_get(&view.labels, ABX__LABEL_TEMPLATE_HASH)),
			     8);
		cr_assert(strncmp(view.name, "demo-1c2gi-", 11) == 0, "%s", view.name);
	}
	assert_phase("Ready");
}

Test(control_pool, says_how_its_pods_are_selected)
{
	json_object *doc = NULL, *map;

	world_env(&w, "demo", 1, NULL, NULL);
	cr_assert_eq(abx__control_pool_get(w.control, "default", "demo", "demo-1c2gi",
					   &doc, NULL),
		     ABX_OK);
	map = abx__field_object(abx__field_object(doc, "status"), "phaseSelectors");
	cr_assert_eq(json_object_object_length(map), 6);
	cr_assert_str_eq(abx__field_str(map, "all"),
			 "agentbox.navix.sh/sandbox-pool=demo-1c2gi");
	cr_assert_str_eq(abx__field_str(map, "idle"),
			 "agentbox.navix.sh/sandbox-pool=demo-1c2gi,"
			 "agentbox.navix.sh/sandbox-phase=idle");
	json_object_put(doc);
}

Test(control_pool, grows_and_shrinks_with_its_document)
{
	world_env(&w, "demo", 2, NULL, NULL);
	scale("demo", 6);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "demo").idle, 6);
	scale("demo", 1);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	cr_assert_eq(abx__fake_engine_count(w.engine), 1);
	scale("demo", 0);
	world_pass(&w, 500);
	cr_assert_eq(abx__fake_engine_count(w.engine), 0);
	assert_phase("Pending");
}

Test(control_pool, shrinking_never_takes_a_claimed_pod)
{
	answer a, b;

	world_env(&w, "demo", 4, NULL, NULL);
	a = world_claim(&w, "demo");
	b = world_claim(&w, "demo");
	scale("demo", 0);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "demo").running, 2);
	cr_assert_eq(abx__fake_engine_count(w.engine), 2);
	assert_phase("ScalingDown");
	world_kill(&w, a.id);
	world_kill(&w, b.id);
	world_pass(&w, 500);
	cr_assert_eq(abx__fake_engine_count(w.engine), 0, "not brought back for nobody");
}

Test(control_pool, phases_follow_what_happens)
{
	answer a;

	world_template(&w, "tmpl");
	a = world_apply(&w, env_doc("demo", 2, NULL, NULL), true);
	answer_done(&a);
	assert_phase("Degraded"); /* there, and not ready yet */
	world_pass(&w, 100);
	assert_phase("Ready");
	scale("demo", 3);
	w.clock.now_ms += 0;
	world_pass(&w, 100);
	assert_phase("Ready");
}

Test(control_pool, a_failed_create_is_tried_again_with_growing_waits)
{
	json_object *doc;
	answer a;

	world_template(&w, "tmpl");
	abx__fake_engine_fail(w.engine, ABX__FAKE_CREATE, 0, 3, ABX_EEXHAUSTED);
	a = world_apply(&w, env_doc("demo", 1, NULL, NULL), true);
	answer_done(&a);
	world_pass(&w, 900);
	cr_assert_eq(abx__fake_engine_calls(w.engine, ABX__FAKE_CREATE), 1);
	doc = pool_doc("demo-1c2gi");
	cr_assert(strstr(abx__field_str(condition_of(doc, "Degraded"), "message"),
			 "injected"));
	json_object_put(doc);
	world_pass(&w, 500);
	cr_assert_eq(abx__fake_engine_calls(w.engine, ABX__FAKE_CREATE), 2);
	world_pass(&w, 1000);
	cr_assert_eq(abx__fake_engine_calls(w.engine, ABX__FAKE_CREATE), 2,
		     "two seconds now");
	world_pass(&w, 10000);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
}

Test(control_pool, failed_pods_are_counted_and_replaced_after_a_back_off)
{
	answer a;

	world_template(&w, "tmpl");
	abx__fake_engine_bad_image(w.engine, IDLE_IMAGE, "ErrImagePull");
	a = world_apply(&w, env_doc("demo", 2, NULL, NULL), true);
	answer_done(&a);
	world_pass(&w, 100);
	cr_assert_eq(world_counts(&w, "demo").failed, 2);
	assert_phase("Degraded");
	world_pass(&w, 60000);
	cr_assert_leq(abx__fake_engine_calls(w.engine, ABX__FAKE_CREATE), 20,
		      "not a busy loop");
	abx__fake_engine_bad_image(w.engine, IDLE_IMAGE, NULL);
	world_pass(&w, 130000);
	cr_assert_eq(world_counts(&w, "demo").idle, 2);
	cr_assert_eq(world_counts(&w, "demo").failed, 0);
	assert_phase("Ready");
}

static void put_template(const char *idle_image)
{
	json_object *doc = template_doc("tmpl", idle_image);
	answer a = { 0 };

	cr_assert_eq(
		abx__control_template_put(w.control, doc, false, on_object, &a, NULL),
		ABX_OK);
	json_object_put(doc);
	world_settle(&w);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
}

static int running_image_count(const char *image)
{
	abx__pod view;
	int count = 0;

	for (size_t i = 0; abx__fake_engine_at(w.engine, i, &view); i++)
		count += strcmp(view.image, image) == 0;
	return count;
}

Test(control_pool, a_new_idle_image_rolls_idle_pods_a_few_at_a_time)
{
	json_object *doc;
	int least = 10;

	world_env(&w, "demo", 10, NULL, NULL);
	put_template("idle:2");
	for (int i = 0; i < 400; i++) {
		abx__pool_counts c = world_counts(&w, "demo");
		int ready = c.idle - c.unavailable_idle;

		least = ready < least ? ready : least;
		if (i == 5) {
			doc = NULL;
			abx__control_env_get(w.control, "default", "demo", &doc, NULL);
			cr_assert_str_eq(
				abx__field_str(condition_of(doc, "TemplateConsistent"),
					       "reason"),
				"RolloutInProgress");
			json_object_put(doc);
		}
		world_pass(&w, 1);
	}
	cr_assert_geq(least, 8, "20%% of 10 are 2; %d were ready once", least);
	cr_assert_eq(running_image_count("idle:2"), 10);
	cr_assert_eq(status_int("updatedReplicas"), 10);
	doc = NULL;
	abx__control_env_get(w.control, "default", "demo", &doc, NULL);
	cr_assert_str_eq(
		abx__field_str(condition_of(doc, "TemplateConsistent"), "reason"),
		"TemplatesMatch");
	json_object_put(doc);
}

Test(control_pool, a_roll_leaves_claimed_pods_until_they_are_returned)
{
	answer a;

	world_env(&w, "demo", 2, NULL, NULL);
	a = world_claim(&w, "demo");
	put_template("idle:2");
	world_pass(&w, 500);
	cr_assert(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
	cr_assert(pod_label(&w, a.pod, ABX__LABEL_SANDBOX_ID));
	cr_assert_eq(running_image_count("idle:2"), 1);
	world_kill(&w, a.id);
	world_pass(&w, 500);
	cr_assert_null(pod_label(&w, a.pod, ABX__LABEL_POOL), "the old Pod goes");
	cr_assert_eq(running_image_count("idle:2"), 2);
}

Test(control_pool, without_auto_update_nothing_rolls)
{
	world_env(&w, "demo", 2, "{\"updateStrategy\":{\"autoUpdate\":false}}", NULL);
	put_template("idle:2");
	world_pass(&w, 2000);
	cr_assert_eq(running_image_count(IDLE_IMAGE), 2);
}

Test(control_pool, another_running_image_rolls_nothing_and_serves_the_next_claim)
{
	unsigned creates;
	answer a;

	world_env(&w, "demo", 2, NULL, NULL);
	creates = abx__fake_engine_calls(w.engine, ABX__FAKE_CREATE);
	a = world_apply(&w, env_doc("demo", 2, "{\"image\":\"other:1\"}", NULL), false);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(&w, 1000);
	cr_assert_eq(abx__fake_engine_calls(w.engine, ABX__FAKE_CREATE), creates);
	a = world_claim(&w, "demo");
	cr_assert_str_eq(a.image, "other:1");
}

Test(control_pool, deleting_the_env_ends_its_sandboxes_and_pods)
{
	answer a, gone = { 0 }, waiting = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_claim(&w, "demo");
	cr_assert_eq(claim_start(&w, "demo", &waiting, NULL, NULL), ABX_OK);
	cr_assert_eq(abx__control_env_delete(w.control, "default", "demo", on_done, &gone,
					     NULL),
		     ABX_OK);
	world_pass(&w, 100);
	cr_assert_eq(gone.r, ABX_OK, "%s", gone.message);
	cr_assert_eq(waiting.r, ABX_ENOTFOUND);
	cr_assert_eq(abx__fake_engine_count(w.engine), 0);
	cr_assert_null(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
	cr_assert_eq(abx__control_pool_get(w.control, "default", NULL, "demo-1c2gi",
					   &(json_object *){ NULL }, NULL),
		     ABX_ENOTFOUND);
}

Test(control_pool, an_env_deleted_and_made_again_serves_again)
{
	answer gone = { 0 }, a;

	world_env(&w, "demo", 2, NULL, NULL);
	cr_assert_eq(abx__control_env_delete(w.control, "default", "demo", on_done, &gone,
					     NULL),
		     ABX_OK);
	world_settle(&w);
	a = world_apply(&w, env_doc("demo", 2, NULL, NULL), true);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "demo").idle, 2);
	cr_assert_eq(abx__fake_engine_count(w.engine), 2);
	cr_assert_eq(world_claim(&w, "demo").r, ABX_OK);
}

Test(control_pool, conditions_move_their_time_with_their_value_only)
{
	json_object *doc;
	char first[64];
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	doc = pool_doc("demo-1c2gi");
	cr_assert_str_eq(abx__field_str(condition_of(doc, "Available"), "status"),
			 "True");
	snprintf(first, sizeof(first), "%s",
		 abx__field_str(condition_of(doc, "Available"), "lastTransitionTime"));
	json_object_put(doc);
	world_pass(&w, 5000);
	doc = pool_doc("demo-1c2gi");
	cr_assert_str_eq(
		abx__field_str(condition_of(doc, "Available"), "lastTransitionTime"),
		first);
	json_object_put(doc);
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_OK);
	doc = pool_doc("demo-1c2gi");
	cr_assert_str_eq(abx__field_str(condition_of(doc, "Available"), "reason"),
			 "NoIdlePodsAvailable");
	cr_assert_str_neq(
		abx__field_str(condition_of(doc, "Available"), "lastTransitionTime"),
		first);
	json_object_put(doc);
}

Test(control_pool, three_hundred_pods_are_kept)
{
	world_env(&w, "demo", 300, NULL, NULL);
	world_pass(&w, 5000);
	cr_assert_eq(world_counts(&w, "demo").idle, 300);
	cr_assert_eq(world_counts(&w, "demo").unavailable_idle, 0);
}

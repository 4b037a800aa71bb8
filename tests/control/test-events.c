/*
 * test-events.c - what an env's events tell, and what is remembered of its pools over a
 * restart.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"
#include "model/keys.h"
#include "world.h"

#define KEPT_MOST 64

static world w;
static json_object *kept[KEPT_MOST]; /* until the test ends */
static size_t kept_count;

static void setup(void)
{
	world_init(&w);
}

static void teardown(void)
{
	while (kept_count > 0)
		json_object_put(kept[--kept_count]);
	world_done(&w);
}

static json_object *keep(json_object *o)
{
	cr_assert_lt(kept_count, KEPT_MOST);
	kept[kept_count++] = o;
	return o;
}

TestSuite(control_events, .init = setup, .fini = teardown, .timeout = 60);

static json_object *events_of(const char *env)
{
	json_object *list = NULL;

	cr_assert_eq(abx__control_env_events(w.control, "default", env, 500, &list, NULL),
		     ABX_OK);
	return list;
}

static json_object *event(const char *env, const char *reason)
{
	json_object *list = keep(events_of(env));

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		json_object *e = json_object_array_get_idx(list, i);

		if (strcmp(abx__field_str(e, "reason"), reason) == 0)
			return e;
	}
	return NULL;
}

static void expect(const char *env, const char *reason, const char *type,
		   const char *object, const char *text)
{
	json_object *e = event(env, reason);

	cr_assert(e, "no event %s", reason);
	cr_assert_str_eq(abx__field_str(e, "type"), type);
	cr_assert_str_eq(abx__field_str(e, "involvedName"), object);
	cr_assert(strstr(abx__field_str(e, "message"), text), "%s",
		  abx__field_str(e, "message"));
	cr_assert(abx__field_str(e, "firstTimestamp"));
	cr_assert(abx__field_str(e, "lastTimestamp"));
	cr_assert_geq(abx__field_int(e, "count", 0), 1);
}

Test(control_events, an_unknown_env_has_none)
{
	json_object *list = NULL;

	cr_assert_eq(abx__control_env_events(w.control, "default", "x", 1, &list, NULL),
		     ABX_ENOTFOUND);
}

Test(control_events, a_pool_is_made_grows_and_goes)
{
	answer a, gone = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	expect("demo", "PoolCreated", "Normal", "demo-1c2gi", "1 replicas");
	expect("demo", "PoolReady", "Normal", "demo-1c2gi", "healthy");
	a = world_apply(&w, env_doc("demo", 3, NULL, NULL), false);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	expect("demo", "ScaleUp", "Normal", "demo-1c2gi", "from 1 to 3");
	a = world_apply(&w, env_doc("demo", 2, NULL, NULL), false);
	answer_done(&a);
	expect("demo", "ScaleDown", "Normal", "demo-1c2gi", "from 3 to 2");
	cr_assert_eq(abx__control_pool_delete(w.control, "default", "demo", "demo-1c2gi",
					      on_done, &gone, NULL),
		     ABX_OK);
	world_pass(&w, 100);
	cr_assert_eq(gone.r, ABX_OK);
	expect("demo", "PoolDeleted", "Normal", "demo-1c2gi", "deleted");
}

Test(control_events, a_roll_is_told_from_start_to_end)
{
	json_object *doc = template_doc("tmpl", "idle:2");
	answer a = { 0 };

	world_env(&w, "demo", 3, NULL, NULL);
	cr_assert_eq(
		abx__control_template_put(w.control, doc, false, on_object, &a, NULL),
		ABX_OK);
	json_object_put(doc);
	world_settle(&w);
	expect("demo", "RolloutStarted", "Normal", "demo-1c2gi",
	       "idle Pods are replaced");
	cr_assert_null(event("demo", "RolloutCompleted"));
	world_pass(&w, 5000);
	expect("demo", "RolloutCompleted", "Normal", "demo-1c2gi", "revision");
	answer_done(&a);
}

Test(control_events, pods_that_fail_are_told_with_the_engines_words_and_mended)
{
	abx__fake_engine_bad_image(w.engine, IDLE_IMAGE, "ErrImagePull");
	world_env(&w, "demo", 2, NULL, NULL);
	expect("demo", "ErrImagePull", "Warning", "demo-1c2gi", "Pod demo-1c2gi-");
	expect("demo", "Degraded", "Warning", "demo-1c2gi", "Pods fail");
	cr_assert_geq(abx__field_int(event("demo", "ErrImagePull"), "count", 0), 2,
		      "two Pods, one event");
	abx__fake_engine_bad_image(w.engine, IDLE_IMAGE, NULL);
	world_pass(&w, 120000);
	expect("demo", "PoolRecovered", "Normal", "demo-1c2gi", "healthy");
}

Test(control_events, a_pod_that_cannot_be_created_is_told)
{
	abx__fake_engine_fail(w.engine, ABX__FAKE_CREATE, 0, 1, ABX_EUNAVAILABLE);
	world_env(&w, "demo", 1, NULL, NULL);
	expect("demo", "FailedCreate", "Warning", "demo-1c2gi", "could not be created");
}

Test(control_events, claims_refused_count_up_in_one_event)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .no_wait = true };
	answer a = { 0 };
	json_object *e;

	world_env(&w, "demo", 0, NULL, NULL);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_EEXHAUSTED);
	request.no_wait = false;
	request.max_wait_ms = 1000;
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 2000);
	cr_assert_eq(a.r, ABX_EEXHAUSTED);
	e = event("demo", "ClaimRefused");
	cr_assert_eq(abx__field_int(e, "count", 0), 6);
	cr_assert(strstr(abx__field_str(e, "message"), "became free"), "%s",
		  abx__field_str(e, "message"));
}

Test(control_events, a_start_that_fails_and_a_sandbox_that_breaks_are_told)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = "broken:1" };
	answer a = { 0 }, b;

	world_env(&w, "demo", 2, NULL, NULL);
	abx__fake_engine_bad_image(w.engine, "broken:1", "ErrImagePull");
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 1000);
	cr_assert_eq(a.r, ABX_EINVAL);
	expect("demo", "ClaimFailed", "Warning", "demo-1c2gi", "broken:1");
	b = world_claim(&w, "demo");
	abx__fake_engine_kill_container(w.engine, "default", b.pod, "OOMKilled", 137);
	world_pass(&w, 100);
	expect("demo", "SandboxFailed", "Warning", "demo-1c2gi", "OOMKilled");
}

Test(control_events, the_autoscaler_says_what_it_did)
{
	answer a;

	world_env(&w, "demo", 0, NULL,
		  "{\"name\":\"1c2gi\",\"enabled\":true,\"maxReplicas\":4,"
		  "\"scaleDownPolicy\":{\"idleTimeoutSeconds\":30,"
		  "\"stabilizationSeconds\":10,\"protectionWindowSeconds\":1}}");
	a = world_claim(&w, "demo");
	expect("demo", "AutoscalerScaleUp", "Normal", "demo-1c2gi", "from 0 to 2");
	cr_assert_str_eq(abx__field_str(event("demo", "AutoscalerScaleUp"), "action"),
			 "ScaleUp");
	world_kill(&w, a.id);
	world_pass(&w, 200000);
	expect("demo", "AutoscalerScaleDownStarted", "Normal", "demo-1c2gi", "");
	expect("demo", "AutoscalerScaleDownCompleted", "Normal", "demo-1c2gi",
	       "at 0 replicas");
}

Test(control_events, an_env_that_cannot_be_carried_out_is_told)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_apply(&w, env_doc("demo", 2, NULL, NULL), false);
	answer_done(&a);
	world_crash(&w);
	/* The template vanishes behind our back. */
	w.store->ops->remove(w.store, ABX__KIND_TEMPLATE, "", "tmpl", 0, NULL, NULL);
	fake_store_step(w.store);
	fake_store_detach(w.store);
	world_boot(&w);
	expect("demo", "EnvNotCarriedOut", "Warning", "demo", "template");
}

static int64_t time_of(json_object *e)
{
	int64_t us = 0;

	cr_assert_eq(abx__rfc3339_parse(abx__field_str(e, "lastTimestamp"), &us), ABX_OK);
	return us;
}

Test(control_events, they_are_newest_first_and_bounded)
{
	json_object *list = NULL;
	int64_t count = 0;

	world_env(&w, "demo", 0, NULL, NULL);
	for (int i = 1; i <= 200; i++) {
		answer a = world_apply(&w, env_doc("demo", i % 2 ? i : 0, NULL, NULL),
				       false);

		answer_done(&a);
		world_pass(&w, 10);
	}
	list = events_of("demo");
	cr_assert_leq(json_object_array_length(list), ABX__EVENTS_MOST);
	for (size_t i = 1; i < json_object_array_length(list); i++)
		cr_assert_geq(time_of(json_object_array_get_idx(list, i - 1)),
			      time_of(json_object_array_get_idx(list, i)));
	count = (int64_t)json_object_array_length(list);
	json_object_put(list);
	cr_assert_eq(
		abx__control_env_events(w.control, "default", "demo", 3, &list, NULL),
		ABX_OK);
	cr_assert_eq(json_object_array_length(list), count < 3 ? count : 3);
	json_object_put(list);
}

/* --- over a restart --- */

static json_object *pool_doc(void)
{
	json_object *doc = NULL;

	cr_assert_eq(abx__control_pool_get(w.control, "default", "demo", "demo-1c2gi",
					   &doc, NULL),
		     ABX_OK);
	return keep(doc);
}

static const char *scaling_time(json_object *doc, const char *key)
{
	return abx__field_str(
		abx__field_object(abx__field_object(doc, "status"), "autoscaling"), key);
}

Test(control_events, events_and_times_survive_a_restart)
{
	json_object *before, *after;
	answer a;

	world_env(&w, "demo", 0, NULL,
		  "{\"name\":\"1c2gi\",\"enabled\":true,\"maxReplicas\":4}");
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_OK);
	world_pass(&w, 20000);
	before = pool_doc();
	world_crash(&w);
	w.clock.now_ms += 60000;
	world_boot(&w);
	after = pool_doc();
	expect("demo", "AutoscalerScaleUp", "Normal", "demo-1c2gi", "from 0 to 2");
	cr_assert_str_eq(abx__field_str(abx__field_object(before, "metadata"),
					"creationTimestamp"),
			 abx__field_str(abx__field_object(after, "metadata"),
					"creationTimestamp"));
	cr_assert_str_eq(scaling_time(before, "lastScaleUpTime"),
			 scaling_time(after, "lastScaleUpTime"));
	cr_assert_str_eq(scaling_time(after, "lastScaleUpAttemptResult"), "Enough");
}

Test(control_events, a_cooldown_goes_on_after_a_restart)
{
	static answer a[3];

	world_env(&w, "demo", 0, NULL,
		  "{\"name\":\"1c2gi\",\"enabled\":true,\"maxReplicas\":9,"
		  "\"scaleUpPolicy\":{\"cooldownSeconds\":600,\"mode\":"
		  "\"Conservative\"}}");
	cr_assert_eq(claim_start(&w, "demo", &a[0], NULL, NULL), ABX_OK);
	world_pass(&w, 10000);
	cr_assert_eq(world_counts(&w, "demo").replicas, 2);
	world_crash(&w);
	world_boot(&w);
	for (int i = 1; i < 3; i++)
		cr_assert_eq(claim_start(&w, "demo", &a[i], NULL, NULL), ABX_OK);
	world_pass(&w, 60000);
	cr_assert_eq(world_counts(&w, "demo").replicas, 2, "still cooling down");
	cr_assert_eq(a[2].calls, 0);
}

Test(control_events, a_deleted_envs_events_are_gone)
{
	answer gone = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	world_pass(&w, 10000);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_ENV_STATE), 1);
	cr_assert_eq(abx__control_env_delete(w.control, "default", "demo", on_done, &gone,
					     NULL),
		     ABX_OK);
	world_pass(&w, 100);
	cr_assert_eq(gone.r, ABX_OK);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_ENV_STATE), 0);
	world_env(&w, "demo", 0, NULL, NULL);
	cr_assert_null(event("demo", "PoolReady"), "a new env starts anew");
}

Test(control_events, a_store_that_is_full_delays_them)
{
	world_env(&w, "demo", 1, NULL, NULL);
	fake_store_fail(w.store, 1, ABX_EEXHAUSTED);
	world_pass(&w, 10000);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_ENV_STATE), 0);
	world_pass(&w, 60000);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_ENV_STATE), 1);
}

/*
 * test-claim.c - from a request to a sandbox and back.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "model/keys.h"
#include "world.h"

#define POOL_DEFAULT "{\"podCreationImagePolicy\":\"PoolDefaultImage\"}"

static world w;

static void setup(void)
{
	world_init(&w);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_claim, .init = setup, .fini = teardown, .timeout = 60);

Test(control_claim, same_image_is_armed_and_answered_without_a_restart)
{
	abx__pool_counts counts;
	answer a;

	world_env(&w, "demo", 2, POOL_DEFAULT, NULL);
	counts = world_counts(&w, "demo");
	cr_assert_eq(counts.idle, 2);
	cr_assert_eq(counts.unavailable_idle, 0);
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(a.state, ABX__SANDBOX_RUNNING);
	cr_assert_str_eq(a.image, OWN_IMAGE);
	cr_assert_eq(strlen(a.id), 20);
	cr_assert_eq(w.runtime.armed, 1);
	cr_assert_str_eq(w.runtime.last_pod, a.pod);
	cr_assert_eq(w.runtime.last_port, 49983);
	counts = world_counts(&w, "demo");
	cr_assert_eq(counts.running, 1);
	cr_assert_eq(counts.idle, 1);
}

Test(control_claim, the_pod_carries_the_contracts_labels_and_annotations)
{
	abx__map metadata = ABX__MAP_INIT;
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .metadata = &metadata,
				       .idle_timeout_ms = 1500,
				       .team = "red",
				       .user = "ann" };
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	abx__map_set(&metadata, "task", "42");
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(pod_label(&w, a.pod, ABX__LABEL_PHASE), "running");
	cr_assert_str_eq(pod_label(&w, a.pod, ABX__LABEL_SANDBOX_ID), a.id);
	cr_assert_str_eq(pod_label(&w, a.pod, ABX__LABEL_MANAGED_BY),
			 "sandbox-api-server");
	cr_assert_str_eq(pod_label(&w, a.pod, ABX__LABEL_POOL), "demo-1c2gi");
	cr_assert_str_eq(pod_label(&w, a.pod, ABX__LABEL_SCALING_GROUP), "1c2gi");
	cr_assert_str_eq(pod_label(&w, a.pod, ABX__LABEL_TEAM), "red");
	cr_assert_str_eq(pod_label(&w, a.pod, ABX__LABEL_USER), "ann");
	cr_assert_str_eq(pod_label(&w, a.pod, "app"), "x");
	cr_assert_str_eq(pod_annotation(&w, a.pod, ABX__ANNOTATION_METADATA),
			 "{\"task\":\"42\"}");
	cr_assert_str_eq(pod_annotation(&w, a.pod, ABX__ANNOTATION_IDLE_TIMEOUT), "2");
	cr_assert_str_eq(pod_annotation(&w, a.pod, ABX__ANNOTATION_STARTUP_TIMEOUT),
			 "120");
	cr_assert(pod_annotation(&w, a.pod, ABX__ANNOTATION_CLAIMED_AT));
	cr_assert(pod_annotation(&w, a.pod, ABX__ANNOTATION_STARTED_AT));
	cr_assert(pod_annotation(&w, a.pod, ABX__ANNOTATION_LAST_ACTIVE));
	abx__map_done(&metadata);
}

Test(control_claim, release_clears_everything_of_the_sandbox)
{
	abx__map own = ABX__MAP_INIT;
	const abx__ingress ingress = { .closed = true };
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .labels = &own,
				       .annotations = &own,
				       .secure = true,
				       .ingress = &ingress,
				       .idle_timeout_ms = 1000 };
	answer a = { 0 };
	abx__pod view;

	world_env(&w, "demo", 1, NULL, NULL);
	abx__map_set(&own, "mine", "1");
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	cr_assert_str_eq(pod_label(&w, a.pod, "mine"), "1");
	cr_assert_eq(world_kill(&w, a.id).r, ABX_OK);
	world_pass(&w, 100);
	cr_assert(abx__fake_engine_at(w.engine, 0, &view));
	cr_assert_str_eq(view.name, a.pod, "the same Pod");
	cr_assert_str_eq(view.running_image, IDLE_IMAGE);
	/* The readiness probe is the Pod's own. */
	cr_assert_eq(view.annotations.count, 1, "%zu annotations are left",
		     view.annotations.count);
	cr_assert(abx__map_get(&view.annotations, ABX__POD_READINESS_ANNOTATION));
	cr_assert_null(abx__map_get(&view.labels, "mine"));
	cr_assert_null(abx__map_get(&view.labels, ABX__LABEL_SANDBOX_ID));
	cr_assert_null(abx__map_get(&view.labels, ABX__LABEL_MANAGED_BY));
	cr_assert_str_eq(abx__map_get(&view.labels, ABX__LABEL_PHASE), "idle");
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	abx__map_done(&own);
}

Test(control_claim, killing_twice_is_not_found)
{
	answer a, again = { 0 };
	abx_error *err = NULL;

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_claim(&w, "demo");
	cr_assert_eq(
		abx__control_kill(w.control, a.id, "Completed", on_done, &again, NULL),
		ABX_OK);
	cr_assert_eq(abx__control_kill(w.control, a.id, "Completed", on_done, &a, &err),
		     ABX_ENOTFOUND, "while the first goes on");
	cr_assert(strstr(abx_error_message(err), a.id));
	abx_error_free(err);
	world_pass(&w, 100);
	cr_assert_eq(again.r, ABX_OK);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_ENOTFOUND, "and after it");
	cr_assert_null(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
}

Test(control_claim, another_image_is_swapped_in_before_it_is_armed)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = "python:3" };
	answer a = { 0 };
	abx__pod view;

	world_env(&w, "demo", 1, POOL_DEFAULT, NULL);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 5);
	cr_assert_eq(a.calls, 0, "not before the new container is ready");
	cr_assert_eq(w.runtime.armed, 0);
	world_pass(&w, 20);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(a.image, "python:3");
	cr_assert(abx__fake_engine_at(w.engine, 0, &view));
	cr_assert_str_eq(view.running_image, "python:3");
}

Test(control_claim, the_init_body_has_variables_user_time_and_token)
{
	abx__map vars = ABX__MAP_INIT;
	abx__claim_request request = {
		.namespace_ = "default", .name = "demo", .env_vars = &vars, .secure = true
	};
	const abx__sandbox_rec *rec;
	json_object *body, *value;
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	abx__map_set(&vars, "GREETING", "say \"hi\"\n");
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	body = json_tokener_parse(w.runtime.last_body);
	cr_assert(body, "%s", w.runtime.last_body);
	cr_assert(json_object_object_get_ex(body, "defaultUser", &value));
	cr_assert_str_eq(json_object_get_string(value), "user");
	cr_assert(json_object_object_get_ex(body, "timestamp", &value));
	cr_assert(json_object_object_get_ex(body, "envVars", &value));
	cr_assert(json_object_object_get_ex(value, "GREETING", &value));
	cr_assert_str_eq(json_object_get_string(value), "say \"hi\"\n");
	cr_assert(json_object_object_get_ex(body, "accessToken", &value));
	rec = abx__sandboxes_find(abx__control_sandboxes(w.control), a.id);
	cr_assert_eq(abx__secret_len(rec->access_token), 64);
	cr_assert_str_eq(json_object_get_string(value),
			 abx__secret_reveal(rec->access_token));
	cr_assert_null(strstr(pod_annotation(&w, a.pod, ABX__KEY_PREFIX "secure"),
			      json_object_get_string(value)),
		       "the token is not written down");
	json_object_put(body);
	abx__map_done(&vars);
}

Test(control_claim, without_secure_there_is_no_token)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_claim(&w, "demo");
	cr_assert_null(strstr(w.runtime.last_body, "accessToken"));
	cr_assert_null(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id)
			       ->access_token);
}

/* --- refusals --- */

static int refused(const abx__claim_request *request, const char *says)
{
	abx_error *err = NULL;
	answer a = { 0 };
	int r = claim_with(&w, request, &a, NULL, &err);

	cr_assert_lt(r, 0);
	cr_assert(strstr(abx_error_message(err), says), "\"%s\" does not say \"%s\"",
		  abx_error_message(err), says);
	abx_error_free(err);
	world_pass(&w, 10);
	cr_assert_eq(a.calls, 0, "a refused call does not complete");
	return r;
}

Test(control_claim, unknown_env_is_not_found)
{
	abx__claim_request request = { .namespace_ = "default", .name = "nosuch" };

	cr_assert_eq(refused(&request, "nosuch"), ABX_ENOTFOUND);
	request.or_pool = true;
	cr_assert_eq(refused(&request, "nosuch"), ABX_ENOTFOUND);
}

Test(control_claim, a_pool_is_taken_only_when_the_address_allows_it)
{
	abx__claim_request request = { .namespace_ = "default", .name = "demo-1c2gi" };
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	cr_assert_eq(refused(&request, "demo-1c2gi"), ABX_ENOTFOUND);
	request.or_pool = true;
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
}

Test(control_claim, the_idle_image_is_refused_and_the_hint_says_why)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = IDLE_IMAGE };

	world_env(&w, "demo", 1, NULL, NULL);
	cr_assert_eq(refused(&request, IDLE_IMAGE), ABX_EINVAL);
	request.image = "not an image";
	cr_assert_eq(refused(&request, "not an image"), ABX_EINVAL);
}

Test(control_claim, a_group_without_a_member_is_unavailable)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .scaling_group = "8c64gi" };
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	cr_assert_eq(refused(&request, "8c64gi"), ABX_EUNAVAILABLE);
	request.scaling_group = "1c2Gi";
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK,
		     "case does not matter");
	world_pass(&w, 50);
	cr_assert_eq(a.r, ABX_OK);
}

Test(control_claim, another_teams_env_is_denied)
{
	json_object *doc = env_doc("demo", 1, NULL, NULL), *meta,
		    *labels = json_object_new_object();
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .team = "blue" };
	answer a = { 0 }, made;

	world_template(&w, "tmpl");
	json_object_object_add(labels, ABX__LABEL_TEAM, json_object_new_string("red"));
	json_object_object_get_ex(doc, "metadata", &meta);
	json_object_object_add(meta, "labels", labels);
	made = world_apply(&w, doc, true);
	cr_assert_eq(made.r, ABX_OK, "%s", made.message);
	answer_done(&made);
	cr_assert_eq(refused(&request, "another team"), ABX_EDENIED);
	request.admin = true;
	world_pass(&w, 100);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	cr_assert_eq(a.r, ABX_OK);
}

Test(control_claim, platform_keys_in_labels_are_refused)
{
	abx__map own = ABX__MAP_INIT;
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .labels = &own };

	world_env(&w, "demo", 1, NULL, NULL);
	abx__map_set(&own, ABX__LABEL_SANDBOX_ID, "stolen");
	cr_assert_eq(refused(&request, ABX__LABEL_SANDBOX_ID), ABX_EINVAL);
	cr_assert_eq(world_counts(&w, "demo").idle, 1, "nothing was taken");
	abx__map_done(&own);
}

/* --- the queue --- */

Test(control_claim, waits_for_a_returned_pod_first_come_first)
{
	answer first, second = { 0 }, third = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	first = world_claim(&w, "demo");
	cr_assert_eq(claim_start(&w, "demo", &second, NULL, NULL), ABX_OK);
	cr_assert_eq(claim_start(&w, "demo", &third, NULL, NULL), ABX_OK);
	world_pass(&w, 1000);
	cr_assert_eq(second.calls + third.calls, 0);
	cr_assert_eq(world_counts(&w, "demo").pending, 2);
	world_kill(&w, first.id);
	world_pass(&w, 100);
	cr_assert_eq(second.r, ABX_OK, "%s", second.message);
	cr_assert_eq(second.calls, 1);
	cr_assert_eq(third.calls, 0);
	world_kill(&w, second.id);
	world_pass(&w, 100);
	cr_assert_eq(third.calls, 1);
	cr_assert_eq(third.r, ABX_OK);
}

Test(control_claim, a_queued_claim_ends_exhausted_after_its_startup_timeout)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .startup_timeout_ms = 5000 };
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	world_claim(&w, "demo");
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 4990);
	cr_assert_eq(a.calls, 0);
	world_pass(&w, 20);
	cr_assert_eq(a.calls, 1);
	cr_assert_eq(a.r, ABX_EEXHAUSTED);
	cr_assert(strstr(a.message, "demo-1c2gi") && strstr(a.message, "5 s") &&
			  strstr(a.message, "1 running"),
		  "%s", a.message);
	cr_assert(a.hint[0]);
	cr_assert_gt(abx__control_retry_after_s(w.control, "default", "demo"), 0);
	cr_assert_eq(world_counts(&w, "demo").pending, 0);
}

Test(control_claim, max_wait_ends_the_wait_sooner)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .max_wait_ms = 300 };
	answer a = { 0 };

	world_env(&w, "demo", 0, NULL, NULL);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 310);
	cr_assert_eq(a.r, ABX_EEXHAUSTED);
}

Test(control_claim, no_wait_is_exhausted_at_once)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .no_wait = true };

	world_env(&w, "demo", 0, NULL, NULL);
	cr_assert_eq(refused(&request, "no idle Pod"), ABX_EEXHAUSTED);
}

Test(control_claim, the_queue_has_a_cap)
{
	static answer a[1025];
	abx__claim_request request = { .namespace_ = "default", .name = "demo" };

	world_env(&w, "demo", 0, NULL, NULL);
	for (int i = 0; i < 1024; i++)
		cr_assert_eq(claim_start(&w, "demo", &a[i], NULL, NULL), ABX_OK);
	cr_assert_eq(refused(&request, "queue is full"), ABX_EEXHAUSTED);
}

Test(control_claim, a_cancelled_claim_leaves_the_queue_and_never_completes)
{
	answer a = { 0 };
	abx__claim *claim = NULL;

	world_env(&w, "demo", 0, NULL, NULL);
	cr_assert_eq(claim_start(&w, "demo", &a, &claim, NULL), ABX_OK);
	abx__control_claim_cancel(w.control, claim);
	world_pass(&w, 200000);
	cr_assert_eq(a.calls, 0);
	cr_assert_eq(world_counts(&w, "demo").pending, 0);
}

Test(control_claim, cancelled_at_any_moment_the_pod_comes_back)
{
	for (int steps = 0; steps < 40; steps++) {
		abx__claim_request request = { .namespace_ = "default",
					       .name = "demo",
					       .image = "python:3" };
		abx__claim *claim = NULL;
		answer a = { 0 };

		if (steps == 0)
			world_env(&w, "demo", 1, NULL, NULL);
		cr_assert_eq(claim_with(&w, &request, &a, &claim, NULL), ABX_OK);
		for (int i = 0; i < steps && !a.calls; i++)
			if (!world_step(&w))
				w.clock.now_ms++;
		if (a.calls) {
			world_kill(&w, a.id);
		} else {
			abx__control_claim_cancel(w.control, claim);
		}
		world_pass(&w, 200);
		cr_assert_leq(a.calls, 1);
		cr_assert_eq(world_counts(&w, "demo").idle, 1, "after %d steps", steps);
		cr_assert_eq(world_counts(&w, "demo").unavailable_idle, 0);
	}
}

/* --- failures --- */

Test(control_claim, an_image_that_does_not_run_is_named_and_the_pod_recovers)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = "nosuch:1" };
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	abx__fake_engine_bad_image(w.engine, "nosuch:1", "ErrImagePull");
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 100);
	cr_assert_eq(a.r, ABX_EINVAL, "%d", a.r);
	cr_assert(strstr(a.message, "nosuch:1") && strstr(a.message, "ErrImagePull"),
		  "%s", a.message);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	cr_assert_eq(world_claim(&w, "demo").r, ABX_OK);
}

Test(control_claim, a_pool_whose_pods_fail_says_why_when_it_has_none_to_give)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .startup_timeout_ms = 2000 };
	answer a = { 0 };

	abx__fake_engine_bad_image(w.engine, IDLE_IMAGE, "ErrImagePull");
	world_env(&w, "demo", 1, NULL, NULL);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 3000);
	cr_assert_eq(a.r, ABX_EEXHAUSTED, "%d", a.r);
	cr_assert(strstr(a.message, "its Pods fail: ErrImagePull"), "%s", a.message);
}

Test(control_claim, not_ready_in_time_is_timed_out_and_released)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .startup_timeout_ms = 3000 };
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	w.runtime.hold = true;
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 2900);
	cr_assert_eq(a.calls, 0);
	world_pass(&w, 200);
	cr_assert_eq(a.r, ABX_ETIMEDOUT, "%d %s", a.r, a.message);
	cr_assert(strstr(a.message, "demo") && strstr(a.message, "3 s"), "%s", a.message);
	w.runtime.hold = false;
	world_pass(&w, 200);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
}

Test(control_claim, an_arming_that_fails_releases_the_pod)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	w.runtime.fail_count = 1;
	w.runtime.fail_code = ABX_EPROTO;
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_EUNAVAILABLE);
	cr_assert(strstr(a.message, "envd does not answer"), "%s", a.message);
	world_pass(&w, 100);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	cr_assert_eq(world_claim(&w, "demo").r, ABX_OK);
}

Test(control_claim, a_claim_the_engine_refuses_releases_the_pod)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 0, 1, ABX_EIO);
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_EIO);
	world_pass(&w, 100);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
}

Test(control_claim, a_claim_whose_last_write_fails_was_never_a_sandbox)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 1, 1, ABX_EIO);
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_EIO);
	world_pass(&w, 100);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	cr_assert_eq(world_counts(&w, "demo").running, 0);
}

Test(control_claim, a_conflict_is_tried_again)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 0, 2, ABX_ECONFLICT);
	{
		answer late = { 0 };

		cr_assert_eq(claim_start(&w, "demo", &late, NULL, NULL), ABX_OK);
		world_pass(&w, 5000);
		a = late;
	}
	cr_assert_eq(a.calls, 1);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
}

Test(control_claim, a_pod_that_vanished_is_passed_over)
{
	answer a;
	abx__pod view;

	world_env(&w, "demo", 2, NULL, NULL);
	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 0, 1, ABX_ENOTFOUND);
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	for (size_t i = 0; abx__fake_engine_at(w.engine, i, &view); i++)
		(void)view;
}

Test(control_claim, a_release_that_fails_deletes_the_pod)
{
	answer a, killed;

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_claim(&w, "demo");
	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 0, 1, ABX_EIO);
	killed = world_kill(&w, a.id);
	cr_assert_eq(killed.r, ABX_OK, "%s", killed.message);
	world_pass(&w, 200);
	cr_assert_null(pod_label(&w, a.pod, ABX__LABEL_POOL), "the Pod is gone");
	cr_assert_eq(world_counts(&w, "demo").idle, 1, "and replaced");
}

Test(control_claim, a_kill_that_cannot_be_had_says_so_and_goes_on)
{
	answer a, killed;

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_claim(&w, "demo");
	abx__fake_engine_fail(w.engine, ABX__FAKE_CHANGE, 0, 1, ABX_EIO);
	abx__fake_engine_fail(w.engine, ABX__FAKE_DELETE, 0, 2, ABX_EIO);
	killed = world_kill(&w, a.id);
	cr_assert_eq(killed.r, ABX_EIO);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_ENOTFOUND);
	world_pass(&w, 10000);
	cr_assert_null(pod_label(&w, a.pod, ABX__LABEL_POOL),
		       "the Pod is gone in the end");
	cr_assert_null(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
}

Test(control_claim, killing_a_starting_sandbox_cancels_its_claim)
{
	const abx__sandbox_rec *rec = NULL;
	answer a = { 0 }, killed = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	w.runtime.hold = true;
	cr_assert_eq(claim_start(&w, "demo", &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	cr_assert(abx__sandboxes_at(abx__control_sandboxes(w.control), 0, &rec));
	cr_assert_eq(rec->state, ABX__SANDBOX_STARTING);
	cr_assert_eq(abx__control_kill(w.control, rec->id, "Completed", on_done, &killed,
				       NULL),
		     ABX_OK);
	cr_assert_eq(a.r, ABX_ECANCELED);
	w.runtime.hold = false;
	world_pass(&w, 100);
	cr_assert_eq(killed.r, ABX_OK);
	cr_assert_eq(killed.calls, 1);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
}

Test(control_claim, a_sandbox_whose_container_ends_is_over)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_claim(&w, "demo");
	abx__fake_engine_kill_container(w.engine, "default", a.pod, "OOMKilled", 137);
	world_pass(&w, 100);
	cr_assert_null(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
}

Test(control_claim, a_sandbox_whose_pod_vanishes_is_over)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_claim(&w, "demo");
	abx__fake_engine_vanish(w.engine, "default", a.pod);
	world_pass(&w, 200);
	cr_assert_null(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
	cr_assert_eq(world_counts(&w, "demo").idle, 1, "the pool has another one");
}

Test(control_claim, a_hundred_at_once_from_a_pool_of_a_hundred)
{
	static answer a[100];
	struct timespec start, end;
	double ms;

	world_env(&w, "demo", 100, POOL_DEFAULT, NULL);
	world_pass(&w, 2000);
	cr_assert_eq(world_counts(&w, "demo").idle, 100);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 100; i++)
		cr_assert_eq(claim_start(&w, "demo", &a[i], NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	clock_gettime(CLOCK_MONOTONIC, &end);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(a[i].r, ABX_OK, "%s", a[i].message);
		cr_assert_eq(a[i].calls, 1);
		for (int k = 0; k < i; k++)
			cr_assert_str_neq(a[i].pod, a[k].pod, "one Pod for two");
	}
	ms = (double)(end.tv_sec - start.tv_sec) * 1e3 +
	     (double)(end.tv_nsec - start.tv_nsec) / 1e6;
	cr_log_info("100 claims decided in %.2f ms", ms);
	cr_assert_lt(ms, 1000);
}

/*
 * test-scaling.c - the autoscaler at work on a pool, and claims routed between pools.
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

TestSuite(control_scaling, .init = setup, .fini = teardown, .timeout = 60);

#define GROUP_0_TO_4 \
	"{\"name\":\"1c2gi\",\"enabled\":true,\"minReplicas\":0,\"maxReplicas\":4}"

Test(control_scaling, an_empty_pool_grows_for_a_waiting_claim)
{
	json_object *env = NULL;
	answer a;

	world_env(&w, "demo", 0, NULL, GROUP_0_TO_4);
	cr_assert_eq(abx__fake_engine_count(w.engine), 0);
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(world_counts(&w, "demo").replicas, 2, "the contract's R 0, Q 1: 2");
	cr_assert_eq(abx__control_env_get(w.control, "default", "demo", &env, NULL),
		     ABX_OK);
	cr_assert(strstr(json_object_to_json_string_ext(env, JSON_C_TO_STRING_PLAIN),
			 "\"replicas\":2"),
		  "the size is in the document");
	json_object_put(env);
}

Test(control_scaling, it_stops_at_the_groups_maximum)
{
	static answer a[8];

	world_env(&w, "demo", 0, NULL, GROUP_0_TO_4);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(claim_start(&w, "demo", &a[i], NULL, NULL), ABX_OK);
	world_pass(&w, 100000);
	cr_assert_eq(world_counts(&w, "demo").replicas, 4);
	cr_assert_eq(world_counts(&w, "demo").running, 4);
	cr_assert_eq(world_counts(&w, "demo").pending, 4);
}

Test(control_scaling, what_stays_idle_is_given_up_again)
{
	answer a;

	world_env(&w, "demo", 0, NULL, GROUP_0_TO_4);
	a = world_claim(&w, "demo");
	world_kill(&w, a.id);
	world_pass(&w, 290000);
	cr_assert_eq(abx__fake_engine_count(w.engine), 2);
	world_pass(&w, 400000);
	cr_assert_eq(abx__fake_engine_count(w.engine), 0);
	cr_assert_eq(world_counts(&w, "demo").replicas, 0);
	cr_assert_eq(world_claim(&w, "demo").r, ABX_OK, "and grows again");
}

Test(control_scaling, a_pod_marked_for_removal_can_still_be_claimed)
{
	answer a;

	world_env(&w, "demo", 1, NULL,
		  "{\"name\":\"1c2gi\",\"enabled\":true,\"maxReplicas\":4,"
		  "\"scaleDownPolicy\":"
		  "{\"idleTimeoutSeconds\":30,\"protectionWindowSeconds\":10}}");
	for (int i = 0; i < 100 && world_counts(&w, "demo").replicas == 1; i++)
		world_pass(&w, 1000);
	cr_assert_eq(world_counts(&w, "demo").replicas, 0);
	cr_assert_eq(world_counts(&w, "demo").idle, 1, "still there");
	a = world_claim(&w, "demo");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	world_pass(&w, 20000);
	cr_assert(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
	cr_assert_geq(world_counts(&w, "demo").replicas, 1, "the size follows what runs");
}

Test(control_scaling, a_disabled_group_is_left_alone)
{
	static answer a; /* told when the server stops */

	world_env(&w, "demo", 0, NULL, "{\"name\":\"1c2gi\"}");
	cr_assert_eq(claim_start(&w, "demo", &a, NULL, NULL), ABX_OK);
	world_pass(&w, 60000);
	cr_assert_eq(world_counts(&w, "demo").replicas, 0);
	cr_assert_eq(a.calls, 0);
}

static void two_pools(int small, int small_priority, int large, int large_priority)
{
	char text[2048];
	answer a;

	world_template(&w, "tmpl");
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"demo\"},\"spec\":{\"templateRef\":{\"name\":"
		 "\"tmpl\"},"
		 "\"clusters\":[{\"clusterID\":\"local\",\"members\":["
		 "{\"config\":{\"priority\":%d,\"inlineResources\":{\"requests\":{"
		 "\"cpu\":\"1\","
		 "\"memory\":\"2Gi\"}}},\"spec\":{\"replicas\":%d}},"
		 "{\"config\":{\"priority\":%d,\"inlineResources\":{\"requests\":{"
		 "\"cpu\":\"2\","
		 "\"memory\":\"8Gi\"}}},\"spec\":{\"replicas\":%d}}]}]}}",
		 small_priority, small, large_priority, large);
	a = world_apply(&w, json_tokener_parse(text), true);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(&w, 1000);
}

static const char *pool_of(const answer *a)
{
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(abx__control_sandboxes(w.control), a->id);

	cr_assert(rec);
	return rec ? rec->pool : "";
}

Test(control_scaling, claims_go_to_the_pool_with_more_idle)
{
	answer a;

	two_pools(1, 0, 3, 0);
	a = world_claim(&w, "demo");
	cr_assert_str_eq(pool_of(&a), "demo-2c8gi");
}

Test(control_scaling, priority_beats_idle)
{
	answer a;

	two_pools(1, 0, 3, 1);
	a = world_claim(&w, "demo");
	cr_assert_str_eq(pool_of(&a), "demo-1c2gi");
}

Test(control_scaling, a_pinned_group_is_kept_to)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .scaling_group = "1c2gi" };
	answer a = { 0 };

	two_pools(1, 5, 3, 0);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 100);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(pool_of(&a), "demo-1c2gi");
}

Test(control_scaling, an_env_without_pools_is_unavailable)
{
	abx_error *err = NULL;
	answer a;

	world_template(&w, "tmpl");
	a = world_apply(
		&w,
		json_tokener_parse(
			"{\"metadata\":{\"name\":\"demo\"},\"spec\":{\"templateRef\":"
			"{\"name\":\"tmpl\"}}}"),
		true);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(abx__field_str(condition_of(a.object, "Ready"), "reason"),
			 "NoMembers");
	answer_done(&a);
	a = (answer){ 0 };
	cr_assert_eq(claim_start(&w, "demo", &a, NULL, &err), ABX_EUNAVAILABLE);
	cr_assert(abx_error_hint(err));
	abx_error_free(err);
}

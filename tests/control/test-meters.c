/*
 * test-meters.c - what GET /metrics tells of claims, sandboxes and pools.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "control/meters.h"
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

TestSuite(control_meters, .init = setup, .fini = teardown, .timeout = 60);

#define OF(last)                                                    \
	{                                                           \
		"default", "demo-1c2gi", "", "", "demo", last, NULL \
	}

static int count(enum abx__control_meter meter, const char *last)
{
	const char *values[] = OF(last);

	return (int)abx__meter_get(abx__control_meters(w.control), meter, values);
}

static int updates(const char *target, const char *result)
{
	const char *values[] = {
		"default", "demo-1c2gi", "", "", "demo", target, result
	};

	return (int)abx__meter_get(abx__control_meters(w.control), ABX__METER_UPDATE,
				   values);
}

static answer claim_image(const char *image)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = image };
	answer a = { 0 };

	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	for (int i = 0; i < 1000 && !a.calls; i++)
		world_pass(&w, 1);
	return a;
}

Test(control_meters, claims_by_what_they_waited_for)
{
	static answer late;
	answer a;

	world_env(&w, "demo", 1, "{\"podCreationImagePolicy\":\"PoolDefaultImage\"}",
		  NULL);
	a = claim_image(NULL);
	cr_assert_eq(count(ABX__METER_CLAIM_PATH, "warm"), 1);
	world_kill(&w, a.id);
	world_pass(&w, 100);
	a = claim_image("other:1");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(count(ABX__METER_CLAIM_PATH, "swapped"), 1);
	cr_assert_eq(claim_start(&w, "demo", &late, NULL, NULL), ABX_OK);
	world_pass(&w, 10);
	world_kill(&w, a.id);
	world_pass(&w, 200);
	cr_assert_eq(late.r, ABX_OK);
	cr_assert_eq(late.calls, 1);
	cr_assert_eq(count(ABX__METER_CLAIM_PATH, "queued"), 1);
	cr_assert_eq(count(ABX__METER_CLAIM, "success"), 3);
	cr_assert_eq(count(ABX__METER_CREATE, "success"), 3);
	cr_assert_eq(count(ABX__METER_STARTING, "success"), 3);
	cr_assert_eq(count(ABX__METER_DELETE, "Completed"), 2);
	cr_assert_eq(count(ABX__METER_RUNNING, "Completed"), 2);
	cr_assert_eq(count(ABX__METER_RECYCLE, NULL), 2);
	cr_assert_eq(updates("claim", "success"), 3);
	cr_assert_eq(updates("release", "success"), 2);
}

Test(control_meters, a_claim_that_made_the_pool_grow_is_scaled)
{
	world_env(&w, "demo", 0, NULL, "{\"name\":\"1c2gi\",\"enabled\":true}");
	cr_assert_eq(world_claim(&w, "demo").r, ABX_OK);
	cr_assert_eq(count(ABX__METER_CLAIM_PATH, "scaled"), 1);
	cr_assert_eq(count(ABX__METER_CLAIM_PATH, "queued"), 0);
}

Test(control_meters, claims_that_fail_are_told_apart)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .no_wait = true };
	answer a = { 0 };

	world_env(&w, "demo", 0, NULL, NULL);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_EEXHAUSTED);
	request.no_wait = false;
	request.max_wait_ms = 100;
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 1000);
	cr_assert_eq(count(ABX__METER_CREATE, "no_idle"), 2);
	cr_assert_eq(count(ABX__METER_CLAIM, "no_idle"), 2);
	answer_done(&a);
	a = world_apply(&w, env_doc("demo", 2, NULL, NULL), false);
	answer_done(&a);
	world_pass(&w, 1000);
	abx__fake_engine_bad_image(w.engine, "broken:1", "ErrImagePull");
	cr_assert_eq(claim_image("broken:1").r, ABX_EINVAL);
	cr_assert_eq(count(ABX__METER_CREATE, "error"), 1);
	cr_assert_eq(count(ABX__METER_DELETE, "Failed"), 1);
	cr_assert_eq(count(ABX__METER_STARTING, "canceled"), 1);
}

static double value_of(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	cr_assert(at, "no %s in\n%s", line, text);
	return at ? strtod(at + strlen(line), NULL) : -1;
}

Test(control_meters, pools_and_sandboxes_are_gauges)
{
	abx__buf buf = ABX__BUF_INIT;
	const char *text;
	char line[256];
	answer a;

	world_env(&w, "demo", 3, NULL, NULL);
	a = world_claim(&w, "demo");
	cr_assert_eq(abx__control_meters_print(w.control, &buf), ABX_OK);
	text = abx__buf_str(&buf);
#define LABELS                                                                        \
	"{namespace=\"default\",pool=\"demo-1c2gi\",team=\"\",user=\"\",sandbox_env=" \
	"\"demo\""
	cr_assert_eq(value_of(text, "agentbox_sandboxpool_replicas_desired" LABELS "} "),
		     3);
	cr_assert_eq(value_of(text, "agentbox_sandboxpool_replicas_idle" LABELS "} "), 2);
	cr_assert_eq(value_of(text, "agentbox_sandboxpool_replicas_running" LABELS "} "),
		     1);
	cr_assert_eq(value_of(text, "\nagentbox_schedule_ready_queue_size "), 2);
	cr_assert_eq(value_of(text, "\nagentbox_meter_dropped "), 0);
	snprintf(line, sizeof(line),
		 "agentbox_sandbox_running_info" LABELS ",pod=\"%s\",sandbox_id=\"%s\"} ",
		 a.pod, a.id);
	cr_assert_eq(value_of(text, line), 1);
	cr_assert(strstr(text, "# TYPE agentbox_sandbox_claim_duration_seconds "
			       "histogram\n"));
	abx__buf_done(&buf);
}

Test(control_meters, a_deleted_pools_series_go_with_it)
{
	answer a, gone = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	a = world_claim(&w, "demo");
	(void)a;
	cr_assert_eq(count(ABX__METER_CLAIM, "success"), 1);
	cr_assert_eq(abx__control_env_delete(w.control, "default", "demo", on_done, &gone,
					     NULL),
		     ABX_OK);
	world_pass(&w, 1000);
	cr_assert_eq(count(ABX__METER_CLAIM, "success"), 0);
}

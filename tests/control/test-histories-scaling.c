/*
 * test-histories-scaling.c - random histories of two envs that share a quota, one of them
 * autoscaled, with claims, ends, sizes, rolls, policies, failing engines and crashes.
 *
 * What must hold all the time: no sandbox on two Pods, no acknowledged one lost, no size
 * above its bounds, no more Pods under the quota than it has. At rest: every claim was
 * answered, and every pool is as large as it may be.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "books.h"
#include "control/fields.h"
#include "model/keys.h"

#define CEILING 9
#define GROUP_MAX 7

#define TYPES                                                                          \
	"{\"items\":[{\"name\":\"small\",\"baseResources\":{\"cpu\":\"1\",\"memory\":" \
	"\"2Gi\"}}]}"
#define QUOTAS \
	"{\"items\":[{\"name\":\"q\",\"resources\":{\"total\":{\"small\":\"9\"}}}]}"

typedef struct history {
	books b;
	abx__capacity *capacity;
	int idle_image;
} history;

static const char *const envs[] = { "auto", "fixed" };

/* A kill that failed, or a start that did at its last write: it is being ended, and a
   crash before that is done brings it back. */
static bool in_limbo(const booked *call)
{
	return call->a.r != ABX_EEXHAUSTED;
}

/* --- what happens --- */

static void do_claim(history *h)
{
	static const char *const images[] = { NULL, NULL, NULL, "nosuch:1", "other:1" };
	abx__claim_request request = { .namespace_ = "default",
				       .name = envs[books_random(&h->b, 2)],
				       .image = images[books_random(&h->b, 5)],
				       .no_wait = books_random(&h->b, 8) == 0,
				       .startup_timeout_ms =
					       500 + 20000 * books_random(&h->b, 3) };
	booked *c = books_call(&h->b);

	if (c && claim_with(&h->b.w, &request, &c->a, NULL, NULL) < 0)
		c->used = false;
}

static void do_kill(history *h)
{
	booked *c = h->b.told_count ? books_call(&h->b) : NULL;
	char id[32];

	if (!c)
		return;
	c->is_kill = true;
	books_take(&h->b, id);
	if (abx__control_kill(h->b.w.control, id, "Completed", on_done, &c->a, NULL) < 0)
		c->used = false;
}

static json_object *member_of(history *h, const char *env)
{
	json_object *doc = NULL, *member = NULL, *clusters;

	cr_assert_eq(abx__control_env_get(h->b.w.control, "default", env, &doc, NULL),
		     ABX_OK);
	clusters = abx__field_array(abx__field_object(doc, "spec"), "clusters");
	member = json_object_get(json_object_array_get_idx(
		abx__field_array(json_object_array_get_idx(clusters, 0), "members"), 0));
	json_object_put(doc);
	return member;
}

static void wait_for(history *h, const answer *a)
{
	for (int i = 0; i < 3000 && !a->calls; i++)
		if (!world_step(&h->b.w))
			h->b.w.clock.now_ms++;
	cr_assert_eq(a->calls, 1, "a write hangs");
}

static void do_size(history *h)
{
	json_object *member = member_of(h, "fixed");
	answer a = { 0 };

	abx__field_set_int(abx__field_object(member, "spec"), "replicas",
			   (int)books_random(&h->b, 8));
	cr_assert_eq(abx__control_pool_update(h->b.w.control, "default", "fixed",
					      "fixed-1c2gi", member, on_object, &a, NULL),
		     ABX_OK);
	json_object_put(member);
	wait_for(h, &a);
	cr_assert(a.r == ABX_OK || a.r == ABX_EEXHAUSTED, "%d %s", a.r, a.message);
	answer_done(&a);
}

static void do_policy(history *h)
{
	static const char *const modes[] = { "Conservative", "Default", "Aggressive" };
	json_object *policy;
	char text[512];
	answer a = { 0 };

	snprintf(text, sizeof(text),
		 "{\"enabled\":true,\"minReplicas\":%u,\"maxReplicas\":%d,"
		 "\"scaleUpPolicy\":{\"mode\":\"%s\",\"cooldownSeconds\":%u,"
		 "\"saturationCooldownSeconds\":2},\"scaleDownPolicy\":{"
		 "\"idleTimeoutSeconds\":%u,\"stabilizationSeconds\":1,"
		 "\"protectionWindowSeconds\":%u}}",
		 books_random(&h->b, 3), GROUP_MAX, modes[books_random(&h->b, 3)],
		 books_random(&h->b, 3), 1 + books_random(&h->b, 20),
		 books_random(&h->b, 3));
	policy = json_tokener_parse(text);
	cr_assert_eq(abx__control_group_put(h->b.w.control, "default", "auto", "1c2gi",
					    policy, on_object, &a, NULL),
		     ABX_OK);
	json_object_put(policy);
	wait_for(h, &a);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
}

static void do_roll(history *h)
{
	char image[32];
	json_object *doc;
	answer a = { 0 };

	snprintf(image, sizeof(image), "idle:%d", ++h->idle_image);
	doc = template_doc("tmpl", image);
	cr_assert_eq(abx__control_template_put(h->b.w.control, doc, false, on_object, &a,
					       NULL),
		     ABX_OK);
	json_object_put(doc);
	wait_for(h, &a);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
}

static void do_fault(history *h)
{
	static const enum abx__fake_op ops[] = { ABX__FAKE_CREATE, ABX__FAKE_CHANGE,
						 ABX__FAKE_DELETE };

	abx__fake_engine_fail(h->b.w.engine, ops[books_random(&h->b, 3)],
			      books_random(&h->b, 3), 1 + books_random(&h->b, 2),
			      ABX_EUNAVAILABLE);
}

/* --- what must hold --- */

static void check_bounds(history *h)
{
	int pods = 0;
	abx__pod p;

	for (size_t i = 0; abx__fake_engine_at(h->b.w.engine, i, &p); i++)
		pods += !p.deleting;
	cr_assert_leq(pods, CEILING, "%d Pods under a quota of %d", pods, CEILING);
	cr_assert_leq(world_counts(&h->b.w, "auto").replicas, GROUP_MAX);
}

static void do_crash(history *h)
{
	int unknown;

	books_read(&h->b);
	unknown = books_forget_calls(&h->b);
	world_crash(&h->b.w);
	for (int op = 0; op < ABX__FAKE_OP_COUNT; op++)
		abx__fake_engine_fail(h->b.w.engine, (enum abx__fake_op)op, 0, 0, 0);
	world_boot(&h->b.w);
	books_count_untold(&h->b, unknown + h->b.limbo);
}

static void rest(history *h)
{
	int running = 0, idle[2];

	for (int op = 0; op < ABX__FAKE_OP_COUNT; op++)
		abx__fake_engine_fail(h->b.w.engine, (enum abx__fake_op)op, 0, 0, 0);
	/* Longer than the autoscaler looks back for a create. */
	world_pass(&h->b.w, 700000);
	books_read(&h->b);
	cr_assert_eq(books_forget_calls(&h->b), 0, "a claim was never answered");
	books_count_untold(&h->b, 0);
	books_check_owners(&h->b);
	check_bounds(h);
	for (int i = 0; i < 2; i++) {
		abx__pool_counts c = world_counts(&h->b.w, envs[i]);

		cr_assert_eq(c.starting + c.stopping + c.failed + c.pending +
				     c.unavailable_idle,
			     0, "%s is not at rest: %d %d %d %d %d (seed %u)", envs[i],
			     c.starting, c.stopping, c.failed, c.pending,
			     c.unavailable_idle, h->b.first_seed);
		running += c.running;
		idle[i] = c.idle;
		cr_assert_leq(c.idle, c.replicas);
	}
	cr_assert_eq(running, h->b.told_count, "%d run, %d were acknowledged", running,
		     h->b.told_count);
	cr_assert_eq((int)abx__fake_engine_count(h->b.w.engine),
		     running + idle[0] + idle[1], "a Pod is leaked");
}

static void begin(history *h, unsigned seed)
{
	json_object *types = json_tokener_parse(TYPES);
	json_object *quotas = json_tokener_parse(QUOTAS);
	char text[1024];

	memset(h, 0, sizeof(*h));
	books_begin(&h->b, seed, in_limbo);
	world_crash(&h->b.w);
	cr_assert_eq(abx__capacity_docs_new(types, quotas, &h->capacity, NULL), ABX_OK);
	json_object_put(types);
	json_object_put(quotas);
	h->b.w.capacity = h->capacity;
	world_boot(&h->b.w);
	abx__fake_engine_bad_image(h->b.w.engine, "nosuch:1", "ErrImagePull");
	world_template(&h->b.w, "tmpl");
	for (int i = 0; i < 2; i++) {
		answer a;

		snprintf(text, sizeof(text),
			 "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"templateRef\":{"
			 "\"name\":\"tmpl\"},\"clusters\":[{\"clusterID\":\"local\","
			 "\"members\":[{\"config\":{\"instanceType\":\"small\","
			 "\"labels\":{\"quota.scitix.ai/url\":\"q\"}},\"spec\":{"
			 "\"replicas\":3}}]}]}}",
			 envs[i]);
		a = world_apply(&h->b.w, json_tokener_parse(text), true);
		cr_assert_eq(a.r, ABX_OK, "%s", a.message);
		answer_done(&a);
	}
	do_policy(h);
}

static void run_history(unsigned seed, bool crashes, bool faults)
{
	static history h;

	begin(&h, seed);
	for (int i = 0; i < 120; i++) {
		unsigned what = books_random(&h.b, 20);

		if (what < 8)
			do_claim(&h);
		else if (what < 12)
			do_kill(&h);
		else if (what < 14)
			do_size(&h);
		else if (what < 15)
			do_policy(&h);
		else if (what < 16)
			do_roll(&h);
		else if (what < 17 && faults)
			do_fault(&h);
		else if (what < 18 && crashes)
			do_crash(&h);
		for (unsigned n = books_random(&h.b, 40); n > 0; n--) {
			if (!world_step(&h.b.w))
				h.b.w.clock.now_ms += 1 + books_random(&h.b, 400);
			check_bounds(&h);
		}
		books_read(&h.b);
		if (i % 40 == 39)
			rest(&h);
	}
	world_done(&h.b.w);
	abx__capacity_free(h.capacity);
}

Test(control_histories_scaling, without_crashes, .timeout = 120)
{
	for (unsigned seed = 1; seed <= 40; seed++)
		run_history(seed, false, false);
}

Test(control_histories_scaling, with_crashes, .timeout = 120)
{
	for (unsigned seed = 1; seed <= 40; seed++)
		run_history(seed, true, false);
}

Test(control_histories_scaling, with_crashes_and_a_failing_engine, .timeout = 120)
{
	for (unsigned seed = 1; seed <= 40; seed++)
		run_history(seed, true, true);
}

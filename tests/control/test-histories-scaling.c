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
#include "control/fields.h"
#include "model/keys.h"
#include "world.h"

#define CEILING 9
#define GROUP_MAX 7
#define CALLS_MOST 48
#define ACKED_MOST 48

#define TYPES                                                                          \
	"{\"items\":[{\"name\":\"small\",\"baseResources\":{\"cpu\":\"1\",\"memory\":" \
	"\"2Gi\"}}]}"
#define QUOTAS \
	"{\"items\":[{\"name\":\"q\",\"resources\":{\"total\":{\"small\":\"9\"}}}]}"

typedef struct call {
	bool used, is_kill;
	answer a;
} call;

typedef struct history {
	world w;
	abx__capacity *capacity;
	unsigned seed, first_seed;
	call calls[CALLS_MOST];
	char acked[ACKED_MOST][32];
	int acked_count, limbo;
	int idle_image;
} history;

static const char *const envs[] = { "auto", "fixed" };

static unsigned next_random(history *h, unsigned below)
{
	h->seed = h->seed * 1103515245u + 12345u;
	return (h->seed >> 16) % below;
}

static call *call_new(history *h)
{
	for (int i = 0; i < CALLS_MOST; i++) {
		if (h->calls[i].used)
			continue;
		h->calls[i] = (call){ .used = true };
		return &h->calls[i];
	}
	return NULL;
}

static int acked_find(const history *h, const char *id)
{
	for (int i = 0; i < h->acked_count; i++)
		if (strcmp(h->acked[i], id) == 0)
			return i;
	return -1;
}

static void acked_add(history *h, const char *id)
{
	cr_assert_lt(h->acked_count, ACKED_MOST);
	cr_assert_eq(acked_find(h, id), -1, "sandbox %s was given to two", id);
	memcpy(h->acked[h->acked_count++], id, strlen(id) + 1);
}

static void read_answers(history *h)
{
	for (int i = 0; i < CALLS_MOST; i++) {
		call *c = &h->calls[i];

		if (!c->used || !c->a.calls)
			continue;
		cr_assert_eq(c->a.calls, 1);
		if (!c->is_kill && c->a.r == ABX_OK)
			acked_add(h, c->a.id);
		/* A kill that failed, or a start that did at its last write: it is being
		   ended, and a crash before that is done brings it back. */
		h->limbo += c->a.r < 0 && c->a.r != ABX_EEXHAUSTED;
		c->used = false;
	}
}

/* --- what happens --- */

static void do_claim(history *h)
{
	static const char *const images[] = { NULL, NULL, NULL, "nosuch:1", "other:1" };
	abx__claim_request request = { .namespace_ = "default",
				       .name = envs[next_random(h, 2)],
				       .image = images[next_random(h, 5)],
				       .no_wait = next_random(h, 8) == 0,
				       .startup_timeout_ms =
					       500 + 20000 * next_random(h, 3) };
	call *c = call_new(h);

	if (c && claim_with(&h->w, &request, &c->a, NULL, NULL) < 0)
		c->used = false;
}

static void do_kill(history *h)
{
	call *c = h->acked_count ? call_new(h) : NULL;
	int i;

	if (!c)
		return;
	i = (int)next_random(h, (unsigned)h->acked_count);
	c->is_kill = true;
	if (abx__control_kill(h->w.control, h->acked[i], "Completed", on_done, &c->a,
			      NULL) < 0)
		c->used = false;
	memmove(h->acked[i], h->acked[--h->acked_count], 32);
}

static json_object *member_of(history *h, const char *env)
{
	json_object *doc = NULL, *member = NULL, *clusters;

	cr_assert_eq(abx__control_env_get(h->w.control, "default", env, &doc, NULL),
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
		if (!world_step(&h->w))
			h->w.clock.now_ms++;
	cr_assert_eq(a->calls, 1, "a write hangs");
}

static void do_size(history *h)
{
	json_object *member = member_of(h, "fixed");
	answer a = { 0 };

	abx__field_set_int(abx__field_object(member, "spec"), "replicas",
			   (int)next_random(h, 8));
	cr_assert_eq(abx__control_pool_update(h->w.control, "default", "fixed",
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
		 next_random(h, 3), GROUP_MAX, modes[next_random(h, 3)],
		 next_random(h, 3), 1 + next_random(h, 20), next_random(h, 3));
	policy = json_tokener_parse(text);
	cr_assert_eq(abx__control_group_put(h->w.control, "default", "auto", "1c2gi",
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
	cr_assert_eq(
		abx__control_template_put(h->w.control, doc, false, on_object, &a, NULL),
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

	abx__fake_engine_fail(h->w.engine, ops[next_random(h, 3)], next_random(h, 3),
			      1 + next_random(h, 2), ABX_EUNAVAILABLE);
}

/* --- what must hold --- */

static void check_owners(history *h)
{
	abx__pod a, b;

	for (size_t i = 0; abx__fake_engine_at(h->w.engine, i, &a); i++) {
		const char *id = abx__map_get(&a.labels, ABX__LABEL_SANDBOX_ID);

		for (size_t k = 0; id && k < i; k++) {
			abx__fake_engine_at(h->w.engine, k, &b);
			cr_assert(!abx__map_get(&b.labels, ABX__LABEL_SANDBOX_ID) ||
				  strcmp(id, abx__map_get(&b.labels,
							  ABX__LABEL_SANDBOX_ID)) != 0);
		}
	}
	for (int i = 0; i < h->acked_count; i++)
		cr_assert(abx__sandboxes_find(abx__control_sandboxes(h->w.control),
					      h->acked[i]),
			  "acknowledged sandbox %s is lost", h->acked[i]);
}

static void check_bounds(history *h)
{
	int pods = 0;
	abx__pod p;

	for (size_t i = 0; abx__fake_engine_at(h->w.engine, i, &p); i++)
		pods += !p.deleting;
	cr_assert_leq(pods, CEILING, "%d Pods under a quota of %d", pods, CEILING);
	cr_assert_leq(world_counts(&h->w, "auto").replicas, GROUP_MAX);
}

static void count_untold(history *h, int allowed)
{
	const abx__sandbox_rec *rec;

	for (size_t i = 0;
	     abx__sandboxes_at(abx__control_sandboxes(h->w.control), i, &rec); i++) {
		if (rec->state != ABX__SANDBOX_RUNNING || acked_find(h, rec->id) >= 0)
			continue;
		cr_assert_gt(allowed--, 0, "sandbox %s is leaked (seed %u)", rec->id,
			     h->first_seed);
		acked_add(h, rec->id);
	}
}

static void do_crash(history *h)
{
	int unknown = 0;

	read_answers(h);
	for (int i = 0; i < CALLS_MOST; i++) {
		unknown += h->calls[i].used;
		h->calls[i].used = false;
	}
	world_crash(&h->w);
	for (int op = 0; op < ABX__FAKE_OP_COUNT; op++)
		abx__fake_engine_fail(h->w.engine, (enum abx__fake_op)op, 0, 0, 0);
	world_boot(&h->w);
	count_untold(h, unknown + h->limbo);
}

static void rest(history *h)
{
	int running = 0, idle[2];

	for (int op = 0; op < ABX__FAKE_OP_COUNT; op++)
		abx__fake_engine_fail(h->w.engine, (enum abx__fake_op)op, 0, 0, 0);
	/* Longer than the autoscaler looks back for a create. */
	world_pass(&h->w, 700000);
	read_answers(h);
	for (int i = 0; i < CALLS_MOST; i++)
		cr_assert_not(h->calls[i].used, "a claim was never answered");
	count_untold(h, 0);
	check_owners(h);
	check_bounds(h);
	for (int i = 0; i < 2; i++) {
		abx__pool_counts c = world_counts(&h->w, envs[i]);

		cr_assert_eq(c.starting + c.stopping + c.failed + c.pending +
				     c.unavailable_idle,
			     0, "%s is not at rest: %d %d %d %d %d (seed %u)", envs[i],
			     c.starting, c.stopping, c.failed, c.pending,
			     c.unavailable_idle, h->first_seed);
		running += c.running;
		idle[i] = c.idle;
		cr_assert_leq(c.idle, c.replicas);
	}
	cr_assert_eq(running, h->acked_count, "%d run, %d were acknowledged", running,
		     h->acked_count);
	cr_assert_eq((int)abx__fake_engine_count(h->w.engine),
		     running + idle[0] + idle[1], "a Pod is leaked");
}

static void begin(history *h, unsigned seed)
{
	json_object *types = json_tokener_parse(TYPES);
	json_object *quotas = json_tokener_parse(QUOTAS);
	char text[1024];

	memset(h, 0, sizeof(*h));
	h->seed = h->first_seed = seed;
	world_init(&h->w);
	world_crash(&h->w);
	cr_assert_eq(abx__capacity_docs_new(types, quotas, &h->capacity, NULL), ABX_OK);
	json_object_put(types);
	json_object_put(quotas);
	h->w.capacity = h->capacity;
	world_boot(&h->w);
	abx__fake_engine_bad_image(h->w.engine, "nosuch:1", "ErrImagePull");
	world_template(&h->w, "tmpl");
	for (int i = 0; i < 2; i++) {
		answer a;

		snprintf(text, sizeof(text),
			 "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"templateRef\":{"
			 "\"name\":\"tmpl\"},\"clusters\":[{\"clusterID\":\"local\","
			 "\"members\":[{\"config\":{\"instanceType\":\"small\","
			 "\"labels\":{\"quota.scitix.ai/url\":\"q\"}},\"spec\":{"
			 "\"replicas\":3}}]}]}}",
			 envs[i]);
		a = world_apply(&h->w, json_tokener_parse(text), true);
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
		unsigned what = next_random(&h, 20);

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
		for (unsigned n = next_random(&h, 40); n > 0; n--) {
			if (!world_step(&h.w))
				h.w.clock.now_ms += 1 + next_random(&h, 400);
			check_bounds(&h);
		}
		read_answers(&h);
		if (i % 40 == 39)
			rest(&h);
	}
	world_done(&h.w);
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

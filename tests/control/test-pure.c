/*
 * test-pure.c - the tables of the contract: routing (crds.md 7.2), the autoscaler (8),
 * and the deadline heap.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "control/autoscale.h"
#include "control/route.h"
#include "control/timers.h"

Test(control_route, scores_are_the_contracts)
{
	static const struct {
		abx__route_pool pool;
		int64_t score;
	} rows[] = {
		{ { .priority = 0, .ready_idle = 0, .waiting = 3, .cap = -1 }, -6 },
		{ { .priority = 1, .ready_idle = 20, .waiting = 0, .cap = -1 }, -800 },
		{ { .priority = 0, .ready_idle = 5, .cap = -1, .saturated = true },
		  -999950 },
		{ { .ready_idle = 1, .cap = 10, .desired = 4 }, 10 + 30 },
		{ { .ready_idle = 1, .cap = 4, .desired = 9 }, 10 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(abx__route_score(&rows[i].pool), rows[i].score, "row %zu",
			     i);
}

Test(control_route, picks_by_score_then_name_after_the_filter)
{
	abx__route_pool full = { .name = "a", .priority = -5, .cap = 2, .desired = 2 };
	abx__route_pool usable = { .name = "b", .priority = 9, .cap = -1 };
	abx__route_pool same = { .name = "c", .priority = 9, .cap = -1 };
	abx__route_pool idle = {
		.name = "d", .priority = 0, .ready_idle = 1, .cap = 1, .desired = 1
	};

	cr_assert_eq(abx__route_pick((abx__route_pool[]){ full, usable }, 2), 1,
		     "full is dropped");
	cr_assert_eq(abx__route_pick((abx__route_pool[]){ same, usable }, 2), 1,
		     "b before c");
	cr_assert_eq(abx__route_pick((abx__route_pool[]){ usable, idle }, 2), 1,
		     "at its cap with an idle one stays in");
	cr_assert_eq(abx__route_pick((abx__route_pool[]){ full, full }, 2), 0,
		     "all dropped: all ranked");
}

Test(control_route, the_cap_is_the_smaller_one)
{
	cr_assert_eq(abx__route_cap(-1, -1, 7), -1);
	cr_assert_eq(abx__route_cap(5, -1, 7), 5);
	cr_assert_eq(abx__route_cap(-1, 10, 7), 3);
	cr_assert_eq(abx__route_cap(2, 10, 7), 2);
	cr_assert_eq(abx__route_cap(5, 6, 7), 0);
}

static const abx__scale_policy base = ABX__SCALE_POLICY_DEFAULT;
#define NOW INT64_C(10000000)

static int scaled(enum abx__scale_mode mode, int R, int run, int idle, int Q,
		  bool proactive)
{
	abx__scale_policy policy = base;
	abx__scale_state state = { .idle_zero_since_ms = proactive ? NOW - 60000 : 0 };
	abx__scale_input in = { .now_ms = NOW,
				.replicas = R,
				.running = run,
				.idle = idle,
				.ready_idle = idle,
				.waiting = Q,
				.group_total = R,
				.member_max = ABX__NO_CAP,
				.last_create_ms = NOW - 1000 };

	policy.enabled = true;
	policy.mode = mode;
	return abx__scale_decide(&policy, &in, &state).replicas;
}

Test(control_autoscale, scale_up_cases_of_the_contract)
{
	static const struct {
		int R, run, idle, Q;
		bool proactive;
		int expect[3];
	} rows[] = {
		{ 0, 0, 0, 1, false, { 2, 2, 2 } },
		{ 10, 10, 0, 0, true, { 11, 13, 15 } },
		{ 4, 4, 0, 100, false, { 105, 108, 108 } },
		{ 12, 4, 0, 8, true, { 13, 15, 18 } },
		{ 12, 4, 0, 8, false, { 12, 12, 12 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int mode = 0; mode < 3; mode++)
			cr_assert_eq(scaled((enum abx__scale_mode)mode, rows[i].R,
					    rows[i].run, rows[i].idle, rows[i].Q,
					    rows[i].proactive),
				     rows[i].expect[mode], "row %zu mode %d", i, mode);
}

Test(control_autoscale, scale_down_cases_of_the_contract)
{
	static const int expect[] = { 19, 15, 12 };

	for (int mode = 0; mode < 3; mode++) {
		abx__scale_policy policy = base;
		abx__scale_state state = { 0 };
		abx__scale_input in = { .now_ms = NOW,
					.replicas = 20,
					.running = 8,
					.idle = 12,
					.ready_idle = 12,
					.aged_idle = 8,
					.group_total = 20,
					.member_max = ABX__NO_CAP };
		abx__scale_decision d;

		policy.enabled = true;
		policy.mode = (enum abx__scale_mode)mode;
		d = abx__scale_decide(&policy, &in, &state);
		cr_assert_eq(d.what, ABX__SCALE_DOWN);
		cr_assert_eq(d.replicas, expect[mode], "mode %d", mode);
		cr_assert_eq(d.session, ABX__SESSION_STARTED);
		cr_assert_eq(state.last_down_ms, NOW);
		d = abx__scale_decide(&policy, &in, &state);
		cr_assert_eq(d.what, ABX__SCALE_NOTHING, "within the stabilisation");
	}
}

typedef struct gate {
	const char *name;
	void (*set)(abx__scale_policy *policy, abx__scale_input *in,
		    abx__scale_state *state);
} gate;

static void in_cooldown(abx__scale_policy *p, abx__scale_input *in, abx__scale_state *s)
{
	(void)p, (void)in;
	s->last_up_ms = NOW - 29000;
}

static void saturated(abx__scale_policy *p, abx__scale_input *in, abx__scale_state *s)
{
	(void)p, (void)in;
	abx__scale_refused(s, NOW - 59000, ABX__SCALE_INSUFFICIENT);
}

static void yields(abx__scale_policy *p, abx__scale_input *in, abx__scale_state *s)
{
	(void)p, (void)s;
	in->sibling_first = true;
}

static void at_group_max(abx__scale_policy *p, abx__scale_input *in, abx__scale_state *s)
{
	(void)s;
	p->max = in->group_total;
}

static void at_member_max(abx__scale_policy *p, abx__scale_input *in, abx__scale_state *s)
{
	(void)p, (void)s;
	in->member_max = in->replicas;
}

static void disabled(abx__scale_policy *p, abx__scale_input *in, abx__scale_state *s)
{
	(void)in, (void)s;
	p->enabled = false;
}

Test(control_autoscale, gates_hold_a_scale_up_back)
{
	static const gate gates[] = {
		{ "cooldown", in_cooldown },     { "saturation", saturated },
		{ "sibling", yields },           { "group max", at_group_max },
		{ "member max", at_member_max }, { "disabled", disabled },
	};

	for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
		abx__scale_policy policy = base;
		abx__scale_state state = { 0 };
		abx__scale_input in = { .now_ms = NOW,
					.replicas = 4,
					.running = 4,
					.waiting = 5,
					.group_total = 4,
					.member_max = ABX__NO_CAP };

		policy.enabled = true;
		gates[i].set(&policy, &in, &state);
		cr_assert_eq(abx__scale_decide(&policy, &in, &state).what,
			     ABX__SCALE_NOTHING, "%s", gates[i].name);
	}
}

Test(control_autoscale, proactive_growth_needs_time_without_idle_and_recent_creates)
{
	abx__scale_policy policy = base;
	abx__scale_state state = { 0 };
	abx__scale_input in = { .now_ms = NOW,
				.replicas = 4,
				.running = 4,
				.group_total = 4,
				.member_max = ABX__NO_CAP,
				.last_create_ms = NOW };

	policy.enabled = true;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).what, ABX__SCALE_NOTHING);
	cr_assert_eq(state.idle_zero_since_ms, NOW);
	in.now_ms = NOW + 29999;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).what, ABX__SCALE_NOTHING);
	in.now_ms = NOW + 30000;
	in.last_create_ms = NOW - 300000;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).what, ABX__SCALE_NOTHING,
		     "it is quiet");
	in.last_create_ms = NOW;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).what, ABX__SCALE_UP);
	in.idle = 1;
	abx__scale_decide(&policy, &in, &state);
	cr_assert_eq(state.idle_zero_since_ms, 0);
	policy.idle_threshold_s = 0;
	in.idle = 0;
	in.now_ms += 10000000;
	in.last_create_ms = in.now_ms;
	abx__scale_decide(&policy, &in, &state);
	in.now_ms += 1000000;
	in.last_create_ms = in.now_ms;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).what, ABX__SCALE_NOTHING,
		     "0 is off");
}

Test(control_autoscale, more_running_than_wanted_is_put_right_first)
{
	abx__scale_policy policy = base;
	abx__scale_state state = { 0 };
	abx__scale_input in = {
		.now_ms = NOW, .replicas = 2, .running = 5, .waiting = 9
	};
	abx__scale_decision d;

	policy.enabled = true;
	d = abx__scale_decide(&policy, &in, &state);
	cr_assert_eq(d.what, ABX__SCALE_FIX);
	cr_assert_eq(d.replicas, 5);
}

Test(control_autoscale, minima_hold_a_scale_down_back)
{
	abx__scale_policy policy = base;
	abx__scale_state state = { 0 };
	abx__scale_input in = { .now_ms = NOW,
				.replicas = 4,
				.idle = 4,
				.ready_idle = 4,
				.aged_idle = 4,
				.group_total = 4,
				.member_min = 4,
				.member_max = ABX__NO_CAP };

	policy.enabled = true;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).what, ABX__SCALE_NOTHING);
	in.member_min = 0;
	policy.min = 4;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).what, ABX__SCALE_NOTHING);
	policy.min = 3;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).replicas, 3);
	state = (abx__scale_state){ 0 };
	policy.min = 0;
	in.aged_idle = 0;
	cr_assert_eq(abx__scale_decide(&policy, &in, &state).what, ABX__SCALE_NOTHING,
		     "none is old");
}

static void fire(abx__timer *timer)
{
	(void)timer;
}

Test(control_timers, come_out_in_order_after_any_changes)
{
	enum { COUNT = 200 };
	abx__timers timers = { 0 };
	abx__timer t[COUNT];
	int64_t last = -1;
	size_t out = 0;
	abx__timer *next;

	srand(7);
	for (int i = 0; i < COUNT; i++) {
		cr_assert_eq(abx__timers_reserve(&timers, &t[i], fire, NULL), 0);
		abx__timers_set(&timers, &t[i], rand() % 1000);
	}
	for (int i = 0; i < COUNT; i++) {
		if (i % 3 == 0)
			abx__timers_set(&timers, &t[i], rand() % 1000);
		else if (i % 3 == 1)
			abx__timers_clear(&timers, &t[i]);
		else
			abx__timers_set_sooner(&timers, &t[i], rand() % 1000);
	}
	cr_assert_null(abx__timers_pop(&timers, -1));
	while ((next = abx__timers_pop(&timers, 1000))) {
		cr_assert_geq(next->at, last);
		last = next->at;
		out++;
	}
	cr_assert_eq(out, COUNT - (COUNT + 1) / 3);
	for (int i = 0; i < COUNT; i++)
		abx__timers_release(&timers, &t[i]);
	cr_assert_eq(timers.reserved, 0);
	abx__timers_done(&timers);
}

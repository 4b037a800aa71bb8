/*
 * autoscale.c - the contract's formulas, in its symbols: R replicas, run, idle, Q
 * waiting, P ordered and not usable, D demand, U unmet, S spare, G the group's sum.
 */
#include "control/autoscale.h"

#include "control/route.h"

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

static int ceil_div(int a, int b)
{
	return (a + b - 1) / b;
}

int abx__scale_buffer(enum abx__scale_mode mode, int demand)
{
	switch (mode) {
	case ABX__SCALE_CONSERVATIVE:
		return 1;
	case ABX__SCALE_AGGRESSIVE:
		return max_int(ceil_div(demand, 2), 1);
	case ABX__SCALE_DEFAULT:
		break;
	}
	return max_int(ceil_div(demand, 4), 1);
}

int abx__scale_ceiling(enum abx__scale_mode mode, int demand)
{
	switch (mode) {
	case ABX__SCALE_CONSERVATIVE:
		return demand + 1;
	case ABX__SCALE_AGGRESSIVE:
		return 2 * demand + 2;
	case ABX__SCALE_DEFAULT:
		break;
	}
	return ceil_div(3 * demand, 2) + 1;
}

int abx__scale_step(enum abx__scale_mode mode, int replicas)
{
	switch (mode) {
	case ABX__SCALE_CONSERVATIVE:
		return 1;
	case ABX__SCALE_AGGRESSIVE:
		return max_int(ceil_div(replicas, 2), 1);
	case ABX__SCALE_DEFAULT:
		break;
	}
	return max_int(ceil_div(replicas, 4), 1);
}

static bool is_within(int64_t now_ms, int64_t then_ms, int seconds)
{
	return then_ms != 0 && now_ms - then_ms < (int64_t)seconds * 1000;
}

int64_t abx__scale_saturated_until(const abx__scale_policy *policy,
				   const abx__scale_state *state, int64_t now_ms)
{
	if (state->last_result <= ABX__SCALE_ENOUGH ||
	    !is_within(now_ms, state->last_attempt_ms, policy->saturation_cooldown_s))
		return 0;
	return state->last_attempt_ms + (int64_t)policy->saturation_cooldown_s * 1000;
}

void abx__scale_refused(abx__scale_state *state, int64_t now_ms,
			enum abx__scale_result result)
{
	state->last_attempt_ms = now_ms;
	state->last_result = result;
}

static bool is_proactive(const abx__scale_policy *policy, const abx__scale_input *in,
			 const abx__scale_state *state)
{
	if (policy->idle_threshold_s == 0 || state->idle_zero_since_ms == 0)
		return false;
	if (is_within(in->now_ms, state->idle_zero_since_ms, policy->idle_threshold_s))
		return false;
	return policy->quiet_window_s == 0 ||
	       is_within(in->now_ms, in->last_create_ms, policy->quiet_window_s);
}

static int target_of(const abx__scale_policy *policy, const abx__scale_input *in)
{
	int R = in->replicas;
	int D = in->running + in->waiting;
	int P = max_int(R - in->running - in->idle, 0);
	int U = max_int(in->waiting - in->idle - P, 0);
	int S = max_int(in->idle + P - in->waiting, 0);
	int ceiling = abx__scale_ceiling(policy->mode, D);
	int target = R + U +
		     min_int(max_int(abx__scale_buffer(policy->mode, D) - S, 0),
			     max_int(R, 1));

	if (target > ceiling)
		target = max_int(ceiling, R);
	if (in->member_max > 0)
		target = min_int(target, in->member_max);
	if (policy->max != ABX__NO_CAP)
		target = min_int(target, policy->max - (in->group_total - R));
	return target;
}

/* True when an attempt was made. */
static bool scale_up(const abx__scale_policy *policy, const abx__scale_input *in,
		     abx__scale_state *state, abx__scale_decision *d)
{
	int R = in->replicas;
	int P = max_int(R - in->running - in->idle, 0);
	bool reactive = in->waiting - in->idle - P > 0;
	int target;

	if (is_within(in->now_ms, state->last_up_ms, policy->cooldown_s) ||
	    abx__scale_saturated_until(policy, state, in->now_ms) || in->sibling_first)
		return false;
	if (!reactive && !is_proactive(policy, in, state))
		return false;
	target = target_of(policy, in);
	if (target <= R)
		return false;
	state->last_attempt_ms = in->now_ms;
	state->last_result = ABX__SCALE_ENOUGH;
	state->last_up_ms = in->now_ms;
	state->session = false;
	d->what = ABX__SCALE_UP;
	d->replicas = target;
	return true;
}

static void session_end(abx__scale_state *state, abx__scale_decision *d,
			enum abx__scale_session how)
{
	/* Stuck is worth telling by itself; the others only end something. */
	if (state->session)
		d->session = how;
	state->session = state->session && how == ABX__SESSION_STUCK;
}

static void scale_down(const abx__scale_policy *policy, const abx__scale_input *in,
		       abx__scale_state *state, abx__scale_decision *d)
{
	int R = in->replicas;
	int step;

	if (in->waiting > 0 && in->ready_idle == 0) {
		session_end(state, d, ABX__SESSION_ABORTED);
		return;
	}
	if (is_within(in->now_ms, state->last_down_ms, policy->stabilization_s))
		return;
	if (R == 0) {
		session_end(state, d, ABX__SESSION_COMPLETED);
		return;
	}
	if (in->group_total - policy->min <= 0) {
		session_end(state, d, ABX__SESSION_STUCK);
		return;
	}
	if (in->aged_idle == 0) {
		session_end(state, d, ABX__SESSION_COMPLETED);
		return;
	}
	step = min_int(abx__scale_step(policy->mode, R), in->aged_idle);
	step = min_int(step, R - max_int(in->member_min, 0));
	step = min_int(step, R - in->running);
	step = min_int(step, in->group_total - policy->min);
	if (step <= 0) {
		session_end(state, d, ABX__SESSION_STUCK);
		return;
	}
	d->what = ABX__SCALE_DOWN;
	d->replicas = R - step;
	d->session = state->session ? ABX__SESSION_NONE : ABX__SESSION_STARTED;
	state->session = true;
	state->last_down_ms = in->now_ms;
}

abx__scale_decision abx__scale_decide(const abx__scale_policy *policy,
				      const abx__scale_input *in, abx__scale_state *state)
{
	abx__scale_decision d = { .what = ABX__SCALE_NOTHING, .replicas = in->replicas };

	if (in->idle > 0)
		state->idle_zero_since_ms = 0;
	else if (state->idle_zero_since_ms == 0)
		state->idle_zero_since_ms = in->now_ms;
	if (!policy->enabled)
		return d;
	if (in->running > in->replicas) {
		d.what = ABX__SCALE_FIX;
		d.replicas = in->running;
		return d;
	}
	if (!scale_up(policy, in, state, &d))
		scale_down(policy, in, state, &d);
	return d;
}

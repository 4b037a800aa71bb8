/*
 * scale.c - the autoscaler at work: gathers what autoscale.c needs once a second per pool
 * of an enabled group, and writes what it decides into the env's document.
 */
#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "control/internal.h"
#include "control/route.h"

#define PASS_MS 1000
#define STUCK_EVERY_MS (5 * 60 * 1000)

static bool is_sibling(const abx__pool *pool, const abx__pool *other)
{
	return other != pool && pool->config.group && other->config.group &&
	       strcasecmp(pool->config.group, other->config.group) == 0;
}

int abx__pool_group_total(const abx__pool *pool)
{
	int sum = pool->config.replicas;

	for (const abx__pool *other = pool->env ? pool->env->pools : NULL; other;
	     other = other->next)
		if (is_sibling(pool, other))
			sum += other->config.replicas;
	return sum;
}

static bool sibling_goes_first(const abx__pool *pool, int64_t now)
{
	for (const abx__pool *other = pool->env->pools; other; other = other->next) {
		int64_t since = other->scale.idle_zero_since_ms;

		if (is_sibling(pool, other) &&
		    other->config.up_priority < pool->config.up_priority && since != 0 &&
		    now - since >= (int64_t)pool->config.policy.idle_threshold_s * 1000 &&
		    (other->config.max == ABX__NO_CAP ||
		     other->config.replicas < other->config.max))
			return true;
	}
	return false;
}

static int aged_idle(const abx__pool *pool, int64_t now)
{
	int count = 0;

	for (const abx__podrec *pod = pool->idle; pod; pod = pod->idle_next)
		if (now - pod->idle_since_ms >=
		    (int64_t)pool->config.policy.idle_timeout_s * 1000)
			count++;
	return count;
}

int64_t abx__pool_saturated_until_ms(const abx__pool *pool)
{
	return abx__scale_saturated_until(&pool->config.policy, &pool->scale,
					  abx__control_mono(pool->control));
}

static void tell_session(abx__pool *pool, enum abx__scale_session session, int64_t now)
{
	int replicas = pool->config.replicas;

	switch (session) {
	case ABX__SESSION_STARTED:
		abx__env_tell(pool->env, pool, false, ABX__EVENT_AUTO_DOWN_STARTED,
			      "ScaleDown", "giving up idle Pods, from %d replicas",
			      replicas);
		break;
	case ABX__SESSION_COMPLETED:
		abx__env_tell(pool->env, pool, false, ABX__EVENT_AUTO_DOWN_COMPLETED,
			      "ScaleDown", "at %d replicas no Pod is idle for too long",
			      replicas);
		break;
	case ABX__SESSION_STUCK:
		if (pool->stuck_told_ms && now - pool->stuck_told_ms < STUCK_EVERY_MS)
			break;
		pool->stuck_told_ms = now;
		abx__env_tell(pool->env, pool, true, ABX__EVENT_AUTO_DOWN_STUCK,
			      "ScaleDown",
			      "idle Pods stay: %d replicas are the least that the "
			      "bounds of the pool, its group and running sandboxes allow",
			      replicas);
		break;
	case ABX__SESSION_ABORTED:
	case ABX__SESSION_NONE:
		break;
	}
}

void abx__pool_scale_refused(abx__pool *pool, enum abx__scale_result result,
			     const char *why)
{
	char *copy = abx__strdup(why);

	abx__scale_refused(&pool->scale, abx__control_mono(pool->control), result);
	if (copy || !why) {
		abx__free(pool->scale_message);
		pool->scale_message = copy;
	}
	if (pool->env)
		abx__env_state_changed(pool->env);
}

/* The quota may grant less than was decided. False: nothing at all. */
static bool probe(abx__pool *pool, const abx__scale_input *in,
		  const abx__scale_state *before, abx__scale_decision *d)
{
	int granted = abx__quota_grant(pool, d->replicas);
	char why[320];

	if (granted >= d->replicas) {
		abx__free(pool->scale_message);
		pool->scale_message = NULL;
		abx__env_tell(pool->env, pool, false, ABX__EVENT_AUTO_UP, "ScaleUp",
			      "from %d to %d replicas for %d running and %d waiting",
			      in->replicas, d->replicas, in->running, in->waiting);
		return true;
	}
	snprintf(why, sizeof(why), "quota %.200s has room for %d of %d replicas",
		 pool->config.quota, granted, d->replicas);
	if (granted > in->replicas) {
		abx__pool_scale_refused(pool, ABX__SCALE_JUST_RIGHT, why);
		abx__env_tell(pool->env, pool, false, ABX__EVENT_AUTO_UP_PARTIAL,
			      "ScaleUp", "from %d to %d replicas: %s", in->replicas,
			      granted, why);
		d->replicas = granted;
		return true;
	}
	pool->scale.last_up_ms = before->last_up_ms;
	abx__pool_scale_refused(pool, ABX__SCALE_INSUFFICIENT, why);
	abx__env_tell(pool->env, pool, true, ABX__EVENT_AUTO_UP_REJECTED,
		      "ScaleUpAttempt", "stays at %d replicas: %s", in->replicas, why);
	return false;
}

static void pass(abx__pool *pool, int64_t now)
{
	const abx__scale_policy *policy = &pool->config.policy;
	abx__scale_input in = {
		.now_ms = now,
		.replicas = pool->config.replicas,
		.running = pool->counts[ABX__PODREC_RUNNING],
		.idle = pool->counts[ABX__PODREC_IDLE],
		.ready_idle = pool->ready_idle,
		.waiting = pool->waiting,
		.aged_idle = aged_idle(pool, now),
		.group_total = abx__pool_group_total(pool),
		.member_min = pool->config.min,
		.member_max = pool->config.max,
		.last_create_ms = pool->last_create_ms,
		.sibling_first = sibling_goes_first(pool, now),
	};
	abx__scale_state before = pool->scale;
	abx__scale_decision d = abx__scale_decide(policy, &in, &pool->scale);

	tell_session(pool, d.session, now);
	if (d.what == ABX__SCALE_NOTHING)
		return;
	abx__env_state_changed(pool->env);
	if (d.what == ABX__SCALE_UP && !probe(pool, &in, &before, &d))
		return;
	if (abx__write_scale(pool, d.replicas) < 0)
		abx__pool_scale_refused(pool, ABX__SCALE_FAILED,
					"the new size could not be written");
}

void abx__scale_fired(abx__timer *timer)
{
	abx__pool *pool = timer->owner;
	int64_t now = abx__control_mono(pool->control);

	if (pool->deleting || !pool->env || pool->control->state != ABX__CONTROL_RUNNING)
		return;
	/* The size it decided last is not in force yet. */
	if (!pool->scale_writing)
		pass(pool, now);
	abx__scale_arm(pool);
}

void abx__scale_arm(abx__pool *pool)
{
	if (pool->config.policy.enabled)
		abx__control_set_timer_sooner(pool->control, &pool->scale_timer,
					      abx__control_mono(pool->control) + PASS_MS);
	else
		abx__timers_clear(&pool->control->timers, &pool->scale_timer);
}

/*
 * pool.c - pools follow their env's document, and their Pods follow the pool: how many,
 * of which revision.
 *
 * Corrections happen in the pool's timer, once a tick however much changed. Claimed Pods
 * are never touched here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/internal.h"
#include "control/route.h"

#define CREATES_AT_ONCE 32
#define BACKOFF_FIRST_MS 1000
#define BACKOFF_LAST_MS 60000
#define SYNC_RETRY_MS 1000

abx__pool *abx__pool_find(const abx__control *control, const char *namespace_,
			  const char *name)
{
	char key[320];
	abx__pool *pool = NULL;

	if (snprintf(key, sizeof(key), "%s/%s", namespace_, name) < (int)sizeof(key))
		HASH_FIND_STR(control->pools, key, pool);
	return pool;
}

void abx__pool_problem(abx__pool *pool, const char *text)
{
	char *copy = abx__strdup(text);

	if (text && !copy)
		return;
	abx__free(pool->problem);
	pool->problem = copy;
}

void abx__pool_touch(abx__pool *pool, bool reconcile)
{
	pool->reconcile = pool->reconcile || reconcile;
	abx__control_set_timer_sooner(pool->control, &pool->timer, 0);
}

bool abx__pool_is_stale(const abx__pool *pool, const abx__podrec *pod)
{
	return pool->config.auto_update &&
	       strcmp(pod->revision, pool->config.revision) != 0;
}

void abx__pool_free(abx__pool *pool)
{
	if (!pool)
		return;
	if (pool->env)
		DL_DELETE(pool->env->pools, pool);
	if (pool->hh.tbl)
		HASH_DEL(pool->control->pools, pool);
	abx__meter_pool_gone(pool);
	abx__timers_release(&pool->control->timers, &pool->timer);
	abx__timers_release(&pool->control->timers, &pool->scale_timer);
	abx__pool_config_done(&pool->config);
	abx__free(pool->key);
	abx__free(pool->namespace_);
	abx__free(pool->env_name);
	abx__free(pool->problem);
	abx__free(pool->scale_message);
	abx__free(pool);
}

/* --- how many, of which revision --- */

static int max_unavailable(const abx__pool *pool)
{
	int64_t n = pool->config.max_unavailable;

	if (pool->config.max_unavailable_is_percent)
		n = n * abx__pool_wanted(pool) / 100;
	return n < 1 ? 1 : (int)n;
}

static bool is_removable(const abx__podrec *pod)
{
	return !pod->sandbox && !pod->deleting && !pod->want_delete &&
	       !pod->want_release &&
	       (pod->write == ABX__WRITE_NONE || pod->write == ABX__WRITE_PERSIST) &&
	       !pod->arming;
}

/* Unclaimed Pods that cannot take a claim now, and Pods that are missing. */
static int unavailable(const abx__pool *pool)
{
	int missing = abx__pool_wanted(pool) - (pool->total - pool->being_deleted);
	int count = missing > 0 ? missing : 0;

	for (const abx__podrec *pod = pool->pods; pod; pod = pod->next)
		if (!pod->deleting && !pod->sandbox && !pod->in_idle_list)
			count++;
	return count;
}

static void roll(abx__pool *pool)
{
	int budget = max_unavailable(pool) - unavailable(pool);
	abx__podrec *pod, *next;

	DL_FOREACH_SAFE(pool->pods, pod, next)
	{
		if (!is_removable(pod) || !abx__pool_is_stale(pool, pod))
			continue;
		/* One that is not available anyway costs nothing. */
		if (pod->in_idle_list && budget-- <= 0)
			continue;
		abx__pod_delete(pod);
	}
}

/* Lower goes first: what cannot serve, what is old, what has been idle longest. */
static int removal_rank(const abx__pool *pool, const abx__podrec *pod)
{
	if (pod->state == ABX__PODREC_FAILED)
		return 0;
	if (!pod->in_idle_list)
		return 1;
	return abx__pool_is_stale(pool, pod) ? 2 : 3;
}

/* Ready Pods of an enabled group may still be claimed for a while after they were marked.
 */
static bool is_protected(abx__pool *pool, abx__podrec *pod, int64_t now)
{
	if (!pool->config.policy.enabled || !pod->in_idle_list)
		return false;
	if (pod->doomed_at_ms == 0) {
		abx__meter_count(pool->control, ABX__METER_PROTECTED);
		pod->doomed_at_ms =
			now + (int64_t)pool->config.policy.protection_s * 1000;
	}
	if (pod->doomed_at_ms <= now)
		return false;
	abx__control_set_timer_sooner(pool->control, &pool->timer, pod->doomed_at_ms);
	pool->reconcile = true;
	return true;
}

static void shrink(abx__pool *pool, int surplus)
{
	int64_t now = abx__control_mono(pool->control);
	abx__podrec *pod, *next;

	for (int rank = 0; rank < 3 && surplus > 0; rank++) {
		DL_FOREACH_SAFE(pool->pods, pod, next)
		{
			if (surplus == 0)
				break;
			if (!is_removable(pod) || removal_rank(pool, pod) != rank)
				continue;
			surplus--;
			if (!is_protected(pool, pod, now))
				abx__pod_delete(pod);
		}
	}
	/* The idle list's end has waited longest. */
	while (surplus > 0 && pool->idle) {
		abx__podrec *oldest = pool->idle->idle_prev;

		for (; oldest && surplus > 0; surplus--) {
			abx__podrec *newer =
				oldest == pool->idle ? NULL : oldest->idle_prev;

			if (!is_protected(pool, oldest, now))
				abx__pod_delete(oldest);
			oldest = newer;
		}
		break;
	}
}

static void forgive(abx__pool *pool)
{
	for (abx__podrec *pod = pool->idle; pod; pod = pod->idle_next)
		pod->doomed_at_ms = 0;
}

static void create_failed(abx__pool *pool, int64_t now)
{
	pool->create_backoff_ms =
		pool->create_backoff_ms ? 2 * pool->create_backoff_ms : BACKOFF_FIRST_MS;
	if (pool->create_backoff_ms > BACKOFF_LAST_MS)
		pool->create_backoff_ms = BACKOFF_LAST_MS;
	pool->create_after_ms = now + pool->create_backoff_ms;
}

static void grow(abx__pool *pool, int missing)
{
	int64_t now = abx__control_mono(pool->control);

	if (pool->create_after_ms > now) {
		abx__control_set_timer_sooner(pool->control, &pool->timer,
					      pool->create_after_ms);
		pool->reconcile = true;
		return;
	}
	while (missing-- > 0 && pool->creating < CREATES_AT_ONCE) {
		if (abx__pod_create(pool) < 0) {
			create_failed(pool, now);
			abx__control_set_timer_sooner(pool->control, &pool->timer,
						      pool->create_after_ms);
			pool->reconcile = true;
			return;
		}
	}
}

static void reconcile(abx__pool *pool)
{
	int wanted = abx__pool_wanted(pool);
	int alive;

	roll(pool);
	alive = pool->total - pool->being_deleted;
	if (alive > wanted)
		shrink(pool, alive - wanted);
	else
		forgive(pool);
	/* A quota counts Pods until they are gone; elsewhere the next may come at once.
	 */
	alive = pool->config.quota ? pool->total : pool->total - pool->being_deleted;
	if (alive < wanted)
		grow(pool, wanted - alive);
}

static void on_pool_timer(abx__timer *timer)
{
	abx__pool *pool = timer->owner;
	bool wanted = pool->reconcile;

	pool->reconcile = false;
	if (pool->deleting && !pool->pods) {
		abx__pool_free(pool);
		return;
	}
	if (pool->config.quota && pool->total < pool->quota_total)
		(void)abx__quota_evaluate(pool);
	pool->quota_total = pool->total;
	if (wanted && !pool->deleting && pool->control->synced &&
	    pool->control->state != ABX__CONTROL_CLOSING)
		reconcile(pool);
	abx__pool_evaluate(pool);
}

void abx__pool_take_down(abx__pool *pool)
{
	abx__podrec *pod, *next;

	pool->deleting = true;
	pool->env = NULL;
	/* What it held is for those who share its quota. */
	(void)abx__quota_evaluate(pool);
	abx__timers_clear(&pool->control->timers, &pool->scale_timer);
	abx__claims_drop_pool(pool);
	DL_FOREACH_SAFE(pool->pods, pod, next)
	{
		if (pod->sandbox && pod->sandbox->claim) {
			ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

			abx__error_set(&err, ABX_ENOTFOUND, "pool %s was deleted",
				       pool->config.name);
			abx__claim_fail(pod->sandbox->claim, ABX_ENOTFOUND, err,
					ABX__STOP_CANCELED, NULL);
		} else if (pod->state == ABX__PODREC_RUNNING) {
			abx__pod_release(pod, ABX__STOP_RELEASED, "EnvDeleted", NULL);
		} else {
			abx__pod_delete(pod);
		}
	}
	abx__pool_touch(pool, true);
}

/* --- following the env's document --- */

static int pool_new(abx__env *env, const char *name, abx__pool **ret)
{
	abx__control *control = env->control;
	abx__pool *pool = abx__calloc(1, sizeof(*pool));

	if (!pool)
		return ABX_ENOMEM;
	pool->control = control;
	pool->namespace_ = abx__strdup(env->object.namespace_);
	pool->env_name = abx__strdup(env->object.name);
	pool->key = pool->namespace_ ? abx__control_key(pool->namespace_, name) : NULL;
	if (pool->key && pool->env_name &&
	    abx__timers_reserve(&control->timers, &pool->timer, on_pool_timer, pool) ==
		    ABX_OK &&
	    abx__timers_reserve(&control->timers, &pool->scale_timer, abx__scale_fired,
				pool) == ABX_OK)
		HASH_ADD_KEYPTR(hh, control->pools, pool->key, strlen(pool->key), pool);
	if (!pool->hh.tbl) {
		abx__pool_free(pool);
		return ABX_ENOMEM;
	}
	*ret = pool;
	return ABX_OK;
}

/* What is new of it. At start nothing is. */
static void tell_change(abx__pool *pool, bool fresh, int replicas, const char *revision)
{
	const abx__pool_config *c = &pool->config;

	if (pool->control->state != ABX__CONTROL_RUNNING)
		return;
	if (fresh) {
		abx__env_tell(pool->env, pool, false, ABX__EVENT_POOL_CREATED, NULL,
			      "pool %s of revision %s with %d replicas", c->name,
			      c->revision, c->replicas);
		return;
	}
	if (c->replicas != replicas)
		abx__env_tell(pool->env, pool, false,
			      c->replicas > replicas ? ABX__EVENT_SCALE_UP
						     : ABX__EVENT_SCALE_DOWN,
			      NULL, "from %d to %d replicas", replicas, c->replicas);
	if (strcmp(c->revision, revision) != 0)
		abx__env_tell(pool->env, pool, false, ABX__EVENT_ROLL_STARTED, NULL,
			      c->auto_update
				      ? "revision %s follows %s; idle Pods are replaced"
				      : "revision %s follows %s; Pods are replaced as "
					"they end, because autoUpdate is off",
			      c->revision, revision);
}

static int apply(abx__env *env, abx__pool_config *config)
{
	abx__pool *pool =
		abx__pool_find(env->control, env->object.namespace_, config->name);

	bool fresh = !pool || pool->deleting;
	char revision[ABX__REVISION_SIZE];
	int replicas;

	if (!pool && pool_new(env, config->name, &pool) < 0)
		return ABX_ENOMEM;
	abx__str_copy(revision, sizeof(revision), pool->config.revision);
	replicas = pool->config.replicas;
	if (pool->env)
		DL_DELETE(pool->env->pools, pool);
	pool->env = env;
	pool->deleting = false;
	DL_APPEND(env->pools, pool);
	abx__pool_config_done(&pool->config);
	pool->config = *config;
	*config = (abx__pool_config){ 0 };
	pool->create_after_ms = 0;
	if (fresh) {
		abx__pool_recall(pool);
		pool->admitted = 0;
	}
	tell_change(pool, fresh, replicas, revision);
	if (abx__quota_evaluate(pool) < 0)
		return ABX_ENOMEM;
	abx__pool_touch(pool, true);
	abx__scale_arm(pool);
	return ABX_OK;
}

static bool is_member(const char *name, const abx__pool_config *configs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (configs[i].name && strcmp(configs[i].name, name) == 0)
			return true;
	return false;
}

void abx__env_sync(abx__env *env)
{
	abx__control *control = env->control;
	json_object *spec = NULL, *ref = NULL, *name = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__template *t = NULL;
	abx__pool_config *configs = NULL;
	abx__pool *pool, *next;
	size_t count = 0;
	int r = ABX_ENOTFOUND;

	if (json_object_object_get_ex(env->object.doc, "spec", &spec) &&
	    json_object_object_get_ex(spec, "templateRef", &ref) &&
	    json_object_object_get_ex(ref, "name", &name))
		t = abx__template_find(control, json_object_get_string(name));
	if (t)
		r = abx__members_build(control, env->object.name, env->object.doc,
				       t->object.doc, &configs, &count, &err);
	if (r < 0) {
		abx__env_tell(env, NULL, true, ABX__EVENT_NOT_CARRIED_OUT, NULL, "%s",
			      t ? abx_error_message(err) : "its template is missing");
		if (r == ABX_ENOMEM)
			abx__control_set_timer_sooner(control, &env->timer,
						      abx__control_mono(control) +
							      SYNC_RETRY_MS);
		return;
	}
	DL_FOREACH_SAFE(env->pools, pool, next)
	{
		if (is_member(pool->config.name, configs, count))
			continue;
		abx__env_tell(env, pool, false, ABX__EVENT_POOL_DELETED, NULL,
			      "pool %s and its Pods are deleted", pool->config.name);
		DL_DELETE(env->pools, pool);
		abx__pool_take_down(pool);
	}
	for (size_t i = 0; i < count; i++)
		if (apply(env, &configs[i]) < 0)
			abx__control_set_timer_sooner(control, &env->timer,
						      abx__control_mono(control) +
							      SYNC_RETRY_MS);
	abx__members_free(configs, count);
	abx__env_evaluate(env);
}

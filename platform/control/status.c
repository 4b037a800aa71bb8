/*
 * status.c - what pools and envs say of themselves (crds.md, sections 2.4, 2.5 and 3).
 * Conditions are evaluated when something changes, so that their transition times are
 * true; counts are read when asked for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/internal.h"
#include "control/route.h"

json_object *abx__time_field(int64_t wall_ms)
{
	char text[ABX__RFC3339_SIZE];

	abx__rfc3339_format(wall_ms, text);
	return json_object_new_string(text);
}

void abx__condition_set(abx__condition *c, int64_t wall_ms, bool value,
			const char *reason)
{
	if (!c->known || c->value != value)
		c->since_ms = wall_ms;
	c->known = true;
	c->value = value;
	c->reason = reason;
}

static void add_condition(json_object *list, const char *type, const abx__condition *c,
			  const char *message)
{
	json_object *obj = json_object_new_object();

	if (!c->known) {
		json_object_put(obj);
		return;
	}
	abx__field_set_str(obj, "type", type);
	abx__field_set_str(obj, "status", c->value ? "True" : "False");
	abx__field_set_str(obj, "reason", c->reason);
	if (message)
		abx__field_set_str(obj, "message", message);
	abx__field_take(obj, "lastTransitionTime", abx__time_field(c->since_ms));
	if (json_object_array_add(list, obj) < 0)
		json_object_put(obj);
}

/* --- pools --- */

static int unavailable_idle(const abx__pool *pool)
{
	return pool->counts[ABX__PODREC_IDLE] - pool->ready_idle;
}

static const char *phase_of(const abx__pool *pool)
{
	if (pool->deleting)
		return "Terminating";
	if (pool->config.replicas == 0 && pool->total == 0)
		return "Pending";
	if (pool->total < pool->config.replicas)
		return "ScalingUp";
	if (pool->total > pool->config.replicas)
		return "ScalingDown";
	if (unavailable_idle(pool) > 0 || pool->counts[ABX__PODREC_FAILED] > 0)
		return "Degraded";
	return "Ready";
}

static int updated(const abx__pool *pool)
{
	int count = 0;

	for (const abx__podrec *pod = pool->pods; pod; pod = pod->next)
		if (!pod->deleting && strcmp(pod->revision, pool->config.revision) == 0)
			count++;
	return count;
}

/* Of all Pods when they agree; "" while they are mixed. */
static const char *current_revision(const abx__pool *pool)
{
	const char *revision = NULL;

	for (const abx__podrec *pod = pool->pods; pod; pod = pod->next) {
		if (pod->deleting)
			continue;
		if (revision && strcmp(revision, pod->revision) != 0)
			return "";
		revision = pod->revision;
	}
	return revision ? revision : pool->config.revision;
}

static bool is_rolling(const abx__pool *pool)
{
	return pool->config.replicas > 0 &&
	       strcmp(current_revision(pool), pool->config.revision) != 0;
}

/* Failed Pods are told of once, and that they are mended. */
static void tell_health(abx__pool *pool)
{
	int told = pool->told;

	if (pool->counts[ABX__PODREC_FAILED] > 0)
		pool->told = ABX__TOLD_DEGRADED;
	else if (pool->config.replicas > 0 && strcmp(phase_of(pool), "Ready") == 0)
		pool->told = ABX__TOLD_READY;
	if ((int)pool->told == told)
		return;
	if (pool->told == ABX__TOLD_DEGRADED)
		abx__env_tell(pool->env, pool, true, ABX__EVENT_DEGRADED, NULL,
			      "Pods fail: %s", pool->problem ? pool->problem : "");
	else
		abx__env_tell(pool->env, pool, false,
			      told == ABX__TOLD_DEGRADED ? ABX__EVENT_POOL_RECOVERED
							 : ABX__EVENT_POOL_READY,
			      NULL, "all Pods of pool %s are healthy", pool->config.name);
}

static void tell_roll(abx__pool *pool)
{
	bool rolling = is_rolling(pool);

	if (pool->rolling && !rolling)
		abx__env_tell(pool->env, pool, false, ABX__EVENT_ROLL_COMPLETED, NULL,
			      "every Pod has revision %s", pool->config.revision);
	pool->rolling = rolling;
}

void abx__pool_evaluate(abx__pool *pool)
{
	int64_t wall = abx__control_wall(pool->control);
	bool unhealthy = unavailable_idle(pool) > 0;
	bool failed = pool->counts[ABX__PODREC_FAILED] > 0;
	bool up = pool->total < pool->config.replicas;
	bool down = pool->total > pool->config.replicas;

	abx__condition_set(&pool->available, wall, pool->ready_idle > 0,
			   pool->ready_idle > 0 ? "IdlePodsAvailable"
						: "NoIdlePodsAvailable");
	abx__condition_set(&pool->scaling, wall, up || down,
			   up     ? "ScalingUp"
			   : down ? "ScalingDown"
				  : "ReplicasReady");
	abx__condition_set(&pool->degraded, wall, unhealthy || failed,
			   unhealthy && failed ? "UnhealthyAndFailedPods"
			   : unhealthy         ? "UnhealthyIdlePods"
			   : failed            ? "FailedPodsPresent"
					       : "AllPodsHealthy");
	tell_health(pool);
	tell_roll(pool);
	if (pool->env)
		abx__env_evaluate(pool->env);
}

/* Kept by the monotonic clock, told by the wall clock. */
static void add_past(json_object *obj, const char *key, const abx__control *control,
		     int64_t mono)
{
	if (mono != 0)
		abx__field_take(obj, key,
				abx__time_field(abx__control_wall(control) -
						(abx__control_mono(control) - mono)));
}

static json_object *scaling_status(const abx__pool *pool)
{
	static const char *const results[] = {
		[ABX__SCALE_ENOUGH] = "Enough",
		[ABX__SCALE_JUST_RIGHT] = "JustRight",
		[ABX__SCALE_INSUFFICIENT] = "Insufficient",
		[ABX__SCALE_FAILED] = "Failed",
	};
	const abx__scale_state *s = &pool->scale;
	json_object *obj = json_object_new_object();

	add_past(obj, "lastScaleUpTime", pool->control, s->last_up_ms);
	add_past(obj, "lastScaleDownTime", pool->control, s->last_down_ms);
	add_past(obj, "idleZeroSince", pool->control, s->idle_zero_since_ms);
	add_past(obj, "lastScaleUpAttemptTime", pool->control, s->last_attempt_ms);
	if (s->last_result != ABX__SCALE_NEVER)
		abx__field_set_str(obj, "lastScaleUpAttemptResult",
				   results[s->last_result]);
	if (pool->scale_message)
		abx__field_set_str(obj, "scaleUpErrorMessage", pool->scale_message);
	if (pool->env)
		abx__field_set_int(obj, "observedGeneration",
				   abx__field_int(abx__field_object(pool->env->object.doc,
								    "metadata"),
						  "generation", 1));
	return obj;
}

static const char *admission_text(const abx__pool *pool, char *text, size_t size)
{
	if (abx__pool_wanted(pool) == pool->config.replicas)
		return NULL;
	snprintf(text, size, "quota %.160s has room for %d of %d replicas",
		 pool->config.quota, pool->admitted, pool->config.replicas);
	return text;
}

/* How its Pods of each phase are selected. */
static json_object *phase_selectors(const char *all)
{
	static const char *const phases[] = { ABX__PHASE_IDLE, ABX__PHASE_RUNNING,
					      ABX__PHASE_STARTING, ABX__PHASE_STOPPING,
					      ABX__PHASE_FAILED };
	json_object *map = json_object_new_object();
	char text[256];

	abx__field_set_str(map, "all", all);
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		snprintf(text, sizeof(text), "%s,%s=%s", all, ABX__LABEL_PHASE,
			 phases[i]);
		abx__field_set_str(map, phases[i], text);
	}
	return map;
}

static json_object *pool_status(const abx__pool *pool)
{
	json_object *status = json_object_new_object();
	json_object *conditions = json_object_new_array();
	char selector[160], text[256];

	abx__field_set_str(status, "phase", phase_of(pool));
	abx__field_set_int(status, "idleReplicas", pool->counts[ABX__PODREC_IDLE]);
	abx__field_set_int(status, "unavailableIdleReplicas", unavailable_idle(pool));
	abx__field_set_int(status, "runningReplicas", pool->counts[ABX__PODREC_RUNNING]);
	abx__field_set_int(status, "startingReplicas",
			   pool->counts[ABX__PODREC_STARTING]);
	abx__field_set_int(status, "stoppingReplicas",
			   pool->counts[ABX__PODREC_STOPPING]);
	abx__field_set_int(status, "failedReplicas", pool->counts[ABX__PODREC_FAILED]);
	abx__field_set_int(status, "pendingRequests", pool->waiting);
	abx__field_set_str(status, "updateRevision", pool->config.revision);
	abx__field_set_str(status, "currentRevision", current_revision(pool));
	abx__field_set_int(status, "updatedReplicas", updated(pool));
	snprintf(selector, sizeof(selector), "%s=%s", ABX__LABEL_POOL, pool->config.name);
	abx__field_set_str(status, "selector", selector);
	abx__field_take(status, "phaseSelectors", phase_selectors(selector));
	add_condition(conditions, "Available", &pool->available, NULL);
	add_condition(conditions, "Scaling", &pool->scaling, NULL);
	add_condition(conditions, "Degraded", &pool->degraded, pool->problem);
	add_condition(conditions, "Admitted", &pool->admitted_cond,
		      admission_text(pool, text, sizeof(text)));
	abx__field_take(status, "conditions", conditions);
	if (pool->config.policy.enabled)
		abx__field_take(status, "autoscaling", scaling_status(pool));
	return status;
}

static void share_all(json_object *into, json_object *map)
{
	if (!map)
		return;
	json_object_object_foreach(map, key, value)
	{
		abx__field_share(into, key, value);
	}
}

static json_object *pool_metadata(const abx__pool *pool)
{
	const abx__pool_config *c = &pool->config;
	json_object *meta = json_object_new_object();
	json_object *labels = json_object_new_object();
	json_object *annotations = json_object_new_object();

	abx__field_set_str(meta, "name", c->name);
	abx__field_set_str(meta, "namespace", pool->namespace_);
	share_all(labels, c->labels);
	share_all(annotations, c->annotations);
	abx__field_set_str(labels, ABX__LABEL_ENV, pool->env_name);
	abx__field_set_str(labels, ABX__LABEL_TEMPLATE_HASH, c->revision);
	if (c->group)
		abx__field_set_str(labels, ABX__LABEL_SCALING_GROUP, c->group);
	if (c->team)
		abx__field_set_str(labels, ABX__LABEL_TEAM, c->team);
	if (c->user)
		abx__field_set_str(labels, ABX__LABEL_USER, c->user);
	abx__field_set_str(annotations, ABX__ANNOTATION_TEMPLATE_NAME, c->template_);
	if (c->template_version)
		abx__field_set_str(annotations, ABX__ANNOTATION_TEMPLATE_VERSION,
				   c->template_version);
	abx__field_take(meta, "creationTimestamp", abx__time_field(pool->created_ms));
	if (pool->last_create_ms)
		add_past(annotations, ABX__ANNOTATION_LAST_CREATE, pool->control,
			 pool->last_create_ms);
	abx__field_take(meta, "labels", labels);
	abx__field_take(meta, "annotations", annotations);
	return meta;
}

json_object *abx__pool_document(const abx__pool *pool)
{
	json_object *doc = json_object_new_object();
	json_object *spec = NULL;

	abx__field_set_str(doc, "apiVersion", ABX__API_VERSION);
	abx__field_set_str(doc, "kind", ABX__KIND_POOL);
	abx__field_take(doc, "metadata", pool_metadata(pool));
	if (json_object_deep_copy(pool->config.spec, &spec, NULL) == 0)
		abx__field_take(doc, "spec", spec);
	abx__field_take(doc, "status", pool_status(pool));
	return doc;
}

static int find_pool(abx__control *control, const char *namespace_, const char *env,
		     const char *name, abx__pool **ret, abx_error **reterr)
{
	abx__pool *pool = abx__pool_find(control, namespace_, name);

	if (env && !abx__env_find(control, namespace_, env))
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "env %s does not exist in namespace %s", env,
				      namespace_);
	if (!pool || (env && strcmp(pool->env_name, env) != 0))
		return abx__error_set(reterr, ABX_ENOTFOUND, "pool %s does not exist%s%s",
				      name, env ? " in env " : "", env ? env : "");
	*ret = pool;
	return ABX_OK;
}

int abx__control_pool_get(abx__control *control, const char *namespace_, const char *env,
			  const char *name, json_object **ret, abx_error **reterr)
{
	abx__pool *pool = NULL;
	json_object *doc;
	int r = find_pool(control, namespace_, env, name, &pool, reterr);

	if (r < 0)
		return r;
	doc = abx__pool_document(pool);
	if (!doc)
		return abx__error_nomem(reterr);
	*ret = doc;
	return ABX_OK;
}

static int by_key(const abx__pool *a, const abx__pool *b)
{
	return strcmp(a->key, b->key);
}

int abx__control_pool_list(abx__control *control, const char *namespace_, const char *env,
			   json_object **ret, abx_error **reterr)
{
	json_object *list;

	if (env && !abx__env_find(control, namespace_, env))
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "env %s does not exist in namespace %s", env,
				      namespace_);
	list = json_object_new_array();
	HASH_SORT(control->pools, by_key);
	for (const abx__pool *pool = control->pools; list && pool; pool = pool->hh.next) {
		if ((namespace_ && strcmp(pool->namespace_, namespace_) != 0) ||
		    (env && strcmp(pool->env_name, env) != 0))
			continue;
		abx__array_take(&list, abx__pool_document(pool));
	}
	if (!list)
		return abx__error_nomem(reterr);
	*ret = list;
	return ABX_OK;
}

static void add_counts(const abx__pool *pool, abx__pool_counts *sum)
{
	sum->replicas += pool->config.replicas;
	sum->idle += pool->counts[ABX__PODREC_IDLE];
	sum->unavailable_idle += unavailable_idle(pool);
	sum->running += pool->counts[ABX__PODREC_RUNNING];
	sum->starting += pool->counts[ABX__PODREC_STARTING];
	sum->stopping += pool->counts[ABX__PODREC_STOPPING];
	sum->failed += pool->counts[ABX__PODREC_FAILED];
	sum->pending += pool->waiting;
}

int abx__control_counts(abx__control *control, const char *namespace_, const char *env,
			const char *name, abx__pool_counts *ret, abx_error **reterr)
{
	abx__pool_counts sum = { 0 };
	abx__pool *pool = NULL;
	const abx__env *e;
	int r;

	if (name) {
		r = find_pool(control, namespace_, env, name, &pool, reterr);
		if (r < 0)
			return r;
		add_counts(pool, &sum);
	} else {
		e = abx__env_find(control, namespace_, env);
		if (!e)
			return abx__error_set(reterr, ABX_ENOTFOUND,
					      "env %s does not exist in namespace %s",
					      env, namespace_);
		for (pool = e->pools; pool; pool = pool->next)
			add_counts(pool, &sum);
	}
	*ret = sum;
	return ABX_OK;
}

/* --- envs --- */

static bool is_saturated(const abx__pool *pool)
{
	return abx__pool_saturated_until_ms(pool) != 0;
}

/* A member the document names and no pool stands for yet. */
static bool has_missing(const abx__env *env)
{
	json_object *members = abx__members_local(env->control, env->object.doc);
	size_t count = 0;

	for (const abx__pool *pool = env->pools; pool; pool = pool->next)
		count++;
	return count < abx__array_count(members);
}

void abx__env_evaluate(abx__env *env)
{
	int64_t wall = abx__control_wall(env->control);
	bool saturated = false, rolling = false;

	for (const abx__pool *pool = env->pools; pool; pool = pool->next) {
		saturated = saturated || is_saturated(pool);
		rolling = rolling || is_rolling(pool);
	}
	if (has_missing(env))
		abx__condition_set(&env->ready, wall, false, "Missing");
	else if (!env->pools)
		abx__condition_set(&env->ready, wall, false, "NoMembers");
	else if (saturated)
		abx__condition_set(&env->ready, wall, false, "Saturated");
	else
		abx__condition_set(&env->ready, wall, true, "AllMembersActive");
	abx__condition_set(&env->consistent, wall, !rolling,
			   rolling ? "RolloutInProgress" : "TemplatesMatch");
}

static int group_max_of(const abx__pool *pool)
{
	return pool->config.policy.enabled ? pool->config.policy.max : ABX__NO_CAP;
}

static json_object *observed_member(const abx__pool *pool)
{
	const abx__pool_config *c = &pool->config;
	json_object *m = json_object_new_object();
	int cap = abx__route_cap(c->max, group_max_of(pool),
				 abx__pool_group_total(pool) - c->replicas);
	json_object *resources = NULL;

	abx__field_set_str(m, "name", c->name);
	abx__field_set_str(m, "state", is_saturated(pool) ? "Saturated" : "Active");
	abx__field_set_int(m, "idleCount", pool->counts[ABX__PODREC_IDLE]);
	abx__field_set_int(m, "runningCount", pool->counts[ABX__PODREC_RUNNING]);
	abx__field_set_int(m, "desiredReplicas", c->replicas);
	abx__field_set_int(m, "currentReplicas", pool->total);
	abx__field_set_int(m, "pendingRequests", pool->waiting);
	abx__field_set_int(m, "updatedReplicas", updated(pool));
	abx__field_set_str(m, "updateRevision", c->revision);
	if (c->template_version)
		abx__field_set_str(m, "templateVersion", c->template_version);
	if (c->instance_type) {
		abx__field_set_str(m, "instanceType", c->instance_type);
		abx__field_set_int(m, "multiplier", c->multiplier);
	}
	if (c->group)
		abx__field_set_str(m, "scalingGroup", c->group);
	abx__field_set_bool(m, "autoscalingEnabled", c->policy.enabled);
	if (c->policy.enabled && cap != ABX__NO_CAP)
		abx__field_set_int(m, "scaleUpHeadroom",
				   cap > c->replicas ? cap - c->replicas : 0);
	if (is_saturated(pool))
		abx__field_take(m, "saturatedUntil",
				abx__time_field(abx__control_wall(pool->control) +
						abx__pool_saturated_until_ms(pool) -
						abx__control_mono(pool->control)));
	resources = abx__field_object(
		json_object_array_get_idx(
			abx__field_array(abx__field_object(c->pod_template, "spec"),
					 "containers"),
			0),
		"resources");
	abx__field_share(m, "effectiveResources", resources);
	return m;
}

static json_object *group_sums(const abx__env *env)
{
	json_object *list = json_object_new_array();
	json_object *groups = abx__field_array(
		abx__field_object(abx__field_object(env->object.doc, "spec"),
				  "autoscaling"),
		"groups");

	for (size_t i = 0; i < abx__array_count(groups); i++) {
		const char *name =
			abx__field_str(json_object_array_get_idx(groups, i), "name");
		json_object *sum = json_object_new_object();
		int idle = 0, running = 0, desired = 0;

		for (const abx__pool *pool = env->pools; pool; pool = pool->next) {
			if (!pool->config.group ||
			    strcasecmp(pool->config.group, name) != 0)
				continue;
			idle += pool->counts[ABX__PODREC_IDLE];
			running += pool->counts[ABX__PODREC_RUNNING];
			desired += pool->config.replicas;
		}
		abx__field_set_str(sum, "name", name);
		abx__field_set_int(sum, "totalIdle", idle);
		abx__field_set_int(sum, "totalRunning", running);
		abx__field_set_int(sum, "totalDesired", desired);
		json_object_array_add(list, sum);
	}
	return list;
}

static json_object *cluster_status(const abx__env *env)
{
	json_object *segment = json_object_new_object();
	json_object *members = json_object_new_array();
	json_object *list = json_object_new_array();

	for (const abx__pool *pool = env->pools; pool; pool = pool->next)
		json_object_array_add(members, observed_member(pool));
	abx__field_set_str(segment, "clusterID", env->control->cluster_id);
	abx__field_set_bool(segment, "isLocal", true);
	abx__field_take(segment, "observedMembers", members);
	abx__field_take(segment, "lastSnapshotTime",
			abx__time_field(abx__control_wall(env->control)));
	json_object_array_add(list, segment);
	return list;
}

static json_object *env_status(const abx__env *env)
{
	json_object *status = json_object_new_object();
	json_object *conditions = json_object_new_array();
	abx__pool_counts sum = { 0 };
	int members = 0;

	for (const abx__pool *pool = env->pools; pool; pool = pool->next) {
		add_counts(pool, &sum);
		members++;
	}
	add_condition(conditions, "Ready", &env->ready, NULL);
	add_condition(conditions, "TemplateConsistent", &env->consistent, NULL);
	abx__field_take(status, "conditions", conditions);
	abx__field_take(status, "clusters", cluster_status(env));
	abx__field_take(status, "scalingGroups", group_sums(env));
	abx__field_set_int(status, "memberCount", members);
	abx__field_set_int(status, "desiredReplicas", sum.replicas);
	abx__field_set_int(status, "runningReplicas", sum.running);
	abx__field_set_int(status, "idleReplicas", sum.idle);
	return status;
}

json_object *abx__env_document(abx__env *env)
{
	json_object *doc = abx__object_document(&env->object, ABX__KIND_ENV);

	abx__env_evaluate(env);
	if (doc)
		abx__field_take(doc, "status", env_status(env));
	return doc;
}

json_object *abx__template_document(const abx__template *t)
{
	json_object *doc = abx__object_document(&t->object, ABX__KIND_TEMPLATE);
	json_object *status = json_object_new_object();

	abx__field_take(status, "conditions", json_object_new_array());
	if (doc)
		abx__field_take(doc, "status", status);
	else
		json_object_put(status);
	return doc;
}

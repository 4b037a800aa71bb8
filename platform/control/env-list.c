/*
 * env-list.c - envs listed: whole documents, and the few lines of each that a list shows.
 * A summary is made without copying the document, so that ten thousand of them are a
 * matter of milliseconds.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/internal.h"

int abx__control_env_list(abx__control *control, const char *namespace_,
			  json_object **ret, abx_error **reterr)
{
	json_object *list = json_object_new_array();

	abx__envs_sort(control);
	for (abx__env *env = control->envs; list && env; env = env->hh.next) {
		if (namespace_ && strcmp(env->object.namespace_, namespace_) != 0)
			continue;
		abx__array_take(&list, abx__env_document(env));
	}
	if (!list)
		return abx__error_nomem(reterr);
	*ret = list;
	return ABX_OK;
}

static bool is_his(const abx__env *env, const char *team, const char *user)
{
	if (!team && !user)
		return true;
	return (!env->team || abx__str_eq(env->team, team)) &&
	       (!env->user || abx__str_eq(env->user, user));
}

static int put_str(json_object *o, const char *key, const char *value)
{
	return value ? abx__field_set_str(o, key, value) : ABX_OK;
}

/* Zero counts are left out. */
static int put_count(json_object *o, const char *key, int64_t n)
{
	return n ? abx__field_set_int(o, key, n) : ABX_OK;
}

static int put_names(json_object *o, const abx__env *env)
{
	json_object *spec = abx__field_object(env->object.doc, "spec");
	json_object *labels = abx__field_object(
		abx__field_object(env->object.doc, "metadata"), "labels");
	const char *sizing = abx__field_str(labels, ABX__LABEL_POOL_SIZING);

	if (put_str(o, "name", env->object.name) < 0 ||
	    put_str(o, "namespace", env->object.namespace_) < 0 ||
	    put_str(o, "team", env->team) < 0 || put_str(o, "user", env->user) < 0 ||
	    abx__field_take(o, "createdAt", abx__time_field(env->object.created_ms)) <
		    0 ||
	    put_str(o, "templateName",
		    abx__field_str(abx__field_object(spec, "templateRef"), "name")) < 0 ||
	    put_str(o, "mode", abx__field_str(spec, "mode")) < 0)
		return ABX_ENOMEM;
	return put_str(o, "poolSizing", sizing ? sizing : "either");
}

static int put_counts(json_object *o, const abx__env *env)
{
	json_object *groups = abx__field_array(
		abx__field_object(abx__field_object(env->object.doc, "spec"),
				  "autoscaling"),
		"groups");
	int64_t members = 0, desired = 0, running = 0, idle = 0, enabled = 0;

	for (const abx__pool *pool = env->pools; pool; pool = pool->next) {
		members++;
		desired += pool->config.replicas;
		running += pool->counts[ABX__PODREC_RUNNING];
		idle += pool->counts[ABX__PODREC_IDLE];
	}
	for (size_t i = 0; i < abx__array_count(groups); i++)
		enabled += abx__field_bool(json_object_array_get_idx(groups, i),
					   "enabled", false);
	if (put_count(o, "memberCount", members) < 0 ||
	    put_count(o, "desiredReplicas", desired) < 0 ||
	    put_count(o, "runningReplicas", running) < 0 ||
	    put_count(o, "idleReplicas", idle) < 0 ||
	    put_count(o, "scalingGroupCount", (int64_t)abx__array_count(groups)) < 0)
		return ABX_ENOMEM;
	return put_count(o, "autoscalingEnabledGroupCount", enabled);
}

static json_object *summary(abx__env *env)
{
	json_object *o = json_object_new_object();

	abx__env_evaluate(env);
	if (o && put_names(o, env) == ABX_OK && put_counts(o, env) == ABX_OK &&
	    abx__field_set_bool(o, "ready", env->ready.known && env->ready.value) ==
		    ABX_OK)
		return o;
	json_object_put(o);
	return NULL;
}

int abx__control_env_summaries(abx__control *control, const char *namespace_,
			       const char *team, const char *user, size_t offset,
			       size_t limit, json_object **ret, size_t *ret_total,
			       abx_error **reterr)
{
	ABX_CLEANUP(abx__json_putp) json_object *list = json_object_new_array();
	size_t total = 0;

	abx__envs_sort(control);
	for (abx__env *env = control->envs; list && env; env = env->hh.next) {
		if ((namespace_ && strcmp(env->object.namespace_, namespace_) != 0) ||
		    !is_his(env, team, user))
			continue;
		if (total++ < offset || json_object_array_length(list) >= limit)
			continue;
		abx__array_take(&list, summary(env));
	}
	if (!list)
		return abx__error_nomem(reterr);
	*ret = abx_take(list);
	*ret_total = total;
	return ABX_OK;
}

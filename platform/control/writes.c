/*
 * writes.c - every change of a template's or an env's document, one at a time.
 *
 * A write makes its document when its turn comes, from the state all earlier ones left,
 * so checks across objects (an env's template exists; a template to be deleted has no
 * env) cannot be overtaken. Memory follows the store: nothing changes here before the
 * store has said yes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/internal.h"
#include "control/route.h"
#include "model/image-ref.h"

void abx__write_free(abx__write *w)
{
	if (!w)
		return;
	abx__free(w->namespace_);
	abx__free(w->name);
	abx__free(w->part);
	json_object_put(w->input);
	json_object_put(w->made);
	abx__free(w);
}

void abx__writes_drop(abx__control *control)
{
	while (control->writes) {
		abx__write *w = control->writes;

		DL_DELETE(control->writes, w);
		abx__write_free(w);
	}
}

static json_object *copy_of(json_object *value)
{
	json_object *copy = NULL;

	return value && json_object_deep_copy(value, &copy, NULL) == 0 ? copy : NULL;
}

static abx__env *env_of(const abx__write *w)
{
	return abx__env_find(w->control, w->namespace_, w->name);
}

static int no_env(const abx__write *w, abx_error **reterr)
{
	return abx__error_set(reterr, ABX_ENOTFOUND,
			      "env %s does not exist in namespace %s", w->name,
			      w->namespace_);
}

/* What the writer may know of the object: nothing, or its present version. */
static int check_version(json_object *input, const abx__object *object,
			 abx_error **reterr)
{
	const char *given =
		abx__field_str(abx__field_object(input, "metadata"), "resourceVersion");
	char present[24];

	snprintf(present, sizeof(present), "%" PRIu64, object->version);
	if (!given || strcmp(given, present) == 0)
		return ABX_OK;
	abx__error_set(reterr, ABX_ECONFLICT, "%s is at resourceVersion %s, not %s",
		       object->name, present, given);
	abx__error_hint(reterr, "read it again and apply the change to that");
	return ABX_ECONFLICT;
}

/* {metadata: {labels, annotations, generation}, spec}: what is stored of a document. */
static int stored_form(json_object *input, json_object *spec, const abx__object *old,
		       json_object **ret, abx_error **reterr)
{
	json_object *given = abx__field_object(input, "metadata");
	json_object *old_spec = old ? abx__field_object(old->doc, "spec") : NULL;
	json_object *old_meta = old ? abx__field_object(old->doc, "metadata") : NULL;
	int64_t generation = abx__field_int(old_meta, "generation", 0);
	json_object *doc = json_object_new_object();
	json_object *meta = json_object_new_object();

	if (!old || !json_object_equal(old_spec, spec))
		generation++;
	abx__field_share(meta, "labels", abx__field_object(given, "labels"));
	abx__field_share(meta, "annotations", abx__field_object(given, "annotations"));
	abx__field_set_int(meta, "generation", generation);
	if (abx__field_take(doc, "metadata", meta) < 0 ||
	    abx__field_share(doc, "spec", spec) < 0) {
		json_object_put(doc);
		return abx__error_nomem(reterr);
	}
	*ret = doc;
	return ABX_OK;
}

/* --- templates --- */

static int check_template_spec(abx__write *w, json_object *spec, abx_error **reterr)
{
	abx__engine *engine = w->control->config.engine;
	json_object *pod = abx__field_object(spec, "template");
	const char *idle = abx__field_str(spec, "idleImage");
	int r;

	if (!pod)
		return abx__error_set(reterr, ABX_EINVAL,
				      "template %s: spec.template is required", w->name);
	r = idle ? abx__image_ref_check(idle, reterr) : ABX_OK;
	if (r < 0) {
		abx__error_prefix(reterr, "template %s: spec.idleImage", w->name);
		return r;
	}
	r = engine->ops->check_template(engine, pod, reterr);
	if (r < 0)
		abx__error_prefix(reterr, "template %s", w->name);
	return r;
}

/* No env that is bound to it may break. */
static int check_bound_envs(abx__write *w, json_object *doc, abx_error **reterr)
{
	for (abx__env *env = w->control->envs; env; env = env->hh.next) {
		json_object *spec = abx__field_object(env->object.doc, "spec");
		const char *bound =
			abx__field_str(abx__field_object(spec, "templateRef"), "name");
		abx__pool_config *configs = NULL;
		size_t count = 0;
		int r;

		if (!abx__str_eq(bound, w->name))
			continue;
		r = abx__members_build(w->control, env->object.name, env->object.doc, doc,
				       &configs, &count, reterr);
		if (r < 0) {
			abx__error_prefix(reterr, "template %s", w->name);
			return r;
		}
		abx__members_free(configs, count);
	}
	return ABX_OK;
}

static int make_template(abx__write *w, json_object **ret, abx_error **reterr)
{
	const abx__template *old = abx__template_find(w->control, w->name);
	json_object *spec = abx__field_object(w->input, "spec");
	int r;

	if (w->create && old)
		return abx__error_set(reterr, ABX_EEXISTS, "template %s exists already",
				      w->name);
	if (!w->create && !old)
		return abx__error_set(reterr, ABX_ENOTFOUND, "template %s does not exist",
				      w->name);
	r = old ? check_version(w->input, &old->object, reterr) : ABX_OK;
	if (r == ABX_OK)
		r = check_template_spec(w, spec, reterr);
	if (r == ABX_OK)
		r = check_bound_envs(w, w->input, reterr);
	return r < 0 ? r
		     : stored_form(w->input, spec, old ? &old->object : NULL, ret,
				   reterr);
}

static int make_template_delete(abx__write *w, json_object **ret, abx_error **reterr)
{
	(void)ret;
	if (!abx__template_find(w->control, w->name))
		return abx__error_set(reterr, ABX_ENOTFOUND, "template %s does not exist",
				      w->name);
	for (abx__env *env = w->control->envs; env; env = env->hh.next) {
		json_object *spec = abx__field_object(env->object.doc, "spec");
		const char *bound =
			abx__field_str(abx__field_object(spec, "templateRef"), "name");

		if (abx__str_eq(bound, w->name)) {
			abx__error_set(reterr, ABX_ESTATE,
				       "template %s is in use by env %s", w->name,
				       env->key);
			abx__error_hint(reterr, "delete the env first");
			return ABX_ESTATE;
		}
	}
	return ABX_OK;
}

/* --- envs --- */

static int refuse_unhonoured(abx__write *w, json_object *spec, abx_error **reterr)
{
	json_object *overrides = abx__field_object(spec, "overrides");
	const char *mode = abx__field_str(spec, "mode");

	if (mode && strcmp(mode, "OnDemandJob") == 0)
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"env %s: mode OnDemandJob is reserved; use WarmPool", w->name);
	if (abx__field_bool(abx__field_object(overrides, "gateway"), "enabled", false))
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"env %s: overrides.gateway.enabled: no egress gateway here",
			w->name);
	if (abx__array_count(abx__field_array(overrides, "volumes")))
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "env %s: overrides.volumes: no volume claims here",
				      w->name);
	if (!abx__field_bool(abx__field_object(overrides, "envd"), "verbose", true))
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"env %s: overrides.envd.verbose: false is not offered here",
			w->name);
	return ABX_OK;
}

static const char *mode_of(json_object *spec)
{
	const char *mode = abx__field_str(spec, "mode");

	return mode ? mode : "WarmPool";
}

static int check_fixed(abx__write *w, json_object *spec, json_object *old,
		       abx_error **reterr)
{
	const char *template_ =
		abx__field_str(abx__field_object(spec, "templateRef"), "name");
	const char *in_force =
		abx__field_str(abx__field_object(old, "templateRef"), "name");

	if (!abx__str_eq(template_, in_force))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"env %s: templateRef.name is fixed at create: it is %s, not %s; "
			"make a new env",
			w->name, in_force, template_ ? template_ : "absent");
	if (strcmp(mode_of(spec), mode_of(old)) != 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "env %s: mode is fixed at create: it is %s, not %s",
				      w->name, mode_of(old), mode_of(spec));
	return ABX_OK;
}

/* Completes, checks and wraps a spec that is ours to change. */
static int finish_env(abx__write *w, json_object *input, json_object *spec,
		      const abx__object *old, json_object **ret, abx_error **reterr)
{
	const char *template_ =
		abx__field_str(abx__field_object(spec, "templateRef"), "name");
	const abx__template *t =
		template_ ? abx__template_find(w->control, template_) : NULL;
	abx__pool_config *configs = NULL;
	json_object *doc = NULL;
	size_t count = 0;
	int r;

	if (!template_)
		return abx__error_set(reterr, ABX_EINVAL,
				      "env %s: templateRef.name is required", w->name);
	if (!t)
		return abx__error_set(reterr, ABX_EINVAL,
				      "env %s: template %s does not exist", w->name,
				      template_);
	r = refuse_unhonoured(w, spec, reterr);
	if (r == ABX_OK)
		r = stored_form(input, spec, old, &doc, reterr);
	if (r == ABX_OK)
		r = abx__members_complete(w->control, w->name, doc, reterr);
	if (r == ABX_OK)
		r = abx__members_build(w->control, w->name, doc, t->object.doc, &configs,
				       &count, reterr);
	if (r < 0) {
		json_object_put(doc);
		return r;
	}
	abx__members_free(configs, count);
	*ret = doc;
	return ABX_OK;
}

static int make_env(abx__write *w, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__json_putp)
	json_object *spec = copy_of(abx__field_object(w->input, "spec"));
	const abx__env *old = env_of(w);
	int r;

	if (w->create && old)
		return abx__error_set(reterr, ABX_EEXISTS,
				      "env %s exists already in namespace %s", w->name,
				      w->namespace_);
	if (!w->create && !old)
		return no_env(w, reterr);
	if (!spec)
		return abx__error_set(reterr, ABX_EINVAL, "env %s: spec is required",
				      w->name);
	r = old ? check_version(w->input, &old->object, reterr) : ABX_OK;
	if (r == ABX_OK && old)
		r = check_fixed(w, spec, abx__field_object(old->object.doc, "spec"),
				reterr);
	return r < 0 ? r
		     : finish_env(w, w->input, spec, old ? &old->object : NULL, ret,
				  reterr);
}

static int make_env_delete(abx__write *w, json_object **ret, abx_error **reterr)
{
	(void)ret;
	return env_of(w) ? ABX_OK : no_env(w, reterr);
}

/* --- parts of an env: the rest of the document stays as it is --- */

/* A copy of the present document to change. */
static int env_copy(abx__write *w, json_object **ret, abx_error **reterr)
{
	const abx__env *env = env_of(w);
	json_object *copy;

	if (!env)
		return no_env(w, reterr);
	copy = copy_of(env->object.doc);
	if (!copy)
		return abx__error_nomem(reterr);
	*ret = copy;
	return ABX_OK;
}

static int finish_part(abx__write *w, json_object *doc, json_object **ret,
		       abx_error **reterr)
{
	return finish_env(w, doc, abx__field_object(doc, "spec"), &env_of(w)->object, ret,
			  reterr);
}

static json_object *array_made(json_object *obj, const char *key)
{
	if (!abx__field_array(obj, key))
		abx__field_take(obj, key, json_object_new_array());
	return abx__field_array(obj, key);
}

static json_object *local_members_made(abx__write *w, json_object *doc)
{
	json_object *members = abx__members_local(w->control, doc);
	json_object *clusters, *segment;

	if (members)
		return members;
	clusters = array_made(abx__field_object(doc, "spec"), "clusters");
	for (size_t i = 0; i < abx__array_count(clusters); i++) {
		segment = json_object_array_get_idx(clusters, i);
		if (abx__str_eq(abx__field_str(segment, "clusterID"),
				w->control->cluster_id))
			return array_made(segment, "members");
	}
	segment = json_object_new_object();
	abx__field_set_str(segment, "clusterID", w->control->cluster_id);
	if (!clusters || json_object_array_add(clusters, segment) < 0) {
		json_object_put(segment);
		return NULL;
	}
	return array_made(segment, "members");
}

static json_object *part_made(json_object *obj, const char *key)
{
	if (!abx__field_object(obj, key))
		abx__field_take(obj, key, json_object_new_object());
	return abx__field_object(obj, key);
}

/* Replicas of the group's local members, `except` left out. */
static int group_sum(abx__write *w, json_object *doc, const char *group,
		     const char *except)
{
	json_object *members = abx__members_local(w->control, doc);
	int64_t sum = 0;

	for (size_t i = 0; i < abx__array_count(members); i++) {
		json_object *member = json_object_array_get_idx(members, i);
		const char *of = abx__field_str(abx__field_object(member, "config"),
						"scalingGroup");

		if (of && strcasecmp(of, group) == 0 &&
		    !abx__str_eq(abx__field_str(member, "name"), except))
			sum += abx__field_int(abx__field_object(member, "spec"),
					      "replicas", 0);
	}
	return sum > INT32_MAX ? INT32_MAX : (int)sum;
}

/* An enabled group's bounds hold for a new member. */
static int fit_into_group(abx__write *w, json_object *doc, json_object *member,
			  abx_error **reterr)
{
	const char *name = abx__field_str(member, "name");
	const char *group =
		abx__field_str(abx__field_object(member, "config"), "scalingGroup");
	json_object *known = group ? abx__groups_find(doc, group) : NULL;
	json_object *spec = part_made(member, "spec");
	int64_t replicas = abx__field_int(spec, "replicas", 0);
	abx__scale_policy policy;
	int others, r;

	if (!known)
		return ABX_OK;
	r = abx__policy_read(known, &policy, reterr);
	if (r < 0 || !policy.enabled)
		return r;
	others = group_sum(w, doc, group, name);
	if (replicas == 0 && policy.min > others)
		return abx__field_set_int(spec, "replicas", policy.min - others);
	if (policy.max != ABX__NO_CAP && others + replicas > policy.max)
		return abx__error_set(reterr, ABX_EINVAL,
				      "pool %s: %" PRId64
				      " replicas with the %d of its group are above "
				      "the group's maxReplicas %d",
				      name, replicas, others, policy.max);
	return ABX_OK;
}

static int make_pool_create(abx__write *w, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__json_putp) json_object *doc = NULL;
	json_object *member = copy_of(w->input);
	json_object *members;
	const char *name;
	int r = env_copy(w, &doc, reterr);

	if (r < 0 || !member) {
		json_object_put(member);
		return r < 0 ? r : abx__error_nomem(reterr);
	}
	members = local_members_made(w, doc);
	if (!members || !part_made(member, "spec") ||
	    json_object_array_add(members, member) < 0) {
		json_object_put(member);
		return abx__error_nomem(reterr);
	}
	r = abx__members_complete(w->control, w->name, doc, reterr);
	if (r < 0)
		return r;
	name = abx__field_str(member, "name");
	if (abx__members_find(w->control, doc, name) != member)
		return abx__error_set(reterr, ABX_EEXISTS,
				      "pool %s exists already in env %s", name, w->name);
	abx__free(w->part);
	w->part = abx__strdup(name);
	if (!w->part)
		return abx__error_nomem(reterr);
	r = fit_into_group(w, doc, member, reterr);
	return r < 0 ? r : finish_part(w, doc, ret, reterr);
}

static int pool_entry(abx__write *w, json_object *doc, json_object **ret,
		      abx_error **reterr)
{
	*ret = abx__members_find(w->control, doc, w->part);
	return *ret ? ABX_OK
		    : abx__error_set(reterr, ABX_ENOTFOUND,
				     "pool %s does not exist in env %s", w->part,
				     w->name);
}

static int check_member_fixed(abx__write *w, json_object *now, json_object *given,
			      abx_error **reterr)
{
	static const char *const fixed[] = { "instanceType", "multiplier",
					     "inlineResources", "labels", "annotations" };
	const char *group = abx__field_str(given, "scalingGroup");
	const char *in_force = abx__field_str(now, "scalingGroup");

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		json_object *a = abx__field(now, fixed[i]),
			    *b = abx__field(given, fixed[i]);

		if (!json_object_equal(a, b))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"pool %s: %s is fixed at create: it is %s", w->part,
				fixed[i], a ? json_object_to_json_string(a) : "absent");
	}
	if (group && !abx__str_eq(group, in_force))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"pool %s: scalingGroup is fixed at create: it is %s", w->part,
			in_force ? in_force : "absent");
	return ABX_OK;
}

static int update_replicas(abx__write *w, json_object *doc, json_object *member,
			   abx_error **reterr)
{
	const char *group =
		abx__field_str(abx__field_object(member, "config"), "scalingGroup");
	json_object *known = group ? abx__groups_find(doc, group) : NULL;
	json_object *given = abx__field_object(w->input, "spec");
	json_object *spec = part_made(member, "spec");
	int64_t now = abx__field_int(spec, "replicas", 0);
	int64_t wanted = abx__field_int(given, "replicas", now);

	if (wanted != now && abx__field_bool(known, "enabled", false))
		return abx__error_set(reterr, ABX_EINVAL,
				      "pool %s: replicas is the autoscaler's while group "
				      "%s is enabled; "
				      "it is %" PRId64,
				      w->part, group, now);
	return abx__field_set_int(spec, "replicas", wanted);
}

static int make_pool_update(abx__write *w, json_object **ret, abx_error **reterr)
{
	static const char *const replaced[] = { "minReplicas", "maxReplicas",
						"updateStrategy" };
	static const char *const kept[] = { "priority", "scaleUpPriority",
					    "scaleDownPriority" };
	ABX_CLEANUP(abx__json_putp) json_object *doc = NULL;
	json_object *given = abx__field_object(w->input, "config");
	json_object *member = NULL, *config;
	int r = env_copy(w, &doc, reterr);

	if (r == ABX_OK)
		r = pool_entry(w, doc, &member, reterr);
	if (r < 0)
		return r;
	config = abx__field_object(member, "config");
	r = check_member_fixed(w, config, given, reterr);
	if (r == ABX_OK)
		r = update_replicas(w, doc, member, reterr);
	for (size_t i = 0; r == ABX_OK && i < 3; i++) {
		json_object_object_del(config, replaced[i]);
		r = abx__field_share(config, replaced[i], abx__field(given, replaced[i]));
	}
	for (size_t i = 0; r == ABX_OK && i < 3; i++)
		r = abx__field_share(config, kept[i], abx__field(given, kept[i]));
	return r < 0 ? r : finish_part(w, doc, ret, reterr);
}

/* Groups no member names go with the last one that did. */
static void prune_group(json_object *doc, const char *name)
{
	json_object *spec = abx__field_object(doc, "spec");
	json_object *groups =
		abx__field_array(abx__field_object(spec, "autoscaling"), "groups");

	if (abx__env_names_group(doc, name))
		return;
	for (size_t i = 0; i < abx__array_count(groups); i++) {
		const char *known =
			abx__field_str(json_object_array_get_idx(groups, i), "name");

		if (known && strcasecmp(known, name) == 0) {
			json_object_array_del_idx(groups, i, 1);
			return;
		}
	}
}

static int make_pool_delete(abx__write *w, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *group = NULL;
	ABX_CLEANUP(abx__json_putp) json_object *doc = NULL;
	json_object *member = NULL, *members;
	int r = env_copy(w, &doc, reterr);

	if (r == ABX_OK)
		r = pool_entry(w, doc, &member, reterr);
	if (r < 0)
		return r;
	group = abx__strdup(
		abx__field_str(abx__field_object(member, "config"), "scalingGroup"));
	members = abx__members_local(w->control, doc);
	for (size_t i = 0; i < abx__array_count(members); i++) {
		if (json_object_array_get_idx(members, i) == member) {
			json_object_array_del_idx(members, i, 1);
			break;
		}
	}
	if (group)
		prune_group(doc, group);
	return finish_part(w, doc, ret, reterr);
}

/* An enabled group has its floor at once: the member that grows first is raised. */
static int raise_to_min(abx__write *w, json_object *doc, const char *group,
			const abx__scale_policy *policy)
{
	json_object *members = abx__members_local(w->control, doc);
	int missing = policy->min - group_sum(w, doc, group, NULL);
	json_object *first = NULL, *spec;
	int64_t first_priority = 0;

	if (!policy->enabled || missing <= 0)
		return ABX_OK;
	for (size_t i = 0; i < abx__array_count(members); i++) {
		json_object *member = json_object_array_get_idx(members, i);
		json_object *config = abx__field_object(member, "config");
		const char *of = abx__field_str(config, "scalingGroup");
		int64_t priority = abx__field_int(config, "scaleUpPriority",
						  abx__field_int(config, "priority", 0));

		if (of && strcasecmp(of, group) == 0 &&
		    (!first || priority < first_priority)) {
			first = member;
			first_priority = priority;
		}
	}
	if (!first)
		return ABX_OK;
	spec = part_made(first, "spec");
	return abx__field_set_int(spec, "replicas",
				  abx__field_int(spec, "replicas", 0) + missing);
}

static int make_group(abx__write *w, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__json_putp) json_object *doc = NULL;
	abx__scale_policy policy = ABX__SCALE_POLICY_DEFAULT;
	json_object *groups, *made;
	int r = env_copy(w, &doc, reterr);

	if (r < 0)
		return r;
	if (!abx__groups_find(doc, w->part))
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "scaling group %s: no member of env %s has it",
				      w->part, w->name);
	r = w->input ? abx__policy_read(w->input, &policy, reterr) : ABX_OK;
	if (r < 0)
		return r;
	groups = abx__field_array(
		abx__field_object(abx__field_object(doc, "spec"), "autoscaling"),
		"groups");
	for (size_t i = 0; i < abx__array_count(groups); i++) {
		const char *name =
			abx__field_str(json_object_array_get_idx(groups, i), "name");

		if (!name || strcasecmp(name, w->part) != 0)
			continue;
		made = abx__policy_document(name, &policy);
		if (!made || json_object_array_put_idx(groups, i, made) < 0)
			return abx__error_nomem(reterr);
	}
	r = raise_to_min(w, doc, w->part, &policy);
	return r < 0 ? abx__error_nomem(reterr) : finish_part(w, doc, ret, reterr);
}

static int make_scale(abx__write *w, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__json_putp) json_object *doc = NULL;
	json_object *member = NULL;
	int r = env_copy(w, &doc, reterr);

	if (r == ABX_OK)
		r = pool_entry(w, doc, &member, reterr);
	if (r < 0)
		return r;
	r = abx__field_set_int(part_made(member, "spec"), "replicas", w->replicas);
	return r < 0 ? abx__error_nomem(reterr) : finish_part(w, doc, ret, reterr);
}

/* --- running them --- */

/* The object as it is now, for whoever asked; NULL after a delete. */
static json_object *result_of(const abx__write *w)
{
	abx__env *env;
	const abx__pool *pool;

	if (!w->made)
		return NULL;
	if (strcmp(w->kind, ABX__KIND_TEMPLATE) == 0) {
		const abx__template *t = abx__template_find(w->control, w->name);

		return t ? abx__template_document(t) : NULL;
	}
	env = env_of(w);
	if (!env)
		return NULL;
	if (w->make == make_group) {
		json_object *group = abx__groups_find(env->object.doc, w->part);

		return copy_of(group);
	}
	if (w->part) {
		pool = abx__pool_find(w->control, w->namespace_, w->part);
		return pool ? abx__pool_document(pool) : NULL;
	}
	return abx__env_document(env);
}

static void finish(abx__write *w, int r, const abx_error *err)
{
	abx__control *control = w->control;
	json_object *result = NULL;

	DL_DELETE(control->writes, w);
	control->write_running = false;
	if (control->writes)
		abx__control_set_timer_sooner(control, &control->writes_timer, 0);
	if (w->internal_done)
		w->internal_done(w, r, err);
	if (w->object_done) {
		result = r == ABX_OK ? result_of(w) : NULL;
		w->object_done(w->userdata, r, result, err);
		json_object_put(result);
	} else if (w->done) {
		w->done(w->userdata, r, err);
	}
	abx__write_free(w);
}

static void sync_bound_envs(abx__control *control, const char *template_)
{
	for (abx__env *env = control->envs; env; env = env->hh.next) {
		json_object *spec = abx__field_object(env->object.doc, "spec");

		if (abx__str_eq(abx__field_str(abx__field_object(spec, "templateRef"),
					       "name"),
				template_))
			abx__env_sync(env);
	}
}

static int take_in(abx__write *w, const abx__doc *doc, abx_error **reterr)
{
	bool is_template = strcmp(w->kind, ABX__KIND_TEMPLATE) == 0;
	abx__template *t;
	int r;

	if (w->made) {
		r = is_template ? abx__template_load(w->control, doc, reterr)
				: abx__env_load(w->control, doc, reterr);
		if (r == ABX_OK && is_template)
			sync_bound_envs(w->control, w->name);
		return r;
	}
	if (is_template) {
		t = abx__template_find(w->control, w->name);
		HASH_DEL(w->control->templates, t);
		abx__template_free(t);
	} else {
		abx__env_unlink(env_of(w));
	}
	return ABX_OK;
}

static void on_stored(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__write *w = userdata;
	abx__control *control = w->control;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	if (r == ABX_OK) {
		r = take_in(w, doc, &own);
		err = own;
	}
	finish(w, r, err);
	abx__control_call_end(control);
}

static uint64_t version_of(const abx__write *w)
{
	if (strcmp(w->kind, ABX__KIND_TEMPLATE) == 0) {
		const abx__template *t = abx__template_find(w->control, w->name);

		return t ? t->object.version : 0;
	}
	return env_of(w) ? env_of(w)->object.version : 0;
}

static void store(abx__write *w)
{
	abx__store *store = w->control->config.store;
	const char *body;
	size_t len;

	abx__control_call_begin(w->control);
	if (!w->made) {
		store->ops->remove(store, w->kind, w->namespace_, w->name, version_of(w),
				   on_stored, w);
		return;
	}
	body = json_object_to_json_string_length(w->made, JSON_C_TO_STRING_PLAIN, &len);
	if (w->create)
		store->ops->create(store, w->kind, w->namespace_, w->name, body, len,
				   on_stored, w);
	else
		store->ops->update(store, w->kind, w->namespace_, w->name, version_of(w),
				   body, len, on_stored, w);
}

void abx__writes_run(abx__timer *timer)
{
	abx__control *control = timer->owner;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__write *w = control->writes;
	int r;

	if (!w || control->write_running)
		return;
	control->write_running = true;
	if (control->state != ABX__CONTROL_RUNNING) {
		r = abx__error_set(&err, ABX_ECANCELED, "the server is stopping");
		finish(w, r, err);
		return;
	}
	r = w->make(w, &w->made, &err);
	if (r < 0)
		finish(w, r, err ? err : NULL);
	else
		store(w);
}

static int submit(abx__control *control, abx__write template_, const char *namespace_,
		  const char *name, const char *part, json_object *input,
		  abx_error **reterr)
{
	abx__write *w;

	if (control->state != ABX__CONTROL_RUNNING)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "the server is starting or stopping");
	w = abx__calloc(1, sizeof(*w));
	if (!w)
		return abx__error_nomem(reterr);
	*w = template_;
	w->control = control;
	w->namespace_ = abx__strdup(namespace_);
	w->name = abx__strdup(name);
	w->part = abx__strdup(part);
	w->input = copy_of(input);
	if (!w->namespace_ || !w->name || (part && !w->part) || (input && !w->input)) {
		abx__write_free(w);
		return abx__error_nomem(reterr);
	}
	DL_APPEND(control->writes, w);
	abx__control_set_timer_sooner(control, &control->writes_timer, 0);
	return ABX_OK;
}

static const char *name_in(json_object *doc)
{
	return abx__field_str(abx__field_object(doc, "metadata"), "name");
}

static const char *namespace_in(json_object *doc)
{
	const char *ns = abx__field_str(abx__field_object(doc, "metadata"), "namespace");

	return ns ? ns : "default";
}

int abx__control_template_put(abx__control *control, json_object *doc, bool create,
			      abx__object_done done, void *userdata, abx_error **reterr)
{
	const char *name = name_in(doc);
	int r = abx__object_name_check("template", name ? name : "", reterr);

	if (r < 0)
		return r;
	return submit(control,
		      (abx__write){ .make = make_template,
				    .kind = ABX__KIND_TEMPLATE,
				    .create = create,
				    .object_done = done,
				    .userdata = userdata },
		      "", name, NULL, doc, reterr);
}

int abx__control_template_delete(abx__control *control, const char *name,
				 abx__control_done done, void *userdata,
				 abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = make_template_delete,
				    .kind = ABX__KIND_TEMPLATE,
				    .done = done,
				    .userdata = userdata },
		      "", name, NULL, NULL, reterr);
}

static int put_env(abx__control *control, json_object *doc, bool create,
		   abx__object_done done, void *userdata, abx_error **reterr)
{
	const char *name = name_in(doc);
	int r = abx__env_name_check(name ? name : "", reterr);

	if (r == ABX_OK && !abx__dns_label_is_valid(namespace_in(doc)))
		r = abx__error_set(reterr, ABX_EINVAL,
				   "namespace \"%s\" is not a DNS label",
				   namespace_in(doc));
	if (r < 0)
		return r;
	return submit(control,
		      (abx__write){ .make = make_env,
				    .kind = ABX__KIND_ENV,
				    .create = create,
				    .object_done = done,
				    .userdata = userdata },
		      namespace_in(doc), name, NULL, doc, reterr);
}

int abx__control_env_create(abx__control *control, json_object *doc,
			    abx__object_done done, void *userdata, abx_error **reterr)
{
	return put_env(control, doc, true, done, userdata, reterr);
}

int abx__control_env_update(abx__control *control, json_object *doc,
			    abx__object_done done, void *userdata, abx_error **reterr)
{
	return put_env(control, doc, false, done, userdata, reterr);
}

int abx__control_env_delete(abx__control *control, const char *namespace_,
			    const char *name, abx__control_done done, void *userdata,
			    abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = make_env_delete,
				    .kind = ABX__KIND_ENV,
				    .done = done,
				    .userdata = userdata },
		      namespace_, name, NULL, NULL, reterr);
}

int abx__control_pool_create(abx__control *control, const char *namespace_,
			     const char *env, json_object *member, abx__object_done done,
			     void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = make_pool_create,
				    .kind = ABX__KIND_ENV,
				    .object_done = done,
				    .userdata = userdata },
		      namespace_, env, NULL, member, reterr);
}

int abx__control_pool_update(abx__control *control, const char *namespace_,
			     const char *env, const char *pool, json_object *member,
			     abx__object_done done, void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = make_pool_update,
				    .kind = ABX__KIND_ENV,
				    .object_done = done,
				    .userdata = userdata },
		      namespace_, env, pool, member, reterr);
}

int abx__control_pool_delete(abx__control *control, const char *namespace_,
			     const char *env, const char *pool, abx__control_done done,
			     void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = make_pool_delete,
				    .kind = ABX__KIND_ENV,
				    .done = done,
				    .userdata = userdata },
		      namespace_, env, pool, NULL, reterr);
}

int abx__control_group_put(abx__control *control, const char *namespace_, const char *env,
			   const char *group, json_object *policy, abx__object_done done,
			   void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = make_group,
				    .kind = ABX__KIND_ENV,
				    .object_done = done,
				    .userdata = userdata },
		      namespace_, env, group, policy, reterr);
}

int abx__control_group_delete(abx__control *control, const char *namespace_,
			      const char *env, const char *group, abx__control_done done,
			      void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = make_group,
				    .kind = ABX__KIND_ENV,
				    .done = done,
				    .userdata = userdata },
		      namespace_, env, group, NULL, reterr);
}

static void on_scaled(abx__write *w, int r, const abx_error *err)
{
	abx__pool *pool = abx__pool_find(w->control, w->namespace_, w->part);

	if (pool)
		pool->scale_writing = false;
	if (r < 0)
		abx__log_warn(w->control->config.log,
			      "autoscaler could not write a pool's size",
			      "pool=%s error=%s", w->part, abx_error_message(err));
	if (r < 0 && pool)
		abx__scale_refused(&pool->scale, abx__control_mono(w->control),
				   ABX__SCALE_FAILED);
}

int abx__write_scale(abx__pool *pool, int replicas)
{
	int r = submit(pool->control,
		       (abx__write){ .make = make_scale,
				     .kind = ABX__KIND_ENV,
				     .replicas = replicas,
				     .internal_done = on_scaled },
		       pool->namespace_, pool->env_name, pool->config.name, NULL, NULL);

	pool->scale_writing = r == ABX_OK;
	return r;
}

/*
 * write-members.c - changes of one part of an env's document: a member pool, a scaling
 * group, a pool's size. The rest of the document stays as it is.
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/route.h"
#include "control/writes.h"

/* A copy of the present document to change. */
static int env_copy(abx__write *w, json_object **ret, abx_error **reterr)
{
	const abx__env *env = abx__write_env(w);
	json_object *copy;

	if (!env)
		return abx__write_no_env(w, reterr);
	copy = abx__write_copy(env->object.doc);
	if (!copy)
		return abx__error_nomem(reterr);
	*ret = copy;
	return ABX_OK;
}

static int finish_part(abx__write *w, json_object *doc, json_object **ret,
		       abx_error **reterr)
{
	return abx__write_finish_env(w, doc, abx__field_object(doc, "spec"),
				     &abx__write_env(w)->object, ret, reterr);
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

int abx__make_pool_create(abx__write *w, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__json_putp) json_object *doc = NULL;
	json_object *member = abx__write_copy(w->input);
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
	r = abx__members_complete(w->control, w->name, doc, abx__write_env(w)->object.doc,
				  reterr);
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
	if (wanted != now) {
		int r = abx__quota_check_grow(
			abx__pool_find(w->control, w->namespace_, w->part),
			wanted > INT32_MAX ? INT32_MAX : (int)wanted, reterr);

		if (r < 0)
			return r;
	}
	return abx__field_set_int(spec, "replicas", wanted);
}

int abx__make_pool_update(abx__write *w, json_object **ret, abx_error **reterr)
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

int abx__make_pool_delete(abx__write *w, json_object **ret, abx_error **reterr)
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

int abx__make_group(abx__write *w, json_object **ret, abx_error **reterr)
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

int abx__make_scale(abx__write *w, json_object **ret, abx_error **reterr)
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

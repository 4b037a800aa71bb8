/*
 * groups.c - the autoscaling groups of an env's document: found, read, checked, made with
 * their first member.
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/members.h"
#include "control/route.h"

json_object *abx__groups_find(json_object *env_doc, const char *name)
{
	json_object *groups = abx__field_array(
		abx__field_object(abx__members_spec(env_doc), "autoscaling"), "groups");

	for (size_t i = 0; i < abx__array_count(groups); i++) {
		json_object *group = json_object_array_get_idx(groups, i);
		const char *known = abx__field_str(group, "name");

		if (known && strcasecmp(known, name) == 0)
			return group;
	}
	return NULL;
}

static const struct {
	const char *part; /* NULL: the group itself */
	const char *key;
	size_t offset;
} policy_fields[] = {
	{ NULL, "minReplicas", offsetof(abx__scale_policy, min) },
	{ NULL, "maxReplicas", offsetof(abx__scale_policy, max) },
	{ "scaleUpPolicy", "cooldownSeconds", offsetof(abx__scale_policy, cooldown_s) },
	{ "scaleUpPolicy", "idleThresholdSeconds",
	  offsetof(abx__scale_policy, idle_threshold_s) },
	{ "scaleUpPolicy", "idleZeroQuietWindowSeconds",
	  offsetof(abx__scale_policy, quiet_window_s) },
	{ "scaleUpPolicy", "saturationCooldownSeconds",
	  offsetof(abx__scale_policy, saturation_cooldown_s) },
	{ "scaleDownPolicy", "idleTimeoutSeconds",
	  offsetof(abx__scale_policy, idle_timeout_s) },
	{ "scaleDownPolicy", "stabilizationSeconds",
	  offsetof(abx__scale_policy, stabilization_s) },
	{ "scaleDownPolicy", "protectionWindowSeconds",
	  offsetof(abx__scale_policy, protection_s) },
};
#define POLICY_FIELD_COUNT (sizeof(policy_fields) / sizeof(policy_fields[0]))

static const char *const mode_names[] = {
	[ABX__SCALE_CONSERVATIVE] = "Conservative",
	[ABX__SCALE_DEFAULT] = "Default",
	[ABX__SCALE_AGGRESSIVE] = "Aggressive",
};

static int policy_check(const char *name, const abx__scale_policy *policy,
			abx_error **reterr)
{
	if (policy->mode == ABX__SCALE_AGGRESSIVE && policy->max == ABX__NO_CAP)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"scaling group %s: mode Aggressive needs maxReplicas", name);
	if (policy->max != ABX__NO_CAP && policy->min > policy->max)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"scaling group %s: minReplicas %d is above maxReplicas %d", name,
			policy->min, policy->max);
	return ABX_OK;
}

int abx__policy_read(json_object *group, abx__scale_policy *ret, abx_error **reterr)
{
	const char *name = abx__field_str(group, "name");
	const char *mode =
		abx__field_str(abx__field_object(group, "scaleUpPolicy"), "mode");
	abx__scale_policy policy = ABX__SCALE_POLICY_DEFAULT;

	name = name ? name : "";
	policy.enabled = abx__field_bool(group, "enabled", false);
	for (size_t i = 0; i < POLICY_FIELD_COUNT; i++) {
		json_object *part =
			policy_fields[i].part
				? abx__field_object(group, policy_fields[i].part)
				: group;
		int *slot = (int *)((char *)&policy + policy_fields[i].offset);
		int64_t value = abx__field_int(part, policy_fields[i].key, *slot);

		if (abx__field(part, policy_fields[i].key) &&
		    (value < 0 || value > INT32_MAX))
			return abx__error_set(reterr, ABX_EINVAL,
					      "scaling group %s: %s is %" PRId64
					      "; it must not be negative",
					      name, policy_fields[i].key, value);
		*slot = (int)value;
	}
	for (size_t i = 0; mode && i < 3; i++) {
		if (strcmp(mode, mode_names[i]) == 0) {
			policy.mode = (enum abx__scale_mode)i;
			mode = NULL;
		}
	}
	if (mode)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"scaling group %s: mode \"%s\" is not Conservative, Default or "
			"Aggressive",
			name, mode);
	*ret = policy;
	return policy_check(name, &policy, reterr);
}

json_object *abx__policy_document(const char *name, const abx__scale_policy *policy)
{
	json_object *group = json_object_new_object();
	json_object *up = json_object_new_object();
	json_object *down = json_object_new_object();

	abx__field_set_str(group, "name", name);
	abx__field_set_bool(group, "enabled", policy->enabled);
	abx__field_set_str(up, "mode", mode_names[policy->mode]);
	for (size_t i = 0; i < POLICY_FIELD_COUNT; i++) {
		const char *part = policy_fields[i].part;
		int value =
			*(const int *)((const char *)policy + policy_fields[i].offset);

		if (value == ABX__NO_CAP)
			continue;
		abx__field_set_int(!part                                ? group
				   : strcmp(part, "scaleUpPolicy") == 0 ? up
									: down,
				   policy_fields[i].key, value);
	}
	abx__field_take(group, "scaleUpPolicy", up);
	abx__field_take(group, "scaleDownPolicy", down);
	return group;
}

static json_object *groups_made(json_object *env_doc)
{
	json_object *spec = abx__members_spec(env_doc);
	json_object *autoscaling = abx__field_object(spec, "autoscaling");

	if (!autoscaling) {
		if (abx__field_take(spec, "autoscaling", json_object_new_object()) < 0)
			return NULL;
		autoscaling = abx__field_object(spec, "autoscaling");
	}
	if (!abx__field_array(autoscaling, "groups") &&
	    abx__field_take(autoscaling, "groups", json_object_new_array()) < 0)
		return NULL;
	return abx__field_array(autoscaling, "groups");
}

/* A group appears, disabled, with its first member. */
int abx__groups_complete(json_object *env_doc, json_object *member, abx_error **reterr)
{
	const char *name =
		abx__field_str(abx__field_object(member, "config"), "scalingGroup");
	json_object *groups, *group;

	if (!name || !*name || abx__groups_find(env_doc, name))
		return ABX_OK;
	groups = groups_made(env_doc);
	group = json_object_new_object();
	if (!groups || abx__field_set_str(group, "name", name) < 0 ||
	    abx__field_set_bool(group, "enabled", false) < 0 ||
	    json_object_array_add(groups, group) < 0) {
		json_object_put(group);
		return abx__error_nomem(reterr);
	}
	return ABX_OK;
}

bool abx__env_names_group(json_object *env_doc, const char *name)
{
	json_object *clusters = abx__field_array(abx__members_spec(env_doc), "clusters");

	for (size_t i = 0; i < abx__array_count(clusters); i++) {
		json_object *members = abx__field_array(
			json_object_array_get_idx(clusters, i), "members");

		for (size_t k = 0; k < abx__array_count(members); k++) {
			json_object *config = abx__field_object(
				json_object_array_get_idx(members, k), "config");
			const char *group = abx__field_str(config, "scalingGroup");

			if (group && strcasecmp(group, name) == 0)
				return true;
		}
	}
	return false;
}

/* Every group belongs to a member and makes sense. */
int abx__groups_check(json_object *env_doc, abx_error **reterr)
{
	json_object *groups = abx__field_array(
		abx__field_object(abx__members_spec(env_doc), "autoscaling"), "groups");
	abx__scale_policy policy;

	for (size_t i = 0; i < abx__array_count(groups); i++) {
		json_object *group = json_object_array_get_idx(groups, i);
		const char *name = abx__field_str(group, "name");
		int r = abx__policy_read(group, &policy, reterr);

		if (r < 0)
			return r;
		if (!name || !abx__env_names_group(env_doc, name))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"autoscaling group %s: no member has this scalingGroup",
				name ? name : "without a name");
	}
	return ABX_OK;
}

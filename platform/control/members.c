/*
 * members.c - the members of an env's document: found, and completed with the names and
 * groups that are derived from their shapes.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/members.h"

json_object *abx__members_spec(json_object *doc)
{
	return abx__field_object(doc, "spec");
}

json_object *abx__members_local(const abx__control *control, json_object *env_doc)
{
	json_object *clusters = abx__field_array(abx__members_spec(env_doc), "clusters");

	for (size_t i = 0; i < abx__array_count(clusters); i++) {
		json_object *segment = json_object_array_get_idx(clusters, i);
		const char *id = abx__field_str(segment, "clusterID");

		if (id && strcmp(id, control->cluster_id) == 0)
			return abx__field_array(segment, "members");
	}
	return NULL;
}

json_object *abx__members_find(const abx__control *control, json_object *env_doc,
			       const char *name)
{
	json_object *members = abx__members_local(control, env_doc);

	for (size_t i = 0; i < abx__array_count(members); i++) {
		json_object *member = json_object_array_get_idx(members, i);

		if (abx__str_eq(abx__field_str(member, "name"), name))
			return member;
	}
	return NULL;
}

static int set_derived(json_object *member, const char *name, const char *group,
		       abx_error **reterr)
{
	json_object *config = abx__field_object(member, "config");

	if (abx__field_set_str(member, "name", name) < 0)
		return abx__error_nomem(reterr);
	if (!abx__field_str(config, "scalingGroup") &&
	    abx__field_set_str(config, "scalingGroup", group) < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

/* A manifest says what its writer wrote; what was derived from it stays. */
static int inherit(json_object *config, json_object *old_config, abx_error **reterr)
{
	json_object *annotations = abx__field_object(config, "annotations");
	const char *reserved =
		abx__field_str(abx__field_object(old_config, "annotations"),
			       ABX__ANNOTATION_RESERVATION_QUOTA);
	int r = ABX_OK;

	if (!abx__field(config, "inlineResources"))
		r = abx__field_share(config, "inlineResources",
				     abx__field(old_config, "inlineResources"));
	if (r == ABX_OK && reserved && !annotations) {
		r = abx__field_take(config, "annotations", json_object_new_object());
		annotations = abx__field_object(config, "annotations");
	}
	if (r == ABX_OK && reserved)
		r = abx__field_set_str(annotations, ABX__ANNOTATION_RESERVATION_QUOTA,
				       reserved);
	return r < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

/* The shape decides the pool's name and, unless given, its group. One that the env did
   not have before is checked and sized. */
static int complete_member(const abx__control *control, const char *env_name,
			   json_object *env_doc, json_object *old_doc,
			   json_object *member, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *derived = NULL;
	const char *given = abx__field_str(member, "name");
	char key[ABX__RESOURCE_KEY_SIZE];
	int64_t cpu, memory;
	json_object *old;
	int r = abx__member_key(control, member, key, &cpu, &memory, reterr);

	if (r == ABX_OK)
		r = abx__pool_name(env_name, key,
				   abx__member_quota_short(control, member), &derived,
				   reterr);
	if (r < 0)
		return r;
	old = old_doc ? abx__members_find(control, old_doc, given ? given : derived)
		      : NULL;
	if (old)
		r = inherit(abx__field_object(member, "config"),
			    abx__field_object(old, "config"), reterr);
	/* A quota's short name may have changed since the pool was named. */
	if (r < 0 || (old && given))
		return r < 0 ? r : set_derived(member, given, key, reterr);
	if (given && strcmp(given, derived) != 0)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"member %s: a pool of this shape in env %s is named %s", given,
			env_name, derived);
	r = set_derived(member, derived, key, reterr);
	return r < 0 || old ? r : abx__member_size_new(control, env_doc, member, reterr);
}

int abx__members_complete(const abx__control *control, const char *env_name,
			  json_object *env_doc, json_object *old_doc, abx_error **reterr)
{
	json_object *members = abx__members_local(control, env_doc);

	for (size_t i = 0; i < abx__array_count(members); i++) {
		json_object *member = json_object_array_get_idx(members, i);
		int r;

		if (!abx__field_object(member, "config"))
			return abx__error_set(reterr, ABX_EINVAL,
					      "env %s: member %zu has no config",
					      env_name, i);
		r = complete_member(control, env_name, env_doc, old_doc, member, reterr);
		if (r == ABX_OK)
			r = abx__groups_complete(env_doc, member, reterr);
		if (r < 0)
			return abx__error_prefix(reterr, "env %s", env_name);
	}
	return abx__groups_check(env_doc, reterr);
}

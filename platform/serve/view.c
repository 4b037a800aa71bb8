/*
 * view.c - steps through documents without a crash when a part is missing.
 */
#include "serve/view.h"

#include "base/str.h"
#include "io/json.h"
#include "model/keys.h"

json_object *abx__view_get(json_object *o, const char *const *keys)
{
	for (; o && *keys; keys++)
		if (!json_object_is_type(o, json_type_object) ||
		    !json_object_object_get_ex(o, *keys, &o))
			return NULL;
	return o;
}

const char *abx__view_text(json_object *o, const char *const *keys)
{
	json_object *v = abx__view_get(o, keys);

	return v ? abx__json_str(v) : NULL;
}

const char *abx__view_meta(json_object *doc, const char *key)
{
	return abx__view_str(doc, "metadata", key);
}

const char *abx__view_label(json_object *doc, const char *key)
{
	return abx__view_str(doc, "metadata", "labels", key);
}

const char *abx__view_annotation(json_object *doc, const char *key)
{
	return abx__view_str(doc, "metadata", "annotations", key);
}

static size_t length(json_object *array)
{
	return array && json_object_is_type(array, json_type_array)
		       ? json_object_array_length(array)
		       : 0;
}

json_object *abx__view_member_at(json_object *env, size_t index)
{
	json_object *clusters = abx__view_path(env, "spec", "clusters");

	for (size_t i = 0; i < length(clusters); i++) {
		json_object *members =
			abx__view_path(json_object_array_get_idx(clusters, i), "members");

		if (index < length(members))
			return json_object_array_get_idx(members, index);
		index -= length(members);
	}
	return NULL;
}

json_object *abx__view_member(json_object *env, const char *name)
{
	json_object *member;

	for (size_t i = 0; (member = abx__view_member_at(env, i)); i++)
		if (abx__str_eq(abx__view_str(member, "name"), name))
			return member;
	return NULL;
}

bool abx__view_visible(const abx__identity *who, json_object *doc)
{
	const char *team = abx__view_label(doc, ABX__LABEL_TEAM);
	const char *user = abx__view_label(doc, ABX__LABEL_USER);

	return abx__identity_sees_all(who) || ((!team || abx__str_eq(team, who->team)) &&
					       (!user || abx__str_eq(user, who->user)));
}

static bool rule_matches(const abx__identity *who, json_object *rule)
{
	const char *team = abx__view_str(rule, "team");
	json_object *users = abx__view_path(rule, "users");

	if (team && *team && !abx__str_eq(team, who->team))
		return false;
	if (length(users) == 0)
		return true;
	for (size_t i = 0; i < length(users); i++)
		if (abx__str_eq(abx__json_str(json_object_array_get_idx(users, i)),
				who->user))
			return true;
	return false;
}

bool abx__view_template_visible(const abx__identity *who, json_object *template_)
{
	json_object *rules = abx__view_path(template_, "spec", "visibility", "rules");

	if (abx__identity_sees_all(who) || length(rules) == 0)
		return true;
	for (size_t i = 0; i < length(rules); i++)
		if (rule_matches(who, json_object_array_get_idx(rules, i)))
			return true;
	return false;
}

/*
 * native-people.c - who there is and what they run: teams, users and namespaces as this
 * cluster's keys and envs name them, and counts of sandboxes (native-api.md, sections 11
 * and 13.2).
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/keys.h"
#include "serve/native.h"
#include "serve/view.h"

/* ---- names ---- */

/* The keys of the map, which are in order, as {items, total}; takes the map. */
static void answer_names(abx__call *call, abx__map *names, int r)
{
	ABX_CLEANUP_JSON json_object *items = json_object_new_array();

	for (size_t i = 0; items && r == ABX_OK && i < names->count; i++) {
		json_object *name = json_object_new_string(names->items[i].key);

		r = name ? abx__json_push_take(items, name) : ABX_ENOMEM;
	}
	abx__map_done(names);
	if (r < 0)
		abx__call_nomem(call);
	else
		abx__native_page(call, abx_take(items), false);
}

static int add(abx__map *names, const char *name)
{
	return name && *name ? abx__map_set(names, name, "") : ABX_OK;
}

/* What `pick` says of every key and every env. */
static void answer_picked(abx__call *call, const char *label,
			  const char *(*pick)(const abx__identity *who, const char *team))
{
	const char *team = call->params[0];
	ABX_CLEANUP_JSON json_object *envs = NULL;
	abx__map names = ABX__MAP_INIT;
	const abx__api_key *key;
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && abx__keys_at(call->serve->keys, i, &key); i++)
		r = add(&names, pick(&key->who, team));
	if (r == ABX_OK)
		r = abx__control_env_list(call->serve->control, NULL, &envs, NULL);
	for (size_t i = 0; r == ABX_OK && i < json_object_array_length(envs); i++) {
		json_object *env = json_object_array_get_idx(envs, i);

		if (team && !abx__str_eq(team, abx__view_label(env, ABX__LABEL_TEAM)))
			continue;
		r = add(&names, label ? abx__view_label(env, label)
				      : abx__view_meta(env, "namespace"));
	}
	answer_names(call, &names, r);
}

static const char *pick_team(const abx__identity *who, const char *team)
{
	(void)team;
	return who->team;
}

static const char *pick_user(const abx__identity *who, const char *team)
{
	return abx__str_eq(who->team, team) ? who->user : NULL;
}

static const char *pick_namespace(const abx__identity *who, const char *team)
{
	(void)team;
	return who->namespace_;
}

void abx__native_teams(abx__call *call)
{
	answer_picked(call, ABX__LABEL_TEAM, pick_team);
}

void abx__native_users(abx__call *call)
{
	answer_picked(call, ABX__LABEL_USER, pick_user);
}

void abx__native_namespaces(abx__call *call)
{
	answer_picked(call, NULL, pick_namespace);
}

/* ---- statistics ---- */

/* Of all, or of what the caller itself has in its namespace; live ones and those that
 * ended. */
static void statistics(abx__call *call, bool all)
{
	const abx__identity *who = &call->who;
	const abx__sandbox_query query = {
		.namespace_ = all ? NULL : who->namespace_,
		.team = all || abx__identity_sees_all(who) ? NULL : who->team,
		.user = all || abx__identity_sees_all(who) ? NULL : who->user
	};
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *n = NULL;

	if (abx__control_sandbox_statistics(call->serve->control, &query, true, &n,
					    &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	if (!all)
		json_object_object_del(n, "byNamespace");
	if (!o || (!all && abx__json_set_str(n, "namespace", call->who.namespace_) < 0)) {
		json_object_put(n);
		abx__call_nomem(call);
	} else if (abx__json_set_take(o, "statistics", n) < 0) {
		abx__call_nomem(call);
	} else {
		abx__call_json(call, 200, abx_take(o));
	}
}

void abx__native_statistics(abx__call *call)
{
	statistics(call, false);
}

void abx__native_statistics_all(abx__call *call)
{
	statistics(call, true);
}

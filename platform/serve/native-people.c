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
#include "serve/list.h"
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

static int count_in(json_object *counts, const char *key)
{
	json_object *n = NULL;
	int64_t before =
		json_object_object_get_ex(counts, key, &n) ? json_object_get_int64(n) : 0;

	return abx__json_set_i64(counts, key, before + 1);
}

typedef struct counts {
	int64_t total;
	json_object *by_status, *by_namespace;
} counts;

/* Of all, or of what the caller itself has in its namespace. */
static int count_sandboxes(const abx__call *call, bool all, counts *n)
{
	const abx__sandboxes *table = abx__control_sandboxes(call->serve->control);
	const abx__sandbox_rec *rec;

	for (size_t i = 0; abx__sandboxes_at(table, i, &rec); i++) {
		if (!all && (!abx__list_visible(&call->who, rec) ||
			     !abx__str_eq(call->who.namespace_, rec->namespace_)))
			continue;
		n->total++;
		if (count_in(n->by_status, abx__native_sandbox_status(rec)) < 0 ||
		    count_in(n->by_namespace, rec->namespace_) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

static int put_counts(json_object *o, const counts *n, bool all, const char *namespace_)
{
	if (abx__json_set_i64(o, "total", n->total) < 0 ||
	    abx__native_put(o, "byStatus", n->by_status) < 0)
		return ABX_ENOMEM;
	return all ? abx__native_put(o, "byNamespace", n->by_namespace)
		   : abx__json_set_str(o, "namespace", namespace_);
}

static void statistics(abx__call *call, bool all)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *statuses = json_object_new_object();
	ABX_CLEANUP_JSON json_object *namespaces = json_object_new_object();
	ABX_CLEANUP_JSON json_object *outer = json_object_new_object();
	counts n = { .by_status = statuses, .by_namespace = namespaces };

	if (!o || !statuses || !namespaces || !outer ||
	    count_sandboxes(call, all, &n) < 0 ||
	    put_counts(o, &n, all, call->who.namespace_) < 0 ||
	    abx__json_set_take(outer, "statistics", abx_take(o)) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(outer));
}

void abx__native_statistics(abx__call *call)
{
	statistics(call, false);
}

void abx__native_statistics_all(abx__call *call)
{
	statistics(call, true);
}

/* ---- what a single machine has none of ---- */

void abx__native_volumes(abx__call *call)
{
	abx__native_page(call, json_object_new_array(), false);
}

void abx__native_quotas(abx__call *call)
{
	abx__native_page(call, json_object_new_array(), true);
}

void abx__native_instance_types(abx__call *call)
{
	abx__native_page(call, json_object_new_array(), false);
}

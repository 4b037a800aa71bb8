/*
 * native-groups.c - autoscaling groups of an env (native-api.md, section 8). PUT means
 * desired state.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/native.h"
#include "serve/view.h"

/* Borrowed; NULL when the env has none of that name. */
static json_object *find_group(json_object *env, const char *name)
{
	json_object *groups = abx__view_path(env, "spec", "autoscaling", "groups");
	size_t n = groups ? json_object_array_length(groups) : 0;

	for (size_t i = 0; i < n; i++) {
		json_object *group = json_object_array_get_idx(groups, i);

		if (abx__str_eq(abx__view_str(group, "name"), name))
			return group;
	}
	return NULL;
}

void abx__native_groups_spec(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *spec;

	if (!env)
		return;
	spec = abx__view_path(env, "spec", "autoscaling");
	if (spec)
		json_object_get(spec);
	else
		spec = json_object_new_object();
	if (!spec || !o || abx__json_set_take(o, "spec", spec) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
}

void abx__native_group_list(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);
	json_object *groups;

	if (!env)
		return;
	groups = abx__view_path(env, "spec", "autoscaling", "groups");
	abx__native_page(call, groups ? json_object_get(groups) : json_object_new_array(),
			 false);
}

/* `editable` is the group without its name. */
static void answer_group(abx__call *call, json_object *group)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *edit = NULL;

	if (!o || json_object_deep_copy(group, &edit, NULL) < 0) {
		abx__call_nomem(call);
		return;
	}
	json_object_object_del(edit, "name");
	if (abx__native_put(o, "group", group) < 0 ||
	    abx__json_set_take(o, "editable", abx_take(edit)) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
}

void abx__native_group_get(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);
	json_object *group;

	if (!env)
		return;
	group = find_group(env, call->params[1]);
	if (group)
		answer_group(call, group);
	else
		abx__call_fail(call, 404, "scaling group \"%s\" not found in env \"%s\"",
			       call->params[1], call->params[0]);
}

static void on_put(void *userdata, int r, json_object *group, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		answer_group(call, group);
	abx__call_drop(call);
}

void abx__native_group_put(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);

	if (!env)
		return;
	abx__call_hold(call);
	if (abx__control_group_put(call->serve->control, call->who.namespace_,
				   call->params[0], call->params[1], call->body, on_put,
				   call, &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

static void on_deleted(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (r < 0)
		abx__call_error(call, err);
	else if (!o || abx__json_set_str(o, "name", call->params[1]) < 0 ||
		 abx__json_set_str(o, "status", "Deleted") < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
	abx__call_drop(call);
}

void abx__native_group_delete(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);

	if (!env)
		return;
	abx__call_hold(call);
	if (abx__control_group_delete(call->serve->control, call->who.namespace_,
				      call->params[0], call->params[1], on_deleted, call,
				      &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

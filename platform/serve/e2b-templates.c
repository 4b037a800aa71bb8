/*
 * e2b-templates.c - E2B's templates are our envs: what a create may name. A build is what
 * an env is, always ready.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/keys.h"
#include "model/names.h"
#include "serve/e2b.h"
#include "serve/view.h"

/* The shape of the env's first member here; {1 CPU, 128 MiB} are the least the wire's
 * schema allows. */
static void env_shape(json_object *env, int64_t *ret_cpu, int64_t *ret_mb)
{
	json_object *member = abx__view_member_at(env, 0);
	json_object *resources =
		member ? abx__view_path(member, "config", "inlineResources") : NULL;
	int64_t milli = 0, bytes = 0;

	if (resources)
		(void)abx__resources_shape(resources, &milli, &bytes, NULL);
	*ret_cpu = milli > 1000 ? (milli + 999) / 1000 : 1;
	*ret_mb = (bytes >> 20) > 128 ? bytes >> 20 : 128;
}

static int set_names(json_object *o, const char *name)
{
	int r = abx__json_set_str(o, "templateID", name);

	for (int i = 0; r == ABX_OK && i < 2; i++) {
		json_object *names = json_object_new_array();

		r = names ? abx__json_push_take(names, json_object_new_string(name))
			  : ABX_ENOMEM;
		if (r < 0)
			json_object_put(names);
		else
			r = abx__json_set_take(o, i ? "aliases" : "names", names);
	}
	return r;
}

static int set_history(json_object *o, json_object *env)
{
	const char *created = abx__view_meta(env, "creationTimestamp");
	int r = abx__json_set_bool(o, "public", false);

	if (!created)
		created = "1970-01-01T00:00:00Z";
	if (r == ABX_OK)
		r = abx__json_set_str(o, "createdAt", created);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "updatedAt", created);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "lastSpawnedAt", NULL);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "spawnCount", 0);
	return r;
}

static int set_build(json_object *o, json_object *env)
{
	const char *uid = abx__view_meta(env, "uid");
	int64_t cpu, mb;
	int r = abx__json_set_str(o, "buildID",
				  uid ? uid : "00000000-0000-0000-0000-000000000000");

	env_shape(env, &cpu, &mb);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "cpuCount", cpu);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "memoryMB", mb);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "diskSizeMB", 0);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "createdBy", NULL);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "buildCount", 1);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "envdVersion", ABX__SERVE_ENVD_VERSION);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "buildStatus", "ready");
	return r;
}

static json_object *template_of(json_object *env)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || set_names(o, abx__view_meta(env, "name")) < 0 ||
	    set_history(o, env) < 0 || set_build(o, env) < 0)
		return NULL;
	return abx_take(o);
}

void abx__e2b_templates(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *envs = NULL;
	ABX_CLEANUP_JSON json_object *out = json_object_new_array();

	if (abx__control_env_list(call->serve->control, call->who.namespace_, &envs,
				  &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	for (size_t i = 0; out && i < json_object_array_length(envs); i++) {
		json_object *env = json_object_array_get_idx(envs, i);
		json_object *o;

		if (!abx__view_visible(&call->who, env))
			continue;
		o = template_of(env);
		if (!o || abx__json_push_take(out, o) < 0) {
			abx__call_nomem(call);
			return;
		}
	}
	abx__call_json(call, 200, abx_take(out));
}

static json_object *with_builds(const char *name, json_object *object)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *builds = json_object_new_array();

	if (!o || !builds) {
		json_object_put(builds);
		return NULL;
	}
	if (abx__json_set_take(o, "builds", builds) < 0 || set_names(o, name) < 0 ||
	    set_history(o, object) < 0)
		return NULL;
	return abx_take(o);
}

void abx__e2b_template(abx__call *call)
{
	abx__control *control = call->serve->control;
	const char *name = call->params[0];
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *object = NULL;
	int r = abx__control_env_get(control, call->who.namespace_, name, &object, &err);

	if (r == ABX_ENOTFOUND)
		r = abx__control_pool_get(control, call->who.namespace_, NULL, name,
					  &object, &err);
	if (r == ABX_ENOTFOUND || (r == ABX_OK && !abx__view_visible(&call->who, object)))
		abx__call_fail(call, 404, "template '%s' not found", name);
	else if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_json(call, 200, with_builds(name, object));
}

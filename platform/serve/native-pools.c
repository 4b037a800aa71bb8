/*
 * native-pools.c - member pools of an env (native-api.md, section 9). A write body is a
 * member's config plus its replicas; control/ writes it in the env's document and renders
 * the pool.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/keys.h"
#include "model/names.h"
#include "model/quantity.h"
#include "serve/native.h"
#include "serve/view.h"

static const char *const config_keys[] = { "instanceType",    "multiplier",
					   "inlineResources", "minReplicas",
					   "maxReplicas",     "labels",
					   "annotations",     "updateStrategy" };
#define CONFIG_KEYS (sizeof(config_keys) / sizeof(config_keys[0]))

/* ---- the object on the wire ---- */

static int put_shape(json_object *o, json_object *member)
{
	json_object *resources =
		member ? abx__view_path(member, "config", "inlineResources") : NULL;
	int64_t milli = 0, bytes = 0;
	char text[ABX__QUANTITY_SIZE];
	int r;

	if (!resources || abx__resources_shape(resources, &milli, &bytes, NULL) < 0)
		return ABX_OK;
	abx__quantity_print_milli(milli, text);
	r = abx__json_set_str(o, "cpu", text);
	if (r < 0)
		return r;
	abx__quantity_print_bytes(bytes, text);
	return abx__json_set_str(o, "memory", text);
}

static json_object *spec_view(json_object *pool)
{
	static const char *const keys[] = { "replicas", "templateName",
					    "podCreationImagePolicy",
					    "defaultStartupTimeout",
					    "defaultIdleTimeout" };
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	for (size_t i = 0; o && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (abx__native_put(o, keys[i], abx__view_path(pool, "spec", keys[i])) <
		    0)
			return NULL;
	return abx_take(o);
}

static json_object *pool_view(json_object *pool, json_object *env)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	const char *name = abx__view_meta(pool, "name");
	json_object *spec = spec_view(pool);

	if (!o || !spec) {
		json_object_put(spec);
		return NULL;
	}
	if (abx__json_set_take(o, "spec", spec) < 0 ||
	    abx__native_put(o, "status", abx__view_path(pool, "status")) < 0 ||
	    abx__native_put_str(o, "name", name) < 0 ||
	    abx__native_put_str(o, "namespace", abx__view_meta(pool, "namespace")) < 0 ||
	    abx__native_put_str(o, "team", abx__view_label(env, ABX__LABEL_TEAM)) < 0 ||
	    abx__native_put_str(o, "user", abx__view_label(env, ABX__LABEL_USER)) < 0 ||
	    abx__native_put_str(o, "createdAt",
				abx__view_meta(pool, "creationTimestamp")) < 0 ||
	    abx__native_put_str(o, "scalingGroup",
				abx__view_label(pool, ABX__LABEL_SCALING_GROUP)) < 0 ||
	    abx__native_put_str(
		    o, "templateVersion",
		    abx__view_annotation(pool, ABX__ANNOTATION_TEMPLATE_VERSION)) < 0 ||
	    abx__native_put_str(o, "owningEnv", abx__view_meta(env, "name")) < 0 ||
	    put_shape(o, name ? abx__view_member(env, name) : NULL) < 0)
		return NULL;
	return abx_take(o);
}

/* A document of exactly the PUT body's shape. */
static json_object *editable(json_object *member)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	for (size_t i = 0; o && i < CONFIG_KEYS; i++)
		if (abx__native_put(o, config_keys[i],
				    abx__view_path(member, "config", config_keys[i])) < 0)
			return NULL;
	if (!o || abx__native_put(o, "replicas",
				  abx__view_path(member, "spec", "replicas")) < 0)
		return NULL;
	return abx_take(o);
}

/* The member is called `template` on the wire. */
static void answer_pool(abx__call *call, int status, json_object *pool)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *env = NULL;
	const char *name = abx__view_meta(pool, "name");
	json_object *view, *edit, *member, *rendered;
	int r;

	if (abx__control_env_get(call->serve->control, call->who.namespace_,
				 call->params[0], &env, NULL) < 0) {
		abx__call_fail(call, 404, "sandbox env \"%s\" not found",
			       call->params[0]);
		return;
	}
	view = pool_view(pool, env);
	member = name ? abx__view_member(env, name) : NULL;
	rendered = abx__view_path(pool, "spec", "template");
	r = o && view ? abx__native_put(o, "template", view) : ABX_ENOMEM;
	if (r == ABX_OK && rendered)
		r = abx__native_put_yaml(view, "specYaml", rendered);
	json_object_put(view);
	if (r == ABX_OK && member) {
		edit = editable(member);
		r = edit ? abx__json_set_take(o, "editable", edit) : ABX_ENOMEM;
	}
	if (r < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, status, abx_take(o));
}

/* ---- reads ---- */

void abx__native_pool_list(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);
	ABX_CLEANUP_JSON json_object *pools = NULL;
	ABX_CLEANUP_JSON json_object *items = json_object_new_array();

	if (!env)
		return;
	if (abx__control_pool_list(call->serve->control, call->who.namespace_,
				   call->params[0], &pools, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	for (size_t i = 0; items && i < json_object_array_length(pools); i++) {
		json_object *o = pool_view(json_object_array_get_idx(pools, i), env);

		if (!o || abx__json_push_take(items, o) < 0) {
			abx__call_nomem(call);
			return;
		}
	}
	abx__native_page(call, abx_take(items), true);
}

void abx__native_pool_get(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);
	ABX_CLEANUP_JSON json_object *pool = NULL;

	if (!env)
		return;
	if (abx__control_pool_get(call->serve->control, call->who.namespace_,
				  call->params[0], call->params[1], &pool, &err) < 0)
		abx__call_error(call, err);
	else
		answer_pool(call, 200, pool);
}

/* ---- writes ---- */

/* {config, spec: {replicas}} of the write body. */
static json_object *member_of(json_object *body)
{
	ABX_CLEANUP_JSON json_object *member = json_object_new_object();
	json_object *config = json_object_new_object(), *spec = json_object_new_object();
	int r = member && config && spec ? ABX_OK : ABX_ENOMEM;

	for (size_t i = 0; r == ABX_OK && i < CONFIG_KEYS; i++)
		r = abx__native_put(config, config_keys[i],
				    abx__view_path(body, config_keys[i]));
	if (r == ABX_OK)
		r = abx__native_put(spec, "replicas", abx__view_path(body, "replicas"));
	if (r == ABX_OK)
		r = abx__native_put(member, "config", config);
	if (r == ABX_OK)
		r = abx__native_put(member, "spec", spec);
	json_object_put(config);
	json_object_put(spec);
	return r == ABX_OK ? abx_take(member) : NULL;
}

static void on_created(void *userdata, int r, json_object *pool, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		answer_pool(call, 202, pool);
	abx__call_drop(call);
}

static void on_updated(void *userdata, int r, json_object *pool, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		answer_pool(call, 200, pool);
	abx__call_drop(call);
}

static void write_pool(abx__call *call, bool create)
{
	abx__control *control = call->serve->control;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);
	ABX_CLEANUP_JSON json_object *member = NULL;
	int r;

	if (!env)
		return;
	member = member_of(call->body);
	r = member ? ABX_OK : abx__error_nomem(&err);
	abx__call_hold(call);
	if (r == ABX_OK && create)
		r = abx__control_pool_create(control, call->who.namespace_,
					     call->params[0], member, on_created, call,
					     &err);
	else if (r == ABX_OK)
		r = abx__control_pool_update(control, call->who.namespace_,
					     call->params[0], call->params[1], member,
					     on_updated, call, &err);
	if (r < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

void abx__native_pool_create(abx__call *call)
{
	write_pool(call, true);
}

void abx__native_pool_update(abx__call *call)
{
	write_pool(call, false);
}

static void on_deleted(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		abx__native_terminating(call, 202, call->params[1], "Terminating");
	abx__call_drop(call);
}

void abx__native_pool_delete(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);

	if (!env)
		return;
	abx__call_hold(call);
	if (abx__control_pool_delete(call->serve->control, call->who.namespace_,
				     call->params[0], call->params[1], on_deleted, call,
				     &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

/*
 * native-envs.c - envs of the native API: the write body becomes a SandboxEnv document
 * for control/, and back (native-api.md, section 7). PUT means desired state: what is
 * left out of `overrides` is cleared, and the fields fixed at create must be repeated as
 * they are.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/keys.h"
#include "model/names.h"
#include "serve/docs.h"
#include "serve/native.h"
#include "serve/view.h"

/* ---- the object on the wire ---- */

/* {clusterID, members: [{name, config}]}: what a member was rendered into is not shown.
 */
static json_object *cluster_view(json_object *cluster)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *out = json_object_new_array();
	json_object *members = abx__view_path(cluster, "members");
	size_t n = members ? json_object_array_length(members) : 0;

	if (!o || !out ||
	    abx__native_put(o, "clusterID", abx__view_path(cluster, "clusterID")) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		json_object *member = json_object_array_get_idx(members, i);
		ABX_CLEANUP_JSON json_object *m = json_object_new_object();

		if (!m ||
		    abx__native_put(m, "name", abx__view_path(member, "name")) < 0 ||
		    abx__native_put(m, "config", abx__view_path(member, "config")) < 0 ||
		    abx__json_push_take(out, abx_take(m)) < 0)
			return NULL;
	}
	if (abx__json_set_take(o, "members", abx_take(out)) < 0)
		return NULL;
	return abx_take(o);
}

static json_object *clusters_view(json_object *env)
{
	ABX_CLEANUP_JSON json_object *out = json_object_new_array();
	json_object *clusters = abx__view_path(env, "spec", "clusters");
	size_t n = clusters ? json_object_array_length(clusters) : 0;

	for (size_t i = 0; out && i < n; i++) {
		json_object *c = cluster_view(json_object_array_get_idx(clusters, i));

		if (!c || abx__json_push_take(out, c) < 0)
			return NULL;
	}
	return abx_take(out);
}

/* The overrides as a GET reports them: envd.verbose says the effective value. */
static json_object *overrides_view(json_object *env)
{
	json_object *overrides = abx__view_path(env, "spec", "overrides");
	ABX_CLEANUP_JSON json_object *o = NULL;
	json_object *envd;

	if (!overrides)
		o = json_object_new_object();
	else if (json_object_deep_copy(overrides, &o, NULL) < 0)
		return NULL;
	if (!o || abx__view_path(o, "envd", "verbose"))
		return abx_take(o);
	envd = json_object_new_object();
	if (!envd || abx__json_set_take(o, "envd", envd) < 0 ||
	    abx__json_set_bool(envd, "verbose", true) < 0)
		return NULL;
	return abx_take(o);
}

static json_object *spec_view(json_object *env)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *spec = abx__view_path(env, "spec");
	json_object *clusters = clusters_view(env), *overrides = overrides_view(env);
	int r = o && clusters && overrides ? ABX_OK : ABX_ENOMEM;

	if (r == ABX_OK)
		r = abx__native_put(o, "templateRef",
				    abx__view_path(spec, "templateRef"));
	if (r == ABX_OK)
		r = abx__native_put(o, "mode", abx__view_path(spec, "mode"));
	if (r == ABX_OK)
		r = abx__native_put(o, "defaults", abx__view_path(spec, "defaults"));
	if (r == ABX_OK)
		r = abx__native_put(o, "autoscaling",
				    abx__view_path(spec, "autoscaling"));
	if (r == ABX_OK)
		r = abx__native_put(o, "clusters", clusters);
	if (r == ABX_OK)
		r = abx__native_put(o, "overrides", overrides);
	json_object_put(clusters);
	json_object_put(overrides);
	return r == ABX_OK ? abx_take(o) : NULL;
}

static int put_owner(json_object *o, json_object *doc)
{
	int r = abx__native_put_str(o, "name", abx__view_meta(doc, "name"));

	if (r == ABX_OK)
		r = abx__native_put_str(o, "namespace", abx__view_meta(doc, "namespace"));
	if (r == ABX_OK)
		r = abx__native_put_str(o, "team", abx__view_label(doc, ABX__LABEL_TEAM));
	if (r == ABX_OK)
		r = abx__native_put_str(o, "user", abx__view_label(doc, ABX__LABEL_USER));
	if (r == ABX_OK)
		r = abx__native_put_str(o, "createdAt",
					abx__view_meta(doc, "creationTimestamp"));
	return r;
}

static const char *sizing_of(json_object *env)
{
	const char *sizing = abx__view_label(env, ABX__LABEL_POOL_SIZING);

	return sizing ? sizing : "either";
}

/* The template's documentation with this env's values (native-api.md, section 7.4). */
static int put_docs(abx__call *call, json_object *o, json_object *env)
{
	const char *template_ = abx__view_str(env, "spec", "templateRef", "name");
	json_object *member = abx__view_member_at(env, 0);
	const abx__docs_names names = {
		.env = abx__view_meta(env, "name"),
		.pool = member ? abx__view_str(member, "name") : NULL,
		.cluster = call->serve->cluster_id,
		.base_url = call->serve->base_url,
	};
	ABX_CLEANUP_JSON json_object *doc = NULL;

	if (!template_ ||
	    abx__control_template_get(call->serve->control, template_, &doc, NULL) < 0)
		return ABX_OK;
	return abx__native_put_docs(o, "envDocs", doc, &names);
}

static json_object *env_view(abx__call *call, json_object *env)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *spec = spec_view(env);

	if (!o || !spec) {
		json_object_put(spec);
		return NULL;
	}
	if (abx__json_set_take(o, "spec", spec) < 0 || put_owner(o, env) < 0 ||
	    abx__native_put(o, "labels", abx__view_path(env, "metadata", "labels")) < 0 ||
	    abx__native_put(o, "status", abx__view_path(env, "status")) < 0 ||
	    abx__json_set_str(o, "poolSizing", sizing_of(env)) < 0 ||
	    put_docs(call, o, env) < 0)
		return NULL;
	return abx_take(o);
}

/* A document of exactly the PUT body's shape. */
static json_object *editable(json_object *env)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *overrides = overrides_view(env);

	if (!o || !overrides) {
		json_object_put(overrides);
		return NULL;
	}
	if (abx__json_set_take(o, "overrides", overrides) < 0 ||
	    abx__native_put(o, "name", abx__view_path(env, "metadata", "name")) < 0 ||
	    abx__native_put(o, "templateRef",
			    abx__view_path(env, "spec", "templateRef")) < 0 ||
	    abx__native_put(o, "mode", abx__view_path(env, "spec", "mode")) < 0 ||
	    abx__native_put(o, "labels", abx__view_path(env, "metadata", "labels")) < 0 ||
	    abx__native_put(o, "annotations",
			    abx__view_path(env, "metadata", "annotations")) < 0)
		return NULL;
	return abx_take(o);
}

static void answer_env(abx__call *call, int status, json_object *env)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *view = env_view(call, env), *edit = editable(env);
	int r = o && view && edit ? ABX_OK : ABX_ENOMEM;

	if (r == ABX_OK)
		r = abx__native_put(o, "env", view);
	if (r == ABX_OK)
		r = abx__native_put(o, "editable", edit);
	json_object_put(view);
	json_object_put(edit);
	if (r == ABX_OK)
		abx__call_json(call, status, abx_take(o));
	else
		abx__call_nomem(call);
}

/* ---- reads ---- */

void abx__native_env_list(abx__call *call)
{
	const abx__identity *who = &call->who;
	bool all = abx__identity_sees_all(who);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *items = NULL;
	size_t total;

	if (abx__control_env_summaries(call->serve->control, who->namespace_,
				       all ? NULL : who->team, all ? NULL : who->user, 0,
				       SIZE_MAX, &items, &total, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	if (!o) {
		json_object_put(items);
		abx__call_nomem(call);
	} else if (abx__json_set_take(o, "items", items) < 0) {
		abx__call_nomem(call);
	} else {
		abx__call_json(call, 200, abx_take(o));
	}
}

void abx__native_env_get(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);

	if (env)
		answer_env(call, 200, env);
}

/* ---- writes ---- */

static int check_overrides(json_object *body, abx_error **reterr)
{
	json_object *overrides = abx__view_path(body, "overrides");
	bool configured = false;

	if (!overrides)
		return ABX_OK;
	if (abx__view_path(overrides, "imagePullSecret"))
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"overrides.imagePullSecret is not supported by this server yet");
	if (abx__json_get_bool(overrides, "imagePullSecretConfigured", &configured,
			       reterr) < 0)
		return ABX_EINVAL;
	if (configured)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"overrides.imagePullSecretConfigured: no secret is configured");
	return ABX_OK;
}

/* The caller's labels with the owner stamped over them. */
static json_object *owned_labels(const abx__call *call, json_object *body)
{
	json_object *given = abx__view_path(body, "labels");
	ABX_CLEANUP_JSON json_object *labels = NULL;

	if (!given)
		labels = json_object_new_object();
	else if (json_object_deep_copy(given, &labels, NULL) < 0)
		return NULL;
	if (!labels || abx__json_set_str(labels, ABX__LABEL_TEAM, call->who.team) < 0 ||
	    abx__json_set_str(labels, ABX__LABEL_USER, call->who.user) < 0)
		return NULL;
	return abx_take(labels);
}

static json_object *new_metadata(const abx__call *call)
{
	ABX_CLEANUP_JSON json_object *m = json_object_new_object();
	json_object *labels = owned_labels(call, call->body);

	if (!m || !labels) {
		json_object_put(labels);
		return NULL;
	}
	if (abx__json_set_take(m, "labels", labels) < 0 ||
	    abx__native_put(m, "annotations", abx__view_path(call->body, "annotations")) <
		    0 ||
	    abx__native_put(m, "name", abx__view_path(call->body, "name")) < 0 ||
	    abx__json_set_str(m, "namespace", call->who.namespace_) < 0)
		return NULL;
	return abx_take(m);
}

static json_object *new_spec(json_object *body)
{
	ABX_CLEANUP_JSON json_object *spec = json_object_new_object();
	const char *mode = abx__view_str(body, "mode");
	json_object *overrides = abx__view_path(body, "overrides");

	if (!spec ||
	    abx__native_put(spec, "templateRef", abx__view_path(body, "templateRef")) <
		    0 ||
	    abx__json_set_str(spec, "mode", mode ? mode : "WarmPool") < 0 ||
	    abx__native_put(spec, "overrides", overrides) < 0)
		return NULL;
	return abx_take(spec);
}

static json_object *new_doc(const abx__call *call)
{
	ABX_CLEANUP_JSON json_object *doc = json_object_new_object();
	json_object *metadata = new_metadata(call), *spec = new_spec(call->body);
	int r = doc && metadata && spec ? ABX_OK : ABX_ENOMEM;

	if (r == ABX_OK)
		r = abx__json_set_str(doc, "apiVersion", ABX__API_VERSION);
	if (r == ABX_OK)
		r = abx__json_set_str(doc, "kind", ABX__KIND_ENV);
	if (r == ABX_OK)
		r = abx__native_put(doc, "metadata", metadata);
	if (r == ABX_OK)
		r = abx__native_put(doc, "spec", spec);
	json_object_put(metadata);
	json_object_put(spec);
	return r == ABX_OK ? abx_take(doc) : NULL;
}

static void on_created(void *userdata, int r, json_object *env, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		answer_env(call, 201, env);
	abx__call_drop(call);
}

static void on_updated(void *userdata, int r, json_object *env, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		answer_env(call, 200, env);
	abx__call_drop(call);
}

/* A template the caller may not see is one that is not there. */
static int check_template(const abx__call *call, abx_error **reterr)
{
	const char *name = abx__view_str(call->body, "templateRef", "name");
	ABX_CLEANUP_JSON json_object *doc = NULL;

	if (!name ||
	    abx__control_template_get(call->serve->control, name, &doc, NULL) < 0 ||
	    abx__view_template_visible(&call->who, doc))
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "env %s: template %s does not exist",
			      abx__view_str(call->body, "name"), name);
}

void abx__native_env_create(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *doc = NULL;
	int r = check_overrides(call->body, &err);

	if (r == ABX_OK)
		r = check_template(call, &err);
	if (r == ABX_OK) {
		doc = new_doc(call);
		r = doc ? ABX_OK : abx__error_nomem(&err);
	}
	if (r < 0) {
		abx__call_error(call, err);
		return;
	}
	abx__call_hold(call);
	if (abx__control_env_create(call->serve->control, doc, on_created, call, &err) <
	    0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

/* A fixed field: the body must repeat what is in force. Absent and {} are the same. */
static int check_fixed(json_object *body, const char *key, json_object *live,
		       abx_error **reterr)
{
	json_object *given = abx__view_path(body, key);
	bool none = !live || (json_object_is_type(live, json_type_object) &&
			      json_object_object_length(live) == 0);
	bool empty = !given || (json_object_is_type(given, json_type_object) &&
				json_object_object_length(given) == 0);

	if ((none && empty) || json_object_equal(given, live))
		return ABX_OK;
	return abx__error_set(
		reterr, ABX_EINVAL,
		"%s is fixed when the env is created; the value in force is %s; make a "
		"new env for another",
		key,
		live ? json_object_to_json_string_ext(live, JSON_C_TO_STRING_PLAIN)
		     : "none");
}

static int check_update(const abx__call *call, json_object *env, abx_error **reterr)
{
	const char *name = abx__view_str(call->body, "name");
	int r;

	if (name && !abx__str_eq(name, call->params[0]))
		return abx__error_set(reterr, ABX_EINVAL,
				      "name \"%s\" is not the path's \"%s\"", name,
				      call->params[0]);
	r = check_fixed(call->body, "templateRef",
			abx__view_path(env, "spec", "templateRef"), reterr);
	if (r == ABX_OK)
		r = check_fixed(call->body, "mode", abx__view_path(env, "spec", "mode"),
				reterr);
	if (r == ABX_OK)
		r = check_fixed(call->body, "labels",
				abx__view_path(env, "metadata", "labels"), reterr);
	if (r == ABX_OK)
		r = check_fixed(call->body, "annotations",
				abx__view_path(env, "metadata", "annotations"), reterr);
	if (r == ABX_OK)
		r = check_overrides(call->body, reterr);
	return r;
}

/* The env as it is, with the body's overrides; its resourceVersion guards the write. */
static json_object *changed_doc(json_object *env, json_object *body)
{
	ABX_CLEANUP_JSON json_object *doc = NULL;
	json_object *spec, *overrides = abx__view_path(body, "overrides");

	if (json_object_deep_copy(env, &doc, NULL) < 0)
		return NULL;
	json_object_object_del(doc, "status");
	spec = abx__view_path(doc, "spec");
	json_object_object_del(spec, "overrides");
	if (abx__native_put(spec, "overrides", overrides) < 0)
		return NULL;
	return abx_take(doc);
}

void abx__native_env_update(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);
	ABX_CLEANUP_JSON json_object *doc = NULL;
	int r;

	if (!env)
		return;
	r = check_update(call, env, &err);
	if (r == ABX_OK) {
		doc = changed_doc(env, call->body);
		r = doc ? ABX_OK : abx__error_nomem(&err);
	}
	if (r < 0) {
		abx__call_error(call, err);
		return;
	}
	abx__call_hold(call);
	if (abx__control_env_update(call->serve->control, doc, on_updated, call, &err) <
	    0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

static void on_deleted(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		abx__native_terminating(call, 202, call->params[0], "Terminating");
	abx__call_drop(call);
}

void abx__native_env_delete(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);

	if (!env)
		return;
	abx__call_hold(call);
	if (abx__control_env_delete(call->serve->control, call->who.namespace_,
				    call->params[0], on_deleted, call, &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

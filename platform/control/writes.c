/*
 * writes.c - every change of a template's or an env's document, one at a time.
 *
 * A write makes its document when its turn comes, from the state all earlier ones left,
 * so checks across objects (an env's template exists; a template to be deleted has no
 * env) cannot be overtaken. Memory follows the store: nothing changes here before the
 * store has said yes. The documents themselves are made by write-templates.c,
 * write-envs.c and write-members.c.
 */
#include "control/writes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"

void abx__write_free(abx__write *w)
{
	if (!w)
		return;
	abx__free(w->namespace_);
	abx__free(w->name);
	abx__free(w->part);
	json_object_put(w->input);
	json_object_put(w->made);
	abx__free(w);
}

void abx__writes_drop(abx__control *control)
{
	while (control->writes) {
		abx__write *w = control->writes;

		DL_DELETE(control->writes, w);
		abx__write_free(w);
	}
}

/* --- what the makers share --- */

json_object *abx__write_copy(json_object *value)
{
	json_object *copy = NULL;

	return value && json_object_deep_copy(value, &copy, NULL) == 0 ? copy : NULL;
}

abx__env *abx__write_env(const abx__write *w)
{
	return abx__env_find(w->control, w->namespace_, w->name);
}

int abx__write_no_env(const abx__write *w, abx_error **reterr)
{
	return abx__error_set(reterr, ABX_ENOTFOUND,
			      "env %s does not exist in namespace %s", w->name,
			      w->namespace_);
}

/* What the writer may know of the object: nothing, or its present version. */
int abx__write_check_version(json_object *input, const abx__object *object,
			     abx_error **reterr)
{
	const char *given =
		abx__field_str(abx__field_object(input, "metadata"), "resourceVersion");
	char present[24];

	snprintf(present, sizeof(present), "%" PRIu64, object->version);
	if (!given || strcmp(given, present) == 0)
		return ABX_OK;
	abx__error_set(reterr, ABX_ECONFLICT, "%s is at resourceVersion %s, not %s",
		       object->name, present, given);
	abx__error_hint(reterr, "read it again and apply the change to that");
	return ABX_ECONFLICT;
}

/* {metadata: {labels, annotations, generation}, spec}: what is stored of a document. */
int abx__write_stored_form(json_object *input, json_object *spec, const abx__object *old,
			   json_object **ret, abx_error **reterr)
{
	json_object *given = abx__field_object(input, "metadata");
	json_object *old_spec = old ? abx__field_object(old->doc, "spec") : NULL;
	json_object *old_meta = old ? abx__field_object(old->doc, "metadata") : NULL;
	int64_t generation = abx__field_int(old_meta, "generation", 0);
	json_object *doc = json_object_new_object();
	json_object *meta = json_object_new_object();

	if (!old || !json_object_equal(old_spec, spec))
		generation++;
	abx__field_share(meta, "labels", abx__field_object(given, "labels"));
	abx__field_share(meta, "annotations", abx__field_object(given, "annotations"));
	abx__field_set_int(meta, "generation", generation);
	if (abx__field_take(doc, "metadata", meta) < 0 ||
	    abx__field_share(doc, "spec", spec) < 0) {
		json_object_put(doc);
		return abx__error_nomem(reterr);
	}
	*ret = doc;
	return ABX_OK;
}

/* --- running them --- */

/* The object as it is now, for whoever asked; NULL after a delete. */
static json_object *result_of(const abx__write *w)
{
	abx__env *env;
	const abx__pool *pool;

	if (!w->made)
		return NULL;
	if (strcmp(w->kind, ABX__KIND_TEMPLATE) == 0) {
		const abx__template *t = abx__template_find(w->control, w->name);

		return t ? abx__template_document(t) : NULL;
	}
	env = abx__write_env(w);
	if (!env)
		return NULL;
	if (w->make == abx__make_group) {
		json_object *group = abx__groups_find(env->object.doc, w->part);

		return abx__write_copy(group);
	}
	if (w->part) {
		pool = abx__pool_find(w->control, w->namespace_, w->part);
		return pool ? abx__pool_document(pool) : NULL;
	}
	return abx__env_document(env);
}

static void finish(abx__write *w, int r, const abx_error *err)
{
	abx__control *control = w->control;
	json_object *result = NULL;

	DL_DELETE(control->writes, w);
	control->write_running = false;
	if (control->writes)
		abx__control_set_timer_sooner(control, &control->writes_timer, 0);
	if (w->internal_done)
		w->internal_done(w, r, err);
	if (w->object_done) {
		result = r == ABX_OK ? result_of(w) : NULL;
		w->object_done(w->userdata, r, result, err);
		json_object_put(result);
	} else if (w->done) {
		w->done(w->userdata, r, err);
	}
	abx__write_free(w);
}

static void sync_bound_envs(abx__control *control, const char *template_)
{
	for (abx__env *env = control->envs; env; env = env->hh.next) {
		json_object *spec = abx__field_object(env->object.doc, "spec");

		if (abx__str_eq(abx__field_str(abx__field_object(spec, "templateRef"),
					       "name"),
				template_))
			abx__env_sync(env);
	}
}

static int take_in(abx__write *w, const abx__doc *doc, abx_error **reterr)
{
	bool is_template = strcmp(w->kind, ABX__KIND_TEMPLATE) == 0;
	abx__template *t;
	int r;

	if (w->made) {
		r = is_template ? abx__template_load(w->control, doc, reterr)
				: abx__env_load(w->control, doc, reterr);
		if (r == ABX_OK && is_template)
			sync_bound_envs(w->control, w->name);
		return r;
	}
	if (is_template) {
		t = abx__template_find(w->control, w->name);
		HASH_DEL(w->control->templates, t);
		abx__template_free(t);
	} else {
		abx__env_unlink(abx__write_env(w));
	}
	return ABX_OK;
}

static void on_stored(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__write *w = userdata;
	abx__control *control = w->control;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	if (r == ABX_OK) {
		r = take_in(w, doc, &own);
		err = own;
	}
	finish(w, r, err);
	abx__control_call_end(control);
}

static uint64_t version_of(const abx__write *w)
{
	if (strcmp(w->kind, ABX__KIND_TEMPLATE) == 0) {
		const abx__template *t = abx__template_find(w->control, w->name);

		return t ? t->object.version : 0;
	}
	return abx__write_env(w) ? abx__write_env(w)->object.version : 0;
}

static void store(abx__write *w)
{
	abx__store *store = w->control->config.store;
	const char *body;
	size_t len;

	abx__control_call_begin(w->control);
	if (!w->made) {
		store->ops->remove(store, w->kind, w->namespace_, w->name, version_of(w),
				   on_stored, w);
		return;
	}
	body = json_object_to_json_string_length(w->made, JSON_C_TO_STRING_PLAIN, &len);
	if (w->create)
		store->ops->create(store, w->kind, w->namespace_, w->name, body, len,
				   on_stored, w);
	else
		store->ops->update(store, w->kind, w->namespace_, w->name, version_of(w),
				   body, len, on_stored, w);
}

void abx__writes_run(abx__timer *timer)
{
	abx__control *control = timer->owner;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__write *w = control->writes;
	int r;

	if (!w || control->write_running)
		return;
	control->write_running = true;
	if (control->state != ABX__CONTROL_RUNNING) {
		r = abx__error_set(&err, ABX_ECANCELED, "the server is stopping");
		finish(w, r, err);
		return;
	}
	r = w->make(w, &w->made, &err);
	if (r < 0)
		finish(w, r, err ? err : NULL);
	else
		store(w);
}

static int submit(abx__control *control, abx__write template_, const char *namespace_,
		  const char *name, const char *part, json_object *input,
		  abx_error **reterr)
{
	abx__write *w;

	if (control->state != ABX__CONTROL_RUNNING)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "the server is starting or stopping");
	w = abx__calloc(1, sizeof(*w));
	if (!w)
		return abx__error_nomem(reterr);
	*w = template_;
	w->control = control;
	w->namespace_ = abx__strdup(namespace_);
	w->name = abx__strdup(name);
	w->part = abx__strdup(part);
	w->input = abx__write_copy(input);
	if (!w->namespace_ || !w->name || (part && !w->part) || (input && !w->input)) {
		abx__write_free(w);
		return abx__error_nomem(reterr);
	}
	DL_APPEND(control->writes, w);
	abx__control_set_timer_sooner(control, &control->writes_timer, 0);
	return ABX_OK;
}

static const char *name_in(json_object *doc)
{
	return abx__field_str(abx__field_object(doc, "metadata"), "name");
}

static const char *namespace_in(json_object *doc)
{
	const char *ns = abx__field_str(abx__field_object(doc, "metadata"), "namespace");

	return ns ? ns : "default";
}

int abx__control_template_put(abx__control *control, json_object *doc, bool create,
			      abx__object_done done, void *userdata, abx_error **reterr)
{
	const char *name = name_in(doc);
	int r = abx__object_name_check("template", name ? name : "", reterr);

	if (r < 0)
		return r;
	return submit(control,
		      (abx__write){ .make = abx__make_template,
				    .kind = ABX__KIND_TEMPLATE,
				    .create = create,
				    .object_done = done,
				    .userdata = userdata },
		      "", name, NULL, doc, reterr);
}

int abx__control_template_delete(abx__control *control, const char *name,
				 abx__control_done done, void *userdata,
				 abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = abx__make_template_delete,
				    .kind = ABX__KIND_TEMPLATE,
				    .done = done,
				    .userdata = userdata },
		      "", name, NULL, NULL, reterr);
}

static int put_env(abx__control *control, json_object *doc, bool create,
		   abx__object_done done, void *userdata, abx_error **reterr)
{
	const char *name = name_in(doc);
	int r = abx__env_name_check(name ? name : "", reterr);

	if (r == ABX_OK && !abx__dns_label_is_valid(namespace_in(doc)))
		r = abx__error_set(reterr, ABX_EINVAL,
				   "namespace \"%s\" is not a DNS label",
				   namespace_in(doc));
	if (r < 0)
		return r;
	return submit(control,
		      (abx__write){ .make = abx__make_env,
				    .kind = ABX__KIND_ENV,
				    .create = create,
				    .object_done = done,
				    .userdata = userdata },
		      namespace_in(doc), name, NULL, doc, reterr);
}

int abx__control_env_create(abx__control *control, json_object *doc,
			    abx__object_done done, void *userdata, abx_error **reterr)
{
	return put_env(control, doc, true, done, userdata, reterr);
}

int abx__control_env_update(abx__control *control, json_object *doc,
			    abx__object_done done, void *userdata, abx_error **reterr)
{
	return put_env(control, doc, false, done, userdata, reterr);
}

int abx__control_env_delete(abx__control *control, const char *namespace_,
			    const char *name, abx__control_done done, void *userdata,
			    abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = abx__make_env_delete,
				    .kind = ABX__KIND_ENV,
				    .done = done,
				    .userdata = userdata },
		      namespace_, name, NULL, NULL, reterr);
}

int abx__control_pool_create(abx__control *control, const char *namespace_,
			     const char *env, json_object *member, abx__object_done done,
			     void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = abx__make_pool_create,
				    .kind = ABX__KIND_ENV,
				    .object_done = done,
				    .userdata = userdata },
		      namespace_, env, NULL, member, reterr);
}

int abx__control_pool_update(abx__control *control, const char *namespace_,
			     const char *env, const char *pool, json_object *member,
			     abx__object_done done, void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = abx__make_pool_update,
				    .kind = ABX__KIND_ENV,
				    .object_done = done,
				    .userdata = userdata },
		      namespace_, env, pool, member, reterr);
}

int abx__control_pool_delete(abx__control *control, const char *namespace_,
			     const char *env, const char *pool, abx__control_done done,
			     void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = abx__make_pool_delete,
				    .kind = ABX__KIND_ENV,
				    .done = done,
				    .userdata = userdata },
		      namespace_, env, pool, NULL, reterr);
}

int abx__control_group_put(abx__control *control, const char *namespace_, const char *env,
			   const char *group, json_object *policy, abx__object_done done,
			   void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = abx__make_group,
				    .kind = ABX__KIND_ENV,
				    .object_done = done,
				    .userdata = userdata },
		      namespace_, env, group, policy, reterr);
}

int abx__control_group_delete(abx__control *control, const char *namespace_,
			      const char *env, const char *group, abx__control_done done,
			      void *userdata, abx_error **reterr)
{
	return submit(control,
		      (abx__write){ .make = abx__make_group,
				    .kind = ABX__KIND_ENV,
				    .done = done,
				    .userdata = userdata },
		      namespace_, env, group, NULL, reterr);
}

static void on_scaled(abx__write *w, int r, const abx_error *err)
{
	abx__pool *pool = abx__pool_find(w->control, w->namespace_, w->part);

	if (pool)
		pool->scale_writing = false;
	if (r < 0)
		abx__log_warn(w->control->config.log,
			      "autoscaler could not write a pool's size",
			      "pool=%s error=%s", w->part, abx_error_message(err));
	if (r < 0 && pool)
		abx__pool_scale_refused(pool, ABX__SCALE_FAILED, abx_error_message(err));
}

int abx__write_scale(abx__pool *pool, int replicas)
{
	int r = submit(pool->control,
		       (abx__write){ .make = abx__make_scale,
				     .kind = ABX__KIND_ENV,
				     .replicas = replicas,
				     .internal_done = on_scaled },
		       pool->namespace_, pool->env_name, pool->config.name, NULL, NULL);

	pool->scale_writing = r == ABX_OK;
	return r;
}

/*
 * objects.c - templates and envs in memory, and their documents as they go out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/internal.h"

void abx__object_done_(abx__object *object)
{
	abx__free(object->namespace_);
	abx__free(object->name);
	abx__free(object->uid);
	json_object_put(object->doc);
	*object = (abx__object){ 0 };
}

static int parse(const abx__doc *doc, json_object **ret, abx_error **reterr)
{
	json_tokener *tokener = json_tokener_new();
	json_object *parsed = tokener ? json_tokener_parse_ex(tokener, doc->body,
							      (int)doc->body_len + 1)
				      : NULL;
	bool ok = tokener && json_tokener_get_error(tokener) == json_tokener_success &&
		  json_object_is_type(parsed, json_type_object);

	json_tokener_free(tokener);
	if (ok) {
		*ret = parsed;
		return ABX_OK;
	}
	json_object_put(parsed);
	return abx__error_set(reterr, ABX_EIO,
			      "%s %s/%s in the store is not a JSON object", doc->kind,
			      doc->namespace_, doc->name);
}

int abx__object_replace(abx__object *object, const abx__doc *doc, abx_error **reterr)
{
	json_object *parsed = NULL;
	int r = parse(doc, &parsed, reterr);

	if (r < 0)
		return r;
	json_object_put(object->doc);
	object->doc = parsed;
	object->version = doc->version;
	return ABX_OK;
}

int abx__object_init(abx__object *object, const abx__doc *doc, abx_error **reterr)
{
	int r = abx__object_replace(object, doc, reterr);

	if (r < 0)
		return r;
	object->created_ms = doc->created_ms;
	object->namespace_ = abx__strdup(doc->namespace_);
	object->name = abx__strdup(doc->name);
	object->uid = abx__strdup(doc->uid);
	if (object->namespace_ && object->name && object->uid)
		return ABX_OK;
	abx__object_done_(object);
	return abx__error_nomem(reterr);
}

static json_object *metadata_document(const abx__object *object)
{
	json_object *stored = abx__field_object(object->doc, "metadata");
	json_object *meta = json_object_new_object();
	char version[24];

	snprintf(version, sizeof(version), "%" PRIu64, object->version);
	abx__field_set_str(meta, "name", object->name);
	if (*object->namespace_)
		abx__field_set_str(meta, "namespace", object->namespace_);
	abx__field_set_str(meta, "uid", object->uid);
	abx__field_set_str(meta, "resourceVersion", version);
	abx__field_set_int(meta, "generation", abx__field_int(stored, "generation", 1));
	abx__field_take(meta, "creationTimestamp", abx__time_field(object->created_ms));
	abx__field_share(meta, "labels", abx__field_object(stored, "labels"));
	abx__field_share(meta, "annotations", abx__field_object(stored, "annotations"));
	return meta;
}

/* The inner objects are copies: whoever gets the document may change it. */
json_object *abx__object_document(const abx__object *object, const char *kind)
{
	json_object *shared = json_object_new_object();
	json_object *copy = NULL;

	abx__field_set_str(shared, "apiVersion", ABX__API_VERSION);
	abx__field_set_str(shared, "kind", kind);
	abx__field_take(shared, "metadata", metadata_document(object));
	abx__field_share(shared, "spec", abx__field_object(object->doc, "spec"));
	if (json_object_deep_copy(shared, &copy, NULL) < 0)
		copy = NULL;
	json_object_put(shared);
	return copy;
}

/* --- templates --- */

abx__template *abx__template_find(const abx__control *control, const char *name)
{
	abx__template *t = NULL;

	HASH_FIND_STR(control->templates, name, t);
	return t;
}

void abx__template_free(abx__template *t)
{
	if (!t)
		return;
	abx__object_done_(&t->object);
	abx__free(t);
}

static int by_name_template(const abx__template *a, const abx__template *b)
{
	return strcmp(a->object.name, b->object.name);
}

int abx__template_load(abx__control *control, const abx__doc *doc, abx_error **reterr)
{
	abx__template *t = abx__template_find(control, doc->name);
	int r;

	if (t)
		return abx__object_replace(&t->object, doc, reterr);
	t = abx__calloc(1, sizeof(*t));
	if (!t)
		return abx__error_nomem(reterr);
	r = abx__object_init(&t->object, doc, reterr);
	if (r < 0) {
		abx__template_free(t);
		return r;
	}
	HASH_ADD_KEYPTR(hh, control->templates, t->object.name, strlen(t->object.name),
			t);
	if (!t->hh.tbl) {
		abx__template_free(t);
		return abx__error_nomem(reterr);
	}
	return ABX_OK;
}

int abx__control_template_get(abx__control *control, const char *name, json_object **ret,
			      abx_error **reterr)
{
	const abx__template *t = abx__template_find(control, name);
	json_object *doc;

	if (!t)
		return abx__error_set(reterr, ABX_ENOTFOUND, "template %s does not exist",
				      name);
	doc = abx__template_document(t);
	if (!doc)
		return abx__error_nomem(reterr);
	*ret = doc;
	return ABX_OK;
}

int abx__control_template_list(abx__control *control, json_object **ret,
			       abx_error **reterr)
{
	json_object *list = json_object_new_array();

	HASH_SORT(control->templates, by_name_template);
	for (const abx__template *t = control->templates; list && t; t = t->hh.next)
		abx__array_take(&list, abx__template_document(t));
	if (!list)
		return abx__error_nomem(reterr);
	*ret = list;
	return ABX_OK;
}

/* --- envs --- */

abx__env *abx__env_find(const abx__control *control, const char *namespace_,
			const char *name)
{
	char key[320];
	abx__env *env = NULL;

	if (snprintf(key, sizeof(key), "%s/%s", namespace_, name) < (int)sizeof(key))
		HASH_FIND_STR(control->envs, key, env);
	return env;
}

static void on_env_timer(abx__timer *timer)
{
	abx__env_sync(timer->owner);
}

void abx__env_free(abx__env *env)
{
	if (!env)
		return;
	if (env->hh.tbl)
		HASH_DEL(env->control->envs, env);
	for (abx__pool *pool = env->pools; pool; pool = pool->next)
		pool->env = NULL;
	abx__env_state_drop(env, false);
	abx__timers_release(&env->control->timers, &env->timer);
	abx__object_done_(&env->object);
	abx__free(env->key);
	abx__free(env);
}

void abx__env_unlink(abx__env *env)
{
	while (env->pools) {
		abx__pool *pool = env->pools;

		DL_DELETE(env->pools, pool);
		abx__pool_take_down(pool);
	}
	abx__env_state_drop(env, true);
	abx__env_free(env);
}

static int by_key_env(const abx__env *a, const abx__env *b)
{
	return strcmp(a->key, b->key);
}

void abx__envs_sort(abx__control *control)
{
	if (control->envs_unsorted)
		HASH_SORT(control->envs, by_key_env);
	control->envs_unsorted = false;
}

static int env_new(abx__control *control, const abx__doc *doc, abx__env **ret,
		   abx_error **reterr)
{
	abx__env *env = abx__calloc(1, sizeof(*env));
	int r;

	if (!env)
		return abx__error_nomem(reterr);
	env->control = control;
	r = abx__object_init(&env->object, doc, reterr);
	if (r < 0) {
		abx__env_free(env);
		return r;
	}
	env->key = abx__control_key(doc->namespace_, doc->name);
	if (!env->key || abx__env_state_new(env) < 0 ||
	    abx__timers_reserve(&control->timers, &env->timer, on_env_timer, env) < 0) {
		abx__env_free(env);
		return abx__error_nomem(reterr);
	}
	control->envs_unsorted = true;
	HASH_ADD_KEYPTR(hh, control->envs, env->key, strlen(env->key), env);
	if (!env->hh.tbl) {
		abx__env_free(env);
		return abx__error_nomem(reterr);
	}
	*ret = env;
	return ABX_OK;
}

/* At hand, so that a list of all envs need not look into every document. */
static void note_owner(abx__env *env)
{
	json_object *labels = abx__field_object(
		abx__field_object(env->object.doc, "metadata"), "labels");

	env->team = abx__field_str(labels, ABX__LABEL_TEAM);
	env->user = abx__field_str(labels, ABX__LABEL_USER);
}

int abx__env_load(abx__control *control, const abx__doc *doc, abx_error **reterr)
{
	abx__env *env = abx__env_find(control, doc->namespace_, doc->name);
	int r = env ? abx__object_replace(&env->object, doc, reterr)
		    : env_new(control, doc, &env, reterr);

	if (r < 0)
		return r;
	note_owner(env);
	abx__env_sync(env);
	return ABX_OK;
}

int abx__control_env_get(abx__control *control, const char *namespace_, const char *name,
			 json_object **ret, abx_error **reterr)
{
	abx__env *env = abx__env_find(control, namespace_, name);
	json_object *doc;

	if (!env)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "env %s does not exist in namespace %s", name,
				      namespace_);
	doc = abx__env_document(env);
	if (!doc)
		return abx__error_nomem(reterr);
	*ret = doc;
	return ABX_OK;
}

/*
 * pod-create.c - a new Pod of a pool: its name, its labels and annotations, and what
 * happens when it cannot be had.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/internal.h"

#define RETRY_FIRST_MS 1000
#define RETRY_LAST_MS 30000
#define NAME_RANDOM 10

static void on_created(void *userdata, int r, const abx__pod *view, const abx_error *err)
{
	abx__podrec *pod = userdata;
	abx__control *control = pod->control;
	abx__pool *pool = pod->pool;

	pod->write = ABX__WRITE_NONE;
	if (pool)
		pool->creating--;
	if (pod->gone) {
		abx__pod_settle(pod);
	} else if (r == ABX_OK) {
		if (view)
			abx__podrec_view(pod, view);
		if (pool) {
			pool->create_backoff_ms = 0;
			abx__pool_touch(pool, true);
		}
		abx__pod_changed(pod);
		abx__pod_settle(pod);
	} else {
		if (pool) {
			int64_t wait =
				abx__backoff_next(&pool->create_backoff_ms,
						  RETRY_FIRST_MS, 2 * RETRY_LAST_MS);

			abx__pool_problem(pool, abx_error_message(err));
			abx__env_tell(pool->env, pool, true, ABX__EVENT_CREATE_FAILED,
				      NULL, "a Pod could not be created: %s",
				      abx_error_message(err));
			pool->create_after_ms = abx__control_mono(control) + wait;
			abx__pool_touch(pool, true);
		}
		abx__podrec_free(pod);
	}
	abx__control_call_end(control);
}

/* Those the Pod template asks for: "labels" or "annotations" of its metadata. */
static int template_map(const abx__pool *pool, const char *which, abx__map *into)
{
	json_object *meta = NULL, *own = NULL;
	int r = ABX_OK;

	if (json_object_object_get_ex(pool->config.pod_template, "metadata", &meta) &&
	    json_object_object_get_ex(meta, which, &own) &&
	    json_object_is_type(own, json_type_object)) {
		json_object_object_foreach(own, key, value)
		{
			if (r == ABX_OK && json_object_is_type(value, json_type_string))
				r = abx__map_set(into, key,
						 json_object_get_string(value));
		}
	}
	return r;
}

static int pod_labels(const abx__pool *pool, abx__map *labels)
{
	const abx__pool_config *c = &pool->config;

	if (template_map(pool, "labels", labels) < 0 ||
	    abx__map_set(labels, ABX__LABEL_POOL, c->name) < 0 ||
	    abx__map_set(labels, ABX__LABEL_ENV, pool->env_name) < 0 ||
	    abx__map_set(labels, ABX__LABEL_PHASE, ABX__PHASE_IDLE) < 0 ||
	    abx__map_set(labels, ABX__LABEL_TEMPLATE_HASH, c->revision) < 0 ||
	    (c->group && abx__map_set(labels, ABX__LABEL_SCALING_GROUP, c->group) < 0) ||
	    (c->team && abx__map_set(labels, ABX__LABEL_TEAM, c->team) < 0) ||
	    (c->user && abx__map_set(labels, ABX__LABEL_USER, c->user) < 0))
		return ABX_ENOMEM;
	return ABX_OK;
}

int abx__pod_create(abx__pool *pool)
{
	abx__engine *engine = pool->control->config.engine;
	abx__map labels = ABX__MAP_INIT, annotations = ABX__MAP_INIT;
	char name[ABX__DNS_LABEL_MAX + 1], random[NAME_RANDOM + 1];
	abx__podrec *pod = NULL;
	int r = abx__id_random(random, NAME_RANDOM);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%.*s-%s", ABX__DNS_LABEL_MAX - NAME_RANDOM - 1,
		 pool->config.name, random);
	r = pod_labels(pool, &labels);
	if (r == ABX_OK)
		r = template_map(pool, "annotations", &annotations);
	if (r == ABX_OK && pool->config.readiness)
		r = abx__map_set(&annotations, ABX__POD_READINESS_ANNOTATION,
				 pool->config.readiness);
	if (r == ABX_OK)
		r = abx__podrec_new(pool->control, pool, pool->namespace_, name, &pod);
	if (r < 0) {
		abx__map_done(&labels);
		abx__map_done(&annotations);
		return r;
	}
	abx__str_copy(pod->revision, sizeof(pod->revision), pool->config.revision);
	pod->phase = ABX__POD_PENDING;
	pod->write = ABX__WRITE_CREATE;
	pool->creating++;
	abx__control_call_begin(pool->control);
	engine->ops->create_pod(engine, pod->namespace_, pod->name, &labels, &annotations,
				pool->config.pod_template, on_created, pod);
	abx__map_done(&labels);
	abx__map_done(&annotations);
	return ABX_OK;
}

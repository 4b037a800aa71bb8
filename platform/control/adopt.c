/*
 * adopt.c - what a Pod was, from its labels and annotations alone, when this process
 * meets it for the first time.
 *
 * Phase "running": its caller may have been told, so it is a sandbox again. Phase
 * "starting": nobody was told (the answer follows the write of "running"), so it is given
 * back. Anything else is unclaimed.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/ingress.h"
#include "control/internal.h"

#define GRACE_MS                                                                    \
	15000 /* what a sandbox has at least after a restart, unless its timeout is \
		 shorter */

static int64_t time_us_of(const abx__map *annotations, const char *key)
{
	const char *text = abx__map_get(annotations, key);
	int64_t us = 0;

	return text && abx__rfc3339_parse(text, &us) == ABX_OK ? us : 0;
}

static int64_t time_of(const abx__map *annotations, const char *key)
{
	return time_us_of(annotations, key) / 1000;
}

static int64_t seconds_of(const abx__map *annotations, const char *key)
{
	const char *text = abx__map_get(annotations, key);
	uint64_t s = 0;

	return text && abx__parse_u64(text, 0, INT32_MAX, &s) == ABX_OK
		       ? (int64_t)s * 1000
		       : 0;
}

static json_object *keys_of(const abx__map *annotations, const char *key)
{
	const char *text = abx__map_get(annotations, key);
	json_object *list = text ? json_tokener_parse(text) : NULL;

	if (json_object_is_type(list, json_type_array))
		return list;
	json_object_put(list);
	return NULL;
}

static int read_metadata(const abx__map *annotations, abx__map *metadata)
{
	const char *text = abx__map_get(annotations, ABX__ANNOTATION_METADATA);
	json_object *map = text ? json_tokener_parse(text) : NULL;
	int r = ABX_OK;

	if (json_object_is_type(map, json_type_object)) {
		json_object_object_foreach(map, key, value)
		{
			if (r == ABX_OK && json_object_is_type(value, json_type_string))
				r = abx__map_set(metadata, key,
						 json_object_get_string(value));
		}
	}
	json_object_put(map);
	return r;
}

static int read_ingress(abx__sandbox *s, const abx__map *annotations)
{
	const char *text = abx__map_get(annotations, ABX__ANNOTATION_INGRESS);
	ABX_CLEANUP(abx__json_putp)
	json_object *obj = text ? json_tokener_parse(text) : NULL;
	abx__ingress ingress;

	if (!text)
		return ABX_OK;
	abx__ingress_read(obj, &ingress);
	return abx__sandbox_set_ingress(s, &ingress);
}

/* Activity is written down lazily, so more than what is written may have happened: never
 * reclaim early for it. */
static void read_activity(abx__sandbox *s, const abx__pod *view)
{
	int64_t wall = abx__control_wall(s->control);
	int64_t grace =
		s->rec.idle_timeout_ms < GRACE_MS ? s->rec.idle_timeout_ms : GRACE_MS;
	int64_t active = time_of(&view->annotations, ABX__ANNOTATION_LAST_ACTIVE);

	if (active == 0)
		active = s->rec.started_ms;
	s->persisted_active_ms = active;
	active += ABX__LAST_ACTIVE_PERSIST_MS + 5000;
	if (active < wall - s->rec.idle_timeout_ms + grace)
		active = wall - s->rec.idle_timeout_ms + grace;
	if (active > wall)
		active = wall;
	s->rec.last_active_ms = active;
	s->active_mono_ms = abx__control_mono(s->control) - (wall - active);
}

static int fill(abx__sandbox *s, abx__podrec *pod, const abx__pod *view, const char *id)
{
	const abx__pool_config *c = &pod->pool->config;
	const char *team = abx__map_get(&view->labels, ABX__LABEL_TEAM);
	const char *user = abx__map_get(&view->labels, ABX__LABEL_USER);

	abx__str_copy(s->id, sizeof(s->id), id);
	s->rec.namespace_ = s->namespace_ = abx__strdup(view->namespace_);
	s->rec.pod = s->pod_name = abx__strdup(view->name);
	s->rec.pool = s->pool_name = abx__strdup(c->name);
	s->rec.env = s->env = abx__strdup(pod->pool->env_name);
	s->rec.template_ = s->template_ = abx__strdup(c->template_);
	s->rec.image = s->image = abx__strdup(view->image);
	s->rec.team = s->team = abx__strdup(team);
	s->rec.user = s->user = abx__strdup(user);
	s->rec.cpu_milli = c->cpu_milli;
	s->rec.memory_bytes = c->memory_bytes;
	s->rec.runtime_port = c->runtime_port;
	s->rec.claimed_ms = time_of(&view->annotations, ABX__ANNOTATION_CLAIMED_AT);
	s->rec.started_us = time_us_of(&view->annotations, ABX__ANNOTATION_STARTED_AT);
	s->rec.started_ms = s->rec.started_us / 1000;
	s->rec.idle_timeout_ms =
		seconds_of(&view->annotations, ABX__ANNOTATION_IDLE_TIMEOUT);
	read_activity(s, view);
	if (!s->namespace_ || !s->pod_name || !s->pool_name || !s->env || !s->template_ ||
	    !s->image || (team && !s->team) || (user && !s->user) ||
	    read_metadata(&view->annotations, &s->rec.metadata) < 0)
		return ABX_ENOMEM;
	if (abx__map_get(&view->annotations, ABX__ANNOTATION_SECURE) &&
	    abx__sandbox_token(s->control, "", s->id, &s->rec.access_token) < 0)
		return ABX_ENOMEM;
	if (abx__lifecycle_read(s, &view->annotations) < 0)
		return ABX_ENOMEM;
	return read_ingress(s, &view->annotations);
}

/* Its caller knows of it, whether it runs or is paused. */
static int adopt_running(abx__podrec *pod, const abx__pod *view, const char *id)
{
	abx__control *control = pod->control;
	abx__sandbox *s;
	int r;

	if (abx__sandboxes_get(&control->sandboxes, id) ||
	    strlen(id) > ABX__SANDBOX_ID_LEN) {
		abx__log_error(control->config.log,
			       "a second pod carries this sandbox; released",
			       "sandbox=%s pod=%s", id, pod->key);
		abx__podrec_set_state(pod, ABX__PODREC_STOPPING);
		pod->want_release = true;
		return ABX_OK;
	}
	s = abx__sandbox_new(control);
	r = s ? fill(s, pod, view, id) : ABX_ENOMEM;
	if (r == ABX_OK)
		r = abx__sandboxes_add(&control->sandboxes, s);
	if (r < 0) {
		abx__sandbox_free(s);
		return r;
	}
	abx__history_forget(control, s->id);
	s->pod = pod;
	pod->sandbox = s;
	s->rec.state = s->rec.paused_ms ? ABX__SANDBOX_PAUSED : ABX__SANDBOX_RUNNING;
	abx__podrec_set_state(pod, ABX__PODREC_RUNNING);
	abx__sandbox_arm_idle(s);
	return ABX_OK;
}

int abx__pod_adopt(abx__podrec *pod, const abx__pod *view)
{
	const char *phase = abx__map_get(&view->labels, ABX__LABEL_PHASE);
	const char *id = abx__map_get(&view->labels, ABX__LABEL_SANDBOX_ID);
	const char *revision = abx__map_get(&view->labels, ABX__LABEL_TEMPLATE_HASH);

	pod->target_generation = view->generation;
	if (abx__str_copy(pod->revision, sizeof(pod->revision),
			  revision ? revision : "") < 0)
		pod->revision[0] = '\0';
	pod->managed_labels = keys_of(&view->annotations, ABX__ANNOTATION_MANAGED_LABELS);
	pod->managed_annotations =
		keys_of(&view->annotations, ABX__ANNOTATION_MANAGED_ANNOTATIONS);
	if (!pod->pool || view->deleting) {
		abx__pod_leaves(pod);
		pod->want_delete = !view->deleting;
		return ABX_OK;
	}
	if ((abx__str_eq(phase, ABX__PHASE_RUNNING) ||
	     abx__str_eq(phase, ABX__PHASE_PAUSED)) &&
	    id && *id)
		return adopt_running(pod, view, id);
	if (id || !abx__str_eq(phase, ABX__PHASE_IDLE)) {
		abx__podrec_set_state(pod, ABX__PODREC_STOPPING);
		pod->want_release = true;
	} else {
		abx__podrec_update_idle(pod);
	}
	return ABX_OK;
}

/* Everything is known now: what was only noted may be done. */
void abx__pods_adopted(abx__control *control)
{
	size_t running = control->sandboxes.count;
	abx__podrec *pod, *next;

	abx__log_info(control->config.log, "pods adopted", "pods=%u sandboxes=%zu",
		      HASH_COUNT(control->pods), running);
	for (abx__pool *pool = control->pools; pool; pool = pool->hh.next)
		if (pool->config.quota && !pool->admitted_cond.known)
			(void)abx__quota_evaluate(pool);
	HASH_ITER(hh, control->pods, pod, next)
	{
		if (pod->sandbox && pod->phase == ABX__POD_FAILED &&
		    !abx__sandbox_pod_changed(pod->sandbox))
			abx__pod_release_failed(pod);
		else
			abx__pod_settle(pod);
	}
	for (abx__pool *pool = control->pools; pool; pool = pool->hh.next)
		abx__pool_touch(pool, true);
}

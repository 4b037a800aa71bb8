/*
 * suite-engine.c - see suite-engine-priv.h.
 */
#include "suite-engine-priv.h"

#include <stdio.h>

struct suite_watch suite_watch;

static void print_map(const abx__map *map, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < map->count && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s=%s\n",
					map->items[i].key, map->items[i].value);
	cr_assert_lt(len, size, "labels too long for the suite");
}

/* NULL when absent; lives until the fourth call after this one. */
const char *suite_value_of(const char *map, const char *key)
{
	static char values[4][256];
	static unsigned turn;
	size_t len = strlen(key);

	for (const char *line = map; *line; line = strchr(line, '\n') + 1) {
		if (strncmp(line, key, len) == 0 && line[len] == '=') {
			char *value = values[turn++ % 4];

			snprintf(value, 256, "%.*s", (int)strcspn(line + len + 1, "\n"),
				 line + len + 1);
			return value;
		}
	}
	return NULL;
}

static void view_set(suite_view *v, const abx__pod *pod)
{
	v->known = true;
	snprintf(v->name, sizeof(v->name), "%s", pod->name);
	v->version = pod->version;
	v->generation = pod->generation;
	v->running_generation = pod->running_generation;
	v->phase = pod->phase;
	v->ready = pod->ready;
	v->activity = pod->activity;
	snprintf(v->image, sizeof(v->image), "%s", pod->image);
	snprintf(v->running_image, sizeof(v->running_image), "%s", pod->running_image);
	snprintf(v->reason, sizeof(v->reason), "%s", pod->reason);
	snprintf(v->message, sizeof(v->message), "%s", pod->message);
	print_map(&pod->labels, v->labels, sizeof(v->labels));
	print_map(&pod->annotations, v->annotations, sizeof(v->annotations));
	v->events++;
}

suite_view *suite_seen(const char *name)
{
	for (int i = 0; i < MAX_PODS; i++)
		if (!suite_watch.pods[i].known ||
		    strcmp(suite_watch.pods[i].name, name) == 0)
			return &suite_watch.pods[i];
	cr_assert(0, "too many Pods for the suite");
	return NULL;
}

static void on_pod(void *userdata, const abx__pod *pod)
{
	suite_view *v = suite_seen(pod->name);

	(void)userdata;
	cr_assert_str_eq(pod->namespace_, NS);
	cr_assert(!v->known || v->phase != ABX__POD_GONE || pod->generation == 1,
		  "an event after GONE for %s", pod->name);
	view_set(v, pod);
	if (!suite_watch.synced)
		suite_watch.events_before_sync++;
}

static void on_synced(void *userdata, int r, const abx_error *err)
{
	(void)userdata;
	cr_assert_eq(r, ABX_OK, "%s", abx_error_message(err));
	cr_assert(!suite_watch.synced, "synced twice");
	suite_watch.synced = true;
}

void suite_on_pod_done(void *userdata, int r, const abx__pod *pod, const abx_error *err)
{
	suite_answer *a = userdata;

	a->calls++;
	a->r = r;
	snprintf(a->message, sizeof(a->message), "%s", abx_error_message(err));
	if (r == ABX_OK) {
		cr_assert(pod, "a Pod on success");
		view_set(&a->pod, pod);
	}
}

void suite_on_done(void *userdata, int r, const abx_error *err)
{
	suite_answer *a = userdata;

	a->calls++;
	a->r = r;
	snprintf(a->message, sizeof(a->message), "%s", abx_error_message(err));
}

void suite_on_fd(void *userdata, int r, int fd, const abx_error *err)
{
	suite_answer *a = userdata;

	a->fd = fd;
	suite_on_done(userdata, r, err);
}

void suite_start(suite_engine *s)
{
	memset(&suite_watch, 0, sizeof(suite_watch));
	s->engine->ops->start(s->engine, on_pod, on_synced, NULL);
	WAIT_FOR(suite_watch.synced);
}

void suite_await(suite_engine *s, suite_answer *a)
{
	cr_assert_eq(a->calls, 0, "completed inside the call");
	WAIT_FOR(a->calls);
	cr_assert_eq(a->calls, 1);
}

suite_answer suite_create_with(suite_engine *s, const char *name,
			       json_object *pod_template, const abx__map *labels,
			       const abx__map *annotations)
{
	suite_answer a = { 0 };

	s->engine->ops->create_pod(s->engine, NS, name, labels, annotations, pod_template,
				   suite_on_pod_done, &a);
	json_object_put(pod_template);
	suite_await(s, &a);
	return a;
}

suite_answer suite_create(suite_engine *s, const char *name, const char *image)
{
	return suite_create_with(s, name, s->pod_template(s, image), NULL, NULL);
}

suite_view *suite_ready_pod(suite_engine *s, const char *name, const char *image)
{
	suite_answer a = suite_create(s, name, image);
	suite_view *v;

	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR((v = suite_seen(name))->ready);
	return v;
}

suite_answer suite_change(suite_engine *s, const char *name, const abx__pod_change *c)
{
	suite_answer a = { 0 };

	s->engine->ops->change_pod(s->engine, NS, name, c, suite_on_pod_done, &a);
	suite_await(s, &a);
	return a;
}

suite_answer suite_delete(suite_engine *s, const char *name)
{
	suite_answer a = { 0 };

	s->engine->ops->delete_pod(s->engine, NS, name, suite_on_done, &a);
	suite_await(s, &a);
	return a;
}

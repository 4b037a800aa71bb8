/*
 * suite-engine.c - the promises of control/port-engine.h, one function each.
 */
#include "suite-engine.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_PODS 8
#define NS "suite"

/* The last view of a Pod, copied. */
typedef struct view {
	bool known;
	char name[64];
	uint64_t version, generation, running_generation;
	enum abx__pod_phase phase;
	bool ready;
	enum abx__pod_activity activity;
	char image[256], running_image[256], reason[64], message[512];
	char labels[512], annotations[512]; /* "key=value\n" each: nothing to free */
	int events;
} view;

static struct watch {
	view pods[MAX_PODS];
	bool synced;
	int events_before_sync;
} watch;

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
static const char *value_of(const char *map, const char *key)
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

static void view_set(view *v, const abx__pod *pod)
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

static view *seen(const char *name)
{
	for (int i = 0; i < MAX_PODS; i++)
		if (!watch.pods[i].known || strcmp(watch.pods[i].name, name) == 0)
			return &watch.pods[i];
	cr_assert(0, "too many Pods for the suite");
	return NULL;
}

static void on_pod(void *userdata, const abx__pod *pod)
{
	view *v = seen(pod->name);

	(void)userdata;
	cr_assert_str_eq(pod->namespace_, NS);
	cr_assert(!v->known || v->phase != ABX__POD_GONE || pod->generation == 1,
		  "an event after GONE for %s", pod->name);
	view_set(v, pod);
	if (!watch.synced)
		watch.events_before_sync++;
}

static void on_synced(void *userdata, int r, const abx_error *err)
{
	(void)userdata;
	cr_assert_eq(r, ABX_OK, "%s", abx_error_message(err));
	cr_assert(!watch.synced, "synced twice");
	watch.synced = true;
}

typedef struct answer {
	int calls;
	int r;
	int fd;
	view pod;
	char message[512];
} answer;

static void on_pod_done(void *userdata, int r, const abx__pod *pod, const abx_error *err)
{
	answer *a = userdata;

	a->calls++;
	a->r = r;
	snprintf(a->message, sizeof(a->message), "%s", abx_error_message(err));
	if (r == ABX_OK) {
		cr_assert(pod, "a Pod on success");
		view_set(&a->pod, pod);
	}
}

static void on_done(void *userdata, int r, const abx_error *err)
{
	answer *a = userdata;

	a->calls++;
	a->r = r;
	snprintf(a->message, sizeof(a->message), "%s", abx_error_message(err));
}

static void on_fd(void *userdata, int r, int fd, const abx_error *err)
{
	answer *a = userdata;

	a->fd = fd;
	on_done(userdata, r, err);
}

/* A statement expression, so that the message shows the condition. */
#define WAIT_FOR(condition)                                                        \
	do {                                                                       \
		for (int turns = 0; !(condition) && turns < s->max_turns; turns++) \
			s->turn(s);                                                \
		cr_assert(condition, "did not come: " #condition);                 \
	} while (0)

static void start(suite_engine *s)
{
	memset(&watch, 0, sizeof(watch));
	s->engine->ops->start(s->engine, on_pod, on_synced, NULL);
	WAIT_FOR(watch.synced);
}

static answer create_with(suite_engine *s, const char *name, json_object *pod_template,
			  const abx__map *labels, const abx__map *annotations)
{
	answer a = { 0 };

	s->engine->ops->create_pod(s->engine, NS, name, labels, annotations, pod_template,
				   on_pod_done, &a);
	cr_assert_eq(a.calls, 0, "completed inside the call");
	json_object_put(pod_template);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.calls, 1);
	return a;
}

static answer create(suite_engine *s, const char *name, const char *image)
{
	return create_with(s, name, s->pod_template(s, image), NULL, NULL);
}

static view *ready_pod(suite_engine *s, const char *name, const char *image)
{
	answer a = create(s, name, image);
	view *v;

	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR((v = seen(name))->ready);
	return v;
}

static answer change(suite_engine *s, const char *name, const abx__pod_change *c)
{
	answer a = { 0 };

	s->engine->ops->change_pod(s->engine, NS, name, c, on_pod_done, &a);
	cr_assert_eq(a.calls, 0, "completed inside the call");
	WAIT_FOR(a.calls);
	cr_assert_eq(a.calls, 1);
	return a;
}

static answer delete_pod(suite_engine *s, const char *name)
{
	answer a = { 0 };

	s->engine->ops->delete_pod(s->engine, NS, name, on_done, &a);
	cr_assert_eq(a.calls, 0, "completed inside the call");
	WAIT_FOR(a.calls);
	return a;
}

void suite_engine_start_without_pods_reports_synced(suite_engine *s)
{
	start(s);
	cr_assert_eq(watch.events_before_sync, 0);
}

void suite_engine_created_pod_becomes_ready(suite_engine *s)
{
	view *v;

	start(s);
	v = ready_pod(s, "p1", s->image_a);
	cr_assert_eq(v->phase, ABX__POD_RUNNING);
	cr_assert_str_eq(v->image, s->image_a);
	cr_assert_str_eq(v->running_image, s->image_a);
	cr_assert_eq(v->running_generation, v->generation);
	cr_assert_str_eq(v->reason, "");
}

void suite_engine_create_completes_later_with_the_pod(suite_engine *s)
{
	answer a;

	start(s);
	a = create(s, "p1", s->image_a);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(a.pod.name, "p1");
	cr_assert_gt(a.pod.version, 0);
	cr_assert_gt(a.pod.generation, 0);
}

void suite_engine_create_keeps_labels_and_annotations(suite_engine *s)
{
	abx__map labels = ABX__MAP_INIT, annotations = ABX__MAP_INIT;
	answer a;

	start(s);
	abx__map_set(&labels, "agentbox.navix.sh/sandbox-pool", "demo-1c2gi");
	abx__map_set(&annotations, "agentbox.navix.sh/sandbox-metadata", "{\"k\":\"v\"}");
	a = create_with(s, "p1", s->pod_template(s, s->image_a), &labels, &annotations);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(value_of(a.pod.labels, "agentbox.navix.sh/sandbox-pool"),
			 "demo-1c2gi");
	cr_assert_str_eq(
		value_of(a.pod.annotations, "agentbox.navix.sh/sandbox-metadata"),
		"{\"k\":\"v\"}");
	abx__map_done(&labels);
	abx__map_done(&annotations);
}

void suite_engine_create_twice_is_exists(suite_engine *s)
{
	answer a;

	start(s);
	create(s, "p1", s->image_a);
	a = create(s, "p1", s->image_a);
	cr_assert_eq(a.r, ABX_EEXISTS);
	cr_assert(strstr(a.message, "p1"), "%s", a.message);
}

static json_object *with_runtime_class(suite_engine *s, const char *class)
{
	json_object *t = s->pod_template(s, s->image_a);
	json_object *spec;

	cr_assert(json_object_object_get_ex(t, "spec", &spec));
	json_object_object_add(spec, "runtimeClassName", json_object_new_string(class));
	return t;
}

void suite_engine_create_with_an_unknown_runtime_class_is_refused(suite_engine *s)
{
	answer a;

	start(s);
	a = create_with(s, "p1", with_runtime_class(s, "no-such-class"), NULL, NULL);
	cr_assert_eq(a.r, ABX_EUNSUPPORTED);
	cr_assert(strstr(a.message, "no-such-class"), "%s", a.message);
	cr_assert_not(seen("p1")->known);
}

void suite_engine_check_template_names_what_it_cannot_do(suite_engine *s)
{
	json_object *t = with_runtime_class(s, "no-such-class");
	abx_error *err = NULL;

	cr_assert_eq(s->engine->ops->check_template(s->engine, t, &err),
		     ABX_EUNSUPPORTED);
	cr_assert(strstr(abx_error_message(err), "runtimeClassName"), "%s",
		  abx_error_message(err));
	cr_assert(strstr(abx_error_message(err), "no-such-class"), "%s",
		  abx_error_message(err));
	abx_error_free(err);
	json_object_put(t);
	t = s->pod_template(s, s->image_a);
	cr_assert_eq(s->engine->ops->check_template(s->engine, t, NULL), ABX_OK);
	json_object_put(t);
}

void suite_engine_change_sets_and_removes_in_one_write(suite_engine *s)
{
	static const char *const gone[] = { "old", "never-there", NULL };
	abx__map labels = ABX__MAP_INIT, set = ABX__MAP_INIT;
	answer a;

	start(s);
	abx__map_set(&labels, "old", "1");
	abx__map_set(&labels, "kept", "1");
	create_with(s, "p1", s->pod_template(s, s->image_a), &labels, &labels);
	abx__map_set(&set, "new", "2");
	a = change(s, "p1",
		   &(abx__pod_change){ .set_labels = &set,
				       .set_annotations = &set,
				       .remove_labels = gone,
				       .remove_annotations = gone });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_null(value_of(a.pod.labels, "old"));
	cr_assert_str_eq(value_of(a.pod.labels, "kept"), "1");
	cr_assert_str_eq(value_of(a.pod.labels, "new"), "2");
	cr_assert_null(value_of(a.pod.annotations, "old"));
	cr_assert_str_eq(value_of(a.pod.annotations, "new"), "2");
	WAIT_FOR(value_of(seen("p1")->labels, "new"));
	abx__map_done(&labels);
	abx__map_done(&set);
}

void suite_engine_change_of_an_absent_pod_is_not_found(suite_engine *s)
{
	answer a;

	start(s);
	a = change(s, "nosuch", &(abx__pod_change){ .restart = true });
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert(strstr(a.message, "nosuch"), "%s", a.message);
}

void suite_engine_change_of_an_old_version_conflicts(suite_engine *s)
{
	abx__map set = ABX__MAP_INIT;
	uint64_t old;
	answer a;

	start(s);
	old = ready_pod(s, "p1", s->image_a)->version;
	abx__map_set(&set, "owner", "one");
	a = change(s, "p1",
		   &(abx__pod_change){ .expect_version = old, .set_labels = &set });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	abx__map_set(&set, "owner", "two");
	a = change(s, "p1",
		   &(abx__pod_change){ .expect_version = old, .set_labels = &set });
	cr_assert_eq(a.r, ABX_ECONFLICT);
	a = change(s, "p1", &(abx__pod_change){ 0 });
	cr_assert_str_eq(value_of(a.pod.labels, "owner"), "one");
	abx__map_done(&set);
}

void suite_engine_every_write_moves_the_version(suite_engine *s)
{
	abx__map set = ABX__MAP_INIT;
	answer first, second;

	start(s);
	ready_pod(s, "p1", s->image_a);
	abx__map_set(&set, "k", "1");
	first = change(s, "p1", &(abx__pod_change){ .set_labels = &set });
	abx__map_set(&set, "k", "2");
	second = change(s, "p1", &(abx__pod_change){ .set_labels = &set });
	cr_assert_gt(second.pod.version, first.pod.version);
	abx__map_done(&set);
}

void suite_engine_other_image_is_swapped_in_place(suite_engine *s)
{
	uint64_t before;
	answer a;
	view *v;

	start(s);
	v = ready_pod(s, "p1", s->image_a);
	before = v->generation;
	a = change(s, "p1", &(abx__pod_change){ .image = s->image_b });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_gt(a.pod.generation, before);
	cr_assert_str_eq(a.pod.image, s->image_b);
	WAIT_FOR(v->ready && v->running_generation >= a.pod.generation);
	cr_assert_str_eq(v->running_image, s->image_b);
	cr_assert_eq(v->phase, ABX__POD_RUNNING);
}

void suite_engine_same_image_restarts_nothing(suite_engine *s)
{
	uint64_t before;
	answer a;

	start(s);
	before = ready_pod(s, "p1", s->image_a)->generation;
	a = change(s, "p1", &(abx__pod_change){ .image = s->image_a });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(a.pod.generation, before);
	cr_assert(a.pod.ready);
}

void suite_engine_restart_makes_the_container_anew(suite_engine *s)
{
	uint64_t before;
	answer a;
	view *v;

	start(s);
	v = ready_pod(s, "p1", s->image_a);
	before = v->generation;
	a = change(s, "p1", &(abx__pod_change){ .restart = true });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_gt(a.pod.generation, before);
	cr_assert_not(a.pod.ready && a.pod.running_generation == before,
		      "ready of the old container counts for the old generation only");
	WAIT_FOR(v->ready && v->running_generation >= a.pod.generation);
	cr_assert_str_eq(v->running_image, s->image_a);
}

void suite_engine_an_image_that_does_not_run_fails_the_pod(suite_engine *s)
{
	answer a;
	view *v;

	start(s);
	v = ready_pod(s, "p1", s->image_a);
	a = change(s, "p1", &(abx__pod_change){ .image = s->image_bad });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR(v->phase == ABX__POD_FAILED);
	cr_assert_eq(v->generation, a.pod.generation);
	cr_assert_not(v->ready);
	cr_assert_neq(v->reason[0], '\0', "a failed Pod says why");
	cr_assert(strstr(v->message, s->image_bad), "the message names the image: %s",
		  v->message);
}

void suite_engine_a_failed_pod_recovers_with_another_image(suite_engine *s)
{
	answer a;
	view *v;

	start(s);
	a = create(s, "p1", s->image_bad);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	v = seen("p1");
	WAIT_FOR(v->phase == ABX__POD_FAILED);
	a = change(s, "p1", &(abx__pod_change){ .image = s->image_b });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR(v->ready);
	cr_assert_eq(v->phase, ABX__POD_RUNNING);
	cr_assert_str_eq(v->running_image, s->image_b);
	cr_assert_str_eq(v->reason, "");
}

void suite_engine_deleted_pod_is_gone_and_its_name_free(suite_engine *s)
{
	answer a;
	view *v;

	start(s);
	v = ready_pod(s, "p1", s->image_a);
	a = delete_pod(s, "p1");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR(v->phase == ABX__POD_GONE);
	a = change(s, "p1", &(abx__pod_change){ .restart = true });
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	a = create(s, "p1", s->image_a);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	WAIT_FOR(v->ready);
}

static struct {
	suite_engine *s;
	answer deleted;
} inside;

static void delete_inside(void *userdata, int r, const abx__pod *pod,
			  const abx_error *err)
{
	on_pod_done(userdata, r, pod, err);
	inside.s->engine->ops->delete_pod(inside.s->engine, NS, "p1", on_done,
					  &inside.deleted);
}

/* As control/ does with a Pod that could not be released. */
void suite_engine_a_pod_may_be_deleted_inside_a_changes_callback(suite_engine *s)
{
	answer changed = { 0 };
	view *v;

	start(s);
	v = ready_pod(s, "p1", s->image_a);
	memset(&inside, 0, sizeof(inside));
	inside.s = s;
	s->engine->ops->change_pod(s->engine, NS, "p1",
				   &(abx__pod_change){ .restart = true }, delete_inside,
				   &changed);
	WAIT_FOR(v->phase == ABX__POD_GONE);
	cr_assert_eq(changed.calls, 1);
	cr_assert_eq(changed.r, ABX_OK);
	cr_assert_eq(inside.deleted.calls, 1);
	cr_assert_eq(inside.deleted.r, ABX_OK, "%s", inside.deleted.message);
	changed = create(s, "p1", s->image_a);
	cr_assert_eq(changed.r, ABX_OK, "%s", changed.message);
	WAIT_FOR(v->ready);
}

void suite_engine_delete_of_an_absent_pod_is_not_found(suite_engine *s)
{
	answer a;

	start(s);
	a = delete_pod(s, "nosuch");
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert(strstr(a.message, "nosuch"), "%s", a.message);
}

void suite_engine_pods_are_adopted_after_a_reopen(suite_engine *s)
{
	abx__map labels = ABX__MAP_INIT;
	uint64_t generation;

	start(s);
	abx__map_set(&labels, "who", "me");
	create_with(s, "p1", s->pod_template(s, s->image_a), &labels, NULL);
	WAIT_FOR(seen("p1")->ready);
	generation = seen("p1")->generation;
	s->reopen(s);
	start(s);
	cr_assert(seen("p1")->known, "reported before synced");
	cr_assert_geq(watch.events_before_sync, 1);
	cr_assert_str_eq(value_of(seen("p1")->labels, "who"), "me");
	WAIT_FOR(seen("p1")->ready);
	cr_assert_eq(seen("p1")->generation, generation, "the container went on running");
	abx__map_done(&labels);
}

void suite_engine_changes_before_a_reopen_are_kept(suite_engine *s)
{
	abx__map set = ABX__MAP_INIT;
	answer a;

	start(s);
	ready_pod(s, "p1", s->image_a);
	abx__map_set(&set, "sandbox", "s1");
	a = change(s, "p1",
		   &(abx__pod_change){ .set_labels = &set, .image = s->image_b });
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	s->reopen(s);
	start(s);
	cr_assert_str_eq(value_of(seen("p1")->labels, "sandbox"), "s1");
	WAIT_FOR(seen("p1")->ready && strcmp(seen("p1")->running_image, s->image_b) == 0);
	abx__map_done(&set);
}

static answer become(suite_engine *s, const char *name, enum abx__pod_activity activity)
{
	answer a = change(s, name, &(abx__pod_change){ .activity = activity });

	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	return a;
}

void suite_engine_a_frozen_pod_stands_still_until_it_is_thawed(suite_engine *s)
{
	uint64_t generation;
	view *v;

	start(s);
	v = ready_pod(s, "frozen", s->image_a);
	cr_assert_eq(v->activity, ABX__POD_RUN);
	generation = v->running_generation;
	become(s, "frozen", ABX__POD_FREEZE);
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	cr_assert_eq(v->running_generation, generation, "nothing was restarted");
	cr_assert_eq(v->phase, ABX__POD_RUNNING);
	become(s, "frozen", ABX__POD_RUN);
	WAIT_FOR(v->activity == ABX__POD_RUN && v->ready);
	cr_assert_eq(v->running_generation, generation);
}

void suite_engine_freezing_twice_is_one_freeze(suite_engine *s)
{
	uint64_t generation;
	view *v;

	start(s);
	v = ready_pod(s, "twice", s->image_a);
	generation = v->generation;
	become(s, "twice", ABX__POD_FREEZE);
	become(s, "twice", ABX__POD_FREEZE);
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	become(s, "twice", ABX__POD_RUN);
	WAIT_FOR(v->activity == ABX__POD_RUN);
	cr_assert_eq(v->generation, generation);
}

void suite_engine_a_restart_makes_a_frozen_pod_run(suite_engine *s)
{
	uint64_t generation;
	view *v;

	start(s);
	v = ready_pod(s, "again", s->image_a);
	generation = v->generation;
	become(s, "again", ABX__POD_FREEZE);
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	cr_assert_eq(change(s, "again", &(abx__pod_change){ .restart = true }).r, ABX_OK);
	WAIT_FOR(v->ready && v->running_generation == generation + 1);
	cr_assert_eq(v->activity, ABX__POD_RUN);
}

void suite_engine_a_frozen_pod_can_be_deleted(suite_engine *s)
{
	answer a = { 0 };
	view *v;

	start(s);
	v = ready_pod(s, "cold", s->image_a);
	become(s, "cold", ABX__POD_FREEZE);
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	s->engine->ops->delete_pod(s->engine, NS, "cold", on_done, &a);
	WAIT_FOR(a.calls && v->phase == ABX__POD_GONE);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
}

void suite_engine_a_frozen_pod_stays_frozen_over_a_reopen(suite_engine *s)
{
	uint64_t generation;
	view *v;

	start(s);
	v = ready_pod(s, "asleep", s->image_a);
	generation = v->running_generation;
	become(s, "asleep", ABX__POD_FREEZE);
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	s->reopen(s);
	start(s);
	v = seen("asleep");
	WAIT_FOR(v->activity == ABX__POD_FREEZE);
	become(s, "asleep", ABX__POD_RUN);
	WAIT_FOR(v->activity == ABX__POD_RUN && v->ready);
	cr_assert_eq(v->running_generation, generation, "it is still the same container");
}

void suite_engine_a_stopped_pod_starts_a_generation_further(suite_engine *s)
{
	uint64_t generation;
	view *v;

	start(s);
	v = ready_pod(s, "stopped", s->image_a);
	generation = v->running_generation;
	become(s, "stopped", ABX__POD_STOP);
	WAIT_FOR(v->activity == ABX__POD_STOP);
	cr_assert(!v->ready);
	become(s, "stopped", ABX__POD_RUN);
	WAIT_FOR(v->ready && v->running_generation == generation + 1);
	cr_assert_eq(v->activity, ABX__POD_RUN);
}

void suite_engine_a_stopped_pod_stays_stopped_over_a_reopen(suite_engine *s)
{
	uint64_t generation;
	view *v;

	start(s);
	v = ready_pod(s, "off", s->image_a);
	generation = v->running_generation;
	become(s, "off", ABX__POD_STOP);
	WAIT_FOR(v->activity == ABX__POD_STOP);
	s->reopen(s);
	start(s);
	v = seen("off");
	WAIT_FOR(v->activity == ABX__POD_STOP);
	cr_assert(!v->ready);
	become(s, "off", ABX__POD_RUN);
	WAIT_FOR(v->ready && v->running_generation == generation + 1);
}

static void on_snapshot(void *userdata, int r, int64_t bytes, const abx_error *err)
{
	cr_assert(r < 0 || bytes >= 0);
	on_done(userdata, r, err);
}

static answer snapshot(suite_engine *s, const char *name, const char *id)
{
	answer a = { 0 };

	s->engine->ops->snapshot_pod(s->engine, NS, name, id, on_snapshot, &a);
	cr_assert_eq(a.calls, 0, "completed inside the call");
	WAIT_FOR(a.calls);
	cr_assert_eq(a.calls, 1);
	return a;
}

static answer delete_snapshot(suite_engine *s, const char *id)
{
	answer a = { 0 };

	s->engine->ops->delete_snapshot(s->engine, id, on_done, &a);
	cr_assert_eq(a.calls, 0, "completed inside the call");
	WAIT_FOR(a.calls);
	return a;
}

void suite_engine_a_snapshot_is_an_image_until_it_is_deleted(suite_engine *s)
{
	uint64_t generation;
	answer a;
	view *v;

	start(s);
	v = ready_pod(s, "origin", s->image_a);
	generation = v->running_generation;
	a = snapshot(s, "origin", "shot1");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(v->running_generation, generation, "it runs on");
	cr_assert_eq(v->activity, ABX__POD_RUN);
	cr_assert_eq(snapshot(s, "origin", "shot1").r, ABX_EEXISTS);
	v = ready_pod(s, "copy", "snapshot:shot1");
	cr_assert_str_eq(v->running_image, "snapshot:shot1");
	cr_assert_eq(delete_snapshot(s, "shot1").r, ABX_OK);
	cr_assert_eq(delete_snapshot(s, "shot1").r, ABX_OK, "absent is fine");
	cr_assert(v->ready, "what runs from it runs on");
	cr_assert_eq(snapshot(s, "nobody", "shot2").r, ABX_ENOTFOUND);
	create(s, "late", "snapshot:shot3");
	WAIT_FOR(seen("late")->phase == ABX__POD_FAILED);
	cr_assert_str_eq(seen("late")->reason, "ErrImagePull");
}

void suite_engine_what_does_not_run_cannot_be_snapshotted(suite_engine *s)
{
	view *v;

	start(s);
	v = ready_pod(s, "still", s->image_a);
	become(s, "still", ABX__POD_STOP);
	WAIT_FOR(v->activity == ABX__POD_STOP);
	cr_assert_eq(snapshot(s, "still", "shot4").r, ABX_ECONFLICT);
}

void suite_engine_connect_to_an_absent_pod_is_not_found(suite_engine *s)
{
	answer a = { 0 };

	start(s);
	s->engine->ops->connect_pod(s->engine, NS, "nosuch", 49983, on_fd, &a);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert_eq(a.fd, -1);
}

void suite_engine_connect_to_a_closed_port_is_unavailable(suite_engine *s)
{
	answer a = { 0 };

	start(s);
	ready_pod(s, "p1", s->image_a);
	s->engine->ops->connect_pod(s->engine, NS, "p1", 9, on_fd, &a);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_EUNAVAILABLE, "%d %s", a.r, a.message);
	cr_assert_eq(a.fd, -1);
}

typedef struct stats_answer {
	int calls, r;
	abx__pod_stats stats;
} stats_answer;

static void on_stats(void *userdata, int r, const abx__pod_stats *stats,
		     const abx_error *err)
{
	stats_answer *a = userdata;

	(void)err;
	a->calls++;
	a->r = r;
	cr_assert_eq(stats != NULL, r == ABX_OK);
	if (stats)
		a->stats = *stats;
}

void suite_engine_a_pod_tells_what_it_uses(suite_engine *s)
{
	stats_answer a = { 0 };

	start(s);
	ready_pod(s, "p1", s->image_a);
	s->engine->ops->stat_pod(s->engine, NS, "p1", on_stats, &a);
	cr_assert_eq(a.calls, 0, "never inside the call");
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_OK);
	cr_assert_gt(a.stats.cpu_ns, 0);
	cr_assert_gt(a.stats.memory_bytes, 0);
	cr_assert_gt(a.stats.memory_total, a.stats.memory_bytes);
	cr_assert_gt(a.stats.disk_used, 0);
	cr_assert_gt(a.stats.disk_total, a.stats.disk_used);
}

void suite_engine_what_an_absent_pod_uses_is_not_found(suite_engine *s)
{
	stats_answer a = { 0 };

	start(s);
	s->engine->ops->stat_pod(s->engine, NS, "nosuch", on_stats, &a);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_ENOTFOUND);
}

/* What the log says, or "" when nothing was written. */
static void read_log(suite_engine *s, const char *name, char *text, size_t size)
{
	answer a = { 0 };
	ssize_t n;

	text[0] = '\0';
	s->engine->ops->open_log(s->engine, NS, name, on_fd, &a);
	WAIT_FOR(a.calls);
	if (a.r == ABX_ENOTFOUND)
		return;
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	n = read(a.fd, text, size - 1);
	cr_assert_geq(n, 0);
	text[n] = '\0';
	close(a.fd);
}

void suite_engine_a_log_holds_nothing_of_the_container_before(suite_engine *s)
{
	static char first[65536], second[65536];
	view *v;

	start(s);
	v = ready_pod(s, "p1", s->image_a);
	read_log(s, "p1", first, sizeof(first));
	change(s, "p1", &(abx__pod_change){ .restart = true });
	WAIT_FOR(v->ready && v->running_generation == 2);
	read_log(s, "p1", second, sizeof(second));
	/* The same program has said the same again, and not both. */
	cr_assert_lt(strlen(second), 2 * strlen(first) + 1, "%s", second);
}

void suite_engine_the_log_of_an_absent_pod_is_not_found(suite_engine *s)
{
	answer a = { 0 };

	start(s);
	s->engine->ops->open_log(s->engine, NS, "nosuch", on_fd, &a);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert_eq(a.fd, -1);
}

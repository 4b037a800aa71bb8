/*
 * fake.c - Pods in memory. See fake.h.
 *
 * Invariants: everything that happens is an event in one list ordered by (due, sequence);
 * a step takes the first that is due; callbacks run from a step only. Allocation failures
 * of the seam are reported as ABX_ENOMEM through `done`, as a real engine would.
 */
#include "engine/fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

typedef struct fake_pod {
	struct fake_pod *next;
	char *namespace_, *name;
	uint64_t version;
	int64_t created_ms;
	abx__map labels, annotations;
	char *image, *running_image, *message;
	char reason[32];
	uint64_t generation, running_generation;
	enum abx__pod_phase phase;
	bool ready;
	int exit_code;
	enum abx__pod_activity wanted, activity;
	bool deleting;
	bool dirty; /* to be reported */
} fake_pod;

enum event_type {
	EV_APPLY,    /* a write becomes durable */
	EV_REPORT,   /* a write is reported done */
	EV_START,    /* a container start ends, well or badly */
	EV_ACTIVITY, /* a Pod does what it is to do */
	EV_GONE,
	EV_SYNCED,
	EV_CLOSED,
	EV_CONNECT,
	EV_SNAPSHOT,
	EV_SNAPSHOT_GONE,
	EV_STATS,
	EV_LOG,
};

typedef struct event {
	struct event *next;
	enum event_type type;
	int64_t due;
	uint64_t generation;
	enum abx__fake_op op;
	char *namespace_, *name;
	/* create and change */
	abx__map set_labels, set_annotations;
	char **remove_labels, **remove_annotations;
	char *image;
	uint64_t expect_version;
	enum abx__pod_activity activity;
	bool restart;
	int inject; /* code to fail with */
	/* report */
	int r;
	abx_error *err;
	abx__pod_done pod_done;
	abx__engine_done done;
	abx__fd_done fd_done;
	abx__snapshot_done snapshot_done;
	abx__stats_done stats_done;
	void (*closed)(void *userdata);
	void *userdata;
} event;

typedef struct bad_image {
	struct bad_image *next;
	char *image;
	char reason[32];
} bad_image;

typedef struct fake_engine {
	abx__engine base;
	abx__fake_engine_options options;
	fake_pod *pods, **pods_tail;
	size_t pod_count;
	event *events;
	uint64_t version;
	bad_image *bad_images;
	bad_image *snapshots; /* their ids */
	struct {
		unsigned skip, count;
		int code;
		unsigned calls;
	} ops[ABX__FAKE_OP_COUNT];
	void (*on_pod)(void *userdata, const abx__pod *pod);
	void (*on_synced)(void *userdata, int r, const abx_error *err);
	void *userdata;
} fake_engine;

static int64_t now_ms(const fake_engine *e)
{
	return e->options.clock->mono_ms(e->options.clock->userdata);
}

static void strings_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		abx__free(list[i]);
	abx__free(list);
}

static int strings_copy(const char *const *list, char ***ret)
{
	size_t count = 0;
	char **copy;

	if (!list)
		return ABX_OK;
	while (list[count])
		count++;
	copy = abx__calloc(count + 1, sizeof(*copy));
	if (!copy)
		return ABX_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		copy[i] = abx__strdup(list[i]);
		if (!copy[i]) {
			strings_free(copy);
			return ABX_ENOMEM;
		}
	}
	*ret = copy;
	return ABX_OK;
}

static void event_free(event *ev)
{
	if (!ev)
		return;
	abx__free(ev->namespace_);
	abx__free(ev->name);
	abx__free(ev->image);
	abx__map_done(&ev->set_labels);
	abx__map_done(&ev->set_annotations);
	strings_free(ev->remove_labels);
	strings_free(ev->remove_annotations);
	abx_error_free(ev->err);
	abx__free(ev);
}

/* Not through the seam: a port's call completes later also when memory is out, and this
 * is how. */
static event *event_new(enum event_type type, const char *namespace_, const char *name)
{
	event *ev = calloc(1, sizeof(*ev));

	if (!ev)
		return NULL;
	ev->type = type;
	ev->namespace_ = namespace_ ? strdup(namespace_) : NULL;
	ev->name = name ? strdup(name) : NULL;
	if ((namespace_ && !ev->namespace_) || (name && !ev->name)) {
		event_free(ev);
		return NULL;
	}
	return ev;
}

/* Behind all that are due by then. */
static void event_add(fake_engine *e, event *ev, int64_t delay_ms)
{
	event **p = &e->events;

	ev->due = now_ms(e) + delay_ms;
	while (*p && (*p)->due <= ev->due)
		p = &(*p)->next;
	ev->next = *p;
	*p = ev;
}

static fake_pod *find(const fake_engine *e, const char *namespace_, const char *name)
{
	for (fake_pod *p = e->pods; p; p = p->next)
		if (strcmp(p->name, name) == 0 && strcmp(p->namespace_, namespace_) == 0)
			return p;
	return NULL;
}

static abx__pod view_of(const fake_pod *p)
{
	return (abx__pod){
		.namespace_ = p->namespace_,
		.name = p->name,
		.version = p->version,
		.created_ms = p->created_ms,
		.labels = p->labels,
		.annotations = p->annotations,
		.image = p->image,
		.running_image = p->running_image ? p->running_image : "",
		.generation = p->generation,
		.running_generation = p->running_generation,
		.phase = p->phase,
		.ready = p->ready,
		.reason = p->reason,
		.message = p->message ? p->message : "",
		.exit_code = p->exit_code,
		.deleting = p->deleting,
		.activity = p->activity,
	};
}

/* Says so in the next step. Changes in between are merged, as a watch may. */
static void announce(fake_engine *e, fake_pod *p)
{
	p->version = ++e->version;
	p->dirty = true;
}

static void pod_free(fake_pod *p)
{
	if (!p)
		return;
	abx__free(p->namespace_);
	abx__free(p->name);
	abx__free(p->image);
	abx__free(p->running_image);
	abx__free(p->message);
	abx__map_done(&p->labels);
	abx__map_done(&p->annotations);
	abx__free(p);
}

static int schedule_activity(fake_engine *e, fake_pod *p, int64_t delay_ms)
{
	event *ev = event_new(EV_ACTIVITY, p->namespace_, p->name);

	if (!ev)
		return ABX_ENOMEM;
	event_add(e, ev, delay_ms);
	return ABX_OK;
}

static int schedule_start(fake_engine *e, fake_pod *p, int64_t delay_ms)
{
	event *ev = event_new(EV_START, p->namespace_, p->name);

	if (!ev)
		return ABX_ENOMEM;
	ev->generation = p->generation;
	event_add(e, ev, delay_ms);
	return ABX_OK;
}

/* --- applying writes --- */

static int apply_create(fake_engine *e, event *ev)
{
	fake_pod *p;

	if (find(e, ev->namespace_, ev->name))
		return abx__error_set(&ev->err, ABX_EEXISTS, "pod %s/%s exists already",
				      ev->namespace_, ev->name);
	p = abx__calloc(1, sizeof(*p));
	if (!p)
		return abx__error_nomem(&ev->err);
	p->namespace_ = abx__strdup(ev->namespace_);
	p->name = abx__strdup(ev->name);
	p->image = abx__strdup(ev->image);
	p->created_ms = e->options.clock->wall_ms(e->options.clock->userdata);
	p->generation = 1;
	p->exit_code = -1;
	p->wanted = p->activity = ABX__POD_RUN;
	if (!p->namespace_ || !p->name || !p->image ||
	    abx__map_copy(&p->labels, &ev->set_labels) < 0 ||
	    abx__map_copy(&p->annotations, &ev->set_annotations) < 0 ||
	    schedule_start(e, p, e->options.start_ms) < 0) {
		pod_free(p);
		return abx__error_nomem(&ev->err);
	}
	*e->pods_tail = p;
	e->pods_tail = &p->next;
	e->pod_count++;
	announce(e, p);
	return ABX_OK;
}

static int merge(abx__map *map, const abx__map *set, char **remove)
{
	for (size_t i = 0; i < set->count; i++)
		if (abx__map_set(map, set->items[i].key, set->items[i].value) < 0)
			return ABX_ENOMEM;
	for (size_t i = 0; remove && remove[i]; i++)
		abx__map_remove(map, remove[i]);
	return ABX_OK;
}

/* A new container is asked for. */
static int renew(fake_engine *e, fake_pod *p, char *image)
{
	p->generation++;
	if (schedule_start(e, p, e->options.swap_ms) < 0) {
		p->generation--;
		return ABX_ENOMEM;
	}
	if (image) {
		abx__free(p->image);
		p->image = image;
	}
	abx__free(p->running_image);
	p->running_image = NULL;
	p->ready = false;
	p->phase = ABX__POD_PENDING;
	p->wanted = p->activity = ABX__POD_RUN;
	p->reason[0] = '\0';
	return ABX_OK;
}

/* Starting what was stopped needs a new container. */
static bool starts_stopped(const fake_pod *p, const event *ev)
{
	return ev->activity == ABX__POD_RUN && p->wanted == ABX__POD_STOP;
}

static int apply_change(fake_engine *e, event *ev)
{
	fake_pod *p = find(e, ev->namespace_, ev->name);
	abx__map labels = ABX__MAP_INIT, annotations = ABX__MAP_INIT;
	bool swap;

	if (!p || p->deleting)
		return abx__error_set(&ev->err, ABX_ENOTFOUND, "pod %s/%s does not exist",
				      ev->namespace_, ev->name);
	if (ev->expect_version && ev->expect_version != p->version)
		return abx__error_set(&ev->err, ABX_ECONFLICT,
				      "pod %s/%s was changed meanwhile", ev->namespace_,
				      ev->name);
	swap = ev->restart || (ev->image && strcmp(ev->image, p->image) != 0) ||
	       starts_stopped(p, ev);
	if (abx__map_copy(&labels, &p->labels) < 0 ||
	    abx__map_copy(&annotations, &p->annotations) < 0 ||
	    merge(&labels, &ev->set_labels, ev->remove_labels) < 0 ||
	    merge(&annotations, &ev->set_annotations, ev->remove_annotations) < 0 ||
	    (swap && renew(e, p, ev->image) < 0)) {
		abx__map_done(&labels);
		abx__map_done(&annotations);
		return abx__error_nomem(&ev->err);
	}
	if (swap)
		ev->image = NULL;
	if (!swap && ev->activity != ABX__POD_AS_IT_IS && ev->activity != p->wanted &&
	    p->wanted != ABX__POD_STOP) {
		p->wanted = ev->activity;
		schedule_activity(e, p, e->options.freeze_ms);
	}
	abx__map_done(&p->labels);
	abx__map_done(&p->annotations);
	p->labels = labels;
	p->annotations = annotations;
	announce(e, p);
	return ABX_OK;
}

static int apply_delete(fake_engine *e, event *ev)
{
	fake_pod *p = find(e, ev->namespace_, ev->name);
	event *gone;

	if (!p)
		return abx__error_set(&ev->err, ABX_ENOTFOUND, "pod %s/%s does not exist",
				      ev->namespace_, ev->name);
	if (p->deleting)
		return ABX_OK;
	gone = event_new(EV_GONE, ev->namespace_, ev->name);
	if (!gone)
		return abx__error_nomem(&ev->err);
	p->deleting = true;
	p->ready = false;
	event_add(e, gone, e->options.delete_ms);
	return ABX_OK;
}

static void run_apply(fake_engine *e, event *ev)
{
	static int (*const apply[])(fake_engine *, event *) = {
		[ABX__FAKE_CREATE] = apply_create,
		[ABX__FAKE_CHANGE] = apply_change,
		[ABX__FAKE_DELETE] = apply_delete,
	};

	if (ev->r == ABX_OK && ev->inject)
		ev->r = abx__error_set(&ev->err, ev->inject,
				       "pod %s/%s: injected failure", ev->namespace_,
				       ev->name);
	if (ev->r == ABX_OK)
		ev->r = apply[ev->op](e, ev);
	ev->type = EV_REPORT;
	event_add(e, ev, 0);
}

/* --- what happens to Pods --- */

static bad_image **find_snapshot(fake_engine *e, const char *id)
{
	bad_image **at = &e->snapshots;

	while (*at && strcmp((*at)->image, id) != 0)
		at = &(*at)->next;
	return at;
}

static void run_start(fake_engine *e, const event *ev)
{
	fake_pod *p = find(e, ev->namespace_, ev->name);
	const bad_image *bad;

	if (!p || p->deleting || p->generation != ev->generation)
		return;
	for (bad = e->bad_images; bad; bad = bad->next)
		if (strcmp(bad->image, p->image) == 0)
			break;
	abx__free(p->message);
	p->message = NULL;
	if (abx__str_starts(p->image, ABX__POD_SNAPSHOT_SCHEME) &&
	    !*find_snapshot(e, p->image + strlen(ABX__POD_SNAPSHOT_SCHEME))) {
		p->phase = ABX__POD_FAILED;
		snprintf(p->reason, sizeof(p->reason), "ErrImagePull");
		p->message = abx__strf("image %s: there is no such snapshot", p->image);
	} else if (bad) {
		p->phase = ABX__POD_FAILED;
		snprintf(p->reason, sizeof(p->reason), "%s", bad->reason);
		p->message = abx__strf("image %s: %s", p->image, bad->reason);
	} else {
		p->running_image = abx__strdup(p->image);
		p->running_generation = p->generation;
		p->phase = ABX__POD_RUNNING;
		p->ready = true;
	}
	announce(e, p);
}

static void run_activity(fake_engine *e, const event *ev)
{
	fake_pod *p = find(e, ev->namespace_, ev->name);

	if (!p || p->deleting || p->activity == p->wanted)
		return;
	p->activity = p->wanted;
	if (p->activity == ABX__POD_STOP) {
		abx__free(p->running_image);
		p->running_image = NULL;
		p->ready = false;
		p->phase = ABX__POD_PENDING;
	}
	announce(e, p);
}

static void run_snapshot(fake_engine *e, event *ev)
{
	fake_pod *p = find(e, ev->namespace_, ev->name);
	bad_image *shot = NULL;
	int r = ev->inject;

	if (r < 0)
		abx__error_set(&ev->err, r, "snapshot %s: injected failure", ev->image);
	else if (!p)
		r = abx__error_set(&ev->err, ABX_ENOTFOUND, "pod %s/%s does not exist",
				   ev->namespace_, ev->name);
	else if (*find_snapshot(e, ev->image))
		r = abx__error_set(&ev->err, ABX_EEXISTS, "snapshot %s exists",
				   ev->image);
	else if (p->phase != ABX__POD_RUNNING || p->activity != ABX__POD_RUN)
		r = abx__error_set(&ev->err, ABX_ECONFLICT, "pod %s/%s does not run",
				   ev->namespace_, ev->name);
	else if (!(shot = abx__calloc(1, sizeof(*shot))) ||
		 !(shot->image = abx__strdup(ev->image)))
		r = abx__error_nomem(&ev->err);
	if (r == ABX_OK) {
		shot->next = e->snapshots;
		e->snapshots = shot;
	} else {
		abx__free(shot);
	}
	ev->snapshot_done(ev->userdata, r, r < 0 ? 0 : 4096, ev->err);
}

static void run_snapshot_gone(fake_engine *e, event *ev)
{
	bad_image **at = find_snapshot(e, ev->image), *shot = *at;

	if (shot) {
		*at = shot->next;
		abx__free(shot->image);
		abx__free(shot);
	}
	ev->done(ev->userdata, ABX_OK, NULL);
}

static void run_gone(fake_engine *e, const event *ev)
{
	abx__pod view;
	fake_pod *p;

	for (fake_pod **at = &e->pods; (p = *at); at = &p->next) {
		if (strcmp(p->name, ev->name) != 0 ||
		    strcmp(p->namespace_, ev->namespace_) != 0)
			continue;
		*at = p->next;
		if (e->pods_tail == &p->next)
			e->pods_tail = at;
		e->pod_count--;
		p->phase = ABX__POD_GONE;
		p->ready = false;
		p->version = ++e->version;
		view = view_of(p);
		if (e->on_pod)
			e->on_pod(e->userdata, &view);
		pod_free(p);
		return;
	}
}

static bool report_dirty(fake_engine *e)
{
	abx__pod view;

	if (!e->on_pod)
		return false;
	for (fake_pod *p = e->pods; p; p = p->next) {
		if (!p->dirty)
			continue;
		p->dirty = false;
		view = view_of(p);
		e->on_pod(e->userdata, &view);
		return true;
	}
	return false;
}

static void run_report(fake_engine *e, const event *ev)
{
	const fake_pod *p = find(e, ev->namespace_, ev->name);
	abx__pod view;

	if (ev->done) {
		ev->done(ev->userdata, ev->r, ev->err);
	} else if (ev->pod_done) {
		if (p)
			view = view_of(p);
		ev->pod_done(ev->userdata, ev->r, p && ev->r == ABX_OK ? &view : NULL,
			     ev->err);
	}
}

static void run_connect(fake_engine *e, const event *ev)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r;

	if (!find(e, ev->namespace_, ev->name))
		r = abx__error_set(&err, ABX_ENOTFOUND, "pod %s/%s does not exist",
				   ev->namespace_, ev->name);
	else
		r = abx__error_set(&err, ABX_EUNAVAILABLE,
				   "pod %s/%s: nothing listens there", ev->namespace_,
				   ev->name);
	ev->fd_done(ev->userdata, r, -1, err);
}

/* Half a core of the time that passes, and a little memory. */
static void run_stats(fake_engine *e, const event *ev)
{
	const abx__clock *clock = e->options.clock;
	const abx__pod_stats stats = {
		.cpu_ns = (uint64_t)clock->mono_ms(clock->userdata) * 500000,
		.memory_bytes = (uint64_t)100 << 20,
		.memory_cache = (uint64_t)10 << 20,
		.memory_total = (uint64_t)2 << 30,
		.disk_used = (uint64_t)1 << 30,
		.disk_total = (uint64_t)10 << 30,
	};
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = ABX_OK;

	if (ev->inject)
		r = abx__error_set(&err, ev->inject, "pod %s/%s: injected failure",
				   ev->namespace_, ev->name);
	else if (!find(e, ev->namespace_, ev->name))
		r = abx__error_set(&err, ABX_ENOTFOUND, "pod %s/%s does not exist",
				   ev->namespace_, ev->name);
	ev->stats_done(ev->userdata, r, r == ABX_OK ? &stats : NULL, err);
}

static void run_log(fake_engine *e, const event *ev)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int fd = -1, r = ABX_OK;

	if (!find(e, ev->namespace_, ev->name))
		r = abx__error_set(&err, ABX_ENOTFOUND, "pod %s/%s does not exist",
				   ev->namespace_, ev->name);
	else
		fd = memfd_create("log", MFD_CLOEXEC);
	if (fd >= 0 && (write(fd, ABX__FAKE_LOG, sizeof(ABX__FAKE_LOG) - 1) < 0 ||
			lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		fd = -1;
	}
	if (r == ABX_OK && fd < 0)
		r = abx__error_set(&err, ABX_EIO, "no descriptor for a log");
	ev->fd_done(ev->userdata, r, fd, err);
}

bool abx__fake_engine_step(abx__engine *base)
{
	fake_engine *e = (fake_engine *)base;
	event *ev = e->events;

	if (report_dirty(e))
		return true;
	if (!ev || ev->due > now_ms(e))
		return false;
	e->events = ev->next;
	ev->next = NULL;
	switch (ev->type) {
	case EV_APPLY:
		run_apply(e, ev);
		return true;
	case EV_REPORT:
		run_report(e, ev);
		break;
	case EV_START:
		run_start(e, ev);
		break;
	case EV_ACTIVITY:
		run_activity(e, ev);
		break;
	case EV_GONE:
		run_gone(e, ev);
		break;
	case EV_SYNCED:
		if (e->on_synced)
			e->on_synced(e->userdata, ev->r, ev->err);
		break;
	case EV_CLOSED:
		ev->closed(ev->userdata);
		break;
	case EV_CONNECT:
		run_connect(e, ev);
		break;
	case EV_SNAPSHOT:
		run_snapshot(e, ev);
		break;
	case EV_SNAPSHOT_GONE:
		run_snapshot_gone(e, ev);
		break;
	case EV_STATS:
		run_stats(e, ev);
		break;
	case EV_LOG:
		run_log(e, ev);
		break;
	}
	event_free(ev);
	return true;
}

int64_t abx__fake_engine_next_ms(const abx__engine *base)
{
	const fake_engine *e = (const fake_engine *)base;

	for (const fake_pod *p = e->pods; p && e->on_pod; p = p->next)
		if (p->dirty)
			return 0;
	return e->events ? e->events->due : INT64_MAX;
}

/* --- the port --- */

static int fake_check_template(abx__engine *base, json_object *pod_template,
			       abx_error **reterr)
{
	json_object *spec, *class, *containers;

	(void)base;
	if (!json_object_object_get_ex(pod_template, "spec", &spec) ||
	    !json_object_object_get_ex(spec, "containers", &containers) ||
	    json_object_array_length(containers) == 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "template.spec.containers is empty");
	if (json_object_object_get_ex(spec, "runtimeClassName", &class))
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"template.spec.runtimeClassName: no runtime class %s here",
			json_object_get_string(class));
	return ABX_OK;
}

static void fake_start(abx__engine *base,
		       void (*on_pod)(void *userdata, const abx__pod *pod),
		       void (*on_synced)(void *userdata, int r, const abx_error *err),
		       void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev;

	e->on_pod = on_pod;
	e->on_synced = on_synced;
	e->userdata = userdata;
	for (fake_pod *p = e->pods; p; p = p->next)
		p->dirty = true;
	ev = event_new(EV_SYNCED, NULL, NULL);
	if (ev)
		event_add(e, ev, 0);
	else
		on_synced(userdata, ABX_ENOMEM, NULL);
}

/* Counts the call and decides whether it is one that fails. */
static int injected(fake_engine *e, enum abx__fake_op op)
{
	e->ops[op].calls++;
	if (!e->ops[op].count)
		return 0;
	if (e->ops[op].skip) {
		e->ops[op].skip--;
		return 0;
	}
	e->ops[op].count--;
	return e->ops[op].code;
}

static const char *main_image(json_object *pod_template)
{
	json_object *spec, *containers, *first, *image;

	if (!json_object_object_get_ex(pod_template, "spec", &spec) ||
	    !json_object_object_get_ex(spec, "containers", &containers))
		return NULL;
	first = json_object_array_get_idx(containers, 0);
	return first && json_object_object_get_ex(first, "image", &image)
		       ? json_object_get_string(image)
		       : NULL;
}

static void fake_create_pod(abx__engine *base, const char *namespace_, const char *name,
			    const abx__map *labels, const abx__map *annotations,
			    json_object *pod_template, abx__pod_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	const char *image = main_image(pod_template);
	int inject = injected(e, ABX__FAKE_CREATE);
	event *ev = event_new(EV_APPLY, namespace_, name);

	if (!ev) {
		done(userdata, ABX_ENOMEM, NULL, NULL);
		return;
	}
	ev->op = ABX__FAKE_CREATE;
	ev->pod_done = done;
	ev->userdata = userdata;
	ev->inject = inject;
	ev->r = fake_check_template(base, pod_template, &ev->err);
	if (ev->r == ABX_OK && !image)
		ev->r = abx__error_set(&ev->err, ABX_EINVAL, "pod %s/%s: no image",
				       namespace_, name);
	if (ev->r == ABX_OK) {
		ev->image = abx__strdup(image);
		if (!ev->image ||
		    (labels && abx__map_copy(&ev->set_labels, labels) < 0) ||
		    (annotations && abx__map_copy(&ev->set_annotations, annotations) < 0))
			ev->r = abx__error_nomem(&ev->err);
	}
	event_add(e, ev, e->options.write_ms);
}

static void fake_change_pod(abx__engine *base, const char *namespace_, const char *name,
			    const abx__pod_change *change, abx__pod_done done,
			    void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	int inject = injected(e, ABX__FAKE_CHANGE);
	event *ev = event_new(EV_APPLY, namespace_, name);

	if (!ev) {
		done(userdata, ABX_ENOMEM, NULL, NULL);
		return;
	}
	ev->op = ABX__FAKE_CHANGE;
	ev->pod_done = done;
	ev->userdata = userdata;
	ev->inject = inject;
	ev->expect_version = change->expect_version;
	ev->restart = change->restart;
	ev->activity = change->activity;
	ev->image = abx__strdup(change->image);
	if ((change->image && !ev->image) ||
	    (change->set_labels &&
	     abx__map_copy(&ev->set_labels, change->set_labels) < 0) ||
	    (change->set_annotations &&
	     abx__map_copy(&ev->set_annotations, change->set_annotations) < 0) ||
	    strings_copy(change->remove_labels, &ev->remove_labels) < 0 ||
	    strings_copy(change->remove_annotations, &ev->remove_annotations) < 0)
		ev->r = abx__error_nomem(&ev->err);
	event_add(e, ev, e->options.write_ms);
}

static void fake_delete_pod(abx__engine *base, const char *namespace_, const char *name,
			    abx__engine_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	int inject = injected(e, ABX__FAKE_DELETE);
	event *ev = event_new(EV_APPLY, namespace_, name);

	if (!ev) {
		done(userdata, ABX_ENOMEM, NULL);
		return;
	}
	ev->op = ABX__FAKE_DELETE;
	ev->done = done;
	ev->userdata = userdata;
	ev->inject = inject;
	event_add(e, ev, e->options.write_ms);
}

static void fake_connect_pod(abx__engine *base, const char *namespace_, const char *name,
			     uint16_t port, abx__fd_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev = event_new(EV_CONNECT, namespace_, name);

	(void)port;
	if (!ev) {
		done(userdata, ABX_ENOMEM, -1, NULL);
		return;
	}
	ev->fd_done = done;
	ev->userdata = userdata;
	event_add(e, ev, 0);
}

static void fake_snapshot_pod(abx__engine *base, const char *namespace_, const char *name,
			      const char *id, abx__snapshot_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	int inject = injected(e, ABX__FAKE_SNAPSHOT);
	event *ev = event_new(EV_SNAPSHOT, namespace_, name);

	if (ev)
		ev->image = abx__strdup(id);
	if (!ev || !ev->image) {
		event_free(ev);
		done(userdata, ABX_ENOMEM, 0, NULL);
		return;
	}
	ev->snapshot_done = done;
	ev->userdata = userdata;
	ev->inject = inject;
	event_add(e, ev, e->options.snapshot_ms);
}

static void fake_delete_snapshot(abx__engine *base, const char *id, abx__engine_done done,
				 void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev = event_new(EV_SNAPSHOT_GONE, NULL, NULL);

	if (ev)
		ev->image = abx__strdup(id);
	if (!ev || !ev->image) {
		event_free(ev);
		done(userdata, ABX_ENOMEM, NULL);
		return;
	}
	ev->done = done;
	ev->userdata = userdata;
	event_add(e, ev, 0);
}

static void fake_stat_pod(abx__engine *base, const char *namespace_, const char *name,
			  abx__stats_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev = event_new(EV_STATS, namespace_, name);
	int inject = injected(e, ABX__FAKE_STAT);

	if (!ev) {
		done(userdata, ABX_ENOMEM, NULL, NULL);
		return;
	}
	ev->inject = inject;
	ev->stats_done = done;
	ev->userdata = userdata;
	event_add(e, ev, 0);
}

size_t abx__fake_engine_snapshots(const abx__engine *base)
{
	const fake_engine *e = (const fake_engine *)base;
	size_t count = 0;

	for (const bad_image *s = e->snapshots; s; s = s->next)
		count++;
	return count;
}

static void fake_open_log(abx__engine *base, const char *namespace_, const char *name,
			  abx__fd_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev = event_new(EV_LOG, namespace_, name);

	if (!ev) {
		done(userdata, ABX_ENOMEM, -1, NULL);
		return;
	}
	ev->fd_done = done;
	ev->userdata = userdata;
	event_add(e, ev, 0);
}

static void fake_close(abx__engine *base, void (*done)(void *userdata), void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev;

	abx__fake_engine_detach(base);
	ev = event_new(EV_CLOSED, NULL, NULL);
	if (!ev) {
		done(userdata);
		return;
	}
	ev->closed = done;
	ev->userdata = userdata;
	event_add(e, ev, 0);
}

static const abx__engine_ops fake_ops = {
	.name = "fake",
	.check_template = fake_check_template,
	.start = fake_start,
	.create_pod = fake_create_pod,
	.change_pod = fake_change_pod,
	.delete_pod = fake_delete_pod,
	.connect_pod = fake_connect_pod,
	.snapshot_pod = fake_snapshot_pod,
	.delete_snapshot = fake_delete_snapshot,
	.stat_pod = fake_stat_pod,
	.open_log = fake_open_log,
	.close = fake_close,
};

int abx__fake_engine_new(const abx__fake_engine_options *options, abx__engine **ret,
			 abx_error **reterr)
{
	fake_engine *e = abx__calloc(1, sizeof(*e));

	if (!e)
		return abx__error_nomem(reterr);
	e->base.ops = &fake_ops;
	e->options = *options;
	e->pods_tail = &e->pods;
	*ret = &e->base;
	return ABX_OK;
}

void abx__fake_engine_free(abx__engine *base)
{
	fake_engine *e = (fake_engine *)base;

	if (!e)
		return;
	while (e->events) {
		event *ev = e->events;

		e->events = ev->next;
		event_free(ev);
	}
	while (e->pods) {
		fake_pod *p = e->pods;

		e->pods = p->next;
		pod_free(p);
	}
	while (e->snapshots) {
		bad_image *shot = e->snapshots;

		e->snapshots = shot->next;
		abx__free(shot->image);
		abx__free(shot);
	}
	while (e->bad_images) {
		bad_image *bad = e->bad_images;

		e->bad_images = bad->next;
		abx__free(bad->image);
		abx__free(bad);
	}
	abx__free(e);
}

/* --- what tests do to it --- */

void abx__fake_engine_detach(abx__engine *base)
{
	fake_engine *e = (fake_engine *)base;
	event *ev;

	e->on_pod = NULL;
	e->on_synced = NULL;
	for (event **p = &e->events; (ev = *p);) {
		if (ev->type == EV_START || ev->type == EV_GONE ||
		    ev->type == EV_ACTIVITY) {
			p = &ev->next;
			continue;
		}
		*p = ev->next;
		event_free(ev);
	}
}

void abx__fake_engine_fail(abx__engine *base, enum abx__fake_op op, unsigned skip,
			   unsigned count, int code)
{
	fake_engine *e = (fake_engine *)base;

	e->ops[op].skip = skip;
	e->ops[op].count = count;
	e->ops[op].code = code;
}

void abx__fake_engine_set_snapshot(abx__engine *base, int64_t snapshot_ms)
{
	((fake_engine *)base)->options.snapshot_ms = snapshot_ms;
}

void abx__fake_engine_set_freeze(abx__engine *base, int64_t freeze_ms)
{
	((fake_engine *)base)->options.freeze_ms = freeze_ms;
}

int abx__fake_engine_bad_image(abx__engine *base, const char *image, const char *reason)
{
	fake_engine *e = (fake_engine *)base;
	bad_image *bad;

	for (bad_image **p = &e->bad_images; (bad = *p); p = &bad->next) {
		if (strcmp(bad->image, image) != 0)
			continue;
		*p = bad->next;
		abx__free(bad->image);
		abx__free(bad);
		break;
	}
	if (!reason)
		return ABX_OK;
	bad = abx__calloc(1, sizeof(*bad));
	if (!bad)
		return ABX_ENOMEM;
	bad->image = abx__strdup(image);
	if (!bad->image) {
		abx__free(bad);
		return ABX_ENOMEM;
	}
	snprintf(bad->reason, sizeof(bad->reason), "%s", reason);
	bad->next = e->bad_images;
	e->bad_images = bad;
	return ABX_OK;
}

void abx__fake_engine_kill_container(abx__engine *base, const char *namespace_,
				     const char *name, const char *reason, int exit_code)
{
	fake_engine *e = (fake_engine *)base;
	fake_pod *p = find(e, namespace_, name);

	if (!p || p->phase != ABX__POD_RUNNING)
		return;
	p->phase = ABX__POD_FAILED;
	p->ready = false;
	abx__free(p->running_image);
	p->running_image = NULL;
	p->exit_code = exit_code;
	snprintf(p->reason, sizeof(p->reason), "%s", reason);
	announce(e, p);
}

void abx__fake_engine_vanish(abx__engine *base, const char *namespace_, const char *name)
{
	fake_engine *e = (fake_engine *)base;
	fake_pod *p = find(e, namespace_, name);
	event *ev = p ? event_new(EV_GONE, namespace_, name) : NULL;

	if (!ev)
		return;
	p->deleting = true;
	event_add(e, ev, 0);
}

bool abx__fake_engine_at(const abx__engine *base, size_t index, abx__pod *ret)
{
	const fake_engine *e = (const fake_engine *)base;
	const fake_pod *p = e->pods;

	while (p && index--)
		p = p->next;
	if (!p)
		return false;
	*ret = view_of(p);
	return true;
}

size_t abx__fake_engine_count(const abx__engine *base)
{
	return ((const fake_engine *)base)->pod_count;
}

unsigned abx__fake_engine_calls(const abx__engine *base, enum abx__fake_op op)
{
	return ((const fake_engine *)base)->ops[op].calls;
}

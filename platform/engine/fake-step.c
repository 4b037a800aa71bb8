/* fake-step.c - the fake engine's steps: a write is applied, a container starts, a report
 * is made. */
#include "engine/fake-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

/* --- applying writes --- */

static int apply_create(fake_engine *e, event *ev)
{
	fake_pod *p;

	if (abx__fake_find_pod(e, ev->namespace_, ev->name))
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
	    abx__fake_schedule_start(e, p, e->options.start_ms) < 0) {
		abx__fake_pod_free(p);
		return abx__error_nomem(&ev->err);
	}
	*e->pods_tail = p;
	e->pods_tail = &p->next;
	e->pod_count++;
	abx__fake_announce(e, p);
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
	if (abx__fake_schedule_start(e, p, e->options.swap_ms) < 0) {
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
	fake_pod *p = abx__fake_find_pod(e, ev->namespace_, ev->name);
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
		abx__fake_schedule_activity(e, p, e->options.freeze_ms);
	}
	abx__map_done(&p->labels);
	abx__map_done(&p->annotations);
	p->labels = labels;
	p->annotations = annotations;
	abx__fake_announce(e, p);
	return ABX_OK;
}

static int apply_delete(fake_engine *e, event *ev)
{
	fake_pod *p = abx__fake_find_pod(e, ev->namespace_, ev->name);
	event *gone;

	if (!p)
		return abx__error_set(&ev->err, ABX_ENOTFOUND, "pod %s/%s does not exist",
				      ev->namespace_, ev->name);
	if (p->deleting)
		return ABX_OK;
	gone = abx__fake_event_new(EV_GONE, ev->namespace_, ev->name);
	if (!gone)
		return abx__error_nomem(&ev->err);
	p->deleting = true;
	p->ready = false;
	abx__fake_event_add(e, gone, e->options.delete_ms);
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
	abx__fake_event_add(e, ev, 0);
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
	fake_pod *p = abx__fake_find_pod(e, ev->namespace_, ev->name);
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
	abx__fake_announce(e, p);
}

static void run_activity(fake_engine *e, const event *ev)
{
	fake_pod *p = abx__fake_find_pod(e, ev->namespace_, ev->name);

	if (!p || p->deleting || p->activity == p->wanted)
		return;
	p->activity = p->wanted;
	if (p->activity == ABX__POD_STOP) {
		abx__free(p->running_image);
		p->running_image = NULL;
		p->ready = false;
		p->phase = ABX__POD_PENDING;
	}
	abx__fake_announce(e, p);
}

static void run_snapshot(fake_engine *e, event *ev)
{
	fake_pod *p = abx__fake_find_pod(e, ev->namespace_, ev->name);
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
		view = abx__fake_view_of(p);
		if (e->on_pod)
			e->on_pod(e->userdata, &view);
		abx__fake_pod_free(p);
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
		view = abx__fake_view_of(p);
		e->on_pod(e->userdata, &view);
		return true;
	}
	return false;
}

static void run_report(fake_engine *e, const event *ev)
{
	const fake_pod *p = abx__fake_find_pod(e, ev->namespace_, ev->name);
	abx__pod view;

	if (ev->done) {
		ev->done(ev->userdata, ev->r, ev->err);
	} else if (ev->pod_done) {
		if (p)
			view = abx__fake_view_of(p);
		ev->pod_done(ev->userdata, ev->r, p && ev->r == ABX_OK ? &view : NULL,
			     ev->err);
	}
}

static void run_connect(fake_engine *e, const event *ev)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r;

	if (!abx__fake_find_pod(e, ev->namespace_, ev->name))
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
	else if (!abx__fake_find_pod(e, ev->namespace_, ev->name))
		r = abx__error_set(&err, ABX_ENOTFOUND, "pod %s/%s does not exist",
				   ev->namespace_, ev->name);
	ev->stats_done(ev->userdata, r, r == ABX_OK ? &stats : NULL, err);
}

static void run_log(fake_engine *e, const event *ev)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int fd = -1, r = ABX_OK;

	if (!abx__fake_find_pod(e, ev->namespace_, ev->name))
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
	if (!ev || ev->due > abx__fake_now_ms(e))
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
	abx__fake_event_free(ev);
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

/* fake.c - the engine port over Pods in memory, and what tests do to it. See fake.h. */
#include "engine/fake-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

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
	ev = abx__fake_event_new(EV_SYNCED, NULL, NULL);
	if (ev)
		abx__fake_event_add(e, ev, 0);
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
	event *ev = abx__fake_event_new(EV_APPLY, namespace_, name);

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
	abx__fake_event_add(e, ev, e->options.write_ms);
}

static void fake_change_pod(abx__engine *base, const char *namespace_, const char *name,
			    const abx__pod_change *change, abx__pod_done done,
			    void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	int inject = injected(e, ABX__FAKE_CHANGE);
	event *ev = abx__fake_event_new(EV_APPLY, namespace_, name);

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
	    abx__fake_strings_copy(change->remove_labels, &ev->remove_labels) < 0 ||
	    abx__fake_strings_copy(change->remove_annotations, &ev->remove_annotations) <
		    0)
		ev->r = abx__error_nomem(&ev->err);
	abx__fake_event_add(e, ev, e->options.write_ms);
}

static void fake_delete_pod(abx__engine *base, const char *namespace_, const char *name,
			    abx__engine_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	int inject = injected(e, ABX__FAKE_DELETE);
	event *ev = abx__fake_event_new(EV_APPLY, namespace_, name);

	if (!ev) {
		done(userdata, ABX_ENOMEM, NULL);
		return;
	}
	ev->op = ABX__FAKE_DELETE;
	ev->done = done;
	ev->userdata = userdata;
	ev->inject = inject;
	abx__fake_event_add(e, ev, e->options.write_ms);
}

static void fake_connect_pod(abx__engine *base, const char *namespace_, const char *name,
			     uint16_t port, abx__fd_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev = abx__fake_event_new(EV_CONNECT, namespace_, name);

	(void)port;
	if (!ev) {
		done(userdata, ABX_ENOMEM, -1, NULL);
		return;
	}
	ev->fd_done = done;
	ev->userdata = userdata;
	abx__fake_event_add(e, ev, 0);
}

static void fake_snapshot_pod(abx__engine *base, const char *namespace_, const char *name,
			      const char *id, abx__snapshot_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	int inject = injected(e, ABX__FAKE_SNAPSHOT);
	event *ev = abx__fake_event_new(EV_SNAPSHOT, namespace_, name);

	if (ev)
		ev->image = abx__strdup(id);
	if (!ev || !ev->image) {
		abx__fake_event_free(ev);
		done(userdata, ABX_ENOMEM, 0, NULL);
		return;
	}
	ev->snapshot_done = done;
	ev->userdata = userdata;
	ev->inject = inject;
	abx__fake_event_add(e, ev, e->options.snapshot_ms);
}

static void fake_delete_snapshot(abx__engine *base, const char *id, abx__engine_done done,
				 void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev = abx__fake_event_new(EV_SNAPSHOT_GONE, NULL, NULL);

	if (ev)
		ev->image = abx__strdup(id);
	if (!ev || !ev->image) {
		abx__fake_event_free(ev);
		done(userdata, ABX_ENOMEM, NULL);
		return;
	}
	ev->done = done;
	ev->userdata = userdata;
	abx__fake_event_add(e, ev, 0);
}

static void fake_stat_pod(abx__engine *base, const char *namespace_, const char *name,
			  abx__stats_done done, void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev = abx__fake_event_new(EV_STATS, namespace_, name);
	int inject = injected(e, ABX__FAKE_STAT);

	if (!ev) {
		done(userdata, ABX_ENOMEM, NULL, NULL);
		return;
	}
	ev->inject = inject;
	ev->stats_done = done;
	ev->userdata = userdata;
	abx__fake_event_add(e, ev, 0);
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
	event *ev = abx__fake_event_new(EV_LOG, namespace_, name);

	if (!ev) {
		done(userdata, ABX_ENOMEM, -1, NULL);
		return;
	}
	ev->fd_done = done;
	ev->userdata = userdata;
	abx__fake_event_add(e, ev, 0);
}

static void fake_close(abx__engine *base, void (*done)(void *userdata), void *userdata)
{
	fake_engine *e = (fake_engine *)base;
	event *ev;

	abx__fake_engine_detach(base);
	ev = abx__fake_event_new(EV_CLOSED, NULL, NULL);
	if (!ev) {
		done(userdata);
		return;
	}
	ev->closed = done;
	ev->userdata = userdata;
	abx__fake_event_add(e, ev, 0);
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
		abx__fake_event_free(ev);
	}
	while (e->pods) {
		fake_pod *p = e->pods;

		e->pods = p->next;
		abx__fake_pod_free(p);
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
		abx__fake_event_free(ev);
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
	fake_pod *p = abx__fake_find_pod(e, namespace_, name);

	if (!p || p->phase != ABX__POD_RUNNING)
		return;
	p->phase = ABX__POD_FAILED;
	p->ready = false;
	abx__free(p->running_image);
	p->running_image = NULL;
	p->exit_code = exit_code;
	snprintf(p->reason, sizeof(p->reason), "%s", reason);
	abx__fake_announce(e, p);
}

void abx__fake_engine_vanish(abx__engine *base, const char *namespace_, const char *name)
{
	fake_engine *e = (fake_engine *)base;
	fake_pod *p = abx__fake_find_pod(e, namespace_, name);
	event *ev = p ? abx__fake_event_new(EV_GONE, namespace_, name) : NULL;

	if (!ev)
		return;
	p->deleting = true;
	abx__fake_event_add(e, ev, 0);
}

bool abx__fake_engine_at(const abx__engine *base, size_t index, abx__pod *ret)
{
	const fake_engine *e = (const fake_engine *)base;
	const fake_pod *p = e->pods;

	while (p && index--)
		p = p->next;
	if (!p)
		return false;
	*ret = abx__fake_view_of(p);
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

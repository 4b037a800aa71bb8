/* fake-pods.c - the fake engine's Pods and the list of what is to happen. */
#include "engine/fake-priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

int64_t abx__fake_now_ms(const fake_engine *e)
{
	return e->options.clock->mono_ms(e->options.clock->userdata);
}

static void strings_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		abx__free(list[i]);
	abx__free(list);
}

int abx__fake_strings_copy(const char *const *list, char ***ret)
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

void abx__fake_event_free(event *ev)
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
event *abx__fake_event_new(enum event_type type, const char *namespace_, const char *name)
{
	event *ev = calloc(1, sizeof(*ev));

	if (!ev)
		return NULL;
	ev->type = type;
	ev->namespace_ = namespace_ ? strdup(namespace_) : NULL;
	ev->name = name ? strdup(name) : NULL;
	if ((namespace_ && !ev->namespace_) || (name && !ev->name)) {
		abx__fake_event_free(ev);
		return NULL;
	}
	return ev;
}

/* Behind all that are due by then. */
void abx__fake_event_add(fake_engine *e, event *ev, int64_t delay_ms)
{
	event **p = &e->events;

	ev->due = abx__fake_now_ms(e) + delay_ms;
	while (*p && (*p)->due <= ev->due)
		p = &(*p)->next;
	ev->next = *p;
	*p = ev;
}

fake_pod *abx__fake_find_pod(const fake_engine *e, const char *namespace_,
			     const char *name)
{
	for (fake_pod *p = e->pods; p; p = p->next)
		if (strcmp(p->name, name) == 0 && strcmp(p->namespace_, namespace_) == 0)
			return p;
	return NULL;
}

abx__pod abx__fake_view_of(const fake_pod *p)
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
void abx__fake_announce(fake_engine *e, fake_pod *p)
{
	p->version = ++e->version;
	p->dirty = true;
}

void abx__fake_pod_free(fake_pod *p)
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

int abx__fake_schedule_activity(fake_engine *e, fake_pod *p, int64_t delay_ms)
{
	event *ev = abx__fake_event_new(EV_ACTIVITY, p->namespace_, p->name);

	if (!ev)
		return ABX_ENOMEM;
	abx__fake_event_add(e, ev, delay_ms);
	return ABX_OK;
}

int abx__fake_schedule_start(fake_engine *e, fake_pod *p, int64_t delay_ms)
{
	event *ev = abx__fake_event_new(EV_START, p->namespace_, p->name);

	if (!ev)
		return ABX_ENOMEM;
	ev->generation = p->generation;
	abx__fake_event_add(e, ev, delay_ms);
	return ABX_OK;
}

/*
 * watch-poll.c - queues of events with caps.
 */
#include "envd/watch-poll.h"

#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include "io/proto-json.h"

/* About what an event takes in memory. */
static size_t size_of(const Filesystem__FilesystemEvent *event)
{
	size_t size = 128 + strlen(event->name);

	return event->entry ? size + 512 + 2 * strlen(event->entry->path) : size;
}

abx__watch_poller *abx__watch_poller_new(abx__watcher *watcher)
{
	abx__watch_poller *poller = abx__calloc(1, sizeof(*poller));

	if (!poller)
		return NULL;
	poller->id[0] = 'w';
	if (abx__id_random(poller->id + 1, ABX__WATCH_ID_LEN - 1) < 0) {
		abx__free(poller);
		return NULL;
	}
	poller->watcher = watcher;
	watcher->data = poller;
	HASH_ADD_STR(watcher->table->pollers, id, poller);
	return poller;
}

abx__watch_poller *abx__watch_poller_find(abx__watches *table, const char *id)
{
	abx__watch_poller *poller;

	HASH_FIND_STR(table->pollers, id, poller);
	return poller;
}

/* A file written in many pieces need not be told of each. */
static bool repeats_last(const abx__watch_poller *poller,
			 const Filesystem__FilesystemEvent *event)
{
	const Filesystem__FilesystemEvent *last =
		poller->count ? poller->events[poller->count - 1] : NULL;

	return last && event->type == FILESYSTEM__EVENT_TYPE__EVENT_TYPE_WRITE &&
	       last->type == event->type && strcmp(last->name, event->name) == 0 &&
	       !event->entry == !last->entry;
}

static bool make_room(abx__watch_poller *poller)
{
	size_t size = poller->size ? poller->size * 2 : 16;
	Filesystem__FilesystemEvent **events;

	if (poller->count < poller->size)
		return true;
	events = abx__reallocarray(poller->events, size, sizeof(*events));
	if (!events)
		return false;
	poller->events = events;
	poller->size = size;
	return true;
}

static Filesystem__FilesystemEvent *copy_event(Filesystem__FilesystemEvent *event)
{
	Filesystem__FilesystemEvent *copy = abx__malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	filesystem__filesystem_event__init(copy);
	copy->type = event->type;
	copy->name = abx__strdup(event->name);
	if (!copy->name) {
		abx__free(copy);
		return NULL;
	}
	copy->entry = abx_take(event->entry);
	return copy;
}

void abx__watch_poller_add(abx__watch_poller *poller, Filesystem__FilesystemEvent *event)
{
	abx__watches *table = poller->watcher->table;
	size_t bytes = size_of(event);
	Filesystem__FilesystemEvent *copy;

	if (repeats_last(poller, event)) {
		Filesystem__FilesystemEvent *last = poller->events[poller->count - 1];
		Filesystem__EntryInfo *entry = last->entry;

		last->entry = event->entry; /* the newer one; ours goes back */
		event->entry = entry;
		return;
	}
	if (poller->count >= ABX__WATCH_QUEUE_MAX ||
	    table->queued_bytes + bytes > ABX__WATCH_QUEUED_MAX_BYTES) {
		abx__watch_poller_clear(poller);
		abx__watcher_fail(
			poller->watcher, ABX__CONNECT_DATA_LOSS,
			"events were lost: more than %d waited, or too many for "
			"all watchers; watch again and ask more often",
			ABX__WATCH_QUEUE_MAX);
		return;
	}
	copy = make_room(poller) ? copy_event(event) : NULL;
	if (!copy) {
		abx__watcher_fail(poller->watcher, ABX__CONNECT_RESOURCE_EXHAUSTED,
				  "out of memory");
		return;
	}
	poller->events[poller->count++] = copy;
	poller->bytes += bytes;
	table->queued_bytes += bytes;
}

void abx__watch_poller_clear(abx__watch_poller *poller)
{
	for (size_t i = 0; i < poller->count; i++)
		abx__proto_free(&poller->events[i]->base);
	abx__free(poller->events);
	poller->events = NULL;
	poller->count = poller->size = 0;
	poller->watcher->table->queued_bytes -= poller->bytes;
	poller->bytes = 0;
}

void abx__watch_poller_free(abx__watch_poller *poller)
{
	abx__watch_poller_clear(poller);
	HASH_DEL(poller->watcher->table->pollers, poller);
	abx__watcher_remove(poller->watcher);
	abx__free(poller);
}

void abx__watch_pollers_close(abx__watches *table)
{
	abx__watch_poller *poller, *next;

	HASH_ITER(hh, table->pollers, poller, next)
	{
		abx__watch_poller_free(poller);
	}
}

/*
 * watch-poll.h - watchers that keep their events until somebody asks: CreateWatcher,
 * GetWatcherEvents, RemoveWatcher.
 *
 * A watcher lives until it is removed. One that is not asked for too long has failed, and
 * says so when it is asked: what it holds is capped, as is what all of them hold.
 */
#ifndef ABX_ENVD_WATCH_POLL_H
#define ABX_ENVD_WATCH_POLL_H

#include <uthash.h>

#include "envd/watch.h"

#define ABX__WATCH_ID_LEN 21 /* "w" and 20 of [a-z0-9] */
#define ABX__WATCH_QUEUE_MAX 16384
#define ABX__WATCH_QUEUED_MAX_BYTES ((size_t)16 << 20)

typedef struct abx__watch_poller {
	UT_hash_handle hh; /* by id */
	char id[ABX__WATCH_ID_LEN + 1];
	abx__watcher *watcher;
	Filesystem__FilesystemEvent **events; /* oldest first */
	size_t count, size;
	size_t bytes;
} abx__watch_poller;

/* Takes over a watcher that started, and sets its `data`. NULL when out of memory. */
abx__watch_poller *abx__watch_poller_new(abx__watcher *watcher);
abx__watch_poller *abx__watch_poller_find(abx__watches *table, const char *id);
/* Its watcher's news. */
void abx__watch_poller_add(abx__watch_poller *poller, Filesystem__FilesystemEvent *event);
void abx__watch_poller_clear(abx__watch_poller *poller);
/* Removes its watcher, too. */
void abx__watch_poller_free(abx__watch_poller *poller);
/* All of them. */
void abx__watch_pollers_close(abx__watches *table);

#endif

/*
 * watch-events.h - the kernel's news, read and handed to the watchers they concern.
 */
#ifndef ABX_ENVD_WATCH_EVENTS_H
#define ABX_ENVD_WATCH_EVENTS_H

#include "envd/watch.h"

/* Reads until the kernel has no more. Only while no scan is under way. */
void abx__watch_events_read(abx__watches *table);

#endif

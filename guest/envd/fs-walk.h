/*
 * fs-walk.h - directory trees read and removed, without ever following a link inside
 * them. All of it blocks: for a worker.
 */
#ifndef ABX_ENVD_FS_WALK_H
#define ABX_ENVD_FS_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <envd/filesystem.pb-c.h>

#include "envd/users.h"

/* Levels of a tree; each holds a descriptor open. */
#define ABX__FS_MAX_DEPTH 512
#define ABX__FS_MAX_ENTRIES 1000000

typedef struct abx__fs_list {
	Filesystem__EntryInfo **entries;
	size_t count, size;
} abx__fs_list;

void abx__fs_list_done(abx__fs_list *list);
/* Names in lexical order, each directory followed by what is in it, down to `depth`
   levels. Entries that vanish on the way are left out. `path` itself may be a link. A
   negative errno; E2BIG over the number of entries, ECANCELED when *cancelled became
   true. */
int abx__fs_walk(const char *path, unsigned depth, abx__users *users,
		 const atomic_bool *cancelled, abx__fs_list *list);
/* Removes `path` and all beneath; a missing one is success. A negative errno. */
int abx__fs_remove(const char *path);

#endif

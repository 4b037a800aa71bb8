/*
 * watch-scan.h - a tree read from the file system, each directory watched before it is
 * read. Blocks: for a worker, or for a directory that has just been made.
 */
#ifndef ABX_ENVD_WATCH_SCAN_H
#define ABX_ENVD_WATCH_SCAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct abx__watch_found {
	char *rel;     /* below the watcher's root */
	size_t parent; /* index of the directory it is in; the first is its own */
	bool is_dir;
	int wd; /* of a directory; -1: it was gone, or is no directory */
} abx__watch_found;

typedef struct abx__watch_scan {
	int inotify;
	const char *root;  /* of the watcher */
	bool is_recursive; /* else only the first directory is watched and nothing read */
	bool wants_files;  /* what is not a directory, too */
	size_t max_dirs;
	atomic_bool cancelled;

	abx__watch_found *items; /* parents before what is in them */
	size_t count, size;
	size_t dir_count;
} abx__watch_scan;

/* Reads the directory `rel`; "" is the root, which may be a link. A negative errno: what
   the first directory met; ENOSPC no more watches; E2BIG more than max_dirs; ECANCELED;
   ENAMETOOLONG, ELOOP too deep. What vanishes on the way is left out. */
int abx__watch_scan_run(abx__watch_scan *scan, const char *rel);
/* Errors that say a directory is not there, or not for us, rather than not watchable. */
bool abx__watch_scan_is_vanished(int error);
void abx__watch_scan_done(abx__watch_scan *scan);

#endif

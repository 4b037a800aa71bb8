/*
 * watch.h - directories watched for changes (contract/envd.md, section 8).
 *
 * One inotify instance serves all watchers and exists only while there is one: instances
 * are scarce, and all Pods of a machine may share one account's. A directory is in the
 * table once, by its watch descriptor; a link says which watcher sees it, and as what.
 *
 * Recursive watchers follow new directories without a gap: when one appears it is watched
 * first and read afterwards, and what is found there is told as created; where the kernel
 * tells the same again that is left out. The first reading of a tree runs on a worker;
 * the table does not read events meanwhile.
 *
 * Losing events is an error, never silence: the kernel's queue ran over, a reader stayed
 * behind, or a directory could not be watched. The watcher then has failed and tells
 * nothing more.
 *
 * Links, directories and watchers are freed by the sweep at the end of a reading only, so
 * that whoever walks their lists may drop any of them.
 */
#ifndef ABX_ENVD_WATCH_H
#define ABX_ENVD_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include <uthash.h>
#include <uv.h>

#include <envd/filesystem.pb-c.h>

#include "base/error.h"
#include "envd/watch-scan.h"
#include "io/connect-code.h"

struct abx__envd;
typedef struct abx__watcher abx__watcher;

#define ABX__WATCH_MAX_WATCHERS 256
#define ABX__WATCH_MAX_DIRS 65536 /* of all watchers */

/* What its owner does with a watcher's news. */
typedef struct abx__watcher_ops {
	/* Once, later: it watches, or its `code` and `message` say why not. */
	void (*started)(abx__watcher *watcher);
	/* `entry` may be taken out. */
	void (*event)(abx__watcher *watcher, Filesystem__FilesystemEvent *event);
	/* At most once, after it started: its `code` and `message` say why nothing
	 * follows. */
	void (*failed)(abx__watcher *watcher);
} abx__watcher_ops;

typedef struct abx__watch_name {
	UT_hash_handle hh;
	char name[];
} abx__watch_name;

/* One directory as one watcher sees it. */
typedef struct abx__watch_link {
	struct abx__watch_link *prev, *next;   /* of the watcher */
	struct abx__watch_link *dprev, *dnext; /* of the directory */
	abx__watcher *watcher;
	struct abx__watch_dir *dir;
	bool is_dropped;        /* freed by the next sweep */
	abx__watch_name *fresh; /* told as created; the kernel may tell it again */
	char rel[];             /* below the root; "" is the root itself */
} abx__watch_link;

typedef struct abx__watch_dir {
	UT_hash_handle hh;
	int wd;
	bool is_gone; /* the kernel watches it no more; not in the table */
	abx__watch_link *links;
} abx__watch_dir;

struct abx__watcher {
	abx__watcher *prev, *next;
	struct abx__watches *table;
	const abx__watcher_ops *ops;
	void *data; /* the owner's */
	char *root;
	bool is_recursive;
	bool include_entry;
	bool is_started;
	bool is_removed; /* freed by the next sweep */
	abx__watch_link *links;
	struct abx__watch_job *job;  /* while it starts */
	enum abx__connect_code code; /* 0: has not failed */
	char message[256];
};

typedef struct abx__watches {
	struct abx__envd *envd;
	uv_poll_t *poll; /* NULL while there is no watcher */
	int fd;
	abx__watch_dir *dirs; /* by wd */
	abx__watcher *watchers;
	unsigned watcher_count;
	unsigned job_count; /* scans under way */
	bool has_fresh;
	bool needs_sweep;
	struct abx__watch_wait *waits;     /* for the scans to end */
	struct abx__watch_poller *pollers; /* watch-poll.c */
	size_t queued_bytes;               /* of all of them */
} abx__watches;

void abx__watches_init(abx__watches *table, struct abx__envd *envd);

/* Starts to watch the directory `root`. ABX_EEXHAUSTED: too many; ABX_EIO: no inotify. */
int abx__watcher_new(abx__watches *table, const char *root, bool is_recursive,
		     bool include_entry, const abx__watcher_ops *ops, void *data,
		     abx__watcher **ret, abx_error **reterr);
/* Nothing is told after this. NULL is fine. */
void abx__watcher_remove(abx__watcher *watcher);
/* Only the first failure counts. */
void abx__watcher_fail(abx__watcher *watcher, enum abx__connect_code code,
		       const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Calls `drained` when all that happened until now has been told: at once, or after the
 * scans under way. ABX_ENOMEM: it never runs. */
int abx__watches_when_drained(abx__watches *table, void (*drained)(void *userdata),
			      void *userdata);

/* ---- between watch.c and watch-events.c ---- */

/* Takes what a scan of `watcher` found into the table. With `is_new` the names become the
 * links' fresh ones. */
int abx__watch_adopt(abx__watcher *watcher, const abx__watch_scan *scan, bool is_new);
abx__watch_dir *abx__watch_find_dir(abx__watches *table, int wd);
/* The directory `rel` of this watcher and all beneath are watched no more. */
void abx__watch_drop_tree(abx__watcher *watcher, const char *rel);
void abx__watch_drop_dir(abx__watches *table, abx__watch_dir *dir);
/* Fails a watcher whose scan met an errno at `rel`. */
void abx__watcher_fail_scan(abx__watcher *watcher, const char *rel, int error);
bool abx__watch_take_fresh(abx__watch_link *link, const char *name);
void abx__watch_clear_fresh(abx__watch_link *link);

#endif

/*
 * watch-events.c - inotify's events as the interface words them.
 *
 * Names of uploads in the making are not told; what they become is. A directory's own
 * events are its parent's to tell, so only the root's count.
 */
#include "envd/watch-events.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/envd.h"
#include "envd/fs-entry.h"
#include "envd/save.h"
#include "io/proto-json.h"

#define BUFFER_BYTES 16384

/* What one of the kernel's bits is to a client, in the order they are told. */
static const struct {
	uint32_t mask;
	Filesystem__EventType type;
} kinds[] = {
	{ IN_CREATE | IN_MOVED_TO, FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CREATE },
	{ IN_MOVED_FROM | IN_MOVE_SELF, FILESYSTEM__EVENT_TYPE__EVENT_TYPE_RENAME },
	{ IN_ATTRIB, FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CHMOD },
	{ IN_MODIFY, FILESYSTEM__EVENT_TYPE__EVENT_TYPE_WRITE },
	{ IN_DELETE | IN_DELETE_SELF, FILESYSTEM__EVENT_TYPE__EVENT_TYPE_REMOVE },
};

static bool has_entry(Filesystem__EventType type)
{
	return type == FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CREATE ||
	       type == FILESYSTEM__EVENT_TYPE__EVENT_TYPE_WRITE ||
	       type == FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CHMOD;
}

static void add_entry(abx__watcher *watcher, const char *rel,
		      Filesystem__FilesystemEvent *event)
{
	ABX_CLEANUP(abx__freep)
	char *path =
		strcmp(rel, ".") == 0
			? abx__strdup(watcher->root)
			: abx__strf("%s/%s",
				    strcmp(watcher->root, "/") ? watcher->root : "", rel);

	/* Best effort, as promised: what is gone already has no entry. */
	if (path &&
	    abx__fs_entry_at(path, &watcher->table->envd->users, &event->entry) < 0)
		event->entry = NULL;
}

static void tell(abx__watcher *watcher, Filesystem__EventType type, const char *rel)
{
	Filesystem__FilesystemEvent event = FILESYSTEM__FILESYSTEM_EVENT__INIT;
	ABX_CLEANUP(abx__freep) char *name = abx__fs_text(rel);

	if (watcher->code || watcher->is_removed)
		return;
	if (!name) {
		abx__watcher_fail(watcher, ABX__CONNECT_RESOURCE_EXHAUSTED,
				  "out of memory");
		return;
	}
	event.name = name;
	event.type = type;
	if (watcher->include_entry && has_entry(type))
		add_entry(watcher, rel, &event);
	watcher->ops->event(watcher, &event);
	if (event.entry)
		abx__proto_free(&event.entry->base);
}

/* ---- new directories ---- */

static bool has_content(const abx__watcher *watcher, const char *rel)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/%s", watcher->root, rel);
	struct stat st;

	return path && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

/* A file that lies in a directory made a moment ago was created and, when it is not
 * empty, written before anybody watched. What was moved in with its directory was not. */
static void follow_dir(abx__watcher *watcher, const char *rel, bool is_made)
{
	ABX_CLEANUP(abx__watch_scan_done)
	abx__watch_scan scan = {
		.inotify = watcher->table->fd,
		.root = watcher->root,
		.is_recursive = true,
		.wants_files = true,
		.max_dirs = ABX__WATCH_MAX_DIRS - HASH_COUNT(watcher->table->dirs),
	};
	int r = abx__watch_scan_run(&scan, rel);

	if (r >= 0 || scan.count > 0)
		r = abx__watch_adopt(watcher, &scan, true) < 0 ? -ENOMEM : r;
	for (size_t i = 1; i < scan.count; i++) { /* the first has been told */
		tell(watcher, FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CREATE,
		     scan.items[i].rel);
		if (is_made && !scan.items[i].is_dir &&
		    has_content(watcher, scan.items[i].rel))
			tell(watcher, FILESYSTEM__EVENT_TYPE__EVENT_TYPE_WRITE,
			     scan.items[i].rel);
	}
	if (r < 0 && !abx__watch_scan_is_vanished(-r))
		abx__watcher_fail_scan(watcher, rel, -r);
}

/* ---- one event ---- */

/* The kernel calls a file that has no name yet "#" and its inode's number. */
static bool is_nameless(const char *name)
{
	return *name == '#' && name[1] && !name[1 + strspn(name + 1, "0123456789")];
}

static bool is_hidden(const abx__watch_link *link, uint32_t mask, const char *name)
{
	ABX_CLEANUP(abx__freep) char *path = NULL;
	struct stat st;

	if (strncmp(name, ABX__SAVE_TEMP_PREFIX, strlen(ABX__SAVE_TEMP_PREFIX)) == 0)
		return true;
	if (!(mask & (IN_MODIFY | IN_ATTRIB)) || !is_nameless(name))
		return false;
	path = abx__strf("%s/%s/%s", link->watcher->root, link->rel, name);
	return path && lstat(path, &st) < 0;
}

static void handle_link(abx__watch_link *link, uint32_t mask, const char *name)
{
	abx__watcher *watcher = link->watcher;
	ABX_CLEANUP(abx__freep)
	char *rel = !*name       ? abx__strdup(".")
		    : *link->rel ? abx__strf("%s/%s", link->rel, name)
				 : abx__strdup(name);

	if (!rel) {
		abx__watcher_fail(watcher, ABX__CONNECT_RESOURCE_EXHAUSTED,
				  "out of memory");
		return;
	}
	if ((mask & (IN_CREATE | IN_MOVED_TO)) && abx__watch_take_fresh(link, name))
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (mask & kinds[i].mask)
			tell(watcher, kinds[i].type, rel);
	if (!watcher->is_recursive || !(mask & IN_ISDIR) || !*name || watcher->code)
		return;
	if (mask & (IN_MOVED_FROM | IN_DELETE))
		abx__watch_drop_tree(watcher, rel);
	if (mask & (IN_CREATE | IN_MOVED_TO))
		follow_dir(watcher, rel, mask & IN_CREATE);
}

static void handle_overflow(abx__watches *table)
{
	abx__watcher *watcher;

	DL_FOREACH(table->watchers, watcher)
	{
		abx__watcher_fail(
			watcher, ABX__CONNECT_DATA_LOSS,
			"events were lost: more happened than the kernel keeps; "
			"watch again");
	}
}

static void handle_event(abx__watches *table, const struct inotify_event *event)
{
	const char *name = event->len ? event->name : "";
	abx__watch_dir *dir;
	abx__watch_link *link, *next;

	if (event->mask & IN_Q_OVERFLOW) {
		handle_overflow(table);
		return;
	}
	dir = abx__watch_find_dir(table, event->wd);
	if (!dir)
		return;
	DL_FOREACH_SAFE2(dir->links, link, next, dnext)
	{
		if (!link->is_dropped && (*name || !*link->rel) &&
		    !is_hidden(link, event->mask, name))
			handle_link(link, event->mask, name);
	}
	if (event->mask & IN_IGNORED)
		abx__watch_drop_dir(table, dir);
}

/* ---- reading ---- */

/* All that happened before the last reading has been told: nothing comes twice now. */
static void forget_fresh(abx__watches *table)
{
	abx__watcher *watcher;
	abx__watch_link *link;

	if (!table->has_fresh)
		return;
	table->has_fresh = false;
	DL_FOREACH(table->watchers, watcher)
	{
		DL_FOREACH(watcher->links, link)
		{
			abx__watch_clear_fresh(link);
		}
	}
}

void abx__watch_events_read(abx__watches *table)
{
	char buf[BUFFER_BYTES] __attribute__((aligned(8)));
	ssize_t n;

	while ((n = read(table->fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR)) {
		for (const char *p = buf; n > 0 && p < buf + n;) {
			const struct inotify_event *event = (const void *)p;

			handle_event(table, event);
			p += sizeof(*event) + event->len;
		}
	}
	if (n < 0 && errno == EAGAIN)
		forget_fresh(table);
}

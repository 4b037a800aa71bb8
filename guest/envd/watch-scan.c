/*
 * watch-scan.c - recursion with openat and O_NOFOLLOW, so that it never leaves the tree.
 * inotify takes paths only: a directory that is replaced between the two calls is told by
 * its parent's watch, which was there first.
 */
#include "envd/watch-scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#define MAX_DEPTH 512
#define MASK                                                                           \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_ATTRIB | IN_DELETE | \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

void abx__watch_scan_done(abx__watch_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		abx__free(scan->items[i].rel);
	abx__free(scan->items);
	scan->items = NULL;
	scan->count = scan->size = 0;
}

/* Takes `rel` over. */
static int add(abx__watch_scan *scan, char *rel, size_t parent, bool is_dir, int wd)
{
	if (rel && scan->count == scan->size) {
		size_t size = scan->size ? scan->size * 2 : 16;
		abx__watch_found *items =
			abx__reallocarray(scan->items, size, sizeof(*items));

		if (!items) {
			abx__free(rel);
			return -ENOMEM;
		}
		scan->items = items;
		scan->size = size;
	}
	if (!rel)
		return -ENOMEM;
	scan->items[scan->count++] = (abx__watch_found){
		.rel = rel, .parent = parent, .is_dir = is_dir, .wd = wd
	};
	return 0;
}

bool abx__watch_scan_is_vanished(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES;
}

/* The watch descriptor, or a negative errno. */
static int watch_dir(abx__watch_scan *scan, const char *rel)
{
	ABX_CLEANUP(abx__freep)
	char *path =
		*rel ? abx__strf("%s/%s", strcmp(scan->root, "/") ? scan->root : "", rel)
		     : abx__strdup(scan->root);
	int wd;

	if (!path)
		return -ENOMEM;
	if (scan->dir_count >= scan->max_dirs)
		return -E2BIG;
	wd = inotify_add_watch(scan->inotify, path, MASK | (*rel ? IN_DONT_FOLLOW : 0));
	if (wd < 0)
		return -errno;
	scan->dir_count++;
	return wd;
}

static bool is_dir(int fd, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

/* A directory being read: its descriptor, its name and its place among the found. */
struct level {
	int fd;
	const char *rel;
	size_t index;
	unsigned depth;
};

static int scan_dir(abx__watch_scan *scan, const struct level *parent, const char *name,
		    const char *rel);

static int scan_child(abx__watch_scan *scan, const struct level *level,
		      const struct dirent *d)
{
	ABX_CLEANUP(abx__freep)
	char *child = *level->rel ? abx__strf("%s/%s", level->rel, d->d_name)
				  : abx__strdup(d->d_name);
	int r;

	if (!child)
		return -ENOMEM;
	if (!is_dir(level->fd, d))
		return scan->wants_files
			       ? add(scan, abx_take(child), level->index, false, -1)
			       : 0;
	r = scan_dir(scan, level, d->d_name, child);
	return abx__watch_scan_is_vanished(-r) ? 0 : r;
}

/* Takes the level's descriptor over. */
static int read_dir(abx__watch_scan *scan, const struct level *level)
{
	DIR *dir = fdopendir(level->fd);
	struct dirent *d;
	int r = 0;

	if (!dir) {
		r = -errno;
		close(level->fd);
		return r;
	}
	while (r == 0 && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (atomic_load_explicit(&scan->cancelled, memory_order_relaxed))
			r = -ECANCELED;
		else
			r = scan_child(scan, level, d);
	}
	closedir(dir);
	return r;
}

static int scan_dir(abx__watch_scan *scan, const struct level *parent, const char *name,
		    const char *rel)
{
	struct level level = { .rel = rel,
			       .index = scan->count,
			       .depth = parent->depth + 1 };
	int wd, r;

	if (level.depth > MAX_DEPTH)
		return -ENAMETOOLONG;
	wd = watch_dir(scan, rel);
	if (wd < 0 && (level.depth == 1 || !abx__watch_scan_is_vanished(-wd)))
		return wd;
	r = add(scan, abx__strdup(rel), parent->index, true, wd);
	if (r < 0 || wd < 0 || !scan->is_recursive)
		return r;
	level.fd = openat(parent->fd, name,
			  O_RDONLY | O_DIRECTORY | O_CLOEXEC | (*rel ? O_NOFOLLOW : 0));
	return level.fd < 0 ? -errno : read_dir(scan, &level);
}

int abx__watch_scan_run(abx__watch_scan *scan, const char *rel)
{
	ABX_CLEANUP(abx__freep)
	char *path =
		*rel ? abx__strf("%s/%s", strcmp(scan->root, "/") ? scan->root : "", rel)
		     : abx__strdup(scan->root);

	struct level none = { .fd = AT_FDCWD };

	return path ? scan_dir(scan, &none, path, rel) : -ENOMEM;
}

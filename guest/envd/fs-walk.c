/*
 * fs-walk.c - recursion over open directories (openat with O_NOFOLLOW), so that a tree
 * that changes under us never leads out of it.
 */
#include "envd/fs-walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/fs-entry.h"
#include "io/proto-json.h"

struct names {
	char **items;
	size_t count, size;
};

struct walk {
	abx__users *users;
	const atomic_bool *cancelled;
	abx__fs_list *list;
};

static void names_done(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		abx__free(names->items[i]);
	abx__free(names->items);
}

void abx__fs_list_done(abx__fs_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		abx__proto_free(&list->entries[i]->base);
	abx__free(list->entries);
	*list = (abx__fs_list){ 0 };
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct names *names, const char *name)
{
	if (names->count == names->size) {
		size_t size = names->size ? names->size * 2 : 32;
		char **items = abx__reallocarray(names->items, size, sizeof(*items));

		if (!items)
			return -ENOMEM;
		names->items = items;
		names->size = size;
	}
	names->items[names->count] = abx__strdup(name);
	if (!names->items[names->count])
		return -ENOMEM;
	names->count++;
	return 0;
}

/* All names of an open directory; the descriptor stays the caller's. */
static int read_names(int fd, struct names *names)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;
	int r = 0;

	if (!dir) {
		r = -errno;
		abx__closep(&copy);
		return r;
	}
	while (r == 0 && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			r = names->count < ABX__FS_MAX_ENTRIES
				    ? add_name(names, d->d_name)
				    : -E2BIG;
	closedir(dir);
	return r;
}

static int add_entry(abx__fs_list *list, Filesystem__EntryInfo *entry)
{
	if (list->count == list->size) {
		size_t size = list->size ? list->size * 2 : 64;
		Filesystem__EntryInfo **entries =
			abx__reallocarray(list->entries, size, sizeof(*entries));

		if (!entries) {
			abx__proto_free(&entry->base);
			return -ENOMEM;
		}
		list->entries = entries;
		list->size = size;
	}
	list->entries[list->count++] = entry;
	return list->count > ABX__FS_MAX_ENTRIES ? -E2BIG : 0;
}

static bool is_vanished(int error)
{
	return error == -ENOENT || error == -ENOTDIR;
}

static int walk_dir(struct walk *walk, int fd, const char *path, unsigned depth,
		    unsigned level);

static int walk_child(struct walk *walk, int dirfd, const char *name,
		      const char *dir_path, unsigned depth, unsigned level)
{
	ABX_CLEANUP(abx__freep)
	char *path = abx__strf("%s%s%s", dir_path, strcmp(dir_path, "/") == 0 ? "" : "/",
			       name);
	ABX_CLEANUP(abx__closep) int fd = -1;
	Filesystem__EntryInfo *entry = NULL;
	struct stat st;
	int r;

	if (!path)
		return -ENOMEM;
	r = abx__fs_entry_in(dirfd, name, path, walk->users, &entry, &st);
	if (r < 0)
		return is_vanished(r) ? 0 : r;
	r = add_entry(walk->list, entry);
	if (r < 0 || !S_ISDIR(st.st_mode) || depth <= 1)
		return r;
	if (level >= ABX__FS_MAX_DEPTH)
		return -ENAMETOOLONG;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return is_vanished(-errno) || errno == ELOOP ? 0 : -errno;
	return walk_dir(walk, fd, path, depth - 1, level + 1);
}

static int walk_dir(struct walk *walk, int fd, const char *path, unsigned depth,
		    unsigned level)
{
	ABX_CLEANUP(names_done) struct names names = { 0 };
	int r = read_names(fd, &names);

	if (names.count > 1)
		qsort(names.items, names.count, sizeof(*names.items), compare);
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		if (atomic_load_explicit(walk->cancelled, memory_order_relaxed))
			return -ECANCELED;
		r = walk_child(walk, fd, names.items[i], path, depth, level);
	}
	return r;
}

int abx__fs_walk(const char *path, unsigned depth, abx__users *users,
		 const atomic_bool *cancelled, abx__fs_list *list)
{
	ABX_CLEANUP(abx__closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct walk walk = { .users = users, .cancelled = cancelled, .list = list };
	int r;

	if (fd < 0)
		return -errno;
	abx__users_hold(users);
	r = walk_dir(&walk, fd, path, depth ? depth : 1, 1);
	abx__users_release(users);
	return r;
}

/* ---- removal ---- */

static int remove_at(int dirfd, const char *name, unsigned level);

static int empty_dir(int fd, unsigned level)
{
	ABX_CLEANUP(names_done) struct names names = { 0 };
	int r = read_names(fd, &names);

	/* A directory too big for one reading is emptied in several. */
	while (r == -E2BIG || r == 0) {
		int again = r == -E2BIG;

		for (size_t i = 0; i < names.count; i++) {
			int err = remove_at(fd, names.items[i], level);

			if (err < 0)
				return err;
		}
		if (!again)
			return 0;
		names_done(&names);
		names = (struct names){ 0 };
		r = read_names(fd, &names);
	}
	return r;
}

static int remove_at(int dirfd, const char *name, unsigned level)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	int r;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	if (level >= ABX__FS_MAX_DEPTH)
		return -ENAMETOOLONG;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = empty_dir(fd, level + 1);
	if (r < 0)
		return r;
	return unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int abx__fs_remove(const char *path)
{
	int r = remove_at(AT_FDCWD, path, 1);

	return r == -ENOTDIR ? 0 : r;
}

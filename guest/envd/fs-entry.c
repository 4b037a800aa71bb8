/*
 * fs-entry.c - stat(2) to EntryInfo.
 */
#include "envd/fs-entry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/metadata.h"
#include "envd/path.h"
#include "io/proto-json.h"

void abx__fs_mode_text(mode_t mode, char out[16])
{
	static const char bits[] = "rwxrwxrwx";
	size_t n = 0;

	if (S_ISDIR(mode))
		out[n++] = 'd';
	if (S_ISLNK(mode))
		out[n++] = 'L';
	if (S_ISBLK(mode) || S_ISCHR(mode))
		out[n++] = 'D';
	if (S_ISFIFO(mode))
		out[n++] = 'p';
	if (S_ISSOCK(mode))
		out[n++] = 'S';
	if (mode & S_ISUID)
		out[n++] = 'u';
	if (mode & S_ISGID)
		out[n++] = 'g';
	if (S_ISCHR(mode))
		out[n++] = 'c';
	if (mode & S_ISVTX)
		out[n++] = 't';
	if (n == 0)
		out[n++] = '-';
	for (int i = 0; i < 9; i++)
		out[n++] = mode & (0400u >> i) ? bits[i] : '-';
	out[n] = '\0';
}

static Filesystem__FileType type_of(mode_t mode)
{
	if (S_ISREG(mode))
		return FILESYSTEM__FILE_TYPE__FILE_TYPE_FILE;
	if (S_ISDIR(mode))
		return FILESYSTEM__FILE_TYPE__FILE_TYPE_DIRECTORY;
	return FILESYSTEM__FILE_TYPE__FILE_TYPE_UNSPECIFIED;
}

char *abx__fs_text(const char *s)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;

	if (abx__utf8_is_valid(s, strlen(s)))
		return abx__strdup(s);
	while (*s) {
		size_t len = 1;

		while (len < 4 && s[len] && !abx__utf8_is_valid(s, len))
			len++;
		if (!abx__utf8_is_valid(s, len)) {
			len = 1;
			if (abx__buf_adds(&out, "\xEF\xBF\xBD") < 0)
				return NULL;
		} else if (abx__buf_add(&out, s, len) < 0) {
			return NULL;
		}
		s += len;
	}
	return abx__buf_take(&out);
}

/* A link is described by what it leads to; its own are the size, the owner and the
 * permission text. */
static int fill_link(Filesystem__EntryInfo *entry, int dirfd, const char *name,
		     const char *path)
{
	char resolved[PATH_MAX];
	struct stat target;
	const char *text = realpath(path, resolved) ? resolved : path;

	if (fstatat(dirfd, name, &target, 0) == 0) {
		entry->type = type_of(target.st_mode);
		entry->mode = target.st_mode & 0777;
	} else {
		entry->type = FILESYSTEM__FILE_TYPE__FILE_TYPE_UNSPECIFIED;
		entry->mode = 0;
	}
	entry->symlink_target = abx__fs_text(text);
	if (!entry->symlink_target)
		return -ENOMEM;
	entry->has_symlink_target_case =
		FILESYSTEM__ENTRY_INFO__HAS_SYMLINK_TARGET_SYMLINK_TARGET;
	return 0;
}

static int add_metadata(Filesystem__EntryInfo *entry, const char *key, const char *value)
{
	Filesystem__EntryInfo__MetadataEntry *item = abx__malloc(sizeof(*item));

	if (!item)
		return -ENOMEM;
	filesystem__entry_info__metadata_entry__init(item);
	entry->metadata[entry->n_metadata++] = item;
	item->key = abx__strdup(key);
	item->value = abx__strdup(value);
	return item->key && item->value ? 0 : -ENOMEM;
}

/* Only files and directories can carry it; a link shows what it leads to. */
static int fill_metadata(Filesystem__EntryInfo *entry, const char *path)
{
	abx__map metadata = ABX__MAP_INIT;
	int r = abx__metadata_read(path, &metadata);

	if (r == 0 && metadata.count) {
		entry->metadata = abx__calloc(metadata.count, sizeof(*entry->metadata));
		r = entry->metadata ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < metadata.count; i++)
		r = add_metadata(entry, metadata.items[i].key, metadata.items[i].value);
	abx__map_done(&metadata);
	return r < 0 ? -ENOMEM : 0;
}

static int fill(Filesystem__EntryInfo *entry, const struct stat *st, int dirfd,
		const char *name, const char *path, abx__users *users)
{
	char mode[16];

	abx__fs_mode_text(st->st_mode, mode);
	entry->type = type_of(st->st_mode);
	entry->mode = st->st_mode & 0777;
	entry->size = st->st_size;
	entry->name = abx__fs_text(abx__path_base(path));
	entry->path = abx__fs_text(path);
	entry->permissions = abx__strdup(mode);
	entry->owner = abx__users_name_of_uid(users, st->st_uid);
	entry->group = abx__users_name_of_gid(users, st->st_gid);
	entry->modified_time = abx__malloc(sizeof(*entry->modified_time));
	if (!entry->name || !entry->path || !entry->permissions || !entry->owner ||
	    !entry->group || !entry->modified_time)
		return -ENOMEM;
	google__protobuf__timestamp__init(entry->modified_time);
	entry->modified_time->seconds = st->st_mtim.tv_sec;
	entry->modified_time->nanos = (int32_t)st->st_mtim.tv_nsec;
	if (S_ISLNK(st->st_mode) && fill_link(entry, dirfd, name, path) < 0)
		return -ENOMEM;
	return entry->type == FILESYSTEM__FILE_TYPE__FILE_TYPE_UNSPECIFIED
		       ? 0
		       : fill_metadata(entry, path);
}

int abx__fs_entry_in(int dirfd, const char *name, const char *path, abx__users *users,
		     Filesystem__EntryInfo **ret, struct stat *ret_st)
{
	Filesystem__EntryInfo *entry;
	int r;

	if (fstatat(dirfd, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	entry = abx__malloc(sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	filesystem__entry_info__init(entry);
	r = fill(entry, ret_st, dirfd, name, path, users);
	if (r < 0) {
		abx__proto_free(&entry->base);
		return r;
	}
	*ret = entry;
	return 0;
}

int abx__fs_entry_at(const char *path, abx__users *users, Filesystem__EntryInfo **ret)
{
	struct stat st;

	return abx__fs_entry_in(AT_FDCWD, path, path, users, ret, &st);
}

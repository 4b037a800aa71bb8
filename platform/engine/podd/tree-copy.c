/*
 * tree-copy.c - see tree-copy.h.
 *
 * Names come from a container and may be anything; every step is relative to an open
 * folder and follows no link. A hard link is made by the path its first name got in the
 * copy, which no container can touch.
 */
#include "engine/podd/tree-copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <uthash.h>

#include <linux/fs.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/podd/podd.h"

#define DEPTH_MAX 512
#define NAMES_MAX 65536 /* of one file's attributes, together */
#define VALUE_MAX 65536
#define NOBODY 65534

/* A file with several names that was copied under `path`. */
struct tree_link {
	struct {
		dev_t dev;
		ino_t ino;
	} key;
	char *path;
	UT_hash_handle hh;
};

/* Where the walk is. */
struct walk {
	struct tree_copy *copy;
	int top_fd;          /* of the copy */
	char path[PATH_MAX]; /* below it */
	size_t path_len;
	unsigned depth;
	abx_error **reterr;
};

static int fail(struct walk *w, const char *what)
{
	return abx__error_errno(w->reterr, errno == ENOSPC ? ABX_EUNAVAILABLE : ABX_EIO,
				errno, "%s /%.512s", what, w->path);
}

/* ---- ids ---- */

static uint32_t map_id(const struct tree_copy *copy, uint32_t id)
{
	if (copy->id_base == 0)
		return id;
	return id - copy->id_base < ABX__ID_RANGE ? id - copy->id_base : NOBODY;
}

/* ---- extended attributes ---- */

/* "trusted.overlay." ones say where a file came from or what the kernel has found out of
 * this very layer; these few say what the layer means. */
static bool is_kept(const char *name)
{
	static const char prefix[] = "trusted.overlay.";
	static const char *const kept[] = { "opaque", "redirect", "whiteout",
					    "whiteouts" };
	const char *rest = name + sizeof(prefix) - 1;

	if (!abx__str_starts(name, prefix))
		return true;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strcmp(rest, kept[i]) == 0)
			return true;
	return abx__str_starts(rest, "overlay."); /* of an overlay inside */
}

/* struct vfs_ns_cap_data: magic, four words, and with revision 3 the root id. The Pod's
 * root becomes the machine's as it is written, which an idmapped mount makes the next
 * Pod's. */
static size_t map_capability(const struct tree_copy *copy, unsigned char *value,
			     size_t size)
{
	uint32_t magic, root;

	if (size != 24 || copy->id_base == 0)
		return size;
	memcpy(&magic, value, 4);
	memcpy(&root, value + 20, 4);
	if ((magic & 0xff000000u) != 0x03000000u || root != copy->id_base)
		return size;
	magic = 0x02000000u | (magic & 0x00ffffffu);
	memcpy(value, &magic, 4);
	return 20;
}

/* Version, then entries of tag, permissions and id (acl(5)). */
static void map_acl(const struct tree_copy *copy, unsigned char *value, size_t size)
{
	for (size_t at = 4; at + 8 <= size; at += 8) {
		uint16_t tag;
		uint32_t id;

		memcpy(&tag, value + at, 2);
		if (tag != 0x02 && tag != 0x08) /* a named user or group */
			continue;
		memcpy(&id, value + at + 4, 4);
		id = map_id(copy, id);
		memcpy(value + at + 4, &id, 4);
	}
}

static int copy_attribute(struct walk *w, int from, int to, const char *name,
			  unsigned char *value)
{
	ssize_t size = fgetxattr(from, name, value, VALUE_MAX);

	if (strcmp(name, "trusted.overlay.metacopy") == 0)
		return abx__error_set(w->reterr, ABX_EUNSUPPORTED,
				      "/%.512s: its data is in a lower layer (overlay "
				      "metacopy)",
				      w->path);
	if (size < 0)
		return errno == ENODATA ? ABX_OK : fail(w, "attribute of");
	if (strcmp(name, "security.capability") == 0)
		size = (ssize_t)map_capability(w->copy, value, (size_t)size);
	else if (abx__str_starts(name, "system.posix_acl_"))
		map_acl(w->copy, value, (size_t)size);
	if (fsetxattr(to, name, value, (size_t)size, 0) == 0)
		return ABX_OK;
	/* A label of the host's own policy is not the layer's business. */
	if (abx__str_starts(name, "security.") && strcmp(name, "security.capability"))
		return ABX_OK;
	return fail(w, "attribute of");
}

static int copy_attributes(struct walk *w, int from, int to)
{
	static char names[NAMES_MAX];
	static unsigned char value[VALUE_MAX];
	ssize_t len = flistxattr(from, names, sizeof(names));
	int r = ABX_OK;

	if (len < 0)
		return errno == ENOTSUP ? ABX_OK : fail(w, "attributes of");
	for (char *name = names; r == ABX_OK && name < names + len;
	     name += strlen(name) + 1)
		if (is_kept(name) || strcmp(name, "trusted.overlay.metacopy") == 0)
			r = copy_attribute(w, from, to, name, value);
	return r;
}

/* After the owner, which takes the set-id bits and capabilities away. */
static int copy_meta(struct walk *w, int from, int to, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	int r;

	if (fchown(to, map_id(w->copy, st->st_uid), map_id(w->copy, st->st_gid)) < 0 ||
	    fchmod(to, st->st_mode & 07777) < 0)
		return fail(w, "owner of");
	r = copy_attributes(w, from, to);
	if (r < 0)
		return r;
	return futimens(to, times) < 0 ? fail(w, "time of") : ABX_OK;
}

/* ---- data ---- */

static int count(struct walk *w, uint64_t bytes)
{
	struct tree_copy *c = w->copy;

	c->bytes += bytes;
	c->entries++;
	if (c->bytes_max && c->bytes > c->bytes_max)
		return abx__error_set(w->reterr, ABX_ETOOBIG,
				      "the files are over %llu MiB",
				      (unsigned long long)(c->bytes_max >> 20));
	if (c->entries_max && c->entries > c->entries_max)
		return abx__error_set(w->reterr, ABX_ETOOBIG, "there are over %llu files",
				      (unsigned long long)c->entries_max);
	return ABX_OK;
}

static int copy_range(struct walk *w, int from, int to, off_t at, off_t end)
{
	while (at < end) {
		off_t in = at, out = at;
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);
		char block[65536];

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EXDEV || errno == EOPNOTSUPP || errno == EINVAL)) {
			size_t most = (size_t)(end - at) < sizeof(block)
					      ? (size_t)(end - at)
					      : sizeof(block);

			n = pread(from, block, most, at);
			if (n > 0)
				n = pwrite(to, block, (size_t)n, at);
		}
		if (n < 0)
			return fail(w, "copy");
		if (n == 0)
			break;
		at += n;
	}
	return ABX_OK;
}

/* Shared where the file system can; else what is not a hole. */
static int copy_data(struct walk *w, int from, int to, off_t size)
{
	off_t at = 0;
	int r = ABX_OK;

	if (size == 0 || ioctl(to, FICLONE, from) == 0)
		return ABX_OK;
	if (ftruncate(to, size) < 0)
		return fail(w, "size of");
	while (r == ABX_OK && at < size) {
		off_t begin = lseek(from, at, SEEK_DATA);
		off_t end;

		if (begin < 0 && errno == ENXIO)
			break;
		if (begin < 0)
			return fail(w, "read");
		end = lseek(from, begin, SEEK_HOLE);
		if (end < 0)
			return fail(w, "read");
		r = copy_range(w, from, to, begin, end < size ? end : size);
		at = end;
	}
	return r;
}

/* ---- names ---- */

/* 1 linked, 0 the first name. */
static int link_earlier(struct walk *w, int to_dir, const char *name,
			const struct stat *st)
{
	struct tree_link key = { 0 }, *link = NULL;

	if (st->st_nlink < 2)
		return 0;
	key.key.dev = st->st_dev;
	key.key.ino = st->st_ino;
	HASH_FIND(hh, w->copy->links, &key.key, sizeof(key.key), link);
	if (!link)
		return 0;
	if (linkat(w->top_fd, link->path, to_dir, name, 0) < 0)
		return fail(w, "link");
	return 1;
}

static int note_link(struct walk *w, const struct stat *st)
{
	struct tree_link *link;

	if (st->st_nlink < 2)
		return ABX_OK;
	link = abx__calloc(1, sizeof(*link));
	if (!link || !(link->path = abx__strdup(w->path))) {
		abx__free(link);
		return abx__error_nomem(w->reterr);
	}
	link->key.dev = st->st_dev;
	link->key.ino = st->st_ino;
	HASH_ADD(hh, w->copy->links, key, sizeof(link->key), link);
	return ABX_OK;
}

static int copy_file(struct walk *w, int from_dir, int to_dir, const char *name,
		     const struct stat *st)
{
	ABX_CLEANUP(abx__closep) int from = -1;
	ABX_CLEANUP(abx__closep) int to = -1;
	int r = link_earlier(w, to_dir, name, st);

	if (r != 0)
		return r < 0 ? r : ABX_OK;
	from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	to = from < 0 ? -1
		      : openat(to_dir, name,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return fail(w, "open");
	r = count(w, (uint64_t)st->st_blocks * 512);
	if (r == ABX_OK)
		r = copy_data(w, from, to, st->st_size);
	if (r == ABX_OK)
		r = copy_meta(w, from, to, st);
	return r == ABX_OK ? note_link(w, st) : r;
}

static int copy_symlink(struct walk *w, int from_dir, int to_dir, const char *name,
			const struct stat *st)
{
	char target[PATH_MAX];
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return fail(w, "link");
	target[n] = '\0';
	if (symlinkat(target, to_dir, name) < 0 ||
	    fchownat(to_dir, name, map_id(w->copy, st->st_uid),
		     map_id(w->copy, st->st_gid), AT_SYMLINK_NOFOLLOW) < 0 ||
	    utimensat(to_dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(w, "link");
	return count(w, 0);
}

/* Whiteouts, FIFOs and sockets; devices where they are allowed. */
static int copy_node(struct walk *w, int from_dir, int to_dir, const char *name,
		     const struct stat *st)
{
	bool whiteout = S_ISCHR(st->st_mode) && st->st_rdev == 0;
	bool device = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
	struct timespec times[2] = { st->st_atim, st->st_mtim };

	(void)from_dir;
	if (device && !whiteout && !w->copy->devices)
		return ABX_OK;
	if (mknodat(to_dir, name, st->st_mode, st->st_rdev) < 0)
		return fail(w, "node");
	if (!whiteout &&
	    (fchownat(to_dir, name, map_id(w->copy, st->st_uid),
		      map_id(w->copy, st->st_gid), AT_SYMLINK_NOFOLLOW) < 0 ||
	     fchmodat(to_dir, name, st->st_mode & 07777, 0) < 0 ||
	     utimensat(to_dir, name, times, AT_SYMLINK_NOFOLLOW) < 0))
		return fail(w, "node");
	return count(w, 0);
}

static int copy_folder(struct walk *w, int from_fd, int to_fd);

static int copy_subfolder(struct walk *w, int from_dir, int to_dir, const char *name)
{
	ABX_CLEANUP(abx__closep) int from = -1;
	ABX_CLEANUP(abx__closep) int to = -1;
	int r;

	if (w->depth == DEPTH_MAX)
		return abx__error_set(w->reterr, ABX_ETOOBIG,
				      "folders lie deeper than %d in each other",
				      DEPTH_MAX);
	if (mkdirat(to_dir, name, 0700) < 0 && errno != EEXIST)
		return fail(w, "folder");
	from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || to < 0)
		return fail(w, "folder");
	r = count(w, 0);
	w->depth++;
	if (r == ABX_OK)
		r = copy_folder(w, from, to);
	w->depth--;
	return r;
}

static int copy_entry(struct walk *w, int from_dir, int to_dir, const char *name)
{
	struct stat st;

	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(w, "look at");
	if (S_ISDIR(st.st_mode))
		return copy_subfolder(w, from_dir, to_dir, name);
	if (S_ISREG(st.st_mode))
		return copy_file(w, from_dir, to_dir, name, &st);
	if (S_ISLNK(st.st_mode))
		return copy_symlink(w, from_dir, to_dir, name, &st);
	return copy_node(w, from_dir, to_dir, name, &st);
}

static int copy_entries(struct walk *w, DIR *d, int from_fd, int to_fd)
{
	struct dirent *e;
	int r = ABX_OK;

	while (r == ABX_OK && (errno = 0, e = readdir(d))) {
		size_t was = w->path_len;
		int n;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		n = snprintf(w->path + was, sizeof(w->path) - was, "%s%s", was ? "/" : "",
			     e->d_name);
		if (n < 0 || (size_t)n >= sizeof(w->path) - was)
			return abx__error_set(w->reterr, ABX_ETOOBIG,
					      "a path is over %d bytes long", PATH_MAX);
		w->path_len += (size_t)n;
		r = copy_entry(w, from_fd, to_fd, e->d_name);
		if (r == ABX_OK) {
			w->path_len = was;
			w->path[was] = '\0';
		}
	}
	return r == ABX_OK && errno ? fail(w, "read") : r;
}

static int copy_folder(struct walk *w, int from_fd, int to_fd)
{
	int fd = dup(from_fd);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct stat st;
	int r;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return fail(w, "folder");
	}
	r = copy_entries(w, d, from_fd, to_fd);
	closedir(d);
	if (r == ABX_OK && fstat(from_fd, &st) < 0)
		r = fail(w, "folder");
	return r == ABX_OK ? copy_meta(w, from_fd, to_fd, &st) : r;
}

int abx__tree_copy(struct tree_copy *copy, int from_fd, int to_fd, abx_error **reterr)
{
	struct walk w = { .copy = copy, .top_fd = to_fd, .reterr = reterr };
	int r = copy_folder(&w, from_fd, to_fd);

	/* Paths in the table are of this tree. */
	abx__tree_copy_done(copy);
	return r;
}

void abx__tree_copy_done(struct tree_copy *copy)
{
	struct tree_link *link, *tmp;

	HASH_ITER(hh, copy->links, link, tmp)
	{
		HASH_DEL(copy->links, link);
		abx__free(link->path);
		abx__free(link);
	}
}

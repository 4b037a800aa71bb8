/*
 * save.c - files that appear whole or not at all.
 */
#include "envd/save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/metadata.h"
#include "envd/path.h"

/* Full disks get a code of their own, as they have an HTTP status of their own. */
static int fail(const abx__save *save, const char *what, int error, abx_error **reterr)
{
	struct statvfs fs;

	if (error != ENOSPC && error != EDQUOT)
		return abx__error_errno(reterr, ABX_EIO, error, "error %s file '%s'",
					what, save->path);
	if (error == ENOSPC && save->written == 0 && statvfs("/", &fs) == 0 &&
	    fs.f_files > 0 && fs.f_favail == 0)
		return abx__error_set(reterr, ABX_EEXHAUSTED,
				      "not enough inodes available: %s", save->path);
	return abx__error_set(reterr, ABX_EEXHAUSTED, "not enough disk space available");
}

static int refuse_kind(const abx__save *save, abx_error **reterr)
{
	return abx__error_set(reterr, ABX_EINVAL, "path is not a regular file: %s",
			      save->path);
}

/* The file of that name itself. What was looked at before may have been replaced: to open
 * a FIFO nobody reads, or to write to one, would be to wait for ever. */
static int open_named(const abx__save *save, int *ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(save->path,
		      O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		      0666);
	struct stat st;

	if (fd < 0 && errno == ENXIO)
		return refuse_kind(save, reterr);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(save, "opening", errno, reterr);
	if (S_ISFIFO(st.st_mode))
		return refuse_kind(save, reterr);
	if (fcntl(fd, F_SETFL, 0) < 0)
		return fail(save, "opening", errno, reterr);
	*ret = abx_take_fd(fd);
	return ABX_OK;
}

static int open_direct(abx__save *save, abx_error **reterr)
{
	int r;

	save->is_direct = true;
	if (save->has_target && S_ISREG(save->target.st_mode) &&
	    chown(save->path, save->uid, save->gid) < 0)
		return fail(save, "changing the owner of", errno, reterr);
	r = open_named(save, &save->fd, reterr);
	if (r < 0)
		return r;
	if (!save->has_target && S_ISLNK(save->target.st_mode) &&
	    fchown(save->fd, save->uid, save->gid) < 0)
		return fail(save, "changing the owner of", errno, reterr);
	return ABX_OK;
}

/* A name nobody else uses, beside the target. */
static int name_temp(abx__save *save)
{
	static _Thread_local unsigned counter;
	ABX_CLEANUP(abx__freep) char *dir = abx__path_parent(save->path);

	if (!dir)
		return -1;
	abx__free(save->temp);
	save->temp = abx__strf("%s/" ABX__SAVE_TEMP_PREFIX "%d-%lx-%u", dir,
			       (int)gettid(), (unsigned long)(uintptr_t)save, counter++);
	return save->temp ? 0 : -1;
}

static int open_temp(abx__save *save, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *dir = abx__path_parent(save->path);

	if (!dir)
		return abx__error_nomem(reterr);
	save->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (save->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		if (name_temp(save) < 0)
			return abx__error_nomem(reterr);
		save->fd = open(save->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (save->fd < 0) {
			abx__free(save->temp);
			save->temp = NULL;
		}
	}
	if (save->fd >= 0)
		return ABX_OK;
	/* No room beside it, but it may be writable itself: a mount of its own in a
	 * read-only root. */
	if (save->has_target && (errno == EROFS || errno == EACCES || errno == EPERM))
		return open_direct(save, reterr);
	return fail(save, "opening", errno, reterr);
}

int abx__save_open(abx__save *save, const char *path, uid_t uid, gid_t gid,
		   abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *dir = abx__path_parent(path);
	int r;

	*save = (abx__save)ABX__SAVE_INIT;
	save->uid = uid;
	save->gid = gid;
	save->path = abx__strdup(path);
	if (!dir || !save->path)
		return abx__error_nomem(reterr);
	r = abx__path_make_dirs(dir, uid, gid, reterr);
	if (r < 0) {
		int error = abx_error_errno(reterr ? *reterr : NULL);

		return error == ENOSPC || error == EDQUOT
			       ? fail(save, "opening", error, reterr)
			       : r;
	}
	if (stat(path, &save->target) == 0) {
		if (S_ISDIR(save->target.st_mode))
			return abx__error_set(reterr, ABX_EINVAL,
					      "path is a directory: %s", path);
		save->has_target = true;
		if (S_ISFIFO(save->target.st_mode) || S_ISSOCK(save->target.st_mode))
			return refuse_kind(save, reterr);
		if (!S_ISREG(save->target.st_mode))
			return open_direct(save, reterr);
	} else if (errno != ENOENT) {
		return fail(save, "opening", errno, reterr);
	} else if (lstat(path, &save->target) == 0) {
		return open_direct(save, reterr); /* a link to nowhere: its end is made */
	}
	return open_temp(save, reterr);
}

int abx__save_write(abx__save *save, const void *data, size_t len, abx_error **reterr)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(save->fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(save, "writing", errno, reterr);
		p += n;
		len -= (size_t)n;
		save->written += (uint64_t)n;
	}
	return ABX_OK;
}

/* For a target the kernel does not move bytes to: some devices, some file systems. */
static int write_from_tube(abx__save *save, abx__tube *tube, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *piece = abx__malloc(ABX__TUBE_PIECE);
	int r = piece ? ABX_OK : abx__error_nomem(reterr);

	while (r == ABX_OK && tube->held > 0) {
		size_t n = abx__tube_take(tube, piece, ABX__TUBE_PIECE);

		r = n > 0 ? abx__save_write(save, piece, n, reterr)
			  : fail(save, "writing", EIO, reterr);
	}
	return r;
}

int abx__save_pour(abx__save *save, abx__tube *tube, abx_error **reterr)
{
	while (tube->held > 0) {
		ssize_t n = abx__tube_pour(tube, save->fd);

		if (abx__tube_is_refused(n) || n == -EAGAIN)
			return write_from_tube(save, tube, reterr);
		if (n < 0)
			return fail(save, "writing", (int)-n, reterr);
		save->written += (uint64_t)n;
	}
	return ABX_OK;
}

/* ---- commit ---- */

/* `is_new`: the file has none yet. */
static int write_metadata(const abx__save *save, int fd, bool is_new, abx_error **reterr)
{
	int r;

	if (is_new && (!save->metadata || save->metadata->count == 0))
		return ABX_OK;
	r = abx__metadata_write(fd, save->metadata);
	if (r == -ENOSPC || r == -EDQUOT)
		return abx__error_set(reterr, ABX_EEXHAUSTED,
				      "not enough space for file metadata: %s",
				      save->path);
	if (r < 0 && r != -ENOTSUP)
		return fail(save, "writing the metadata of", -r, reterr);
	return ABX_OK;
}

/* Gives the unnamed file the name `to`. */
static int link_fd(int fd, const char *to)
{
	char from[40];

	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	/* Without /proc; needs CAP_DAC_READ_SEARCH on older kernels. */
	return errno == ENOENT ? linkat(fd, "", AT_FDCWD, to, AT_EMPTY_PATH) : -1;
}

static int copy_over(abx__save *save, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int out = -1;
	off_t at = 0;
	int r;

	if (chown(save->path, save->uid, save->gid) < 0)
		return fail(save, "changing the owner of", errno, reterr);
	r = open_named(save, &out, reterr);
	if (r < 0)
		return r;
	while ((uint64_t)at < save->written) {
		ssize_t n = sendfile(out, save->fd, &at,
				     (size_t)(save->written - (uint64_t)at));

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return fail(save, "writing", errno, reterr);
		if (n == 0)
			return fail(save, "writing", EIO, reterr);
	}
	return write_metadata(save, out, false, reterr);
}

/* Devices and pipes carry none. */
static int commit_direct(abx__save *save, abx_error **reterr)
{
	struct stat st;

	if (fstat(save->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return ABX_OK;
	return write_metadata(save, save->fd, false, reterr);
}

/* Whoever watches the directory (ours and any other user of inotify) saw a name appear; a
 * file that is uploaded is expected to be created, given to its owner and written. To set
 * the time of change alone counts as a write. */
static void announce(const abx__save *save)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_nsec = UTIME_NOW } };

	if (chown(save->path, save->uid, save->gid) == 0)
		utimensat(AT_FDCWD, save->path, times, 0);
}

/* False when it has to be copied after all (a mount of its own, a name that cannot be
 * made). */
static bool rename_over(abx__save *save)
{
	char resolved[PATH_MAX];

	if (!realpath(save->path, resolved) ||
	    fchmod(save->fd, save->target.st_mode & 07777) < 0)
		return false;
	if (!save->temp) {
		if (name_temp(save) < 0)
			return false;
		if (link_fd(save->fd, save->temp) < 0) {
			abx__free(save->temp);
			save->temp = NULL;
			return false;
		}
	}
	if (rename(save->temp, resolved) < 0)
		return false;
	announce(save);
	abx__free(save->temp);
	save->temp = NULL;
	return true;
}

static int appear(abx__save *save, abx_error **reterr)
{
	int r = save->temp ? renameat2(AT_FDCWD, save->temp, AT_FDCWD, save->path,
				       RENAME_NOREPLACE)
			   : link_fd(save->fd, save->path);

	if (r < 0 && errno == EINVAL && save->temp)
		r = rename(save->temp, save->path);
	if (r == 0) {
		abx__free(save->temp);
		save->temp = NULL;
		announce(save);
		return ABX_OK;
	}
	/* Somebody made it meanwhile, or names cannot be given here: the content still
	 * gets there. */
	return copy_over(save, reterr);
}

int abx__save_commit(abx__save *save, abx_error **reterr)
{
	int r;

	if (save->is_direct)
		return commit_direct(save, reterr);
	if (fchown(save->fd, save->uid, save->gid) < 0)
		return fail(save, "changing the owner of", errno, reterr);
	r = write_metadata(save, save->fd, true, reterr);
	if (r < 0)
		return r;
	if (!save->has_target)
		return appear(save, reterr);
	if (save->written >= ABX__SAVE_RENAME_BYTES && save->target.st_nlink == 1 &&
	    rename_over(save))
		return ABX_OK;
	return copy_over(save, reterr);
}

void abx__save_done(abx__save *save)
{
	if (save->temp)
		unlink(save->temp);
	abx__closep(&save->fd);
	abx__free(save->temp);
	abx__free(save->path);
	*save = (abx__save)ABX__SAVE_INIT;
}

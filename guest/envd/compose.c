/*
 * compose.c - files joined by the kernel where it can (copy_file_range shares what it
 * may), else through a buffer.
 */
#include "envd/compose.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "envd/path.h"
#include "envd/save.h"

#define BUFFER_BYTES ((size_t)64 << 10)
#define KERNEL_BYTES ((size_t)1 << 30) /* of one call */

/* ABX_EFAIL, for the caller to return. */
static int fail(abx__compose *compose, int status)
{
	compose->status = status;
	return ABX_EFAIL;
}

static int fail_save(abx__compose *compose, int r)
{
	return fail(compose, r == ABX_EEXHAUSTED                   ? 507
			     : r == ABX_EINVAL || r == ABX_EEXISTS ? 400
								   : 500);
}

/* ---- what is given ---- */

/* `what` names the path in a refusal. */
static int resolve(abx__compose *compose, const char *path, const char *what, char **ret)
{
	int r = abx__path_resolve(path, &compose->user, compose->workdir, ret,
				  &compose->err);

	if (r >= 0)
		return ABX_OK;
	abx__error_prefix(&compose->err, "error resolving %s path '%s'", what, path);
	return fail(compose, r == ABX_ENOMEM ? 500 : 400);
}

/* By name, or as another name of the file that is there: removed in the end, it would
 * take the result with it. */
static bool is_destination(const abx__compose *compose, const char *path,
			   const struct stat *st)
{
	ABX_CLEANUP(abx__freep) char *a = abx__path_clean(path);
	ABX_CLEANUP(abx__freep) char *b = abx__path_clean(compose->path);
	struct stat to;

	if (a && b && strcmp(a, b) == 0)
		return true;
	return stat(compose->path, &to) == 0 && st && to.st_dev == st->st_dev &&
	       to.st_ino == st->st_ino;
}

/* Replaces the given path by the resolved one. */
static int check_source(abx__compose *compose, char **source)
{
	ABX_CLEANUP(abx__freep) char *path = NULL;
	struct stat st;
	bool is_there;
	int r = resolve(compose, *source, "source", &path);

	if (r < 0)
		return r;
	is_there = stat(path, &st) == 0;
	if (is_destination(compose, path, is_there ? &st : NULL)) {
		abx__error_set(&compose->err, ABX_EINVAL,
			       "source path '%s' cannot be the same as destination",
			       *source);
		return fail(compose, 400);
	}
	if (!is_there) {
		abx__error_set(&compose->err, ABX_ENOTFOUND, "source file not found: %s",
			       *source);
		return fail(compose, 404);
	}
	if (!S_ISREG(st.st_mode)) {
		abx__error_set(&compose->err, ABX_EINVAL,
			       "source path is not a regular file: %s", *source);
		return fail(compose, 400);
	}
	abx__free(*source);
	*source = abx_take(path);
	return ABX_OK;
}

/* ---- joining ---- */

/* What the kernel cannot copy by itself: files of /proc, other file systems. */
static int copy_rest(abx__compose *compose, abx__save *save, int fd, const char *path)
{
	ABX_CLEANUP(abx__freep) char *buffer = abx__malloc(BUFFER_BYTES);
	ssize_t n;

	if (!buffer) {
		abx__error_nomem(&compose->err);
		return fail(compose, 500);
	}
	while ((n = read(fd, buffer, BUFFER_BYTES)) != 0) {
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			abx__error_errno(&compose->err, ABX_EIO, errno,
					 "error composing source '%s'", path);
			return fail(compose, 500);
		}
		r = abx__save_write(save, buffer, (size_t)n, &compose->err);
		if (r < 0)
			return fail_save(compose, r);
	}
	return ABX_OK;
}

static int append(abx__compose *compose, abx__save *save, const char *path)
{
	/* It was a regular file a moment ago; a pipe put in its place must not be waited
	 * for. */
	ABX_CLEANUP(abx__closep)
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0) {
		abx__error_errno(&compose->err, ABX_EIO, errno,
				 "error opening source file '%s'", path);
		return fail(compose, 500);
	}
	while ((n = copy_file_range(fd, NULL, save->fd, NULL, KERNEL_BYTES, 0)) > 0)
		save->written += (uint64_t)n;
	/* The end, or a case for the buffer; a full disk is told by the write there. */
	return copy_rest(compose, save, fd, path);
}

static int join(abx__compose *compose)
{
	abx__save save = ABX__SAVE_INIT;
	int r = abx__save_open(&save, compose->path, compose->user.uid, compose->user.gid,
			       &compose->err);

	if (r < 0)
		fail_save(compose, r);
	for (size_t i = 0; r >= 0 && i < compose->count; i++)
		r = append(compose, &save, compose->sources[i]);
	if (r >= 0) {
		r = abx__save_commit(&save, &compose->err);
		if (r < 0)
			fail_save(compose, r);
	}
	abx__save_done(&save);
	return r;
}

void abx__compose_run(abx__compose *compose)
{
	int r = resolve(compose, compose->destination, "destination", &compose->path);

	for (size_t i = 0; r >= 0 && i < compose->count; i++)
		r = check_source(compose, &compose->sources[i]);
	if (r >= 0)
		r = join(compose);
	for (size_t i = 0; r >= 0 && i < compose->count; i++)
		if (unlink(compose->sources[i]) < 0 && errno != ENOENT)
			compose->left_behind++;
}

void abx__compose_done(abx__compose *compose)
{
	for (size_t i = 0; i < compose->count; i++)
		abx__free(compose->sources[i]);
	abx__free(compose->sources);
	abx__free(compose->destination);
	abx__free(compose->workdir);
	abx__free(compose->path);
	abx__user_done(&compose->user);
	abx_error_free(compose->err);
	*compose = (abx__compose){ 0 };
}

/*
 * path.c - resolution of the paths clients send.
 */
#include "envd/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"

char *abx__path_clean(const char *path)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;

	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.') {
			char *slash = out.len ? memrchr(out.data, '/', out.len) : NULL;

			out.len = slash ? (size_t)(slash - out.data) : 0;
		} else if (len > 0 && !(len == 1 && path[0] == '.')) {
			if (abx__buf_addc(&out, '/') < 0 ||
			    abx__buf_add(&out, path, len) < 0)
				return NULL;
		}
		path += len;
		path += *path == '/';
	}
	if (out.len == 0 && abx__buf_addc(&out, '/') < 0)
		return NULL;
	out.data[out.len] = '\0';
	return abx__buf_take(&out);
}

static char *join_clean(const char *dir, const char *name)
{
	ABX_CLEANUP(abx__freep) char *joined = abx__strf("%s/%s", dir, name);

	return joined ? abx__path_clean(joined) : NULL;
}

int abx__path_resolve(const char *path, const abx__user *user, const char *workdir,
		      char **ret, abx_error **reterr)
{
	char *out;

	if (*path == '\0' && workdir && *workdir)
		path = workdir;
	if (*path == '/')
		out = abx__strdup(path);
	else if (*path == '~' && path[1] != '\0' && path[1] != '/')
		return abx__error_set(reterr, ABX_EINVAL,
				      "cannot expand user-specific home dir");
	else if (*path == '\0')
		out = abx__strdup(user->home);
	else
		out = join_clean(user->home, *path == '~' ? path + 1 : path);
	if (!out)
		return abx__error_nomem(reterr);
	*ret = out;
	return ABX_OK;
}

const char *abx__path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

char *abx__path_parent(const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	while (len > 1 && path[len - 1] == '/')
		len--;
	return len ? abx__strndup(path, len) : abx__strdup("/");
}

/* One directory: 1 when it was there. */
static int make_one(const char *path, uid_t uid, gid_t gid, abx_error **reterr)
{
	struct stat st;

	if (mkdir(path, 0755) == 0) {
		if (chown(path, uid, gid) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno,
						"failed to chown directory '%s'", path);
		return ABX_OK;
	}
	if (errno != EEXIST)
		return abx__error_errno(reterr, ABX_EIO, errno,
					"failed to create directory '%s'", path);
	if (stat(path, &st) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno,
					"failed to stat directory '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return abx__error_set(reterr, ABX_EEXISTS, "path is a file: %s", path);
	return 1;
}

int abx__path_make_dirs(const char *path, uid_t uid, gid_t gid, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *copy = NULL;
	struct stat st;
	int r = 1;

	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? 1
					   : abx__error_set(reterr, ABX_EEXISTS,
							    "path is a file: %s", path);
	copy = abx__path_clean(path);
	if (!copy)
		return abx__error_nomem(reterr);
	for (char *p = copy + 1; r >= 0 && p[-1]; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		r = copy[1] ? make_one(copy, uid, gid, reterr) : 1;
		*p = c;
		if (c == '\0')
			break;
	}
	return r;
}

/*
 * agentboxd-tree.c - the removal of a state directory, step by step beneath descriptors:
 * no name is looked up twice, so nobody can put a link in the way. Mounts below it are
 * left alone and reported.
 */
#include "agentboxd-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#define DEPTH_MAX 256

bool agentboxd_tree_is_ours(const char *path)
{
	static const char *const marks[] = { "store.db", "server.key", "supervise.pid",
					     "podd", "agentboxd.log" };
	ABX_CLEANUP(abx__closep)
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	struct dirent *e;
	bool empty = true;
	DIR *dir;

	if (fd < 0)
		return false;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (fstatat(fd, marks[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	dir = fdopendir(dup(fd));
	if (!dir)
		return false;
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			empty = false;
	closedir(dir);
	return empty;
}

static int empty_dir(int fd, dev_t device, int depth, abx_error **reterr);

static int remove_entry(int parent, const char *name, dev_t device, int depth,
			abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	struct stat st;
	int r;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return ABX_OK;
	if (errno != EISDIR && errno != EPERM)
		return abx__error_errno(reterr, ABX_EIO, errno, "remove %s", name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "remove %s", name);
	if (st.st_dev != device)
		return abx__error_set(reterr, ABX_ESTATE,
				      "%s is a mount; unmount it first", name);
	r = empty_dir(fd, device, depth + 1, reterr);
	if (r < 0)
		return r;
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "remove %s", name);
	return ABX_OK;
}

static int empty_dir(int fd, dev_t device, int depth, abx_error **reterr)
{
	DIR *dir;
	struct dirent *e;
	int r = ABX_OK;

	if (depth > DEPTH_MAX)
		return abx__error_set(reterr, ABX_ETOOBIG, "folders nested over %d deep",
				      DEPTH_MAX);
	dir = fdopendir(dup(fd));
	if (!dir)
		return abx__error_errno(reterr, ABX_EIO, errno, "read a folder");
	while (r == ABX_OK && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = remove_entry(fd, e->d_name, device, depth, reterr);
	closedir(dir);
	return r;
}

int agentboxd_tree_remove(const char *path, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return ABX_OK;
	if (fd < 0 || fstat(fd, &st) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "remove %s", path);
	if (!agentboxd_tree_is_ours(path))
		return abx__error_set(reterr, ABX_EDENIED, "%s is not a state directory",
				      path);
	r = empty_dir(fd, st.st_dev, 0, reterr);
	if (r < 0)
		return abx__error_prefix(reterr, "%s", path);
	if (rmdir(path) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "remove %s", path);
	return ABX_OK;
}

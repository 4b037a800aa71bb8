/*
 * fs.c - files by folder descriptor. Paths that come from images or Pods are resolved by
 * openat2(2), never joined.
 */
#include "engine/podd/podd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

static int write_all(int fd, const char *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ABX_EIO;
		p += n;
		len -= (size_t)n;
	}
	return ABX_OK;
}

static int write_file(int dir_fd, const char *path, const void *data, size_t len,
		      mode_t mode, bool allocate)
{
	int fd = openat(dir_fd, path,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	int r;

	if (fd < 0)
		return ABX_EIO;
	/* Only an advice: not every file system has it. */
	if (allocate && len && fallocate(fd, 0, 0, (off_t)len) < 0)
		errno = 0;
	r = write_all(fd, data, len);
	if (fchmod(fd, mode) < 0)
		r = ABX_EIO;
	if (close(fd) < 0)
		r = ABX_EIO;
	return r;
}

int abx__fs_write(int dir_fd, const char *path, const void *data, size_t len, mode_t mode)
{
	return write_file(dir_fd, path, data, len, mode, false);
}

/* With blocks of its own from the start: a rename over another file otherwise makes ext4
 * write the new one out there and then, milliseconds that a claim waits for. */
int abx__fs_replace(int dir_fd, const char *path, const void *data, size_t len,
		    mode_t mode)
{
	char *tmp = abx__strf("%s.new", path);
	int r;

	if (!tmp)
		return ABX_ENOMEM;
	r = write_file(dir_fd, tmp, data, len, mode, true);
	if (r == ABX_OK && renameat(dir_fd, tmp, dir_fd, path) < 0)
		r = ABX_EIO;
	abx__free(tmp);
	return r;
}

static char *read_fd(int fd, size_t cap, size_t *ret_len)
{
	size_t size = 4096, len = 0;
	char *data = abx__malloc(size + 1);

	while (data) {
		ssize_t n = read(fd, data + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		if (n == 0) {
			data[len] = '\0';
			if (ret_len)
				*ret_len = len;
			return data;
		}
		len += (size_t)n;
		if (len < size)
			continue;
		if (size >= cap) {
			errno = EFBIG;
			break;
		}
		size = size * 2 > cap ? cap : size * 2;
		char *grown = abx__realloc(data, size + 1);
		if (!grown)
			break;
		data = grown;
	}
	abx__free(data);
	return NULL;
}

char *abx__fs_read(int dir_fd, const char *path, size_t cap, size_t *ret_len)
{
	ABX_CLEANUP(abx__closep)
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? NULL : read_fd(fd, cap, ret_len);
}

static int open2(int root_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
				.resolve = resolve };

	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

int abx__fs_open_in_root(int root_fd, const char *path, int flags)
{
	return open2(root_fd, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int abx__fs_open_beneath(int root_fd, const char *path, int flags)
{
	return open2(root_fd, path, flags,
		     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

char *abx__fs_read_in_root(int root_fd, const char *path, size_t cap, size_t *ret_len)
{
	/* Non-blocking, so that a FIFO planted by an image cannot hold us. */
	ABX_CLEANUP(abx__closep)
	int fd = abx__fs_open_in_root(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	return read_fd(fd, cap, ret_len);
}

int abx__fs_mkdir(int dir_fd, const char *path, mode_t mode, uid_t owner)
{
	if (mkdirat(dir_fd, path, mode) < 0 && errno != EEXIST)
		return ABX_EIO;
	if (fchownat(dir_fd, path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
		return ABX_EIO;
	return fchmodat(dir_fd, path, mode, 0) < 0 ? ABX_EIO : ABX_OK;
}

/* One pass over a folder: files go, folders move up to `top` under a new name, so depth
 * never costs descriptors. */
static int empty_pass(int top_fd, int fd, bool is_top, unsigned long *seq)
{
	DIR *d = fdopendir(dup(fd));
	struct dirent *e;
	int r = ABX_OK;

	if (!d)
		return ABX_EIO;
	rewinddir(d);
	while (r == ABX_OK && (e = readdir(d))) {
		char name[40];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, e->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (unlinkat(fd, e->d_name, AT_REMOVEDIR) == 0)
			continue;
		if (is_top)
			continue;
		do
			snprintf(name, sizeof(name), ".t%lu", (*seq)++);
		while (renameat2(fd, e->d_name, top_fd, name, RENAME_NOREPLACE) < 0 &&
		       errno == EEXIST);
	}
	closedir(d);
	return r;
}

int abx__fs_empty(int dir_fd)
{
	unsigned long seq = 0;
	bool found = true;

	while (found) {
		DIR *d = fdopendir(dup(dir_fd));
		struct dirent *e;

		if (!d)
			return ABX_EIO;
		rewinddir(d);
		found = false;
		while ((e = readdir(d))) {
			int fd;

			if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
				continue;
			if (unlinkat(dir_fd, e->d_name, 0) == 0 ||
			    unlinkat(dir_fd, e->d_name, AT_REMOVEDIR) == 0) {
				found = true;
				continue;
			}
			fd = openat(dir_fd, e->d_name,
				    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (fd < 0)
				continue;
			if (fchmod(fd, 0700) == 0 &&
			    empty_pass(dir_fd, fd, false, &seq) == ABX_OK &&
			    unlinkat(dir_fd, e->d_name, AT_REMOVEDIR) == 0)
				found = true;
			close(fd);
		}
		closedir(d);
	}
	return ABX_OK;
}

int abx__fs_copy(int from_dir, const char *from, int to_dir, const char *to, mode_t mode)
{
	ABX_CLEANUP(abx__closep) int in = openat(from_dir, from, O_RDONLY | O_CLOEXEC);
	ABX_CLEANUP(abx__closep) int out = -1;
	char *tmp = abx__strf("%s.new", to);
	int r = ABX_EIO;
	ssize_t n = 1;

	if (!tmp)
		return ABX_ENOMEM;
	out = in < 0 ? -1
		     : openat(to_dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			      mode);
	if (out >= 0) {
		char block[65536];

		while ((n = read(in, block, sizeof(block))) > 0)
			if (write_all(out, block, (size_t)n) < 0) {
				n = -1;
				break;
			}
		if (n == 0 && fchmod(out, mode) == 0 &&
		    renameat(to_dir, tmp, to_dir, to) == 0)
			r = ABX_OK;
	}
	abx__free(tmp);
	return r;
}

json_object *abx__fs_read_json(int dir_fd, const char *path)
{
	size_t len;
	char *text = abx__fs_read(dir_fd, path, (size_t)4 << 20, &len);
	json_tokener *tok = text ? json_tokener_new_ex(32) : NULL;
	json_object *o = NULL;

	if (tok) {
		o = json_tokener_parse_ex(tok, text, (int)len);
		if (o && (json_tokener_get_error(tok) != json_tokener_success ||
			  !json_object_is_type(o, json_type_object))) {
			json_object_put(o);
			o = NULL;
		}
		json_tokener_free(tok);
	}
	abx__free(text);
	return o;
}

int abx__fs_replace_json(int dir_fd, const char *path, json_object *o)
{
	size_t len;
	const char *text =
		json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len);

	return text ? abx__fs_replace(dir_fd, path, text, len, 0600) : ABX_ENOMEM;
}

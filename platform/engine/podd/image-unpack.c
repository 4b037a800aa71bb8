/*
 * image-unpack.c - one tar into one folder, by a child that has nothing but that folder
 * for a root.
 *
 * The archive is hostile: libarchive's secure flags, a chroot, no device nodes, no
 * foreign trusted.* attributes, caps on entries and bytes. The digest is of the bytes as
 * they lie in the file and is checked before the layer is kept.
 */
#include "engine/podd/image.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/str.h"

#define ENTRIES_MAX 4000000u
#define BYTES_MAX ((int64_t)256 << 30)
#define BLOCK (64 * 1024)

/* The reading side: counts and hashes what passes. */
struct source {
	int fd;
	EVP_MD_CTX *hash;
	char block[BLOCK];
};

static ssize_t source_read(struct archive *a, void *userdata, const void **ret)
{
	struct source *s = userdata;
	ssize_t n;

	do
		n = read(s->fd, s->block, sizeof(s->block));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		archive_set_error(a, errno, "read");
	else if (n > 0 && s->hash)
		EVP_DigestUpdate(s->hash, s->block, (size_t)n);
	*ret = s->block;
	return n;
}

static bool digest_matches(struct source *s, const char *digest)
{
	uint8_t hash[ABX__SHA256_LEN];
	char hex[2 * ABX__SHA256_LEN + 1];
	const void *unused;

	while (source_read(NULL, s, &unused) > 0)
		;
	EVP_DigestFinal_ex(s->hash, hash, NULL);
	abx__hex(hash, sizeof(hash), hex);
	return strcmp(hex, digest) == 0;
}

/* "./a/b", "/a/b" and "a/b" are the same place. */
static const char *trim(const char *path)
{
	for (;;) {
		if (path[0] == '/')
			path++;
		else if (path[0] == '.' && path[1] == '/')
			path += 2;
		else if (path[0] == '.' && path[1] == '\0')
			path++;
		else
			return path;
	}
}

/* A layer may hide a file of a folder it does not list. */
static void make_folder(int fd, char *folder)
{
	for (char *p = folder + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			mkdirat(fd, folder, 0755);
			*p = '/';
		}
	mkdirat(fd, folder, 0755);
}

/* The chroot holds such a path in as well; but what it should mean nobody can say. */
static bool has_dotdot(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
			return true;
	return false;
}

static int hide(int fd, const char *target)
{
	/* A file of this very layer is not hidden by it. */
	return mknodat(fd, target, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST ? -1
										  : 1;
}

/* A file `.wh.NAME` hides NAME of the layers below; `.wh..wh..opq` hides all of its
 * folder. 1: it was one. */
static int whiteout(const char *path, int fd)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	char folder[4096], target[4096];

	if (strncmp(base, ".wh.", 4) != 0)
		return 0;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	if (strcmp(base, ".wh..wh..opq") == 0) {
		make_folder(fd, folder);
		return setxattr(folder, "trusted.overlay.opaque", "y", 1, 0) < 0 ? -1 : 1;
	}
	if (base[4] == '\0' || strcmp(base + 4, ".") == 0 ||
	    strcmp(base + 4, "..") == 0 ||
	    snprintf(target, sizeof(target), "%s/%s", folder, base + 4) >=
		    (int)sizeof(target)) {
		errno = EINVAL;
		return -1;
	}
	if (hide(fd, target) > 0)
		return 1;
	if (errno != ENOENT)
		return -1;
	make_folder(fd, folder);
	return hide(fd, target);
}

static void keep_harmless_xattrs(struct archive_entry *e)
{
	const char *name;
	const void *value;
	size_t len;
	struct {
		char name[128];
		char value[4096];
		size_t len;
	} kept[8];
	size_t count = 0;

	archive_entry_xattr_reset(e);
	while (archive_entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK) {
		if (strcmp(name, "security.capability") != 0 &&
		    strncmp(name, "user.", 5) != 0)
			continue;
		if (count == 8 || len > sizeof(kept[0].value) ||
		    abx__str_copy(kept[count].name, sizeof(kept[0].name), name) < 0)
			continue;
		memcpy(kept[count].value, value, len);
		kept[count++].len = len;
	}
	archive_entry_xattr_clear(e);
	for (size_t i = 0; i < count; i++)
		archive_entry_xattr_add_entry(e, kept[i].name, kept[i].value,
					      kept[i].len);
}

static int copy_data(struct archive *in, struct archive *out, int64_t *total)
{
	const void *block;
	size_t len;
	int64_t offset;
	int r;

	while ((r = archive_read_data_block(in, &block, &len, &offset)) == ARCHIVE_OK) {
		*total += (int64_t)len;
		if (*total > BYTES_MAX)
			return ARCHIVE_FATAL;
		if (archive_write_data_block(out, block, len, offset) < ARCHIVE_OK)
			return ARCHIVE_FATAL;
	}
	return r == ARCHIVE_EOF ? ARCHIVE_OK : r;
}

/* One entry; a message in `why` when it cannot be. */
static bool take_entry(struct archive *in, struct archive *out, struct archive_entry *e,
		       bool whiteouts, int64_t *total, char why[512])
{
	const char *raw = archive_entry_pathname(e);
	const char *path = raw ? trim(raw) : "";
	const char *link = archive_entry_hardlink(e);
	char copy[4096];
	int type = archive_entry_filetype(e);

	if (!*path)
		return true; /* the root itself */
	if (abx__str_copy(copy, sizeof(copy), path) < 0) {
		snprintf(why, 512, "a path is longer than 4 KiB");
		return false;
	}
	if (has_dotdot(copy)) {
		snprintf(why, 512, "%.300s: a path must not contain '..'", copy);
		return false;
	}
	if (whiteouts) {
		int w = whiteout(copy, AT_FDCWD);

		if (w < 0)
			snprintf(why, 512, "whiteout %.300s: %s", copy, strerror(errno));
		if (w != 0)
			return w > 0;
	}
	if (!link && (type == AE_IFCHR || type == AE_IFBLK || type == AE_IFSOCK))
		return true; /* nobody may bring a device */
	archive_entry_copy_pathname(e, copy);
	if (link) {
		char target[4096];

		if (abx__str_copy(target, sizeof(target), trim(link)) < 0) {
			snprintf(why, 512, "%.300s: its link is longer than 4 KiB", copy);
			return false;
		}
		archive_entry_copy_hardlink(e, target);
	}
	keep_harmless_xattrs(e);
	if (archive_write_header(out, e) < ARCHIVE_WARN ||
	    (archive_entry_size(e) > 0 && copy_data(in, out, total) < ARCHIVE_WARN) ||
	    archive_write_finish_entry(out) < ARCHIVE_WARN) {
		snprintf(why, 512, "%.200s: %.200s", copy,
			 archive_error_string(out)  ? archive_error_string(out)
			 : archive_error_string(in) ? archive_error_string(in)
						    : "cannot be unpacked");
		return false;
	}
	return true;
}

static bool take_all(struct archive *in, struct archive *out, bool whiteouts,
		     char why[512])
{
	struct archive_entry *e;
	int64_t total = 0;
	unsigned entries = 0;
	int r;

	while ((r = archive_read_next_header(in, &e)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN) {
		if (++entries > ENTRIES_MAX) {
			snprintf(why, 512, "holds more than %u files", ENTRIES_MAX);
			return false;
		}
		if (!take_entry(in, out, e, whiteouts, &total, why))
			return false;
	}
	if (r != ARCHIVE_EOF)
		snprintf(why, 512, "is damaged: %.300s", archive_error_string(in));
	return r == ARCHIVE_EOF;
}

/* In the confined child: 0 or 1, the reason in `why`. */
static int unpack(struct source *source, bool whiteouts, const char *digest,
		  char why[512])
{
	struct archive *in = archive_read_new(), *out = archive_write_disk_new();
	int r = 1;

	if (!in || !out) {
		snprintf(why, 512, "out of memory");
		archive_read_free(in);
		archive_write_free(out);
		return 1;
	}
	archive_read_support_format_tar(in);
	archive_read_support_format_empty(in);
	archive_read_support_filter_none(in);
	archive_read_support_filter_gzip(in);
	archive_read_support_filter_zstd(in);
	archive_write_disk_set_options(
		out, ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME |
			     ARCHIVE_EXTRACT_XATTR | ARCHIVE_EXTRACT_UNLINK |
			     ARCHIVE_EXTRACT_SECURE_SYMLINKS |
			     ARCHIVE_EXTRACT_SECURE_NODOTDOT |
			     ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
	if (archive_read_open(in, source, NULL, source_read, NULL) != ARCHIVE_OK)
		snprintf(why, 512, "is no archive: %.300s", archive_error_string(in));
	else if (!take_all(in, out, whiteouts, why))
		r = 1;
	else if (archive_write_close(out) < ARCHIVE_WARN)
		snprintf(why, 512, "%.300s", archive_error_string(out));
	else if (digest && !digest_matches(source, digest))
		snprintf(why, 512, "does not match its digest sha256:%.64s", digest);
	else
		r = 0;
	archive_read_free(in);
	archive_write_free(out);
	return r;
}

static _Noreturn void unpack_child(int tar_fd, int into_fd, bool whiteouts,
				   const char *digest, int fd)
{
	static struct source source;
	char why[512] = "cannot be unpacked";
	int r = 1;

	source.fd = tar_fd;
	if (digest) {
		source.hash = EVP_MD_CTX_new();
		EVP_DigestInit_ex(source.hash, EVP_sha256(), NULL);
	}
	umask(0);
	if (fchdir(into_fd) < 0 || chroot(".") < 0)
		snprintf(why, sizeof(why), "chroot: %s", strerror(errno));
	else
		r = unpack(&source, whiteouts, digest, why);
	if (r != 0)
		dprintf(fd, "%s", why);
	_exit(r);
}

int abx__image_unpack(int tar_fd, int into_fd, bool whiteouts, const char *digest,
		      abx_error **reterr)
{
	int fds[2], status = 1;
	char why[512];
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "pipe");
	pid = abx__child_fork();
	if (pid == 0)
		unpack_child(tar_fd, into_fd, whiteouts, digest, fds[1]);
	close(fds[1]);
	n = pid < 0 ? -1 : read(fds[0], why, sizeof(why) - 1);
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && status == 0)
		return ABX_OK;
	why[n > 0 ? n : 0] = '\0';
	return abx__error_set(reterr, ABX_EIO, "layer %s",
			      n > 0 ? why : "cannot be unpacked");
}

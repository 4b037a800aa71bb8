/*
 * ca.c - the trust store, two files. The bundle is replaced by rename, so a program
 * reading it sees the old or the new one; where it is a mount of its own (rename says
 * EBUSY) it is rewritten in place.
 */
#include "envd/ca.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/path.h"

#define BUNDLE "/etc/ssl/certs/ca-certificates.crt"
#define OWN "/usr/local/share/ca-certificates/e2b-ca.crt"
#define MAX_BYTES ((size_t)16 << 20)

/* A missing file reads as empty. */
static int read_file(const char *path, abx__buf *buf, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	buf->cap = MAX_BYTES;
	if (fd < 0 && errno == ENOENT)
		return ABX_OK;
	do {
		int r = abx__buf_reserve(buf, 65536);

		if (r < 0)
			return abx__error_set(reterr, r, "read %s: it is over %zu bytes",
					      path, MAX_BYTES);
		n = fd < 0 ? -1 : read(fd, buf->data + buf->len, 65536);
		if (n < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "read %s", path);
		buf->len += (size_t)n;
		buf->data[buf->len] = '\0';
	} while (n > 0);
	return ABX_OK;
}

static int write_file(const char *path, int flags, const abx__buf *buf)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0644);

	for (size_t done = 0; fd >= 0 && done < buf->len;) {
		ssize_t n = write(fd, buf->data + done, buf->len - done);

		if (n < 0 && errno != EINTR)
			return -1;
		done += n > 0 ? (size_t)n : 0;
	}
	return fd < 0 ? -1 : 0;
}

static int replace_file(const char *path, const abx__buf *buf, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *dir = abx__path_parent(path);
	ABX_CLEANUP(abx__freep) char *temp = abx__strf("%s.agentbox-new", path);
	int r;

	if (!dir || !temp)
		return abx__error_nomem(reterr);
	r = abx__path_make_dirs(dir, 0, 0, reterr);
	if (r < 0)
		return r;
	if (write_file(temp, O_NOFOLLOW, buf) == 0 && rename(temp, path) == 0)
		return ABX_OK;
	r = errno;
	unlink(temp);
	if (r == EBUSY && write_file(path, 0, buf) == 0)
		return ABX_OK;
	return abx__error_errno(reterr, ABX_EIO, r, "write %s", path);
}

/* Cuts the first occurrence of `part` out of `buf`. */
static void cut(abx__buf *buf, const abx__buf *part)
{
	char *at = part->len && buf->len
			   ? memmem(buf->data, buf->len, part->data, part->len)
			   : NULL;

	if (!at)
		return;
	memmove(at, at + part->len, buf->len - (size_t)(at - buf->data) - part->len);
	buf->len -= part->len;
	buf->data[buf->len] = '\0';
}

static int install(const char *bundle_path, const char *own_path, const abx__buf *pem,
		   abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf bundle = ABX__BUF_INIT, before = ABX__BUF_INIT;
	int r;

	r = read_file(bundle_path, &bundle, reterr);
	if (r >= 0)
		r = read_file(own_path, &before, reterr);
	if (r < 0)
		return r;
	if (before.len == pem->len && memcmp(before.data, pem->data, pem->len) == 0 &&
	    memmem(abx__buf_str(&bundle), bundle.len, pem->data, pem->len))
		return ABX_OK;
	cut(&bundle, &before);
	if ((bundle.len > 0 && bundle.data[bundle.len - 1] != '\n' &&
	     abx__buf_addc(&bundle, '\n') < 0) ||
	    abx__buf_add(&bundle, pem->data, pem->len) < 0)
		return abx__error_nomem(reterr);
	/* The own copy first: should the second write fail, the next call finds and
	 * replaces it. */
	r = replace_file(own_path, pem, reterr);
	return r < 0 ? r : replace_file(bundle_path, &bundle, reterr);
}

int abx__ca_install(const char *root, const char *pem, abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *bundle = abx__strf("%s%s", root, BUNDLE);
	ABX_CLEANUP(abx__freep) char *own = abx__strf("%s%s", root, OWN);
	const char *begin = strstr(pem, "-----BEGIN CERTIFICATE-----");

	if (!begin || !strstr(begin, "-----END CERTIFICATE-----"))
		return abx__error_set(reterr, ABX_EINVAL,
				      "caBundle: holds no PEM certificate");
	if (!bundle || !own || abx__buf_adds(&text, pem) < 0 ||
	    (text.data[text.len - 1] != '\n' && abx__buf_addc(&text, '\n') < 0))
		return abx__error_nomem(reterr);
	return install(bundle, own, &text, reterr);
}

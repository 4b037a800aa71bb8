/*
 * tube.c - see tube.h.
 */
#include "io/tube.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"

/* The most an account without rights may ask for (fs.pipe-max-size). When it has used its
 * share of pipes up, a tube stays as small as the kernel makes it. */
#define ROOM ((size_t)1 << 20)

abx__tube *abx__tube_new(void)
{
	abx__tube *tube = abx__calloc(1, sizeof(*tube));
	int fds[2], room;

	if (!tube)
		return NULL;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		abx__free(tube);
		return NULL;
	}
	tube->out = fds[0];
	tube->in = fds[1];
	room = fcntl(tube->in, F_SETPIPE_SZ, (int)ROOM);
	if (room <= 0)
		room = fcntl(tube->in, F_GETPIPE_SZ);
	tube->room = room > 0 ? (size_t)room : 4096;
	return tube;
}

void abx__tube_free(abx__tube *tube)
{
	if (!tube)
		return;
	close(tube->in);
	close(tube->out);
	abx__free(tube);
}

bool abx__tube_is_refused(ssize_t r)
{
	return r == -EINVAL || r == -ENOSYS || r == -EOPNOTSUPP || r == -EPERM;
}

static ssize_t fill(abx__tube *tube, int fd, off64_t *offset, uint64_t most)
{
	size_t room = tube->room > tube->held ? tube->room - tube->held : 0;
	ssize_t n;

	if (room == 0)
		return -EAGAIN;
	if (most > room)
		most = room;
	do
		n = splice(fd, offset, tube->in, NULL, (size_t)most,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	tube->held += (size_t)n;
	return n;
}

ssize_t abx__tube_fill(abx__tube *tube, int fd, uint64_t most)
{
	return fill(tube, fd, NULL, most);
}

ssize_t abx__tube_fill_at(abx__tube *tube, int fd, int64_t offset, uint64_t most)
{
	off64_t at = offset;

	return fill(tube, fd, &at, most);
}

ssize_t abx__tube_pour(abx__tube *tube, int fd)
{
	ssize_t n;

	if (tube->held == 0)
		return -EAGAIN;
	do
		n = splice(tube->out, NULL, fd, NULL, tube->held,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* Bytes are held, so an end of the pipe cannot be. */
	if (n == 0)
		return -EIO;
	tube->held -= (size_t)n;
	return n;
}

size_t abx__tube_take(abx__tube *tube, char *data, size_t len)
{
	size_t at = 0;

	if (len > tube->held)
		len = tube->held;
	while (at < len) {
		ssize_t n = read(tube->out, data + at, len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break; /* not while bytes are held */
		at += (size_t)n;
	}
	tube->held -= at;
	return at;
}

void abx__tube_drop(abx__tube *tube)
{
	char dump[4096];

	while (abx__tube_take(tube, dump, sizeof(dump)) > 0)
		;
}

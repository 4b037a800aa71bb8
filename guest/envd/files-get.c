/*
 * files-get.c - GET /files. Two buffers take turns: one is being sent while the other is
 * read. What the page cache has is read at once (RWF_NOWAIT); the disk is waited for on a
 * worker.
 *
 * Not here yet: Range, If-*, gzip, signatures. A server may answer all of them with the
 * whole file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/content.h"
#include "envd/envd.h"
#include "envd/files.h"
#include "envd/path.h"

#define PIECE_BYTES ((size_t)256 << 10)

struct piece {
	struct download *download;
	bool is_busy; /* being sent */
	char data[PIECE_BYTES];
};

/* Lives until the exchange is over, no piece is being sent and no worker reads. */
struct download {
	abx__http_req *req; /* NULL once over */
	uv_work_t work;
	int fd;
	int64_t offset;
	int64_t left; /* -1: until the end of the file */
	bool is_pumping;
	bool is_over;    /* all is handed to the connection, or it failed */
	bool is_reading; /* a worker is at it */
	struct piece *reading;
	ssize_t result;
	struct piece *pieces[2];
};

static void pump(struct download *d);

static void free_when_idle(struct download *d)
{
	if (d->req || d->is_reading || d->is_pumping)
		return;
	for (int i = 0; i < 2; i++)
		if (d->pieces[i] && d->pieces[i]->is_busy)
			return;
	for (int i = 0; i < 2; i++)
		abx__free(d->pieces[i]);
	close(d->fd);
	abx__free(d);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct download *d = userdata;

	(void)req;
	(void)answered;
	d->req = NULL;
	free_when_idle(d);
}

static void on_sent(void *userdata)
{
	struct piece *piece = userdata;
	struct download *d = piece->download;

	piece->is_busy = false;
	if (d->req)
		pump(d);
	else
		free_when_idle(d);
}

static size_t wanted(const struct download *d)
{
	return d->left >= 0 && (uint64_t)d->left < PIECE_BYTES ? (size_t)d->left
							       : PIECE_BYTES;
}

static void run_read(uv_work_t *work)
{
	struct download *d = work->data;

	do
		d->result = pread(d->fd, d->reading->data, wanted(d), d->offset);
	while (d->result < 0 && errno == EINTR);
	if (d->result < 0)
		d->result = -errno;
}

/* Sets is_over when nothing more is to be sent. */
static void send_piece(struct download *d, struct piece *piece, ssize_t n)
{
	d->is_over = n <= 0;
	if (n == 0 && d->left < 0) {
		abx__http_res_end(d->req);
		return;
	}
	if (n <= 0) {
		/* Cut short or unreadable: the client must not take it for whole. */
		abx__http_res_abort(d->req);
		return;
	}
	d->offset += n;
	if (d->left >= 0)
		d->left -= n;
	piece->is_busy = true;
	if (abx__http_res_write_ref(d->req, piece->data, (size_t)n, on_sent, piece) < 0) {
		piece->is_busy = false; /* on_sent() will not run */
		d->is_over = true;
		abx__http_res_abort(d->req);
		return;
	}
	if (d->left == 0) {
		d->is_over = true;
		abx__http_res_end(d->req);
	}
}

static void after_read(uv_work_t *work, int status)
{
	struct download *d = work->data;

	d->is_reading = false;
	if (!d->req) {
		free_when_idle(d);
		return;
	}
	send_piece(d, d->reading, status < 0 ? -EIO : d->result);
	pump(d);
}

static struct piece *free_piece(struct download *d)
{
	for (int i = 0; i < 2; i++) {
		if (!d->pieces[i]) {
			d->pieces[i] = abx__malloc(sizeof(*d->pieces[i]));
			if (!d->pieces[i])
				return NULL;
			d->pieces[i]->download = d;
			d->pieces[i]->is_busy = false;
		}
		if (!d->pieces[i]->is_busy)
			return d->pieces[i];
	}
	return NULL;
}

/* Reads and sends until both pieces are under way or a worker has to be asked. */
static void pump(struct download *d)
{
	if (d->is_pumping || d->is_reading)
		return;
	d->is_pumping = true;
	while (d->req && !d->is_reading && !d->is_over) {
		struct piece *piece = free_piece(d);
		struct iovec iov;
		ssize_t n;

		if (!piece) {
			d->is_over = !d->pieces[0];
			if (d->is_over)
				abx__http_res_abort(d->req);
			break;
		}
		iov = (struct iovec){ piece->data, wanted(d) };
		n = preadv2(d->fd, &iov, 1, d->offset, RWF_NOWAIT);
		if (n >= 0 ||
		    (errno != EAGAIN && errno != EOPNOTSUPP && errno != EINTR)) {
			send_piece(d, piece, n);
			continue;
		}
		d->reading = piece;
		d->is_reading = true;
		uv_queue_work(abx__http_req_loop(d->req), &d->work, run_read, after_read);
	}
	d->is_pumping = false;
	free_when_idle(d);
}

static int set_headers(abx__http_req *req, const char *path, const struct stat *st,
		       const void *head, size_t len)
{
	ABX_CLEANUP(abx__freep)
	char *disposition = abx__content_disposition(abx__path_base(path));
	char date[ABX__HTTP_DATE_SIZE];
	int r;

	if (!disposition)
		return ABX_ENOMEM;
	abx__http_date(st->st_mtim.tv_sec, date);
	r = abx__http_res_header(req, "Vary", "Accept-Encoding");
	if (r >= 0)
		r = abx__http_res_header(req, "Content-Disposition", disposition);
	if (r >= 0)
		r = abx__http_res_header(req, "Content-Type",
					 abx__content_type(path, head, len));
	return r < 0 ? r : abx__http_res_header(req, "Last-Modified", date);
}

/* Takes over `fd`. */
static void start(abx__http_req *req, const char *path, int fd, const struct stat *st)
{
	struct download *d = abx__calloc(1, sizeof(*d));
	char head[512];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (!d || n < 0 || set_headers(req, path, st, head, (size_t)n) < 0) {
		abx__free(d);
		close(fd);
		abx__answer_error(req, 500, "error reading file '%s': %s", path,
				  n < 0 ? strerror(errno) : "out of memory");
		return;
	}
	d->req = req;
	d->fd = fd;
	d->work.data = d;
	/* Files of /proc have no size but content. */
	d->left = st->st_size == 0 && n > 0 ? -1 : st->st_size;
	abx__http_req_on_closed(req, on_closed, d);
	if (abx__http_res_begin(req, 200, d->left) < 0)
		abx__http_res_abort(req);
	else if (d->left == 0)
		abx__http_res_end(req);
	else
		pump(d);
}

static void open_and_start(abx__http_req *req, const char *path)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		abx__answer_error(req, 404, "path '%s' does not exist", path);
	else if (fd < 0 || fstat(fd, &st) < 0)
		abx__answer_error(req, 500, "error opening file '%s': %s", path,
				  strerror(errno));
	else if (S_ISDIR(st.st_mode))
		abx__answer_error(req, 400, "path '%s' is a directory", path);
	else if (!S_ISREG(st.st_mode))
		abx__answer_error(req, 400, "path '%s' is not a regular file", path);
	else
		start(req, path, abx_take_fd(fd), &st);
}

/* "identity;q=0" and "*;q=0" leave nothing we can send. */
static bool refuses_identity(const abx__http_req *req)
{
	const char *accept = abx__http_req_header(req, "Accept-Encoding");
	bool refused = false;

	while (accept && *accept) {
		size_t len = strcspn(accept, ","), name = strspn(accept, " \t");
		const char *q = memmem(accept, len, "q=0", 3);
		bool zero = q && strspn(q + 2, "0.") == strcspn(q + 2, ", \t;");

		if (strncasecmp(accept + name, "identity", 8) == 0)
			return zero;
		if (accept[name] == '*')
			refused = zero;
		accept += len + (accept[len] == ',');
	}
	return refused;
}

void abx__files_handle_get(struct abx__envd *envd, abx__http_req *req)
{
	ABX_CLEANUP(abx__signing_done) abx__signing query = { 0 };
	ABX_CLEANUP(abx__user_done) abx__user user = { 0 };
	ABX_CLEANUP(abx__freep) char *path = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const char *name;

	if (!abx__files_authorize(envd, req, ABX__SIGNING_READ, &query))
		return;
	name = abx__files_username(envd, req, query.username);
	if (!name || !abx__files_find_user(envd, req, name, &user))
		return;
	if (abx__path_resolve(query.path ? query.path : "", &user, envd->default_workdir,
			      &path, &err) < 0)
		abx__answer_error(req, 400, "%s", abx_error_message(err));
	else if (refuses_identity(req))
		abx__answer_error(req, 406, "identity is the only encoding supported");
	else
		open_and_start(req, path);
}

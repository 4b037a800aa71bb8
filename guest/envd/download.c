/*
 * download.c - a file onto the connection. Two buffers take turns: one is being sent
 * while the other is read. What the page cache has is read at once (RWF_NOWAIT); the disk
 * is waited for on a worker. One long part goes by tube instead (download-tube.c).
 */
#include "envd/download.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "envd/answer.h"

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
	abx__segment *segments; /* offset and length: what is left of it */
	size_t count, at;
	bool is_pumping;
	bool is_over;    /* all is handed to the connection, or it failed */
	bool is_reading; /* a worker is at it */
	struct piece *reading;
	ssize_t result;
	struct piece *pieces[2];
};

void abx__segments_free(abx__segment *segments, size_t count)
{
	for (size_t i = 0; segments && i < count; i++)
		abx__free(segments[i].text);
	abx__free(segments);
}

static void free_download(struct download *d)
{
	for (int i = 0; i < 2; i++)
		abx__free(d->pieces[i]);
	abx__segments_free(d->segments, d->count);
	close(d->fd);
	abx__free(d);
}

static void free_when_idle(struct download *d)
{
	if (d->req || d->is_reading || d->is_pumping)
		return;
	for (int i = 0; i < 2; i++)
		if (d->pieces[i] && d->pieces[i]->is_busy)
			return;
	free_download(d);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct download *d = userdata;

	(void)req;
	(void)answered;
	d->req = NULL;
	free_when_idle(d);
}

static void pump(struct download *d);

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

/* ---- reading and sending ---- */

static void give_up(struct download *d)
{
	d->is_over = true;
	abx__http_res_abort(d->req);
}

/* Goes on to the next segment that has bytes, sending the texts on the way; the end of
 * the last one ends the answer. */
static void advance(struct download *d)
{
	while (d->at < d->count) {
		abx__segment *segment = &d->segments[d->at];
		char *text = abx_take(segment->text);

		if (text) {
			int r = abx__http_res_write(d->req, text, strlen(text));

			abx__free(text);
			if (r < 0) {
				give_up(d);
				return;
			}
		}
		if (segment->length != 0)
			return;
		d->at++;
	}
	d->is_over = true;
	abx__http_res_end(d->req);
}

static size_t wanted(const struct download *d)
{
	int64_t left = d->segments[d->at].length;

	return left >= 0 && (uint64_t)left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
}

static void run_read(uv_work_t *work)
{
	struct download *d = work->data;

	do
		d->result = pread(d->fd, d->reading->data, wanted(d),
				  d->segments[d->at].offset);
	while (d->result < 0 && errno == EINTR);
	if (d->result < 0)
		d->result = -errno;
}

/* Sets is_over when nothing more is to be sent. */
static void send_piece(struct download *d, struct piece *piece, ssize_t n)
{
	abx__segment *segment = &d->segments[d->at];

	if (n == 0 && segment->length < 0) {
		d->at++;
		advance(d);
		return;
	}
	if (n <= 0) {
		/* Cut short or unreadable: the client must not take it for whole. */
		give_up(d);
		return;
	}
	segment->offset += n;
	if (segment->length >= 0)
		segment->length -= n;
	piece->is_busy = true;
	if (abx__http_res_write_ref(d->req, piece->data, (size_t)n, on_sent, piece) < 0) {
		piece->is_busy = false; /* on_sent() will not run */
		give_up(d);
		return;
	}
	if (segment->length == 0)
		advance(d);
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
			if (!d->pieces[0])
				give_up(d);
			break;
		}
		iov = (struct iovec){ piece->data, wanted(d) };
		n = preadv2(d->fd, &iov, 1, d->segments[d->at].offset, RWF_NOWAIT);
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

/* ---- the start ---- */

/* -1 when it is known only at the end. */
static int64_t count_bytes(const abx__segment *segments, size_t count)
{
	int64_t total = 0;

	for (size_t i = 0; i < count; i++) {
		if (segments[i].length < 0)
			return -1;
		total += segments[i].length;
		total += segments[i].text ? (int64_t)strlen(segments[i].text) : 0;
	}
	return total;
}

void abx__download_by_pieces(abx__http_req *req, int fd, abx__segment *segments,
			     size_t count)
{
	struct download *d = abx__calloc(1, sizeof(*d));

	if (!d) {
		abx__segments_free(segments, count);
		close(fd);
		abx__http_res_abort(req);
		return;
	}
	d->req = req;
	d->fd = fd;
	d->segments = segments;
	d->count = count;
	d->work.data = d;
	abx__http_req_on_closed(req, on_closed, d);
	advance(d);
	pump(d);
}

void abx__download_start(abx__http_req *req, int status, int fd, abx__segment *segments,
			 size_t count)
{
	int r = abx__http_res_begin(req, status, count_bytes(segments, count));

	if (r < 0) {
		abx__segments_free(segments, count);
		close(fd);
		abx__answer_error(req, 500, "out of memory");
		return;
	}
	if (count != 1 || !abx__download_by_tube(req, fd, segments))
		abx__download_by_pieces(req, fd, segments, count);
}

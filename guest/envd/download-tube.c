/*
 * download-tube.c - a long file onto the connection without a copy. Two tubes take turns:
 * a worker fills one from the file, waiting for the disk where it must, while the
 * connection takes from the other.
 */
#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd/download.h"

/* Lives until the exchange is over and no worker reads. */
struct tubed {
	abx__http_req *req; /* NULL once over */
	uv_work_t work;
	int fd;
	abx__segment *segment; /* what has not been read of it */
	abx__tube *sending;    /* the connection's, until it is empty */
	abx__tube *filling;
	bool is_reading; /* `filling` is the worker's */
	ssize_t result;  /* of the worker; above 0: so much waits in `filling` */
};

static void free_tubed(struct tubed *t)
{
	abx__segments_free(t->segment, 1);
	abx__tube_free(t->sending);
	abx__tube_free(t->filling);
	if (t->fd >= 0)
		close(t->fd);
	abx__free(t);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct tubed *t = userdata;

	(void)req;
	(void)answered;
	t->req = NULL;
	if (!t->is_reading)
		free_tubed(t);
}

static void run_fill(uv_work_t *work)
{
	struct tubed *t = work->data;

	t->result = abx__tube_fill_at(t->filling, t->fd, t->segment->offset,
				      (uint64_t)t->segment->length);
}

static void after_fill(uv_work_t *work, int status);

static void start_fill(struct tubed *t)
{
	t->is_reading = true;
	uv_queue_work(abx__http_req_loop(t->req), &t->work, run_fill, after_fill);
}

/* Hands what was read to the connection, and has the next read. */
static void send_filled(struct tubed *t)
{
	abx__tube *full = t->filling;
	size_t n = (size_t)t->result;

	t->filling = t->sending;
	t->sending = full;
	t->result = 0;
	t->segment->offset += (int64_t)n;
	t->segment->length -= (int64_t)n;
	if (abx__http_res_pour(t->req, full, n) < 0)
		abx__http_res_abort(t->req);
	else if (t->segment->length == 0)
		abx__http_res_end(t->req);
	else
		start_fill(t);
}

static void on_drain(abx__http_req *req, void *userdata)
{
	struct tubed *t = userdata;

	(void)req;
	if (t->result > 0 && !t->is_reading && t->sending->held == 0)
		send_filled(t);
}

/* The file system does not splice: in the ordinary way then. */
static void go_by_pieces(struct tubed *t)
{
	abx__http_req *req = t->req;
	abx__segment *segment = abx_take(t->segment);
	int fd = t->fd;

	t->fd = -1;
	abx__http_res_on_drain(req, 0, NULL, NULL);
	abx__download_by_pieces(req, fd, segment, 1);
	free_tubed(t);
}

static void after_fill(uv_work_t *work, int status)
{
	struct tubed *t = work->data;

	t->is_reading = false;
	if (status < 0)
		t->result = -EIO;
	if (!t->req)
		free_tubed(t);
	else if (abx__tube_is_refused(t->result) && t->sending->held == 0)
		go_by_pieces(t);
	else if (t->result <= 0)
		/* Cut short or unreadable: the client must not take it for whole. */
		abx__http_res_abort(t->req);
	else
		on_drain(t->req, t);
}

bool abx__download_by_tube(abx__http_req *req, int fd, abx__segment *segment)
{
	struct tubed *t;

	if (segment->text || segment->length < ABX__TUBE_WORTH ||
	    !abx__http_req_takes_tube(req))
		return false;
	t = abx__calloc(1, sizeof(*t));
	if (!t)
		return false;
	t->fd = -1;
	t->sending = abx__tube_new();
	t->filling = abx__tube_new();
	if (!t->sending || !t->filling) {
		free_tubed(t);
		return false;
	}
	t->req = req;
	t->fd = fd;
	t->segment = segment;
	t->work.data = t;
	abx__http_req_on_closed(req, on_closed, t);
	abx__http_res_on_drain(req, 0, on_drain, t);
	start_fill(t);
	return true;
}

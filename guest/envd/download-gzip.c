/*
 * download-gzip.c - a file packed on its way. A worker reads and packs one piece, the
 * loop sends it, and so on: packing is slower than either side, so nothing is gained by
 * more.
 */
#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd/answer.h"
#include "envd/download.h"
#include "envd/gzip.h"

#define READ_BYTES ((size_t)64 << 10)
#define SEND_BYTES ((size_t)256 << 10) /* less is not worth the way to the loop */
#define MAX_READS 64                   /* of one turn on the worker */

/* Lives until the exchange is over, nothing is being sent and no worker is at it. */
struct packing {
	abx__http_req *req; /* NULL once over */
	uv_work_t work;
	int fd;
	int64_t offset;
	abx__gzip *gzip;
	abx__buf out; /* the worker's, then being sent */
	bool is_working, is_sending;
	bool is_last; /* the file's end is in `out` */
	int error;
	char in[READ_BYTES];
};

static void free_when_idle(struct packing *p)
{
	if (p->req || p->is_working || p->is_sending)
		return;
	abx__gzip_free(p->gzip);
	abx__buf_done(&p->out);
	close(p->fd);
	abx__free(p);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct packing *p = userdata;

	(void)req;
	(void)answered;
	p->req = NULL;
	free_when_idle(p);
}

static void run_pack(uv_work_t *work)
{
	struct packing *p = work->data;

	for (int i = 0; i < MAX_READS && p->out.len < SEND_BYTES; i++) {
		ssize_t n = pread(p->fd, p->in, sizeof(p->in), p->offset);

		if (n < 0 && errno == EINTR)
			continue;
		p->is_last = n == 0;
		if (n < 0 ||
		    abx__gzip_feed(p->gzip, p->in, (size_t)n, n == 0, &p->out) < 0) {
			p->error = n < 0 ? errno : ENOMEM;
			return;
		}
		p->offset += n;
		if (p->is_last)
			return;
	}
}

static void after_pack(uv_work_t *work, int status);

static void pack_next(struct packing *p)
{
	abx__buf_clear(&p->out);
	p->is_working = true;
	uv_queue_work(abx__http_req_loop(p->req), &p->work, run_pack, after_pack);
}

static void on_sent(void *userdata)
{
	struct packing *p = userdata;

	p->is_sending = false;
	if (p->req && !p->is_last)
		pack_next(p);
	else
		free_when_idle(p);
}

static void after_pack(uv_work_t *work, int status)
{
	struct packing *p = work->data;

	p->is_working = false;
	if (!p->req) {
		free_when_idle(p);
		return;
	}
	if (status < 0 || p->error) {
		/* Cut short: the client must not take it for whole. */
		abx__http_res_abort(p->req);
		return;
	}
	if (p->out.len == 0 && !p->is_last) {
		pack_next(p);
		return;
	}
	p->is_sending = true;
	if (abx__http_res_write_ref(p->req, p->out.data, p->out.len, on_sent, p) < 0) {
		p->is_sending = false; /* on_sent() will not run */
		abx__http_res_abort(p->req);
	} else if (p->is_last) {
		abx__http_res_end(p->req);
	}
}

void abx__download_start_gzip(abx__http_req *req, int fd)
{
	struct packing *p = abx__calloc(1, sizeof(*p));

	if (p)
		p->gzip = abx__gzip_new();
	if (!p || !p->gzip || abx__http_res_header(req, "Content-Encoding", "gzip") < 0) {
		if (p)
			abx__gzip_free(p->gzip);
		abx__free(p);
		close(fd);
		abx__answer_error(req, 500, "out of memory");
		return;
	}
	p->req = req;
	p->fd = fd;
	p->work.data = p;
	abx__http_req_on_closed(req, on_closed, p);
	if (abx__http_res_begin(req, 200, -1) < 0)
		abx__http_res_abort(req);
	else
		pack_next(p);
}

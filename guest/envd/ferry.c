/*
 * ferry.c - see ferry.h. Two loads take turns: the loop fills one while the worker
 * empties the other; when both are full the connection is not read. A small body that
 * came whole is written without a worker.
 *
 * A long body is loaded into tubes: the loop does not touch it, and raw bytes never leave
 * the kernel.
 */
#include "envd/ferry.h"

#include "base/alloc.h"
#include "envd/answer.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define TUBE_BYTES ((size_t)512 << 10)
#define SMALL_BYTES ((size_t)64 << 10)
#define SMALL_GZIP_BYTES ((size_t)512)

/* What is in the buffer comes before what is in the tube. */
struct load {
	abx__buf buf;
	abx__tube *tube; /* NULL: none */
};

struct ferry {
	abx__http_req *req; /* NULL once the exchange is over */
	uv_work_t work;
	abx__upload *upload;
	struct load filling, writing;
	bool is_working;
	bool is_paused;
	bool is_last;   /* the load being written is the body's last: the worker's to read
			 */
	bool has_ended; /* the body came to its end */
	bool is_finished; /* answered, or broken: nothing more is taken */
	bool is_broken;   /* the body did not */
};

/* ---- loads ---- */

static size_t load_len(const struct load *load)
{
	return load->buf.len + (load->tube ? load->tube->held : 0);
}

static bool is_full(const struct load *load)
{
	return load->buf.len >= BUFFER_BYTES || load_len(load) >= TUBE_BYTES;
}

static int load_piece(struct load *load, const char *data, size_t len)
{
	size_t held = load->tube ? load->tube->held : 0;
	int r;

	/* Comes behind the tube's, so those must come out. */
	r = abx__buf_reserve(&load->buf, held + len);
	if (r < 0)
		return r;
	if (held > 0)
		load->buf.len +=
			abx__tube_take(load->tube, load->buf.data + load->buf.len, held);
	return abx__buf_add(&load->buf, data, len);
}

static void free_load(struct load *load)
{
	abx__buf_done(&load->buf);
	abx__tube_free(load->tube);
}

/* ---- life ---- */

static void free_upload(abx__upload *upload)
{
	abx__upload_done(upload);
	abx__free(upload);
}

static void free_ferry(struct ferry *ferry)
{
	free_upload(ferry->upload);
	free_load(&ferry->filling);
	free_load(&ferry->writing);
	abx__free(ferry);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct ferry *ferry = userdata;

	(void)req;
	(void)answered;
	ferry->req = NULL;
	if (!ferry->is_working)
		free_ferry(ferry);
}

static void answer(struct ferry *ferry)
{
	ferry->is_finished = true;
	if (ferry->upload->status)
		abx__answer_error(ferry->req, ferry->upload->status, "%s",
				  abx_error_message(ferry->upload->err));
	else
		/* The reference sets no JSON type, and clients do not ask for one. */
		abx__answer_json_take(ferry->req, 200, "text/plain; charset=utf-8",
				      abx__upload_answer(ferry->upload));
}

/* ---- writing ---- */

static void write_out(struct ferry *ferry)
{
	struct load *load = &ferry->writing;

	if (load->buf.len > 0)
		abx__upload_feed(ferry->upload, load->buf.data, load->buf.len);
	abx__buf_clear(&load->buf);
	if (load->tube && load->tube->held > 0)
		abx__upload_pour(ferry->upload, load->tube);
	if (ferry->is_last)
		abx__upload_finish(ferry->upload);
}

static void run_write(uv_work_t *work)
{
	write_out(work->data);
}

static void after_write(uv_work_t *work, int status);
static void on_tube(abx__http_req *req, size_t len, void *userdata);

/* Hands what was filled to the worker; the last load together with the end. */
static void start_write(struct ferry *ferry)
{
	struct load swap = ferry->writing;

	ferry->writing = ferry->filling;
	ferry->filling = swap;
	if (ferry->writing.tube)
		abx__http_req_use_tube(ferry->req, ferry->filling.tube, on_tube);
	ferry->is_last = ferry->has_ended;
	ferry->is_working = true;
	uv_queue_work(abx__http_req_loop(ferry->req), &ferry->work, run_write,
		      after_write);
}

static void after_write(uv_work_t *work, int status)
{
	struct ferry *ferry = work->data;

	(void)status;
	ferry->is_working = false;
	if (!ferry->req) {
		free_ferry(ferry);
		return;
	}
	if (ferry->is_broken)
		return; /* answered already; on_closed() frees */
	if (ferry->upload->status || ferry->is_last) {
		answer(ferry);
		return;
	}
	if (load_len(&ferry->filling) >= SMALL_BYTES || ferry->has_ended)
		start_write(ferry);
	if (ferry->is_paused) {
		ferry->is_paused = false;
		abx__http_req_resume(ferry->req);
	}
}

/* ---- filling ---- */

static void after_load(struct ferry *ferry)
{
	if (!is_full(&ferry->filling))
		return;
	if (!ferry->is_working) {
		start_write(ferry);
	} else {
		ferry->is_paused = true;
		abx__http_req_pause(ferry->req);
	}
}

static void on_body_end(struct ferry *ferry)
{
	/* A packed body may be far longer than it looks. */
	bool is_small =
		load_len(&ferry->filling) <=
			(ferry->upload->gunzip ? SMALL_GZIP_BYTES : SMALL_BYTES) &&
		!ferry->upload->is_saving && ferry->upload->count == 0;

	ferry->has_ended = true;
	if (ferry->is_working)
		return;
	if (!is_small) {
		start_write(ferry);
		return;
	}
	ferry->writing = ferry->filling;
	ferry->filling = (struct load){ 0 };
	ferry->is_last = true;
	write_out(ferry);
	answer(ferry);
}

static void on_body_broken(struct ferry *ferry, int r)
{
	ferry->is_broken = true;
	ferry->is_finished = true;
	if (r == ABX_EPROTO)
		abx__answer_error(ferry->req, 400, "the request body is broken");
	else if (r == ABX_ENOMEM)
		abx__answer_error(ferry->req, 500, "out of memory");
}

static void on_body(abx__http_req *req, const char *data, size_t len, int r,
		    void *userdata)
{
	struct ferry *ferry = userdata;

	(void)req;
	if (ferry->is_finished)
		return;
	if (r == ABX_OK && data)
		r = load_piece(&ferry->filling, data, len);
	if (r < 0)
		on_body_broken(ferry, r);
	else if (data)
		after_load(ferry);
	else
		on_body_end(ferry);
}

static void on_tube(abx__http_req *req, size_t len, void *userdata)
{
	struct ferry *ferry = userdata;

	(void)req;
	(void)len;
	if (ferry->is_finished)
		abx__tube_drop(ferry->filling.tube);
	else
		after_load(ferry);
}

/* ---- the start ---- */

static bool is_worth_tubes(const struct ferry *ferry)
{
	return ferry->upload->length >= ABX__TUBE_WORTH &&
	       abx__http_req_takes_tube(ferry->req);
}

static void make_tubes(struct ferry *ferry)
{
	ferry->filling.tube = abx__tube_new();
	ferry->writing.tube = abx__tube_new();
	if (ferry->filling.tube && ferry->writing.tube) {
		abx__http_req_use_tube(ferry->req, ferry->filling.tube, on_tube);
		return;
	}
	abx__tube_free(abx_take(ferry->filling.tube));
	abx__tube_free(abx_take(ferry->writing.tube));
}

void abx__ferry_start(abx__http_req *req, abx__upload *upload)
{
	struct ferry *ferry = abx__calloc(1, sizeof(*ferry));

	if (!ferry) {
		abx__answer_error(req, 500, "out of memory");
		free_upload(upload);
		return;
	}
	ferry->upload = upload;
	ferry->req = req;
	ferry->work.data = ferry;
	abx__http_req_on_closed(req, on_closed, ferry);
	if (is_worth_tubes(ferry))
		make_tubes(ferry);
	abx__http_req_read(req, on_body, ferry);
}

/*
 * outq.c - see outq.h.
 */
#include "io/outq.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include <agentbox/error.h>

#define COALESCE ((size_t)4 << 10)     /* pieces up to this are gathered */
#define GATHER_MOST ((size_t)64 << 10) /* then they leave */
/* Taken out of a tube that found no room, for libuv to queue: its write tells when there
 * is room again. */
#define SCOUT ((size_t)4 << 10)

/* A queued write. What libuv sends is [data of ours][the caller's, by reference][tail],
 * or what TLS made of that.
 */
struct outgoing {
	uv_write_t req; /* first */
	abx__outq *q;
	char *sealed;
	void (*done)(void *userdata);
	void *userdata;
	char data[];
};

void abx__outq_init(abx__outq *q, uv_stream_t *stream, void (*moved)(void *userdata),
		    void *userdata)
{
	memset(q, 0, sizeof(*q));
	q->stream = stream;
	q->moved = moved;
	q->userdata = userdata;
}

void abx__outq_done(abx__outq *q)
{
	abx__buf_done(&q->pending);
	abx__buf_done(&q->sealed);
}

size_t abx__outq_queued(const abx__outq *q)
{
	if (q->broken)
		return 0;
	return q->pending.len + uv_stream_get_write_queue_size(q->stream) +
	       (q->tube ? q->tube->held : 0);
}

static int broke(abx__outq *q, int code)
{
	q->broken = true;
	q->tube = NULL;
	abx__buf_done(&q->pending);
	return code;
}

static int pour(abx__outq *q);

static void write_cb(uv_write_t *req, int status)
{
	struct outgoing *o = (struct outgoing *)req;
	abx__outq *q = o->q;
	void (*done)(void *) = o->done;
	void *userdata = o->userdata;

	abx__free(o->sealed);
	abx__free(o);
	if (done)
		done(userdata);
	if (uv_is_closing((const uv_handle_t *)q->stream))
		return;
	if (status < 0)
		broke(q, ABX_EIO);
	else if (q->tube)
		pour(q);
	q->moved(q->userdata);
}

static int submit(abx__outq *q, struct outgoing *o, const uv_buf_t *bufs, unsigned n)
{
	o->q = q;
	if (uv_write(&o->req, q->stream, bufs, n, write_cb) == 0)
		return ABX_OK;
	abx__free(o->sealed);
	abx__free(o);
	return broke(q, ABX_EIO);
}

/* Offers the pieces to the kernel; copies and queues what it does not take. */
static int send_wire(abx__outq *q, const uv_buf_t *bufs, unsigned n)
{
	size_t total = 0, skip, at = 0;
	struct outgoing *o;
	uv_buf_t rest;
	int sent;

	for (unsigned i = 0; i < n; i++)
		total += bufs[i].len;
	sent = uv_try_write(q->stream, bufs, n);
	if (sent < 0 && sent != UV_EAGAIN)
		return broke(q, ABX_EIO);
	skip = sent > 0 ? (size_t)sent : 0;
	if (skip == total)
		return ABX_OK;
	o = abx__malloc(sizeof(*o) + total - skip);
	if (!o)
		return broke(q,
			     ABX_ENOMEM); /* a part may be out, so there is no way on */
	o->sealed = NULL;
	o->done = NULL;
	for (unsigned i = 0; i < n; i++) {
		size_t from = skip < bufs[i].len ? skip : bufs[i].len;

		if (bufs[i].len > from)
			memcpy(o->data + at, bufs[i].base + from, bufs[i].len - from);
		at += bufs[i].len - from;
		skip -= from;
	}
	rest = uv_buf_init(o->data, (unsigned)at);
	return submit(q, o, &rest, 1);
}

static int seal(abx__outq *q, const uv_buf_t *bufs, unsigned n)
{
	int r = ABX_OK;

	for (unsigned i = 0; i < n && r == ABX_OK; i++) {
		if (bufs[i].len > 0)
			r = q->tls->ops->write(q->tls, bufs[i].base, bufs[i].len,
					       &q->sealed);
	}
	return r < 0 ? broke(q, r) : ABX_OK;
}

void abx__outq_flush_sealed(abx__outq *q)
{
	uv_buf_t buf = uv_buf_init(q->sealed.data, (unsigned)q->sealed.len);

	if (buf.len > 0 && !q->broken && !uv_is_closing((uv_handle_t *)q->stream))
		send_wire(q, &buf, 1);
	abx__buf_done(&q->sealed);
}

static int send_now(abx__outq *q, const uv_buf_t *bufs, unsigned n)
{
	int r;

	if (!q->tls)
		return send_wire(q, bufs, n);
	r = seal(q, bufs, n);
	if (r == ABX_OK)
		abx__outq_flush_sealed(q);
	return q->broken && r == ABX_OK ? ABX_EIO : r;
}

void abx__outq_flush(abx__outq *q)
{
	uv_buf_t buf;

	if (q->pending.len == 0 || q->broken || uv_is_closing((uv_handle_t *)q->stream))
		return;
	buf = uv_buf_init(q->pending.data, (unsigned)q->pending.len);
	send_now(q, &buf, 1);
	abx__buf_clear(&q->pending);
}

/* ---- tubes ---- */

/* Takes up to `len` bytes out of the tube and queues them. */
static int queue_from_tube(abx__outq *q, size_t len)
{
	struct outgoing *o = abx__malloc(sizeof(*o) + len);
	uv_buf_t buf;

	if (!o)
		return broke(q, ABX_ENOMEM);
	o->sealed = NULL;
	o->done = NULL;
	buf = uv_buf_init(o->data, (unsigned)abx__tube_take(q->tube, o->data, len));
	if (q->tube->held == 0)
		q->tube = NULL;
	return submit(q, o, &buf, 1);
}

/* Goes on with the tube, unless libuv still has what comes before. */
static int pour(abx__outq *q)
{
	ssize_t n = 0;
	uv_os_fd_t fd;

	if (uv_stream_get_write_queue_size(q->stream) > 0)
		return ABX_OK;
	if (uv_fileno((const uv_handle_t *)q->stream, &fd) < 0)
		return broke(q, ABX_EIO);
	while (q->tube->held > 0 && n >= 0)
		n = abx__tube_pour(q->tube, fd);
	if (q->tube->held == 0) {
		q->tube = NULL;
		return ABX_OK;
	}
	if (n == -EAGAIN)
		return queue_from_tube(q, SCOUT);
	if (abx__tube_is_refused(n))
		return queue_from_tube(q, q->tube->held);
	return broke(q, ABX_EIO);
}

/* Something else is to follow: what the tube holds goes into libuv's queue first. */
static int empty_tube(abx__outq *q)
{
	int r = q->tube ? queue_from_tube(q, q->tube->held) : ABX_OK;

	return q->broken && r == ABX_OK ? ABX_EIO : r;
}

int abx__outq_pour(abx__outq *q, abx__tube *tube)
{
	int r;

	assert(!q->tls);
	abx__outq_flush(q);
	r = q->tube == tube ? ABX_OK : empty_tube(q);
	if (q->broken)
		return r < 0 ? r : ABX_EIO;
	q->tube = tube->held > 0 ? tube : NULL;
	return q->tube ? pour(q) : ABX_OK;
}

/* ---- pieces ---- */

void abx__outq_end(abx__outq *q)
{
	abx__outq_flush(q);
	if (!q->tls || q->broken)
		return;
	if (q->tls->ops->end(q->tls, &q->sealed) < 0)
		broke(q, ABX_EIO);
	abx__outq_flush_sealed(q);
}

int abx__outq_gather(abx__outq *q, const void *data, size_t len)
{
	int r = empty_tube(q);

	if (r == ABX_OK)
		r = abx__buf_add(&q->pending, data, len);
	if (r < 0)
		return broke(q, r);
	if (q->pending.len >= GATHER_MOST)
		abx__outq_flush(q);
	return q->broken ? ABX_EIO : ABX_OK;
}

int abx__outq_put(abx__outq *q, const char *fmt, ...)
{
	va_list ap;
	int r;

	r = empty_tube(q);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	r = abx__buf_vaddf(&q->pending, fmt, ap);
	va_end(ap);
	return r;
}

int abx__outq_write(abx__outq *q, const void *data, size_t len, const char *tail)
{
	uv_buf_t bufs[3];
	int r;

	r = empty_tube(q);
	if (r < 0)
		return r;
	if (len <= COALESCE) {
		r = abx__buf_add(&q->pending, data, len);
		if (r == ABX_OK && *tail)
			r = abx__buf_adds(&q->pending, tail);
		if (r < 0)
			return broke(q, r);
		if (q->pending.len >= GATHER_MOST)
			abx__outq_flush(q);
		return q->broken ? ABX_EIO : ABX_OK;
	}
	bufs[0] = uv_buf_init(q->pending.data, (unsigned)q->pending.len);
	bufs[1] = uv_buf_init((char *)data, (unsigned)len);
	bufs[2] = uv_buf_init((char *)tail, (unsigned)strlen(tail));
	r = send_now(q, q->pending.len > 0 ? bufs : bufs + 1,
		     (q->pending.len > 0) + 1 + (*tail != '\0'));
	abx__buf_clear(&q->pending);
	return r;
}

/* As below under TLS: what leaves is made now. */
static int write_sealed(abx__outq *q, const void *data, size_t len, const char *tail,
			void (*done)(void *userdata), void *userdata)
{
	const uv_buf_t bufs[3] = {
		uv_buf_init(q->pending.data, (unsigned)q->pending.len),
		uv_buf_init((char *)data, (unsigned)len),
		uv_buf_init((char *)tail, (unsigned)strlen(tail)),
	};
	struct outgoing *o = abx__malloc(sizeof(*o));
	uv_buf_t wire;
	int r = o ? seal(q, bufs, 3) : broke(q, ABX_ENOMEM);

	abx__buf_clear(&q->pending);
	if (r < 0) {
		abx__free(o);
		return r;
	}
	o->done = done;
	o->userdata = userdata;
	wire = uv_buf_init(q->sealed.data, (unsigned)q->sealed.len);
	o->sealed = q->sealed.data;
	q->sealed = (abx__buf)ABX__BUF_INIT;
	return submit(q, o, &wire, 1);
}

int abx__outq_write_ref(abx__outq *q, const void *data, size_t len, const char *tail,
			void (*done)(void *userdata), void *userdata)
{
	struct outgoing *o;
	uv_buf_t bufs[3];
	size_t before;
	int r;

	r = empty_tube(q);
	if (r < 0)
		return r;
	before = q->pending.len;
	if (q->tls)
		return write_sealed(q, data, len, tail, done, userdata);
	o = abx__malloc(sizeof(*o) + before);
	if (!o)
		return broke(q, ABX_ENOMEM);
	o->sealed = NULL;
	o->done = done;
	o->userdata = userdata;
	if (before > 0)
		memcpy(o->data, q->pending.data, before);
	abx__buf_clear(&q->pending);
	/* An empty piece is fine: `done` comes in its turn. */
	bufs[0] = uv_buf_init(o->data, (unsigned)before);
	bufs[1] = uv_buf_init((char *)data, (unsigned)len);
	bufs[2] = uv_buf_init((char *)tail, (unsigned)strlen(tail));
	return submit(q, o, bufs, *tail ? 3 : 2);
}

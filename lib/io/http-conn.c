/*
 * http-conn.c - see http-conn.h.
 */
#include "io/http-conn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/outq.h"

enum state {
	IDLE,    /* parked, or fresh */
	WAITING, /* the answer's head is to come, or coming */
	ANSWER,  /* its body */
	RAW,     /* behind a 101 */
	ANSWERED,
	FAILED,
	CLOSED,
};

struct abx__http_conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io; /* first */
	abx__http_scratch *scratch;
	enum state state;
	unsigned depth; /* frames that deliver */
	bool is_reading;
	bool paused;
	bool eof, eof_told;
	bool sent;  /* the request's body has been ended */
	bool heard; /* a byte of the answer has come */
	bool keeps; /* the peer keeps the connection, by the answer's head */
	bool no_answer_body;
	bool drain_due;
	bool tube_asked; /* libuv was told that nothing is read into memory now */
	bool tube_stuck; /* no more fits into it: read into memory once */
	abx__tube *tube;
	size_t low;
	abx__outq out;
	abx__http_body up; /* framing of what we send */
	abx__http_body down;
	abx__buf up_trailers;   /* "Name: value\r\n"... */
	abx__buf down_trailers; /* http-body.h's */
	abx__buf in;            /* a head that is not whole, or what came while paused */
	size_t scanned;
	abx__http_conn_events events;
	void *userdata;
	void (*lost)(void *userdata);
	void *lost_userdata;
	uv_shutdown_t shutdown;
};

static void run(abx__http_conn *conn, const char *data, size_t len);

static void fail(abx__http_conn *conn, int r, const char *why)
{
	if (conn->state == CLOSED || conn->state == FAILED)
		return;
	conn->state = FAILED;
	uv_read_stop(&conn->io.stream);
	conn->is_reading = false;
	conn->events.fail(conn->userdata, r, why);
}

/* ---- what arrives ---- */

static const char *frame_answer(abx__http_conn *conn, const abx__http_head *head)
{
	if (head->status == 101) {
		if (!conn->sent && conn->up.framing != ABX__HTTP_NO_BODY)
			return "101 before the request was complete";
		conn->sent = false; /* the raw stream is open both ways */
		return NULL;
	}
	if (conn->no_answer_body || head->status == 204 || head->status == 304)
		abx__http_body_init(&conn->down, ABX__HTTP_NO_BODY, 0);
	else if (head->chunked)
		abx__http_body_init(&conn->down, ABX__HTTP_CHUNKED, 0);
	else if (head->content_length >= 0)
		abx__http_body_init(&conn->down, ABX__HTTP_LENGTH,
				    (uint64_t)head->content_length);
	else
		abx__http_body_init(&conn->down, ABX__HTTP_UNTIL_CLOSE, 0);
	conn->down.trailers = &conn->down_trailers;
	conn->keeps = head->keep_alive && conn->down.framing != ABX__HTTP_UNTIL_CLOSE;
	return NULL;
}

static void take_head(abx__http_conn *conn, const char *data, size_t len)
{
	abx__http_head head;
	const char *why = NULL;
	int r;

	r = abx__http_head_parse_response(&head, data, len, &why);
	if (r == ABX_OK && head.status < 200 && head.status != 101) {
		if (conn->events.interim)
			conn->events.interim(conn->userdata, &head);
		abx__http_head_done(&head);
		return;
	}
	if (r == ABX_OK)
		why = frame_answer(conn, &head);
	if (why || r < 0) {
		abx__http_head_done(&head);
		fail(conn, r < 0 ? r : ABX_EPROTO, why ? why : "out of memory");
		return;
	}
	conn->state = head.status == 101 ? RAW : ANSWER;
	conn->events.head(conn->userdata, &head);
	abx__http_head_done(&head);
}

/* Bytes eaten of the head at `data`; 0: it is not whole. */
static size_t step_head(abx__http_conn *conn, const char *data, size_t len)
{
	size_t n = abx__http_head_find(data, len, conn->scanned);

	if (n > ABX__HTTP_HEAD_MAX || (n == 0 && len >= ABX__HTTP_HEAD_MAX)) {
		fail(conn, ABX_EPROTO, "the answer's head is too large");
		return len;
	}
	conn->scanned = n == 0 ? len : 0;
	if (n > 0)
		take_head(conn, data, n);
	return n;
}

static void end_answer(abx__http_conn *conn)
{
	if (abx__http_trailers_split(&conn->down_trailers) < 0) {
		fail(conn, ABX_EPROTO, "the answer's trailers are broken");
		return;
	}
	conn->state = ANSWERED;
	conn->events.body(conn->userdata, NULL, 0);
}

static size_t step_body(abx__http_conn *conn, const char *data, size_t len)
{
	const char *piece;
	size_t n;
	ssize_t r;

	r = abx__http_body_next(&conn->down, data, len, &piece, &n);
	if (r < 0) {
		fail(conn, ABX_EPROTO, "the answer's chunks are broken");
		return len;
	}
	if (n > 0)
		conn->events.body(conn->userdata, piece, n);
	if (conn->state == ANSWER && conn->down.done && !conn->paused)
		end_answer(conn);
	return (size_t)r;
}

/* One step; the bytes eaten, with *ret_again false when nothing more can be done now. */
static size_t step(abx__http_conn *conn, const char *data, size_t len, bool *ret_again)
{
	size_t n;

	*ret_again = true;
	switch (conn->state) {
	case WAITING:
		n = len > 0 ? step_head(conn, data, len) : 0;
		*ret_again = n > 0;
		return n;
	case ANSWER:
		if (conn->paused || (len == 0 && !conn->down.done))
			break;
		return step_body(conn, data, len);
	case RAW:
		if (conn->paused || len == 0)
			break;
		conn->events.body(conn->userdata, data, len);
		return len;
	case IDLE:
	case ANSWERED:
	case FAILED:
	case CLOSED:
		break;
	}
	*ret_again = false;
	return 0;
}

static void lose(abx__http_conn *conn)
{
	conn->state = FAILED;
	uv_read_stop(&conn->io.stream);
	conn->is_reading = false;
	if (conn->lost)
		conn->lost(conn->lost_userdata);
}

/* The peer has ended its side, and everything before that has been taken. */
static void tell_eof(abx__http_conn *conn)
{
	switch (conn->state) {
	case WAITING:
		fail(conn, ABX_EIO,
		     conn->heard ? "the connection ended within the answer's head"
				 : "the connection was closed without an answer");
		break;
	case ANSWER:
		if (conn->down.framing == ABX__HTTP_UNTIL_CLOSE)
			end_answer(conn);
		else
			fail(conn, ABX_EIO, "the connection ended within the answer");
		break;
	case RAW:
		conn->events.body(conn->userdata, NULL, 0);
		break;
	case IDLE:
		lose(conn);
		break;
	case ANSWERED:
	case FAILED:
	case CLOSED:
		break;
	}
}

static bool wants_read(const abx__http_conn *conn)
{
	switch (conn->state) {
	case IDLE:
	case WAITING:
	case ANSWERED:
		return !conn->eof;
	case ANSWER:
	case RAW:
		return !conn->eof && !conn->paused;
	case FAILED:
	case CLOSED:
		break;
	}
	return false;
}

static bool takes_tube(const abx__http_conn *conn)
{
	return conn->tube && !conn->tube_stuck && conn->state == ANSWER &&
	       conn->down.framing == ABX__HTTP_LENGTH && !conn->down.done &&
	       conn->in.len == 0;
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	abx__http_conn *conn = (abx__http_conn *)handle;
	abx__http_scratch *scratch = conn->scratch;

	(void)suggested;
	/* Without a buffer libuv only tells us that there is something to read. */
	conn->tube_asked = takes_tube(conn);
	conn->tube_stuck = false;
	if (conn->tube_asked) {
		*buf = uv_buf_init(NULL, 0);
		return;
	}
	if (!scratch->data)
		scratch->data = abx__malloc(scratch->size);
	*buf = uv_buf_init(scratch->data, scratch->data ? (unsigned)scratch->size : 0);
}

/* Bytes moved into the tube and told; else what libuv would have said. */
static ssize_t read_tube(abx__http_conn *conn)
{
	uv_os_fd_t fd;
	ssize_t n;

	if (uv_fileno(&conn->io.handle, &fd) < 0)
		return UV_EBADF;
	n = abx__tube_fill(conn->tube, fd, conn->down.left);
	if (n == 0)
		return UV_EOF;
	if (abx__tube_is_refused(n))
		conn->tube = NULL;
	else if (n == -EAGAIN) /* if not empty, it may be full of small pieces */
		conn->tube_stuck = conn->tube->held > 0;
	else if (n < 0)
		return n;
	if (n < 0)
		return 0;
	abx__http_body_skip(&conn->down, (uint64_t)n);
	conn->depth++;
	conn->events.tube(conn->userdata, (size_t)n);
	conn->depth--;
	if (conn->state != CLOSED)
		run(conn, "", 0);
	return 0;
}

static void read_cb(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	abx__http_conn *conn = (abx__http_conn *)stream;

	if (n == UV_ENOBUFS && conn->tube_asked)
		n = read_tube(conn);
	if (n == 0)
		return;
	if (conn->state == IDLE) {
		lose(conn);
		return;
	}
	if (n > 0) {
		conn->heard = true;
		run(conn, buf->base, (size_t)n);
		return;
	}
	if (n != UV_EOF) {
		/* A reset may hide that the answer had been complete: it never is
		 * reusable. */
		conn->keeps = false;
		if (conn->state != ANSWERED)
			fail(conn, ABX_EIO,
			     n == UV_ENOBUFS ? "out of memory" : uv_strerror((int)n));
		return;
	}
	conn->eof = true;
	conn->keeps = false;
	run(conn, "", 0);
}

static void switch_reading(abx__http_conn *conn)
{
	bool wanted = wants_read(conn);

	if (wanted == conn->is_reading)
		return;
	conn->is_reading = wanted;
	if (!wanted)
		uv_read_stop(&conn->io.stream);
	else if (uv_read_start(&conn->io.stream, alloc_cb, read_cb) < 0)
		fail(conn, ABX_EIO, "cannot read");
}

static size_t steps(abx__http_conn *conn, const char *data, size_t len)
{
	size_t used = 0;
	bool again = true;

	conn->depth++;
	while (again && conn->state != CLOSED)
		used += step(conn, data + used, len - used, &again);
	conn->depth--;
	return used;
}

/* Takes what is there and then `data`; inside a frame it does nothing, the frame goes on
 * itself. */
static void run(abx__http_conn *conn, const char *data, size_t len)
{
	bool direct = conn->in.len == 0;
	size_t used;

	if (conn->depth > 0)
		return;
	if (!direct && len > 0 && abx__buf_add(&conn->in, data, len) < 0) {
		fail(conn, ABX_ENOMEM, "out of memory");
		return;
	}
	used = direct ? steps(conn, data, len) : steps(conn, conn->in.data, conn->in.len);
	if (conn->state == CLOSED)
		return;
	if (conn->state == IDLE && used < len) {
		lose(conn); /* parked, and more came than was asked for */
		return;
	}
	if (!direct && used == conn->in.len)
		abx__buf_done(&conn->in);
	else if (!direct)
		abx__buf_consume(&conn->in, used);
	else if (used < len && abx__buf_add(&conn->in, data + used, len - used) < 0)
		fail(conn, ABX_ENOMEM, "out of memory");
	if (conn->eof && !conn->eof_told && !conn->paused && conn->state != FAILED &&
	    (conn->in.len == 0 || conn->state == WAITING)) {
		conn->eof_told = true;
		conn->depth++;
		tell_eof(conn);
		conn->depth--;
	}
	if (conn->state != CLOSED)
		switch_reading(conn);
}

/* ---- what leaves ---- */

static void check_drain(abx__http_conn *conn)
{
	if (!conn->drain_due || abx__outq_queued(&conn->out) > conn->low)
		return;
	conn->drain_due = false;
	if (conn->events.drain && conn->state != FAILED)
		conn->events.drain(conn->userdata);
}

static void write_moved(void *userdata)
{
	check_drain(userdata);
}

void abx__http_conn_flush(abx__http_conn *conn)
{
	abx__outq_flush(&conn->out);
}

static void note_queue(abx__http_conn *conn)
{
	if (abx__outq_queued(&conn->out) > conn->low)
		conn->drain_due = true;
}

int abx__http_conn_request(abx__http_conn *conn, const char *head, size_t len,
			   enum abx__http_framing framing, uint64_t length,
			   bool no_answer_body, const abx__http_conn_events *events,
			   void *userdata)
{
	int r;

	if (conn->state != IDLE || conn->eof)
		return ABX_ESTATE;
	conn->events = *events;
	conn->userdata = userdata;
	conn->lost = NULL;
	conn->no_answer_body = no_answer_body;
	conn->heard = conn->keeps = conn->paused = false;
	conn->tube = NULL;
	abx__buf_done(&conn->up_trailers);
	abx__buf_done(&conn->down_trailers);
	abx__http_body_init(&conn->up, framing, length);
	conn->sent = conn->up.done;
	conn->state = WAITING;
	r = abx__outq_write(&conn->out, head, len, "");
	if (conn->sent)
		abx__outq_flush(&conn->out);
	switch_reading(conn);
	/* A peer that has gone shows when we read. */
	return r == ABX_EIO ? ABX_OK : r;
}

/* Checks a piece of the request's body, and counts it. */
static int admit(abx__http_conn *conn, size_t len)
{
	if (conn->sent || conn->state == FAILED || conn->state == CLOSED)
		return ABX_ESTATE;
	if (conn->state != RAW && conn->up.framing == ABX__HTTP_LENGTH) {
		if (len > conn->up.left)
			return ABX_ETOOBIG;
		conn->up.left -= len;
	}
	return ABX_OK;
}

int abx__http_conn_pour(abx__http_conn *conn, abx__tube *tube, size_t len)
{
	int r;

	if (conn->state == RAW || conn->up.framing != ABX__HTTP_LENGTH)
		return ABX_ESTATE;
	r = admit(conn, len);
	if (r == ABX_OK)
		r = abx__outq_pour(&conn->out, tube);
	note_queue(conn);
	return r == ABX_EIO ? ABX_OK : r;
}

int abx__http_conn_write(abx__http_conn *conn, const void *data, size_t len)
{
	bool chunked = conn->state != RAW && conn->up.framing == ABX__HTTP_CHUNKED;
	int r;

	r = admit(conn, len);
	if (r < 0 || len == 0)
		return r;
	if (chunked)
		r = abx__outq_put(&conn->out, "%zx\r\n", len);
	if (r == ABX_OK)
		r = abx__outq_write(&conn->out, data, len, chunked ? "\r\n" : "");
	/* Bodies are written as they come, and nothing gathers here over turns of the
	 * loop. */
	abx__outq_flush(&conn->out);
	note_queue(conn);
	return r == ABX_EIO ? ABX_OK : r;
}

static void shutdown_cb(uv_shutdown_t *req, int status)
{
	(void)req;
	(void)status; /* an error shows when we read */
}

int abx__http_conn_trailer(abx__http_conn *conn, const char *name, const char *value)
{
	if (!abx__http_name_is_valid(name) || !abx__http_value_is_valid(value))
		return ABX_EINVAL;
	return abx__buf_addf(&conn->up_trailers, "%s: %s\r\n", name, value);
}

bool abx__http_conn_trailer_at(const abx__http_conn *conn, size_t index,
			       const char **ret_name, const char **ret_value)
{
	return conn->state == ANSWERED &&
	       abx__http_trailers_at(&conn->down_trailers, index, ret_name, ret_value);
}

int abx__http_conn_end(abx__http_conn *conn)
{
	if (conn->sent || conn->state == FAILED || conn->state == CLOSED)
		return ABX_ESTATE;
	if (conn->state != RAW && conn->up.framing == ABX__HTTP_LENGTH &&
	    conn->up.left > 0)
		return ABX_ESTATE;
	conn->sent = true;
	if (conn->state != RAW && conn->up.framing == ABX__HTTP_CHUNKED)
		abx__outq_put(&conn->out, "0\r\n%s\r\n",
			      abx__buf_str(&conn->up_trailers));
	abx__outq_flush(&conn->out);
	if (conn->state == RAW)
		uv_shutdown(&conn->shutdown, &conn->io.stream, shutdown_cb);
	return ABX_OK;
}

void abx__http_conn_use_tube(abx__http_conn *conn, abx__tube *tube)
{
	conn->tube = tube;
	conn->tube_stuck = false;
}

size_t abx__http_conn_queued(const abx__http_conn *conn)
{
	return abx__outq_queued(&conn->out);
}

void abx__http_conn_set_low(abx__http_conn *conn, size_t low)
{
	conn->low = low;
}

void abx__http_conn_pause(abx__http_conn *conn)
{
	conn->paused = true;
	if (conn->depth == 0)
		switch_reading(conn);
}

void abx__http_conn_resume(abx__http_conn *conn)
{
	if (!conn->paused)
		return;
	conn->paused = false;
	run(conn, "", 0);
}

/* ---- life ---- */

bool abx__http_conn_has_answer(const abx__http_conn *conn)
{
	return conn->heard;
}

bool abx__http_conn_is_reusable(const abx__http_conn *conn)
{
	if (conn->state != ANSWERED || !conn->sent || !conn->keeps || conn->eof)
		return false;
	/* Within a frame `in` is what is being taken; what is left of it then loses the
	 * connection. */
	if (conn->depth == 0 && conn->in.len > 0)
		return false;
	return !conn->out.broken && abx__outq_queued(&conn->out) == 0;
}

void abx__http_conn_park(abx__http_conn *conn, void (*lost)(void *userdata),
			 void *userdata)
{
	conn->state = IDLE;
	conn->lost = lost;
	conn->lost_userdata = userdata;
	conn->paused = false;
	conn->tube = NULL;
	if (conn->depth == 0)
		switch_reading(conn);
}

int abx__http_conn_new(uv_loop_t *loop, int fd, abx__http_scratch *scratch,
		       abx__http_conn **ret, abx_error **reterr)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	abx__http_conn *conn;
	bool is_unix;
	int r;

	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return abx__error_errno(reterr, ABX_EINVAL, errno, "descriptor %d", fd);
	conn = abx__calloc(1, sizeof(*conn));
	if (!conn)
		return abx__error_nomem(reterr);
	is_unix = addr.ss_family == AF_UNIX;
	r = is_unix ? uv_pipe_init(loop, &conn->io.pipe, 0)
		    : uv_tcp_init(loop, &conn->io.tcp);
	if (r < 0) {
		abx__free(conn);
		return abx__error_errno(reterr, ABX_EIO, -r, "descriptor %d", fd);
	}
	conn->scratch = scratch;
	scratch->users++;
	conn->in.cap = 2 * ABX__HTTP_HEAD_MAX + 2 * scratch->size;
	abx__outq_init(&conn->out, &conn->io.stream, write_moved, conn);
	r = is_unix ? uv_pipe_open(&conn->io.pipe, fd) : uv_tcp_open(&conn->io.tcp, fd);
	if (r < 0) {
		abx__http_conn_close(conn);
		return abx__error_errno(reterr, ABX_EIO, -r, "descriptor %d", fd);
	}
	if (!is_unix)
		uv_tcp_nodelay(&conn->io.tcp, 1);
	*ret = conn;
	return ABX_OK;
}

static void closed_cb(uv_handle_t *handle)
{
	abx__http_conn *conn = (abx__http_conn *)handle;

	if (--conn->scratch->users == 0) {
		abx__free(conn->scratch->data);
		conn->scratch->data = NULL;
	}
	abx__outq_done(&conn->out);
	abx__buf_done(&conn->in);
	abx__buf_done(&conn->up_trailers);
	abx__buf_done(&conn->down_trailers);
	abx__free(conn);
}

void abx__http_conn_close(abx__http_conn *conn)
{
	if (!conn || conn->state == CLOSED)
		return;
	conn->state = CLOSED;
	uv_close(&conn->io.handle, closed_cb);
}

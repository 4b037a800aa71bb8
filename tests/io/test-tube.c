/*
 * Bodies that go through a tube: in order and whole, whatever comes before, behind or
 * between them; with readers that are slow and peers that vanish.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/http-server.h"
#include "io/outq.h"
#include "io/tube.h"
#include "wire.h"

#define MIB ((size_t)1 << 20)

static char pattern_at(size_t i)
{
	return (char)(i * 131 + (i >> 12));
}

static char *make_pattern(size_t len)
{
	char *data = malloc(len + 1);

	cr_assert_not_null(data);
	for (size_t i = 0; i < len; i++)
		data[i] = pattern_at(i);
	data[len] = '\0';
	return data;
}

static bool is_pattern(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] != pattern_at(i))
			return false;
	}
	return true;
}

static int make_file(size_t len)
{
	char *data = make_pattern(len);
	int fd = memfd_create("pattern", MFD_CLOEXEC);

	cr_assert_eq(write(fd, data, len), (ssize_t)len);
	free(data);
	return fd;
}

/* ---- the tube itself ---- */

Test(io_tube, bytes_go_through_and_are_counted)
{
	abx__tube *tube = abx__tube_new();
	char got[64] = "";
	int fds[2];

	cr_assert_not_null(tube);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	cr_assert_eq(abx__tube_fill(tube, fds[0], 100), -EAGAIN);
	cr_assert_eq(abx__tube_pour(tube, fds[0]), -EAGAIN);
	cr_assert_eq(send(fds[1], "0123456789", 10, 0), 10);
	cr_assert_eq(abx__tube_fill(tube, fds[0], 8), 8);
	cr_assert_eq(tube->held, 8);
	cr_assert_eq(abx__tube_take(tube, got, 3), 3);
	cr_assert_str_eq(got, "012");
	cr_assert_eq(abx__tube_pour(tube, fds[0]), 5);
	cr_assert_eq(tube->held, 0);
	cr_assert_eq(recv(fds[1], got, sizeof(got), 0), 5);
	cr_assert(memcmp(got, "34567", 5) == 0);
	cr_assert_eq(abx__tube_fill(tube, fds[0], 100), 2);
	abx__tube_drop(tube);
	cr_assert_eq(abx__tube_take(tube, got, sizeof(got)), 0);
	close(fds[1]);
	cr_assert_eq(abx__tube_fill(tube, fds[0], 100), 0, "the end of the stream");
	close(fds[0]);
	abx__tube_free(tube);
}

Test(io_tube, a_full_tube_takes_no_more_and_a_file_keeps_its_offset)
{
	abx__tube *tube = abx__tube_new();
	int fd = make_file(3 * MIB);
	char *data;

	cr_assert_eq(abx__tube_fill_at(tube, fd, 5, 3 * MIB),
		     (ssize_t)tube->room - 5 % 4096,
		     "a page that is not taken whole counts as one");
	cr_assert_lt(abx__tube_fill_at(tube, fd, 0, MIB), 0);
	data = malloc(tube->held);
	cr_assert_eq(abx__tube_take(tube, data, 100), 100);
	for (size_t i = 0; i < 100; i++)
		cr_assert_eq(data[i], pattern_at(5 + i));
	cr_assert_eq(lseek(fd, 0, SEEK_CUR), (off_t)(3 * MIB));
	free(data);
	close(fd);
	abx__tube_free(tube);
}

Test(io_tube, what_does_not_splice_says_so)
{
	abx__tube *tube = abx__tube_new();
	int fd = open("/proc/self/status", O_RDWR | O_APPEND | O_CLOEXEC);
	int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert(abx__tube_is_refused(abx__tube_fill(tube, dir, 100)));
	cr_assert(!abx__tube_is_refused(-ECONNRESET));
	cr_assert(!abx__tube_is_refused(-EAGAIN));
	if (fd >= 0)
		close(fd);
	close(dir);
	abx__tube_free(tube);
}

/* ---- into a queue ---- */

struct queue {
	uv_loop_t loop;
	uv_pipe_t stream;
	abx__outq q;
	abx__tube *tube, *other;
	int file, peer;
	int moves;
	abx__buf got;
};

static void on_moved(void *userdata)
{
	struct queue *t = userdata;

	t->moves++;
}

static void queue_start(struct queue *t, size_t len)
{
	int fds[2], small = 16384;

	signal(SIGPIPE, SIG_IGN);
	memset(t, 0, sizeof(*t));
	uv_loop_init(&t->loop);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	uv_pipe_init(&t->loop, &t->stream, 0);
	cr_assert_eq(uv_pipe_open(&t->stream, fds[0]), 0);
	abx__outq_init(&t->q, (uv_stream_t *)&t->stream, on_moved, t);
	t->peer = fds[1];
	t->tube = abx__tube_new();
	t->other = abx__tube_new();
	t->file = make_file(len);
}

static void queue_turn(struct queue *t)
{
	char buf[30000];
	ssize_t n = recv(t->peer, buf, sizeof(buf), 0);

	if (n > 0)
		abx__buf_add(&t->got, buf, (size_t)n);
	uv_run(&t->loop, UV_RUN_NOWAIT);
}

static void queue_closed(uv_handle_t *handle)
{
	struct queue *t =
		(struct queue *)((char *)handle - offsetof(struct queue, stream));

	abx__outq_done(&t->q);
}

static void queue_stop(struct queue *t)
{
	uv_close((uv_handle_t *)&t->stream, queue_closed);
	uv_run(&t->loop, UV_RUN_DEFAULT);
	cr_assert_eq(uv_loop_close(&t->loop), 0);
	abx__tube_free(t->tube);
	abx__tube_free(t->other);
	close(t->file);
	close(t->peer);
	abx__buf_done(&t->got);
}

Test(io_tube, a_queue_keeps_the_order_of_tubes_and_pieces)
{
	const size_t total = 600000, cut[] = { 0, 200000, 300000, 450000, 600000 };
	struct queue t;
	char *all = make_pattern(total);

	queue_start(&t, total);
	abx__buf_reserve(&t.got, total);
	/* A tube behind small text, more into the same tube, a large piece while it still
	 * holds some, another tube, small text at last. */
	cr_assert_eq(abx__outq_put(&t.q, "%.*s", 3, "abc"), ABX_OK);
	abx__tube_fill_at(t.tube, t.file, 0, cut[1]);
	cr_assert_eq(abx__outq_pour(&t.q, t.tube), ABX_OK);
	cr_assert_gt(abx__outq_queued(&t.q), 100000);
	cr_assert_gt(t.tube->held, 0);
	abx__tube_fill_at(t.tube, t.file, (int64_t)cut[1], cut[2] - cut[1]);
	cr_assert_eq(abx__outq_pour(&t.q, t.tube), ABX_OK);
	cr_assert_eq(abx__outq_write(&t.q, all + cut[2], cut[3] - cut[2], ""), ABX_OK);
	cr_assert_eq(t.tube->held, 0);
	abx__tube_fill_at(t.other, t.file, (int64_t)cut[3], cut[4] - cut[3]);
	cr_assert_eq(abx__outq_pour(&t.q, t.other), ABX_OK);
	for (int i = 0; i < 5; i++)
		queue_turn(&t);
	cr_assert_eq(abx__outq_write(&t.q, "xyz", 3, "!"), ABX_OK);
	abx__outq_flush(&t.q);
	for (int i = 0; i < 2000 && t.got.len < total + 7; i++)
		queue_turn(&t);
	cr_assert_eq(t.got.len, total + 7);
	cr_assert(memcmp(t.got.data, "abc", 3) == 0);
	cr_assert(is_pattern(t.got.data + 3, total));
	cr_assert(memcmp(t.got.data + 3 + total, "xyz!", 4) == 0);
	cr_assert_eq(abx__outq_queued(&t.q), 0);
	free(all);
	queue_stop(&t);
}

Test(io_tube, a_queue_whose_reader_rests_keeps_the_bytes_in_the_tube)
{
	const size_t total = 900000;
	struct queue t;

	queue_start(&t, total);
	abx__tube_fill_at(t.tube, t.file, 0, total);
	cr_assert_eq(abx__outq_pour(&t.q, t.tube), ABX_OK);
	for (int i = 0; i < 50; i++)
		uv_run(&t.loop, UV_RUN_NOWAIT);
	cr_assert_eq(t.moves, 0);
	cr_assert_gt(t.tube->held, total / 2, "bytes were copied without need");
	for (int i = 0; i < 2000 && t.got.len < total; i++)
		queue_turn(&t);
	cr_assert(t.got.len == total && is_pattern(t.got.data, total));
	cr_assert_gt(t.moves, 1);
	queue_stop(&t);
}

Test(io_tube, a_queue_whose_peer_goes_is_broken)
{
	struct queue t;

	queue_start(&t, MIB);
	abx__tube_fill_at(t.tube, t.file, 0, MIB);
	abx__outq_pour(&t.q, t.tube);
	close(t.peer);
	t.peer = -1;
	for (int i = 0; i < 50 && !t.q.broken; i++)
		uv_run(&t.loop, UV_RUN_NOWAIT);
	cr_assert(t.q.broken);
	cr_assert_eq(abx__outq_queued(&t.q), 0);
	cr_assert_eq(abx__outq_pour(&t.q, t.tube), ABX_EIO);
	queue_stop(&t);
}

/* ---- through the server ---- */

struct fixture {
	uv_loop_t loop;
	abx__http_server *server;
	uint16_t port;
	struct wire w;
	bool server_closed;
	abx__tube *tube;
	size_t pipe_bytes; /* 0: as it is */
	abx__buf body;
	size_t by_tube;
	bool pause_each;
	abx__http_req *req;
	int calls, closed, answered, ends, end_r;
	/* of an answer */
	int file;
	size_t size, at;
};

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct fixture *f = userdata;

	(void)req;
	f->closed++;
	f->answered += answered;
	f->req = NULL;
	abx__tube_free(f->tube);
	f->tube = NULL;
}

static void on_tube(abx__http_req *req, size_t len, void *userdata)
{
	struct fixture *f = userdata;

	f->by_tube += len;
	cr_assert_leq(len, f->tube->held);
	if (f->pause_each) {
		abx__http_req_pause(req);
		return;
	}
	abx__buf_reserve(&f->body, f->tube->held);
	f->body.len += abx__tube_take(f->tube, f->body.data + f->body.len, f->tube->held);
}

static void on_body(abx__http_req *req, const char *data, size_t len, int r,
		    void *userdata)
{
	struct fixture *f = userdata;

	/* Order: the tube's first. */
	if (f->tube->held > 0)
		on_tube(req, 0, f);
	if (data) {
		abx__buf_add(&f->body, data, len);
		return;
	}
	f->ends++;
	f->end_r = r;
	if (r == ABX_OK)
		abx__http_res_send(req, 200, NULL, "taken", 5);
}

static void take_by_tube(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	if (!abx__http_req_has_body(req)) {
		abx__http_res_send(req, 200, NULL, "short", 5);
		return;
	}
	f->req = req;
	f->tube = abx__tube_new();
	if (f->pipe_bytes)
		fcntl(f->tube->in, F_SETPIPE_SZ, (int)f->pipe_bytes);
	abx__http_req_on_closed(req, on_closed, f);
	abx__http_req_use_tube(req, f->tube, on_tube);
	abx__http_req_read(req, on_body, f);
}

static void fill_more(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	while (f->at < f->size && abx__http_res_queued(req) == 0) {
		ssize_t n = abx__tube_fill_at(f->tube, f->file, (int64_t)f->at,
					      f->size - f->at);

		cr_assert_gt(n, 0);
		f->at += (size_t)n;
		if (abx__http_res_pour(req, f->tube, (size_t)n) < 0)
			return;
	}
	if (f->at == f->size && !f->ends++)
		abx__http_res_end(req);
}

static void answer_by_tube(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	f->req = req;
	f->tube = abx__tube_new();
	f->at = 0;
	f->ends = 0;
	abx__http_req_on_closed(req, on_closed, f);
	cr_assert_eq(abx__http_res_begin(req, 200, (int64_t)f->size), ABX_OK);
	abx__http_res_on_drain(req, 0, fill_more, f);
}

static void start(struct fixture *f, abx__http_handler handler)
{
	abx__http_server_options opts = { .loop = &f->loop,
					  .on_request = handler,
					  .userdata = f };

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&f->loop);
	cr_assert_eq(abx__http_server_new(&opts, &f->server, NULL), ABX_OK);
	cr_assert_eq(
		abx__http_server_listen_tcp(f->server, "127.0.0.1", 0, &f->port, NULL),
		ABX_OK);
	wire_open(&f->w, &f->loop, f->port);
	f->file = f->size ? make_file(f->size) : -1;
}

static void on_server_closed(void *userdata)
{
	struct fixture *f = userdata;

	f->server_closed = true;
}

static void stop(struct fixture *f)
{
	abx__http_server_close(f->server, on_server_closed, f);
	WIRE_UNTIL(&f->w, f->server_closed);
	wire_done(&f->w);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles were left open");
	abx__buf_done(&f->body);
	if (f->file >= 0)
		close(f->file);
}

/* Sends all of it, while the loop turns. */
static void say_all(struct fixture *f, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(f->w.fd, data, len, MSG_NOSIGNAL);

		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
		uv_run(&f->loop, UV_RUN_NOWAIT);
	}
}

static void say_body(struct fixture *f, size_t len)
{
	char *data = make_pattern(len);

	say_all(f, data, len);
	free(data);
}

Test(io_tube, a_long_body_comes_by_tube_and_the_next_request_is_served)
{
	struct fixture f = { 0 };
	const size_t len = 5 * MIB + 12345;
	char *data = make_pattern(len + 64), head[128];
	int n = snprintf(head, sizeof(head),
			 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
			 len);

	/* Some of the body in the head's packet, the next request in the body's last. */
	start(&f, take_by_tube);
	strcpy(data + len, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	memcpy(head + n, data, 20);
	say_all(&f, head, (size_t)n + 20);
	say_all(&f, data + 20, len - 20 + strlen(data + len));
	WIRE_UNTIL(&f.w, wire_got(&f.w, "short"));
	cr_assert(wire_got(&f.w, "taken"));
	cr_assert_eq(f.body.len, len);
	cr_assert(is_pattern(f.body.data, len));
	cr_assert_gt(f.by_tube, len / 2, "the tube was not used");
	cr_assert_lt(f.by_tube, len);
	cr_assert_eq(f.end_r, ABX_OK);
	cr_assert_eq(f.answered, 1);
	free(data);
	stop(&f);
}

Test(io_tube, expect_100_is_answered_before_a_body_by_tube)
{
	struct fixture f = { 0 };

	start(&f, take_by_tube);
	wire_say(&f.w, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
		       "Content-Length: 1048576\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "100 Continue\r\n\r\n"));
	say_body(&f, MIB);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "taken"));
	cr_assert_eq(f.by_tube, MIB);
	cr_assert(is_pattern(f.body.data, MIB));
	stop(&f);
}

Test(io_tube, a_tube_full_of_small_pieces_does_not_hold_the_body_up)
{
	struct fixture f = { .pipe_bytes = 4096 };

	start(&f, take_by_tube);
	wire_say(&f.w, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
	say_body(&f, 3000000);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "taken"));
	cr_assert_eq(f.body.len, 3000000);
	cr_assert(is_pattern(f.body.data, f.body.len));
	stop(&f);
}

Test(io_tube, what_a_stuck_tube_holds_comes_first)
{
	struct fixture f = { .pipe_bytes = 4096, .pause_each = true };

	/* The handler leaves the bytes in a tube with room for one piece, and goes on. */
	start(&f, take_by_tube);
	wire_say(&f.w, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
	say_body(&f, 150000);
	WIRE_UNTIL(&f.w, f.by_tube > 0);
	f.pause_each = false;
	abx__http_req_resume(f.req);
	say_all(&f, "", 0);
	{
		char *data = make_pattern(300000);

		say_all(&f, data + 150000, 150000);
		free(data);
	}
	WIRE_UNTIL(&f.w, wire_got(&f.w, "taken"));
	cr_assert_eq(f.body.len, 300000);
	cr_assert(is_pattern(f.body.data, f.body.len));
	stop(&f);
}

Test(io_tube, a_paused_reader_makes_the_sender_wait)
{
	struct fixture f = { .pause_each = true };
	static char piece[65536];
	size_t sent = 0;

	start(&f, take_by_tube);
	wire_say(&f.w, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 67108864\r\n\r\n");
	for (int i = 0; i < 1000; i++) {
		ssize_t n = send(f.w.fd, piece, sizeof(piece), MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	cr_assert_lt(sent, 64 * MIB, "nothing held the sender back");
	cr_assert_leq(f.by_tube, f.tube->room);
	stop(&f);
	cr_assert_eq(f.closed, 1);
}

Test(io_tube, a_sender_that_goes_in_the_middle_is_told_of)
{
	for (int reset = 0; reset < 2; reset++) {
		struct fixture f = { 0 };
		struct linger linger = { .l_onoff = 1 };

		start(&f, take_by_tube);
		wire_say(&f.w,
			 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
		say_body(&f, 400000);
		WIRE_UNTIL(&f.w, f.body.len == 400000);
		cr_assert_gt(f.by_tube, 0);
		if (reset)
			setsockopt(f.w.fd, SOL_SOCKET, SO_LINGER, &linger,
				   sizeof(linger));
		wire_close(&f.w);
		WIRE_UNTIL(&f.w, f.closed == 1);
		cr_assert_eq(f.ends, 1);
		cr_assert_eq(f.end_r, ABX_EIO);
		cr_assert_eq(f.answered, 0);
		stop(&f);
	}
}

Test(io_tube, an_answer_by_tube_is_whole_and_the_connection_is_kept)
{
	struct fixture f = { .size = 5 * MIB + 321 };
	size_t head;

	start(&f, answer_by_tube);
	f.w.deaf = true;
	wire_say(&f.w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < 20; i++)
		wire_turn(&f.w);
	cr_assert_lt(f.at, f.size, "nothing held the answer back");
	f.w.deaf = false;
	WIRE_UNTIL(&f.w, f.closed == 1);
	head = (size_t)(strstr(abx__buf_str(&f.w.got), "\r\n\r\n") + 4 - f.w.got.data);
	WIRE_UNTIL(&f.w, f.w.got.len >= head + f.size);
	cr_assert_eq(f.w.got.len, head + f.size);
	cr_assert(is_pattern(f.w.got.data + head, f.size));
	cr_assert_eq(f.answered, 1);
	abx__buf_clear(&f.w.got);
	wire_say(&f.w, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
	WIRE_UNTIL(&f.w, f.closed == 2);
	wire_say(&f.w, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
	WIRE_UNTIL(&f.w, f.closed == 3);
	cr_assert_eq(wire_count(&f.w, "HTTP/1.1 200"), 2);
	cr_assert_lt(f.w.got.len, 1000, "an answer to HEAD has no body");
	stop(&f);
}

Test(io_tube, a_reader_that_goes_in_the_middle_of_an_answer_ends_it)
{
	struct fixture f = { .size = 32 * MIB };

	start(&f, answer_by_tube);
	f.w.deaf = true;
	wire_say(&f.w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < 20; i++)
		wire_turn(&f.w);
	wire_close(&f.w);
	WIRE_UNTIL(&f.w, f.closed == 1);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

static void pour_wrongly(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->tube = abx__tube_new();
	abx__tube_fill_at(f->tube, f->file, 0, 100);
	cr_assert_eq(abx__http_res_pour(req, f->tube, 100), ABX_ESTATE);
	abx__http_res_begin(req, 200, 50);
	cr_assert_eq(abx__http_res_pour(req, f->tube, 100), ABX_ETOOBIG);
	abx__http_res_abort(req);
	cr_assert_eq(abx__http_res_pour(req, f->tube, 50), ABX_EIO);
	abx__http_req_on_closed(req, on_closed, f);
}

static void pour_chunked(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->tube = abx__tube_new();
	abx__http_req_on_closed(req, on_closed, f);
	abx__tube_fill_at(f->tube, f->file, 0, 100);
	abx__http_res_begin(req, 200, -1);
	cr_assert_eq(abx__http_res_pour(req, f->tube, 100), ABX_ESTATE);
	abx__http_res_end(req);
}

Test(io_tube, an_answer_by_tube_is_held_to_its_framing)
{
	struct fixture f = { .size = 4096 }, g = { .size = 4096 };

	start(&f, pour_wrongly);
	wire_say(&f.w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	WIRE_UNTIL(&f.w, f.closed == 1);
	stop(&f);
	start(&g, pour_chunked);
	wire_say(&g.w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	WIRE_UNTIL(&g.w, g.closed == 1);
	stop(&g);
}

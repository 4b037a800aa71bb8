/*
 * The HTTP client on a descriptor: a socket pair, with the test as the server at its
 * other end.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "io/http-conn.h"

struct fixture {
	uv_loop_t loop;
	abx__http_scratch scratch;
	abx__http_conn *conn;
	int fd;        /* the server's end */
	abx__buf sent; /* what the server got */
	bool sent_eof;
	abx__buf body;
	int interims, heads, ends, fails, drains, lost;
	int status, fail_r;
	char why[128];
	bool pause_each, park_at_end, close_at_head;
	bool reusable;
};

static void on_interim(void *userdata, const abx__http_head *head)
{
	struct fixture *f = userdata;

	f->interims++;
	f->status = head->status;
}

static void on_head(void *userdata, const abx__http_head *head)
{
	struct fixture *f = userdata;

	f->heads++;
	f->status = head->status;
	if (f->close_at_head) {
		abx__http_conn_close(f->conn);
		f->conn = NULL;
	}
}

static void on_lost(void *userdata)
{
	struct fixture *f = userdata;

	f->lost++;
}

static void on_body(void *userdata, const char *data, size_t len)
{
	struct fixture *f = userdata;

	cr_assert_eq(f->fails, 0);
	if (data) {
		cr_assert_gt(len, 0);
		abx__buf_add(&f->body, data, len);
		if (f->pause_each)
			abx__http_conn_pause(f->conn);
		return;
	}
	f->ends++;
	f->reusable = abx__http_conn_is_reusable(f->conn);
	if (f->park_at_end)
		abx__http_conn_park(f->conn, on_lost, f);
}

static void on_drain(void *userdata)
{
	struct fixture *f = userdata;

	f->drains++;
}

static void on_fail(void *userdata, int r, const char *why)
{
	struct fixture *f = userdata;

	f->fails++;
	f->fail_r = r;
	snprintf(f->why, sizeof(f->why), "%s", why);
}

static const abx__http_conn_events events = {
	.interim = on_interim,
	.head = on_head,
	.body = on_body,
	.drain = on_drain,
	.fail = on_fail,
};

static void start(struct fixture *f)
{
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&f->loop);
	f->scratch.size = 65536;
	cr_assert_eq(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
		0);
	f->fd = fds[1];
	cr_assert_eq(abx__http_conn_new(&f->loop, fds[0], &f->scratch, &f->conn, NULL),
		     ABX_OK);
}

static void turn(struct fixture *f)
{
	char buf[65536];
	ssize_t n = -1;

	uv_run(&f->loop, UV_RUN_NOWAIT);
	if (f->fd >= 0)
		n = recv(f->fd, buf, sizeof(buf), 0);
	if (n > 0)
		abx__buf_add(&f->sent, buf, (size_t)n);
	else if (n == 0)
		f->sent_eof = true;
	if (n <= 0)
		usleep(100);
}

#define UNTIL(f, cond)                                                           \
	do {                                                                     \
		int64_t end__ = abx__mono_ms() + 3000;                           \
		while (!(cond) && abx__mono_ms() < end__)                        \
			turn(f);                                                 \
		cr_assert(cond, "not within 3 s: %s; why: %s", #cond, (f)->why); \
	} while (0)

static void say(struct fixture *f, const char *text)
{
	cr_assert_eq(send(f->fd, text, strlen(text), MSG_NOSIGNAL),
		     (ssize_t)strlen(text));
}

static void ask(struct fixture *f)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

	cr_assert_eq(abx__http_conn_request(f->conn, head, strlen(head),
					    ABX__HTTP_NO_BODY, 0, false, &events, f),
		     ABX_OK);
}

static void stop(struct fixture *f)
{
	abx__http_conn_close(f->conn);
	if (f->fd >= 0)
		close(f->fd);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	cr_assert_eq(uv_loop_close(&f->loop), 0);
	cr_assert_null(f->scratch.data, "the read buffer stayed");
	abx__buf_done(&f->sent);
	abx__buf_done(&f->body);
}

Test(io_http_conn, an_answer_arrives_however_it_is_cut)
{
	static const char *const rows[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
		"chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nT: x\r\n\r\n",
	};

	for (size_t row = 0; row < 2; row++) {
		for (size_t cut = 1; cut <= strlen(rows[row]); cut += 3) {
			struct fixture f = { .park_at_end = true };

			start(&f);
			ask(&f);
			UNTIL(&f, f.sent.len > 0);
			for (size_t at = 0; at < strlen(rows[row]); at += cut) {
				size_t n = strlen(rows[row]) - at < cut
						   ? strlen(rows[row]) - at
						   : cut;

				cr_assert_eq(send(f.fd, rows[row] + at, n, 0),
					     (ssize_t)n);
				uv_run(&f.loop, UV_RUN_NOWAIT);
			}
			UNTIL(&f, f.ends == 1);
			cr_assert_eq(f.heads, 1);
			cr_assert_str_eq(f.body.data, "hello");
			cr_assert(f.reusable);
			stop(&f);
		}
	}
}

Test(io_http_conn, a_connection_serves_one_request_after_the_other)
{
	struct fixture f = { .park_at_end = true };

	start(&f);
	for (int i = 1; i <= 3; i++) {
		ask(&f);
		say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
		UNTIL(&f, f.ends == i);
	}
	cr_assert_eq(f.lost, 0);
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.lost == 1);
	stop(&f);
}

Test(io_http_conn, what_comes_out_of_turn_loses_the_connection)
{
	struct fixture f = { .park_at_end = true };

	start(&f);
	ask(&f);
	say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n");
	UNTIL(&f, f.lost == 1);
	cr_assert_eq(f.ends, 1);
	stop(&f);
}

Test(io_http_conn, a_peer_that_does_not_keep_is_not_reusable)
{
	static const char *const rows[] = {
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
	};

	for (size_t i = 0; i < 2; i++) {
		struct fixture f = { 0 };

		start(&f);
		ask(&f);
		say(&f, rows[i]);
		UNTIL(&f, f.ends == 1);
		cr_assert_not(f.reusable);
		stop(&f);
	}
}

Test(io_http_conn, an_answer_may_end_with_the_connection)
{
	struct fixture f = { 0 };

	start(&f);
	ask(&f);
	say(&f, "HTTP/1.0 200 OK\n\nhello");
	UNTIL(&f, f.body.len == 5);
	cr_assert_eq(f.ends, 0);
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.ends == 1);
	cr_assert_not(f.reusable);
	stop(&f);
}

Test(io_http_conn, answers_without_a_body_end_at_once)
{
	static const char head[] = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
	struct fixture f = { .park_at_end = true };

	start(&f);
	abx__http_conn_request(f.conn, head, strlen(head), ABX__HTTP_NO_BODY, 0, true,
			       &events, &f);
	say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
	UNTIL(&f, f.ends == 1);
	ask(&f);
	say(&f, "HTTP/1.1 204 No Content\r\n\r\n");
	UNTIL(&f, f.ends == 2);
	ask(&f);
	say(&f, "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n");
	UNTIL(&f, f.ends == 3);
	cr_assert(f.reusable);
	stop(&f);
}

Test(io_http_conn, interim_answers_come_first)
{
	struct fixture f = { 0 };

	start(&f);
	ask(&f);
	say(&f, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	UNTIL(&f, f.ends == 1);
	cr_assert_eq(f.interims, 2);
	cr_assert_eq(f.status, 200);
	stop(&f);
}

Test(io_http_conn, failures_say_what_happened)
{
	static const struct {
		const char *text, *why;
		int r;
		bool heard;
	} rows[] = {
		{ "", "closed without an answer", ABX_EIO, false },
		{ "HTTP/1.1 200 O", "within the answer's head", ABX_EIO, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "within the answer",
		  ABX_EIO, true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		  "chunks are broken", ABX_EPROTO, true },
		{ "SSH-2.0-x\r\n\r\n", "", ABX_EPROTO, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n",
		  "", ABX_EPROTO, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f = { 0 };

		start(&f);
		ask(&f);
		UNTIL(&f, f.sent.len > 0);
		say(&f, rows[i].text);
		close(f.fd);
		f.fd = -1;
		UNTIL(&f, f.fails == 1);
		cr_assert_eq(f.fail_r, rows[i].r, "row %zu: %s", i, f.why);
		cr_assert(strstr(f.why, rows[i].why), "row %zu: %s", i, f.why);
		cr_assert_eq(abx__http_conn_has_answer(f.conn), rows[i].heard);
		cr_assert_eq(f.ends, 0);
		stop(&f);
	}
}

Test(io_http_conn, a_head_over_the_cap_is_refused)
{
	struct fixture f = { 0 };
	char *big = malloc(80000);

	memset(big, 'x', 79999);
	big[79999] = 0;
	start(&f);
	ask(&f);
	say(&f, "HTTP/1.1 200 OK\r\nX: ");
	say(&f, big);
	UNTIL(&f, f.fails == 1);
	cr_assert_eq(f.fail_r, ABX_EPROTO);
	cr_assert(strstr(f.why, "too large"));
	free(big);
	stop(&f);
}

Test(io_http_conn, a_paused_answer_holds_the_peer_back)
{
	struct fixture f = { .pause_each = true };
	const size_t total = 4 << 20;
	char piece[4096] = { 0 };
	size_t sent = 0;

	start(&f);
	ask(&f);
	say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 4194304\r\n\r\n");
	for (int i = 0; i < 3000; i++) {
		ssize_t n = send(f.fd, piece, sizeof(piece), MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	cr_assert_lt(sent, total, "nothing held the peer back");
	while (f.body.len < total) {
		ssize_t n =
			sent < total ? send(f.fd, piece, sizeof(piece), MSG_DONTWAIT) : 0;

		sent += n > 0 ? (size_t)n : 0;
		abx__http_conn_resume(f.conn);
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	cr_assert_eq(f.ends, 0, "the end came while paused");
	abx__http_conn_resume(f.conn);
	cr_assert_eq(f.ends, 1);
	stop(&f);
}

Test(io_http_conn, request_bodies_are_framed_and_queued)
{
	static const char chunked[] =
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
	static const char sized[] =
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
	struct fixture f = { .park_at_end = true };

	start(&f);
	abx__http_conn_request(f.conn, chunked, strlen(chunked), ABX__HTTP_CHUNKED, 0,
			       false, &events, &f);
	turn(&f);
	cr_assert_eq(f.sent.len, 0, "the head waits for the first piece");
	abx__http_conn_flush(f.conn);
	UNTIL(&f, f.sent.len == strlen(chunked));
	cr_assert_eq(abx__http_conn_write(f.conn, "abc", 3), ABX_OK);
	cr_assert_eq(abx__http_conn_end(f.conn), ABX_OK);
	cr_assert_eq(abx__http_conn_write(f.conn, "abc", 3), ABX_ESTATE);
	UNTIL(&f, f.sent.len == strlen(chunked) + 13);
	cr_assert_str_eq(f.sent.data + strlen(chunked), "3\r\nabc\r\n0\r\n\r\n");
	say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	UNTIL(&f, f.ends == 1);

	abx__buf_clear(&f.sent);
	abx__http_conn_request(f.conn, sized, strlen(sized), ABX__HTTP_LENGTH, 3, false,
			       &events, &f);
	cr_assert_eq(abx__http_conn_write(f.conn, "abcd", 4), ABX_ETOOBIG);
	cr_assert_eq(abx__http_conn_end(f.conn), ABX_ESTATE);
	cr_assert_eq(abx__http_conn_write(f.conn, "abc", 3), ABX_OK);
	cr_assert_eq(abx__http_conn_end(f.conn), ABX_OK);
	UNTIL(&f, f.sent.len == strlen(sized) + 3);
	stop(&f);
}

Test(io_http_conn, a_slow_peer_fills_the_queue_and_drain_tells)
{
	static const char head[] =
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct fixture f = { 0 };
	char *piece = calloc(1, 262144);
	size_t written = 0;

	start(&f);
	abx__http_conn_set_low(f.conn, 65536);
	abx__http_conn_request(f.conn, head, strlen(head), ABX__HTTP_CHUNKED, 0, false,
			       &events, &f);
	while (abx__http_conn_queued(f.conn) < 1 << 20) {
		abx__http_conn_write(f.conn, piece, 262144);
		written += 262144;
	}
	cr_assert_eq(f.drains, 0);
	UNTIL(&f, f.drains == 1);
	cr_assert_leq(abx__http_conn_queued(f.conn), 65536);
	abx__http_conn_end(f.conn);
	UNTIL(&f, f.sent.len > written &&
			  strcmp(f.sent.data + f.sent.len - 5, "0\r\n\r\n") == 0);
	free(piece);
	stop(&f);
}

Test(io_http_conn, an_early_answer_is_read_though_the_body_could_not_be_sent)
{
	static const char head[] =
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct fixture f = { 0 };
	char *piece = calloc(1, 262144);

	start(&f);
	abx__http_conn_request(f.conn, head, strlen(head), ABX__HTTP_CHUNKED, 0, false,
			       &events, &f);
	abx__http_conn_write(f.conn, piece, 262144);
	say(&f, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
	close(f.fd);
	f.fd = -1;
	for (int i = 0; i < 10; i++)
		cr_assert_eq(abx__http_conn_write(f.conn, piece, 262144), ABX_OK);
	UNTIL(&f, f.ends == 1);
	cr_assert_eq(f.status, 413);
	cr_assert_eq(f.fails, 0);
	cr_assert_not(f.reusable);
	free(piece);
	stop(&f);
}

Test(io_http_conn, an_upgrade_is_raw_both_ways_and_half_closes)
{
	static const char head[] =
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
	struct fixture f = { 0 };

	start(&f);
	abx__http_conn_request(f.conn, head, strlen(head), ABX__HTTP_NO_BODY, 0, false,
			       &events, &f);
	say(&f, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
		"x\r\n\r\nraw");
	UNTIL(&f, f.body.len == 3);
	abx__buf_clear(&f.sent);
	cr_assert_eq(abx__http_conn_write(f.conn, "up", 2), ABX_OK);
	UNTIL(&f, f.sent.len == 2);
	cr_assert_eq(abx__http_conn_end(f.conn), ABX_OK);
	UNTIL(&f, f.sent_eof);
	say(&f, "still");
	UNTIL(&f, f.body.len == 8);
	cr_assert_eq(f.ends, 0);
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.ends == 1);
	cr_assert_not(abx__http_conn_is_reusable(f.conn));
	stop(&f);
}

Test(io_http_conn, it_may_be_closed_inside_a_callback)
{
	struct fixture f = { .close_at_head = true };

	start(&f);
	ask(&f);
	say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
	UNTIL(&f, f.heads == 1);
	for (int i = 0; i < 5; i++)
		turn(&f);
	cr_assert_eq(f.body.len, 0);
	cr_assert_eq(f.ends + f.fails, 0);
	stop(&f);
}

Test(io_http_conn, failing_allocations_end_in_an_answer_or_a_failure)
{
	for (unsigned n = 0; n < 12; n++) {
		struct fixture f = { 0 };
		int r;

		start(&f);
		abx__test_fail_alloc_after(n);
		r = abx__http_conn_request(f.conn, "GET / HTTP/1.1\r\n\r\n", 18,
					   ABX__HTTP_NO_BODY, 0, false, &events, &f);
		if (r == ABX_OK) {
			send(f.fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 39,
			     0);
			for (int i = 0; i < 5; i++)
				uv_run(&f.loop, UV_RUN_NOWAIT);
		}
		abx__test_alloc_reset();
		if (r == ABX_OK)
			UNTIL(&f, f.ends + f.fails == 1);
		else
			cr_assert_eq(r, ABX_ENOMEM);
		stop(&f);
	}
}

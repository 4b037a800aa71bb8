/*
 * The HTTP server: bodies of requests, by length and by chunks, wanted and not, with a
 * reader that rests and a sender that goes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http-fixture.h"

/* ---- bodies ---- */

Test(io_http_server, bodies_arrive_by_length_and_by_chunks)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_echo);
	fixture_say(&f,
		    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfirstPOST / "
		    "HTTP/1.1\r\nHost: a\r\n"
		    "Transfer-Encoding: chunked\r\n\r\n3\r\nsec\r\n3\r\nond\r\n0\r\nT: "
		    "x\r\n\r\n"
		    "POST / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, f.answered == 3);
	cr_assert(fixture_got(&f, "\r\n\r\nfirstHTTP/1.1"));
	cr_assert(fixture_got(&f, "\r\n\r\nsecondHTTP/1.1"));
	cr_assert(fixture_got(&f, "Content-Length: 0\r\n\r\n"));
	fixture_stop(&f);
}

Test(io_http_server, broken_chunks_reach_the_handler_and_end_the_connection)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_echo);
	fixture_say(
		&f,
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
	UNTIL(&f, f.eof);
	cr_assert_eq(f.body_r, ABX_EPROTO);
	cr_assert(fixture_got(&f, "HTTP/1.1 400 "));
	fixture_stop(&f);
}

Test(io_http_server, a_body_over_the_handlers_cap_is_413)
{
	static const char *const rows[] = {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
		"chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n",
	};

	for (size_t i = 0; i < 2; i++) {
		struct fixture f = { .limit = 10 };

		fixture_start(&f, fixture_echo);
		fixture_say(&f, rows[i]);
		UNTIL(&f, fixture_got(&f, "too big"));
		cr_assert(fixture_got(&f, "HTTP/1.1 413 "));
		cr_assert_eq(f.body_r, ABX_ETOOBIG);
		cr_assert_eq(f.body_ends, 1);
		fixture_stop(&f);
	}
}

Test(io_http_server, a_huge_refused_body_still_gets_its_answer)
{
	struct fixture f = { .limit = 10 };
	char piece[4096];
	size_t sent = 0;

	memset(piece, 'x', sizeof(piece));
	fixture_start(&f, fixture_echo);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
	while (sent < 4000000) {
		ssize_t n = send(f.fd, piece, sizeof(piece), MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		fixture_turn(&f);
	}
	UNTIL(&f, f.eof || f.reset);
	cr_assert(fixture_got(&f, "too big"), "the answer was lost");
	cr_assert(fixture_got(&f, "Connection: close"));
	fixture_stop(&f);
}

Test(io_http_server, a_short_unread_body_does_not_cost_the_connection)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_hello);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nunread");
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_count(&f, "hello") == 2);
	fixture_stop(&f);
}

Test(io_http_server, expect_100_is_answered_when_the_body_is_asked_for)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_echo);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: "
			"100-continue\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "HTTP/1.1 100 Continue\r\n\r\n"));
	fixture_say(&f, "abc");
	UNTIL(&f, fixture_got(&f, "\r\n\r\nabc"));
	fixture_stop(&f);
}

Test(io_http_server, without_asking_for_the_body_there_is_no_100)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_hello);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: "
			"100-continue\r\n\r\n");
	UNTIL(&f, f.eof);
	cr_assert_not(fixture_got(&f, "100 Continue"));
	cr_assert(fixture_got(&f, "Connection: close\r\n\r\nhello"));
	fixture_stop(&f);
}

static void take_slowly(abx__http_req *req, const char *data, size_t len, int r,
			void *userdata)
{
	struct fixture *f = userdata;

	if (!data) {
		f->body_ends++;
		f->body_r = r;
		if (r == ABX_OK)
			abx__http_res_send(req, 200, NULL, "done", 4);
		return;
	}
	f->calls++;
	abx__buf_add(&f->body, data, len);
	abx__http_req_pause(req);
}

static void keep_and_take_slowly(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->req = req;
	abx__http_req_on_closed(req, fixture_closed, f);
	abx__http_req_read(req, take_slowly, f);
}

Test(io_http_server, a_paused_handler_makes_the_sender_wait)
{
	struct fixture f = { 0 };
	const size_t total = 32 << 20;
	char piece[65536];
	size_t sent = 0, before;

	memset(piece, 'x', sizeof(piece));
	fixture_start(&f, keep_and_take_slowly);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 33554432\r\n\r\n");
	for (int i = 0; i < 400; i++) {
		ssize_t n = send(f.fd, piece, sizeof(piece), MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	cr_assert_lt(sent, total, "nothing held the sender back");
	cr_assert_leq(f.calls, 1);
	before = f.body.len;
	while (f.body.len < total) {
		size_t want = total - sent < sizeof(piece) ? total - sent : sizeof(piece);
		ssize_t n = want ? send(f.fd, piece, want, MSG_NOSIGNAL) : 0;

		sent += n > 0 ? (size_t)n : 0;
		cr_assert_not_null(f.req);
		abx__http_req_resume(f.req);
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	cr_assert_gt(f.body.len, before);
	abx__http_req_resume(f.req);
	UNTIL(&f, fixture_got(&f, "done"));
	cr_assert_eq(f.body.len, total);
	fixture_stop(&f);
}

Test(io_http_server, a_client_that_breaks_off_its_body_is_told_to_the_handler)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_echo);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\nabc");
	UNTIL(&f, f.calls == 1);
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.body_r, ABX_EIO);
	cr_assert_eq(f.body_ends, 1);
	cr_assert_eq(f.answered, 0);
	fixture_stop(&f);
}

Test(io_http_server, what_is_pipelined_behind_a_large_body_is_served)
{
	struct fixture f = { .limit = 1 << 20 };
	char *body = malloc(40001);

	memset(body, 'x', 40000);
	body[40000] = 0;
	fixture_start(&f, fixture_echo);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n");
	UNTIL(&f, f.calls == 1);
	fixture_say(&f, body);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nsecond");
	UNTIL(&f, fixture_got(&f, "\r\n\r\nsecond"));
	free(body);
	fixture_stop(&f);
}

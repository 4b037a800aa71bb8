/*
 * The HTTP server over real sockets: framing, back pressure, keeping and ending
 * connections, upgrades, deadlines. A test is one thread: the client's descriptor is
 * polled between turns of the loop.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "io/http-server.h"

struct fixture {
	uv_loop_t loop;
	abx__http_server *server;
	uint16_t port;
	int fd; /* the client's */
	abx__buf got;
	bool eof, reset;
	bool server_closed;
	/* what handlers left */
	int calls, closed, answered;
	abx__http_req *req;
	abx__buf body;
	int body_r, body_ends;
	size_t limit;
};

static void closed_cb(abx__http_req *req, bool answered, void *userdata)
{
	struct fixture *f = userdata;

	(void)req;
	f->closed++;
	f->answered += answered;
	f->req = NULL;
}

static void start_with(struct fixture *f, abx__http_server_options opts)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct sockaddr_in addr = { .sin_family = AF_INET };

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&f->loop);
	opts.loop = &f->loop;
	opts.userdata = f;
	cr_assert_eq(abx__http_server_new(&opts, &f->server, &err), ABX_OK);
	cr_assert_eq(
		abx__http_server_listen_tcp(f->server, "127.0.0.1", 0, &f->port, &err),
		ABX_OK, "%s", abx_error_message(err));
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	addr.sin_port = htons(f->port);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(f->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	fcntl(f->fd, F_SETFL, O_NONBLOCK);
}

static void start(struct fixture *f, abx__http_handler handler)
{
	start_with(f, (abx__http_server_options){ .on_request = handler });
}

static void turn(struct fixture *f)
{
	char buf[65536];
	ssize_t n;

	uv_run(&f->loop, UV_RUN_NOWAIT);
	n = f->fd >= 0 ? recv(f->fd, buf, sizeof(buf), 0) : -1;
	if (n > 0)
		abx__buf_add(&f->got, buf, (size_t)n);
	else if (n == 0)
		f->eof = true;
	else if (f->fd >= 0 && errno == ECONNRESET)
		f->reset = true;
	if (n <= 0)
		usleep(200);
}

/* Turns the loop until `cond` holds, at most three seconds. */
#define UNTIL(f, cond)                                                \
	do {                                                          \
		int64_t end__ = abx__mono_ms() + 3000;                \
		while (!(cond) && abx__mono_ms() < end__)             \
			turn(f);                                      \
		cr_assert(cond, "not within 3 s: %s; got: %s", #cond, \
			  abx__buf_str(&(f)->got));                   \
	} while (0)

static bool got(const struct fixture *f, const char *text)
{
	return strstr(abx__buf_str(&f->got), text) != NULL;
}

static int count(const struct fixture *f, const char *text)
{
	const char *p = abx__buf_str(&f->got);
	int n = 0;

	while ((p = strstr(p, text))) {
		n++;
		p += strlen(text);
	}
	return n;
}

static void say(struct fixture *f, const char *text)
{
	size_t len = strlen(text);

	cr_assert_eq(send(f->fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void server_closed(void *userdata)
{
	struct fixture *f = userdata;

	f->server_closed = true;
}

static void stop(struct fixture *f)
{
	abx__http_server_close(f->server, server_closed, f);
	UNTIL(f, f->server_closed);
	if (f->fd >= 0)
		close(f->fd);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles were left open");
	abx__buf_done(&f->got);
	abx__buf_done(&f->body);
}

/* ---- handlers ---- */

static void say_hello(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, closed_cb, f);
	cr_assert_eq(abx__http_res_send(req, 200, "text/plain", "hello", 5), ABX_OK);
}

static void keep(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, closed_cb, f);
}

static void echo_done(abx__http_req *req, int r, const char *data, size_t len,
		      void *userdata)
{
	struct fixture *f = userdata;

	f->body_r = r;
	f->body_ends++;
	if (r == ABX_ETOOBIG)
		abx__http_res_send(req, 413, "text/plain", "too big", 7);
	else if (r == ABX_EPROTO)
		abx__http_res_send(req, 400, "text/plain", "broken", 6);
	else if (r == ABX_OK)
		abx__http_res_send(req, 200, "text/plain", data, len);
}

static void echo(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, closed_cb, f);
	abx__http_req_read_all(req, f->limit ? f->limit : 1 << 20, echo_done, f);
}

/* ---- answers and connections ---- */

Test(io_http_server, a_small_answer_keeps_the_connection)
{
	struct fixture f = { 0 };

	start(&f, say_hello);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "hello"));
	cr_assert(got(&f, "HTTP/1.1 200 OK\r\nDate: "));
	cr_assert(got(&f, "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"));
	cr_assert_not(got(&f, "Connection:"));
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, count(&f, "hello") == 2);
	UNTIL(&f, f.answered == 2);
	stop(&f);
}

Test(io_http_server, pipelined_requests_are_answered_in_order_one_at_a_time)
{
	struct fixture f = { 0 };

	start(&f, keep);
	say(&f, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET "
		"/3 HTTP");
	for (int i = 1; i <= 2; i++) {
		char path[8];

		UNTIL(&f, f.req);
		snprintf(path, sizeof(path), "/%d", i);
		cr_assert_eq(f.calls, i);
		cr_assert_str_eq(abx__http_req_path(f.req), path);
		abx__http_res_send(f.req, 200, NULL, NULL, 0);
		UNTIL(&f, f.answered == i);
	}
	say(&f, "/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, f.calls == 3);
	cr_assert_str_eq(abx__http_req_path(f.req), "/3");
	stop(&f);
	cr_assert_eq(f.closed, 3);
	cr_assert_eq(f.answered, 2);
}

Test(io_http_server, a_head_may_come_byte_by_byte)
{
	static const char text[] =
		"\r\nPOST /x?y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\n0\r\n\r\n";
	struct fixture f = { 0 };

	start(&f, echo);
	for (size_t i = 0; i < strlen(text); i++) {
		char one[2] = { text[i], 0 };

		say(&f, one);
		turn(&f);
	}
	UNTIL(&f, got(&f, "\r\n\r\nabc"));
	stop(&f);
}

Test(io_http_server, connection_close_is_honoured)
{
	struct fixture f = { 0 };

	start(&f, say_hello);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	UNTIL(&f, f.eof);
	cr_assert(got(&f, "Connection: close\r\n\r\nhello"));
	stop(&f);
}

static void stream_abc(abx__http_req *req, void *userdata)
{
	abx__http_req_on_closed(req, closed_cb, userdata);
	abx__http_res_begin(req, 200, -1);
	abx__http_res_write(req, "a", 1);
	abx__http_res_write(req, "bc", 2);
	abx__http_res_end(req);
}

Test(io_http_server, a_stream_is_chunked_and_to_http_1_0_ends_with_the_connection)
{
	struct fixture f = { 0 };

	start(&f, stream_abc);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f,
	      got(&f,
		  "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"));
	abx__buf_clear(&f.got);
	say(&f, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	UNTIL(&f, f.eof);
	cr_assert(got(&f, "Connection: close\r\n\r\nabc"));
	cr_assert_not(got(&f, "chunked"));
	cr_assert_eq(f.answered, 2);
	stop(&f);
}

Test(io_http_server, http_1_0_is_kept_when_it_asks)
{
	struct fixture f = { 0 };

	start(&f, say_hello);
	say(&f, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	UNTIL(&f, got(&f, "Connection: keep-alive\r\n\r\nhello"));
	say(&f, "GET / HTTP/1.0\r\n\r\n");
	UNTIL(&f, f.eof);
	cr_assert_eq(count(&f, "hello"), 2);
	stop(&f);
}

Test(io_http_server, head_204_and_304_have_no_body)
{
	struct fixture f = { 0 };

	start(&f, say_hello);
	say(&f, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "Content-Length: 5\r\n\r\n") && f.answered == 1);
	cr_assert_not(got(&f, "hello"));
	stop(&f);
}

static void no_content(abx__http_req *req, void *userdata)
{
	(void)userdata;
	abx__http_res_send(req, 204, NULL, NULL, 0);
}

Test(io_http_server, an_answer_204_names_no_length)
{
	struct fixture f = { 0 };

	start(&f, no_content);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "\r\n\r\n"));
	cr_assert(got(&f, "204 No Content"));
	cr_assert_not(got(&f, "Content-Length"));
	stop(&f);
}

static void check_answer_rules(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	cr_assert_eq(abx__http_res_header(req, "X-A", "b\r\nX-Evil: 1"), ABX_EINVAL);
	cr_assert_eq(abx__http_res_header(req, "X A", "b"), ABX_EINVAL);
	cr_assert_eq(abx__http_res_header(req, "", "b"), ABX_EINVAL);
	cr_assert_eq(abx__http_res_header(req, "Content-Length", "1"), ABX_EINVAL);
	cr_assert_eq(abx__http_res_header(req, "Transfer-Encoding", "chunked"),
		     ABX_EINVAL);
	cr_assert_eq(abx__http_res_header(req, "X-A", "1"), ABX_OK);
	cr_assert_eq(abx__http_res_header(req, "Date", "now"), ABX_OK);
	cr_assert_eq(abx__http_res_write(req, "x", 1), ABX_ESTATE);
	cr_assert_eq(abx__http_res_end(req), ABX_ESTATE);
	cr_assert_eq(abx__http_res_begin(req, 99, 3), ABX_EINVAL);
	cr_assert_not(abx__http_res_begun(req));
	cr_assert_eq(abx__http_res_begin(req, 200, 3), ABX_OK);
	cr_assert(abx__http_res_begun(req));
	cr_assert_eq(abx__http_res_begin(req, 200, 3), ABX_ESTATE);
	cr_assert_eq(abx__http_res_header(req, "X-B", "1"), ABX_ESTATE);
	cr_assert_eq(abx__http_res_write(req, "abcd", 4), ABX_ETOOBIG);
	cr_assert_eq(abx__http_res_write(req, "abc", 3), ABX_OK);
	cr_assert_eq(abx__http_res_end(req), ABX_OK);
	cr_assert_eq(abx__http_res_write(req, "x", 1), ABX_ESTATE);
	f->calls++;
}

Test(io_http_server, an_answer_is_held_to_its_own_framing)
{
	struct fixture f = { 0 };

	start(&f, check_answer_rules);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "\r\n\r\nabc"));
	cr_assert(got(&f, "X-A: 1\r\nDate: now\r\nContent-Length: 3\r\n\r\n"));
	cr_assert_eq(count(&f, "Date:"), 1);
	stop(&f);
}

static void end_short(abx__http_req *req, void *userdata)
{
	abx__http_req_on_closed(req, closed_cb, userdata);
	abx__http_res_begin(req, 200, 10);
	abx__http_res_write(req, "abc", 3);
	cr_assert_eq(abx__http_res_end(req), ABX_ESTATE);
}

Test(io_http_server, ending_short_breaks_the_connection)
{
	struct fixture f = { 0 };

	start(&f, end_short);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, f.eof || f.reset);
	cr_assert_eq(f.closed, 1);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

static void abort_stream(abx__http_req *req, void *userdata)
{
	(void)userdata;
	abx__http_res_begin(req, 200, -1);
	abx__http_res_write(req, "abc", 3);
	abx__http_res_abort(req);
}

Test(io_http_server, an_aborted_answer_to_http_1_0_is_a_reset_not_an_end)
{
	struct fixture f = { 0 };

	start(&f, abort_stream);
	say(&f, "GET / HTTP/1.0\r\n\r\n");
	UNTIL(&f, f.eof || f.reset);
	cr_assert(f.reset);
	stop(&f);
}

static void hints(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	abx__http_res_header(req, "Link", "</s.css>");
	f->body_r = abx__http_res_interim(req, 103);
	abx__http_res_send(req, 200, NULL, "ok", 2);
}

Test(io_http_server, interim_answers_go_first)
{
	struct fixture f = { 0 };

	start(&f, hints);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "\r\n\r\nok"));
	cr_assert(got(&f, "HTTP/1.1 103 \r\nLink: </s.css>\r\n\r\nHTTP/1.1 200 OK"));
	cr_assert_eq(count(&f, "Link"), 1);
	stop(&f);
}

/* ---- refusals ---- */

Test(io_http_server, broken_requests_are_answered_and_the_connection_ends)
{
	static const struct {
		const char *text, *status;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request" },
		{ "nonsense\r\n\r\n", "HTTP/1.1 400 " },
		{ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n",
		  "HTTP/1.1 400 " },
		{ "FROB / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 501 " },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 400 " },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f = { 0 };

		start(&f, say_hello);
		say(&f, rows[i].text);
		UNTIL(&f, f.eof);
		cr_assert(got(&f, rows[i].status), "%s", abx__buf_str(&f.got));
		cr_assert(got(&f, "Connection: close\r\n"));
		cr_assert_eq(f.calls, 0);
		stop(&f);
	}
}

Test(io_http_server, a_head_over_the_cap_is_431)
{
	struct fixture f = { 0 };
	char *big = malloc(70000);

	memset(big, 'x', 69999);
	big[69999] = 0;
	start(&f, say_hello);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
	say(&f, big);
	UNTIL(&f, f.eof);
	cr_assert(got(&f, "HTTP/1.1 431 "));
	free(big);
	stop(&f);
}

/* ---- bodies ---- */

Test(io_http_server, bodies_arrive_by_length_and_by_chunks)
{
	struct fixture f = { 0 };

	start(&f, echo);
	say(&f,
	    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfirstPOST / "
	    "HTTP/1.1\r\nHost: a\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n3\r\nsec\r\n3\r\nond\r\n0\r\nT: x\r\n\r\n"
	    "POST / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, f.answered == 3);
	cr_assert(got(&f, "\r\n\r\nfirstHTTP/1.1"));
	cr_assert(got(&f, "\r\n\r\nsecondHTTP/1.1"));
	cr_assert(got(&f, "Content-Length: 0\r\n\r\n"));
	stop(&f);
}

Test(io_http_server, broken_chunks_reach_the_handler_and_end_the_connection)
{
	struct fixture f = { 0 };

	start(&f, echo);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
	UNTIL(&f, f.eof);
	cr_assert_eq(f.body_r, ABX_EPROTO);
	cr_assert(got(&f, "HTTP/1.1 400 "));
	stop(&f);
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

		start(&f, echo);
		say(&f, rows[i]);
		UNTIL(&f, got(&f, "too big"));
		cr_assert(got(&f, "HTTP/1.1 413 "));
		cr_assert_eq(f.body_r, ABX_ETOOBIG);
		cr_assert_eq(f.body_ends, 1);
		stop(&f);
	}
}

Test(io_http_server, a_huge_refused_body_still_gets_its_answer)
{
	struct fixture f = { .limit = 10 };
	char piece[4096];
	size_t sent = 0;

	memset(piece, 'x', sizeof(piece));
	start(&f, echo);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
	while (sent < 4000000) {
		ssize_t n = send(f.fd, piece, sizeof(piece), MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		turn(&f);
	}
	UNTIL(&f, f.eof || f.reset);
	cr_assert(got(&f, "too big"), "the answer was lost");
	cr_assert(got(&f, "Connection: close"));
	stop(&f);
}

Test(io_http_server, a_short_unread_body_does_not_cost_the_connection)
{
	struct fixture f = { 0 };

	start(&f, say_hello);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nunread");
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, count(&f, "hello") == 2);
	stop(&f);
}

Test(io_http_server, expect_100_is_answered_when_the_body_is_asked_for)
{
	struct fixture f = { 0 };

	start(&f, echo);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: "
		"100-continue\r\n\r\n");
	UNTIL(&f, got(&f, "HTTP/1.1 100 Continue\r\n\r\n"));
	say(&f, "abc");
	UNTIL(&f, got(&f, "\r\n\r\nabc"));
	stop(&f);
}

Test(io_http_server, without_asking_for_the_body_there_is_no_100)
{
	struct fixture f = { 0 };

	start(&f, say_hello);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: "
		"100-continue\r\n\r\n");
	UNTIL(&f, f.eof);
	cr_assert_not(got(&f, "100 Continue"));
	cr_assert(got(&f, "Connection: close\r\n\r\nhello"));
	stop(&f);
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
	abx__http_req_on_closed(req, closed_cb, f);
	abx__http_req_read(req, take_slowly, f);
}

Test(io_http_server, a_paused_handler_makes_the_sender_wait)
{
	struct fixture f = { 0 };
	const size_t total = 32 << 20;
	char piece[65536];
	size_t sent = 0, before;

	memset(piece, 'x', sizeof(piece));
	start(&f, keep_and_take_slowly);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 33554432\r\n\r\n");
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
	UNTIL(&f, got(&f, "done"));
	cr_assert_eq(f.body.len, total);
	stop(&f);
}

Test(io_http_server, a_client_that_breaks_off_its_body_is_told_to_the_handler)
{
	struct fixture f = { 0 };

	start(&f, echo);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\nabc");
	UNTIL(&f, f.calls == 1);
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.body_r, ABX_EIO);
	cr_assert_eq(f.body_ends, 1);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

/* ---- streaming answers ---- */

static void begin_stream(abx__http_req *req, void *userdata)
{
	keep(req, userdata);
	abx__http_res_begin(req, 200, -1);
}

Test(io_http_server, the_head_of_a_stream_leaves_before_its_first_byte)
{
	struct fixture f = { 0 };

	start(&f, begin_stream);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "\r\n\r\n"));
	stop(&f);
}

Test(io_http_server, a_vanished_client_of_a_silent_stream_is_noticed)
{
	struct fixture f = { 0 };

	start(&f, begin_stream);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "\r\n\r\n"));
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

struct flood {
	struct fixture *f;
	size_t left, most_queued;
	int drains, refs_done;
	char *piece;
};

static void ref_done(void *userdata)
{
	struct flood *flood = userdata;

	flood->refs_done++;
}

static void pour(abx__http_req *req, void *userdata)
{
	struct flood *flood = userdata;

	flood->drains++;
	while (flood->left > 0 && abx__http_res_queued(req) <= 256 * 1024) {
		cr_assert_eq(abx__http_res_write_ref(req, flood->piece, 65536, ref_done,
						     flood),
			     ABX_OK);
		flood->left -= 65536;
		if (abx__http_res_queued(req) > flood->most_queued)
			flood->most_queued = abx__http_res_queued(req);
	}
	if (flood->left == 0 && flood->drains > 0 && !flood->f->body_ends++)
		cr_assert_eq(abx__http_res_end(req), ABX_OK);
}

static void flood_handler(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;
	struct flood *flood = (struct flood *)(void *)f->body.data;

	abx__http_req_on_closed(req, closed_cb, f);
	abx__http_res_begin(req, 200, (int64_t)flood->left);
	abx__http_res_on_drain(req, 128 * 1024, pour, flood);
}

Test(io_http_server, a_slow_reader_holds_a_stream_back_and_drain_goes_on)
{
	struct fixture f = { 0 };
	struct flood flood = { .f = &f, .left = 32 << 20, .piece = calloc(1, 65536) };
	char *save;

	start(&f, flood_handler);
	save = f.body.data;
	f.body.data = (char *)&flood;
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < 300; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	cr_assert_gt(flood.left, 0, "nothing held the stream back");
	cr_assert_eq(f.closed, 0);
	UNTIL(&f, f.answered == 1);
	UNTIL(&f, f.got.len > (32 << 20));
	cr_assert_eq(flood.refs_done, (32 << 20) / 65536);
	cr_assert_leq(flood.most_queued, 256 * 1024 + 2 * 65536);
	cr_assert_gt(flood.drains, 2);
	f.body.data = save;
	stop(&f);
	free(flood.piece);
}

Test(io_http_server, references_are_given_back_when_the_client_goes)
{
	struct fixture f = { 0 };
	struct flood flood = { .f = &f, .left = 4 << 20, .piece = calloc(1, 65536) };
	int given;

	start(&f, flood_handler);
	f.body.data = (char *)&flood;
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < 100; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	given = ((4 << 20) - (int)flood.left) / 65536;
	cr_assert_eq(flood.refs_done, given);
	f.body.data = NULL;
	stop(&f);
	free(flood.piece);
}

Test(io_http_server, an_answer_may_be_sent_much_later)
{
	struct fixture f = { 0 };

	start(&f, keep);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, f.req);
	for (int i = 0; i < 20; i++)
		turn(&f);
	cr_assert_eq(f.closed, 0);
	abx__http_res_send(f.req, 200, NULL, "late", 4);
	cr_assert_eq(f.closed, 0, "closed ran inside the handler's call");
	UNTIL(&f, got(&f, "late") && f.answered == 1);
	stop(&f);
}

/* ---- upgrades ---- */

static void raw_body(abx__http_req *req, const char *data, size_t len, int r,
		     void *userdata)
{
	struct fixture *f = userdata;

	f->body_r = r;
	if (!data) {
		f->body_ends++;
		if (r == ABX_OK) {
			abx__http_res_write(req, "bye", 3);
			abx__http_res_end(req);
		}
		return;
	}
	abx__http_res_write(req, data, len);
}

static void hijack(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, closed_cb, f);
	cr_assert(abx__http_req_is_upgrade(req));
	cr_assert_eq(abx__http_req_hijack(req), ABX_OK);
	abx__http_res_write(req, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 36);
	abx__http_req_read(req, raw_body, f);
}

static const char upgrade[] =
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly";

Test(io_http_server, a_hijacked_connection_is_raw_and_half_closes)
{
	struct fixture f = { 0 };

	start(&f, hijack);
	say(&f, upgrade);
	UNTIL(&f, got(&f, "\r\n\r\nearly"));
	say(&f, " bird");
	UNTIL(&f, got(&f, "early bird"));
	shutdown(f.fd, SHUT_WR);
	UNTIL(&f, f.eof);
	cr_assert(got(&f, "early birdbye"));
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.answered, 1);
	stop(&f);
}

Test(io_http_server, a_reset_of_a_hijacked_connection_is_an_error)
{
	struct fixture f = { 0 };
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	start(&f, hijack);
	say(&f, upgrade);
	UNTIL(&f, got(&f, "early"));
	setsockopt(f.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.body_r, ABX_EIO);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

/* ---- deadlines and limits ---- */

Test(io_http_server, a_head_that_comes_too_slowly_is_408)
{
	struct fixture f = { 0 };

	start_with(&f, (abx__http_server_options){ .on_request = say_hello,
						   .head_timeout_ms = 60 });
	say(&f, "GET / HT");
	UNTIL(&f, f.eof);
	cr_assert(got(&f, "HTTP/1.1 408 "));
	stop(&f);
}

Test(io_http_server, an_idle_connection_is_closed)
{
	struct fixture f = { 0 };

	start_with(&f, (abx__http_server_options){ .on_request = say_hello,
						   .idle_timeout_ms = 60 });
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "hello"));
	UNTIL(&f, f.eof);
	stop(&f);
}

Test(io_http_server, a_body_that_stalls_is_an_error_and_a_waiting_answer_is_not)
{
	struct fixture f = { 0 };
	int64_t begun;

	start_with(&f, (abx__http_server_options){ .on_request = echo,
						   .idle_timeout_ms = 60 });
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\nabc");
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.body_r, ABX_EIO);
	stop(&f);

	f = (struct fixture){ 0 };
	start_with(&f, (abx__http_server_options){ .on_request = keep,
						   .idle_timeout_ms = 60 });
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (begun = abx__mono_ms(); abx__mono_ms() < begun + 200;)
		turn(&f);
	cr_assert_eq(f.closed, 0);
	stop(&f);
}

Test(io_http_server, a_client_that_takes_nothing_is_dropped)
{
	struct fixture f = { 0 };
	struct flood flood = { .f = &f, .left = 32 << 20, .piece = calloc(1, 65536) };
	int fd;

	start_with(&f, (abx__http_server_options){ .on_request = flood_handler,
						   .idle_timeout_ms = 80 });
	f.body.data = (char *)&flood;
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	fd = f.fd;
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.answered, 0);
	close(fd);
	f.body.data = NULL;
	stop(&f);
	free(flood.piece);
}

Test(io_http_server, connections_over_the_limit_are_closed_at_once)
{
	struct fixture f = { 0 };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	char c;
	int fd;

	start_with(&f, (abx__http_server_options){ .on_request = say_hello,
						   .max_connections = 1 });
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "hello"));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	addr.sin_port = htons(f.port);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	for (int i = 0; i < 20; i++)
		turn(&f);
	cr_assert_eq(recv(fd, &c, 1, 0), 0);
	close(fd);
	stop(&f);
}

/* ---- listening ---- */

static int connect_unix(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		return -1;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void tell_unix(abx__http_req *req, void *userdata)
{
	(void)userdata;
	abx__http_res_send(req, 200, NULL, abx__http_req_is_unix(req) ? "unix" : "tcp",
			   4);
}

Test(io_http_server,
     a_unix_socket_has_its_mode_replaces_a_stale_file_and_refuses_a_live_one)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	char dir[] = "/tmp/abx-io-XXXXXX", path[64], long_path[200];
	struct fixture f = { 0 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int stale;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	stale = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert_eq(bind(stale, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(stale);

	start(&f, tell_unix);
	cr_assert_eq(abx__http_server_listen_unix(f.server, path, 0600, &err), ABX_OK,
		     "%s", abx_error_message(err));
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(abx__http_server_listen_unix(f.server, path, 0600, &err),
		     ABX_EEXISTS);
	cr_assert(strstr(abx_error_message(err), "somebody listens"));
	memset(long_path, 'x', sizeof(long_path));
	long_path[199] = 0;
	cr_assert_eq(abx__http_server_listen_unix(f.server, long_path, 0600, &err),
		     ABX_EINVAL);
	close(f.fd);
	f.fd = connect_unix(path);
	say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, got(&f, "unix"));
	stop(&f);
	cr_assert_eq(stat(path, &st), -1, "the socket file stayed behind");
	rmdir(dir);
}

Test(io_http_server, a_port_in_use_is_said)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct fixture f = { 0 };

	start(&f, say_hello);
	cr_assert_eq(
		abx__http_server_listen_tcp(f.server, "127.0.0.1", f.port, NULL, &err),
		ABX_EEXISTS);
	cr_assert(strstr(abx_error_message(err), "listen on 127.0.0.1 port"));
	cr_assert_eq(abx__http_server_listen_tcp(f.server, "nowhere", 1, NULL, &err),
		     ABX_EINVAL);
	stop(&f);
}

Test(io_http_server, closing_with_everything_open_leaves_nothing)
{
	struct fixture f = { 0 };

	start(&f, begin_stream);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
	UNTIL(&f, f.calls == 1);
	stop(&f);
	cr_assert_eq(f.closed, 1);
	cr_assert_eq(f.answered, 0);
}

static void try_hello(abx__http_req *req, void *userdata)
{
	(void)userdata;
	if (abx__http_res_header(req, "X-A", "b") < 0 ||
	    abx__http_res_send(req, 200, "text/plain", "hello", 5) < 0)
		abx__http_res_abort(req);
}

Test(io_http_server, failing_allocations_end_in_an_answer_or_a_closed_connection)
{
	for (unsigned n = 0; n < 40; n++) {
		struct fixture f = { 0 };
		int64_t end = abx__mono_ms() + 2000;

		start(&f, try_hello);
		turn(&f);
		say(&f, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
		abx__test_fail_alloc_after(n);
		for (int i = 0; i < 5; i++)
			uv_run(&f.loop, UV_RUN_NOWAIT);
		abx__test_alloc_reset();
		while (!f.eof && !f.reset && abx__mono_ms() < end)
			turn(&f);
		cr_assert(f.eof || f.reset || got(&f, "hello"), "allocation %u: neither",
			  n);
		stop(&f);
	}
}

Test(io_http_server, what_is_pipelined_behind_a_large_body_is_served)
{
	struct fixture f = { .limit = 1 << 20 };
	char *body = malloc(40001);

	memset(body, 'x', 40000);
	body[40000] = 0;
	start(&f, echo);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n");
	UNTIL(&f, f.calls == 1);
	say(&f, body);
	say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nsecond");
	UNTIL(&f, got(&f, "\r\n\r\nsecond"));
	free(body);
	stop(&f);
}

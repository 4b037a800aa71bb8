/*
 * The HTTP server over real sockets: what it answers, how it frames that, when it keeps a
 * connection and what it refuses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http-fixture.h"

/* ---- answers and connections ---- */

Test(io_http_server, a_small_answer_keeps_the_connection)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_hello);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "hello"));
	cr_assert(fixture_got(&f, "HTTP/1.1 200 OK\r\nDate: "));
	cr_assert(fixture_got(
		&f, "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"));
	cr_assert_not(fixture_got(&f, "Connection:"));
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_count(&f, "hello") == 2);
	UNTIL(&f, f.answered == 2);
	fixture_stop(&f);
}

Test(io_http_server, pipelined_requests_are_answered_in_order_one_at_a_time)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_keep);
	fixture_say(
		&f,
		"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET "
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
	fixture_say(&f, "/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, f.calls == 3);
	cr_assert_str_eq(abx__http_req_path(f.req), "/3");
	fixture_stop(&f);
	cr_assert_eq(f.closed, 3);
	cr_assert_eq(f.answered, 2);
}

Test(io_http_server, a_head_may_come_byte_by_byte)
{
	static const char text[] =
		"\r\nPOST /x?y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\n0\r\n\r\n";
	struct fixture f = { 0 };

	fixture_start(&f, fixture_echo);
	for (size_t i = 0; i < strlen(text); i++) {
		char one[2] = { text[i], 0 };

		fixture_say(&f, one);
		fixture_turn(&f);
	}
	UNTIL(&f, fixture_got(&f, "\r\n\r\nabc"));
	fixture_stop(&f);
}

Test(io_http_server, connection_close_is_honoured)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_hello);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	UNTIL(&f, f.eof);
	cr_assert(fixture_got(&f, "Connection: close\r\n\r\nhello"));
	fixture_stop(&f);
}

static void stream_abc(abx__http_req *req, void *userdata)
{
	abx__http_req_on_closed(req, fixture_closed, userdata);
	abx__http_res_begin(req, 200, -1);
	abx__http_res_write(req, "a", 1);
	abx__http_res_write(req, "bc", 2);
	abx__http_res_end(req);
}

Test(io_http_server, a_stream_is_chunked_and_to_http_1_0_ends_with_the_connection)
{
	struct fixture f = { 0 };

	fixture_start(&f, stream_abc);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "Transfer-Encoding: "
				  "chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"));
	abx__buf_clear(&f.got);
	fixture_say(&f, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	UNTIL(&f, f.eof);
	cr_assert(fixture_got(&f, "Connection: close\r\n\r\nabc"));
	cr_assert_not(fixture_got(&f, "chunked"));
	cr_assert_eq(f.answered, 2);
	fixture_stop(&f);
}

Test(io_http_server, http_1_0_is_kept_when_it_asks)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_hello);
	fixture_say(&f, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "Connection: keep-alive\r\n\r\nhello"));
	fixture_say(&f, "GET / HTTP/1.0\r\n\r\n");
	UNTIL(&f, f.eof);
	cr_assert_eq(fixture_count(&f, "hello"), 2);
	fixture_stop(&f);
}

Test(io_http_server, head_204_and_304_have_no_body)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_hello);
	fixture_say(&f, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "Content-Length: 5\r\n\r\n") && f.answered == 1);
	cr_assert_not(fixture_got(&f, "hello"));
	fixture_stop(&f);
}

static void no_content(abx__http_req *req, void *userdata)
{
	(void)userdata;
	abx__http_res_send(req, 204, NULL, NULL, 0);
}

Test(io_http_server, an_answer_204_names_no_length)
{
	struct fixture f = { 0 };

	fixture_start(&f, no_content);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "\r\n\r\n"));
	cr_assert(fixture_got(&f, "204 No Content"));
	cr_assert_not(fixture_got(&f, "Content-Length"));
	fixture_stop(&f);
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

	fixture_start(&f, check_answer_rules);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "\r\n\r\nabc"));
	cr_assert(fixture_got(&f, "X-A: 1\r\nDate: now\r\nContent-Length: 3\r\n\r\n"));
	cr_assert_eq(fixture_count(&f, "Date:"), 1);
	fixture_stop(&f);
}

static void end_short(abx__http_req *req, void *userdata)
{
	abx__http_req_on_closed(req, fixture_closed, userdata);
	abx__http_res_begin(req, 200, 10);
	abx__http_res_write(req, "abc", 3);
	cr_assert_eq(abx__http_res_end(req), ABX_ESTATE);
}

Test(io_http_server, ending_short_breaks_the_connection)
{
	struct fixture f = { 0 };

	fixture_start(&f, end_short);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, f.eof || f.reset);
	cr_assert_eq(f.closed, 1);
	cr_assert_eq(f.answered, 0);
	fixture_stop(&f);
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

	fixture_start(&f, abort_stream);
	fixture_say(&f, "GET / HTTP/1.0\r\n\r\n");
	UNTIL(&f, f.eof || f.reset);
	cr_assert(f.reset);
	fixture_stop(&f);
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

	fixture_start(&f, hints);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "\r\n\r\nok"));
	cr_assert(fixture_got(&f,
			      "HTTP/1.1 103 \r\nLink: </s.css>\r\n\r\nHTTP/1.1 200 OK"));
	cr_assert_eq(fixture_count(&f, "Link"), 1);
	fixture_stop(&f);
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
		/* No blank line: they would wait for what never comes. */
		{ "\x16\x03\x01\x02", "HTTP/1.1 400 " },
		{ "\xff\xfe", "HTTP/1.1 400 " },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f = { 0 };

		fixture_start(&f, fixture_hello);
		fixture_say(&f, rows[i].text);
		UNTIL(&f, f.eof);
		cr_assert(fixture_got(&f, rows[i].status), "%s", abx__buf_str(&f.got));
		cr_assert(fixture_got(&f, "Connection: close\r\n"));
		cr_assert_eq(f.calls, 0);
		fixture_stop(&f);
	}
}

Test(io_http_server, a_head_over_the_cap_is_431)
{
	struct fixture f = { 0 };
	char *big = malloc(70000);

	memset(big, 'x', 69999);
	big[69999] = 0;
	fixture_start(&f, fixture_hello);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
	fixture_say(&f, big);
	UNTIL(&f, f.eof);
	cr_assert(fixture_got(&f, "HTTP/1.1 431 "));
	free(big);
	fixture_stop(&f);
}

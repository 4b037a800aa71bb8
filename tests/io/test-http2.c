/*
 * test-http2.c - HTTP/2 by prior knowledge over real sockets: requests, answers, and how
 * exchanges end. The same handlers would serve HTTP/1.1.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http2-fixture.h"

/* ---- requests and answers ---- */

Test(io_http2, head_arrives_as_it_does_over_http1)
{
	static const char *const more[] = { "x-one",  "1",   "cookie", "a=1",
					    "cookie", "b=2", NULL };
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, h2_describe);
	a = h2_ask_with(&f.w, "GET", "/p/a%20th?q=1", NULL, 0, false, more);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 200);
	cr_assert(h2_has(&a->body, "GET /p/a%20th?q=1 /p/a%20th q=1\n"), "%s",
		  abx__buf_str(&a->body));
	cr_assert(h2_has(&a->body, "x-one: 1\n"));
	cr_assert(h2_has(&a->body, "host: test\n"));
	cr_assert(h2_has(&a->body, "cookie: a=1; b=2\n"));
	cr_assert(h2_has(&a->body, "body 0 length 0 upgrade 0 unix 0\n"));
	cr_assert(h2_has(&a->head, "x-reply: yes\n"));
	cr_assert(h2_has(&a->head, "content-type: text/plain\n"));
	cr_assert(h2_has(&a->head, "date: "));
	cr_assert(h2_has(&a->head, "content-length: "));
	cr_assert_not(h2_has(&a->head, "upgrade"), "a field of HTTP/1.1's connection");
	cr_assert_eq(f.closed, 1);
	cr_assert_eq(f.answered, 1);
	h2_stop(&f);
}

Test(io_http2, head_request_and_empty_answers_have_no_body)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, h2_describe);
	a = h2_expect(&f, "HEAD", NULL, 200);
	cr_assert_eq(a->body.len, 0);
	cr_assert(h2_has(&a->head, "content-length: "));
	cr_assert_eq(f.answered, 1);
	h2_stop(&f);
}

static void answer_read(abx__http_req *req, int r, const char *data, size_t len,
			void *userdata)
{
	struct h2_fixture *f = userdata;

	f->read_ends++;
	f->read_r = r;
	if (r == ABX_OK)
		abx__buf_add(&f->seen, data, len);
	abx__http_res_send(req, r == ABX_ETOOBIG ? 413 : 200, "text/plain", "read", 4);
}

static void read_all(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, h2_on_closed, f);
	abx__http_req_read_all(req, 1000, answer_read, f);
}

Test(io_http2, body_of_any_framing_is_collected)
{
	static const char *const length[] = { "content-length", "5", NULL };
	struct h2_fixture f;
	struct h2_answer *a, *b, *c;

	h2_start(&f, read_all);
	a = h2_ask(&f.w, "POST", "/", "first");
	H2_UNTIL(&f.w, a->closed);
	b = h2_ask_with(&f.w, "POST", "/", "again", 5, false, length);
	H2_UNTIL(&f.w, b->closed);
	c = h2_ask(&f.w, "POST", "/", NULL);
	H2_UNTIL(&f.w, c->closed);

	cr_assert_str_eq(abx__buf_str(&f.seen), "firstagain");
	cr_assert_eq(f.read_ends, 3);
	cr_assert_eq(f.answered, 3);
	h2_stop(&f);
}

Test(io_http2, body_over_its_limit_is_413_and_told_to_stop)
{
	struct h2_fixture f;
	struct h2_answer *a;
	char big[4000];

	memset(big, 'x', sizeof(big));
	h2_start(&f, read_all);
	a = h2_ask_with(&f.w, "POST", "/", big, sizeof(big), true, NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 413);
	cr_assert_eq(a->code, NGHTTP2_NO_ERROR);
	cr_assert_eq(f.read_r, ABX_ETOOBIG);
	/* The connection goes on. */
	h2_expect(&f, "POST", "small", 200);
	h2_stop(&f);
}

Test(io_http2, length_that_is_not_kept_breaks_the_stream_alone)
{
	static const char *const length[] = { "content-length", "50", NULL };
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, read_all);
	a = h2_ask_with(&f.w, "POST", "/", "short", 5, false, length);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->code, NGHTTP2_PROTOCOL_ERROR);
	cr_assert_eq(f.answered, 0);
	h2_expect(&f, "POST", "fine", 200);
	h2_stop(&f);
}

Test(io_http2, expect_is_answered_when_the_body_is_wanted)
{
	static const char *const more[] = { "expect", "100-continue", NULL };
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, read_all);
	a = h2_ask_with(&f.w, "POST", "/", "", 0, true, more);
	H2_UNTIL(&f.w, a->interims == 1);
	a->data = "body";
	a->left = 4;
	a->holds = false;
	nghttp2_session_resume_data(f.w.ng, a->id);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_str_eq(abx__buf_str(&f.seen), "body");
	cr_assert_eq(a->status, 200);
	h2_stop(&f);
}

Test(io_http2, bad_heads_are_refused_by_name)
{
	static const struct {
		const char *method, *path;
		const char *more[4];
		int status; /* 0: the stream is reset */
	} table[] = {
		{ "CONNEXT", "/", { NULL }, 501 },
		{ "GET", "no-slash", { NULL }, 0 },
		{ "GET", "/", { "host", "other", NULL }, 400 },
		{ "GET", "/", { "host", "test", NULL }, 200 },
		{ "GET", "/", { "content-length", "x", NULL }, 0 },
		{ "GET", "/", { "connection", "close", NULL }, 0 },
		{ "OPTIONS", "*", { NULL }, 200 },
	};
	struct h2_fixture f;

	h2_start(&f, h2_describe);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct h2_answer *a = h2_ask_with(&f.w, table[i].method, table[i].path,
						  NULL, 0, false, table[i].more);

		H2_UNTIL(&f.w, a->closed);
		cr_assert_eq(a->status, table[i].status, "%zu: %d %s", i, a->status,
			     abx__buf_str(&a->body));
	}
	h2_stop(&f);
}

Test(io_http2, head_over_the_caps_is_431)
{
	const char *more[2 * 120 + 1] = { NULL };
	char *large = abx__malloc(70000);
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, h2_describe);
	for (int i = 0; i < 110; i++) {
		more[2 * i] = "x-many";
		more[2 * i + 1] = "1";
	}
	a = h2_ask_with(&f.w, "GET", "/", NULL, 0, false, more);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 431);
	memset(large, 'x', 69999);
	large[69999] = '\0';
	for (int i = 0; i < 2; i++) {
		more[2 * i] = i ? "x-large" : "x-small";
		more[2 * i + 1] = i ? large : "1";
	}
	more[4] = NULL;
	a = h2_ask_with(&f.w, "GET", "/", NULL, 0, false, more);
	H2_UNTIL(&f.w, a->closed || f.w.goaway);
	cr_assert_eq(f.calls, 0);
	abx__free(large);
	h2_stop(&f);
}

static void hijack(abx__http_req *req, void *userdata)
{
	(void)userdata;
	cr_assert_eq(abx__http_req_hijack(req), ABX_EUNSUPPORTED);
	abx__http_res_send(req, 204, NULL, NULL, 0);
}

Test(io_http2, hijacking_is_refused)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, hijack);
	a = h2_expect(&f, "GET", NULL, 204);
	cr_assert_not(h2_has(&a->head, "content-length"));
	h2_stop(&f);
}

/* ---- ends ---- */

static void abort_midway(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, h2_on_closed, f);
	if (f->calls > 1) {
		abx__http_res_send(req, 200, "text/plain", "ok", 2);
		return;
	}
	abx__http_res_begin(req, 200, 100);
	abx__http_res_write(req, "half", 4);
	abx__http_res_abort(req);
	cr_assert_eq(abx__http_res_write(req, "more", 4), ABX_EIO);
	cr_assert_eq(f->closed, 0, "closed ran inside a call of the handler's");
}

Test(io_http2, broken_off_answer_resets_its_stream_alone)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, abort_midway);
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->code, NGHTTP2_INTERNAL_ERROR);
	cr_assert_not(a->ended);
	cr_assert_eq(f.answered, 0);
	h2_expect(&f, "GET", NULL, 200);
	h2_stop(&f);
}

Test(io_http2, reset_by_the_client_ends_reading_and_the_exchange)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, h2_sum);
	a = h2_ask_with(&f.w, "PUT", "/", "part", 4, true, NULL);
	H2_UNTIL(&f.w, f.body_bytes == 4);
	nghttp2_submit_rst_stream(f.w.ng, NGHTTP2_FLAG_NONE, a->id, NGHTTP2_CANCEL);
	H2_UNTIL(&f.w, f.closed == 1);
	cr_assert_eq(f.read_r, ABX_EIO);
	cr_assert_eq(f.read_ends, 1);
	cr_assert_eq(f.answered, 0);
	h2_stop(&f);
}

Test(io_http2, client_that_goes_ends_every_exchange)
{
	struct h2_fixture f;

	h2_start(&f, h2_keep);
	for (int i = 0; i < 20; i++)
		h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, f.calls == 20);
	wire_close(&f.w.wire);
	for (int i = 0; i < 100 && f.closed < 20; i++)
		wire_turn(&f.w.wire);
	cr_assert_eq(f.closed, 20);
	cr_assert_eq(f.answered, 0);
	h2_stop(&f);
}

Test(io_http2, closing_the_server_says_goaway)
{
	struct h2_fixture f;

	h2_start(&f, h2_keep);
	h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, f.calls == 1);
	abx__http_server_close(f.server, h2_on_server_closed, &f);
	H2_UNTIL(&f.w, f.server_closed && f.w.goaway);
	cr_assert_eq(f.w.goaway_code, NGHTTP2_NO_ERROR);
	cr_assert_eq(f.closed, 1);
	h2_wire_done(&f.w);
	cr_assert_eq(uv_loop_close(&f.loop), 0);
}

Test(io_http2, http1_is_still_spoken)
{
	struct h2_fixture f;
	struct wire plain;

	h2_start(&f, h2_describe);
	wire_open(&plain, &f.loop, f.port);
	wire_say(&plain, "GET /old HTTP/1.1\r\nHost: a\r\n\r\n");
	WIRE_UNTIL(&plain, wire_got(&plain, "GET /old"));
	/* Not in the middle of a connection. */
	wire_say(&plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	WIRE_UNTIL(&plain, wire_got(&plain, "HTTP/1.1 400"));
	wire_done(&plain);
	h2_stop(&f);
}

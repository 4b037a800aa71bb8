/*
 * test-http2-streams.c - many HTTP/2 streams of one connection: none holds up another, in
 * either direction, and each has its deadlines.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http2-fixture.h"

/* ---- many streams ---- */

Test(io_http2, streams_over_the_limit_wait_or_are_refused_and_none_is_lost)
{
	struct h2_fixture f;
	struct h2_answer *a[1000];
	int done = 0;

	h2_start(&f, h2_describe);
	H2_UNTIL(&f.w, nghttp2_session_get_remote_settings(
			       f.w.ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) == 128);
	for (int i = 0; i < 1000; i++)
		a[i] = h2_ask(&f.w, "GET", "/", NULL);
	for (int i = 0; i < 1000; i++) {
		H2_UNTIL(&f.w, a[i]->closed);
		done += a[i]->status == 200;
	}
	cr_assert_eq(done, 1000);
	cr_assert_eq(f.answered, 1000);
	h2_stop(&f);
}

Test(io_http2, streams_that_wait_do_not_hold_up_others)
{
	struct h2_fixture f;
	struct h2_answer *first, *a;
	abx__http_req *waiting;

	h2_start(&f, h2_keep);
	first = h2_ask(&f.w, "GET", "/1", NULL);
	H2_UNTIL(&f.w, f.calls == 1);
	waiting = f.req;
	a = h2_ask(&f.w, "GET", "/2", NULL);
	H2_UNTIL(&f.w, f.calls == 2);
	abx__http_res_send(f.req, 200, "text/plain", "second", 6);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_not(first->closed);
	abx__http_res_send(waiting, 200, "text/plain", "first", 5);
	H2_UNTIL(&f.w, first->closed);
	cr_assert_str_eq(abx__buf_str(&first->body), "first");
	h2_stop(&f);
}

/* ---- answers with back pressure ---- */

static void write_more(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;

	while (f->to_write > 0 && abx__http_res_queued(req) < 100000) {
		size_t n = f->to_write < 30000 ? f->to_write : 30000;

		cr_assert_eq(abx__http_res_write(req, f->big, n), ABX_OK);
		f->to_write -= n;
		if (abx__http_res_queued(req) > f->queued_most)
			f->queued_most = abx__http_res_queued(req);
	}
	if (f->to_write == 0 && abx__http_res_queued(req) == 0)
		abx__http_res_end(req);
}

static void stream_much(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;

	f->calls++;
	f->req = req;
	f->to_write = 3000000;
	f->big = abx__malloc(30000);
	memset(f->big, 'y', 30000);
	abx__http_req_on_closed(req, h2_on_closed, f);
	abx__http_res_begin(req, 200, -1);
	abx__http_res_on_drain(req, 0, write_more, f);
}

Test(io_http2, long_answer_streams_with_its_queue_bounded)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, stream_much);
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->body.len, 3000000);
	cr_assert_leq(f.queued_most, 130000);
	cr_assert_not(h2_has(&a->head, "content-length"));
	cr_assert_eq(f.answered, 1);
	h2_stop(&f);
}

Test(io_http2, client_without_window_holds_its_stream_alone)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, stream_much);
	f.w.no_window = true;
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->body.len == 65535);
	for (int i = 0; i < 50; i++)
		h2_wire_turn(&f.w);
	cr_assert_eq(a->body.len, 65535);
	cr_assert_not(a->closed);
	cr_assert_eq(f.closed, 0);
	nghttp2_submit_rst_stream(f.w.ng, NGHTTP2_FLAG_NONE, a->id, NGHTTP2_CANCEL);
	H2_UNTIL(&f.w, f.closed == 1);
	cr_assert_eq(f.answered, 0);
	h2_stop(&f);
}

static void refs_done(void *userdata)
{
	((struct h2_fixture *)userdata)->read_ends++;
}

static void write_refs(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;

	f->big = abx__malloc(200000);
	memset(f->big, 'r', 200000);
	abx__http_req_on_closed(req, h2_on_closed, f);
	abx__http_res_begin(req, 200, 200000);
	cr_assert_eq(abx__http_res_write_ref(req, f->big, 100000, refs_done, f), ABX_OK);
	cr_assert_eq(abx__http_res_write_ref(req, f->big, 100000, refs_done, f), ABX_OK);
	cr_assert_eq(abx__http_res_write_ref(req, f->big, 1, refs_done, f), ABX_ETOOBIG);
	cr_assert_eq(f->read_ends, f->calls, "told inside the call");
	f->calls += 2;
	abx__http_res_end(req);
}

Test(io_http2, referenced_bytes_are_told_when_they_are_out_or_lost)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, write_refs);
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->body.len, 200000);
	cr_assert_eq(f.read_ends, 2);
	abx__free(f.big);
	f.w.no_window = true;
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->body.len > 0);
	wire_close(&f.w.wire);
	for (int i = 0; i < 100 && f.closed < 2; i++)
		wire_turn(&f.w.wire);
	cr_assert_eq(f.closed, 2);
	cr_assert_eq(f.answered, 1);
	cr_assert_eq(f.read_ends, 4);
	h2_stop(&f);
}

/* ---- bodies with back pressure ---- */

Test(io_http2, long_body_arrives_whole_and_pauses_when_told)
{
	size_t len = 2000000;
	char *big = abx__malloc(len);
	struct h2_fixture f;
	struct h2_answer *a;
	uint64_t want = 0;

	for (size_t i = 0; i < len; i++)
		want += (unsigned char)(big[i] = (char)(i % 251));
	h2_start(&f, h2_sum);
	f.to_write = 1;
	a = h2_ask_with(&f.w, "PUT", "/", big, len, false, NULL);
	H2_UNTIL(&f.w, f.body_bytes > 0);
	for (int i = 0; i < 100; i++)
		h2_wire_turn(&f.w);
	cr_assert_lt(f.body_bytes, 65537, "%zu bytes came while paused", f.body_bytes);
	cr_assert_gt(a->left, len - 1200000, "the window did not close");
	abx__http_req_resume(f.req);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 200);
	cr_assert_eq(f.body_bytes, len);
	cr_assert_eq(f.sum, want);
	abx__free(big);
	h2_stop(&f);
}

Test(io_http2, paused_bodies_do_not_hold_up_others)
{
	size_t len = 300000;
	char *big = abx__calloc(1, len);
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start(&f, h2_keep); /* nobody reads these */
	for (int i = 0; i < 40; i++)
		h2_ask_with(&f.w, "PUT", "/", big, len, false, NULL);
	H2_UNTIL(&f.w, f.calls == 40);
	for (int i = 0; i < 50; i++)
		h2_wire_turn(&f.w);
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, f.calls == 41);
	abx__http_res_send(f.req, 200, "text/plain", "ok", 2);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 200);
	abx__free(big);
	h2_stop(&f);
}

/* ---- deadlines ---- */

static void begin_only(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, h2_on_closed, f);
	abx__http_res_header(req, "Content-Type", "text/event-stream");
	abx__http_res_begin(req, 200, -1);
}

Test(io_http2, open_stream_may_be_silent_for_many_idle_deadlines)
{
	struct h2_fixture f;
	struct h2_answer *a;
	int64_t until;

	h2_start_with(&f, (abx__http_server_options){ .on_request = begin_only,
						      .idle_timeout_ms = 40,
						      .head_timeout_ms = 40 });
	a = h2_ask(&f.w, "GET", "/events", NULL);
	H2_UNTIL(&f.w, a->status == 200);
	until = abx__mono_ms() + 500;
	while (abx__mono_ms() < until)
		h2_wire_turn(&f.w);
	cr_assert_eq(f.closed, 0);
	abx__http_res_write(f.req, "data: late\n\n", 12);
	H2_UNTIL(&f.w, h2_has(&a->body, "late"));
	abx__http_res_end(f.req);
	H2_UNTIL(&f.w, a->closed && a->ended);
	/* Without a stream the connection is idle, and goes. */
	H2_UNTIL(&f.w, f.w.goaway && f.w.wire.eof);
	cr_assert_eq(f.w.goaway_code, NGHTTP2_NO_ERROR);
	h2_stop(&f);
}

Test(io_http2, client_that_owes_its_body_is_reset)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start_with(&f, (abx__http_server_options){ .on_request = h2_sum,
						      .idle_timeout_ms = 60 });
	a = h2_ask_with(&f.w, "PUT", "/", "part", 4, true, NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->code, NGHTTP2_CANCEL);
	cr_assert_eq(f.read_r, ABX_EIO);
	h2_stop(&f);
}

Test(io_http2, client_that_takes_nothing_is_reset)
{
	struct h2_fixture f;
	struct h2_answer *a;

	h2_start_with(&f, (abx__http_server_options){ .on_request = stream_much,
						      .idle_timeout_ms = 60 });
	f.w.no_window = true;
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->code, NGHTTP2_CANCEL);
	cr_assert_eq(f.closed, 1);
	h2_stop(&f);
}

Test(io_http2, preface_without_settings_is_closed_at_the_head_deadline)
{
	struct h2_fixture f;
	struct wire plain;

	h2_start_with(&f, (abx__http_server_options){ .on_request = h2_describe,
						      .head_timeout_ms = 50 });
	wire_open(&plain, &f.loop, f.port);
	wire_say(&plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	WIRE_UNTIL(&plain, plain.eof);
	wire_done(&plain);
	h2_stop(&f);
}

/*
 * HTTP/2 by prior knowledge over real sockets: requests and answers, many streams, back
 * pressure of each, resets, floods, deadlines. The same handlers would serve HTTP/1.1.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "h2-wire.h"
#include "io/http2.h"

struct fixture {
	uv_loop_t loop;
	abx__http_server *server;
	uint16_t port;
	struct h2_wire w;
	bool server_closed;
	/* what handlers left */
	int calls, closed, answered, read_ends, read_r;
	abx__http_req *req;
	size_t body_bytes;
	uint64_t sum;
	abx__buf seen;
	size_t queued_most, to_write;
	char *big;
};

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct fixture *f = userdata;

	f->closed++;
	f->answered += answered;
	if (f->req == req)
		f->req = NULL;
}

static void start_with(struct fixture *f, abx__http_server_options opts)
{
	signal(SIGPIPE, SIG_IGN);
	memset(f, 0, sizeof(*f));
	uv_loop_init(&f->loop);
	opts.loop = &f->loop;
	opts.userdata = f;
	opts.http2 = &abx__http2;
	cr_assert_eq(abx__http_server_new(&opts, &f->server, NULL), ABX_OK);
	cr_assert_eq(
		abx__http_server_listen_tcp(f->server, "127.0.0.1", 0, &f->port, NULL),
		ABX_OK);
	h2_wire_open(&f->w, &f->loop, f->port);
}

static void start(struct fixture *f, abx__http_handler handler)
{
	start_with(f, (abx__http_server_options){ .on_request = handler });
}

static void on_server_closed(void *userdata)
{
	((struct fixture *)userdata)->server_closed = true;
}

static void stop(struct fixture *f)
{
	int64_t end = abx__mono_ms() + 3000;

	abx__http_server_close(f->server, on_server_closed, f);
	while (!f->server_closed && abx__mono_ms() < end)
		wire_turn(&f->w.wire);
	cr_assert(f->server_closed);
	h2_wire_done(&f->w);
	abx__buf_done(&f->seen);
	abx__free(f->big);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles were left open");
}

/* ---- requests and answers ---- */

static void describe(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	const char *name, *value;

	f->calls++;
	abx__http_req_on_closed(req, on_closed, f);
	abx__buf_addf(&text, "%s %s %s %s\n", abx__http_req_method(req),
		      abx__http_req_target(req), abx__http_req_path(req),
		      abx__http_req_query(req) ? abx__http_req_query(req) : "-");
	for (size_t i = 0; abx__http_req_header_at(req, i, &name, &value); i++)
		abx__buf_addf(&text, "%s: %s\n", name, value);
	abx__buf_addf(&text, "body %d length %lld upgrade %d unix %d\n",
		      abx__http_req_has_body(req),
		      (long long)abx__http_req_content_length(req),
		      abx__http_req_is_upgrade(req), abx__http_req_is_unix(req));
	cr_assert_eq(abx__http_res_header(req, "X-Reply", "yes"), ABX_OK);
	cr_assert_eq(abx__http_res_header(req, "Upgrade", "never"), ABX_OK);
	cr_assert_eq(abx__http_res_send(req, 200, "text/plain", text.data, text.len),
		     ABX_OK);
}

static bool has(const abx__buf *buf, const char *text)
{
	return strstr(abx__buf_str(buf), text) != NULL;
}

Test(io_http2, head_arrives_as_it_does_over_http1)
{
	static const char *const more[] = { "x-one",  "1",   "cookie", "a=1",
					    "cookie", "b=2", NULL };
	struct fixture f;
	struct h2_answer *a;

	start(&f, describe);
	a = h2_ask_with(&f.w, "GET", "/p/a%20th?q=1", NULL, 0, false, more);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 200);
	cr_assert(has(&a->body, "GET /p/a%20th?q=1 /p/a%20th q=1\n"), "%s",
		  abx__buf_str(&a->body));
	cr_assert(has(&a->body, "x-one: 1\n"));
	cr_assert(has(&a->body, "host: test\n"));
	cr_assert(has(&a->body, "cookie: a=1; b=2\n"));
	cr_assert(has(&a->body, "body 0 length 0 upgrade 0 unix 0\n"));
	cr_assert(has(&a->head, "x-reply: yes\n"));
	cr_assert(has(&a->head, "content-type: text/plain\n"));
	cr_assert(has(&a->head, "date: "));
	cr_assert(has(&a->head, "content-length: "));
	cr_assert_not(has(&a->head, "upgrade"), "a field of HTTP/1.1's connection");
	cr_assert_eq(f.closed, 1);
	cr_assert_eq(f.answered, 1);
	stop(&f);
}

Test(io_http2, head_request_and_empty_answers_have_no_body)
{
	struct fixture f;
	struct h2_answer *a;

	start(&f, describe);
	a = h2_ask(&f.w, "HEAD", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 200);
	cr_assert_eq(a->body.len, 0);
	cr_assert(has(&a->head, "content-length: "));
	cr_assert_eq(f.answered, 1);
	stop(&f);
}

static void answer_read(abx__http_req *req, int r, const char *data, size_t len,
			void *userdata)
{
	struct fixture *f = userdata;

	f->read_ends++;
	f->read_r = r;
	if (r == ABX_OK)
		abx__buf_add(&f->seen, data, len);
	abx__http_res_send(req, r == ABX_ETOOBIG ? 413 : 200, "text/plain", "read", 4);
}

static void read_all(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, on_closed, f);
	abx__http_req_read_all(req, 1000, answer_read, f);
}

Test(io_http2, body_of_any_framing_is_collected)
{
	static const char *const length[] = { "content-length", "5", NULL };
	struct fixture f;
	struct h2_answer *a, *b, *c;

	start(&f, read_all);
	a = h2_ask(&f.w, "POST", "/", "first");
	H2_UNTIL(&f.w, a->closed);
	b = h2_ask_with(&f.w, "POST", "/", "again", 5, false, length);
	H2_UNTIL(&f.w, b->closed);
	c = h2_ask(&f.w, "POST", "/", NULL);
	H2_UNTIL(&f.w, c->closed);

	cr_assert_str_eq(abx__buf_str(&f.seen), "firstagain");
	cr_assert_eq(f.read_ends, 3);
	cr_assert_eq(f.answered, 3);
	stop(&f);
}

Test(io_http2, body_over_its_limit_is_413_and_told_to_stop)
{
	struct fixture f;
	struct h2_answer *a;
	char big[4000];

	memset(big, 'x', sizeof(big));
	start(&f, read_all);
	a = h2_ask_with(&f.w, "POST", "/", big, sizeof(big), true, NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 413);
	cr_assert_eq(a->code, NGHTTP2_NO_ERROR);
	cr_assert_eq(f.read_r, ABX_ETOOBIG);
	/* The connection goes on. */
	a = h2_ask(&f.w, "POST", "/", "small");
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 200);
	stop(&f);
}

Test(io_http2, length_that_is_not_kept_breaks_the_stream_alone)
{
	static const char *const length[] = { "content-length", "50", NULL };
	struct fixture f;
	struct h2_answer *a;

	start(&f, read_all);
	a = h2_ask_with(&f.w, "POST", "/", "short", 5, false, length);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->code, NGHTTP2_PROTOCOL_ERROR);
	cr_assert_eq(f.answered, 0);
	a = h2_ask(&f.w, "POST", "/", "fine");
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 200);
	stop(&f);
}

Test(io_http2, expect_is_answered_when_the_body_is_wanted)
{
	static const char *const more[] = { "expect", "100-continue", NULL };
	struct fixture f;
	struct h2_answer *a;

	start(&f, read_all);
	a = h2_ask_with(&f.w, "POST", "/", "", 0, true, more);
	H2_UNTIL(&f.w, a->interims == 1);
	a->data = "body";
	a->left = 4;
	a->holds = false;
	nghttp2_session_resume_data(f.w.ng, a->id);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_str_eq(abx__buf_str(&f.seen), "body");
	cr_assert_eq(a->status, 200);
	stop(&f);
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
	struct fixture f;

	start(&f, describe);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct h2_answer *a = h2_ask_with(&f.w, table[i].method, table[i].path,
						  NULL, 0, false, table[i].more);

		H2_UNTIL(&f.w, a->closed);
		cr_assert_eq(a->status, table[i].status, "%zu: %d %s", i, a->status,
			     abx__buf_str(&a->body));
	}
	stop(&f);
}

Test(io_http2, head_over_the_caps_is_431)
{
	const char *more[2 * 120 + 1] = { NULL };
	char *large = abx__malloc(70000);
	struct fixture f;
	struct h2_answer *a;

	start(&f, describe);
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
	stop(&f);
}

static void hijack(abx__http_req *req, void *userdata)
{
	(void)userdata;
	cr_assert_eq(abx__http_req_hijack(req), ABX_EUNSUPPORTED);
	abx__http_res_send(req, 204, NULL, NULL, 0);
}

Test(io_http2, hijacking_is_refused)
{
	struct fixture f;
	struct h2_answer *a;

	start(&f, hijack);
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 204);
	cr_assert_not(has(&a->head, "content-length"));
	stop(&f);
}

/* ---- many streams ---- */

Test(io_http2, streams_over_the_limit_wait_or_are_refused_and_none_is_lost)
{
	struct fixture f;
	struct h2_answer *a[1000];
	int done = 0;

	start(&f, describe);
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
	stop(&f);
}

static void keep(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, on_closed, f);
}

Test(io_http2, streams_that_wait_do_not_hold_up_others)
{
	struct fixture f;
	struct h2_answer *first, *a;
	abx__http_req *waiting;

	start(&f, keep);
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
	stop(&f);
}

/* ---- answers with back pressure ---- */

static void write_more(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

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
	struct fixture *f = userdata;

	f->calls++;
	f->req = req;
	f->to_write = 3000000;
	f->big = abx__malloc(30000);
	memset(f->big, 'y', 30000);
	abx__http_req_on_closed(req, on_closed, f);
	abx__http_res_begin(req, 200, -1);
	abx__http_res_on_drain(req, 0, write_more, f);
}

Test(io_http2, long_answer_streams_with_its_queue_bounded)
{
	struct fixture f;
	struct h2_answer *a;

	start(&f, stream_much);
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->body.len, 3000000);
	cr_assert_leq(f.queued_most, 130000);
	cr_assert_not(has(&a->head, "content-length"));
	cr_assert_eq(f.answered, 1);
	stop(&f);
}

Test(io_http2, client_without_window_holds_its_stream_alone)
{
	struct fixture f;
	struct h2_answer *a;

	start(&f, stream_much);
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
	stop(&f);
}

static void refs_done(void *userdata)
{
	((struct fixture *)userdata)->read_ends++;
}

static void write_refs(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->big = abx__malloc(200000);
	memset(f->big, 'r', 200000);
	abx__http_req_on_closed(req, on_closed, f);
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
	struct fixture f;
	struct h2_answer *a;

	start(&f, write_refs);
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
	stop(&f);
}

/* ---- bodies with back pressure ---- */

static void sum_body(abx__http_req *req, const char *data, size_t len, int r,
		     void *userdata)
{
	struct fixture *f = userdata;

	if (!data) {
		f->read_ends++;
		f->read_r = r;
		if (r == ABX_OK)
			abx__http_res_send(req, 200, "text/plain", "ok", 2);
		return;
	}
	for (size_t i = 0; i < len; i++)
		f->sum += (unsigned char)data[i];
	f->body_bytes += len;
	if (f->to_write) { /* take one piece, then rest */
		abx__http_req_pause(req);
		f->to_write = 0;
	}
}

static void sum(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, on_closed, f);
	abx__http_req_read(req, sum_body, f);
}

Test(io_http2, long_body_arrives_whole_and_pauses_when_told)
{
	size_t len = 2000000;
	char *big = abx__malloc(len);
	struct fixture f;
	struct h2_answer *a;
	uint64_t want = 0;

	for (size_t i = 0; i < len; i++)
		want += (unsigned char)(big[i] = (char)(i % 251));
	start(&f, sum);
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
	stop(&f);
}

Test(io_http2, paused_bodies_do_not_hold_up_others)
{
	size_t len = 300000;
	char *big = abx__calloc(1, len);
	struct fixture f;
	struct h2_answer *a;

	start(&f, keep); /* nobody reads these */
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
	stop(&f);
}

/* ---- ends ---- */

static void abort_midway(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, on_closed, f);
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
	struct fixture f;
	struct h2_answer *a;

	start(&f, abort_midway);
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->code, NGHTTP2_INTERNAL_ERROR);
	cr_assert_not(a->ended);
	cr_assert_eq(f.answered, 0);
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->status, 200);
	stop(&f);
}

Test(io_http2, reset_by_the_client_ends_reading_and_the_exchange)
{
	struct fixture f;
	struct h2_answer *a;

	start(&f, sum);
	a = h2_ask_with(&f.w, "PUT", "/", "part", 4, true, NULL);
	H2_UNTIL(&f.w, f.body_bytes == 4);
	nghttp2_submit_rst_stream(f.w.ng, NGHTTP2_FLAG_NONE, a->id, NGHTTP2_CANCEL);
	H2_UNTIL(&f.w, f.closed == 1);
	cr_assert_eq(f.read_r, ABX_EIO);
	cr_assert_eq(f.read_ends, 1);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

Test(io_http2, client_that_goes_ends_every_exchange)
{
	struct fixture f;

	start(&f, keep);
	for (int i = 0; i < 20; i++)
		h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, f.calls == 20);
	wire_close(&f.w.wire);
	for (int i = 0; i < 100 && f.closed < 20; i++)
		wire_turn(&f.w.wire);
	cr_assert_eq(f.closed, 20);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

Test(io_http2, closing_the_server_says_goaway)
{
	struct fixture f;

	start(&f, keep);
	h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, f.calls == 1);
	abx__http_server_close(f.server, on_server_closed, &f);
	H2_UNTIL(&f.w, f.server_closed && f.w.goaway);
	cr_assert_eq(f.w.goaway_code, NGHTTP2_NO_ERROR);
	cr_assert_eq(f.closed, 1);
	h2_wire_done(&f.w);
	cr_assert_eq(uv_loop_close(&f.loop), 0);
}

Test(io_http2, http1_is_still_spoken)
{
	struct fixture f;
	struct wire plain;

	start(&f, describe);
	wire_open(&plain, &f.loop, f.port);
	wire_say(&plain, "GET /old HTTP/1.1\r\nHost: a\r\n\r\n");
	WIRE_UNTIL(&plain, wire_got(&plain, "GET /old"));
	/* Not in the middle of a connection. */
	wire_say(&plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	WIRE_UNTIL(&plain, wire_got(&plain, "HTTP/1.1 400"));
	wire_done(&plain);
	stop(&f);
}

/* ---- deadlines ---- */

static void begin_only(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, on_closed, f);
	abx__http_res_header(req, "Content-Type", "text/event-stream");
	abx__http_res_begin(req, 200, -1);
}

Test(io_http2, open_stream_may_be_silent_for_many_idle_deadlines)
{
	struct fixture f;
	struct h2_answer *a;
	int64_t until;

	start_with(&f, (abx__http_server_options){ .on_request = begin_only,
						   .idle_timeout_ms = 40,
						   .head_timeout_ms = 40 });
	a = h2_ask(&f.w, "GET", "/events", NULL);
	H2_UNTIL(&f.w, a->status == 200);
	until = abx__mono_ms() + 500;
	while (abx__mono_ms() < until)
		h2_wire_turn(&f.w);
	cr_assert_eq(f.closed, 0);
	abx__http_res_write(f.req, "data: late\n\n", 12);
	H2_UNTIL(&f.w, has(&a->body, "late"));
	abx__http_res_end(f.req);
	H2_UNTIL(&f.w, a->closed && a->ended);
	/* Without a stream the connection is idle, and goes. */
	H2_UNTIL(&f.w, f.w.goaway && f.w.wire.eof);
	cr_assert_eq(f.w.goaway_code, NGHTTP2_NO_ERROR);
	stop(&f);
}

Test(io_http2, client_that_owes_its_body_is_reset)
{
	struct fixture f;
	struct h2_answer *a;

	start_with(&f, (abx__http_server_options){ .on_request = sum,
						   .idle_timeout_ms = 60 });
	a = h2_ask_with(&f.w, "PUT", "/", "part", 4, true, NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->code, NGHTTP2_CANCEL);
	cr_assert_eq(f.read_r, ABX_EIO);
	stop(&f);
}

Test(io_http2, client_that_takes_nothing_is_reset)
{
	struct fixture f;
	struct h2_answer *a;

	start_with(&f, (abx__http_server_options){ .on_request = stream_much,
						   .idle_timeout_ms = 60 });
	f.w.no_window = true;
	a = h2_ask(&f.w, "GET", "/", NULL);
	H2_UNTIL(&f.w, a->closed);
	cr_assert_eq(a->code, NGHTTP2_CANCEL);
	cr_assert_eq(f.closed, 1);
	stop(&f);
}

Test(io_http2, preface_without_settings_is_closed_at_the_head_deadline)
{
	struct fixture f;
	struct wire plain;

	start_with(&f, (abx__http_server_options){ .on_request = describe,
						   .head_timeout_ms = 50 });
	wire_open(&plain, &f.loop, f.port);
	wire_say(&plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	WIRE_UNTIL(&plain, plain.eof);
	wire_done(&plain);
	stop(&f);
}

/* ---- floods ---- */

static void say_bytes(struct wire *w, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0 && !w->eof && !w->reset) {
		ssize_t n = send(w->fd, at, len, MSG_NOSIGNAL);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN) {
			w->reset = true;
		}
		wire_turn(w);
	}
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
			      "\0\0\0\4\0\0\0\0\0";

static void put_frame(abx__buf *buf, uint8_t type, uint8_t flags, uint32_t id,
		      const void *data, size_t len)
{
	uint8_t head[9] = { (uint8_t)(len >> 16),
			    (uint8_t)(len >> 8),
			    (uint8_t)len,
			    type,
			    flags,
			    (uint8_t)(id >> 24),
			    (uint8_t)(id >> 16),
			    (uint8_t)(id >> 8),
			    (uint8_t)id };

	cr_assert_eq(abx__buf_add(buf, head, sizeof(head)), ABX_OK);
	cr_assert_eq(abx__buf_add(buf, data, len), ABX_OK);
}

/* GET http /, with an empty :authority literal "a" */
static const char get_head[] = "\x82\x86\x84\x41\x01"
			       "a";

Test(io_http2, rapid_resets_cost_the_connection)
{
	struct fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;

	start(&f, keep);
	abx__buf_add(&flood, preface, sizeof(preface) - 1);
	for (uint32_t i = 0; i < 3000; i++) {
		put_frame(&flood, 1, 5, 2 * i + 1, get_head, sizeof(get_head) - 1);
		put_frame(&flood, 3, 0, 2 * i + 1, "\0\0\0\x8", 4);
	}
	wire_open(&plain, &f.loop, f.port);
	say_bytes(&plain, flood.data, flood.len);
	WIRE_UNTIL(&plain, plain.eof || plain.reset);
	cr_assert_leq(f.calls, 1000);
	cr_assert_eq(f.calls, f.closed);
	wire_done(&plain);
	stop(&f);
}

Test(io_http2, streams_broken_on_purpose_cost_the_connection)
{
	struct fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;

	start(&f, keep);
	wire_open(&plain, &f.loop, f.port);
	say_bytes(&plain, preface, sizeof(preface) - 1);
	/* A window that grows too large is an error of the stream: we reset it ourselves.
	 */
	for (uint32_t i = 0; i < 1500 && !plain.eof && !plain.reset; i++) {
		abx__buf_clear(&flood);
		put_frame(&flood, 1, 5, 2 * i + 1, get_head, sizeof(get_head) - 1);
		put_frame(&flood, 8, 0, 2 * i + 1, "\x7f\xff\xff\xff", 4);
		say_bytes(&plain, flood.data, flood.len);
	}
	WIRE_UNTIL(&plain, plain.eof || plain.reset);
	cr_assert_leq(f.calls, 1100);
	wire_done(&plain);
	stop(&f);
}

Test(io_http2, continuation_flood_costs_the_connection)
{
	struct fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;
	char filler[1000];

	memset(filler, 0, sizeof(filler));
	start(&f, keep);
	abx__buf_add(&flood, preface, sizeof(preface) - 1);
	put_frame(&flood, 1, 1, 1, get_head, sizeof(get_head) - 1); /* no END_HEADERS */
	for (int i = 0; i < 1000; i++) /* x: <empty>, without indexing */
		put_frame(&flood, 9, 0, 1, "\0\1x\0", 4);
	wire_open(&plain, &f.loop, f.port);
	say_bytes(&plain, flood.data, flood.len);
	WIRE_UNTIL(&plain, plain.eof || plain.reset);
	cr_assert_eq(f.calls, 0);
	wire_done(&plain);
	stop(&f);
}

Test(io_http2, head_that_unpacks_without_end_costs_the_connection)
{
	struct fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;
	ABX_CLEANUP_BUF abx__buf head = ABX__BUF_INIT;
	char value[3000];

	/* One entry of 3000 bytes in the dynamic table, then a byte for each repetition.
	 */
	memset(value, 'v', sizeof(value));
	abx__buf_add(&head, get_head, sizeof(get_head) - 1);
	abx__buf_add(&head, "\x40\1x\x7f\xb9\x16", 6); /* 127 + 0xb9 & 127 ... = 3000 */
	abx__buf_add(&head, value, sizeof(value));
	for (int i = 0; i < 12000; i++)
		abx__buf_addc(&head, '\xbe'); /* index 62 */
	start(&f, describe);
	abx__buf_add(&flood, preface, sizeof(preface) - 1);
	put_frame(&flood, 1, 5, 1, head.data, head.len);
	wire_open(&plain, &f.loop, f.port);
	say_bytes(&plain, flood.data, flood.len);
	WIRE_UNTIL(&plain, plain.eof || plain.reset);
	cr_assert_eq(f.calls, 0);
	wire_done(&plain);
	stop(&f);
}

Test(io_http2, pings_whose_answers_are_not_taken_cost_the_connection)
{
	struct fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;
	int64_t until = abx__mono_ms() + 3000;

	start(&f, describe);
	abx__buf_add(&flood, preface, sizeof(preface) - 1);
	for (int i = 0; i < 100000; i++)
		put_frame(&flood, 6, 0, 0, "12345678", 8);
	wire_open(&plain, &f.loop, f.port);
	fcntl(plain.fd, F_SETFL, O_NONBLOCK);
	plain.deaf = true;
	for (size_t at = 0; at < flood.len && abx__mono_ms() < until;) {
		ssize_t n = send(plain.fd, flood.data + at, flood.len - at, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN) {
			plain.reset = true;
			break;
		}
		at += n > 0 ? (size_t)n : 0;
		if (at == flood.len)
			at = sizeof(preface) - 1; /* and over again */
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	cr_assert(plain.reset, "the server went on answering");
	wire_done(&plain);
	stop(&f);
}

Test(io_http2, garbage_is_answered_with_goaway)
{
	static const struct {
		const char *what;
		uint8_t type, flags;
		uint32_t id;
		const char *data;
		size_t len;
	} table[] = {
		{ "data of no stream", 0, 0, 1, "x", 1 },
		{ "headers on stream 0", 1, 5, 0, "\x82\x86\x84", 3 },
		{ "an even stream", 1, 5, 2, "\x82\x86\x84", 3 },
		{ "broken compression", 1, 5, 1, "\xff\xff\xff\xff\xff\xff", 6 },
		{ "a window of nothing", 8, 0, 0, "\0\0\0\0", 4 },
		{ "settings of five bytes", 4, 0, 0, "12345", 5 },
		{ "a promise", 5, 4, 1, "\0\0\0\2\x82", 5 },
		{ "a ping of one byte", 6, 0, 0, "1", 1 },
		{ "a continuation of nothing", 9, 4, 1, "\x82", 1 },
	};
	struct fixture f;

	start(&f, describe);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ABX_CLEANUP_BUF abx__buf bytes = ABX__BUF_INIT;
		struct wire plain;

		abx__buf_add(&bytes, preface, sizeof(preface) - 1);
		put_frame(&bytes, table[i].type, table[i].flags, table[i].id,
			  table[i].data, table[i].len);
		wire_open(&plain, &f.loop, f.port);
		say_bytes(&plain, bytes.data, bytes.len);
		WIRE_UNTIL(&plain, plain.eof || plain.reset);
		cr_assert(memmem(plain.got.data, plain.got.len, "\7\0\0\0\0\0", 6),
			  "no GOAWAY for %s", table[i].what);
		wire_done(&plain);
	}
	cr_assert_eq(f.calls, 0);
	stop(&f);
}

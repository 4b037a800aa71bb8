/*
 * test-tls-streams.c - bytes through TLS: bodies, raw streams, and how each side ends.
 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/http2.h"
#include "tls-fixture.h"

static const char get[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

static void keep(abx__http_req *req, void *userdata)
{
	struct tls_fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, tls_on_closed, f);
}

static void echo_body(abx__http_req *req, const char *data, size_t len, int r,
		      void *userdata)
{
	struct tls_fixture *f = userdata;

	if (data) {
		abx__http_res_write(req, data, len);
		return;
	}
	f->read_ends++;
	f->read_r = r;
	abx__http_res_end(req);
}

static void echo(abx__http_req *req, void *userdata)
{
	struct tls_fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, tls_on_closed, f);
	abx__http_res_begin(req, 200, abx__http_req_content_length(req));
	abx__http_req_read(req, echo_body, f);
}

Test(io_tls, large_bodies_pass_both_ways_unchanged)
{
	size_t len = 3000000;
	char head[100], *big = abx__malloc(len);
	struct tls_fixture f;
	const char *body;

	for (size_t i = 0; i < len; i++)
		big[i] = (char)(i * 7 % 253);
	tls_start(&f, echo);
	tls_call(&f);
	tls_shake(&f);
	snprintf(head, sizeof(head),
		 "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", len);
	tls_says(&f, head);
	tls_say(&f, big, len);
	UNTIL(&f, f.got.len > len && f.answered == 1);
	body = strstr(abx__buf_str(&f.got), "\r\n\r\n");
	cr_assert_not_null(body);
	UNTIL(&f, f.got.len == (size_t)(body + 4 - f.got.data) + len);
	body = strstr(abx__buf_str(&f.got), "\r\n\r\n");
	cr_assert_eq(memcmp(body + 4, big, len), 0);
	abx__free(big);
	tls_stop(&f);
}

Test(io_tls, pipelined_requests_are_answered_in_turn)
{
	struct tls_fixture f;
	int n = 0;

	tls_start(&f, tls_greet);
	tls_call(&f);
	tls_shake(&f);
	for (int i = 0; i < 20; i++)
		tls_says(&f, get);
	UNTIL(&f, f.answered == 20);
	for (int i = 0; i < 20; i++)
		tls_turn(&f);
	for (const char *p = abx__buf_str(&f.got); (p = strstr(p, "over TLS")); p++)
		n++;
	cr_assert_eq(n, 20);
	tls_stop(&f);
}

static void refs_done(void *userdata)
{
	((struct tls_fixture *)userdata)->read_ends++;
}

static void write_refs(abx__http_req *req, void *userdata)
{
	struct tls_fixture *f = userdata;

	f->big = abx__malloc(300000);
	memset(f->big, 'r', 300000);
	abx__http_req_on_closed(req, tls_on_closed, f);
	abx__http_res_begin(req, 200, -1);
	cr_assert_eq(abx__http_res_write(req, "first ", 6), ABX_OK);
	cr_assert_eq(abx__http_res_write_ref(req, f->big, 300000, refs_done, f), ABX_OK);
	cr_assert_eq(f->read_ends, 0);
	abx__http_res_end(req);
}

Test(io_tls, referenced_bytes_leave_and_are_told)
{
	struct tls_fixture f;

	tls_start(&f, write_refs);
	tls_call(&f);
	tls_shake(&f);
	tls_says(&f, get);
	UNTIL(&f, tls_got(&f, "rrrr\r\n0\r\n\r\n"));
	cr_assert_gt(f.got.len, 300000);
	cr_assert_eq(f.read_ends, 1);
	tls_stop(&f);
}

Test(io_tls, end_of_a_connection_is_announced)
{
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	tls_call(&f);
	tls_shake(&f);
	tls_says(&f, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	UNTIL(&f, f.ended || f.failed);
	cr_assert(f.ended, "the connection ended without close_notify");
	tls_stop(&f);
}

static void half(abx__http_req *req, void *userdata)
{
	abx__http_req_on_closed(req, tls_on_closed, userdata);
	abx__http_res_begin(req, 200, 100);
	abx__http_res_write(req, "half", 4);
	abx__http_res_abort(req);
}

Test(io_tls, broken_off_answer_is_not_announced_as_an_end)
{
	struct tls_fixture f;

	tls_start(&f, half);
	tls_call(&f);
	tls_shake(&f);
	tls_says(&f, get);
	UNTIL(&f, f.ended || f.failed);
	cr_assert(f.failed);
	cr_assert_eq(f.answered, 0);
	tls_stop(&f);
}

static void raw_bytes(abx__http_req *req, const char *data, size_t len, int r,
		      void *userdata)
{
	struct tls_fixture *f = userdata;

	(void)req;
	if (data) {
		abx__buf_add(&f->seen, data, len);
		return;
	}
	f->read_ends++;
	f->read_r = r;
}

static void hijack(abx__http_req *req, void *userdata)
{
	static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\n\r\n";

	keep(req, userdata);
	cr_assert_eq(abx__http_req_hijack(req), ABX_OK);
	abx__http_res_write(req, answer, sizeof(answer) - 1);
	abx__http_req_read(req, raw_bytes, userdata);
}

static void upgrade(struct tls_fixture *f)
{
	tls_call(f);
	tls_shake(f);
	tls_says(f, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
		    "x\r\n\r\nearly ");
	UNTIL(f, tls_got(f, "101") && f->seen.len > 0);
}

Test(io_tls, client_may_end_its_side_first)
{
	struct tls_fixture f;

	tls_start(&f, hijack);
	upgrade(&f);
	tls_says(&f, "late");
	SSL_shutdown(f.ssl); /* close_notify: its side alone */
	UNTIL(&f, f.read_ends == 1);
	cr_assert_eq(f.read_r, ABX_OK);
	cr_assert_str_eq(abx__buf_str(&f.seen), "early late");
	abx__http_res_write(f.req, "answer after the end", 20);
	UNTIL(&f, tls_got(&f, "answer after the end"));
	cr_assert_eq(f.closed, 0);
	abx__http_res_end(f.req);
	UNTIL(&f, f.ended && f.closed == 1);
	cr_assert_eq(f.answered, 1);
	tls_stop(&f);
}

Test(io_tls, server_may_end_its_side_first)
{
	struct tls_fixture f;

	tls_start(&f, hijack);
	upgrade(&f);
	abx__http_res_write(f.req, "bye", 3);
	abx__http_res_end(f.req);
	UNTIL(&f, f.ended && tls_got(&f, "bye"));
	f.ended = false;
	tls_says(&f, "still heard");
	UNTIL(&f, strstr(abx__buf_str(&f.seen), "still heard"));
	cr_assert_eq(f.closed, 0);
	SSL_shutdown(f.ssl);
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.answered, 1);
	tls_stop(&f);
}

Test(io_tls, raw_stream_that_is_cut_is_not_taken_for_ended)
{
	struct tls_fixture f;

	tls_start(&f, hijack);
	upgrade(&f);
	wire_close(&f.w); /* TCP's end without close_notify */
	for (int i = 0; i < 100 && f.closed == 0; i++)
		wire_turn(&f.w);
	cr_assert_eq(f.read_ends, 1);
	cr_assert_eq(f.read_r, ABX_EIO);
	cr_assert_eq(f.answered, 0);
	tls_stop(&f);
}

static void begin_only(abx__http_req *req, void *userdata)
{
	keep(req, userdata);
	abx__http_res_begin(req, 200, -1);
}

Test(io_tls, open_stream_may_be_silent_for_many_idle_deadlines)
{
	struct tls_fixture f;
	int64_t until;

	tls_start_with(&f,
		       (abx__http_server_options){ .on_request = begin_only,
						   .idle_timeout_ms = 40,
						   .head_timeout_ms = 40,
						   .handshake_timeout_ms = 2000 },
		       true);
	tls_call(&f);
	tls_shake(&f);
	tls_says(&f, get);
	UNTIL(&f, tls_got(&f, "HTTP/1.1 200"));
	until = abx__mono_ms() + 500;
	while (abx__mono_ms() < until)
		tls_turn(&f);
	cr_assert_eq(f.closed, 0);
	abx__http_res_write(f.req, "data: late\n\n", 12);
	UNTIL(&f, tls_got(&f, "data: late"));
	abx__http_res_end(f.req);
	/* Then the connection is idle, and goes. */
	UNTIL(&f, f.ended);
	cr_assert_eq(f.answered, 1);
	tls_stop(&f);
}

/*
 * Long bodies of known length, which pass the gateway in the kernel: whole, in order,
 * held back by who rests, ended by who goes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

#define LONG ((size_t)6 << 20)

static char pattern_at(size_t i)
{
	return (char)(i * 131 + (i >> 12));
}

static char *make_pattern(size_t len)
{
	char *data = malloc(len);

	cr_assert_not_null(data);
	for (size_t i = 0; i < len; i++)
		data[i] = pattern_at(i);
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

/* What the raw sandbox does in one turn. */
struct sandbox {
	size_t take; /* reads so much more, at most 64 KiB a turn */
	const char *data;
	size_t len; /* to send */
};

static void sandbox_turn(struct fixture *f, struct sandbox *s)
{
	static char buf[65536];
	ssize_t n;

	if (f->peer < 0)
		f->peer = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK);
	if (f->peer < 0)
		return;
	if (s->take > 0) {
		n = recv(f->peer, buf, s->take < sizeof(buf) ? s->take : sizeof(buf), 0);
		if (n > 0) {
			abx__buf_add(&f->peer_got, buf, (size_t)n);
			s->take -= (size_t)n;
		}
	}
	if (s->len > 0) {
		n = send(f->peer, s->data, s->len, MSG_NOSIGNAL);
		if (n > 0) {
			s->data += n;
			s->len -= (size_t)n;
		}
	}
}

#define BOTH_UNTIL(f, s, cond)                                \
	do {                                                  \
		int64_t end__ = abx__mono_ms() + 5000;        \
		while (!(cond) && abx__mono_ms() < end__) {   \
			sandbox_turn(f, s);                   \
			wire_turn(&(f)->w);                   \
		}                                             \
		cr_assert(cond, "not within 5 s: %s", #cond); \
	} while (0)

static void start(struct fixture *f)
{
	fixture_start(f);
	fixture_go_raw(f);
	f->peer_got.cap = 128 << 20;
}

/* Offers the client's bytes for some turns; how many were taken. */
static size_t offer(struct fixture *f, struct sandbox *s, const char *data, size_t len,
		    int turns)
{
	size_t sent = 0;

	for (int i = 0; i < turns && sent < len; i++) {
		ssize_t n = send(f->w.fd, data + sent, len - sent, MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		sandbox_turn(f, s);
		uv_run(&f->loop, UV_RUN_NOWAIT);
	}
	return sent;
}

static void post(struct fixture *f, size_t len)
{
	char head[256];

	snprintf(head, sizeof(head),
		 "POST /x HTTP/1.1\r\n" ENVD "Content-Length: %zu\r\n\r\n", len);
	wire_say(&f->w, head);
}

static size_t body_at(const abx__buf *got)
{
	const char *end = memmem(abx__buf_str(got), got->len, "\r\n\r\n", 4);

	return end ? (size_t)(end - got->data) + 4 : got->len;
}

Test(gateway_tube, a_long_request_body_arrives_and_what_is_pipelined_behind_it_too)
{
	struct fixture f = { 0 };
	struct sandbox s = { .take = SIZE_MAX };
	char *data = make_pattern(LONG + 256);
	size_t at;
	int n;

	start(&f);
	n = snprintf(data + LONG, 256, "GET /next HTTP/1.1\r\n" ENVD "\r\n");
	post(&f, LONG);
	cr_assert_eq(offer(&f, &s, data, LONG + (size_t)n, 100000), LONG + (size_t)n);
	BOTH_UNTIL(&f, &s, f.peer_got.len >= body_at(&f.peer_got) + LONG);
	at = body_at(&f.peer_got);
	cr_assert_eq(f.peer_got.len, at + LONG, "the next request waits for this answer");
	cr_assert(is_pattern(f.peer_got.data + at, LONG));
	abx__buf_clear(&f.peer_got);
	peer_say(&f, "HTTP/1.1 204 No Content\r\n\r\n");
	BOTH_UNTIL(&f, &s, f.peer_got.len > 0 && body_at(&f.peer_got) == f.peer_got.len);
	cr_assert(strstr(abx__buf_str(&f.peer_got), "GET /next HTTP/1.1"));
	peer_say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	BOTH_UNTIL(&f, &s, wire_got(&f.w, "\r\n\r\nok"));
	cr_assert_eq(f.engine.connects, 1, "the connection was kept");
	free(data);
	fixture_stop(&f);
}

Test(gateway_tube, a_sandbox_that_rests_holds_the_client_back_and_loses_nothing)
{
	struct fixture f = { 0 };
	struct sandbox s = { .take = 4096 };
	const size_t total = 32 << 20;
	char *data = make_pattern(total);
	size_t sent;

	start(&f);
	post(&f, total);
	sent = offer(&f, &s, data, total, 2000);
	cr_assert_lt(sent, total, "nothing held the client back");
	s.take = SIZE_MAX;
	cr_assert_eq(offer(&f, &s, data + sent, total - sent, 1000000), total - sent);
	BOTH_UNTIL(&f, &s, f.peer_got.len >= body_at(&f.peer_got) + total);
	cr_assert(is_pattern(f.peer_got.data + body_at(&f.peer_got), total));
	free(data);
	fixture_stop(&f);
}

Test(gateway_tube, expect_100_comes_before_a_long_body)
{
	struct fixture f = { 0 };
	struct sandbox s = { .take = SIZE_MAX };
	char *data = make_pattern(LONG), head[256];

	start(&f);
	snprintf(head, sizeof(head),
		 "POST /x HTTP/1.1\r\n" ENVD
		 "Expect: 100-continue\r\nContent-Length: %zu\r\n\r\n",
		 LONG);
	wire_say(&f.w, head);
	BOTH_UNTIL(&f, &s, wire_got(&f.w, "100 Continue\r\n\r\n"));
	cr_assert_eq(offer(&f, &s, data, LONG, 100000), LONG);
	BOTH_UNTIL(&f, &s, f.peer_got.len >= body_at(&f.peer_got) + LONG);
	cr_assert(is_pattern(f.peer_got.data + body_at(&f.peer_got), LONG));
	peer_say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	BOTH_UNTIL(&f, &s, wire_got(&f.w, "\r\n\r\nok"));
	free(data);
	fixture_stop(&f);
}

Test(gateway_tube, an_early_answer_passes_while_the_body_comes)
{
	struct fixture f = { 0 };
	struct sandbox s = { .take = 100000 };
	char *data = make_pattern(LONG);

	start(&f);
	post(&f, LONG);
	offer(&f, &s, data, LONG, 200);
	BOTH_UNTIL(&f, &s, s.take == 0);
	peer_say(&f, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
	BOTH_UNTIL(&f, &s, wire_got(&f.w, "\r\n\r\nno"));
	cr_assert(wire_got(&f.w, "HTTP/1.1 413"));
	free(data);
	fixture_stop(&f);
}

Test(gateway_tube, a_client_that_goes_in_the_middle_of_its_body_ends_the_sandboxs_side)
{
	struct fixture f = { 0 };
	struct sandbox s = { .take = SIZE_MAX };
	char *data = make_pattern(LONG), byte;

	start(&f);
	post(&f, 2 * LONG);
	offer(&f, &s, data, LONG, 100000);
	BOTH_UNTIL(&f, &s, f.peer_got.len >= LONG);
	wire_close(&f.w);
	BOTH_UNTIL(&f, &s, recv(f.peer, &byte, 1, MSG_PEEK) == 0);
	free(data);
	fixture_stop(&f);
}

Test(gateway_tube, a_sandbox_that_goes_in_the_middle_of_the_body_is_502)
{
	struct fixture f = { 0 };
	struct sandbox s = { .take = 200000 };
	char *data = make_pattern(LONG);

	start(&f);
	post(&f, LONG);
	offer(&f, &s, data, LONG, 300);
	BOTH_UNTIL(&f, &s, s.take == 0);
	peer_close(&f);
	f.peer = 0; /* no other one */
	BOTH_UNTIL(&f, &(struct sandbox){ 0 }, wire_got(&f.w, "HTTP/1.1 502"));
	f.peer = -1;
	free(data);
	fixture_stop(&f);
}

Test(gateway_tube, a_long_answer_is_held_back_by_a_client_that_rests_and_arrives_whole)
{
	struct fixture f = { 0 };
	const size_t total = 64 << 20;
	char *data = make_pattern(total), head[128];
	struct sandbox s = { .take = SIZE_MAX };

	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
		 total);
	start(&f);
	for (int round = 0; round < 2; round++) {
		size_t at;

		abx__buf_clear(&f.peer_got);
		abx__buf_clear(&f.w.got);
		wire_say(&f.w, "GET /x HTTP/1.1\r\n" ENVD "\r\n");
		BOTH_UNTIL(&f, &s, f.peer_got.len > 0);
		f.w.deaf = true;
		peer_say(&f, head);
		s.data = data;
		s.len = total;
		for (int i = 0; i < 300; i++) {
			sandbox_turn(&f, &s);
			wire_turn(&f.w);
		}
		cr_assert_gt(s.len, 0, "nothing held the sandbox back");
		f.w.deaf = false;
		BOTH_UNTIL(&f, &s, f.w.got.len >= body_at(&f.w.got) + total);
		at = body_at(&f.w.got);
		cr_assert_eq(f.w.got.len, at + total);
		cr_assert(is_pattern(f.w.got.data + at, total));
	}
	cr_assert_eq(f.engine.connects, 1, "the connection was kept");
	free(data);
	fixture_stop(&f);
}

Test(gateway_tube, a_sandbox_that_goes_in_the_middle_of_its_answer_breaks_it)
{
	struct fixture f = { 0 };
	char *data = make_pattern(LONG);
	struct sandbox s = { .take = SIZE_MAX };

	start(&f);
	wire_say(&f.w, "GET /x HTTP/1.1\r\n" ENVD "\r\n");
	BOTH_UNTIL(&f, &s, f.peer_got.len > 0);
	peer_say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 12582912\r\n\r\n");
	s.data = data;
	s.len = LONG;
	BOTH_UNTIL(&f, &s, s.len == 0);
	peer_close(&f);
	f.peer = 0;
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	f.peer = -1;
	cr_assert_leq(f.w.got.len, body_at(&f.w.got) + LONG);
	free(data);
	fixture_stop(&f);
}

Test(gateway_tube, a_client_that_goes_in_the_middle_of_the_answer_ends_the_sandboxs_side)
{
	struct fixture f = { 0 };
	char *data = make_pattern(LONG), byte;
	struct sandbox s = { .take = SIZE_MAX };

	start(&f);
	wire_say(&f.w, "GET /x HTTP/1.1\r\n" ENVD "\r\n");
	BOTH_UNTIL(&f, &s, f.peer_got.len > 0);
	f.w.deaf = true;
	peer_say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 12582912\r\n\r\n");
	s.data = data;
	s.len = LONG;
	for (int i = 0; i < 100; i++) {
		sandbox_turn(&f, &s);
		wire_turn(&f.w);
	}
	wire_close(&f.w);
	s.take = 0;
	BOTH_UNTIL(&f, &s, recv(f.peer, &byte, 1, MSG_PEEK) <= 0 && errno != EAGAIN);
	free(data);
	fixture_stop(&f);
}

/*
 * test-http2-floods.c - what a hostile HTTP/2 client can send costs it the connection and
 * us little.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http2-fixture.h"

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
	struct h2_fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;

	h2_start(&f, h2_keep);
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
	h2_stop(&f);
}

Test(io_http2, streams_broken_on_purpose_cost_the_connection)
{
	struct h2_fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;

	h2_start(&f, h2_keep);
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
	h2_stop(&f);
}

Test(io_http2, continuation_flood_costs_the_connection)
{
	struct h2_fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;
	char filler[1000];

	memset(filler, 0, sizeof(filler));
	h2_start(&f, h2_keep);
	abx__buf_add(&flood, preface, sizeof(preface) - 1);
	put_frame(&flood, 1, 1, 1, get_head, sizeof(get_head) - 1); /* no END_HEADERS */
	for (int i = 0; i < 1000; i++) /* x: <empty>, without indexing */
		put_frame(&flood, 9, 0, 1, "\0\1x\0", 4);
	wire_open(&plain, &f.loop, f.port);
	say_bytes(&plain, flood.data, flood.len);
	WIRE_UNTIL(&plain, plain.eof || plain.reset);
	cr_assert_eq(f.calls, 0);
	wire_done(&plain);
	h2_stop(&f);
}

Test(io_http2, head_that_unpacks_without_end_costs_the_connection)
{
	struct h2_fixture f;
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
	h2_start(&f, h2_describe);
	abx__buf_add(&flood, preface, sizeof(preface) - 1);
	put_frame(&flood, 1, 5, 1, head.data, head.len);
	wire_open(&plain, &f.loop, f.port);
	say_bytes(&plain, flood.data, flood.len);
	WIRE_UNTIL(&plain, plain.eof || plain.reset);
	cr_assert_eq(f.calls, 0);
	wire_done(&plain);
	h2_stop(&f);
}

Test(io_http2, pings_whose_answers_are_not_taken_cost_the_connection)
{
	struct h2_fixture f;
	struct wire plain;
	ABX_CLEANUP_BUF abx__buf flood = ABX__BUF_INIT;
	int64_t until = abx__mono_ms() + 3000;

	h2_start(&f, h2_describe);
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
	h2_stop(&f);
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
	struct h2_fixture f;

	h2_start(&f, h2_describe);
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
	h2_stop(&f);
}

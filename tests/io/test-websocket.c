/* WebSocket frames at any split, and what is refused with which code. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

#include "io/websocket.h"

typedef struct got {
	char text[4096];
	size_t len;
	int count;
	int last;
} got;

static int on_message(void *userdata, enum abx__ws_opcode opcode, const char *data,
		      size_t len)
{
	got *g = userdata;

	memcpy(g->text + g->len, data, len);
	g->len += len;
	g->text[g->len++] = '|';
	g->text[g->len] = '\0';
	g->count++;
	g->last = (int)opcode;
	return ABX_OK;
}

/* A masked frame, as a client sends it. */
static size_t frame(uint8_t *out, uint8_t first, const char *data, size_t len)
{
	static const uint8_t mask[4] = { 0x11, 0xa0, 0x03, 0xff };
	size_t n = 0;

	out[n++] = first;
	if (len < 126) {
		out[n++] = (uint8_t)(0x80 | len);
	} else {
		out[n++] = 0x80 | 126;
		out[n++] = (uint8_t)(len >> 8);
		out[n++] = (uint8_t)len;
	}
	memcpy(out + n, mask, 4);
	n += 4;
	for (size_t i = 0; i < len; i++)
		out[n++] = (uint8_t)(data[i] ^ mask[i & 3]);
	return n;
}

static int feed(abx__ws_parser *p, const uint8_t *data, size_t len, size_t piece, got *g)
{
	int r = ABX_OK;

	for (size_t at = 0; r == ABX_OK && at < len; at += piece)
		r = abx__ws_parser_feed(p, (const char *)data + at,
					len - at < piece ? len - at : piece, on_message,
					g);
	return r;
}

Test(io_websocket, messages_come_whole_at_any_split)
{
	uint8_t wire[2048];
	char big[300];
	size_t n = 0;

	memset(big, 'x', sizeof(big));
	n += frame(wire + n, 0x81, "one", 3);
	n += frame(wire + n, 0x02, "tw", 2);   /* a fragment, */
	n += frame(wire + n, 0x89, "ping", 4); /* a ping between, */
	n += frame(wire + n, 0x80, "o", 1);    /* its end */
	n += frame(wire + n, 0x82, "", 0);
	n += frame(wire + n, 0x82, big, sizeof(big));
	n += frame(wire + n, 0x88, "\x03\xe8 bye", 6);
	for (size_t piece = 1; piece <= n; piece++) {
		abx__ws_parser p = { 0 };
		got g = { 0 };

		cr_assert_eq(feed(&p, wire, n, piece, &g), ABX_OK);
		cr_assert_eq(g.count, 6);
		cr_assert_eq(strncmp(g.text, "one|ping|two||xxx", 17), 0, "%s", g.text);
		cr_assert_eq(g.last, ABX__WS_CLOSE);
		abx__ws_parser_done(&p);
	}
}

Test(io_websocket, what_a_client_may_not_send)
{
	static const struct {
		const char *what;
		uint8_t bytes[16];
		size_t len;
		int code;
	} rows[] = {
		{ "not masked", { 0x81, 0x01, 'x' }, 3, 1002 },
		{ "a reserved bit", { 0xc1, 0x80, 0, 0, 0, 0 }, 6, 1002 },
		{ "an opcode of the future", { 0x83, 0x80, 0, 0, 0, 0 }, 6, 1002 },
		{ "a continuation of nothing", { 0x80, 0x80, 0, 0, 0, 0 }, 6, 1002 },
		{ "a long ping", { 0x89, 0xfe, 0, 200, 0, 0, 0, 0 }, 8, 1002 },
		{ "half a ping", { 0x09, 0x80, 0, 0, 0, 0 }, 6, 1002 },
		{ "half a close code", { 0x88, 0x81, 0, 0, 0, 0, 3 }, 7, 1002 },
		{ "no UTF-8", { 0x81, 0x81, 0, 0, 0, 0, 0xff }, 7, 1007 },
		{ "over the cap", { 0x82, 0xfe, 0x10, 0x00, 0, 0, 0, 0 }, 8, 1009 },
		{ "far over it",
		  { 0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0,
		    0 },
		  14,
		  1009 },
		{ "a message in a message",
		  { 0x01, 0x81, 0, 0, 0, 0, 'x', 0x81, 0x80, 0, 0, 0, 0 },
		  13,
		  1002 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__ws_parser p = { .max_bytes = 1000 };
		got g = { 0 };
		int r = feed(&p, rows[i].bytes, rows[i].len, 1, &g);

		cr_assert_lt(r, 0, "%s", rows[i].what);
		cr_assert_eq(abx__ws_close_code(r), (unsigned)rows[i].code, "%s: %u",
			     rows[i].what, abx__ws_close_code(r));
		abx__ws_parser_done(&p);
	}
}

Test(io_websocket, fragments_together_keep_to_the_cap)
{
	abx__ws_parser p = { .max_bytes = 10 };
	uint8_t wire[64];
	got g = { 0 };
	size_t n = frame(wire, 0x02, "12345", 5);

	n += frame(wire + n, 0x00, "12345", 5);
	cr_assert_eq(feed(&p, wire, n, n, &g), ABX_OK);
	n = frame(wire, 0x80, "1", 1);
	cr_assert_eq(feed(&p, wire, n, n, &g), ABX_ETOOBIG);
	abx__ws_parser_done(&p);
}

Test(io_websocket, frames_are_written)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;
	char data[70000] = "";

	cr_assert_eq(abx__ws_frame_add(&buf, ABX__WS_BINARY, "ab", 2), ABX_OK);
	cr_assert_eq(buf.len, 4);
	cr_assert_eq(memcmp(buf.data,
			    "\x82\x02"
			    "ab",
			    4),
		     0);
	abx__buf_clear(&buf);
	cr_assert_eq(abx__ws_frame_add(&buf, ABX__WS_TEXT, data, 200), ABX_OK);
	cr_assert_eq(memcmp(buf.data, "\x81\x7e\x00\xc8", 4), 0);
	abx__buf_clear(&buf);
	cr_assert_eq(abx__ws_frame_add(&buf, ABX__WS_BINARY, data, sizeof(data)), ABX_OK);
	cr_assert_eq(memcmp(buf.data, "\x82\x7f\0\0\0\0\0\x01\x11\x70", 10), 0);
	abx__buf_clear(&buf);
	cr_assert_eq(abx__ws_close_add(&buf, 1000, "bye"), ABX_OK);
	cr_assert_eq(memcmp(buf.data,
			    "\x88\x05\x03\xe8"
			    "bye",
			    7),
		     0);
}

Test(io_websocket, the_accept_of_a_key)
{
	char accept[ABX__WS_ACCEPT_SIZE];

	/* RFC 6455, section 1.3. */
	cr_assert_eq(abx__ws_accept("dGhlIHNhbXBsZSBub25jZQ==", accept), ABX_OK);
	cr_assert_str_eq(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	cr_assert_eq(abx__ws_accept("", accept), ABX_EINVAL);
	cr_assert_eq(abx__ws_accept("short", accept), ABX_EINVAL);
	cr_assert_eq(abx__ws_accept("dGhlIHNhbXBsZSBub25jZXh4", accept), ABX_EINVAL);
}

/*
 * websocket.c - see websocket.h. A frame's head is collected byte by byte, since it may
 * be split anywhere; payloads are unmasked into the buffer of their message.
 */
#include "io/websocket.h"

#include <openssl/evp.h>
#include <string.h>

#include <agentbox/error.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"

#define DEFAULT_MAX ((size_t)1 << 20)
#define FIN 0x80
#define RESERVED 0x70
#define MASKED 0x80
#define KEY_BYTES 16

void abx__ws_parser_done(abx__ws_parser *p)
{
	abx__buf_done(&p->message);
	abx__buf_done(&p->control);
	memset(p, 0, sizeof(*p));
}

/* ---- heads ---- */

static size_t head_size(const abx__ws_parser *p)
{
	unsigned n = p->head_len < 2 ? 0 : p->head[1] & 0x7f;

	return p->head_len < 2 ? 2 : n == 127 ? 14 : n == 126 ? 8 : 6;
}

static unsigned opcode_of(const abx__ws_parser *p)
{
	return p->head[0] & 0x0f;
}

static bool is_control(const abx__ws_parser *p)
{
	return opcode_of(p) >= ABX__WS_CLOSE;
}

/* The first two bytes say whether the frame may come here at all. */
static int check_first(const abx__ws_parser *p)
{
	unsigned opcode = opcode_of(p), n = p->head[1] & 0x7f;
	bool fin = p->head[0] & FIN;

	if ((p->head[0] & RESERVED) || !(p->head[1] & MASKED))
		return ABX_EPROTO;
	switch (opcode) {
	case ABX__WS_CONTINUATION:
		return p->message_opcode ? ABX_OK : ABX_EPROTO;
	case ABX__WS_TEXT:
	case ABX__WS_BINARY:
		return p->message_opcode ? ABX_EPROTO : ABX_OK;
	case ABX__WS_CLOSE:
	case ABX__WS_PING:
	case ABX__WS_PONG:
		return fin && n <= ABX__WS_CONTROL_MAX ? ABX_OK : ABX_EPROTO;
	default:
		return ABX_EPROTO;
	}
}

static uint64_t length_of(const abx__ws_parser *p)
{
	unsigned n = p->head[1] & 0x7f;
	unsigned bytes = n == 127 ? 8 : n == 126 ? 2 : 0;
	uint64_t length = bytes ? 0 : n;

	for (unsigned i = 0; i < bytes; i++)
		length = length << 8 | p->head[2 + i];
	return length;
}

static int begin_payload(abx__ws_parser *p)
{
	size_t most = p->max_bytes ? p->max_bytes : DEFAULT_MAX;

	p->left = length_of(p);
	p->at = 0;
	if (!is_control(p) && (p->left > most || p->message.len > most - p->left))
		return ABX_ETOOBIG;
	if (!is_control(p) && opcode_of(p) != ABX__WS_CONTINUATION)
		p->message_opcode = (uint8_t)opcode_of(p);
	p->in_payload = true;
	return ABX_OK;
}

/* ---- payloads ---- */

static int take_payload(abx__ws_parser *p, const char *data, size_t len)
{
	abx__buf *buf = is_control(p) ? &p->control : &p->message;
	const uint8_t *mask = p->head + head_size(p) - 4;
	size_t from = buf->len;

	buf->cap = (p->max_bytes ? p->max_bytes : DEFAULT_MAX) + ABX__WS_CONTROL_MAX;
	if (abx__buf_add(buf, data, len) < 0)
		return ABX_ENOMEM;
	for (size_t i = 0; i < len; i++)
		buf->data[from + i] ^= (char)mask[(p->at + i) & 3];
	p->at += len;
	p->left -= len;
	return ABX_OK;
}

static int end_frame(abx__ws_parser *p, abx__ws_message_fn on_message, void *userdata)
{
	abx__buf *buf = is_control(p) ? &p->control : &p->message;
	unsigned opcode = is_control(p) ? opcode_of(p) : p->message_opcode;
	bool whole = p->head[0] & FIN;
	int r = ABX_OK;

	p->head_len = 0;
	p->in_payload = false;
	if (!whole)
		return ABX_OK;
	if (opcode == ABX__WS_TEXT && !abx__utf8_is_valid(abx__buf_str(buf), buf->len))
		return ABX_EINVAL;
	if (opcode == ABX__WS_CLOSE && buf->len == 1)
		return ABX_EPROTO;
	if (opcode < ABX__WS_CLOSE)
		p->message_opcode = 0;
	r = on_message(userdata, (enum abx__ws_opcode)opcode, abx__buf_str(buf),
		       buf->len);
	abx__buf_clear(buf);
	return r;
}

static int feed_head(abx__ws_parser *p, char byte)
{
	int r = ABX_OK;

	p->head[p->head_len++] = (uint8_t)byte;
	if (p->head_len == 2)
		r = check_first(p);
	if (r == ABX_OK && p->head_len >= 2 && p->head_len == head_size(p))
		r = begin_payload(p);
	return r;
}

int abx__ws_parser_feed(abx__ws_parser *p, const char *data, size_t len,
			abx__ws_message_fn on_message, void *userdata)
{
	int r = ABX_OK;

	while (r == ABX_OK && len > 0) {
		size_t n = 1;

		if (!p->in_payload) {
			r = feed_head(p, *data);
		} else {
			n = len < p->left ? len : (size_t)p->left;
			r = take_payload(p, data, n);
		}
		data += n;
		len -= n;
		if (r == ABX_OK && p->in_payload && p->left == 0)
			r = end_frame(p, on_message, userdata);
	}
	return r;
}

unsigned abx__ws_close_code(int r)
{
	switch (r) {
	case ABX_EPROTO:
		return ABX__WS_PROTOCOL_ERROR;
	case ABX_EINVAL:
		return ABX__WS_BAD_DATA;
	case ABX_ETOOBIG:
		return ABX__WS_TOO_BIG;
	default:
		return ABX__WS_INTERNAL;
	}
}

/* ---- writing ---- */

int abx__ws_frame_add(abx__buf *buf, enum abx__ws_opcode opcode, const void *data,
		      size_t len)
{
	uint8_t head[10] = { (uint8_t)(FIN | opcode) };
	size_t n = 2;

	if (len < 126) {
		head[1] = (uint8_t)len;
	} else {
		unsigned bytes = len < 65536 ? 2 : 8;

		head[1] = bytes == 2 ? 126 : 127;
		for (unsigned i = 0; i < bytes; i++)
			head[2 + i] = (uint8_t)((uint64_t)len >> 8 * (bytes - 1 - i));
		n += bytes;
	}
	if (abx__buf_add(buf, head, n) < 0)
		return ABX_ENOMEM;
	return abx__buf_add(buf, data, len);
}

int abx__ws_close_add(abx__buf *buf, unsigned code, const char *text)
{
	uint8_t body[ABX__WS_CONTROL_MAX] = { (uint8_t)(code >> 8), (uint8_t)code };
	size_t len = text ? strlen(text) : 0;

	if (len > sizeof(body) - 2)
		len = sizeof(body) - 2;
	if (len > 0)
		memcpy(body + 2, text, len);
	return abx__ws_frame_add(buf, ABX__WS_CLOSE, body, 2 + len);
}

int abx__ws_accept(const char *key, char out[ABX__WS_ACCEPT_SIZE])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	ABX_CLEANUP(abx__freep) uint8_t *bytes = NULL;
	ABX_CLEANUP(abx__freep) char *text = NULL;
	ABX_CLEANUP(abx__freep) char *code = NULL;
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned digest_len = 0;
	size_t len = 0;

	if (strlen(key) != 24 || abx__base64_decode(key, 24, &bytes, &len) < 0 ||
	    len != KEY_BYTES)
		return ABX_EINVAL;
	text = abx__strf("%s%s", key, guid);
	/* SHA-1 is what the RFC wants here; nothing is kept secret by it. */
	if (!text ||
	    EVP_Digest(text, strlen(text), digest, &digest_len, EVP_sha1(), NULL) != 1)
		return ABX_ENOMEM;
	code = abx__base64_encode(digest, digest_len);
	return code ? abx__str_copy(out, ABX__WS_ACCEPT_SIZE, code) : ABX_ENOMEM;
}

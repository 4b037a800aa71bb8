/*
 * http-body.c - see http-body.h. The chunk grammar is RFC 9112 section 7.1.
 */
#include "io/http-body.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include <agentbox/error.h>

#include "base/str.h"
#include "io/http-head.h"

#define SIZE_LINE_MAX 4096
#define TRAILERS_MAX (16 * 1024)

enum state {
	SIZE, /* hex digits */
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER_START,
	TRAILER,
	TRAILER_LF,
	END_LF,
};

void abx__http_body_init(abx__http_body *body, enum abx__http_framing framing,
			 uint64_t length)
{
	memset(body, 0, sizeof(*body));
	body->framing = framing;
	body->state = SIZE;
	if (framing == ABX__HTTP_LENGTH)
		body->left = length;
	body->done = framing == ABX__HTTP_NO_BODY ||
		     (framing == ABX__HTTP_LENGTH && length == 0);
}

static int size_byte(abx__http_body *body, char c)
{
	int digit = abx__hex_value(c);

	if (digit >= 0) {
		if (body->left >> 59)
			return ABX_EPROTO;
		body->left = body->left << 4 | (unsigned)digit;
		return ABX_OK;
	}
	if (body->overhead == 1) /* not one digit */
		return ABX_EPROTO;
	if (c == '\r')
		body->state = SIZE_LF;
	else if (c == ';' || c == ' ' || c == '\t')
		body->state = EXTENSION;
	else
		return ABX_EPROTO;
	return ABX_OK;
}

static int text_byte(abx__http_body *body, char c, enum state at_cr)
{
	if (c == '\r')
		body->state = (uint8_t)at_cr;
	else if (((unsigned char)c < ' ' && c != '\t') || c == 0x7f)
		return ABX_EPROTO;
	else
		return ABX_OK;
	return ABX_OK;
}

static int expect(abx__http_body *body, char c, char wanted, enum state next)
{
	if (c != wanted)
		return ABX_EPROTO;
	body->state = (uint8_t)next;
	return ABX_OK;
}

static int keep_trailer(abx__http_body *body, char c)
{
	return body->trailers ? abx__buf_addc(body->trailers, c) : ABX_OK;
}

/* One byte of what is not payload. */
static int frame_byte(abx__http_body *body, char c)
{
	int r = ABX_OK;

	body->overhead++;
	if (body->state == TRAILER || body->state == TRAILER_LF ||
	    (body->state == TRAILER_START && c != '\r'))
		r = keep_trailer(body, c);
	if (r < 0)
		return r;
	switch ((enum state)body->state) {
	case SIZE:
		return body->overhead > SIZE_LINE_MAX ? ABX_EPROTO : size_byte(body, c);
	case EXTENSION:
		return body->overhead > SIZE_LINE_MAX ? ABX_EPROTO
						      : text_byte(body, c, SIZE_LF);
	case SIZE_LF:
		body->overhead = 0;
		return expect(body, c, '\n', body->left > 0 ? DATA : TRAILER_START);
	case DATA_CR:
		return expect(body, c, '\r', DATA_LF);
	case DATA_LF:
		body->overhead = 0;
		return expect(body, c, '\n', SIZE);
	case TRAILER_START:
		if (c == '\r')
			return expect(body, c, '\r', END_LF);
		body->state = TRAILER;
		return text_byte(body, c, TRAILER_LF);
	case TRAILER:
		return body->overhead > TRAILERS_MAX ? ABX_EPROTO
						     : text_byte(body, c, TRAILER_LF);
	case TRAILER_LF:
		return expect(body, c, '\n', TRAILER_START);
	case END_LF:
		r = expect(body, c, '\n', END_LF);
		body->done = r == ABX_OK;
		return r;
	case DATA:
		break;
	}
	return ABX_EPROTO;
}

static size_t take(abx__http_body *body, size_t len)
{
	size_t n = body->left < len ? (size_t)body->left : len;

	body->left -= n;
	return n;
}

ssize_t abx__http_body_next(abx__http_body *body, const char *data, size_t len,
			    const char **ret_data, size_t *ret_len)
{
	size_t used = 0;

	*ret_data = data;
	*ret_len = 0;
	if (body->done)
		return 0;
	if (body->framing == ABX__HTTP_UNTIL_CLOSE) {
		*ret_len = len;
		return (ssize_t)len;
	}
	if (body->framing == ABX__HTTP_LENGTH) {
		*ret_len = take(body, len);
		body->done = body->left == 0;
		return (ssize_t)*ret_len;
	}
	while (used < len && !body->done) {
		if (body->state == DATA) {
			*ret_data = data + used;
			*ret_len = take(body, len - used);
			if (body->left == 0)
				body->state = DATA_CR;
			return (ssize_t)(used + *ret_len);
		}
		int r = frame_byte(body, data[used]);

		if (r < 0)
			return r;
		used++;
	}
	return (ssize_t)used;
}

void abx__http_body_skip(abx__http_body *body, uint64_t len)
{
	assert(body->framing == ABX__HTTP_LENGTH && len <= body->left);
	body->left -= len;
	body->done = body->left == 0;
}

/* ---- trailer fields ---- */

static bool may_trail(const char *name, size_t len)
{
	static const char *const never[] = {
		"authorization",    "cache-control",
		"connection",       "content-encoding",
		"content-length",   "content-range",
		"content-type",     "cookie",
		"expect",           "host",
		"keep-alive",       "max-forwards",
		"pragma",           "proxy-authorization",
		"proxy-connection", "range",
		"set-cookie",       "te",
		"trailer",          "transfer-encoding",
		"upgrade",          "www-authenticate",
	};

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		if (strlen(never[i]) == len && strncasecmp(never[i], name, len) == 0)
			return false;
	}
	return true;
}

int abx__http_trailers_add(abx__buf *trailers, const char *name, size_t name_len,
			   const char *value, size_t value_len)
{
	size_t before = trailers->len;
	int r;

	if (!may_trail(name, name_len))
		return ABX_OK;
	if (before + name_len + value_len > TRAILERS_MAX)
		return ABX_EPROTO;
	r = abx__buf_add(trailers, name, name_len);
	if (r == ABX_OK)
		r = abx__buf_addc(trailers, '\0');
	if (r == ABX_OK)
		r = abx__buf_add(trailers, value, value_len);
	if (r == ABX_OK)
		r = abx__buf_addc(trailers, '\0');
	if (r < 0)
		return r;
	/* With a NUL inside it would be more than one. */
	if (strlen(trailers->data + before) == name_len &&
	    strlen(trailers->data + before + name_len + 1) == value_len &&
	    abx__http_name_is_valid(trailers->data + before) &&
	    abx__http_value_is_valid(trailers->data + before + name_len + 1))
		return ABX_OK;
	trailers->len = before;
	return ABX_EPROTO;
}

int abx__http_trailers_split(abx__buf *trailers)
{
	abx__buf lines = *trailers;
	const char *at = abx__buf_str(&lines), *end = at + lines.len;
	int r = ABX_OK;

	*trailers = (abx__buf)ABX__BUF_INIT;
	while (r == ABX_OK && at < end) {
		const char *cr = memchr(at, '\r', (size_t)(end - at));
		const char *stop = cr ? cr : end;
		const char *colon = memchr(at, ':', (size_t)(stop - at));
		const char *value = colon ? colon + 1 : stop;

		while (value < stop && (*value == ' ' || *value == '\t'))
			value++;
		while (stop > value && (stop[-1] == ' ' || stop[-1] == '\t'))
			stop--;
		r = !colon ? ABX_EPROTO
			   : abx__http_trailers_add(trailers, at, (size_t)(colon - at),
						    value, (size_t)(stop - value));
		at = cr ? cr + 2 : end;
	}
	abx__buf_done(&lines);
	if (r < 0)
		abx__buf_done(trailers);
	return r;
}

bool abx__http_trailers_at(const abx__buf *trailers, size_t index, const char **ret_name,
			   const char **ret_value)
{
	const char *at = abx__buf_str(trailers), *end = at + trailers->len;

	while (at < end) {
		const char *value = at + strlen(at) + 1;

		if (index-- == 0) {
			*ret_name = at;
			*ret_value = value;
			return true;
		}
		at = value + strlen(value) + 1;
	}
	return false;
}

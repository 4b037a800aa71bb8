/*
 * connect-frame.c - Connect's envelopes, both ways.
 */
#include "io/connect-frame.h"

#include <agentbox/error.h>

#define DEFAULT_MAX_BYTES ((size_t)4 << 20)

static size_t head_length(const uint8_t head[ABX__CONNECT_HEAD_LEN])
{
	return (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 |
	       head[4];
}

static void put_length(uint8_t *head, size_t len)
{
	head[1] = (uint8_t)(len >> 24);
	head[2] = (uint8_t)(len >> 16);
	head[3] = (uint8_t)(len >> 8);
	head[4] = (uint8_t)len;
}

void abx__connect_parser_done(abx__connect_parser *parser)
{
	abx__buf_done(&parser->payload);
	parser->head_len = 0;
}

/* Takes what is there of one message; 1 when it was delivered, 0 when more bytes are
 * needed. */
static int take_message(abx__connect_parser *parser, const char **data, size_t *len,
			abx__connect_frame_fn on_frame, void *userdata)
{
	size_t max = parser->max_bytes ? parser->max_bytes : DEFAULT_MAX_BYTES;
	size_t want, piece;
	int r;

	while (parser->head_len < ABX__CONNECT_HEAD_LEN) {
		if (*len == 0)
			return 0;
		parser->head[parser->head_len++] = (uint8_t) * (*data)++;
		(*len)--;
	}
	want = head_length(parser->head);
	if (want > max)
		return ABX_ETOOBIG;
	if (parser->payload.len == 0 && *len >= want) {
		parser->head_len = 0;
		r = on_frame(userdata, parser->head[0], *data, want);
		*data += want;
		*len -= want;
		return r < 0 ? r : 1;
	}
	piece = want - parser->payload.len < *len ? want - parser->payload.len : *len;
	parser->payload.cap = max;
	r = abx__buf_add(&parser->payload, *data, piece);
	if (r < 0)
		return r;
	*data += piece;
	*len -= piece;
	if (parser->payload.len < want)
		return 0;
	parser->head_len = 0;
	r = on_frame(userdata, parser->head[0], parser->payload.data, want);
	abx__buf_done(&parser->payload);
	return r < 0 ? r : 1;
}

int abx__connect_parser_feed(abx__connect_parser *parser, const char *data, size_t len,
			     abx__connect_frame_fn on_frame, void *userdata)
{
	int r = 1;

	/* A message without payload needs no bytes behind its head, hence the test of the
	 * result. */
	while (r > 0 && (len > 0 || parser->head_len == ABX__CONNECT_HEAD_LEN))
		r = take_message(parser, &data, &len, on_frame, userdata);
	return r < 0 ? r : ABX_OK;
}

int abx__connect_parser_finish(const abx__connect_parser *parser)
{
	return parser->head_len == 0 && parser->payload.len == 0 ? ABX_OK : ABX_EPROTO;
}

int abx__connect_frame_open(abx__buf *buf, unsigned flags, size_t *ret_mark)
{
	uint8_t head[ABX__CONNECT_HEAD_LEN] = { (uint8_t)flags };

	*ret_mark = buf->len;
	return abx__buf_add(buf, head, sizeof(head));
}

void abx__connect_frame_close(abx__buf *buf, size_t mark)
{
	put_length((uint8_t *)buf->data + mark, buf->len - mark - ABX__CONNECT_HEAD_LEN);
}

int abx__connect_frame_add(abx__buf *buf, unsigned flags, const void *data, size_t len)
{
	uint8_t head[ABX__CONNECT_HEAD_LEN] = { (uint8_t)flags };
	int r;

	if (len > UINT32_MAX)
		return ABX_ETOOBIG;
	put_length(head, len);
	r = abx__buf_reserve(buf, len + sizeof(head));
	if (r < 0)
		return r;
	abx__buf_add(buf, head, sizeof(head));
	return abx__buf_add(buf, data, len);
}

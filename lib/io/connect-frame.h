/*
 * connect-frame.h - the envelopes of Connect streams: one flag byte, four bytes of length
 * (big endian), payload.
 *
 * The parser is pure: bytes in at any split, whole messages out. It holds at most one
 * message, never more than its cap, and grows with the bytes that came, not with the
 * length a peer announced.
 */
#ifndef ABX_IO_CONNECT_FRAME_H
#define ABX_IO_CONNECT_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ABX__CONNECT_HEAD_LEN 5
#define ABX__CONNECT_COMPRESSED 0x01
#define ABX__CONNECT_END_STREAM 0x02

typedef struct abx__connect_parser {
	size_t max_bytes; /* of one payload; set by the owner, 0: 4 MiB */
	uint8_t head[ABX__CONNECT_HEAD_LEN];
	unsigned head_len;
	abx__buf payload; /* the part of an incomplete payload that came */
} abx__connect_parser;

/* A whole message; `data` lives until the callback returns. A negative result stops the
 * parser. */
typedef int (*abx__connect_frame_fn)(void *userdata, unsigned flags, const char *data,
				     size_t len);

void abx__connect_parser_done(abx__connect_parser *parser);
/* ABX_OK, ABX_ETOOBIG (a payload over the cap), ABX_ENOMEM, or what the callback
   returned. Not to be fed again after a failure. */
int abx__connect_parser_feed(abx__connect_parser *parser, const char *data, size_t len,
			     abx__connect_frame_fn on_frame, void *userdata);
/* At the end of the input: ABX_EPROTO when it ended inside a message. */
int abx__connect_parser_finish(const abx__connect_parser *parser);

/* Appends a whole envelope. */
int abx__connect_frame_add(abx__buf *buf, unsigned flags, const void *data, size_t len);
/* Appends a head whose length is filled in by _close(), so that a message is printed in
 * place. */
int abx__connect_frame_open(abx__buf *buf, unsigned flags, size_t *ret_mark);
void abx__connect_frame_close(abx__buf *buf, size_t mark);

#endif

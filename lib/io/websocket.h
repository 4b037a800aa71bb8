/*
 * websocket.h - the frames of a WebSocket as a server reads and writes them (RFC 6455).
 * Pure: bytes in at any split, whole messages out. What a client sends must be masked;
 * fragments are put together up to a cap. No extensions.
 */
#ifndef ABX_IO_WEBSOCKET_H
#define ABX_IO_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ABX__WS_ACCEPT_SIZE 29
#define ABX__WS_CONTROL_MAX 125

enum abx__ws_opcode {
	ABX__WS_CONTINUATION = 0, /* never given to the owner */
	ABX__WS_TEXT = 1,         /* valid UTF-8 */
	ABX__WS_BINARY = 2,
	ABX__WS_CLOSE = 8, /* nothing, or a code of two bytes and a text */
	ABX__WS_PING = 9,
	ABX__WS_PONG = 10,
};

/* Codes of a close frame. */
enum {
	ABX__WS_NORMAL = 1000,
	ABX__WS_GOING_AWAY = 1001,
	ABX__WS_PROTOCOL_ERROR = 1002,
	ABX__WS_BAD_DATA = 1007,
	ABX__WS_TOO_BIG = 1009,
	ABX__WS_INTERNAL = 1011,
};

typedef struct abx__ws_parser {
	size_t max_bytes; /* of a message; set by the owner, 0: 1 MiB */
	/* the rest is websocket.c's */
	uint8_t head[14];
	unsigned head_len;
	uint64_t left; /* of the present frame's payload */
	uint64_t at;   /* of it, for the mask */
	bool in_payload;
	uint8_t message_opcode; /* of the fragments so far; 0: none */
	abx__buf message, control;
} abx__ws_parser;

/* A whole message or control frame; `data` lives until it returns. A negative result
 * stops the parser. */
typedef int (*abx__ws_message_fn)(void *userdata, enum abx__ws_opcode opcode,
				  const char *data, size_t len);

void abx__ws_parser_done(abx__ws_parser *parser);
/* ABX_OK, ABX_EPROTO, ABX_EINVAL (a text that is not UTF-8), ABX_ETOOBIG, ABX_ENOMEM, or
   what the callback returned. Not to be fed again after a failure. */
int abx__ws_parser_feed(abx__ws_parser *parser, const char *data, size_t len,
			abx__ws_message_fn on_message, void *userdata);
/* The code to close with after that failure. */
unsigned abx__ws_close_code(int r);

/* Appends a whole frame, not masked. */
int abx__ws_frame_add(abx__buf *buf, enum abx__ws_opcode opcode, const void *data,
		      size_t len);
int abx__ws_close_add(abx__buf *buf, unsigned code, const char *text);

/* Sec-WebSocket-Accept for a Sec-WebSocket-Key; ABX_EINVAL when that is no base64 of 16
 * bytes. */
int abx__ws_accept(const char *key, char out[ABX__WS_ACCEPT_SIZE]);

#endif

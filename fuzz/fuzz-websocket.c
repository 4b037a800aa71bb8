/* WebSocket frames: the same messages whatever the split, and none over the cap. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

#include "base/id.h"
#include "io/websocket.h"

#define MOST 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct sum {
	uint64_t hash;
	size_t count;
} sum;

static int on_message(void *userdata, enum abx__ws_opcode opcode, const char *data,
		      size_t len)
{
	sum *s = userdata;

	if (len > MOST || (opcode >= ABX__WS_CLOSE && len > ABX__WS_CONTROL_MAX))
		abort();
	s->hash = s->hash * 31 + abx__fnv1a64(data, len) + (uint64_t)opcode;
	s->count++;
	return ABX_OK;
}

static int run(const uint8_t *data, size_t size, size_t piece, sum *s)
{
	abx__ws_parser p = { .max_bytes = MOST };
	int r = ABX_OK;

	for (size_t at = 0; r == ABX_OK && at < size; at += piece)
		r = abx__ws_parser_feed(&p, (const char *)data + at,
					size - at < piece ? size - at : piece, on_message,
					s);
	abx__ws_parser_done(&p);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sum whole = { 0 }, bytes = { 0 };
	int a = run(data, size, size ? size : 1, &whole), b = run(data, size, 1, &bytes);

	if (a != b || whole.hash != bytes.hash || whole.count != bytes.count)
		abort();
	return 0;
}

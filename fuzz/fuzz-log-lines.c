/* Lines of a log: the same whatever the split, none with an end in it, none over the cap;
 * and its last lines begin where a line does. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

#include "base/id.h"
#include "serve/log-lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct sum {
	uint64_t hash;
	size_t count;
} sum;

static int on_line(void *userdata, const char *line, size_t len)
{
	sum *s = userdata;

	if (len == 0 || len > ABX__LOG_LINE_MAX || memchr(line, '\n', len))
		abort();
	s->hash = s->hash * 31 + abx__fnv1a64(line, len);
	s->count++;
	return ABX_OK;
}

static sum split(const char *text, size_t size, size_t piece)
{
	abx__log_lines lines = { 0 };
	sum s = { 0 };

	for (size_t at = 0; at < size; at += piece)
		if (abx__log_lines_feed(&lines, text + at,
					size - at < piece ? size - at : piece, on_line,
					&s) < 0)
			abort();
	if (abx__log_lines_finish(&lines, on_line, &s) < 0)
		abort();
	abx__log_lines_done(&lines);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *tail;
	sum whole = split(text, size, size ? size : 1), bytes = split(text, size, 1);

	if (whole.hash != bytes.hash || whole.count != bytes.count)
		abort();
	for (size_t n = 0; n < 4; n++) {
		tail = abx__log_lines_tail(text, size, n);
		if (tail < text || tail > text + size ||
		    (tail > text && tail[-1] != '\n'))
			abort();
		if (n > 0 &&
		    split(tail, (size_t)(text + size - tail), size + 1).count > n)
			abort();
	}
	return 0;
}

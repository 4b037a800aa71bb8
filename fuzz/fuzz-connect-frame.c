/* Connect envelopes: the same messages at every split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

#include "base/buf.h"
#include "io/connect-frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int collect(void *userdata, unsigned flags, const char *data, size_t len)
{
	abx__buf_addf(userdata, "[%u:%zu]", flags, len);
	return abx__buf_add(userdata, data, len);
}

static int run(const uint8_t *data, size_t size, size_t step, abx__buf *out)
{
	abx__connect_parser parser = { .max_bytes = 4096 };
	int r = ABX_OK;

	for (size_t at = 0; r == ABX_OK && at < size; at += step)
		r = abx__connect_parser_feed(&parser, (const char *)data + at,
					     size - at < step ? size - at : step, collect,
					     out);
	if (r == ABX_OK)
		r = abx__connect_parser_finish(&parser);
	abx__connect_parser_done(&parser);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP_BUF abx__buf whole = ABX__BUF_INIT, split = ABX__BUF_INIT;
	size_t step = size ? data[0] % 7 + 1 : 1;
	int r = run(data, size, size + 1, &whole);

	if (run(data, size, step, &split) != r || whole.len != split.len ||
	    memcmp(abx__buf_str(&whole), abx__buf_str(&split), whole.len) != 0)
		abort();
	return 0;
}

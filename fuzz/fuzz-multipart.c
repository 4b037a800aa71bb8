/* multipart/form-data: the same parts at every split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

#include "envd/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_begin(void *userdata, const char *name, const char *filename)
{
	return abx__buf_addf(userdata, "<%s|%s>", name ? name : "",
			     filename ? filename : "");
}

static int on_data(void *userdata, const char *data, size_t len)
{
	return abx__buf_add(userdata, data, len);
}

static int on_end(void *userdata)
{
	return abx__buf_adds(userdata, "</>");
}

static int run(const uint8_t *data, size_t size, size_t step, abx__buf *out)
{
	static const abx__multipart_ops ops = { on_begin, on_data, on_end };
	abx__multipart parser;
	int r = abx__multipart_init(&parser, "multipart/form-data; boundary=X", &ops,
				    out);

	for (size_t at = 0; r == ABX_OK && at < size; at += step)
		r = abx__multipart_feed(&parser, (const char *)data + at,
					size - at < step ? size - at : step);
	if (r == ABX_OK)
		r = abx__multipart_finish(&parser);
	abx__multipart_done(&parser);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP_BUF abx__buf whole = ABX__BUF_INIT, split = ABX__BUF_INIT;
	size_t step = size ? data[size / 2] % 9 + 1 : 1;
	int r = run(data, size, size + 1, &whole);

	/* A broken body may have given more of its data before the break shows. */
	if (run(data, size, step, &split) != r)
		abort();
	if (r == ABX_OK &&
	    (whole.len != split.len ||
	     memcmp(abx__buf_str(&whole), abx__buf_str(&split), whole.len) != 0))
		abort();
	return 0;
}

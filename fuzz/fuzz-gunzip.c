/* Packed bodies: the same bytes at every split, and never out of proportion. */
#include <stdint.h>
#include <stdlib.h>

#include "envd/gzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
	uint64_t bytes, hash;
};

static int add(void *userdata, const char *data, size_t len)
{
	struct sum *sum = userdata;

	sum->bytes += len;
	for (size_t i = 0; i < len; i++)
		sum->hash = (sum->hash ^ (unsigned char)data[i]) * 1099511628211u;
	return ABX_OK;
}

static int run(const uint8_t *data, size_t size, size_t step, struct sum *sum)
{
	abx__gunzip *gunzip = abx__gunzip_new();
	int r = gunzip ? ABX_OK : ABX_ENOMEM;

	*sum = (struct sum){ 0 };
	for (size_t at = 0; r == ABX_OK && at < size; at += step)
		r = abx__gunzip_feed(gunzip, (const char *)data + at,
				     size - at < step ? size - at : step, add, sum, NULL);
	if (r == ABX_OK)
		r = abx__gunzip_finish(gunzip, NULL);
	abx__gunzip_free(gunzip);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t step = size ? data[size / 2] % 9 + 1 : 1;
	struct sum whole, split;
	int r = run(data, size, size + 1, &whole);

	if (run(data, size, step, &split) != r)
		abort();
	if (r == ABX_OK && (whole.bytes != split.bytes || whole.hash != split.hash))
		abort();
	if (whole.bytes > (uint64_t)size * 1100 + 65536)
		abort();
	return 0;
}

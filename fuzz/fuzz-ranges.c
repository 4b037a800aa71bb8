/* Range headers: what comes out lies within the file and says the same again. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "envd/ranges.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const abx__range *ranges, int count, int64_t size)
{
	int64_t total = 0;

	if (count > ABX__RANGES_MAX)
		abort();
	for (int i = 0; i < count; i++) {
		if (ranges[i].start < 0 || ranges[i].length <= 0 ||
		    ranges[i].length > size - ranges[i].start)
			abort();
		total += ranges[i].length;
	}
	if (total > size)
		abort();
}

static void check_again(const abx__range *ranges, int count, int64_t size)
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	abx__range again[ABX__RANGES_MAX];

	abx__buf_adds(&text, "bytes=");
	for (int i = 0; i < count; i++)
		abx__buf_addf(&text, "%s%" PRId64 "-%" PRId64, i ? "," : "",
			      ranges[i].start, ranges[i].start + ranges[i].length - 1);
	if (abx__ranges_parse(abx__buf_str(&text), size, again, NULL) != count ||
	    memcmp(again, ranges, (size_t)count * sizeof(*ranges)) != 0)
		abort();
}

/* The first byte chooses the size of the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int64_t sizes[] = { 0, 1, 10, 1000, (int64_t)5 << 30, INT64_MAX };
	ABX_CLEANUP(abx__freep) char *header = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__range ranges[ABX__RANGES_MAX];
	int64_t file;
	int count;

	if (size == 0)
		return 0;
	file = sizes[data[0] % (sizeof(sizes) / sizeof(sizes[0]))];
	header = abx__strndup((const char *)data + 1, size - 1);
	if (!header)
		return 0;
	count = abx__ranges_parse(header, file, ranges, &err);
	if (count < 0) {
		if (count != ABX_EINVAL ||
		    !abx__str_starts(abx_error_message(err), "invalid range"))
			abort();
		return 0;
	}
	check(ranges, count, file);
	if (count > 0)
		check_again(ranges, count, file);
	return 0;
}

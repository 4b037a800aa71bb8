/*
 * test-gzip.c - the filters against each other, at any split, and against damage.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "envd/gzip.h"

static int collect(void *userdata, const char *data, size_t len)
{
	return abx__buf_add(userdata, data, len);
}

static void pack(const char *data, size_t len, size_t step, abx__buf *out)
{
	abx__gzip *gzip = abx__gzip_new();
	size_t at = 0;

	do {
		size_t n = len - at < step ? len - at : step;

		cr_assert_eq(abx__gzip_feed(gzip, data + at, n, at + n == len, out),
			     ABX_OK);
		at += n;
	} while (at < len);
	abx__gzip_free(gzip);
}

static int unpack(const char *data, size_t len, size_t step, abx__buf *out,
		  abx_error **reterr)
{
	abx__gunzip *gunzip = abx__gunzip_new();
	int r = ABX_OK;

	for (size_t at = 0; r >= 0 && at < len; at += step)
		r = abx__gunzip_feed(gunzip, data + at, len - at < step ? len - at : step,
				     collect, out, reterr);
	if (r >= 0)
		r = abx__gunzip_finish(gunzip, reterr);
	abx__gunzip_free(gunzip);
	return r;
}

static char *make(size_t len, bool random)
{
	char *data = malloc(len + 1);
	unsigned x = 1;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = random ? (char)(x >> 24) : (char)('a' + i / 100 % 20);
	}
	return data;
}

Test(guest_gzip, what_goes_in_comes_out_at_any_split, .timeout = 60)
{
	static const size_t sizes[] = { 0, 1, 1000, 32768, 300001, 2000000 };
	static const size_t steps[] = { 1, 7, 32768, 262144, 4000000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < 2 * sizeof(steps) / sizeof(steps[0]); k++) {
			size_t step = steps[k / 2];
			char *data = make(sizes[i], k % 2);
			abx__buf packed = ABX__BUF_INIT, out = ABX__BUF_INIT;

			if (sizes[i] / step > 100000)
				step = 100;
			pack(data, sizes[i], step, &packed);
			cr_assert_eq(unpack(packed.data, packed.len, step, &out, NULL),
				     ABX_OK);
			cr_assert(out.len == sizes[i] &&
				  (out.len == 0 || memcmp(out.data, data, out.len) == 0));
			/* What does not shrink hardly grows. */
			cr_assert(packed.len < sizes[i] + sizes[i] / 50 + 64);
			cr_assert(k % 2 || sizes[i] < 1000 || packed.len < sizes[i] / 10);
			abx__buf_done(&packed);
			abx__buf_done(&out);
			free(data);
		}
}

Test(guest_gzip, members_one_after_the_other_are_one_body)
{
	abx__buf packed = ABX__BUF_INIT, out = ABX__BUF_INIT;

	pack("one ", 4, 4, &packed);
	pack("", 0, 1, &packed);
	pack("two", 3, 3, &packed);
	cr_assert_eq(unpack(packed.data, packed.len, 1, &out, NULL), ABX_OK);
	cr_assert_str_eq(out.data, "one two");
	abx__buf_done(&packed);
	abx__buf_done(&out);
}

Test(guest_gzip, damage_is_told)
{
	abx__buf packed = ABX__BUF_INIT, out = ABX__BUF_INIT;
	char *data = make(5000, false);

	pack(data, 5000, 5000, &packed);
	for (size_t len = 0; len < packed.len; len++) {
		abx_error *err = NULL;

		abx__buf_clear(&out);
		cr_assert_eq(unpack(packed.data, len, 4096, &out, &err), ABX_EPROTO);
		cr_assert_str_eq(abx_error_message(err),
				 "error decompressing request body: it is cut short");
		abx_error_free(err);
	}
	packed.data[packed.len - 5] ^= 1; /* the checksum */
	cr_assert_eq(unpack(packed.data, packed.len, 4096, &out, NULL), ABX_EPROTO);
	packed.data[packed.len - 5] ^= 1;
	abx__buf_adds(&packed, "more");
	cr_assert_eq(unpack(packed.data, packed.len, 4096, &out, NULL), ABX_EPROTO);
	cr_assert_eq(unpack("plain text", 10, 4096, &out, NULL), ABX_EPROTO);
	abx__buf_done(&packed);
	abx__buf_done(&out);
	free(data);
}

static int count(void *userdata, const char *data, size_t len)
{
	(void)data;
	*(uint64_t *)userdata += len;
	return ABX_OK;
}

static int refuse(void *userdata, const char *data, size_t len)
{
	(void)userdata;
	(void)data;
	(void)len;
	return ABX_EFAIL;
}

/* As tight as it gets; our own filter does not try as hard. */
static char *pack_zeros(size_t len, size_t *ret_len)
{
	z_stream z = { 0 };
	char *zeros = calloc(1, len), *out = malloc(len / 100);

	cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (z_const Bytef *)zeros;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)(len / 100);
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	*ret_len = z.total_out;
	deflateEnd(&z);
	free(zeros);
	return out;
}

Test(guest_gzip, a_bomb_stops_after_what_is_free, .timeout = 120)
{
	size_t len = 64 << 20, packed_len;
	char *packed = pack_zeros(len, &packed_len);
	abx__gunzip *gunzip = abx__gunzip_new();
	abx_error *err = NULL;
	uint64_t out = 0;
	int r = ABX_OK;

	cr_assert_lt(packed_len, len / ABX__GUNZIP_MAX_RATIO, "no bomb: %zu bytes",
		     packed_len);
	for (int i = 0; i < 30 && r >= 0; i++)
		r = abx__gunzip_feed(gunzip, packed, packed_len, count, &out, &err);
	cr_assert_eq(r, ABX_ETOOBIG);
	cr_assert_str_eq(abx_error_message(err),
			 "the gzip body unpacks to more than 256 times its size; send it "
			 "without Content-Encoding");
	cr_assert(out > ABX__GUNZIP_FREE_BYTES && out < ABX__GUNZIP_FREE_BYTES + 100000);
	cr_assert_eq(abx__gunzip_feed(gunzip, "x", 1, count, &out, NULL), ABX_ETOOBIG);
	abx_error_free(err);
	abx__gunzip_free(gunzip);
	free(packed);
}

Test(guest_gzip, a_sink_that_refuses_stops_the_filter)
{
	abx__buf packed = ABX__BUF_INIT;
	abx__gunzip *gunzip = abx__gunzip_new();
	abx_error *err = NULL;

	pack("x", 1, 1, &packed);
	cr_assert_eq(
		abx__gunzip_feed(gunzip, packed.data, packed.len, refuse, NULL, &err),
		ABX_EFAIL);
	cr_assert_null(err);
	abx__gunzip_free(gunzip);
	abx__buf_done(&packed);
}

/*
 * test-envd-gzip.c - packed bodies at the real daemon.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "envd-expect.h"

static envd_child child;

static void start(void)
{
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_gzip, .init = start, .fini = stop, .timeout = 120);

#define GZIP "Content-Encoding: gzip\r\n"

/* zlib's own, not ours. */
static char *pack(const void *data, size_t len, size_t *ret_len)
{
	z_stream z = { 0 };
	char *out = malloc(len + len / 100 + 1000);

	cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (z_const Bytef *)data;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)(len + len / 100 + 1000);
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	*ret_len = z.total_out;
	deflateEnd(&z);
	return out;
}

static char *make(size_t len)
{
	char *data = malloc(len + 1);
	unsigned x = 1;

	for (size_t i = 0; i < len; i++) {
		x = i % 7 ? x : x * 1664525u + 1013904223u;
		data[i] = (char)(x >> 24);
	}
	return data;
}

static envd_answer post(const char *name, const char *headers, const void *data,
			size_t len)
{
	ABX_CLEANUP(abx__freep) char *target = envd_expand(&child, name);
	size_t packed_len;
	char *packed = pack(data, len, &packed_len);
	envd_answer answer =
		envd_child_request(&child, "POST", target, headers, packed, packed_len);

	free(packed);
	return answer;
}

Test(envd_gzip, packed_uploads_are_unpacked)
{
	static const size_t sizes[] = { 0, 1, 65537, 9000000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *data = make(sizes[i]);
		envd_answer answer = post("/files?path=@/f", OCTETS GZIP, data, sizes[i]);

		cr_assert(answer.status == 200, "%s", abx__buf_str(&answer.body));
		envd_answer_done(&answer);
		answer = envd_ask(&child, "GET", "/files?path=@/f", NULL, NULL);
		cr_assert(answer.is_whole && answer.body.len == sizes[i] &&
			  memcmp(abx__buf_str(&answer.body), data, sizes[i]) == 0);
		envd_answer_done(&answer);
		free(data);
	}
}

Test(envd_gzip, a_packed_form_is_unpacked)
{
	ABX_CLEANUP(abx__freep)
	char *body = envd_expand(&child,
				 "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
				 "filename=\"@/a\"\r\n\r\n1\r\n"
				 "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
				 "filename=\"@/b\"\r\n\r\n2\r\n--XX--\r\n");
	envd_answer answer =
		post("/files", FORM "Content-Encoding: GZIP\r\n", body, strlen(body));

	cr_assert(answer.status == 200, "%s", abx__buf_str(&answer.body));
	envd_answer_done(&answer);
	envd_expect(&child, "GET", "/files?path=@/a", NULL, NULL, 200, "1");
	envd_expect(&child, "GET", "/files?path=@/b", NULL, NULL, 200, "2");
}

Test(envd_gzip, bodies_that_are_none_are_refused_and_change_nothing)
{
	char *data = make(3000000), *packed;
	ABX_CLEANUP(abx__freep) char *target = envd_expand(&child, "/files?path=@/f");
	envd_answer answer;
	size_t len;

	envd_expect(&child, "POST", "/files?path=@/f", OCTETS, "old", 200, NULL);
	envd_expect_error(&child, "POST", "/files?path=@/f", OCTETS GZIP, "plain", 400,
			  "error decompressing request body: incorrect header check");
	envd_expect_error(&child, "POST", "/files?path=@/f", OCTETS GZIP, "", 400,
			  "error decompressing request body: it is cut short");
	envd_expect_error(&child, "POST", "/files?path=@/f",
			  OCTETS "Content-Encoding: br\r\n", "x", 400,
			  "error decompressing request body: unsupported "
			  "Content-Encoding: br, supported: [gzip]");
	packed = pack(data, 3000000, &len);
	answer = envd_child_request(&child, "POST", target, OCTETS GZIP, packed, len - 1);
	cr_assert_eq(answer.status, 400);
	cr_assert_str_eq(abx__buf_str(&answer.body),
			 "{\"code\":400,\"message\":\"error decompressing request body: "
			 "it is cut short\"}\n");
	envd_answer_done(&answer);
	packed[len / 2] ^= 0x55;
	answer = envd_child_request(&child, "POST", target, OCTETS GZIP, packed, len);
	cr_assert_eq(answer.status, 400);
	envd_answer_done(&answer);
	free(packed);
	free(data);
	envd_expect(&child, "GET", "/files?path=@/f", NULL, NULL, 200, "old");
}

Test(envd_gzip, the_size_told_on_a_full_disk_is_the_bodys)
{
	/* /dev/full is full for everybody. */
	envd_answer answer = post("/files?path=/dev/full", OCTETS GZIP, "x", 1);

	cr_assert_eq(answer.status, 507);
	cr_assert_str_eq(abx__buf_str(&answer.body),
			 "{\"code\":507,\"message\":\"attempted to write 21 bytes: not "
			 "enough disk space available\"}\n");
	envd_answer_done(&answer);
}

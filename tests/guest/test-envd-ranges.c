/*
 * test-envd-ranges.c - ranges, conditions and codings of downloads at the real daemon.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd-expect.h"

static envd_child child;

#define TEXT "0123456789"
#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
#define FILE_F "/files?path=@/f"

/* @/f with ten digits, last changed at DATE. */
static void start(void)
{
	ABX_CLEANUP(abx__freep) char *path = NULL;
	const struct timespec times[2] = { { .tv_sec = 784111777 },
					   { .tv_sec = 784111777 } };

	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
	path = envd_expand(&child, "@/f");
	envd_expect(&child, "POST", FILE_F, OCTETS, TEXT, 200, NULL);
	cr_assert(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_ranges, .init = start, .fini = stop, .timeout = 120);

static void expect_part(const char *headers, const char *range, const char *body)
{
	envd_answer answer = envd_ask(&child, "GET", FILE_F, headers, NULL);

	cr_assert(answer.status == (range ? 206 : 200), "%s: %d", headers, answer.status);
	cr_assert(answer.is_whole);
	cr_assert_str_eq(abx__buf_str(&answer.body), body, "%s", headers);
	cr_assert(range ? envd_answer_has(&answer, "Content-Range", range)
			: !strstr(answer.head, "Content-Range"));
	cr_assert(envd_answer_has(&answer, "Accept-Ranges", "bytes"));
	cr_assert(envd_answer_has(&answer, "Content-Type", "text/plain; charset=utf-8"));
	envd_answer_done(&answer);
}

/* The ETag of @/f. */
static char *tag(void)
{
	envd_answer answer = envd_ask(&child, "GET", FILE_F, NULL, NULL);
	char *at = strcasestr(answer.head, "\r\netag: "), *out;

	cr_assert(at);
	at += 8;
	out = strndup(at, strcspn(at, "\r"));
	envd_answer_done(&answer);
	return out;
}

Test(envd_ranges, one_range_is_a_part)
{
	expect_part("Range: bytes=2-4\r\n", "bytes 2-4/10", "234");
	expect_part("Range: bytes=7-\r\n", "bytes 7-9/10", "789");
	expect_part("Range: bytes=-1\r\n", "bytes 9-9/10", "9");
	expect_part("Range: bytes=0-0,30-\r\n", "bytes 0-0/10", "0");
	expect_part("Range: bytes=0-,0-\r\n", NULL, TEXT);
	/* With gzip first in rank a range is still one of the file's own bytes. */
	expect_part("Range: bytes=2-4\r\nAccept-Encoding: gzip\r\n", "bytes 2-4/10",
		    "234");
}

Test(envd_ranges, several_are_a_multipart)
{
	envd_answer answer =
		envd_ask(&child, "GET", FILE_F, "Range: bytes=8-9,0-1\r\n", NULL);
	char *at = strstr(answer.head, "multipart/byteranges; boundary=");
	ABX_CLEANUP(abx__freep) char *boundary = NULL;
	ABX_CLEANUP(abx__freep) char *want = NULL;

	cr_assert(answer.status == 206 && answer.is_whole && at);
	at = strchr(at, '=') + 1;
	boundary = strndup(at, strcspn(at, "\r"));
	want = abx__strf(
		"--%s\r\nContent-Range: bytes 8-9/10\r\n"
		"Content-Type: text/plain; charset=utf-8\r\n\r\n89\r\n"
		"--%s\r\nContent-Range: bytes 0-1/10\r\n"
		"Content-Type: text/plain; charset=utf-8\r\n\r\n01\r\n--%s--\r\n",
		boundary, boundary, boundary);
	cr_assert_str_eq(abx__buf_str(&answer.body), want);
	envd_answer_done(&answer);
}

Test(envd_ranges, ranges_of_a_long_file_are_exact)
{
	size_t len = 3000000;
	char *data = malloc(len + 1);
	ABX_CLEANUP(abx__freep) char *target = envd_expand(&child, "/files?path=@/long");
	envd_answer answer;

	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	answer = envd_child_request(&child, "POST", target, OCTETS, data, len);
	cr_assert_eq(answer.status, 200);
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "GET", target,
				    "Range: bytes=100001-2900000\r\n", NULL, 0);
	cr_assert(answer.status == 206 && answer.is_whole);
	cr_assert(answer.body.len == 2800000 &&
		  memcmp(answer.body.data, data + 100001, 2800000) == 0);
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "GET", target,
				    "Range: bytes=1000000-1999999,0-999999\r\n", NULL, 0);
	cr_assert(answer.status == 206 && answer.is_whole);
	cr_assert(memmem(answer.body.data, answer.body.len, data + 1000000, 1000000));
	cr_assert(memmem(answer.body.data, answer.body.len, data, 1000000));
	envd_answer_done(&answer);
	free(data);
}

Test(envd_ranges, what_cannot_be_cut_is_416)
{
	envd_answer answer;

	envd_expect_error(&child, "GET", FILE_F, "Range: bytes=10-\r\n", NULL, 416,
			  "invalid range: failed to overlap");
	envd_expect_error(&child, "GET", FILE_F, "Range: bytes=4-2\r\n", NULL, 416,
			  "invalid range");
	envd_expect_error(&child, "GET", FILE_F, "Range: lines=1-2\r\n", NULL, 416,
			  "invalid range");
	answer = envd_ask(&child, "GET", FILE_F, "Range: bytes=10-\r\n", NULL);
	cr_assert(envd_answer_has(&answer, "Content-Range", "bytes */10"));
	envd_answer_done(&answer);
	/* Nothing to cut: the whole. */
	envd_expect(&child, "POST", "/files?path=@/e", OCTETS, "", 200, NULL);
	envd_expect(&child, "GET", "/files?path=@/e", "Range: bytes=0-\r\n", NULL, 200,
		    "");
	envd_expect(&child, "GET", "/files?path=/proc/sys/kernel/ostype",
		    "Range: bytes=0-1\r\n", NULL, 200, "Linux\n");
}

Test(envd_ranges, conditions_are_kept)
{
	ABX_CLEANUP(abx__freep) char *etag = tag();
	ABX_CLEANUP(abx__freep) char *same = abx__strf("If-None-Match: %s\r\n", etag);
	ABX_CLEANUP(abx__freep) char *match = abx__strf("If-Match: %s\r\n", etag);
	ABX_CLEANUP(abx__freep)
	char *range = abx__strf("If-Range: %s\r\nRange: bytes=0-0\r\n", etag);
	envd_answer answer = envd_ask(&child, "GET", FILE_F, same, NULL);

	cr_assert(answer.status == 304 && answer.is_whole && answer.body.len == 0);
	cr_assert(envd_answer_has(&answer, "ETag", etag));
	cr_assert(envd_answer_has(&answer, "Last-Modified", DATE));
	cr_assert_not(strcasestr(answer.head, "\r\nContent-Type"));
	envd_answer_done(&answer);
	envd_expect(&child, "GET", FILE_F, "If-Modified-Since: " DATE "\r\n", NULL, 304,
		    "");
	envd_expect(&child, "GET", FILE_F,
		    "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", NULL, 200,
		    TEXT);
	envd_expect(&child, "GET", FILE_F, "If-None-Match: \"x\"\r\n", NULL, 200, TEXT);
	envd_expect(&child, "GET", FILE_F, match, NULL, 200, TEXT);
	envd_expect_error(&child, "GET", FILE_F, "If-Match: \"x\"\r\n", NULL, 412,
			  "precondition failed");
	envd_expect_error(&child, "GET", FILE_F,
			  "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", NULL,
			  412, "precondition failed");
	expect_part(range, "bytes 0-0/10", "0");
	expect_part("If-Range: " DATE "\r\nRange: bytes=0-0\r\n", "bytes 0-0/10", "0");
	expect_part("If-Range: \"x\"\r\nRange: bytes=0-0\r\n", NULL, TEXT);
	/* A new content is a new file. */
	envd_expect(&child, "POST", FILE_F, OCTETS, "new", 200, NULL);
	envd_expect(&child, "GET", FILE_F, same, NULL, 200, "new");
	envd_expect(&child, "GET", FILE_F, range, NULL, 200, "new");
}

/* ---- gzip ---- */

static void unpack(const envd_answer *answer, const char *want, size_t len)
{
	z_stream z = { .next_in = (Bytef *)answer->body.data,
		       .avail_in = (uInt)answer->body.len };
	char *out = malloc(len + 1);

	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)len + 1;
	cr_assert_eq(inflateInit2(&z, 31), Z_OK);
	cr_assert_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	cr_assert(z.total_out == len && z.avail_in == 0 && memcmp(out, want, len) == 0);
	inflateEnd(&z);
	free(out);
}

Test(envd_ranges, gzip_first_in_rank_is_sent_packed)
{
	ABX_CLEANUP(abx__freep) char *etag = tag();
	ABX_CLEANUP(abx__freep) char *weak = abx__strf("W/%s", etag);
	ABX_CLEANUP(abx__freep)
	char *again = abx__strf("Accept-Encoding: gzip\r\nIf-None-Match: %s\r\n", weak);
	envd_answer answer =
		envd_ask(&child, "GET", FILE_F, "Accept-Encoding: gzip\r\n", NULL);

	cr_assert(answer.status == 200 && answer.is_whole);
	cr_assert(envd_answer_has(&answer, "Content-Encoding", "gzip"));
	cr_assert(envd_answer_has(&answer, "Content-Type", "text/plain; charset=utf-8"));
	cr_assert(envd_answer_has(&answer, "Vary", "Accept-Encoding"));
	cr_assert(envd_answer_has(&answer, "ETag", weak));
	cr_assert_not(strcasestr(answer.head, "\r\nContent-Length"));
	cr_assert_not(strcasestr(answer.head, "\r\nAccept-Ranges"));
	unpack(&answer, TEXT, 10);
	envd_answer_done(&answer);
	envd_expect(&child, "GET", FILE_F, again, NULL, 304, "");
	envd_expect(&child, "GET", FILE_F, "Accept-Encoding: identity, gzip\r\n", NULL,
		    200, TEXT);
	/* What every SDK says of itself is no wish. */
	envd_expect(&child, "GET", FILE_F, "Accept-Encoding: gzip, deflate\r\n", NULL,
		    200, TEXT);
	envd_expect(&child, "GET", FILE_F, "Accept-Encoding: *\r\n", NULL, 200, TEXT);
	envd_expect(&child, "GET", FILE_F, "Accept-Encoding: gzip;q=0\r\n", NULL, 200,
		    TEXT);
}

Test(envd_ranges, packed_files_of_any_size_are_whole)
{
	static const size_t sizes[] = { 0, 1, 65536, 65537, 5000000 };
	ABX_CLEANUP(abx__freep) char *target = envd_expand(&child, "/files?path=@/big");
	char *data = malloc(5000000);

	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			envd_answer answer;

			for (size_t b = 0; b < sizes[i]; b++)
				data[b] = k ? (char)(b * b * 2654435761u >> 21)
					    : (char)(b / 999);
			answer = envd_child_request(&child, "POST", target, OCTETS, data,
						    sizes[i]);
			cr_assert_eq(answer.status, 200);
			envd_answer_done(&answer);
			answer = envd_child_request(&child, "GET", target,
						    "Accept-Encoding: gzip\r\n", NULL, 0);
			cr_assert(answer.status == 200 && answer.is_whole);
			unpack(&answer, data, sizes[i]);
			envd_answer_done(&answer);
		}
	free(data);
}

Test(envd_ranges, codings_we_do_not_have_are_406)
{
	envd_expect_error(&child, "GET", FILE_F, "Accept-Encoding: identity;q=0\r\n",
			  NULL, 406,
			  "error parsing Accept-Encoding: no acceptable encoding found, "
			  "supported: [gzip]");
	envd_expect_error(&child, "GET", FILE_F, "Accept-Encoding: br, *;q=0\r\n", NULL,
			  406,
			  "error parsing Accept-Encoding: no acceptable encoding found, "
			  "supported: [gzip]");
	envd_expect_error(
		&child, "GET", FILE_F,
		"Accept-Encoding: gzip, identity;q=0\r\nRange: bytes=0-0\r\n", NULL, 406,
		"identity encoding not acceptable for Range or conditional request");
	/* What is not there is told first. */
	envd_expect_error(&child, "GET", "/files?path=@/none",
			  "Accept-Encoding: identity;q=0\r\n", NULL, 404,
			  "path '@/none' does not exist");
	envd_expect_error(&child, "GET", "/files?path=@",
			  "Accept-Encoding: identity;q=0\r\n", NULL, 400,
			  "path '@' is a directory");
}

Test(envd_ranges, a_reader_that_goes_away_leaves_the_daemon_well)
{
	ABX_CLEANUP(abx__freep) char *target = envd_expand(&child, "/files?path=@/big");
	char *data = calloc(1, 20000000);
	envd_answer answer =
		envd_child_request(&child, "POST", target, OCTETS, data, 20000000);

	cr_assert_eq(answer.status, 200);
	envd_answer_done(&answer);
	for (int i = 0; i < 40; i++) {
		ABX_CLEANUP(abx__freep)
		char *head = abx__strf("GET %s HTTP/1.1\r\nHost: e\r\n%s\r\n", target,
				       i % 2 ? "Accept-Encoding: gzip\r\n"
					     : "Range: bytes=5-,1-2\r\n");
		int fd = envd_child_connect(&child);
		char piece[1000];

		cr_assert(write(fd, head, strlen(head)) == (ssize_t)strlen(head));
		if (i % 3)
			cr_assert(read(fd, piece, sizeof(piece)) > 0);
		close(fd);
	}
	envd_expect(&child, "GET", FILE_F, NULL, NULL, 200, TEXT);
	free(data);
}

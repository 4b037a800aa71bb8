/*
 * test-envd-metadata.c - user metadata at the real daemon: set by uploads, shown wherever
 * an entry is shown, cleared by the next upload, carried along by a move.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd-expect.h"

static envd_child child;

static void start(void)
{
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
	if (setxattr(child.dir, "user.probe", "x", 1, 0) < 0) {
		envd_child_stop(&child);
		cr_skip_test("no user attributes here");
	}
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_metadata, .init = start, .fini = stop, .timeout = 60);

#define META "X-Metadata-Author: mish\r\nX-Metadata-b: 2\r\n"
#define SHOWN "\"metadata\":{\"author\":\"mish\",\"b\":\"2\"}"

static void expect_entry(const char *method, const char *json, const char *part,
			 bool there)
{
	envd_answer answer = envd_ask(&child, "POST", method, JSON, json);

	cr_assert(answer.status == 200, "%s: %s", method, abx__buf_str(&answer.body));
	cr_assert(!!strstr(abx__buf_str(&answer.body), part) == there, "%s",
		  abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

#define FS "/filesystem.Filesystem/"

Test(envd_metadata, an_upload_sets_it_and_every_entry_shows_it)
{
	envd_expect(&child, "POST", "/files?path=@/d/f", OCTETS META, "x", 200,
		    "[{\"path\":\"@/d/f\",\"name\":\"f\",\"type\":\"file\"," SHOWN "}]");
	expect_entry(FS "Stat", "{\"path\":\"@/d/f\"}", SHOWN, true);
	expect_entry(FS "ListDir", "{\"path\":\"@/d\"}", SHOWN, true);
	expect_entry(FS "ListDir", "{\"path\":\"@\",\"depth\":3}", SHOWN, true);
	expect_entry(FS "Move", "{\"source\":\"@/d/f\",\"destination\":\"@/d/g\"}", SHOWN,
		     true);
	expect_entry(FS "Stat", "{\"path\":\"@/d/g\"}", SHOWN, true);
	expect_entry(FS "Stat", "{\"path\":\"@/d\"}", "metadata", false);
}

Test(envd_metadata, every_file_of_a_form_gets_it)
{
	envd_expect(&child, "POST", "/files", FORM META,
		    "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
		    "filename=\"@/a\"\r\n\r\n1\r\n"
		    "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
		    "filename=\"@/b\"\r\n\r\n2\r\n--XX--\r\n",
		    200,
		    "[{\"path\":\"@/a\",\"name\":\"a\",\"type\":\"file\"," SHOWN "},"
		    "{\"path\":\"@/b\",\"name\":\"b\",\"type\":\"file\"," SHOWN "}]");
}

Test(envd_metadata, the_next_upload_replaces_the_whole_set)
{
	static char big[9 << 20]; /* one that takes the place of the old file */

	memset(big, 'x', sizeof(big) - 1);
	for (int i = 0; i < 2; i++) {
		const char *body = i == 0 ? "x" : big;

		envd_expect(&child, "POST", "/files?path=@/f", OCTETS META, body, 200,
			    "[{\"path\":\"@/f\",\"name\":\"f\",\"type\":\"file\"," SHOWN
			    "}]");
		envd_expect(&child, "POST", "/files?path=@/f",
			    OCTETS "X-Metadata-c: 3\r\n", body, 200,
			    "[{\"path\":\"@/f\",\"name\":\"f\",\"type\":\"file\","
			    "\"metadata\":{\"c\":\"3\"}}]");
		expect_entry(FS "Stat", "{\"path\":\"@/f\"}",
			     "\"metadata\":{\"c\":\"3\"}", true);
		envd_expect(&child, "POST", "/files?path=@/f", OCTETS, body, 200,
			    "[{\"path\":\"@/f\",\"name\":\"f\",\"type\":\"file\"}]");
		expect_entry(FS "Stat", "{\"path\":\"@/f\"}", "metadata", false);
	}
}

Test(envd_metadata, what_was_set_inside_is_shown)
{
	ABX_CLEANUP(abx__freep) char *file = envd_expand(&child, "@/f");
	ABX_CLEANUP(abx__freep) char *link = envd_expand(&child, "@/l");
	ABX_CLEANUP(abx__freep) char *dangling = envd_expand(&child, "@/dl");

	envd_expect(&child, "POST", "/files?path=@/f", OCTETS, "x", 200, NULL);
	cr_assert(symlink("f", link) == 0 && symlink("none", dangling) == 0);
	cr_assert(setxattr(file, "user.e2b.k", "v", 1, 0) == 0);
	cr_assert(setxattr(file, "user.e2b.bad", "\xff", 1, 0) == 0);
	cr_assert(setxattr(child.dir, "user.e2b.dir", "yes", 3, 0) == 0);
	expect_entry(FS "Stat", "{\"path\":\"@/f\"}", "\"metadata\":{\"k\":\"v\"}", true);
	expect_entry(FS "Stat", "{\"path\":\"@/l\"}", "\"metadata\":{\"k\":\"v\"}", true);
	expect_entry(FS "Stat", "{\"path\":\"@/dl\"}", "metadata", false);
	expect_entry(FS "Stat", "{\"path\":\"@\"}", "\"metadata\":{\"dir\":\"yes\"}",
		     true);
}

Test(envd_metadata, bad_metadata_is_refused_before_anything_is_written)
{
	static const struct {
		const char *headers, *message;
	} rows[] = {
		{ OCTETS "X-Metadata-: v\r\n", "invalid metadata: a key is empty" },
		{ OCTETS "X-Metadata-k: a\tb\r\n",
		  "invalid metadata: value of 'k' contains non-printable-ASCII byte 0x09 "
		  "at offset 1" },
		{ OCTETS "X-Metadata-k: \xc3\xbc\r\n",
		  "invalid metadata: value of 'k' contains non-printable-ASCII byte 0xc3 "
		  "at offset 0" },
	};
	char big[5000];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		envd_expect_error(&child, "POST", "/files?path=@/f", rows[i].headers, "x",
				  400, rows[i].message);
	memset(big, 'v', sizeof(big));
	memcpy(big, OCTETS "X-Metadata-k: ", strlen(OCTETS "X-Metadata-k: "));
	memcpy(big + 4500, "\r\n", 3);
	envd_expect_error(&child, "POST", "/files?path=@/f", big, "x", 400,
			  "invalid metadata: total size 4456 exceeds 4096 bytes");
	envd_expect_error(&child, "GET", "/files?path=@/f", NULL, NULL, 404,
			  "path '@/f' does not exist");
}

Test(envd_metadata, file_systems_without_attributes_are_tolerated)
{
	/* An upload to /proc is direct. */
	envd_expect(
		&child, "POST", "/files?path=/proc/self/comm", OCTETS META, "envd", 200,
		"[{\"path\":\"/proc/self/comm\",\"name\":\"comm\",\"type\":\"file\"}]");
}

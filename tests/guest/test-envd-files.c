/*
 * test-envd-files.c - /files and filesystem.Filesystem of the real daemon.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd-child.h"

static envd_child child;

static void start(void)
{
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_files, .init = start, .fini = stop, .timeout = 120);

#define OCTETS "Content-Type: application/octet-stream\r\n"
#define FORM "Content-Type: multipart/form-data; boundary=XX\r\n"

/* "DIR/NAME" of the test's scratch directory; `prefix` before it. */
static char *in_dir(const char *prefix, const char *name)
{
	return abx__strf("%s%s/%s", prefix, child.dir, name);
}

static envd_answer request(const char *method, const char *name, const char *headers,
			   const void *body, size_t len)
{
	ABX_CLEANUP(abx__freep) char *target = in_dir("/files?path=", name);

	return envd_child_request(&child, method, target, headers, body, len);
}

static void expect(envd_answer answer, int status, const char *text)
{
	cr_assert(answer.status == status, "%d instead of %d: %s", answer.status, status,
		  abx__buf_str(&answer.body));
	cr_assert(strstr(abx__buf_str(&answer.body), text), "%s",
		  abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

static void expect_file(const char *name, const void *data, size_t len)
{
	envd_answer answer = request("GET", name, NULL, NULL, 0);

	cr_assert(answer.status == 200, "%s: %d %s", name, answer.status,
		  abx__buf_str(&answer.body));
	cr_assert(answer.is_whole);
	cr_assert(answer.body.len == len &&
			  memcmp(abx__buf_str(&answer.body), data, len) == 0,
		  "%s: %zu bytes", name, answer.body.len);
	envd_answer_done(&answer);
}

static void expect_gone(const char *name)
{
	ABX_CLEANUP(abx__freep) char *path = in_dir("", name);
	struct stat st;

	cr_assert(lstat(path, &st) < 0, "%s is there", path);
}

/* METHOD of filesystem.Filesystem with the scratch directory for each '@'. */
static void expect_call(const char *method, const char *json, int status,
			const char *text)
{
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT, want = ABX__BUF_INIT;
	char path[64];

	for (const char *p = json; *p; p++)
		*p == '@' ? abx__buf_adds(&body, child.dir) : abx__buf_addc(&body, *p);
	for (const char *p = text; *p; p++)
		*p == '@' ? abx__buf_adds(&want, child.dir) : abx__buf_addc(&want, *p);
	snprintf(path, sizeof(path), "/filesystem.Filesystem/%s", method);
	expect(envd_child_call(&child, path, abx__buf_str(&body)), status,
	       abx__buf_str(&want));
}

static char *pattern(size_t len)
{
	char *data = malloc(len);

	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	return data;
}

static unsigned count_entries(void)
{
	ABX_CLEANUP(abx__freep)
	char *json = abx__strf("{\"path\":\"%s\",\"depth\":9}", child.dir);
	envd_answer answer =
		envd_child_call(&child, "/filesystem.Filesystem/ListDir", json);
	unsigned n = 0;

	for (const char *p = abx__buf_str(&answer.body); (p = strstr(p, "\"name\"")); p++)
		n++;
	envd_answer_done(&answer);
	return n;
}

Test(envd_files, raw_upload_and_download_are_exact_at_every_size)
{
	static const size_t sizes[] = { 0,      1,      65535,   65536,
					262144, 262145, 5000000, 20000000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *data = pattern(sizes[i] + 1);

		expect(request("POST", "a/b/file.bin", OCTETS, data, sizes[i]), 200,
		       "\"name\":\"file.bin\",\"type\":\"file\"}]");
		expect_file("a/b/file.bin", data, sizes[i]);
		free(data);
	}
}

Test(envd_files, download_describes_the_file)
{
	envd_answer answer;

	expect(request("POST", "a%20b.json", OCTETS, "{}", 2), 200, "");
	answer = request("GET", "a%20b.json", NULL, NULL, 0);
	cr_assert(envd_answer_has(&answer, "Content-Disposition",
				  "inline; filename=\"a b.json\""));
	cr_assert(envd_answer_has(&answer, "Content-Type", "application/json"));
	cr_assert(envd_answer_has(&answer, "Content-Length", "2"));
	cr_assert(envd_answer_has(&answer, "Vary", "Accept-Encoding"));
	cr_assert(strstr(answer.head, "Last-Modified: "));
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "GET", "/files?path=/proc/version", NULL,
				    NULL, 0);
	cr_assert(answer.status == 200 && answer.is_whole &&
		  strstr(answer.body.data, "Linux"));
	envd_answer_done(&answer);
}

Test(envd_files, download_errors_are_exact)
{
	ABX_CLEANUP(abx__freep)
	char *missing = abx__strf("path '%s/none' does not exist", child.dir);

	expect(request("GET", "none", NULL, NULL, 0), 404, missing);
	expect(request("GET", "", NULL, NULL, 0), 400, "is a directory");
	expect(request("GET", "x%00y", NULL, NULL, 0), 400, "NUL");
	expect(envd_child_request(&child, "GET", "/files?path=~bob/x", NULL, NULL, 0),
	       400, "cannot expand user-specific home dir");
	expect(envd_child_request(&child, "GET", "/files?path=/x&username=nosuch", NULL,
				  NULL, 0),
	       401, "error looking up user 'nosuch'");
	expect(envd_child_request(&child, "GET", "/files?path=/dev/null", NULL, NULL, 0),
	       400, "not a regular file");
}

Test(envd_files, upload_errors_are_exact_and_change_nothing)
{
	ABX_CLEANUP(abx__freep)
	char *dir = abx__strf("path is a directory: %s", child.dir);

	expect(request("POST", "f", OCTETS, "old", 3), 200, "");
	expect(request("POST", "f", "Content-Type: text/plain\r\n", "x", 1), 400,
	       "unsupported content type: text/plain");
	expect(request("POST", "f", OCTETS "Content-Encoding: br\r\n", "x", 1), 400,
	       "br");
	expect(request("POST", "", OCTETS, "x", 1), 400, dir);
	expect(request("POST", "f/below", OCTETS, "x", 1), 400, "path is a file");
	expect(envd_child_request(&child, "POST", "/files", OCTETS, "x", 1), 400,
	       "path query parameter is required for raw body upload");
	expect(request("POST", "f", "Content-Type: multipart/form-data\r\n", "x", 1), 400,
	       "boundary");
	expect(request("POST", "f", FORM, "nonsense", 8), 500, "multipart");
	expect_file("f", "old", 3);
}

Test(envd_files, owner_and_mode_follow_the_rules)
{
	ABX_CLEANUP(abx__freep) char *path = in_dir("", "d/f");
	ABX_CLEANUP(abx__freep) char *dir = in_dir("", "d");
	ABX_CLEANUP(abx__freep)
	char *target = in_dir("/files?username=nobody&path=", "d/f");
	struct stat st, before;

	expect(envd_child_request(&child, "POST", target, OCTETS, "1", 1), 200, "");
	cr_assert(stat(dir, &st) == 0 && st.st_uid == 65534 &&
		  (st.st_mode & 0777) == 0755);
	cr_assert(stat(path, &before) == 0 && before.st_uid == 65534 &&
		  (before.st_mode & 0777) == 0644);
	cr_assert(chmod(path, 0700) == 0);
	expect(request("POST", "d/f", OCTETS, "22", 2), 200, "");
	cr_assert(stat(path, &st) == 0 && st.st_uid == 0 && (st.st_mode & 0777) == 0700);
	cr_assert(st.st_ino == before.st_ino, "a small overwrite keeps the file");
}

Test(envd_files, multipart_writes_every_file)
{
	ABX_CLEANUP(abx__freep)
	char *body = abx__strf(
		"--XX\r\nContent-Disposition: form-data; name=\"file\"; "
		"filename=\"%s/m/one.txt\"\r\n\r\nfirst\r\n"
		"--XX\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nskip\r\n"
		"--XX\r\nContent-Disposition: form-data; name=\"file\"; "
		"filename=\"%s/two\"\r\nContent-Type: x/y\r\n\r\n\r\n--XX--\r\n",
		child.dir, child.dir);

	expect(envd_child_request(&child, "POST", "/files", FORM, body, strlen(body)),
	       200, "one.txt");
	expect_file("m/one.txt", "first", 5);
	expect_file("two", "", 0);
}

Test(envd_files, the_same_path_twice_is_refused_and_the_first_stays)
{
	static const char body[] =
		"--XX\r\nContent-Disposition: form-data; name=\"file\"; "
		"filename=\"a\"\r\n\r\n1\r\n"
		"--XX\r\nContent-Disposition: form-data; name=\"file\"; "
		"filename=\"b\"\r\n\r\n2\r\n--XX--\r\n";

	expect(request("POST", "same", FORM, body, sizeof(body) - 1), 400, "same path");
	expect_file("same", "1", 1);
}

Test(envd_files, truncated_multipart_leaves_nothing_half_written)
{
	static const char body[] =
		"--XX\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nhalf";

	expect(request("POST", "old", OCTETS, "before", 6), 200, "");
	expect(request("POST", "old", FORM, body, sizeof(body) - 1), 500,
	       "last boundary");
	expect(request("POST", "new", FORM, body, sizeof(body) - 1), 500,
	       "last boundary");
	expect_file("old", "before", 6);
	expect_gone("new");
}

Test(envd_files, a_broken_connection_leaves_nothing_half_written)
{
	unsigned before;
	char *data = pattern(1100000);
	ABX_CLEANUP(abx__freep)
	char *head = abx__strf("POST /files?path=%s/big HTTP/1.1\r\nHost: e\r\n" OCTETS
			       "Content-Length: 9000000\r\n\r\n",
			       child.dir);

	expect(request("POST", "big", OCTETS, "old", 3), 200, "");
	before = count_entries();
	/* Often, as the worker may be writing when the connection goes. */
	for (int i = 0; i < 20; i++) {
		int fd = envd_child_connect(&child);
		ssize_t len = 300000 + i * 40000;

		cr_assert(send(fd, head, strlen(head), MSG_NOSIGNAL) ==
			  (ssize_t)strlen(head));
		cr_assert(send(fd, data, (size_t)len, MSG_NOSIGNAL) == len);
		close(fd);
	}
	free(data);
	for (int i = 0; i < 200; i++)
		usleep(1000);
	expect_file("big", "old", 3);
	cr_assert(count_entries() == before);
}

Test(envd_files, chunked_bodies_are_taken)
{
	ABX_CLEANUP(abx__freep)
	char *text = abx__strf("POST /files?path=%s/c HTTP/1.1\r\nHost: e\r\nConnection: "
			       "close\r\n" OCTETS
			       "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n "
			       "world\r\n0\r\n\r\n",
			       child.dir);
	int fd = envd_child_connect(&child);

	cr_assert(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
	expect(envd_read_answer(fd), 200, "\"name\":\"c\"");
	expect_file("c", "hello world", 11);
}

Test(envd_files, stat_describes_files_and_links)
{
	ABX_CLEANUP(abx__freep) char *link = in_dir("", "l");
	ABX_CLEANUP(abx__freep) char *dangling = in_dir("", "dl");

	expect(request("POST", "f", OCTETS, "abc", 3), 200, "");
	cr_assert(symlink("f", link) == 0 && symlink("nowhere", dangling) == 0);
	expect_call("Stat", "{\"path\":\"@/f\"}", 200,
		    "{\"entry\":{\"name\":\"f\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"@/"
		    "f\",\"size\":\"3\","
		    "\"mode\":420,\"permissions\":\"-rw-r--r--\",\"owner\":\"root\","
		    "\"group\":\"root\","
		    "\"modifiedTime\":\"20");
	expect_call("Stat", "{\"path\":\"@/l\"}", 200, "\"permissions\":\"Lrwxrwxrwx\"");
	expect_call("Stat", "{\"path\":\"@/l\"}", 200, "\"symlinkTarget\":\"@/f\"");
	expect_call("Stat", "{\"path\":\"@/dl\"}", 200, "\"symlinkTarget\":\"@/dl\"");
	expect_call("Stat", "{\"path\":\"@/none\"}", 404, "file not found: ");
	expect_call("Stat", "{\"path\":\"~x\"}", 400,
		    "cannot expand user-specific home dir");
	expect_call("Stat", "{\"path\":\"a\\u0000b\"}", 400, "NUL");
	expect_call("Stat", "{\"path\":\"/tmp\"}", 200,
		    "\"permissions\":\"dtrwxrwxrwx\"");
}

Test(envd_files, directories_are_made_once)
{
	expect_call("MakeDir", "{\"path\":\"@/p/q/r\"}", 200,
		    "\"type\":\"FILE_TYPE_DIRECTORY\"");
	expect_call("MakeDir", "{\"path\":\"@/p/q\"}", 409,
		    "directory already exists: @/p/q");
	expect(request("POST", "f", OCTETS, "abc", 3), 200, "");
	expect_call("MakeDir", "{\"path\":\"@/f\"}", 400, "not a directory: @/f");
	expect_call("MakeDir", "{\"path\":\"@/f/g\"}", 400, "path is a file: @/f");
}

Test(envd_files, moves_make_parents_and_replace_files)
{
	expect(request("POST", "f", OCTETS, "abc", 3), 200, "");
	expect(request("POST", "x/g", OCTETS, "old", 3), 200, "");
	expect_call("Move", "{\"source\":\"@/f\",\"destination\":\"@/x/g\"}", 200,
		    "\"path\":\"@/x/g\"");
	expect_file("x/g", "abc", 3);
	expect_call("Move", "{\"source\":\"@/x/g\",\"destination\":\"@/new/dir/h\"}", 200,
		    "h");
	expect_call("Move", "{\"source\":\"@/f\",\"destination\":\"@/y\"}", 404,
		    "source file not found: ");
}

Test(envd_files, listing_is_ordered_deep_and_follows_no_link)
{
	ABX_CLEANUP(abx__freep) char *link = in_dir("", "t/c");
	ABX_CLEANUP(abx__freep) char *self = in_dir("", "t");
	ABX_CLEANUP(abx__freep) char *root = in_dir("", "rootlink");
	ABX_CLEANUP(abx__freep) char *loop = in_dir("", "loop");
	const char *order[] = { "@/t/a\"", "@/t/a/x\"", "@/t/a/y\"", "@/t/b\"",
				"@/t/c\"" };
	ABX_CLEANUP(abx__freep)
	char *json = abx__strf("{\"path\":\"%s\",\"depth\":5}", self);
	envd_answer answer;
	size_t last = 0;

	expect(request("POST", "t/b", OCTETS, "", 0), 200, "");
	expect(request("POST", "t/a/y", OCTETS, "", 0), 200, "");
	expect(request("POST", "t/a/x", OCTETS, "", 0), 200, "");
	cr_assert(symlink(self, link) == 0 && symlink(self, root) == 0 &&
		  symlink(loop, loop) == 0);
	answer = envd_child_call(&child, "/filesystem.Filesystem/ListDir", json);
	for (size_t i = 0; i < 5; i++) {
		ABX_CLEANUP(abx__freep)
		char *want = abx__strf("\"path\":\"%s%s", child.dir, order[i] + 1);
		char *at = strstr(answer.body.data, want);

		cr_assert(at && (size_t)(at - answer.body.data) > last, "%s", want);
		last = (size_t)(at - answer.body.data);
	}
	cr_assert_not(strstr(answer.body.data, "/t/c/"));
	envd_answer_done(&answer);
	expect_call("ListDir", "{\"path\":\"@/rootlink\"}", 200,
		    "\"path\":\"@/rootlink/b\"");
	expect_call("ListDir", "{\"path\":\"@/t/b\"}", 400,
		    "path is not a directory: @/t/b");
	expect_call("ListDir", "{\"path\":\"@/none\"}", 404, "not found: ");
	expect_call("ListDir", "{\"path\":\"@/loop\"}", 400, "\"failed_precondition\"");
}

Test(envd_files, removal_is_deep_and_stays_inside)
{
	ABX_CLEANUP(abx__freep) char *out = in_dir("", "outside");
	ABX_CLEANUP(abx__freep) char *link = in_dir("", "tree/a/link");

	expect(request("POST", "tree/a/b/f", OCTETS, "x", 1), 200, "");
	expect(request("POST", "outside/keep", OCTETS, "x", 1), 200, "");
	cr_assert(symlink(out, link) == 0);
	expect_call("Remove", "{\"path\":\"@/tree\"}", 200, "{}");
	expect_gone("tree");
	expect_file("outside/keep", "x", 1);
	expect_call("Remove", "{\"path\":\"@/tree\"}", 200, "{}");
	expect_call("Remove", "{\"path\":\"@/outside/keep\"}", 200, "{}");
	expect_gone("outside/keep");
}

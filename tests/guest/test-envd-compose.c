/*
 * test-envd-compose.c - POST /files/compose of the real daemon.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
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

TestSuite(envd_compose, .init = start, .fini = stop, .timeout = 60);

#define COMPOSE "/files/compose"

static void put(const char *name, const char *body)
{
	ABX_CLEANUP(abx__freep) char *target = abx__strf("/files?path=@/%s", name);

	envd_expect(&child, "POST", target, OCTETS, body, 200, NULL);
}

static void expect_file(const char *name, const char *body)
{
	ABX_CLEANUP(abx__freep) char *target = abx__strf("/files?path=@/%s", name);

	envd_expect(&child, "GET", target, NULL, NULL, body ? 200 : 404, body);
}

static void refuse(const char *json, int status, const char *message)
{
	envd_expect_error(&child, "POST", COMPOSE, JSON, json, status, message);
}

Test(envd_compose, sources_become_one_in_order_and_are_gone)
{
	ABX_CLEANUP(abx__freep) char *made = envd_expand(&child, "@/new/dir/out");
	ABX_CLEANUP(abx__freep) char *dir = envd_expand(&child, "@/new/dir");
	envd_answer answer;
	struct stat st;

	put("b", "two");
	put("a", "one ");
	put("c", "");
	answer = envd_ask(&child, "POST", COMPOSE, JSON,
			  "{\"source_paths\":[\"@/a\",\"@/c\",\"@/b\"],\"destination\":"
			  "\"@/new/dir/out\",\"username\":\"nobody\"}");
	cr_assert(answer.status == 200, "%s", abx__buf_str(&answer.body));
	cr_assert(envd_answer_has(&answer, "Content-Type", "application/json"));
	cr_assert(strstr(answer.body.data, "/new/dir/out\",\"name\":\"out\",\"type\":"
					   "\"file\"}"));
	envd_answer_done(&answer);
	expect_file("new/dir/out", "one two");
	expect_file("a", NULL);
	expect_file("b", NULL);
	expect_file("c", NULL);
	cr_assert(stat(made, &st) == 0 && st.st_uid == 65534 &&
		  (st.st_mode & 0777) == 0644);
	cr_assert(stat(dir, &st) == 0 && st.st_uid == 65534 &&
		  (st.st_mode & 0777) == 0755);
}

Test(envd_compose, an_existing_destination_is_replaced)
{
	put("a", "new");
	put("out", "old and longer");
	envd_expect(&child, "POST", COMPOSE, JSON,
		    "{\"source_paths\":[\"@/a\",\"/proc/sys/kernel/ostype\"],"
		    "\"destination\":\"@/out\"}",
		    200, "{\"path\":\"@/out\",\"name\":\"out\",\"type\":\"file\"}");
	/* What cannot be removed stays; what the kernel makes up is copied. */
	expect_file("out", "newLinux\n");
}

Test(envd_compose, long_files_are_joined_exactly)
{
	size_t len = 9000000;
	char *data = malloc(2 * len);
	ABX_CLEANUP(abx__freep) char *a = envd_expand(&child, "/files?path=@/a");
	ABX_CLEANUP(abx__freep) char *b = envd_expand(&child, "/files?path=@/b");
	envd_answer answer;

	for (size_t i = 0; i < 2 * len; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	answer = envd_child_request(&child, "POST", a, OCTETS, data, len);
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "POST", b, OCTETS, data + len, len);
	envd_answer_done(&answer);
	envd_expect(&child, "POST", COMPOSE, JSON,
		    "{\"source_paths\":[\"@/a\",\"@/b\"],\"destination\":\"@/o\"}", 200,
		    NULL);
	answer = envd_ask(&child, "GET", "/files?path=@/o", NULL, NULL);
	cr_assert(answer.body.len == 2 * len &&
		  memcmp(answer.body.data, data, 2 * len) == 0);
	envd_answer_done(&answer);
	free(data);
}

Test(envd_compose, refusals_are_exact_and_change_nothing)
{
	ABX_CLEANUP(abx__freep) char *alias = envd_expand(&child, "@/alias");

	put("a", "A");
	put("out", "old");
	cr_assert(symlink("out", alias) == 0);
	refuse("{\"destination\":\"@/out\"}", 400, "source_paths must not be empty");
	refuse("{\"source_paths\":[],\"destination\":\"@/out\"}", 400,
	       "source_paths must not be empty");
	refuse("{\"source_paths\":[1],\"destination\":\"@/out\"}", 400,
	       "source_paths: expected strings");
	refuse("{\"source_paths\":[\"@/a\"]}", 400, "destination is required");
	refuse("{\"source_paths\":[\"@/a\"],\"destination\":\"\"}", 400,
	       "destination is required");
	refuse("{\"source_paths\":[\"@/a\"],\"destination\":\"@/out\",\"username\":"
	       "\"nosuch\"}",
	       401, "error looking up user 'nosuch': unknown user nosuch");
	refuse("{\"source_paths\":[\"@/a\"],\"destination\":\"~bob/x\"}", 400,
	       "error resolving destination path '~bob/x': cannot expand user-specific "
	       "home dir");
	refuse("{\"source_paths\":[\"@/a\",\"~bob/x\"],\"destination\":\"@/out\"}", 400,
	       "error resolving source path '~bob/x': cannot expand user-specific home "
	       "dir");
	refuse("{\"source_paths\":[\"@/a\",\"@/out\"],\"destination\":\"@/out\"}", 400,
	       "source path '@/out' cannot be the same as destination");
	refuse("{\"source_paths\":[\"@/./out\"],\"destination\":\"@/out\"}", 400,
	       "source path '@/./out' cannot be the same as destination");
	refuse("{\"source_paths\":[\"@/alias\"],\"destination\":\"@/out\"}", 400,
	       "source path '@/alias' cannot be the same as destination");
	refuse("{\"source_paths\":[\"@/a\",\"@/none\"],\"destination\":\"@/out\"}", 404,
	       "source file not found: @/none");
	refuse("{\"source_paths\":[\"@/a\",\"@\"],\"destination\":\"@/out\"}", 400,
	       "source path is not a regular file: @");
	refuse("{\"source_paths\":[\"/dev/null\"],\"destination\":\"@/out\"}", 400,
	       "source path is not a regular file: /dev/null");
	refuse("{\"source_paths\":[\"@/a\"],\"destination\":\"@\"}", 400,
	       "path is a directory: @");
	refuse("{\"source_paths\":[\"@/a\"],\"destination\":\"/dev/full\"}", 507,
	       "not enough disk space available");
	expect_file("a", "A");
	expect_file("out", "old");
	envd_expect(&child, "POST", COMPOSE, JSON, "nonsense", 400, NULL);
	envd_expect(&child, "POST", COMPOSE, JSON, "", 400, NULL);
	envd_expect(&child, "POST", COMPOSE, JSON, "[]", 400, NULL);
	envd_expect(&child, "POST", COMPOSE, JSON, "{\"sources\":[]}", 400, NULL);
	envd_expect(&child, "GET", COMPOSE, NULL, NULL, 405, NULL);
}

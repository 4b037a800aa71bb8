/*
 * test-envd-long.c - long files at the real daemon: they pass through it in the kernel,
 * so what is tested is that nothing shows of it.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd-child.h"
#include "envd-expect.h"

#define MIB ((size_t)1 << 20)

static envd_child child;

static void start(void)
{
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_long, .init = start, .fini = stop, .timeout = 120);

static char *pattern(size_t len)
{
	char *data = malloc(len);

	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 131 + (i >> 12));
	return data;
}

static void send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		cr_assert_gt(n, 0);
		data += n;
		len -= (size_t)n;
	}
}

static int begin_post(const char *path, size_t len, const char *headers)
{
	ABX_CLEANUP(abx__freep)
	char *head = abx__strf("POST /files?path=%s HTTP/1.1\r\nHost: e\r\nConnection: "
			       "close\r\n" OCTETS "%sContent-Length: %zu\r\n\r\n",
			       path, headers, len);
	int fd = envd_child_connect(&child);

	send_all(fd, head, strlen(head));
	return fd;
}

static void expect_file(const char *path, const char *data, size_t len)
{
	ABX_CLEANUP(abx__freep) char *got = malloc(len + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t at = 0;
	ssize_t n = 1;

	cr_assert(fd >= 0, "%s", path);
	while (n > 0) {
		n = read(fd, got + at, len + 1 - at);
		at += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	cr_assert_eq(at, len);
	cr_assert(memcmp(got, data, len) == 0);
}

static void expect_status(int fd, int status, const char *text)
{
	envd_answer answer = envd_read_answer(fd);

	cr_assert_eq(answer.status, status, "%d: %s", answer.status,
		     abx__buf_str(&answer.body));
	cr_assert(strstr(abx__buf_str(&answer.body), text), "%s",
		  abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

static int count_descriptors(void)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("/proc/%d/fd", (int)child.pid);
	DIR *dir = opendir(path);
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void expect_descriptors(int count)
{
	for (int i = 0; i < 3000 && count_descriptors() != count; i++)
		usleep(1000);
	cr_assert_eq(count_descriptors(), count);
}

/* VmHWM, the most that was resident, in KiB. */
static long peak_kib(void)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("/proc/%d/status", (int)child.pid);
	FILE *f = fopen(path, "re");
	char line[128];
	long kib = 0;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld kB", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

Test(envd_long, a_body_that_comes_in_bits_and_pieces_is_whole)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/bits", child.dir);
	const size_t len = 3 * MIB + 17;
	char *data = pattern(len);
	int fd = begin_post(path, len, ""), one = 1;
	size_t at = 0;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (; at < 600; at++)
		send_all(fd, data + at, 1);
	for (size_t piece = 100; at < len; at += piece, piece = piece * 3 / 2 + 1) {
		if (piece > len - at)
			piece = len - at;
		send_all(fd, data + at, piece);
		usleep(500);
	}
	expect_status(fd, 200, "\"name\":\"bits\"");
	expect_file(path, data, len);
	free(data);
}

Test(envd_long, expect_100_is_honoured)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/e", child.dir);
	char *data = pattern(MIB), got[64] = "";
	int fd = begin_post(path, MIB, "Expect: 100-continue\r\n");

	cr_assert_gt(recv(fd, got, sizeof(got) - 1, 0), 0);
	cr_assert_str_eq(got, "HTTP/1.1 100 Continue\r\n\r\n");
	send_all(fd, data, MIB);
	expect_status(fd, 200, "\"name\":\"e\"");
	expect_file(path, data, MIB);
	free(data);
}

Test(envd_long, a_full_disk_and_a_device_are_what_they_are)
{
	char *data = pattern(4 * MIB);
	int fd = begin_post("/dev/null", 4 * MIB, "");

	send_all(fd, data, 4 * MIB);
	expect_status(fd, 200, "\"path\":\"/dev/null\"");
	fd = begin_post("/dev/full", 4 * MIB, "");
	send(fd, data, 4 * MIB, MSG_NOSIGNAL);
	expect_status(fd, 507, "attempted to write 4194304 bytes: not enough disk space");
	/* Not taken by the kernel as it is: copied. */
	fd = begin_post("/proc/self/comm", 300000, "");
	send_all(fd, data, 300000);
	expect_status(fd, 200, "\"path\":\"/proc/self/comm\"");
	free(data);
}

Test(envd_long, senders_and_readers_that_go_leave_nothing)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/big", child.dir);
	ABX_CLEANUP(abx__freep) char *partial = abx__strf("%s/partial", child.dir);
	ABX_CLEANUP(abx__freep)
	char *get = abx__strf("GET /files?path=%s HTTP/1.1\r\nHost: e\r\n\r\n", path);
	char *data = pattern(16 * MIB), got[4096];
	int before, fd = begin_post(path, 16 * MIB, "");

	send_all(fd, data, 16 * MIB);
	expect_status(fd, 200, "big");
	before = count_descriptors();
	for (int i = 0; i < 20; i++) {
		fd = begin_post(partial, 16 * MIB, "");
		send_all(fd, data, 500000 + (size_t)i * 200000);
		close(fd);
		fd = envd_child_connect(&child);
		send_all(fd, get, strlen(get));
		cr_assert_gt(recv(fd, got, sizeof(got), 0), 0);
		close(fd);
	}
	expect_descriptors(before);
	cr_assert_lt(access(partial, F_OK), 0);
	free(data);
}

Test(envd_long, a_file_cut_short_while_it_is_read_breaks_the_answer)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/cut", child.dir);
	ABX_CLEANUP(abx__freep)
	char *get = abx__strf("GET /files?path=%s HTTP/1.1\r\nHost: e\r\n\r\n", path);
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644), fd;
	envd_answer answer;

	cr_assert_eq(ftruncate(file, 256 << 20), 0);
	fd = envd_child_connect(&child);
	send_all(fd, get, strlen(get));
	cr_assert_eq(recv(fd, &(char){ 0 }, 1, MSG_PEEK), 1);
	cr_assert_eq(ftruncate(file, 1000), 0);
	close(file);
	answer = envd_read_answer(fd);
	cr_assert_eq(answer.status, 200);
	cr_assert(!answer.is_whole);
	cr_assert_lt(answer.body.len, 256 << 20);
	envd_answer_done(&answer);
}

Test(envd_long, memory_stays_flat)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/flat", child.dir);
	ABX_CLEANUP(abx__freep) char *target = abx__strf("/files?path=%s", path);
	char *data = pattern(64 * MIB);
	envd_answer answer;
	long before;
	int fd;

	envd_expect(&child, "POST", "/files?path=@/s", OCTETS, "small", 200, NULL);
	envd_expect(&child, "GET", "/files?path=@/s", NULL, NULL, 200, "small");
	before = peak_kib();
	fd = begin_post(path, 64 * MIB, "");
	send_all(fd, data, 64 * MIB);
	expect_status(fd, 200, "flat");
	answer = envd_child_request(&child, "GET", target, NULL, NULL, 0);
	cr_assert(answer.is_whole && answer.body.len == 64 * MIB);
	cr_assert(memcmp(answer.body.data, data, 64 * MIB) == 0);
	envd_answer_done(&answer);
	cr_assert_lt(peak_kib() - before, 1024, "%ld KiB after %ld", peak_kib(), before);
	free(data);
}

/*
 * test-envd-process.c - process.Process of the real daemon: what contract/envd.md section
 * 7 promises.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "envd-child.h"
#include "io/connect-frame.h"

static envd_child child;

static void start(void)
{
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_process, .init = start, .fini = stop, .timeout = 120);

static void nap_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000,
				      .tv_nsec = ms % 1000 * 1000000L },
		  NULL);
}

/* A StartRequest for /bin/sh -c SCRIPT; `config` and `more` are members with a comma
 * before them. */
static char *sh_json(const char *script, const char *config, const char *more)
{
	return abx__strf(
		"{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"%s\"]%s}%s}",
		script, config, more);
}

static envd_run run_sh(const char *script, const char *config, const char *more)
{
	ABX_CLEANUP(abx__freep) char *json = sh_json(script, config, more);

	return envd_child_run(&child, json);
}

static void expect_error(const char *json, const char *code, const char *text)
{
	envd_run run = envd_child_run(&child, json);

	cr_assert_str_eq(run.error_code, code, "%s: %s", run.error_code,
			 run.error_message);
	cr_assert(strstr(run.error_message, text), "%s", run.error_message);
	cr_assert_not(run.has_end);
	envd_run_done(&run);
}

static void expect_call(const char *method, const char *json, int status,
			const char *text)
{
	envd_answer answer = envd_child_call(&child, method, json);

	cr_assert(answer.status == status, "%s: %d %s", method, answer.status,
		  abx__buf_str(&answer.body));
	cr_assert(strstr(abx__buf_str(&answer.body), text), "%s: %s", method,
		  abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

/* Reads the pid from the start event at the front of a stream. */
static uint32_t read_pid(int fd)
{
	char text[2048];
	size_t len = 0;
	char *at = NULL;

	while (len < sizeof(text) - 1 && (!at || !strchr(at, '}'))) {
		ssize_t n = recv(fd, text + len, 1, 0);

		cr_assert(n == 1, "the stream ended early");
		len++;
		text[len] = '\0';
		at = memmem(text, len, "\"pid\":", 6);
	}
	return (uint32_t)strtoul(at + 6, NULL, 10);
}

/* The raw rest of a stream whose head was read already. */
static void read_rest(int fd, abx__buf *buf)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		abx__buf_add(buf, piece, (size_t)n);
	cr_assert(n == 0, "the stream did not end");
	close(fd);
	cr_assert(buf->len >= 5 && memcmp(buf->data + buf->len - 5, "0\r\n\r\n", 5) == 0,
		  "the stream was cut");
}

/* Envelopes hold NUL bytes, so strstr(3) will not do. */
static bool contains(const abx__buf *buf, const char *text)
{
	return memmem(buf->data, buf->len, text, strlen(text)) != NULL;
}

static unsigned count_fds(void)
{
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)child.pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

Test(envd_process, output_and_exit_status_are_exact)
{
	envd_run run = run_sh("echo out; echo err >&2; exit 3", "", "");

	cr_assert_str_eq(abx__buf_str(&run.out), "out\n");
	cr_assert_str_eq(abx__buf_str(&run.err), "err\n");
	cr_assert(run.pid > 1 && run.has_end && run.exited && run.exit_code == 3);
	cr_assert_str_eq(run.status, "exit status 3");
	cr_assert_str_eq(run.error_code, "");
	envd_run_done(&run);
}

Test(envd_process, a_signal_gives_minus_one_and_its_name)
{
	envd_run run = run_sh("kill -9 $$", "", "");

	cr_assert(run.has_end && !run.exited && run.exit_code == -1);
	cr_assert_str_eq(run.status, "signal: killed");
	envd_run_done(&run);
	run = run_sh("kill -15 $$", "", "");
	cr_assert_str_eq(run.status, "signal: terminated");
	envd_run_done(&run);
}

Test(envd_process, output_bytes_are_exact_beyond_every_buffer)
{
	envd_run run = run_sh("i=0; while [ $i -lt 40000 ]; do echo 0123456789abcdef$i; "
			      "i=$((i+1)); done",
			      "", "");
	ABX_CLEANUP_BUF abx__buf want = ABX__BUF_INIT;

	for (int i = 0; i < 40000; i++)
		abx__buf_addf(&want, "0123456789abcdef%d\n", i);
	cr_assert(run.out.len == want.len &&
			  memcmp(run.out.data, want.data, want.len) == 0,
		  "%zu bytes instead of %zu", run.out.len, want.len);
	envd_run_done(&run);
	run = run_sh("head -c 100000 /dev/zero; printf '\\\\377\\\\001'", "", "");
	cr_assert(run.out.len == 100002 && run.out.data[99999] == 0 &&
		  (unsigned char)run.out.data[100000] == 0xff &&
		  run.out.data[100001] == 1);
	envd_run_done(&run);
}

Test(envd_process, environment_is_the_users_and_the_requests)
{
	envd_run run =
		run_sh("echo $HOME $USER $LOGNAME $FOO $E2B_SANDBOX; echo $STRAY; pwd",
		       ",\"envs\":{\"FOO\":\"a b\"},\"cwd\":\"/tmp\"", "");

	cr_assert_str_eq(abx__buf_str(&run.out), "/root root root a b false\n\n/tmp\n");
	envd_run_done(&run);
}

Test(envd_process, stdin_false_is_dev_null_and_true_is_a_pipe)
{
	envd_run run = run_sh("wc -c; readlink /proc/self/fd/0", "", ",\"stdin\":false");

	cr_assert_str_eq(abx__buf_str(&run.out), "0\n/dev/null\n");
	envd_run_done(&run);
}

Test(envd_process, what_cannot_start_says_why)
{
	expect_error("{\"process\":{\"cmd\":\"/no/such\"}}", "invalid_argument",
		     "/no/such");
	expect_error("{\"process\":{\"cmd\":\"no-such-command\"}}", "invalid_argument",
		     "PATH");
	expect_error("{\"process\":{\"cmd\":\"\"}}", "invalid_argument", "cmd is empty");
	expect_error("{}", "invalid_argument", "process is missing");
	expect_error("{\"process\":{\"cmd\":\"true\",\"cwd\":\"/no/dir\"}}",
		     "invalid_argument", "cwd '/no/dir' does not exist");
	expect_error("{\"process\":{\"cmd\":\"true\",\"cwd\":\"/etc/passwd\"}}",
		     "invalid_argument", "is not a directory");
	expect_error("{\"process\":{\"cmd\":\"true\",\"cwd\":\"~other\"}}",
		     "invalid_argument", "cannot expand user-specific home dir");
	expect_error("{\"process\":{\"cmd\":\"true\",\"envs\":{\"A=B\":\"c\"}}}",
		     "invalid_argument", "A=B");
	expect_error("{\"process\":{\"cmd\":\"true\",\"args\":[\"a\\u0000b\"]}}",
		     "invalid_argument", "NUL");
	expect_error("{\"process\":{\"cmd\":\"/etc\"}}", "invalid_argument", "/etc");
	expect_error("nonsense", "invalid_argument", "JSON");
}

Test(envd_process, long_command_lines_run_until_the_kernel_says_no)
{
	char *json = malloc(3 << 20);
	size_t n = (size_t)sprintf(json, "{\"process\":{\"cmd\":\"true\",\"args\":[");
	size_t one_mb = n;
	envd_run run;

	for (int i = 0; i < 10; i++) {
		one_mb += (size_t)snprintf(json + one_mb, 16, "%s\"", i ? "," : "");
		memset(json + one_mb, 'x', 100000);
		one_mb += 100000;
		json[one_mb++] = '"';
	}
	memcpy(json + one_mb, "]}}", 4);
	run = envd_child_run(&child, json);
	cr_assert(run.has_end && run.exit_code == 0, "%s", run.error_message);
	envd_run_done(&run);
	json[n++] = '"';
	memset(json + n, 'x', 1 << 20);
	memcpy(json + n + (1 << 20), "\"]}}", 5);
	expect_error(json, "invalid_argument", "longer than the kernel takes");
	free(json);
}

Test(envd_process, the_time_limit_kills_and_ends_with_deadline_exceeded)
{
	ABX_CLEANUP(abx__freep) char *json = sh_json("echo a; sleep 30", "", "");
	int64_t begin = abx__mono_ms();
	envd_answer answer = envd_child_stream(&child, "/process.Process/Start",
					       "Connect-Timeout-Ms: 300\r\n", json);
	envd_run run = { 0 };

	envd_run_read(&run, &answer);
	cr_assert_str_eq(run.error_code, "deadline_exceeded");
	cr_assert_str_eq(abx__buf_str(&run.out), "a\n");
	cr_assert(abx__mono_ms() - begin < 5000);
	nap_ms(100);
	expect_call("/process.Process/List", "{}", 200, "{}");
	envd_run_done(&run);
	envd_answer_done(&answer);
}

Test(envd_process, something_left_in_the_background_does_not_hold_the_end)
{
	int64_t begin = abx__mono_ms();
	envd_run run = run_sh("(sleep 30; echo late) & echo now", "", "");

	cr_assert_str_eq(abx__buf_str(&run.out), "now\n");
	cr_assert(run.has_end && run.exit_code == 0);
	cr_assert(abx__mono_ms() - begin < 5000, "%d ms", (int)(abx__mono_ms() - begin));
	envd_run_done(&run);
}

Test(envd_process, what_is_left_in_the_background_never_meets_a_broken_pipe)
{
	ABX_CLEANUP(abx__freep)
	char *script = abx__strf(
		"(sleep 0.5; echo x; echo y && echo alive > %s/alive) & echo now",
		child.dir);
	ABX_CLEANUP(abx__freep) char *file = abx__strf("%s/alive", child.dir);
	envd_run run = run_sh(script, "", "");

	cr_assert(run.has_end);
	for (int i = 0; i < 400 && access(file, F_OK) < 0; i++)
		nap_ms(10);
	cr_assert(access(file, F_OK) == 0, "the background was killed by its output");
	envd_run_done(&run);
}

Test(envd_process, output_written_before_the_exit_is_never_lost)
{
	for (int i = 0; i < 20; i++) {
		envd_run run = run_sh("head -c 60000 /dev/zero", "", "");

		cr_assert(run.out.len == 60000, "round %d: %zu bytes", i, run.out.len);
		envd_run_done(&run);
	}
}

Test(envd_process, late_connect_gets_start_and_end)
{
	envd_run run = run_sh("exit 5", "", ",\"tag\":\"job\""), late = { 0 };
	envd_answer answer = envd_child_stream(&child, "/process.Process/Connect", NULL,
					       "{\"process\":{\"tag\":\"job\"}}");

	envd_run_read(&late, &answer);
	cr_assert(late.pid == run.pid && late.has_end && late.exit_code == 5);
	envd_run_done(&late);
	envd_answer_done(&answer);
	envd_run_done(&run);
	/* A new process of that tag drops it. */
	run = run_sh("exit 6", "", ",\"tag\":\"job\"");
	answer = envd_child_stream(&child, "/process.Process/Connect", NULL,
				   "{\"process\":{\"tag\":\"job\"}}");
	envd_run_read(&late, &answer);
	cr_assert(late.pid == run.pid && late.exit_code == 6);
	envd_run_done(&late);
	envd_answer_done(&answer);
	envd_run_done(&run);
}

Test(envd_process, connect_joins_and_all_subscribers_hear_the_end)
{
	ABX_CLEANUP(abx__freep)
	char *json = sh_json("read x; echo got $x; exit 2", "", ",\"tag\":\"t\"");
	int a = envd_child_open_stream(&child, "/process.Process/Start", NULL, json);
	uint32_t pid = read_pid(a);
	ABX_CLEANUP(abx__freep)
	char *select = abx__strf("{\"process\":{\"pid\":%u}}", pid);
	ABX_CLEANUP(abx__freep)
	char *input = abx__strf(
		"{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"aGV5Cg==\"}}", pid);
	ABX_CLEANUP_BUF abx__buf rest = ABX__BUF_INIT;
	int b = envd_child_open_stream(&child, "/process.Process/Connect", NULL, select);
	envd_answer answer;
	envd_run run = { 0 };

	cr_assert(read_pid(b) == pid);
	expect_call("/process.Process/List", "{}", 200, "\"tag\":\"t\"");
	expect_call("/process.Process/SendInput", input, 200, "{}");
	close(a); /* the starter goes away: nothing changes for the other */
	read_rest(b, &rest);
	cr_assert(contains(&rest, "exit status 2"));
	answer = envd_child_stream(&child, "/process.Process/Connect", NULL, select);
	envd_run_read(&run, &answer);
	cr_assert(run.exit_code == 2);
	envd_run_done(&run);
	envd_answer_done(&answer);
}

Test(envd_process, stdin_is_written_and_closed)
{
	ABX_CLEANUP(abx__freep) char *json = sh_json("cat; echo end", "", "");
	ABX_CLEANUP(abx__freep) char *select = NULL;
	ABX_CLEANUP(abx__freep) char *input = NULL;
	ABX_CLEANUP(abx__freep) char *pty = NULL;
	envd_stream stream;

	envd_stream_open(&stream, &child, "/process.Process/Start", NULL, json);
	envd_stream_until(&stream, "\"pid\":");
	select = abx__strf("{\"process\":{\"pid\":%u}}", stream.run.pid);
	input = abx__strf("{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"aGV5Cg==\"}}",
			  stream.run.pid);
	pty = abx__strf("{\"process\":{\"pid\":%u},\"input\":{\"pty\":\"aGV5Cg==\"}}",
			stream.run.pid);
	expect_call("/process.Process/SendInput", input, 200, "{}");
	expect_call("/process.Process/SendInput", pty, 500, "no tty");
	expect_call("/process.Process/SendInput", select, 501, "input is missing");
	expect_call("/process.Process/Update", select, 200, "{}");
	expect_call("/process.Process/CloseStdin", select, 200, "{}");
	envd_stream_to_end(&stream);
	cr_assert_str_eq(abx__buf_str(&stream.run.out), "hey\nend\n");
	envd_stream_close(&stream);
	expect_call("/process.Process/SendInput", input, 404, "not found");
}

Test(envd_process, stdin_that_is_off_refuses_input)
{
	ABX_CLEANUP(abx__freep) char *json = sh_json("sleep 30", "", ",\"stdin\":false");
	int fd = envd_child_open_stream(&child, "/process.Process/Start", NULL, json);
	uint32_t pid = read_pid(fd);
	ABX_CLEANUP(abx__freep)
	char *input = abx__strf(
		"{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"aGV5Cg==\"}}", pid);
	ABX_CLEANUP(abx__freep)
	char *kill = abx__strf("{\"process\":{\"pid\":%u},\"signal\":\"SIGNAL_SIGKILL\"}",
			       pid);

	expect_call("/process.Process/SendInput", input, 500,
		    "stdin not enabled or closed");
	expect_call("/process.Process/SendSignal", kill, 200, "{}");
	close(fd);
}

Test(envd_process, signals_reach_the_process)
{
	ABX_CLEANUP(abx__freep) char *json = sh_json("exec sleep 30", "", "");
	int fd = envd_child_open_stream(&child, "/process.Process/Start", NULL, json);
	uint32_t pid = read_pid(fd);
	ABX_CLEANUP(abx__freep)
	char *kill = abx__strf("{\"process\":{\"pid\":%u},\"signal\":9}", pid);
	ABX_CLEANUP(abx__freep)
	char *other = abx__strf("{\"process\":{\"pid\":%u},\"signal\":2}", pid);
	ABX_CLEANUP_BUF abx__buf rest = ABX__BUF_INIT;

	expect_call("/process.Process/SendSignal", other, 501, "not supported");
	expect_call("/process.Process/SendSignal", kill, 200, "{}");
	read_rest(fd, &rest);
	cr_assert(contains(&rest, "signal: killed"));
	expect_call("/process.Process/SendSignal", kill, 404, "not found");
	expect_call("/process.Process/SendSignal", "{\"signal\":9}", 501, "selector");
	expect_call("/process.Process/SendSignal",
		    "{\"process\":{\"tag\":\"zz\"},\"signal\":9}", 404,
		    "process with tag zz not found");
}

Test(envd_process, stream_input_writes_in_order)
{
	ABX_CLEANUP(abx__freep)
	char *json = sh_json("head -c 8 | od -An -c", "", ",\"tag\":\"si\"");
	int fd = envd_child_open_stream(&child, "/process.Process/Start", NULL, json);
	uint32_t pid = read_pid(fd);
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT, rest = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep)
	char *first = abx__strf("{\"start\":{\"process\":{\"pid\":%u}}}", pid);
	const char *data[] = { first, "{\"data\":{\"input\":{\"stdin\":\"QUJDRA==\"}}}",
			       "{\"keepalive\":{}}",
			       "{\"data\":{\"input\":{\"stdin\":\"RUZHSA==\"}}}" };
	envd_answer answer;
	envd_run run = { 0 };

	for (size_t i = 0; i < 4; i++)
		abx__connect_frame_add(&body, 0, data[i], strlen(data[i]));
	answer = envd_child_request(&child, "POST", "/process.Process/StreamInput",
				    "Content-Type: application/connect+json\r\n",
				    body.data, body.len);
	envd_run_read(&run, &answer);
	cr_assert_str_eq(run.error_code, "", "%s", run.error_message);
	envd_answer_done(&answer);
	envd_run_done(&run);
	read_rest(fd, &rest);
	/* "   A   B   C ..." in base64 */
	cr_assert(contains(&rest, "ICAgQSAgIEIgICBD"));
	answer = envd_child_stream(&child, "/process.Process/Connect", NULL,
				   "{\"process\":{\"tag\":\"si\"}}");
	memset(&run, 0, sizeof(run));
	envd_run_read(&run, &answer);
	cr_assert(run.has_end && run.exit_code == 0);
	envd_answer_done(&answer);
	envd_run_done(&run);
	answer = envd_child_stream(&child, "/process.Process/StreamInput", NULL, data[1]);
	memset(&run, 0, sizeof(run));
	envd_run_read(&run, &answer);
	cr_assert_str_eq(run.error_code, "invalid_argument");
	envd_answer_done(&answer);
	envd_run_done(&run);
}

static size_t read_rss_kib(void)
{
	char path[64], line[256];
	size_t kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)child.pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtoul(line + 6, NULL, 10);
	fclose(f);
	return kib;
}

Test(envd_process, a_slow_reader_stalls_the_process_not_the_memory)
{
	ABX_CLEANUP(abx__freep)
	char *json = sh_json("head -c 200000000 /dev/zero", "", "");
	int fd = envd_child_open_stream(&child, "/process.Process/Start", NULL, json);
	size_t before, after;

	read_pid(fd);
	before = read_rss_kib();
	nap_ms(1000);
	after = read_rss_kib();
	cr_assert(after < before + 8192, "from %zu to %zu KiB", before, after);
	expect_call("/process.Process/List", "{}", 200, "head -c");
	close(fd);
	/* Nobody listens any more: the output is dropped and the process ends. */
	for (int i = 0; i < 1000; i++) {
		envd_answer answer =
			envd_child_call(&child, "/process.Process/List", "{}");
		bool gone = strcmp(abx__buf_str(&answer.body), "{}") == 0;

		envd_answer_done(&answer);
		if (gone)
			return;
		nap_ms(10);
	}
	cr_assert(false, "the process of a vanished reader still runs");
}

Test(envd_process, a_reader_that_vanished_does_not_hold_up_the_others)
{
	ABX_CLEANUP(abx__freep)
	char *json = sh_json("read x; head -c 9000000 /dev/zero", "", "");
	int dead = envd_child_open_stream(&child, "/process.Process/Start", NULL, json);
	uint32_t pid = read_pid(dead); /* and never reads again */
	ABX_CLEANUP(abx__freep)
	char *select = abx__strf("{\"process\":{\"pid\":%u}}", pid);
	ABX_CLEANUP(abx__freep)
	char *input = abx__strf(
		"{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"Cg==\"}}", pid);
	ABX_CLEANUP_BUF abx__buf rest = ABX__BUF_INIT;
	int fd = envd_child_open_stream(&child, "/process.Process/Connect", NULL, select);

	cr_assert(read_pid(fd) == pid);
	expect_call("/process.Process/SendInput", input, 200, "{}");
	read_rest(fd, &rest);
	cr_assert(rest.len > 12000000 && contains(&rest, "exit status 0"));
	close(dead);
}

Test(envd_process, keepalives_are_sent_when_nothing_else_is)
{
	ABX_CLEANUP(abx__freep) char *json = sh_json("sleep 2.5", "", "");
	envd_answer answer = envd_child_stream(&child, "/process.Process/Start",
					       "Keepalive-Ping-Interval: 1\r\n", json);
	envd_run run = { 0 };

	envd_run_read(&run, &answer);
	cr_assert(run.has_end && run.keepalives >= 1 && run.keepalives <= 3, "%u",
		  run.keepalives);
	envd_run_done(&run);
	envd_answer_done(&answer);
}

Test(envd_process, many_runs_leave_no_descriptor)
{
	unsigned before;
	envd_run run = run_sh("true", "", "");

	envd_run_done(&run);
	before = count_fds();
	for (int i = 0; i < 50; i++) {
		run = run_sh("echo $0 | cat", "", "");
		cr_assert(run.has_end);
		envd_run_done(&run);
		expect_error("{\"process\":{\"cmd\":\"/no/such\"}}", "invalid_argument",
			     "/no/such");
	}
	nap_ms(100);
	cr_assert(count_fds() <= before, "%u descriptors, %u before", count_fds(),
		  before);
}

Test(envd_process, proto_codec_works_like_json)
{
	/* StartRequest{process{cmd:"/bin/echo", args:["hi"]}} */
	static const char msg[] = "\x0a\x0f\x0a\x09/bin/echo\x12\x02hi";
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT;
	envd_answer answer;

	abx__connect_frame_add(&body, 0, msg, sizeof(msg) - 1);
	answer = envd_child_request(&child, "POST", "/process.Process/Start",
				    "Content-Type: application/connect+proto\r\n",
				    body.data, body.len);
	cr_assert(answer.status == 200 && answer.is_whole);
	cr_assert(envd_answer_has(&answer, "Content-Type", "application/connect+proto"));
	/* StartResponse{event{data{stdout:"hi\n"}}} */
	cr_assert(memmem(answer.body.data, answer.body.len,
			 "\x0a\x07\x12\x05\x0a\x03hi\n", 9));
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "POST", "/process.Process/List",
				    "Content-Type: application/proto\r\n", "", 0);
	cr_assert(answer.status == 200 && answer.body.len == 0);
	envd_answer_done(&answer);
}

Test(envd_process, protocol_errors_have_their_status)
{
	envd_answer answer =
		envd_child_request(&child, "GET", "/process.Process/List", NULL, NULL, 0);

	cr_assert(answer.status == 405 && envd_answer_has(&answer, "Allow", "POST"));
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "POST", "/process.Process/List",
				    "Content-Type: text/plain\r\n", "{}", 2);
	cr_assert(answer.status == 415);
	envd_answer_done(&answer);
	answer = envd_child_request(
		&child, "POST", "/process.Process/List",
		"Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "{}", 2);
	cr_assert(answer.status == 501 && strstr(answer.body.data, "\"unimplemented\""));
	envd_answer_done(&answer);
	answer = envd_child_request(
		&child, "POST", "/process.Process/List",
		"Content-Type: application/json\r\nConnect-Timeout-Ms: soon\r\n", "{}",
		2);
	cr_assert(answer.status == 400 && strstr(answer.body.data, "Connect-Timeout-Ms"));
	envd_answer_done(&answer);
	expect_call("/process.Process/List", "[1", 400, "invalid_argument");
	expect_call("/process.Process/Nothing", "{}", 404, "404");
	expect_call("/process.Process/Update", "{\"process\":{\"pid\":1}}", 404,
		    "process with pid 1 not found");
}

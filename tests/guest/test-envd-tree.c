/*
 * test-envd-tree.c - what a kill and a time limit end, and what readers that fall behind
 * do to others.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

TestSuite(envd_tree, .init = start, .fini = stop, .timeout = 120);

static void start_sh(envd_stream *stream, const char *headers, const char *script)
{
	ABX_CLEANUP(abx__freep)
	char *json = abx__strf(
		"{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-c\",\"%s\"]}}", script);

	envd_stream_open(stream, &child, "/process.Process/Start", headers, json);
	envd_stream_until(stream, "\"pid\":");
}

static void signal_process(uint32_t pid, const char *sig)
{
	ABX_CLEANUP(abx__freep)
	char *json = abx__strf("{\"process\":{\"pid\":%u},\"signal\":\"%s\"}", pid, sig);
	envd_answer answer = envd_child_call(&child, "/process.Process/SendSignal", json);

	cr_assert(answer.status == 200, "%s", abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

static void send_newline(uint32_t pid)
{
	ABX_CLEANUP(abx__freep)
	char *json = abx__strf(
		"{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"Cg==\"}}", pid);
	envd_answer answer = envd_child_call(&child, "/process.Process/SendInput", json);

	cr_assert(answer.status == 200);
	envd_answer_done(&answer);
}

/* The numbers a script printed, each on a line. */
static unsigned read_pids(const abx__buf *out, int *pids, unsigned max)
{
	unsigned n = 0;

	for (const char *p = abx__buf_str(out); *p && n < max; n++) {
		pids[n] = (int)strtol(p, (char **)(uintptr_t)&p, 10);
		p += *p == '\n';
	}
	return n;
}

/* A child, one in a group of its own, one in a session of its own. */
#define TREE                                                                        \
	"sleep 300 & echo $!; timeout 300 sleep 300 & echo $!; setsid sleep 300 & " \
	"echo $!; "

static void until_lines(envd_stream *stream, unsigned lines)
{
	for (;;) {
		unsigned n = 0;

		for (const char *p = abx__buf_str(&stream->run.out); *p; p++)
			n += *p == '\n';
		if (n >= lines)
			return;
		cr_assert(envd_stream_read(stream), "%s", abx__buf_str(&stream->text));
	}
}

Test(envd_tree, a_kill_ends_the_whole_tree)
{
	static const char *const signals[] = { "SIGNAL_SIGKILL", "SIGNAL_SIGTERM" };

	for (int s = 0; s < 2; s++) {
		envd_stream stream;
		int pids[3];

		start_sh(&stream, NULL, TREE "sleep 300");
		until_lines(&stream, 3);
		cr_assert(read_pids(&stream.run.out, pids, 3) == 3);
		signal_process(stream.run.pid, signals[s]);
		envd_stream_to_end(&stream);
		cr_assert(stream.run.has_end && stream.run.exit_code == -1);
		for (int i = 0; i < 3; i++)
			envd_expect_gone(pids[i]);
		envd_stream_close(&stream);
	}
}

Test(envd_tree, the_time_limit_ends_the_whole_tree_and_loses_no_output)
{
	envd_stream stream;
	int pids[3];

	start_sh(&stream, "Connect-Timeout-Ms: 1000\r\n",
		 TREE "head -c 60000 /dev/zero >&2; sleep 300");
	envd_stream_to_end(&stream);
	cr_assert_str_eq(stream.run.error_code, "deadline_exceeded");
	cr_assert_not(stream.run.has_end);
	cr_assert(stream.run.err.len == 60000, "%zu bytes", stream.run.err.len);
	cr_assert(read_pids(&stream.run.out, pids, 3) == 3);
	for (int i = 0; i < 3; i++)
		envd_expect_gone(pids[i]);
	envd_stream_close(&stream);
}

/* Paused as the engine pauses: nothing of the sandbox runs. */
Test(envd_tree, the_time_limit_stands_still_while_the_sandbox_is_paused)
{
	envd_stream stream;

	start_sh(&stream, "Connect-Timeout-Ms: 3000\r\n",
		 "echo up; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; echo done");
	envd_stream_until(&stream, "dXAK"); /* "up\n" */
	kill((pid_t)stream.run.pid, SIGSTOP);
	kill(child.pid, SIGSTOP);
	usleep(6000000);
	kill(child.pid, SIGCONT);
	kill((pid_t)stream.run.pid, SIGCONT);
	envd_stream_to_end(&stream);
	cr_assert(stream.run.has_end && stream.run.exit_code == 0, "%s",
		  stream.run.error_code);
	cr_assert_str_eq(abx__buf_str(&stream.run.out), "up\ndone\n");
	envd_stream_close(&stream);
}

Test(envd_tree, time_limits_keep_their_order)
{
	static const char *const limits[] = { "Connect-Timeout-Ms: 1500\r\n",
					      "Connect-Timeout-Ms: 200\r\n", NULL,
					      "Connect-Timeout-Ms: 3000\r\n" };
	envd_stream streams[4];

	for (int i = 0; i < 4; i++)
		start_sh(&streams[i], limits[i], "sleep 300");
	for (int i = 0; i < 4; i++) {
		static const int order[] = { 1, 0, 3 };

		if (i == 3) {
			signal_process(streams[2].run.pid, "SIGNAL_SIGKILL");
			envd_stream_to_end(&streams[2]);
			cr_assert(streams[2].run.has_end);
			break;
		}
		envd_stream_to_end(&streams[order[i]]);
		cr_assert_str_eq(streams[order[i]].run.error_code, "deadline_exceeded");
		cr_assert_not(envd_pid_is_gone((int)streams[2].run.pid));
	}
	for (int i = 0; i < 4; i++)
		envd_stream_close(&streams[i]);
}

Test(envd_tree, others_hear_how_an_overdue_process_ended)
{
	envd_stream first, second;
	char json[64];

	start_sh(&first, "Connect-Timeout-Ms: 1000\r\n", "sleep 300");
	snprintf(json, sizeof(json), "{\"process\":{\"pid\":%u}}", first.run.pid);
	envd_stream_open(&second, &child, "/process.Process/Connect", NULL, json);
	envd_stream_to_end(&first);
	envd_stream_to_end(&second);
	cr_assert_str_eq(first.run.error_code, "deadline_exceeded");
	cr_assert(second.run.has_end && !second.run.error_code[0]);
	cr_assert_str_eq(second.run.status, "signal: killed");
	envd_stream_close(&first);
	envd_stream_close(&second);
}

Test(envd_tree, what_follows_a_killed_command_does_not_run)
{
	static const char *const scripts[] = {
		"sleep 300 && touch %s/went-on",
		"sleep 300; touch %s/went-on",
		"(sleep 300 || true) | cat; touch %s/went-on",
	};
	ABX_CLEANUP(abx__freep) char *mark = abx__strf("%s/went-on", child.dir);

	for (int i = 0; i < 6; i++) {
		ABX_CLEANUP(abx__freep)
		char *tail = abx__strf("%s", scripts[i / 2]);
		ABX_CLEANUP_BUF abx__buf script = ABX__BUF_INIT;
		char *at = strstr(tail, "%s");
		envd_stream stream;

		abx__buf_add(&script, tail, (size_t)(at - tail));
		abx__buf_addf(&script, "%s%s", child.dir, at + 2);
		start_sh(&stream, NULL, abx__buf_str(&script));
		usleep(100000);
		signal_process(stream.run.pid,
			       i % 2 ? "SIGNAL_SIGTERM" : "SIGNAL_SIGKILL");
		envd_stream_to_end(&stream);
		usleep(100000);
		cr_assert(access(mark, F_OK) < 0, "%s went on", abx__buf_str(&script));
		envd_stream_close(&stream);
	}
}

Test(envd_tree, a_killed_process_is_gone_when_the_call_returns)
{
	for (int i = 0; i < 20; i++) {
		envd_stream stream;
		int pid;

		start_sh(&stream, NULL,
			 "head -c 50000000 /dev/zero >/dev/null; sleep 300");
		pid = (int)stream.run.pid;
		signal_process(stream.run.pid, "SIGNAL_SIGKILL");
		cr_assert(kill(pid, 0) < 0, "it is still there");
		envd_stream_to_end(&stream);
		envd_stream_close(&stream);
	}
}

Test(envd_tree, a_server_in_the_background_survives_its_command)
{
	envd_stream stream;
	int pid;

	start_sh(&stream, NULL, "sleep 300 >/dev/null 2>&1 & echo $!");
	envd_stream_to_end(&stream);
	cr_assert(read_pids(&stream.run.out, &pid, 1) == 1);
	cr_assert_not(envd_pid_is_gone(pid));
	kill(pid, SIGKILL);
	envd_stream_close(&stream);
}

Test(envd_tree, a_signal_handler_may_still_speak)
{
	envd_stream stream;

	start_sh(&stream, NULL,
		 "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.05; done");
	envd_stream_until(&stream, "dXAK"); /* "up\n" */
	signal_process(stream.run.pid, "SIGNAL_SIGTERM");
	envd_stream_to_end(&stream);
	cr_assert(strstr(abx__buf_str(&stream.run.out), "bye\n"), "%s",
		  abx__buf_str(&stream.run.out));
	cr_assert(stream.run.has_end && stream.run.exit_code == 9);
	envd_stream_close(&stream);
}

Test(envd_tree, a_time_limit_of_connect_ends_the_stream_alone)
{
	envd_stream first, second;
	char json[64];

	start_sh(&first, NULL, "read x; echo still here");
	snprintf(json, sizeof(json), "{\"process\":{\"pid\":%u}}", first.run.pid);
	envd_stream_open(&second, &child, "/process.Process/Connect",
			 "Connect-Timeout-Ms: 200\r\n", json);
	envd_stream_to_end(&second);
	cr_assert_str_eq(second.run.error_code, "deadline_exceeded");
	cr_assert_not(second.run.has_end);
	send_newline(first.run.pid);
	envd_stream_to_end(&first);
	cr_assert_str_eq(abx__buf_str(&first.run.out), "still here\n");
	cr_assert(first.run.has_end && first.run.exit_code == 0);
	envd_stream_close(&first);
	envd_stream_close(&second);
}

/* ---- readers that fall behind ---- */

Test(envd_tree, a_reader_that_trickles_is_cut_off_and_told_why)
{
	envd_stream slow, fast;
	char json[64];

	start_sh(&slow, NULL, "read x; head -c 20000000 /dev/zero");
	snprintf(json, sizeof(json), "{\"process\":{\"pid\":%u}}", slow.run.pid);
	envd_stream_open(&fast, &child, "/process.Process/Connect", NULL, json);
	envd_stream_until(&fast, "\"pid\":");
	send_newline(slow.run.pid);
	/* The slow one takes nothing until the other has all of it. */
	envd_stream_to_end(&fast);
	cr_assert(fast.run.out.len == 20000000 && fast.run.exit_code == 0);
	envd_stream_to_end(&slow);
	cr_assert_str_eq(slow.run.error_code, "resource_exhausted");
	cr_assert(slow.run.out.len > 0 && slow.run.out.len < 20000000);
	cr_assert_not(slow.run.has_end);
	envd_stream_close(&slow);
	envd_stream_close(&fast);
}

Test(envd_tree, a_slow_reader_alone_gets_every_byte)
{
	envd_stream slow;

	start_sh(&slow, NULL, "head -c 20000000 /dev/zero");
	usleep(2500000);
	envd_stream_to_end(&slow);
	cr_assert(slow.run.out.len == 20000000 && slow.run.has_end);
	envd_stream_close(&slow);
}

Test(envd_tree, one_process_has_so_many_followers_and_no_more)
{
	envd_stream first, streams[256];
	char json[64];

	start_sh(&first, NULL, "read x");
	snprintf(json, sizeof(json), "{\"process\":{\"pid\":%u}}", first.run.pid);
	for (int i = 0; i < 256; i++) {
		envd_stream_open(&streams[i], &child, "/process.Process/Connect", NULL,
				 json);
		if (i < 255)
			envd_stream_until(&streams[i], "\"pid\":");
	}
	envd_stream_to_end(&streams[255]);
	cr_assert_str_eq(streams[255].run.error_code, "resource_exhausted");
	send_newline(first.run.pid);
	for (int i = 0; i < 256; i++) {
		envd_stream_to_end(&streams[i]);
		cr_assert(i == 255 || streams[i].run.has_end);
		envd_stream_close(&streams[i]);
	}
	envd_stream_close(&first);
}

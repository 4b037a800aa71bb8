/*
 * test-envd-pty.c - terminals of the real daemon: contract/envd.md, section 7.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include "envd-child.h"

#define START "/process.Process/Start"

static envd_child child;

static void start(void)
{
	if (access("/dev/ptmx", R_OK | W_OK) < 0)
		cr_skip_test("needs /dev/ptmx");
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
}

static void stop(void)
{
	if (child.pid)
		envd_child_stop(&child);
}

TestSuite(envd_pty, .init = start, .fini = stop, .timeout = 120);

/* A shell script on a terminal of 80 x 24; `more` are members of the request. */
static void start_sh(envd_stream *stream, const char *script, const char *more)
{
	ABX_CLEANUP(abx__freep)
	char *json =
		abx__strf("{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"%s\"]},"
			  "\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}%s}",
			  script, more);

	envd_stream_open(stream, &child, START, NULL, json);
	envd_stream_until(stream, "\"pid\":");
}

static void join(envd_stream *stream, uint32_t pid)
{
	ABX_CLEANUP(abx__freep) char *json = abx__strf("{\"process\":{\"pid\":%u}}", pid);

	envd_stream_open(stream, &child, "/process.Process/Connect", NULL, json);
	envd_stream_until(stream, "\"pid\":");
}

/* A unary call about a process; `more` are members of the request. */
static void expect(const char *method, uint32_t pid, const char *more, int status,
		   const char *text)
{
	ABX_CLEANUP(abx__freep)
	char *json = abx__strf("{\"process\":{\"pid\":%u}%s}", pid, more);
	envd_answer answer = envd_child_call(&child, method, json);

	cr_assert(answer.status == status && strstr(abx__buf_str(&answer.body), text),
		  "%s %s: %d %s", method, json, answer.status,
		  abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

static void type(uint32_t pid, const char *text)
{
	ABX_CLEANUP(abx__freep) char *bytes = abx__base64_encode(text, strlen(text));
	ABX_CLEANUP(abx__freep)
	char *input = abx__strf(",\"input\":{\"pty\":\"%s\"}", bytes);

	expect("/process.Process/SendInput", pid, input, 200, "{}");
}

static void expect_end(envd_stream *stream, int exit_code)
{
	envd_stream_to_end(stream);
	cr_assert(stream->run.has_end && stream->run.exit_code == exit_code, "%d %s",
		  stream->run.exit_code, stream->run.error_message);
	envd_stream_close(stream);
}

Test(envd_pty, output_comes_as_pty_and_the_terminal_is_complete)
{
	envd_stream stream;

	start_sh(&stream,
		 "test -t 0 && test -t 1 && test -t 2 && echo a tty; echo err >&2; "
		 "stty size; echo $TERM; ps -o pid=,sid=,tpgid= -p $$; "
		 "echo open >/dev/tty; : </dev/tty; exit 4",
		 "");
	envd_stream_to_end(&stream);
	cr_assert(strstr(abx__buf_str(&stream.run.pty),
			 "a tty\r\nerr\r\n24 80\r\nxterm-256color\r\n"),
		  "%s", abx__buf_str(&stream.run.pty));
	cr_assert(strstr(abx__buf_str(&stream.run.pty), "open\r\n"));
	cr_assert(stream.run.out.len == 0 && stream.run.err.len == 0);
	cr_assert(stream.run.has_end && stream.run.exit_code == 4);
	envd_stream_close(&stream);
}

Test(envd_pty, the_process_leads_its_session_and_the_foreground)
{
	char want[64];
	envd_stream stream;

	start_sh(&stream, "echo ids $(ps -o sid=,pgid=,tpgid= -p $$) end", "");
	snprintf(want, sizeof(want), "ids %u %u %u end", stream.run.pid, stream.run.pid,
		 stream.run.pid);
	envd_stream_until_pty(&stream, want);
	expect_end(&stream, 0);
}

Test(envd_pty, term_is_the_requests_when_it_names_one)
{
	envd_stream stream;

	envd_stream_open(
		&stream, &child, START, NULL,
		"{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"echo $TERM\"],"
		"\"envs\":{\"TERM\":\"vt100\"}},\"pty\":{}}");
	envd_stream_until_pty(&stream, "vt100\r\n");
	expect_end(&stream, 0);
}

Test(envd_pty, input_arrives_in_order_and_is_echoed)
{
	envd_stream stream;

	start_sh(&stream, "read a; read b; echo [$b][$a]", "");
	type(stream.run.pid, "first\n");
	type(stream.run.pid, "sec");
	type(stream.run.pid, "ond\n");
	envd_stream_until_pty(&stream, "[second][first]\r\n");
	expect_end(&stream, 0);
}

Test(envd_pty, stream_input_reaches_the_terminal)
{
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT;
	envd_stream stream;
	envd_answer answer;
	char first[80];
	const char *const messages[] = { first,
					 "{\"data\":{\"input\":{\"pty\":\"YWI=\"}}}",
					 "{\"data\":{\"input\":{\"pty\":\"Ywo=\"}}}" };

	start_sh(&stream, "read a; echo got $a", "");
	snprintf(first, sizeof(first), "{\"start\":{\"process\":{\"pid\":%u}}}",
		 stream.run.pid);
	/* "ab", then "c\n" */
	for (int i = 0; i < 3; i++)
		abx__connect_frame_add(&body, 0, messages[i], strlen(messages[i]));
	answer = envd_child_request(&child, "POST", "/process.Process/StreamInput",
				    "Content-Type: application/connect+json\r\n",
				    body.data, body.len);
	cr_assert(answer.status == 200);
	envd_answer_done(&answer);
	envd_stream_until_pty(&stream, "got abc\r\n");
	expect_end(&stream, 0);
}

Test(envd_pty, control_keys_are_signals)
{
	envd_stream stream;

	start_sh(&stream,
		 "trap 'echo interrupted; exit 7' INT; echo ready; while :; do sleep "
		 "0.05; done",
		 "");
	envd_stream_until_pty(&stream, "ready");
	type(stream.run.pid, "\003");
	envd_stream_until_pty(&stream, "interrupted");
	expect_end(&stream, 7);
	start_sh(&stream, "cat; echo done", "");
	type(stream.run.pid, "\004");
	envd_stream_until_pty(&stream, "done");
	expect_end(&stream, 0);
}

Test(envd_pty, resizing_tells_the_process)
{
	envd_stream stream;

	start_sh(&stream,
		 "trap 'stty size; exit 3' WINCH; echo ready; while :; do "
		 "sleep 0.05; done",
		 "");
	envd_stream_until_pty(&stream, "ready");
	expect("/process.Process/Update", stream.run.pid, "", 200, "{}");
	expect("/process.Process/Update", stream.run.pid,
	       ",\"pty\":{\"size\":{\"cols\":70000,\"rows\":1}}", 400, "65535");
	expect("/process.Process/Update", stream.run.pid,
	       ",\"pty\":{\"size\":{\"cols\":132,\"rows\":50}}", 200, "{}");
	envd_stream_until_pty(&stream, "50 132\r\n");
	expect_end(&stream, 3);
}

Test(envd_pty, several_clients_join_one_terminal)
{
	envd_stream first, second;

	start_sh(&first, "read a; echo one $a; read b; echo two $b", "");
	type(first.run.pid, "x\n");
	envd_stream_until_pty(&first, "one x\r\n");
	join(&second, first.run.pid);
	cr_assert(second.run.pid == first.run.pid);
	type(first.run.pid, "y\n");
	envd_stream_until_pty(&first, "two y\r\n");
	envd_stream_until_pty(&second, "two y\r\n");
	/* From the moment it joined, not before. */
	cr_assert_not(strstr(abx__buf_str(&second.run.pty), "one x"));
	expect_end(&first, 0);
	expect_end(&second, 0);
}

Test(envd_pty, the_terminal_outlives_a_client_and_another_goes_on)
{
	envd_stream first, second;
	uint32_t pid;

	start_sh(&first, "read a; echo got $a", "");
	pid = first.run.pid;
	envd_stream_close(&first);
	join(&second, pid);
	type(pid, "it\n");
	envd_stream_until_pty(&second, "got it\r\n");
	expect_end(&second, 0);
}

Test(envd_pty, every_byte_written_before_the_exit_arrives)
{
	envd_stream stream;

	start_sh(&stream,
		 "stty -opost; i=0; while [ $i -lt 20000 ]; do echo $i; "
		 "i=$((i+1)); done",
		 "");
	envd_stream_to_end(&stream);
	{
		ABX_CLEANUP_BUF abx__buf want = ABX__BUF_INIT;

		for (int i = 0; i < 20000; i++)
			abx__buf_addf(&want, "%d\n", i);
		cr_assert(stream.run.pty.len == want.len &&
				  memcmp(stream.run.pty.data, want.data, want.len) == 0,
			  "%zu of %zu bytes", stream.run.pty.len, want.len);
	}
	cr_assert(stream.run.has_end && stream.run.exit_code == 0);
	envd_stream_close(&stream);
}

Test(envd_pty, a_kill_ends_the_shell_and_its_jobs)
{
	envd_stream stream;
	int job;

	start_sh(&stream, "set -m; sleep 300 & echo job=$!; wait", "");
	envd_stream_until_pty(&stream, "\n");
	job = (int)strtol(strstr(abx__buf_str(&stream.run.pty), "job=") + 4, NULL, 10);
	expect("/process.Process/SendSignal", stream.run.pid,
	       ",\"signal\":\"SIGNAL_SIGKILL\"", 200, "{}");
	expect_end(&stream, -1);
	envd_expect_gone(job);
}

Test(envd_pty, what_a_terminal_has_not_is_refused)
{
	envd_stream stream, plain;

	start_sh(&stream, "cat", "");
	expect("/process.Process/SendInput", stream.run.pid,
	       ",\"input\":{\"stdin\":\"YQ==\"}", 500, "the field pty");
	expect("/process.Process/CloseStdin", stream.run.pid, "", 500, "Ctrl+D");
	envd_stream_open(&plain, &child, START, NULL, "{\"process\":{\"cmd\":\"cat\"}}");
	envd_stream_until(&plain, "\"pid\":");
	expect("/process.Process/Update", plain.run.pid,
	       ",\"pty\":{\"size\":{\"cols\":1,\"rows\":1}}", 500, "no tty");
	expect("/process.Process/SendInput", plain.run.pid,
	       ",\"input\":{\"pty\":\"YQ==\"}", 500, "no tty");
	expect("/process.Process/CloseStdin", plain.run.pid, "", 200, "{}");
	expect_end(&plain, 0);
	type(stream.run.pid, "\004");
	expect_end(&stream, 0);
	envd_stream_open(&stream, &child, START, NULL,
			 "{\"process\":{\"cmd\":\"cat\"},\"pty\":{\"size\":{\"cols\":1,"
			 "\"rows\":65536}}}");
	envd_stream_to_end(&stream);
	cr_assert_str_eq(stream.run.error_code, "invalid_argument");
	envd_stream_close(&stream);
}

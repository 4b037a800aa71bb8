/*
 * envd-child.h - a real agentbox-envd on a free loopback port, and blocking HTTP to it,
 * for tests.
 */
#ifndef ABX_TESTS_ENVD_CHILD_H
#define ABX_TESTS_ENVD_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "io/connect-frame.h"

typedef struct envd_child {
	pid_t pid;
	uint16_t port;
	char dir[64]; /* scratch directory of the test; removed at the end */
	char log[80];
	const char *root; /* set before the start: run in this root, where the daemon is
			     /envd */
} envd_child;

/* Extra arguments, NULL-terminated, may be NULL. Fails the test when it does not start.
 */
void envd_child_start(envd_child *child, const char *const *args);
/* SIGTERM; it must exit with 0 within some seconds. */
void envd_child_stop(envd_child *child);

/* No such process, or a zombie nobody has reaped. */
bool envd_pid_is_gone(int pid);
void envd_expect_gone(int pid); /* within some seconds */

/* A connection, in blocking mode. */
int envd_child_connect(const envd_child *child);

typedef struct envd_answer {
	int status;
	char *head;    /* status line and headers */
	abx__buf body; /* chunks taken out */
	bool is_whole; /* ended as its framing says */
} envd_answer;

/* One request on its own connection. `headers` is "Name: value\r\n..." or NULL; with
 * `body` NULL no body is sent. */
envd_answer envd_child_request(const envd_child *child, const char *method,
			       const char *target, const char *headers, const void *body,
			       size_t len);
/* A unary RPC in JSON. */
envd_answer envd_child_call(const envd_child *child, const char *method,
			    const char *json);
/* A streaming RPC: sends the head and one envelope, returns the connection. */
int envd_child_open_stream(const envd_child *child, const char *method,
			   const char *headers, const char *json);
/* The stream's whole answer; chunks and envelopes are the caller's to take apart with
 * envd_stream_each(). */
envd_answer envd_child_stream(const envd_child *child, const char *method,
			      const char *headers, const char *json);
/* Reads an answer to its end and closes the connection. */
envd_answer envd_read_answer(int fd);
/* True when the header is there with this value. */
bool envd_answer_has(const envd_answer *answer, const char *header, const char *value);
void envd_answer_done(envd_answer *answer);

/* What came out of a Start or Connect stream. */
typedef struct envd_run {
	uint32_t pid;
	abx__buf out, err, pty;
	bool has_end;
	int exit_code;
	bool exited;
	char status[96];
	char error_code[64]; /* of the stream; "" when it ended well */
	char error_message[256];
	unsigned keepalives;
} envd_run;

envd_run envd_child_run(const envd_child *child, const char *json);
void envd_run_read(envd_run *run, const envd_answer *answer);
void envd_run_done(envd_run *run);

/* A stream read as it comes. */
typedef struct envd_stream {
	int fd;
	bool has_head, is_over;
	abx__buf raw;                /* not yet taken apart */
	abx__connect_parser *parser; /* of the envelopes */
	abx__buf text;               /* each message as JSON, a line each */
	envd_run run;
} envd_stream;

void envd_stream_open(envd_stream *stream, const envd_child *child, const char *method,
		      const char *headers, const char *json);
/* Waits for more; false at the stream's end. */
bool envd_stream_read(envd_stream *stream);
/* Reads until the messages hold `text`; the test fails at the end without it. */
void envd_stream_until(envd_stream *stream, const char *text);
/* The same for what came on a terminal. */
void envd_stream_until_pty(envd_stream *stream, const char *text);
void envd_stream_to_end(envd_stream *stream);
void envd_stream_close(envd_stream *stream); /* reading it to its end is not needed */

#endif

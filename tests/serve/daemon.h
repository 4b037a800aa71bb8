/*
 * daemon.h - tests against the real daemon with the fake engine: one of it per test, over
 * loopback and its socket.
 */
#ifndef TEST_DAEMON_H
#define TEST_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include <json-c/json.h>

typedef struct daemon_fixture {
	char dir[64];
	char socket[96];
	char url[64];
	char second[64]; /* IP:PORT of its second address, "" when there is one alone */
	char agbx[80], e2b[80];
	pid_t pid;
} daemon_fixture;

extern daemon_fixture d;

typedef struct answer {
	int status;
	char *text;
	json_object *json; /* NULL when it is none */
	char headers[4096];
} answer;

/* Starts it in a new state directory; extra arguments may follow, NULL at the end. */
void daemon_start(const char *extra, ...);
void daemon_begin(void); /* daemon_start(NULL), for .init */
/* SIGTERM, and an assertion that it ended well; the state stays. */
void daemon_end(void);
void daemon_again(void); /* ends it and starts it on the same state */
void daemon_teardown(void);

/* Runs the program with these arguments (NULL at the end) to its end; the exit status,
 * and what it wrote. */
int run_to_end(char *out, size_t size, const char *const *args);

/* One request with the agbx key. `body` NULL: none. */
answer ask(const char *method, const char *path, const char *body);
/* With these headers ("Name: value", NULL at the end) and no key. */
answer ask_with(const char *method, const char *path, const char *body,
		const char *const *headers);
/* Over the Unix socket, without a key. */
answer ask_unix(const char *method, const char *path, const char *body);
answer ask_unix_with(const char *method, const char *path, const char *body,
		     const char *const *headers);
void answer_done(answer *a);
/* A header of the answer; NULL when absent. Lives until the next call. */
const char *answer_header(const answer *a, const char *name);

/* The string at "a.b.0.c" of the JSON; NULL. */
const char *at(json_object *o, const char *path);
json_object *node(json_object *o, const char *path);

/* Asserts status and, when not NULL, that the text has it. Frees. */
void expect(const char *method, const char *path, const char *body, int status,
	    const char *text);

/* The template "t" and the env `env` with a pool of `replicas`; waits until they are
 * idle. */
void make_env(const char *env, int replicas);
void wait_idle(const char *env, int idle);
/* A create on the E2B surface; the id. */
void make_sandbox(const char *env, char id[32]);

#endif

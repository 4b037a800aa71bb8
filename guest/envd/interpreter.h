/*
 * interpreter.h - the code interpreter (guest/interpreter), started when somebody first
 * connects.
 *
 * envd only listens on its port, and only when the image's python3 has ipykernel, so an
 * image without it has the port to itself. The first connection starts the program, which
 * gets the listening socket as its descriptor 0 and accepts what waits there; when it
 * ends, the next connection starts it anew. One that ends at once several times over is
 * given up, and the port closed: nobody waits for what will not answer.
 */
#ifndef ABX_ENVD_INTERPRETER_H
#define ABX_ENVD_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

struct abx__envd;
struct abx__envd_options;

#define ABX__INTERPRETER_PORT 49999

typedef struct abx__interpreter {
	struct abx__envd *envd;
	const char *file; /* the program; borrowed from the options */
	char *python;     /* NULL: the image cannot run it, and nothing listens */
	bool is_warm;
	int listener;
	uv_poll_t poll; /* runs while nobody serves the listener */
	bool is_open;
	pid_t pid; /* 0: not running */
	int64_t started_us;
	unsigned failures; /* ends soon after the start, in a row */
} abx__interpreter;

/* Whatever stands in the way is no reason for the daemon not to start. */
void abx__interpreter_init(abx__interpreter *interpreter, struct abx__envd *envd,
			   const struct abx__envd_options *opts);
/* A child that is not a command was reaped. */
void abx__interpreter_on_exit(abx__interpreter *interpreter, pid_t pid, int wait_status);
/* Ends it; before the loop's last run. */
void abx__interpreter_close(abx__interpreter *interpreter);

/* The python3 that is first along `path` when it has ipykernel; a new string. NULL: none,
 * or no memory. */
char *abx__interpreter_find_python(const char *path);

#endif

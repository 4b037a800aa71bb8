/*
 * sandbox-process.h - a process in a sandbox, started through its envd: for the terminal,
 * for commands and for what only a command in there can read. It runs as root, since
 * whoever may start it owns the sandbox. Inside of serve/ only.
 *
 * Callbacks run from the loop and never inside a call of the owner's.
 */
#ifndef ABX_SERVE_SANDBOX_PROCESS_H
#define ABX_SERVE_SANDBOX_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include <agentbox/error.h>

#include "control/sandboxes.h"
#include "serve/serve.h"

/* Sizes of a terminal that wait to be told; older ones are dropped. */
#define ABX__SANDBOX_PROCESS_RESIZES 8

typedef struct abx__sandbox_process abx__sandbox_process;

enum abx__output { ABX__STDOUT, ABX__STDERR, ABX__PTY };

typedef struct abx__sandbox_command {
	const char *cmd;
	const char *const *args; /* NULL at the end */
	bool pty;
	unsigned cols, rows; /* of the terminal */
} abx__sandbox_command;

typedef struct abx__sandbox_process_events {
	void (*output)(void *userdata, enum abx__output which, const char *data,
		       size_t len);
	/* Once, last: ABX_OK with the exit code (137 when a signal ended it), or why
	   there is no process (any more). */
	void (*done)(void *userdata, int r, int exit_code, const abx_error *err);
} abx__sandbox_process_events;

/* Of a running sandbox; the record is read during the call alone. ABX_ENOMEM. */
int abx__sandbox_process_start(abx__serve *serve, const abx__sandbox_rec *rec,
			       const abx__sandbox_command *command,
			       const abx__sandbox_process_events *events, void *userdata,
			       abx__sandbox_process **ret, abx_error **reterr);
/* What its terminal is typed; goes in the order of the calls. ABX_ENOMEM; ABX_ETOOBIG
   when over a MiB waits. */
int abx__sandbox_process_type(abx__sandbox_process *p, const char *data, size_t len);
void abx__sandbox_process_resize(abx__sandbox_process *p, unsigned cols, unsigned rows);
/* What waits to be typed, in bytes. */
size_t abx__sandbox_process_waiting(const abx__sandbox_process *p);
void abx__sandbox_process_pause(abx__sandbox_process *p);
void abx__sandbox_process_resume(abx__sandbox_process *p);
/* No callback runs any more. A process that has not ended is killed: at once, or when
   `hangup` says so after its terminal was typed 0x04 and some seconds have passed. */
void abx__sandbox_process_close(abx__sandbox_process *p, bool hangup);
/* At the end of the room. */
void abx__sandbox_processes_abort(abx__serve *serve);

#endif

/*
 * process.h - the commands that run: their table, their life, how they end
 * (contract/envd.md, section 7).
 *
 * A process is in the table from its start until its end event. It ends when it was
 * reaped and both its outputs reached EOF; when something it left behind keeps an output
 * open, what is in the pipe is still delivered and the end follows after 100 ms without
 * output, 2 s at the latest. The outputs are then read and dropped until they close, so
 * that a server left in the background never meets a broken pipe. A process over its time
 * limit ends the same way, and the one who started it hears of the limit instead.
 */
#ifndef ABX_ENVD_PROCESS_H
#define ABX_ENVD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include <uthash.h>
#include <uv.h>

#include "base/error.h"
#include "envd/deadline.h"
#include "envd/input.h"
#include "envd/output.h"

struct abx__envd;
struct Process__StartRequest;
struct Process__ProcessSelector;
struct Process__ProcessEvent__EndEvent;

#define ABX__PROCESS_GRACE_MS 100
#define ABX__PROCESS_GRACE_MAX_MS 2000
#define ABX__PROCESS_RETAIN_MS 30000
#define ABX__PROCESS_RETAIN_MAX 4096

#define ABX__PROCESS_KILL_WAIT_MS 5000

/* Somebody who waits for a killed process to be gone. */
typedef struct abx__exit_wait {
	struct abx__exit_wait *next;
	void (*done)(void *userdata);
	void *userdata;
} abx__exit_wait;

typedef struct abx__process {
	UT_hash_handle hh; /* by pid */
	struct abx__envd *envd;
	uint32_t pid;
	struct Process__StartRequest *request; /* owned */
	const char *tag;                       /* borrowed from it; NULL: none */
	bool has_tty;
	abx__output out[2]; /* stdout, stderr; with a terminal its master, nothing */
	abx__input in;
	abx__subscriber *subscribers;
	abx__exit_wait *exit_waits;
	abx__deadline deadline;
	uv_timer_t grace; /* before the exit: how long it is waited for */
	uv_timer_t stall; /* runs while a subscriber is stalled */
	bool is_overdue;  /* killed by its time limit */
	bool has_exited;
	bool is_ended;
	int wait_status;
	uint64_t output_ms; /* when output came last */
	uint64_t exited_ms;
	unsigned open_handles; /* freed when none is left */
} abx__process;

/* What is left of an ended process for 30 s. */
typedef struct abx__ended {
	struct abx__ended *next;
	uint32_t pid;
	char *tag;
	int wait_status;
	uint64_t until_ms;
} abx__ended;

typedef struct abx__processes {
	struct abx__envd *envd;
	abx__process *by_pid;
	abx__ended *ended; /* oldest first */
	abx__ended **ended_tail;
	size_t ended_count;
	uv_timer_t ended_timer;
	abx__deadlines deadlines;
	uv_signal_t sigchld;
	struct rlimit nofile; /* what commands get; our own is raised */
	bool has_nofile;
} abx__processes;

int abx__processes_init(abx__processes *table, struct abx__envd *envd,
			abx_error **reterr);
/* Before the loop's last run: closes the table's handles. Running commands are left
 * alone. */
void abx__processes_close(abx__processes *table);

/* Puts a started process into the table; takes it over. */
void abx__processes_add(abx__processes *table, abx__process *process);
/* Live ones by selector; NULL when there is none. */
abx__process *abx__processes_find(abx__processes *table,
				  const struct Process__ProcessSelector *selector);
const abx__ended *
abx__processes_find_ended(abx__processes *table,
			  const struct Process__ProcessSelector *selector);

/* Kills the tree with SIGKILL when the time is over; the one who started it gets what was
 * written until then and `deadline_exceeded`. */
void abx__process_set_deadline(abx__process *process, uint64_t timeout_ms);
/* After a SIGKILL: `done` runs once, later, when the process is reaped, or after 5 s when
 * it cannot be. ABX_ENOMEM. */
int abx__process_wait_exit(abx__process *process, void (*done)(void *userdata),
			   void *userdata);
/* Called by output.c when something changed that the end may wait for. */
void abx__process_check_end(abx__process *process);
/* Every embedded handle closes through here; the last one frees the process. */
void abx__process_close_handle(abx__process *process, uv_handle_t *handle);

/* The end event a wait status stands for; `text` holds its strings. */
#define ABX__PROCESS_TEXT_SIZE 96
void abx__process_describe_end(int wait_status,
			       struct Process__ProcessEvent__EndEvent *end,
			       char text[ABX__PROCESS_TEXT_SIZE]);

#endif

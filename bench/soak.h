/*
 * soak.h - half an hour of mixed work by many clients: the work (soak-work.c), and
 * whether what the processes hold stays flat meanwhile (soak-flat.c).
 */
#ifndef BENCH_SOAK_H
#define BENCH_SOAK_H

#include <sys/types.h>

#include "rig.h"

#define SOAK_RESIDENTS 4
#define SOAK_ID_SIZE 64

/* What the clients tell of an act; written to a pipe at once. */
typedef struct soak_note {
	int act;
	int has_failed; /* by no fault of the soak's own */
	char text[244];
} soak_note;

int soak_act_count(void);
const char *soak_act_name(int act);

/* What all clients share. */
typedef struct soak_shared {
	char resident_ids[SOAK_RESIDENTS][SOAK_ID_SIZE];
	volatile int is_ending; /* no more acts */
} soak_shared;

typedef struct soak_client {
	const bench_rig *rig;
	const char *env;
	soak_shared *shared;
	unsigned number, seed;
	unsigned pause_ms; /* between two acts, on the average */
	int notes_fd;
} soak_client;

/* The first SOAK_RESIDENTS clients keep one sandbox and one client handle until the end;
 * of the others every second one visits a resident's sandbox, the rest make and end
 * their own. In a process of its own; it ends with the process, often in the middle of
 * something. */
_Noreturn void soak_client_run(const soak_client *client);

/* ---- what a process holds ---- */

typedef struct soak_limits {
	double kib, descriptors; /* the most that the fits may grow by */
	double kib_per_end;      /* and for each sandbox that ended meanwhile */
} soak_limits;

/* Adds a process; the name is copied. */
void soak_flat_add(const char *name, pid_t pid, const soak_limits *limits);
/* Looks at all of them; `ended` sandboxes have ended so far. */
void soak_flat_sample(double minute, long ended);
/* The table; how many were not flat over the last two thirds of the samples. */
int soak_flat_judge(void);

#endif

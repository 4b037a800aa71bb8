/*
 * library.h - the rows that go through libagentbox, one client on one thread.
 */
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

#include <agentbox/agentbox.h>

#include "rig.h"

/* All stop the program with a message when a call fails. */
_Noreturn void library_die(const char *what, int r, const abx_error *err);
abx_client *library_client(const bench_rig *rig);
abx_sandbox *library_sandbox(abx_client *client, const char *env);
/* Runs a line for a shell that must succeed. */
void library_sh(abx_sandbox *sandbox, const char *line);
/* Processes what comes until `*left` is 0. */
void library_pump(abx_client *client, const int *left);

/* What the rows of memory look at. */
typedef struct bench_memory {
	const char *cgroup;
	const char *pids; /* of the daemons, comma separated */
} bench_memory;

/* execs.c */
void bench_rows_of_execs(const bench_rig *rig, const char *env);
/* listing.c */
void bench_row_of_listing(const bench_rig *rig, const char *env, const char *cgroup);
/* stdout.c */
void bench_rows_of_stdout(const bench_rig *rig, const char *env,
			  const bench_memory *opts);
/* streams.c */
void bench_rows_of_streams(const bench_rig *rig, const char *env,
			   const bench_memory *opts);

#endif

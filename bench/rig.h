/*
 * rig.h - what the benchmarks share: HTTP calls on a kept connection, percentiles,
 * floors, the table. A benchmark stops the program with a message when a call fails: a
 * figure of a broken run is worse than none.
 */
#ifndef BENCH_RIG_H
#define BENCH_RIG_H

#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

typedef struct bench_rig {
	const char *url; /* http://127.0.0.1:PORT */
	const char *key;
} bench_rig;

typedef struct sandbox_ref {
	char id[64];
	char token[128]; /* "" when none */
} sandbox_ref;

_Noreturn void rig_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
double rig_now_ms(void);

/* A call on this thread's kept connection; the answer's body is parsed (NULL when empty).
 * Dies on transport errors. */
int rig_call(const bench_rig *rig, const char *method, const char *path, const char *body,
	     json_object **ret);
void rig_create(const bench_rig *rig, const char *template_id, const char *image,
		sandbox_ref *ret);
void rig_kill(const bench_rig *rig, const sandbox_ref *sandbox);
/* Runs argv (NULL-terminated) to its end through the gateway; returns its exit code. */
int rig_exec(const bench_rig *rig, const sandbox_ref *sandbox, const char *const *argv);
/* Waits until the env has `count` idle sandboxes; dies after two minutes. */
void rig_wait_idle(const bench_rig *rig, const char *env, int count);
/* All creates started together on one thread; returns the wall time in ms. */
double rig_create_many(const bench_rig *rig, const char *template_id, sandbox_ref *ret,
		       int count);
enum stream_way { STREAM_DOWN, STREAM_UP, STREAM_UP_FORM /* multipart */ };
/* Returns MB/s for `bytes` bytes. */
double rig_stream_file(const bench_rig *rig, const sandbox_ref *sandbox,
		       enum stream_way way, const char *path, uint64_t bytes);

double percentile(double *samples, int count, double p); /* sorts */
/* Floors. */
void floor_leave_hybrid(void); /* once, first */
double floor_spawn_ms(const char *const *argv, int count);
double floor_roundtrip_ms(const bench_rig *rig,
			  int count); /* GET /ping on a kept connection */
double floor_fdatasync_ms(const char *folder, int count);
double floor_loopback_mbs(uint64_t bytes);
/* write(2) into a new file in a folder, MB/s. */
double floor_disk_mbs(const char *folder, uint64_t bytes);
long process_pss_kib(long pid); /* -1: gone */
/* Each process below a cgroup folder. */
void cgroup_each(const char *cgroup, void (*each)(long pid));
/* Sum of PSS in KiB and number of processes below a cgroup folder. */
long cgroup_pss_kib(const char *cgroup, int *ret_processes);

/* VmHWM, the most that was resident since the mark was cleared (memory.c); -1: gone. */
long memory_peak_kib(const char *pid);
void memory_clear_peak(const char *pid);
/* The daemons' together, and of all Pods the envd that has most. */
long memory_daemons_kib(const char *pids, int clear);
long memory_envd_kib(const char *cgroup, int clear);

/* Rows of files (files.c). */
typedef struct bench_files {
	const char *state_dir, *cgroup;
	const char *pids; /* of the daemons whose memory must stay flat */
} bench_files;
void bench_rows_of_files(const bench_rig *rig, const sandbox_ref *sandbox,
			 const bench_files *opts);

/* Rows of pausing and resuming (lifecycle.c), with a sandbox of the env. */
void bench_rows_of_lifecycle(const bench_rig *rig, const char *env,
			     const char *state_dir);

/* Rows of envd by itself (envd.c). */
void bench_envd(const char *envd, const char *run_dir);

void row(const char *promise, const char *figure, const char *floor, const char *ratio,
	 const char *target, int ok);
void table_head(void);

#endif

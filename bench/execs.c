/*
 * execs.c - many commands at once in one sandbox, from one thread, and the same number of
 * children of our own at once as the floor.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "library.h"

#define MOST 2000

extern char **environ;

static const char *const argv_true[] = { "/usr/bin/busybox", "true", NULL };

typedef struct exec_run {
	abx_sandbox *sandbox;
	abx_command_options opts;
	double samples[MOST];
	int started, count, left;
} exec_run;

typedef struct exec_one {
	exec_run *run;
	double begun;
} exec_one;

static void start_one(exec_run *run);

static void on_end(void *userdata, int r, abx_command_result *result,
		   const abx_error *err)
{
	exec_one *one = userdata;
	exec_run *run = one->run;

	if (r < 0)
		library_die("exec", r, err);
	if (result->exit_code != 0)
		rig_die("exec: exit %d", result->exit_code);
	abx_command_result_free(result);
	run->samples[--run->left] = rig_now_ms() - one->begun;
	if (run->started < run->count)
		start_one(run);
}

static void start_one(exec_run *run)
{
	exec_one *one = malloc(sizeof(*one));
	abx_error *err = NULL;
	int r;

	if (!one)
		rig_die("out of memory");
	*one = (exec_one){ run, rig_now_ms() };
	run->started++;
	r = abx_command_run_async(run->sandbox, NULL, &run->opts, on_end, one, free, NULL,
				  &err);
	if (r < 0)
		library_die("exec", r, err);
}

static void ours(abx_client *client, exec_run *run, int in_flight, int count)
{
	run->started = 0;
	run->count = run->left = count;
	for (int i = 0; i < in_flight; i++)
		start_one(run);
	library_pump(client, &run->left);
}

/* ---- the floor ---- */

static pid_t spawn_one(posix_spawn_file_actions_t *actions)
{
	pid_t pid;

	if (posix_spawn(&pid, argv_true[0], actions, NULL, (char *const *)argv_true,
			environ) != 0)
		rig_die("floor: cannot run %s", argv_true[0]);
	return pid;
}

static int slot_of(const pid_t *pids, int count, pid_t pid)
{
	for (int i = 0; i < count; i++)
		if (pids[i] == pid)
			return i;
	rig_die("floor: a child that is not ours");
}

/* Each from its spawn to its end, `in_flight` of them at any time. */
static void children(double *samples, int in_flight, int count)
{
	double begun[64];
	pid_t pids[64];
	posix_spawn_file_actions_t actions;
	int started = 0;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	for (; started < in_flight; started++) {
		begun[started] = rig_now_ms();
		pids[started] = spawn_one(&actions);
	}
	for (int done = 0; done < count; done++) {
		pid_t pid;
		int at;

		while ((pid = waitpid(-1, NULL, 0)) < 0 && errno == EINTR)
			;
		at = slot_of(pids, in_flight, pid);
		samples[done] = rig_now_ms() - begun[at];
		pids[at] = 0;
		if (started++ >= count)
			continue;
		begun[at] = rig_now_ms();
		pids[at] = spawn_one(&actions);
	}
	posix_spawn_file_actions_destroy(&actions);
}

/* ---- the rows ---- */

void bench_rows_of_execs(const bench_rig *rig, const char *env)
{
	static const struct {
		int in_flight, count;
	} loads[] = { { 1, 500 }, { 8, 1000 }, { 64, MOST } };
	static double floor_samples[MOST];
	static exec_run run;
	abx_client *client = library_client(rig);

	run.sandbox = library_sandbox(client, env);
	run.opts = (abx_command_options)ABX_COMMAND_OPTIONS_INIT;
	run.opts.argv = argv_true;
	ours(client, &run, 64, MOST / 4); /* what is made once is made before */
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		int n = loads[i].in_flight, count = loads[i].count;
		char name[64], figure[64], floor[64], ratio[32];
		double p50, spawn, start = rig_now_ms(), took;

		ours(client, &run, n, count);
		took = rig_now_ms() - start;
		children(floor_samples, n, count);
		p50 = percentile(run.samples, count, 50);
		spawn = percentile(floor_samples, count, 50);
		snprintf(name, sizeof(name), "exec of a static true, %d in flight", n);
		snprintf(figure, sizeof(figure), "p50 %.2f p99 %.2f ms, %.0f/s", p50,
			 percentile(run.samples, count, 99), count / took * 1e3);
		snprintf(floor, sizeof(floor), "%d spawns at once p50 %.2f p99 %.2f ms",
			 n, spawn, percentile(floor_samples, count, 99));
		snprintf(ratio, sizeof(ratio), "%.1f", p50 / spawn);
		row(name, figure, floor, ratio, "-", 1);
	}
	abx_sandbox_kill(run.sandbox, NULL);
	abx_sandbox_free(run.sandbox);
	abx_client_free(client);
}

/*
 * stdout.c - much output of one command to one reader: time that grows with the bytes
 * and not faster, memory that does not grow at all.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library.h"

extern char **environ;

static int count_bytes(void *userdata, const char *data, size_t len)
{
	(void)data;
	*(uint64_t *)userdata += len;
	return ABX_OK;
}

static double ours_ms(abx_sandbox *sandbox, uint64_t bytes)
{
	char number[32];
	const char *argv[] = { "head", "-c", number, "/dev/zero", NULL };
	abx_command_options opts = ABX_COMMAND_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_error *err = NULL;
	uint64_t got = 0;
	double start;
	int r;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
	opts.argv = argv;
	opts.on_stdout = count_bytes;
	opts.userdata = &got;
	start = rig_now_ms();
	r = abx_command_run(sandbox, NULL, &opts, &result, &err);
	if (r < 0)
		library_die("stdout", r, err);
	if (result->exit_code != 0 || got != bytes)
		rig_die("stdout: exit %d, %llu bytes", result->exit_code,
			(unsigned long long)got);
	abx_command_result_free(result);
	return rig_now_ms() - start;
}

/* The same command with its output in a pipe to here. */
static double pipe_ms(uint64_t bytes)
{
	static char block[64 << 10];
	char number[32];
	const char *argv[] = { "head", "-c", number, "/dev/zero", NULL };
	posix_spawn_file_actions_t actions;
	double start = rig_now_ms();
	int ends[2];
	pid_t pid;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
	if (pipe2(ends, O_CLOEXEC) < 0)
		rig_die("floor: no pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ) !=
	    0)
		rig_die("floor: cannot run head");
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (read(ends[0], block, sizeof(block)) > 0)
		;
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return rig_now_ms() - start;
}

static void row_of_memory(const bench_memory *opts, const long *before)
{
	char figure[64];
	long envd = memory_envd_kib(opts->cgroup, 0) - before[0];
	long daemons = memory_daemons_kib(opts->pids, 0) - before[1];
	long client = memory_peak_kib("self") - before[2];

	snprintf(figure, sizeof(figure), "+%ld, +%ld, +%ld KiB", envd, daemons, client);
	row("memory meanwhile: envd, daemons, client", figure, "-", "-",
	    "flat: + 2 MiB at most each",
	    envd <= 2048 && daemons <= 2048 && client <= 2048);
}

void bench_rows_of_stdout(const bench_rig *rig, const char *env, const bench_memory *opts)
{
	enum { STEPS = 3, RUNS = 3 };
	static const uint64_t bytes[STEPS] = { 50000000, 100000000, 200000000 };
	abx_client *client = library_client(rig);
	abx_sandbox *sandbox = library_sandbox(client, env);
	double best[STEPS] = { 1e9, 1e9, 1e9 }, raw = 1e9;
	char figure[64], floor[64], ratio[32];
	long before[3];

	ours_ms(sandbox, bytes[0]);
	memory_envd_kib(opts->cgroup, 1);
	memory_daemons_kib(opts->pids, 1);
	memory_clear_peak("self");
	before[0] = memory_envd_kib(opts->cgroup, 0);
	before[1] = memory_daemons_kib(opts->pids, 0);
	before[2] = memory_peak_kib("self");
	for (int run = 0; run < RUNS; run++) {
		double now;

		for (int i = 0; i < STEPS; i++) {
			now = ours_ms(sandbox, bytes[i]);
			best[i] = now < best[i] ? now : best[i];
		}
		now = pipe_ms(bytes[STEPS - 1]);
		raw = now < raw ? now : raw;
	}
	snprintf(figure, sizeof(figure), "%.0f, %.0f, %.0f ms", best[0], best[1],
		 best[2]);
	snprintf(floor, sizeof(floor), "200 MB by a pipe %.0f ms", raw);
	snprintf(ratio, sizeof(ratio), "%.1f", best[2] / raw);
	row("50, 100, 200 MB of stdout to one reader", figure, floor, ratio,
	    "200 MB <= 4.8 x 50 MB", best[2] <= 4.8 * best[0]);
	row_of_memory(opts, before);
	abx_sandbox_kill(sandbox, NULL);
	abx_sandbox_free(sandbox);
	abx_client_free(client);
}

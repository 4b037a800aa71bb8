/*
 * streams.c - 1,000 commands that run at once, each with its stream of output to one
 * client on one thread: all alive, a line of its own through each, the memory of one.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library.h"

#define SANDBOXES 10
#define EACH 100
#define STREAMS (SANDBOXES * EACH)

extern char **environ;

static const char *const argv_cat[] = { "/usr/bin/busybox", "cat", NULL };

typedef struct one_stream {
	abx_process *process;
	abx_sandbox *sandbox;
	char line[32], got[32];
	size_t got_len;
} one_stream;

static one_stream streams[STREAMS];
static int left; /* of what is waited for */

static int on_output(void *userdata, const char *data, size_t len)
{
	one_stream *s = userdata;

	if (len >= sizeof(s->got) - s->got_len)
		rig_die("stream: %zu bytes too many", len);
	memcpy(s->got + s->got_len, data, len);
	s->got_len += len;
	if (s->got_len == strlen(s->line))
		left--;
	return ABX_OK;
}

static void on_started(void *userdata, int r, abx_process *process, const abx_error *err)
{
	one_stream *s = userdata;

	if (r < 0)
		library_die("stream: start", r, err);
	s->process = process;
	left--;
}

static void on_sent(void *userdata, int r, const abx_error *err)
{
	(void)userdata;
	if (r < 0)
		library_die("stream: send", r, err);
	left--;
}

static void on_end(void *userdata, int r, abx_command_result *result,
		   const abx_error *err)
{
	(void)userdata;
	if (r < 0)
		library_die("stream: end", r, err);
	if (result->exit_code != 0)
		rig_die("stream: exit %d", result->exit_code);
	abx_command_result_free(result);
	left--;
}

static double open_all(abx_client *client)
{
	abx_command_options opts = ABX_COMMAND_OPTIONS_INIT;
	double start = rig_now_ms();
	abx_error *err = NULL;

	opts.argv = argv_cat;
	opts.stdin_open = 1;
	opts.timeout_ms = ABX_NO_TIMEOUT;
	opts.on_stdout = on_output;
	left = STREAMS;
	for (int i = 0; i < STREAMS; i++) {
		int r;

		opts.userdata = &streams[i];
		r = abx_command_start_async(streams[i].sandbox, NULL, &opts, on_started,
					    &streams[i], NULL, NULL, &err);
		if (r < 0)
			library_die("stream: start", r, err);
	}
	library_pump(client, &left);
	return rig_now_ms() - start;
}

/* A line of its own into each, and back. */
static double line_through_each(abx_client *client)
{
	double start = rig_now_ms();
	abx_error *err = NULL;

	left = 2 * STREAMS;
	for (int i = 0; i < STREAMS; i++) {
		one_stream *s = &streams[i];
		int r;

		snprintf(s->line, sizeof(s->line), "line of stream %d\n", i);
		r = abx_command_send_stdin_async(s->sandbox, abx_process_pid(s->process),
						 s->line, strlen(s->line), on_sent, NULL,
						 NULL, NULL, &err);
		if (r < 0)
			library_die("stream: send", r, err);
	}
	library_pump(client, &left);
	for (int i = 0; i < STREAMS; i++)
		if (memcmp(streams[i].got, streams[i].line, streams[i].got_len) != 0)
			rig_die("stream %d: got %.*s", i, (int)streams[i].got_len,
				streams[i].got);
	return rig_now_ms() - start;
}

static void end_all(abx_client *client)
{
	abx_error *err = NULL;

	left = 2 * STREAMS;
	for (int i = 0; i < STREAMS; i++) {
		one_stream *s = &streams[i];
		int r = abx_process_wait_async(s->process, on_end, NULL, NULL, NULL,
					       &err);

		if (r >= 0)
			r = abx_command_close_stdin_async(
				s->sandbox, abx_process_pid(s->process), on_sent, NULL,
				NULL, NULL, &err);
		if (r < 0)
			library_die("stream: end", r, err);
	}
	library_pump(client, &left);
	for (int i = 0; i < STREAMS; i++)
		abx_process_free(streams[i].process);
}

/* ---- the floor: as many cats with pipes to here ---- */

typedef struct cat {
	pid_t pid;
	int in, out;
} cat;

static cat start_cat(void)
{
	posix_spawn_file_actions_t actions;
	int in[2], out[2];
	cat c;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		rig_die("floor: no pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (posix_spawn(&c.pid, argv_cat[0], &actions, NULL, (char *const *)argv_cat,
			environ) != 0)
		rig_die("floor: cannot run cat");
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	c.in = in[1];
	c.out = out[0];
	return c;
}

static void cats(double *ret_open_ms, double *ret_line_ms)
{
	static cat all[STREAMS];
	char line[32];
	double start = rig_now_ms();

	for (int i = 0; i < STREAMS; i++)
		all[i] = start_cat();
	*ret_open_ms = rig_now_ms() - start;
	start = rig_now_ms();
	for (int i = 0; i < STREAMS; i++)
		if (write(all[i].in, "line of a stream\n", 17) != 17)
			rig_die("floor: cat %d takes nothing", i);
	for (int i = 0; i < STREAMS; i++)
		if (read(all[i].out, line, sizeof(line)) != 17)
			rig_die("floor: cat %d gives nothing", i);
	*ret_line_ms = rig_now_ms() - start;
	for (int i = 0; i < STREAMS; i++) {
		close(all[i].in);
		close(all[i].out);
		while (waitpid(all[i].pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

/* ---- memory ---- */

static long envds_kib;

static void add_envd(long pid)
{
	char path[64], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(comm, sizeof(comm), f) && strcmp(comm, "envd\n") == 0)
		envds_kib += process_pss_kib(pid);
	fclose(f);
}

static void measure(const bench_memory *opts, long *ret)
{
	char *list = strdup(opts->pids), *save = NULL;

	envds_kib = 0;
	cgroup_each(opts->cgroup, add_envd);
	ret[0] = envds_kib;
	ret[1] = 0;
	for (char *pid = strtok_r(list, ",", &save); pid;
	     pid = strtok_r(NULL, ",", &save))
		ret[1] += process_pss_kib(strtol(pid, NULL, 10));
	ret[2] = process_pss_kib(getpid());
	free(list);
}

static void more_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void bench_rows_of_streams(const bench_rig *rig, const char *env,
			   const bench_memory *opts)
{
	abx_client *client = library_client(rig);
	abx_sandbox *sandboxes[SANDBOXES];
	double opened, through, floor_opened, floor_through;
	char figure[64], floor[64], ratio[32];
	long before[3], after[3];

	more_descriptors();
	for (int i = 0; i < SANDBOXES; i++)
		sandboxes[i] = library_sandbox(client, env);
	for (int i = 0; i < STREAMS; i++)
		streams[i] = (one_stream){ .sandbox = sandboxes[i % SANDBOXES] };
	measure(opts, before);
	opened = open_all(client);
	measure(opts, after);
	through = line_through_each(client);
	end_all(client);
	for (int i = 0; i < SANDBOXES; i++) {
		abx_sandbox_kill(sandboxes[i], NULL);
		abx_sandbox_free(sandboxes[i]);
	}
	abx_client_free(client);
	cats(&floor_opened, &floor_through);
	snprintf(figure, sizeof(figure), "opened %.0f ms, a line each %.0f ms", opened,
		 through);
	snprintf(floor, sizeof(floor), "cats by pipes %.0f, %.0f ms", floor_opened,
		 floor_through);
	snprintf(ratio, sizeof(ratio), "%.1f", opened / floor_opened);
	row("1,000 streams to one client thread", figure, floor, ratio, "all alive", 1);
	snprintf(figure, sizeof(figure), "%.1f, %.1f, %.1f KiB",
		 (double)(after[0] - before[0]) / STREAMS,
		 (double)(after[1] - before[1]) / STREAMS,
		 (double)(after[2] - before[2]) / STREAMS);
	row("memory of a stream: envd, daemons, client", figure, "-", "-", "-", 1);
}

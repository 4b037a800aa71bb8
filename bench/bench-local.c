/*
 * bench-local.c - the promises of the local engine, against a running agentboxd
 * (bench/run starts it).
 *
 *     bench-local URL KEY STATE_DIR CGROUP CRUN_BUNDLE PIDS [ROW...]
 *
 * CGROUP is the instance's cgroup folder, CRUN_BUNDLE a bundle with the root that the
 * swap row's image has, PIDS the daemons whose memory must stay flat (comma separated).
 * Rows default to all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "library.h"

#define ENV_SAME "bench-same" /* starts on the image it serves, 100 Pods */
#define ENV_SWAP "bench-swap" /* idles on another image */
#define ENV_MANY "bench-many" /* sized by the row */
#define SWAP_IMAGE "oci:busybox"

static const char *state_dir, *cgroup, *bundle, *pids;

static void create_same(const bench_rig *rig)
{
	enum { ROUNDS = 4, EACH = 60, COUNT = ROUNDS * EACH };
	static double samples[COUNT];
	static sandbox_ref sandboxes[EACH];
	double round_trip, sync, p50, p99;
	char figure[64], floor[64], ratio[32];

	for (int r = 0; r < ROUNDS; r++) {
		rig_wait_idle(rig, ENV_SAME, 100);
		for (int i = 0; i < EACH; i++) {
			double start = rig_now_ms();

			rig_create(rig, ENV_SAME, NULL, &sandboxes[i]);
			samples[r * EACH + i] = rig_now_ms() - start;
		}
		for (int i = 0; i < EACH; i++)
			rig_kill(rig, &sandboxes[i]);
	}
	round_trip = floor_roundtrip_ms(rig, 500);
	sync = floor_fdatasync_ms(state_dir, 200);
	p50 = percentile(samples, COUNT, 50);
	p99 = percentile(samples, COUNT, 99);
	snprintf(figure, sizeof(figure), "p50 %.2f p99 %.2f ms", p50, p99);
	snprintf(floor, sizeof(floor), "HTTP + fdatasync %.3f ms", round_trip + sync);
	snprintf(ratio, sizeof(ratio), "%.1f", p50 / (round_trip + sync));
	row("create, warm pool, same image", figure, floor, ratio,
	    "p50 <= 3, p99 <= 15 ms", p50 <= 3 && p99 <= 15);
}

static void create_swap(const bench_rig *rig)
{
	enum { COUNT = 30 };
	const char *argv[] = { "crun", "run", "--bundle", bundle, "bench-floor", NULL };
	static double samples[COUNT];
	double p50, crun;
	char figure[64], floor[64], ratio[32];

	rig_wait_idle(rig, ENV_SWAP, 4);
	crun = floor_spawn_ms(argv, COUNT / 2);
	for (int i = -2; i < COUNT; i++) {
		sandbox_ref sandbox;
		double start;

		rig_wait_idle(rig, ENV_SWAP, 4);
		start = rig_now_ms();
		rig_create(rig, ENV_SWAP, SWAP_IMAGE, &sandbox);
		if (i >= 0)
			samples[i] = rig_now_ms() - start;
		rig_kill(rig, &sandbox);
	}
	rig_wait_idle(rig, ENV_SWAP, 4);
	/* Half of the floor before and half after, so that neither has the quieter time.
	 */
	crun = (crun + floor_spawn_ms(argv, COUNT / 2)) / 2;
	p50 = percentile(samples, COUNT, 50);
	snprintf(figure, sizeof(figure), "p50 %.1f p99 %.1f ms", p50,
		 percentile(samples, COUNT, 99));
	snprintf(floor, sizeof(floor), "crun run, same root %.1f ms", crun);
	snprintf(ratio, sizeof(ratio), "%.2f", p50 / crun);
	row("create with another image, unpacked", figure, floor, ratio,
	    "p50 <= 2 x crun run", p50 <= 2 * crun);
}

static void create_echo(const bench_rig *rig)
{
	enum { COUNT = 60 };
	const char *argv[] = { "/bin/echo", "hello", NULL };
	static double samples[COUNT];
	static sandbox_ref sandboxes[COUNT];
	double p50;
	char figure[64];

	rig_wait_idle(rig, ENV_SAME, 100);
	for (int i = 0; i < COUNT; i++) {
		double start = rig_now_ms();

		rig_create(rig, ENV_SAME, NULL, &sandboxes[i]);
		if (rig_exec(rig, &sandboxes[i], argv) != 0)
			rig_die("echo failed");
		samples[i] = rig_now_ms() - start;
	}
	for (int i = 0; i < COUNT; i++)
		rig_kill(rig, &sandboxes[i]);
	p50 = percentile(samples, COUNT, 50);
	snprintf(figure, sizeof(figure), "p50 %.2f p99 %.2f ms", p50,
		 percentile(samples, COUNT, 99));
	row("create + first echo", figure, "-", "-", "p50 <= 12 ms", p50 <= 12);
}

static void burst(const bench_rig *rig)
{
	enum { COUNT = 100 };
	const char *argv[] = { "/bin/true", NULL };
	static sandbox_ref sandboxes[COUNT];
	double took;
	char figure[64];

	rig_wait_idle(rig, ENV_SAME, COUNT);
	took = rig_create_many(rig, ENV_SAME, sandboxes, COUNT);
	for (int i = 0; i < COUNT; i++)
		if (rig_exec(rig, &sandboxes[i], argv) != 0)
			rig_die("sandbox %s of the burst is not usable", sandboxes[i].id);
	for (int i = 0; i < COUNT; i++)
		rig_kill(rig, &sandboxes[i]);
	snprintf(figure, sizeof(figure), "%.0f ms wall, all usable", took);
	row("100 creates at once, pool of 100", figure, "-", "-", "<= 1000 ms",
	    took <= 1000);
}

static void exec_true(const bench_rig *rig)
{
	enum { COUNT = 300 };
	const char *argv[] = { "/usr/bin/busybox", "true", NULL };
	static double samples[COUNT];
	sandbox_ref sandbox;
	double p50, spawn, round_trip;
	char figure[64], floor[64], ratio[32];

	rig_wait_idle(rig, ENV_SAME, 100);
	rig_create(rig, ENV_SAME, NULL, &sandbox);
	for (int i = -20; i < COUNT; i++) {
		double start = rig_now_ms();

		if (rig_exec(rig, &sandbox, argv) != 0)
			rig_die("true failed");
		if (i >= 0)
			samples[i] = rig_now_ms() - start;
	}
	rig_kill(rig, &sandbox);
	spawn = floor_spawn_ms(argv, COUNT);
	round_trip = floor_roundtrip_ms(rig, COUNT);
	p50 = percentile(samples, COUNT, 50);
	snprintf(figure, sizeof(figure), "p50 %.2f p99 %.2f ms", p50,
		 percentile(samples, COUNT, 99));
	snprintf(floor, sizeof(floor), "spawn %.2f + HTTP %.2f ms", spawn, round_trip);
	snprintf(ratio, sizeof(ratio), "%.2f", p50 / (spawn + round_trip));
	row("exec of a static true through the gateway", figure, floor, ratio, "<= 2 x",
	    p50 <= 2 * (spawn + round_trip));
}

static void files(const bench_rig *rig)
{
	const bench_files opts = { .state_dir = state_dir,
				   .cgroup = cgroup,
				   .pids = pids };
	sandbox_ref sandbox;

	rig_wait_idle(rig, ENV_SAME, 100);
	rig_create(rig, ENV_SAME, NULL, &sandbox);
	bench_rows_of_files(rig, &sandbox, &opts);
	rig_kill(rig, &sandbox);
}

static void idle_pods(const bench_rig *rig)
{
	enum { COUNT = 300 };
	const char *path = "/v1/envs/" ENV_MANY "/sandboxpools/" ENV_MANY "-100mc256mi";
	long before, after;
	int procs_before, procs_after;
	double each, start, took;
	char body[256], figure[64], floor[64];

	before = cgroup_pss_kib(cgroup, &procs_before);
	snprintf(body, sizeof(body),
		 "{\"inlineResources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":"
		 "\"256Mi\"},"
		 "\"limits\":{\"cpu\":\"100m\",\"memory\":\"256Mi\"}},\"replicas\":%d}",
		 COUNT);
	start = rig_now_ms();
	if (rig_call(rig, "PUT", path, body, NULL) != 200)
		rig_die("pool of " ENV_MANY " cannot be scaled");
	rig_wait_idle(rig, ENV_MANY, COUNT);
	took = rig_now_ms() - start;
	after = cgroup_pss_kib(cgroup, &procs_after);
	each = (double)(after - before) / COUNT / 1024;
	snprintf(figure, sizeof(figure), "%.2f MiB PSS, %d Pods", each, COUNT);
	snprintf(floor, sizeof(floor), "%.1f processes a Pod, %.1f s",
		 (double)(procs_after - procs_before) / COUNT, took / 1e3);
	row("an idle Pod, all its processes", figure, floor, "-", "<= 3 MiB, 300 Pods",
	    each <= 3);
}

static void pause_resume(const bench_rig *rig)
{
	rig_wait_idle(rig, ENV_SAME, 100);
	bench_rows_of_lifecycle(rig, ENV_SAME, state_dir);
}

static void execs(const bench_rig *rig)
{
	rig_wait_idle(rig, ENV_SAME, 100);
	bench_rows_of_execs(rig, ENV_SAME);
}

static void listing(const bench_rig *rig)
{
	rig_wait_idle(rig, ENV_SAME, 100);
	bench_row_of_listing(rig, ENV_SAME, cgroup);
}

static void much_output(const bench_rig *rig)
{
	const bench_memory opts = { cgroup, pids };

	rig_wait_idle(rig, ENV_SAME, 100);
	bench_rows_of_stdout(rig, ENV_SAME, &opts);
}

static void many_streams(const bench_rig *rig)
{
	const bench_memory opts = { cgroup, pids };

	rig_wait_idle(rig, ENV_SAME, 100);
	bench_rows_of_streams(rig, ENV_SAME, &opts);
}

/* The very file that Pods run. */
static void envd_alone(const bench_rig *rig)
{
	char envd[512], run_dir[512];

	(void)rig;
	snprintf(envd, sizeof(envd), "%s/podd/rt/envd", state_dir);
	snprintf(run_dir, sizeof(run_dir), "%s/bench-run", state_dir);
	bench_envd(envd, run_dir);
}

static const struct {
	const char *name;
	void (*run)(const bench_rig *rig);
} rows[] = {
	{ "create", create_same },   { "swap", create_swap },   { "echo", create_echo },
	{ "pause", pause_resume },   { "burst", burst },        { "exec", exec_true },
	{ "execs", execs },          { "stdout", much_output }, { "list", listing },
	{ "streams", many_streams }, { "files", files },        { "envd", envd_alone },
	{ "idle", idle_pods },
};

static int wanted(const char *name, int argc, char **argv)
{
	if (argc <= 7)
		return 1;
	for (int i = 7; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	bench_rig rig;

	if (argc < 7)
		rig_die("usage: %s URL KEY STATE_DIR CGROUP CRUN_BUNDLE PIDS [ROW...]",
			argv[0]);
	rig.url = argv[1];
	rig.key = argv[2];
	state_dir = argv[3];
	cgroup = argv[4];
	bundle = argv[5];
	pids = argv[6];
	curl_global_init(CURL_GLOBAL_DEFAULT);
	floor_leave_hybrid();
	table_head();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (wanted(rows[i].name, argc, argv))
			rows[i].run(&rig);
	return 0;
}

/*
 * lifecycle.c - the rows of pausing and resuming.
 */
#include <stdio.h>
#include <string.h>

#include "rig.h"

static void move(const bench_rig *rig, const sandbox_ref *sandbox, const char *what,
		 int status)
{
	char path[160];
	int got;

	snprintf(path, sizeof(path), "/agent-sandbox/api/e2b/sandboxes/%s/%s",
		 sandbox->id, what);
	got = rig_call(rig, "POST", path, "{}", NULL);
	if (got != status)
		rig_die("%s of %s: status %d", what, sandbox->id, got);
}

static void row_of(const char *name, double *samples, int count, double floor_ms)
{
	char figure[64], floor[64], ratio[32];
	double p50 = percentile(samples, count, 50);

	snprintf(figure, sizeof(figure), "p50 %.2f p99 %.2f ms", p50,
		 percentile(samples, count, 99));
	snprintf(floor, sizeof(floor), "HTTP + fdatasync %.3f ms", floor_ms);
	snprintf(ratio, sizeof(ratio), "%.1f", p50 / floor_ms);
	row(name, figure, floor, ratio, "p50 <= 5 ms", p50 <= 5);
}

void bench_rows_of_lifecycle(const bench_rig *rig, const char *env, const char *state_dir)
{
	enum { COUNT = 200 };
	static double pauses[COUNT], resumes[COUNT];
	double floor_ms =
		floor_roundtrip_ms(rig, 500) + floor_fdatasync_ms(state_dir, 200);
	sandbox_ref sandbox;

	rig_create(rig, env, NULL, &sandbox);
	for (int i = 0; i < COUNT; i++) {
		double start = rig_now_ms();

		move(rig, &sandbox, "pause", 204);
		pauses[i] = rig_now_ms() - start;
		start = rig_now_ms();
		move(rig, &sandbox, "resume", 201);
		resumes[i] = rig_now_ms() - start;
	}
	rig_kill(rig, &sandbox);
	row_of("pause, memory kept", pauses, COUNT, floor_ms);
	row_of("resume", resumes, COUNT, floor_ms);
}

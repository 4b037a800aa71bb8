/*
 * bench-control.c - what the control plane costs by itself: control/ on the fake engine
 * with no delays of its own, on a real clock and loop, with the SQLite store in a
 * directory that is removed afterwards.
 *
 *   bench-control [ROW...]   rows: claims refill envs records idle
 *
 * Nothing here asserts; it prints one table.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "control/control.h"
#include "engine/fake.h"
#include "store/sqlite.h"

#define IDLE_SECONDS 20

static uv_loop_t loop;
static uv_timer_t timer;
static uv_prepare_t prepare;
static abx__store *store;
static abx__engine *engine;
static abx__control *control;
static char dir[] = "/var/tmp/agentbox-bench-control.XXXXXX";
static bool closed;

/* --- a runtime that takes every arming at once --- */

typedef struct armed {
	struct armed *next;
	void (*done)(void *userdata, int r, const abx_error *err);
	void *userdata;
} armed;

static armed *armings;

static void arm(abx__runtime *runtime, const char *namespace_, const char *pod,
		uint16_t port, const char *body, size_t body_len, uint64_t deadline_ms,
		void (*done)(void *userdata, int r, const abx_error *err), void *userdata)
{
	armed *a = malloc(sizeof(*a));

	(void)runtime;
	(void)namespace_;
	(void)pod;
	(void)port;
	(void)body;
	(void)body_len;
	(void)deadline_ms;
	if (!a)
		abort();
	*a = (armed){ .next = armings, .done = done, .userdata = userdata };
	armings = a;
}

static void forget(abx__runtime *runtime, const char *namespace_, const char *pod)
{
	(void)runtime;
	(void)namespace_;
	(void)pod;
}

static const abx__runtime_ops runtime_ops = { .arm = arm, .forget = forget };
static abx__runtime runtime = { .ops = &runtime_ops };

/* --- the loop --- */

static void complete_armings(void)
{
	while (armings) {
		armed *a = armings;

		armings = a->next;
		a->done(a->userdata, ABX_OK, NULL);
		free(a);
	}
}

static void on_timer(uv_timer_t *t)
{
	(void)t;
}

/* Before the loop waits: all that is due happens; the timer wakes it for the next. When
   something happened it does not wait: that may be what somebody waits for. */
static void on_prepare(uv_prepare_t *p)
{
	int64_t now = abx__mono_ms(), next;
	bool happened = false;

	(void)p;
	for (;;) {
		bool due = control && abx__control_next_deadline_ms(control) <= now;

		if (due)
			abx__control_tick(control);
		if (armings)
			complete_armings();
		else if (!abx__fake_engine_step(engine) && !due)
			break;
		happened = true;
	}
	next = abx__fake_engine_next_ms(engine);
	if (control && abx__control_next_deadline_ms(control) < next)
		next = abx__control_next_deadline_ms(control);
	if (happened)
		next = now;
	if (next == INT64_MAX)
		uv_timer_stop(&timer);
	else
		uv_timer_start(&timer, on_timer, next > now ? (uint64_t)(next - now) : 0,
			       0);
}

static void check(int r, const abx_error *err, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench-control: %s: %s\n", what, abx_error_message(err));
	exit(1);
}

static void run_until(const int *done)
{
	while (!*done)
		uv_run(&loop, UV_RUN_ONCE);
}

static void run_for(int64_t ms)
{
	int64_t end = abx__mono_ms() + ms;
	uv_timer_t limit;

	uv_timer_init(&loop, &limit);
	while (abx__mono_ms() < end) {
		uv_timer_start(&limit, on_timer, (uint64_t)(end - abx__mono_ms() + 1), 0);
		uv_run(&loop, UV_RUN_ONCE);
	}
	uv_close((uv_handle_t *)&limit, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
}

static void on_done(void *userdata, int r, const abx_error *err)
{
	check(r, err, "call");
	*(int *)userdata = 1;
}

static void on_object(void *userdata, int r, json_object *object, const abx_error *err)
{
	(void)object;
	on_done(userdata, r, err);
}

/* --- making and ending a world --- */

static void boot(size_t history)
{
	static const char *const light[] = { ABX__KIND_RECORD, ABX__KIND_ENV_STATE,
					     NULL };
	static const uint8_t key[ABX__CONTROL_TOKEN_KEY_LEN] = { 1 };
	const abx__store_sqlite_options store_options = { .dir = dir,
							  .light_kinds = light };
	const abx__fake_engine_options engine_options = { .clock = &abx__clock_system,
							  .start_ms = 1,
							  .swap_ms = 1 };
	abx_error *err = NULL;
	int started = 0;

	check(abx__store_sqlite_open(&loop, &store_options, &store, &err), err, "store");
	check(abx__fake_engine_new(&engine_options, &engine, &err), err, "engine");
	const abx__control_config config = { .cluster_id = "local",
					     .token_key = key,
					     .history_most = history,
					     .store = store,
					     .engine = engine,
					     .runtime = &runtime,
					     .clock = &abx__clock_system };
	check(abx__control_new(&config, &control, &err), err, "control");
	uv_timer_init(&loop, &timer);
	uv_prepare_init(&loop, &prepare);
	uv_prepare_start(&prepare, on_prepare);
	check(abx__control_start(control, on_done, &started, &err), err, "start");
	run_until(&started);
}

static void on_closed(void *userdata)
{
	(void)userdata;
	closed = true;
}

static void wait_closed(void)
{
	while (!closed)
		uv_run(&loop, UV_RUN_ONCE);
	closed = false;
}

static void end(void)
{
	abx__control_close(control, on_closed, NULL);
	wait_closed();
	abx__control_free(control);
	control = NULL;
	store->ops->close(store, on_closed, NULL);
	wait_closed();
	uv_close((uv_handle_t *)&timer, NULL);
	uv_close((uv_handle_t *)&prepare, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	abx__fake_engine_free(engine);
}

static void wipe(void)
{
	static const char *const names[] = { "store.db", "store.db-wal", "store.db-shm",
					     "store.lock" };
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
}

static void make(bool is_env, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void make(bool is_env, const char *fmt, ...)
{
	abx_error *err = NULL;
	json_object *doc;
	char text[2048];
	int done = 0;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	doc = json_tokener_parse(text);
	if (!doc)
		abort();
	check(is_env ? abx__control_env_create(control, doc, on_object, &done, &err)
		     : abx__control_template_put(control, doc, true, on_object, &done,
						 &err),
	      err, "make");
	json_object_put(doc);
	run_until(&done);
}

static void make_template(void)
{
	make(false, "{\"metadata\":{\"name\":\"t\"},\"spec\":{\"template\":{\"spec\":{"
		    "\"containers\":[{\"name\":\"sandbox\",\"image\":\"w:1\"}]}}}}");
}

static void make_env(const char *name, int replicas)
{
	make(true,
	     "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"scheduling.navix.sh/team\":"
	     "\"a\",\"scheduling.navix.sh/user\":\"b\"}},\"spec\":{\"templateRef\":{"
	     "\"name\":\"t\"},\"overrides\":{\"podCreationImagePolicy\":"
	     "\"PoolDefaultImage\"},\"clusters\":[{\"clusterID\":\"local\",\"members\":[{"
	     "\"config\":{\"inlineResources\":{\"requests\":{\"cpu\":\"1\",\"memory\":"
	     "\"2Gi\"}}},\"spec\":{\"replicas\":%d}}]}]}}",
	     name, replicas);
}

static void wait_idle(int n)
{
	abx__pool_counts counts;
	abx_error *err = NULL;

	for (;;) {
		check(abx__control_counts(control, "default", "demo", NULL, &counts,
					  &err),
		      err, "counts");
		if (counts.idle - counts.unavailable_idle >= n)
			return;
		uv_run(&loop, UV_RUN_ONCE);
	}
}

/* --- measuring --- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double at(const double *sorted, size_t n, double p)
{
	size_t i = (size_t)ceil(p * (double)n);

	return sorted[i > 0 ? i - 1 : 0];
}

static void row(const char *name, double *ms, size_t n)
{
	qsort(ms, n, sizeof(*ms), by_value);
	printf("%-44s %8.3f %8.3f %8.3f %7zu\n", name, at(ms, n, 0.5), at(ms, n, 0.99),
	       ms[n - 1], n);
	fflush(stdout);
}

/* Of this thread's processor time: what a list takes, whoever else is busy. */
static int64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static double cpu_ms_since(int64_t us)
{
	return (double)(cpu_us() - us) / 1000.0;
}

static double ms_since(int64_t us)
{
	return (double)(abx__mono_us() - us) / 1000.0;
}

typedef struct claim {
	int done;
	int r;
	char id[32];
} claim;

static void on_claim(void *userdata, int r, const abx__sandbox_rec *rec,
		     const abx_error *err)
{
	claim *c = userdata;

	(void)err;
	c->r = r;
	if (rec)
		snprintf(c->id, sizeof(c->id), "%s", rec->id);
	c->done = 1;
}

static double claim_one(claim *c)
{
	const abx__claim_request request = {
		.namespace_ = "default", .name = "demo", .team = "a", .user = "b"
	};
	int64_t start = abx__mono_us();
	abx_error *err = NULL;

	*c = (claim){ 0 };
	check(abx__control_claim(control, &request, on_claim, c, NULL, &err), err,
	      "claim");
	run_until(&c->done);
	if (c->r < 0)
		exit(1);
	return ms_since(start);
}

static void kill_one(const claim *c)
{
	abx_error *err = NULL;
	int done = 0;

	check(abx__control_kill(control, c->id, "Completed", on_done, &done, &err), err,
	      "kill");
	run_until(&done);
}

/* Claims of a pool that is whole each time. */
static void bench_claims(void)
{
	static const int depths[] = { 1, 10, 100, 300 };

	for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
		size_t n = 2000;
		double *ms = calloc(n, sizeof(*ms));
		char name[64];

		boot(0);
		make_template();
		make_env("demo", depths[d]);
		for (size_t i = 0; i < n; i++) {
			claim c;

			wait_idle(depths[d]);
			ms[i] = claim_one(&c);
			kill_one(&c);
		}
		snprintf(name, sizeof(name), "claim, pool of %d", depths[d]);
		row(name, ms, n);
		free(ms);
		end();
		wipe();
	}
}

/* Each claim while the Pod of the one before is on its way back. */
static void bench_refill(void)
{
	size_t n = 2000;
	double *ms = calloc(n, sizeof(*ms));

	boot(0);
	make_template();
	make_env("demo", 100);
	wait_idle(100);
	for (size_t i = 0; i < n; i++) {
		claim c;

		ms[i] = claim_one(&c);
		kill_one(&c);
	}
	row("claim, pool of 100 that refills", ms, n);
	free(ms);
	end();
	wipe();
}

static void bench_envs(void)
{
	size_t n = 500, total = 0;
	double *ms = calloc(n, sizeof(*ms));
	abx_error *err = NULL;
	json_object *list;
	int64_t start;
	char name[32];

	boot(0);
	make_template();
	start = abx__mono_us();
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "env-%05d", (i * 7919) % 10000);
		make_env(name, 0);
	}
	printf("%-44s %8.3f ms each\n", "make 10,000 envs", ms_since(start) / 10000);
	for (size_t i = 0; i < n; i++) {
		start = cpu_us();
		check(abx__control_env_summaries(control, "default", "a", "b",
						 (i * 100) % 10000, 100, &list, &total,
						 &err),
		      err, "envs");
		ms[i] = cpu_ms_since(start);
		json_object_put(list);
	}
	row("100 of 10,000 envs (processor time)", ms, n);
	for (size_t i = 0; i < 20; i++) {
		start = cpu_us();
		check(abx__control_env_summaries(control, "default", "a", "b", 0, 10000,
						 &list, &total, &err),
		      err, "envs");
		ms[i] = cpu_ms_since(start);
		json_object_put(list);
	}
	row("all 10,000 envs at once (processor time)", ms, 20);
	free(ms);
	end();
	wipe();
}

static void bench_records(void)
{
	static const unsigned failed = 1u << ABX__STATUS_FAILED;
	abx__sandbox_item *items = calloc(1000, sizeof(*items));
	size_t n = 500, count = 0, total = 0;
	double *ms = calloc(n, sizeof(*ms));
	abx_error *err = NULL;
	int64_t start;

	boot(100000);
	make_template();
	make_env("demo", 4);
	wait_idle(4);
	start = abx__mono_us();
	for (int i = 0; i < 100000; i++) {
		claim c;

		claim_one(&c);
		kill_one(&c);
	}
	printf("%-44s %8.3f ms each\n", "100,000 claims and kills",
	       ms_since(start) / 100000);
	for (int pass = 0; pass < 3; pass++) {
		const abx__sandbox_query query = { .namespace_ = "default",
						   .team = pass ? "a" : NULL,
						   .user = pass ? "b" : NULL,
						   .statuses = pass == 2 ? failed : 0 };
		const char *const names[] = { "100 of 100,000 records (processor time)",
					      "the same, of one owner",
					      "the same, that failed (none)" };

		for (size_t i = 0; i < n; i++) {
			start = cpu_us();
			check(abx__control_sandbox_list(control, &query,
							(i * 200) % 100000, 100, items,
							&count, &total, &err),
			      err, "records");
			ms[i] = cpu_ms_since(start);
		}
		row(names[pass], ms, n);
	}
	start = abx__mono_us();
	end();
	boot(100000);
	printf("%-44s %8.0f ms\n", "restart with them", ms_since(start));
	free(ms);
	free(items);
	end();
	wipe();
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void bench_idle(void)
{
	static const char *const groups[] = { "", ", autoscaled" };

	for (int g = 0; g < 2; g++) {
		abx_error *err = NULL;
		double before;
		char name[64];
		int done = 0;

		boot(0);
		make_template();
		make_env("demo", 1000);
		if (g) {
			json_object *policy = json_tokener_parse(
				"{\"enabled\":true,\"minReplicas\":1000}");

			check(abx__control_group_put(control, "default", "demo", "1c2gi",
						     policy, on_object, &done, &err),
			      err, "group");
			json_object_put(policy);
			run_until(&done);
		}
		wait_idle(1000);
		run_for(1000);
		before = cpu_seconds();
		run_for(IDLE_SECONDS * 1000);
		snprintf(name, sizeof(name), "1,000 idle Pods%s", groups[g]);
		printf("%-44s %8.3f %% of a core\n", name,
		       (cpu_seconds() - before) / IDLE_SECONDS * 100);
		fflush(stdout);
		end();
		wipe();
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} rows[] = {
		{ "claims", bench_claims }, { "refill", bench_refill },
		{ "envs", bench_envs },     { "records", bench_records },
		{ "idle", bench_idle },
	};

	if (!mkdtemp(dir))
		return 1;
	uv_loop_init(&loop);
	printf("%-44s %8s %8s %8s %7s\n", "milliseconds", "p50", "p99", "most", "n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool wanted = argc == 1;

		for (int a = 1; a < argc; a++)
			wanted = wanted || strcmp(argv[a], rows[i].name) == 0;
		if (wanted)
			rows[i].run();
	}
	rmdir(dir);
	return 0;
}

/*
 * suite-engine-inside.c - what the engine reaches of a Pod: ports, figures, the log.
 */
#include "suite-engine-priv.h"

#include <stdio.h>
#include <unistd.h>

void suite_engine_connect_to_an_absent_pod_is_not_found(suite_engine *s)
{
	suite_answer a = { 0 };

	suite_start(s);
	s->engine->ops->connect_pod(s->engine, NS, "nosuch", 49983, suite_on_fd, &a);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert_eq(a.fd, -1);
}

void suite_engine_connect_to_a_closed_port_is_unavailable(suite_engine *s)
{
	suite_answer a = { 0 };

	suite_start(s);
	suite_ready_pod(s, "p1", s->image_a);
	s->engine->ops->connect_pod(s->engine, NS, "p1", 9, suite_on_fd, &a);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_EUNAVAILABLE, "%d %s", a.r, a.message);
	cr_assert_eq(a.fd, -1);
}

typedef struct stats_answer {
	int calls, r;
	abx__pod_stats stats;
} stats_answer;

static void on_stats(void *userdata, int r, const abx__pod_stats *stats,
		     const abx_error *err)
{
	stats_answer *a = userdata;

	(void)err;
	a->calls++;
	a->r = r;
	cr_assert_eq(stats != NULL, r == ABX_OK);
	if (stats)
		a->stats = *stats;
}

void suite_engine_a_pod_tells_what_it_uses(suite_engine *s)
{
	stats_answer a = { 0 };

	suite_start(s);
	suite_ready_pod(s, "p1", s->image_a);
	s->engine->ops->stat_pod(s->engine, NS, "p1", on_stats, &a);
	cr_assert_eq(a.calls, 0, "never inside the call");
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_OK);
	cr_assert_gt(a.stats.cpu_ns, 0);
	cr_assert_gt(a.stats.memory_bytes, 0);
	cr_assert_gt(a.stats.memory_total, a.stats.memory_bytes);
	cr_assert_gt(a.stats.disk_used, 0);
	cr_assert_gt(a.stats.disk_total, a.stats.disk_used);
}

void suite_engine_what_an_absent_pod_uses_is_not_found(suite_engine *s)
{
	stats_answer a = { 0 };

	suite_start(s);
	s->engine->ops->stat_pod(s->engine, NS, "nosuch", on_stats, &a);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_ENOTFOUND);
}

/* What the log says, or "" when nothing was written. */
static void read_log(suite_engine *s, const char *name, char *text, size_t size)
{
	suite_answer a = { 0 };
	ssize_t n;

	text[0] = '\0';
	s->engine->ops->open_log(s->engine, NS, name, suite_on_fd, &a);
	WAIT_FOR(a.calls);
	if (a.r == ABX_ENOTFOUND)
		return;
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	n = read(a.fd, text, size - 1);
	cr_assert_geq(n, 0);
	text[n] = '\0';
	close(a.fd);
}

void suite_engine_a_log_holds_nothing_of_the_container_before(suite_engine *s)
{
	static char first[65536], second[65536];
	suite_view *v;

	suite_start(s);
	v = suite_ready_pod(s, "p1", s->image_a);
	read_log(s, "p1", first, sizeof(first));
	suite_change(s, "p1", &(abx__pod_change){ .restart = true });
	WAIT_FOR(v->ready && v->running_generation == 2);
	read_log(s, "p1", second, sizeof(second));
	/* The same program has said the same again, and not both. */
	cr_assert_lt(strlen(second), 2 * strlen(first) + 1, "%s", second);
}

void suite_engine_the_log_of_an_absent_pod_is_not_found(suite_engine *s)
{
	suite_answer a = { 0 };

	suite_start(s);
	s->engine->ops->open_log(s->engine, NS, "nosuch", suite_on_fd, &a);
	WAIT_FOR(a.calls);
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert_eq(a.fd, -1);
}

#include "base/meter.h"

#include <agentbox/error.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { REQUESTS, SIZE, LATENCY, PLAIN };

static const abx__meter_family families[] = {
	[REQUESTS] = { .name = "x_requests_total",
		       .help = "Requests.",
		       .kind = ABX__METER_COUNTER,
		       .labels = { "method", "code" } },
	[SIZE] = { .name = "x_size",
		   .help = "Size.",
		   .kind = ABX__METER_GAUGE,
		   .labels = { "pool" } },
	[LATENCY] = { .name = "x_seconds",
		      .help = "Seconds.",
		      .kind = ABX__METER_HISTOGRAM,
		      .labels = { "pool" },
		      .first = 0.01,
		      .factor = 2,
		      .buckets = 3 },
	[PLAIN] = { .name = "x_plain", .help = "Plain.", .kind = ABX__METER_GAUGE },
};

static abx__meters *m;

static void setup(void)
{
	m = abx__meters_new(families, 4);
	cr_assert(m);
}

static void teardown(void)
{
	abx__meters_free(m);
}

TestSuite(base_meter, .init = setup, .fini = teardown);

static const char *print(void)
{
	static char text[8192];
	abx__buf buf = ABX__BUF_INIT;

	cr_assert_eq(abx__meters_print(m, &buf), ABX_OK);
	snprintf(text, sizeof(text), "%s", abx__buf_str(&buf));
	abx__buf_done(&buf);
	return text;
}

Test(base_meter, a_counter_counts_each_series)
{
	const char *get[] = { "GET", "200" }, *put[] = { "PUT", "500" };

	abx__meter_add(m, REQUESTS, get, 1);
	abx__meter_add(m, REQUESTS, get, 2);
	abx__meter_add(m, REQUESTS, put, 1);
	cr_assert_eq(abx__meter_get(m, REQUESTS, get), 3);
	cr_assert(strstr(print(), "# HELP x_requests_total Requests.\n"
				  "# TYPE x_requests_total counter\n"
				  "x_requests_total{method=\"GET\",code=\"200\"} 3\n"
				  "x_requests_total{method=\"PUT\",code=\"500\"} 1\n"),
		  "%s", print());
}

Test(base_meter, a_histogram_has_cumulative_buckets)
{
	const char *v[] = { "p" };

	abx__meter_observe(m, LATENCY, v, 0.01); /* bounds are inclusive */
	abx__meter_observe(m, LATENCY, v, 0.015);
	abx__meter_observe(m, LATENCY, v, 7);
	cr_assert_eq(abx__meter_get(m, LATENCY, v), 3);
	cr_assert(strstr(print(), "# TYPE x_seconds histogram\n"
				  "x_seconds_bucket{pool=\"p\",le=\"0.01\"} 1\n"
				  "x_seconds_bucket{pool=\"p\",le=\"0.02\"} 2\n"
				  "x_seconds_bucket{pool=\"p\",le=\"0.04\"} 2\n"
				  "x_seconds_bucket{pool=\"p\",le=\"+Inf\"} 3\n"
				  "x_seconds_sum{pool=\"p\"} 7.025\n"
				  "x_seconds_count{pool=\"p\"} 3\n"),
		  "%s", print());
}

Test(base_meter, label_values_are_escaped)
{
	const char *v[] = { "a\"b\\c\nd" };

	abx__meter_set(m, SIZE, v, 1);
	cr_assert(strstr(print(), "x_size{pool=\"a\\\"b\\\\c\\nd\"} 1\n"), "%s", print());
}

Test(base_meter, a_family_without_series_is_not_told_and_one_without_labels_is)
{
	cr_assert_null(strstr(print(), "x_plain"));
	abx__meter_set(m, PLAIN, NULL, 2.5);
	cr_assert(strstr(print(), "x_plain 2.5\n"), "%s", print());
	cr_assert_null(strstr(print(), "x_size"));
}

Test(base_meter, what_is_gone_is_forgotten)
{
	const char *a[] = { "a" }, *ab[] = { "ab" };
	const char *which[] = { "pool", "a", NULL };

	abx__meter_set(m, SIZE, a, 1);
	abx__meter_set(m, SIZE, ab, 1);
	abx__meter_observe(m, LATENCY, a, 1);
	abx__meter_drop(m, which);
	cr_assert_eq(abx__meter_get(m, SIZE, a), 0);
	cr_assert_eq(abx__meter_get(m, SIZE, ab), 1);
	cr_assert_eq(abx__meter_get(m, LATENCY, a), 0);
	abx__meter_clear(m, SIZE);
	cr_assert_eq(abx__meter_get(m, SIZE, ab), 0);
}

Test(base_meter, there_is_an_end_to_series)
{
	char name[16];
	const char *v[] = { name };

	for (int i = 0; i < ABX__METER_SERIES_MOST + 5; i++) {
		snprintf(name, sizeof(name), "%d", i);
		abx__meter_add(m, SIZE, v, 1);
	}
	snprintf(name, sizeof(name), "%d", ABX__METER_SERIES_MOST + 1);
	cr_assert_eq(abx__meter_get(m, SIZE, v), 0);
	abx__meter_clear(m, SIZE);
	cr_assert_eq(abx__meters_dropped(m), 5);
}

Test(base_meter, counting_without_memory_is_dropped_and_told)
{
	const char *v[] = { "p" };

	for (unsigned n = 0; n < 4; n++) {
		abx__test_fail_alloc_after(n);
		abx__meter_observe(m, LATENCY, v, 1);
		abx__test_alloc_reset();
	}
	abx__meter_observe(m, LATENCY, v, 1);
	cr_assert_geq(abx__meter_get(m, LATENCY, v), 1);
	cr_assert_geq(abx__meters_dropped(m), 1);
}

Test(base_meter, nowhere_to_count_is_fine)
{
	const char *v[] = { "p" };

	abx__meter_add(NULL, SIZE, v, 1);
	abx__meter_observe(NULL, LATENCY, v, 1);
	cr_assert_eq(abx__meter_get(NULL, SIZE, v), 0);
	abx__meter_drop(NULL, (const char *[]){ NULL });
	abx__meter_clear(NULL, 0);
	abx__meters_free(NULL);
}

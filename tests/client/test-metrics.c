/*
 * test-metrics.c - what a sandbox uses, and its log.
 */
#include "fixture.h"

TestSuite(client_metrics, .timeout = 30);

#define METRICS "/e2b/sandboxes/sb1/metrics"

Test(client_metrics, moments_and_their_window)
{
	static const fake_answer answers[] = {
		{ .method = "GET",
		  .path = METRICS,
		  .status = 200,
		  .times = 2,
		  .body = "[{\"timestamp\":\"2026-12-01T10:00:00Z\",\"timestampUnix\":"
			  "1796119200,\"cpuCount\":2,\"cpuUsedPct\":12.5,\"memUsed\":"
			  "1048576,\"memTotal\":536870912,\"memCache\":4096,\"diskUsed\":"
			  "7,"
			  "\"diskTotal\":9000000000},{\"timestampUnix\":1796119205}]" },
		{ .path = METRICS, .status = 200, .times = 1, .body = "[]" },
		{ .path = METRICS, .status = 200, .times = 1, .body = "[{}]" },
		{ .path = METRICS,
		  .status = 501,
		  .body = "{\"code\":501,\"message\":\"not measured\"}" },
		{ 0 },
	};
	abx_metrics_options o = ABX_METRICS_OPTIONS_INIT;
	abx_metrics *metrics = NULL;
	const abx_metric *m;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_get_metrics(f.sandbox, NULL, &metrics, &f.err) == ABX_OK,
		  "%s", abx_error_message(f.err));
	expect_seen(&f, 0, "GET " METRICS "\n");
	cr_assert(abx_metrics_count(metrics) == 2);
	m = abx_metrics_at(metrics, 0);
	cr_expect(m->timestamp_ms == INT64_C(1796119200000) && m->cpu_count == 2);
	cr_expect(m->cpu_used_pct > 12.4 && m->cpu_used_pct < 12.6);
	cr_expect(m->memory_used_bytes == 1048576 && m->memory_total_bytes == 536870912);
	cr_expect(m->memory_cache_bytes == 4096 && m->disk_used_bytes == 7);
	cr_expect(m->disk_total_bytes == UINT64_C(9000000000));
	cr_expect(abx_metrics_at(metrics, 2) == NULL);
	abx_metrics_free(metrics);
	o.start_ms = 1999;
	o.end_ms = 2001;
	cr_assert(abx_sandbox_get_metrics(f.sandbox, &o, &metrics, &f.err) == ABX_OK);
	abx_metrics_free(metrics);
	expect_seen(&f, 1, "GET " METRICS "?start=1&end=3\n");
	cr_assert(abx_sandbox_get_metrics(f.sandbox, NULL, &metrics, &f.err) == ABX_OK);
	cr_expect(abx_metrics_count(metrics) == 0);
	abx_metrics_free(metrics);
	expect_error(&f, abx_sandbox_get_metrics(f.sandbox, NULL, &metrics, &f.err),
		     ABX_EPROTO, "not a list of metrics");
	expect_error(&f, abx_sandbox_get_metrics(f.sandbox, NULL, &metrics, &f.err),
		     ABX_EUNSUPPORTED, "not measured");
	o.start_ms = 2002;
	expect_error(&f, abx_sandbox_get_metrics(f.sandbox, &o, &metrics, &f.err),
		     ABX_EINVAL, "window");
	expect_error(&f, abx_sandbox_get_metrics(f.sandbox, NULL, NULL, &f.err),
		     ABX_EINVAL, "ret");
	expect_error(&f, abx_sandbox_get_metrics(NULL, NULL, &metrics, &f.err),
		     ABX_EINVAL, "NULL");
	fixture_down(&f);
}

#define LOGS "/e2b/v2/sandboxes/sb1/logs"

Test(client_metrics, the_log_and_what_is_asked_of_it)
{
	static const fake_answer answers[] = {
		{ .method = "GET",
		  .path = LOGS,
		  .status = 200,
		  .times = 2,
		  .body = "{\"logs\":[{\"timestamp\":\"2026-12-01T10:00:00.5Z\","
			  "\"message\":\"started\",\"level\":\"warn\",\"fields\":{\"a\":"
			  "\"b\"}},{\"timestamp\":\"2026-12-01T10:00:01Z\",\"message\":"
			  "\"on\",\"level\":\"new\"}]}" },
		{ .path = LOGS, .status = 200, .times = 1, .body = "{\"logs\":[{}]}" },
		{ .path = LOGS,
		  .status = 404,
		  .body = "{\"code\":404,\"message\":\"no such sandbox\"}" },
		{ 0 },
	};
	abx_logs_options o = ABX_LOGS_OPTIONS_INIT;
	const abx_log_entry *entry;
	abx_logs *logs = NULL;
	char search[258];
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_get_logs(f.sandbox, NULL, &logs, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_seen(&f, 0, "?direction=forward&limit=1000\n");
	cr_assert(abx_logs_count(logs) == 2);
	entry = abx_logs_at(logs, 0);
	cr_expect(entry->timestamp_ms == INT64_C(1796119200500));
	cr_expect(entry->level == ABX_LOG_WARN);
	cr_expect_str_eq(entry->message, "started");
	cr_expect_str_eq(entry->fields[0], "a=b");
	cr_expect(abx_logs_at(logs, 1)->level == ABX_LOG_INFO);
	cr_expect(abx_logs_at(logs, 1)->fields[0] == NULL);
	cr_expect(abx_logs_at(logs, 2) == NULL);
	abx_logs_free(logs);
	o.cursor_ms = 77;
	o.limit_count = 5;
	o.newest_first = 1;
	o.level = ABX_LOG_ERROR;
	o.search = "a b";
	cr_assert(abx_sandbox_get_logs(f.sandbox, &o, &logs, &f.err) == ABX_OK);
	abx_logs_free(logs);
	expect_seen(&f, 1,
		    "?direction=backward&limit=5&cursor=77&level=error&search=a%20b\n");
	expect_error(&f, abx_sandbox_get_logs(f.sandbox, NULL, &logs, &f.err), ABX_EPROTO,
		     "not a log");
	expect_error(&f, abx_sandbox_get_logs(f.sandbox, NULL, &logs, &f.err),
		     ABX_ENOTFOUND, "read the log of sandbox sb1");
	memset(search, 'x', sizeof(search) - 1);
	search[sizeof(search) - 1] = '\0';
	o.search = search;
	expect_error(&f, abx_sandbox_get_logs(f.sandbox, &o, &logs, &f.err), ABX_EINVAL,
		     "search");
	o.search = NULL;
	o.limit_count = 1001;
	expect_error(&f, abx_sandbox_get_logs(f.sandbox, &o, &logs, &f.err), ABX_EINVAL,
		     "limit_count 1001");
	o.limit_count = 0;
	o.level = 4;
	expect_error(&f, abx_sandbox_get_logs(f.sandbox, &o, &logs, &f.err), ABX_EINVAL,
		     "level 4");
	o.level = 0;
	o.cursor_ms = -1;
	expect_error(&f, abx_sandbox_get_logs(f.sandbox, &o, &logs, &f.err), ABX_EINVAL,
		     "cursor_ms");
	expect_error(&f, abx_sandbox_get_logs(NULL, NULL, &logs, &f.err), ABX_EINVAL,
		     "NULL");
	fixture_down(&f);
}

/*
 * test-faults.c - every call of a kind survives every failed allocation: ABX_ENOMEM each
 * time until it succeeds, and it works again afterwards.
 */
#include "base/alloc.h"
#include "fixture.h"

TestSuite(client_faults, .timeout = 120);

#define SANDBOX                                                              \
	"{\"sandboxID\":\"sb1\",\"templateID\":\"base\",\"domain\":\"d.e\"," \
	"\"envdAccessToken\":\"t\",\"trafficAccessToken\":\"u\"}"
#define CONTROL "/e2b/sandboxes/sb1"

static const char *const output[] = {
	"{\"event\":{\"start\":{\"pid\":9}}}",
	"{\"event\":{\"data\":{\"pty\":\"aGkNCg==\"}}}",
	"{\"event\":{\"end\":{\"exitCode\":1,\"error\":\"exit status 1\"}}}",
	"!{}",
	NULL,
};
static const char *const events[] = {
	"{\"start\":{}}",
	"{\"filesystem\":{\"name\":\"a\",\"type\":\"EVENT_TYPE_CREATE\",\"entry\":{"
	"\"name\":\"a\",\"path\":\"/d/a\",\"metadata\":{\"k\":\"v\"}}}}",
	"!{\"error\":{\"code\":\"data_loss\",\"message\":\"lost\"}}",
	NULL,
};

static fake_answer answers[] = {
	{ .path = "/process.Process/Start", .status = 200, .type = STREAM },
	{ .path = "/filesystem.Filesystem/WatchDir", .status = 200, .type = STREAM },
	{ .method = "POST", .path = "/files", .status = 200, .body = "[]" },
	{ .method = "GET", .path = "/files", .status = 206, .body = "abc" },
	{ .path = "/files/compose", .status = 200, .body = "{}" },
	{ .path = "/e2b/v2/sandboxes/sb1/connect", .status = 201, .body = SANDBOX },
	{ .path = CONTROL "/pause", .status = 204 },
	{ .path = CONTROL "/snapshots",
	  .status = 201,
	  .body = "{\"snapshotID\":\"a:1\",\"names\":[\"a\"]}" },
	{ .path = "/e2b/snapshots",
	  .status = 200,
	  .body = "[{\"snapshotID\":\"a:1\",\"names\":[\"a\"]}]" },
	{ .path = CONTROL "/fork",
	  .status = 201,
	  .body = "[{\"sandbox\":" SANDBOX
		  "},{\"error\":{\"code\":429,\"message\":\"full\"}}]" },
	{ .path = CONTROL "/metrics", .status = 200, .body = "[{\"timestampUnix\":1}]" },
	{ .path = "/e2b/v2/sandboxes/sb1/logs",
	  .status = 200,
	  .body = "{\"logs\":[{\"timestamp\":\"2026-12-01T10:00:00Z\",\"message\":\"m\","
		  "\"fields\":{\"a\":\"b\"}}]}" },
	{ .path = "/contexts", .status = 200, .body = "{\"id\":\"c\"}" },
	{ .path = "/execute",
	  .status = 200,
	  .body = "{\"type\":\"stdout\",\"text\":\"o\"}\n{\"type\":\"result\","
		  "\"is_main_result\":true,\"text\":\"t\",\"json\":[1]}\n{\"type\":"
		  "\"error\",\"name\":\"n\",\"value\":\"v\"}\n"
		  "{\"type\":\"end_of_execution\"}\n" },
	{ 0 },
};

static int use_pty(fixture *f)
{
	const char *const env_vars[] = { "A=1", NULL };
	abx_pty_options o = ABX_PTY_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_process *pty = NULL;
	int r;

	o.env_vars = env_vars;
	o.cwd = "/";
	r = abx_pty_start(f->sandbox, &o, &pty, &f->err);
	if (r >= 0)
		r = abx_process_wait(pty, &result, &f->err);
	abx_command_result_free(result);
	abx_process_free(pty);
	return r;
}

static int on_event(void *userdata, const abx_watch_event *event)
{
	(void)event;
	*(int *)userdata += 1;
	return ABX_OK;
}

static int use_watch(fixture *f)
{
	abx_watch_options o = ABX_WATCH_OPTIONS_INIT;
	abx_watch *watch = NULL;
	int count = 0, r;

	o.on_event = on_event;
	o.userdata = &count;
	r = abx_watch_start(f->sandbox, "/d", &o, &watch, &f->err);
	if (r >= 0)
		r = abx_watch_wait(watch, &f->err);
	abx_watch_free(watch);
	if (r != ABX_EIO)
		return r;
	cr_expect(count == 1);
	return ABX_OK; /* the end that is in the script */
}

static int use_files(fixture *f)
{
	const char *const sources[] = { "/a", "/b", NULL };
	const char *const metadata[] = { "k=v", NULL };
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	char *data = NULL, *url = NULL;
	int r;

	o.metadata = metadata;
	o.gzip = 1;
	r = abx_file_write(f->sandbox, "/f", "abc", 3, &o, &f->err);
	o.metadata = NULL;
	o.length_bytes = 3;
	if (r >= 0)
		r = abx_file_read(f->sandbox, "/f", &o, &data, NULL, &f->err);
	abx_free(data);
	if (r >= 0)
		r = abx_file_compose(f->sandbox, sources, "/d", NULL, &f->err);
	if (r >= 0)
		r = abx_file_get_download_url(f->sandbox, "/f", NULL, &url, &f->err);
	abx_free(url);
	return r;
}

static int use_pause(fixture *f)
{
	int r = abx_sandbox_pause(f->sandbox, NULL, &f->err);

	return r < 0 ? r : abx_sandbox_resume(f->sandbox, NULL, &f->err);
}

static int use_snapshots(fixture *f)
{
	abx_snapshot_list_options o = ABX_SNAPSHOT_LIST_OPTIONS_INIT;
	const abx_snapshot_info *one = NULL;
	abx_snapshot_info *info = NULL;
	abx_snapshot_iter *iter = NULL;
	int r = abx_snapshot_create(f->sandbox, NULL, &info, &f->err);

	o.name = "a";
	if (r >= 0)
		r = abx_snapshot_list(f->client, &o, &iter, &f->err);
	if (r >= 0)
		r = abx_snapshot_iter_next(iter, &one, &f->err);
	abx_snapshot_info_free(info);
	abx_snapshot_iter_free(iter);
	return r;
}

static int use_forks(fixture *f)
{
	abx_forks *forks = NULL;
	int r = abx_sandbox_fork(f->sandbox, NULL, &forks, &f->err);

	if (r >= 0)
		cr_expect(abx_forks_count(forks) == 2);
	abx_forks_free(forks);
	return r;
}

static int use_metrics(fixture *f)
{
	abx_metrics *metrics = NULL;
	abx_logs_options o = ABX_LOGS_OPTIONS_INIT;
	abx_logs *logs = NULL;
	int r = abx_sandbox_get_metrics(f->sandbox, NULL, &metrics, &f->err);

	o.search = "m";
	if (r >= 0)
		r = abx_sandbox_get_logs(f->sandbox, &o, &logs, &f->err);
	abx_metrics_free(metrics);
	abx_logs_free(logs);
	return r;
}

static int use_code(fixture *f)
{
	const char *const env_vars[] = { "A=1", NULL };
	abx_code_options o = ABX_CODE_OPTIONS_INIT;
	abx_code_execution *execution = NULL;
	char *id = NULL;
	int r = abx_code_context_create(f->sandbox, "python", "/", &id, &f->err);

	o.context_id = id;
	o.env_vars = env_vars;
	if (r >= 0)
		r = abx_code_run(f->sandbox, "x", &o, &execution, &f->err);
	if (r >= 0)
		cr_expect(execution->result_count == 1 && execution->error_name);
	abx_code_execution_free(execution);
	abx_free(id);
	return r;
}

static void survive(int (*use)(fixture *f))
{
	char *streams[2];
	int r = ABX_ENOMEM;
	fixture f;

	answers[0].body = streams[0] = frames(output, &answers[0].len);
	answers[1].body = streams[1] = frames(events, &answers[1].len);
	fixture_up(&f, answers);
	for (unsigned n = 0; r < 0; n++) {
		abx__test_fail_alloc_after(n);
		r = use(&f);
		abx__test_alloc_reset();
		cr_assert(r >= 0 || r == ABX_ENOMEM, "allocation %u gave %d: %s", n, r,
			  abx_error_message(f.err));
		abx_error_free(f.err);
		f.err = NULL;
		cr_assert(n < 1000);
	}
	cr_expect(use(&f) >= 0, "it works again afterwards: %s",
		  abx_error_message(f.err));
	fixture_down(&f);
	abx_free(streams[0]);
	abx_free(streams[1]);
}

Test(client_faults, terminals)
{
	survive(use_pty);
}

Test(client_faults, watches)
{
	survive(use_watch);
}

Test(client_faults, cells)
{
	survive(use_code);
}

Test(client_faults, files)
{
	survive(use_files);
}

Test(client_faults, pause_and_resume)
{
	survive(use_pause);
}

Test(client_faults, snapshots)
{
	survive(use_snapshots);
}

Test(client_faults, forks)
{
	survive(use_forks);
}

Test(client_faults, metrics_and_logs)
{
	survive(use_metrics);
}

/*
 * live-client.c - every promise of the public headers against a running platform, found
 * as any program finds it.
 *
 * Needs an address in the environment (AGENTBOX_SOCKET, AGENTBOX_CLUSTER_API or
 * E2B_API_URL); without one it skips aloud (77). AGENTBOX_TEST_ENV names the env, "base"
 * by default. TAP on stdout.
 */
#include <agentbox/agentbox.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static abx_client *client;
static abx_sandbox *sandbox;
static abx_error *err;
static unsigned step_count, failed_count;

static void ok(bool good, const char *what)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++step_count, what);
	if (!good) {
		failed_count++;
		printf("# error: %s %s\n", abx_error_name(abx_error_code(err)),
		       abx_error_message(err));
	}
	abx_error_free(err);
	err = NULL;
	fflush(stdout);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- sandboxes ---- */

static bool is_listed(const char *id)
{
	const char *const metadata[] = { "who=live-client", NULL };
	abx_sandbox_list_options o = ABX_SANDBOX_LIST_OPTIONS_INIT;
	const abx_sandbox_info *info = NULL;
	abx_sandbox_iter *iter = NULL;
	bool found = false;
	int r = 1;

	o.metadata = metadata;
	o.page_count = 1;
	if (abx_sandbox_list(client, &o, &iter, &err) < 0)
		return false;
	while (r == 1 && (r = abx_sandbox_iter_next(iter, &info, &err)) == 1)
		found |= strcmp(info->id, id) == 0;
	abx_sandbox_iter_free(iter);
	return r == 0 && found;
}

static bool create(void)
{
	const char *const env_vars[] = { "GREETING=hello", "TWO=a=b", NULL };
	const char *const metadata[] = { "who=live-client", NULL };
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
	double start = now_ms();

	o.template_id = getenv("AGENTBOX_TEST_ENV");
	o.env_vars = env_vars;
	o.metadata = metadata;
	o.timeout_ms = 300000;
	if (abx_sandbox_create(client, &o, &sandbox, &err) < 0)
		return false;
	printf("# created %s in %.2f ms\n", abx_sandbox_id(sandbox), now_ms() - start);
	return true;
}

static void test_sandbox(void)
{
	abx_sandbox_info *info = NULL;
	abx_sandbox *again = NULL;

	ok(abx_sandbox_is_running(sandbox, &err) == 1, "is_running");
	ok(abx_sandbox_get_info(sandbox, &info, &err) == ABX_OK &&
		   info->state == ABX_SANDBOX_RUNNING &&
		   strcmp(info->id, abx_sandbox_id(sandbox)) == 0 &&
		   info->end_at_ms > info->started_at_ms && info->metadata[0] &&
		   strcmp(info->metadata[0], "who=live-client") == 0,
	   "get_info");
	abx_sandbox_info_free(info);
	ok(is_listed(abx_sandbox_id(sandbox)), "list by metadata, page by page");
	ok(abx_sandbox_set_timeout(sandbox, 200000, &err) == ABX_OK, "set_timeout");
	ok(abx_sandbox_set_timeout(sandbox, 0, &err) == ABX_EINVAL,
	   "timeout 0 is refused");
	ok(abx_sandbox_connect(client, abx_sandbox_id(sandbox), NULL, &again, &err) ==
			   ABX_OK &&
		   abx_sandbox_is_running(again, &err) == 1,
	   "connect");
	abx_sandbox_free(again);
	again = NULL;
	ok(abx_sandbox_connect(client, "nosuchsandbox0000000", NULL, &again, &err) ==
		   ABX_ENOTFOUND,
	   "connect to nothing is ABX_ENOTFOUND");
}

static void test_refusals(void)
{
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
	abx_sandbox *none = NULL;
	int r;

	o.template_id = "no-such-env";
	r = abx_sandbox_create(client, &o, &none, &err);
	ok((r == ABX_EINVAL || r == ABX_ENOTFOUND) &&
		   strstr(abx_error_message(err), "no-such-env"),
	   "an unknown env is refused by name");
}

static void test_pause(void)
{
	abx_sandbox_info *info = NULL;

	ok(abx_sandbox_pause(sandbox, NULL, &err) == 1, "pause gives 1");
	ok(abx_sandbox_pause(sandbox, NULL, &err) == 0, "paused twice gives 0");
	ok(abx_sandbox_get_info(sandbox, &info, &err) == ABX_OK &&
		   info->state == ABX_SANDBOX_PAUSED,
	   "it is paused");
	abx_sandbox_info_free(info);
	ok(abx_sandbox_resume(sandbox, NULL, &err) == 1, "resume gives 1");
	ok(abx_sandbox_resume(sandbox, NULL, &err) == 0, "resumed twice gives 0");
	ok(abx_sandbox_is_running(sandbox, &err) == 1, "it runs");
}

static void test_watching_it(void)
{
	abx_metrics *metrics = NULL;
	abx_logs *logs = NULL;
	int r = abx_sandbox_get_metrics(sandbox, NULL, &metrics, &err);

	ok(r == ABX_EUNSUPPORTED ||
		   (r == ABX_OK && (abx_metrics_count(metrics) == 0 ||
				    abx_metrics_at(metrics, 0)->memory_total_bytes > 0)),
	   "metrics");
	abx_metrics_free(metrics);
	r = abx_sandbox_get_logs(sandbox, NULL, &logs, &err);
	ok(r == ABX_OK && abx_logs_count(logs) > 0 &&
		   abx_logs_at(logs, 0)->timestamp_ms > 0,
	   "its log");
	abx_logs_free(logs);
}

static bool has_file(abx_sandbox *other, const char *path)
{
	return abx_file_exists(other, path, NULL, &err) == 1;
}

static bool is_snapshot_listed(const char *id)
{
	abx_snapshot_list_options o = ABX_SNAPSHOT_LIST_OPTIONS_INIT;
	const abx_snapshot_info *info = NULL;
	abx_snapshot_iter *iter = NULL;
	bool found = false;

	o.page_count = 1;
	if (abx_snapshot_list(client, &o, &iter, &err) < 0)
		return false;
	while (abx_snapshot_iter_next(iter, &info, &err) == 1)
		found |= strcmp(info->id, id) == 0;
	abx_snapshot_iter_free(iter);
	return found;
}

static void test_snapshots(void)
{
	abx_snapshot_options so = ABX_SNAPSHOT_OPTIONS_INIT;
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
	abx_snapshot_info *snapshot = NULL;
	abx_sandbox *other = NULL;

	abx_file_write(sandbox, "/home/user/kept", "x", 1, NULL, &err);
	so.name = "live-client";
	int r = abx_snapshot_create(sandbox, &so, &snapshot, &err);
	if (r == ABX_EUNSUPPORTED) {
		printf("ok %u - snapshots # SKIP %s\n", ++step_count,
		       abx_error_message(err));
		return;
	}
	ok(r == ABX_OK, "snapshot");
	if (!snapshot)
		return;
	printf("# %s\n", snapshot->id);
	ok(is_snapshot_listed(snapshot->id), "it is listed");
	o.template_id = snapshot->id;
	ok(abx_sandbox_create(client, &o, &other, &err) == ABX_OK &&
		   has_file(other, "/home/user/kept"),
	   "a sandbox of it has its files");
	if (other)
		abx_sandbox_kill(other, NULL);
	abx_sandbox_free(other);
	ok(abx_snapshot_delete(client, snapshot->id, &err) == 1, "delete gives 1");
	ok(abx_snapshot_delete(client, snapshot->id, &err) == 0, "deleted twice gives 0");
	abx_snapshot_info_free(snapshot);
}

static void test_fork(void)
{
	abx_fork_options o = ABX_FORK_OPTIONS_INIT;
	abx_forks *forks = NULL;
	bool all = true;

	o.count = 2;
	int r = abx_sandbox_fork(sandbox, &o, &forks, &err);
	if (r == ABX_EUNSUPPORTED) {
		printf("ok %u - forks # SKIP %s\n", ++step_count, abx_error_message(err));
		return;
	}
	ok(r == 2 && abx_forks_count(forks) == 2, "two forks");
	for (size_t i = 0; forks && i < abx_forks_count(forks); i++) {
		abx_sandbox *one = abx_forks_at(forks, i)->sandbox;

		all &= one && has_file(one, "/home/user/kept");
		if (one)
			abx_sandbox_kill(one, NULL);
	}
	ok(r > 0 && all, "each has its files");
	abx_forks_free(forks);
}

/* ---- commands ---- */

static bool runs(const char *cmd, const abx_command_options *o, int exit_code,
		 const char *out, const char *errout)
{
	abx_command_result *result = NULL;
	bool good;

	if (abx_command_run(sandbox, cmd, o, &result, &err) < 0)
		return false;
	good = result->exit_code == exit_code && strcmp(result->out, out) == 0 &&
	       (!errout || strcmp(result->err, errout) == 0);
	if (!good)
		printf("# exit code %d, stdout '%s', stderr '%s'\n", result->exit_code,
		       result->out, result->err);
	abx_command_result_free(result);
	return good;
}

struct gathered {
	char text[64];
	size_t total;
};

static int gather(void *userdata, const char *data, size_t len)
{
	struct gathered *g = userdata;
	size_t used = strlen(g->text);

	if (used + len < sizeof(g->text))
		memcpy(g->text + used, data, len);
	g->total += len;
	return ABX_OK;
}

static void test_commands(void)
{
	const char *const argv[] = { "echo", "a b", "$HOME", NULL };
	const char *const env_vars[] = { "GREETING=moin", NULL };
	abx_command_options o = ABX_COMMAND_OPTIONS_INIT;
	struct gathered g = { "", 0 };
	int r;

	ok(runs("echo out; echo err >&2; exit 3", NULL, 3, "out\n", "err\n"),
	   "run: streams and exit code");
	ok(runs("echo $GREETING $TWO", NULL, 0, "hello a=b\n", NULL),
	   "variables of the sandbox");
	o.env_vars = env_vars;
	o.cwd = "/tmp";
	ok(runs("echo $GREETING; pwd", &o, 0, "moin\n/tmp\n", NULL),
	   "variables and cwd of the command");
	o.env_vars = NULL;
	o.cwd = NULL;
	o.argv = argv;
	ok(runs(NULL, &o, 0, "a b $HOME\n", NULL), "an argument vector has no shell");
	o.argv = NULL;
	o.user = "root";
	ok(runs("id -u", &o, 0, "0\n", NULL), "as root");
	o.user = "nobody-knows";
	ok(abx_command_run(sandbox, "true", &o, NULL, &err) == ABX_EINVAL,
	   "an unknown user is ABX_EINVAL");
	o.user = NULL;
	o.cwd = "/no/such/dir";
	ok(abx_command_run(sandbox, "true", &o, NULL, &err) == ABX_EINVAL,
	   "an unknown cwd is ABX_EINVAL");
	o.cwd = NULL;
	o.timeout_ms = 500;
	r = abx_command_run(sandbox, "sleep 30", &o, NULL, &err);
	ok(r == ABX_ETIMEDOUT, "a command out of its time is ABX_ETIMEDOUT");
	o.timeout_ms = 0;
	o.on_stdout = gather;
	o.userdata = &g;
	ok(abx_command_run(sandbox, "head -c 5000000 /dev/zero", &o, NULL, &err) ==
			   ABX_OK &&
		   g.total == 5000000,
	   "5 MB of output arrive in callbacks");
	ok(runs("true", NULL, 0, "", ""), "and the next one runs");
}

static void test_background(void)
{
	abx_command_options o = ABX_COMMAND_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_process_list *list = NULL;
	abx_process *process = NULL, *other = NULL;
	struct gathered g = { "", 0 };
	bool found = false;
	uint32_t pid;

	o.stdin_open = 1;
	o.tag = "cat";
	o.on_stdout = gather;
	o.userdata = &g;
	ok(abx_command_start(sandbox, "cat; exit 5", &o, &process, &err) == ABX_OK,
	   "start with stdin");
	if (!process)
		return;
	pid = abx_process_pid(process);
	ok(abx_command_list(sandbox, &list, &err) == ABX_OK, "list processes");
	for (size_t i = 0; list && i < abx_process_list_count(list); i++)
		found |= abx_process_list_at(list, i)->pid == pid;
	abx_process_list_free(list);
	ok(found, "the process is listed");
	ok(abx_command_connect(sandbox, pid, NULL, &other, &err) == ABX_OK,
	   "connect by pid");
	ok(abx_command_send_stdin(sandbox, pid, "ping\n", 5, &err) == ABX_OK,
	   "send stdin");
	ok(abx_command_close_stdin(sandbox, pid, &err) == ABX_OK, "close stdin");
	ok(abx_process_wait(process, &result, &err) == ABX_OK && result->exit_code == 5 &&
		   strcmp(g.text, "ping\n") == 0,
	   "wait: what went in came out");
	abx_command_result_free(result);
	result = NULL;
	ok(other && abx_process_wait(other, &result, &err) == ABX_OK &&
		   result->exit_code == 5 && strcmp(result->out, "ping\n") == 0,
	   "the second listener got the same");
	abx_command_result_free(result);
	abx_process_free(other);
	abx_process_free(process);
	process = NULL;
	ok(abx_command_start(sandbox, "sleep 60", NULL, &process, &err) == ABX_OK,
	   "start sleep");
	ok(process && abx_command_kill(sandbox, abx_process_pid(process), &err) == 1,
	   "kill");
	result = NULL;
	ok(process && abx_process_wait(process, &result, &err) == ABX_OK &&
		   result->exit_code == -1,
	   "it died");
	abx_command_result_free(result);
	abx_process_free(process);
	ok(abx_command_kill(sandbox, 999999, &err) == 0, "killing nothing gives 0");
}

/* ---- terminals and watched directories ---- */

static void test_pty(void)
{
	abx_pty_options o = ABX_PTY_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_process *pty = NULL, *other = NULL;
	uint32_t pid;

	o.cols = 111;
	o.rows = 22;
	ok(abx_pty_start(sandbox, &o, &pty, &err) == ABX_OK, "a terminal");
	if (!pty)
		return;
	pid = abx_process_pid(pty);
	ok(abx_pty_connect(sandbox, pid, NULL, &other, &err) == ABX_OK,
	   "a second one listens");
	ok(abx_pty_send_input(sandbox, pid, "stty size; stty -echo\n", 22, &err) ==
		   ABX_OK,
	   "input");
	ok(abx_pty_resize(sandbox, pid, 133, 44, &err) == ABX_OK, "resize");
	ok(abx_pty_send_input(sandbox, pid, "stty size; exit 6\n", 18, &err) == ABX_OK,
	   "more input");
	ok(abx_process_wait(pty, &result, &err) == ABX_OK && result->exit_code == 6 &&
		   strstr(result->out, "44 133"),
	   "its new size, its exit code");
	abx_command_result_free(result);
	abx_process_free(pty);
	result = NULL;
	ok(abx_process_wait(other, &result, &err) == ABX_OK && result->exit_code == 6,
	   "the second listener got the end");
	abx_command_result_free(result);
	abx_process_free(other);
	ok(abx_pty_resize(sandbox, pid, 1, 1, &err) == ABX_ENOTFOUND,
	   "resizing nothing is ABX_ENOTFOUND");
	ok(abx_command_start(sandbox, "sleep 60", NULL, &pty, &err) == ABX_OK, "sleep");
	pid = abx_process_pid(pty);
	ok(abx_pty_resize(sandbox, pid, 1, 1, &err) == ABX_ESTATE,
	   "a process without a terminal has no size");
	ok(abx_pty_send_input(sandbox, pid, "x", 1, &err) == ABX_ESTATE,
	   "and nothing can be typed into it");
	abx_command_kill(sandbox, pid, NULL);
	abx_process_free(pty);
}

static int on_event(void *userdata, const abx_watch_event *event)
{
	bool *seen = userdata;

	*seen |= event->type == ABX_WATCH_CREATE && event->entry &&
		 strcmp(event->name, "sub/new") == 0;
	return ABX_OK;
}

static void test_watch(void)
{
	abx_watch_options o = ABX_WATCH_OPTIONS_INIT;
	abx_watch *watch = NULL;
	bool seen = false;

	o.on_event = on_event;
	o.userdata = &seen;
	o.recursive = 1;
	o.include_entry = 1;
	ok(abx_watch_start(sandbox, "/tmp/nothing", &o, &watch, &err) == ABX_ENOTFOUND,
	   "watching nothing is ABX_ENOTFOUND");
	ok(abx_file_make_dir(sandbox, "/tmp/seen/sub", NULL, &err) == 1 &&
		   abx_watch_start(sandbox, "/tmp/seen", &o, &watch, &err) == ABX_OK,
	   "watch");
	abx_file_write(sandbox, "/tmp/seen/sub/new", "x", 1, NULL, &err);
	for (int i = 0; i < 200 && !seen; i++)
		abx_client_wait(client, 50, NULL);
	ok(seen, "a new file below it is told of");
	abx_watch_free(watch);
}

/* ---- files ---- */

struct flow {
	size_t left, done;
	bool broken;
};

static int produce(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	struct flow *flow = userdata;

	*ret_len = flow->left < size ? flow->left : size;
	for (size_t i = 0; i < *ret_len; i++)
		buf[i] = (char)((flow->done + i) % 251);
	flow->left -= *ret_len;
	flow->done += *ret_len;
	return ABX_OK;
}

static int consume(void *userdata, const char *data, size_t len)
{
	struct flow *flow = userdata;

	for (size_t i = 0; i < len; i++)
		flow->broken |= data[i] != (char)((flow->done + i) % 251);
	flow->done += len;
	return ABX_OK;
}

#define BIG ((size_t)50 << 20)

static void test_streams(void)
{
	struct flow flow = { .left = BIG };
	double start = now_ms();

	ok(abx_file_write_stream(sandbox, "/tmp/big", NULL, produce, &flow, &err) ==
		   ABX_OK,
	   "write 50 MiB");
	printf("# %.0f MB/s in\n", (double)BIG / 1e3 / (now_ms() - start));
	flow = (struct flow){ 0 };
	start = now_ms();
	ok(abx_file_read_stream(sandbox, "/tmp/big", NULL, consume, &flow, &err) ==
			   ABX_OK &&
		   flow.done == BIG && !flow.broken,
	   "read it back, byte for byte");
	printf("# %.0f MB/s out\n", (double)BIG / 1e3 / (now_ms() - start));
}

static void test_packed(void)
{
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	struct flow flow = { .left = BIG };

	o.gzip = 1;
	ok(abx_file_write_stream(sandbox, "/tmp/packed", &o, produce, &flow, &err) ==
		   ABX_OK,
	   "write 50 MiB packed");
	flow = (struct flow){ 0 };
	ok(abx_file_read_stream(sandbox, "/tmp/packed", &o, consume, &flow, &err) ==
			   ABX_OK &&
		   flow.done == BIG && !flow.broken,
	   "read it back packed, byte for byte");
}

static void test_file_extras(void)
{
	const char *const metadata[] = { "kind=plot", "note=", NULL };
	const char *const parts[] = { "/tmp/part1", "/tmp/part2", NULL };
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	abx_file_info *info = NULL;
	char *data = NULL, *url = NULL;
	size_t len = 0;

	o.metadata = metadata;
	ok(abx_file_write(sandbox, "/tmp/part1", "0123456789", 10, &o, &err) == ABX_OK &&
		   abx_file_stat(sandbox, "/tmp/part1", NULL, &info, &err) == ABX_OK &&
		   info->metadata[0] && strcmp(info->metadata[0], "kind=plot") == 0,
	   "metadata is kept with a file");
	abx_file_info_free(info);
	o.metadata = NULL;
	o.offset_bytes = 4;
	o.length_bytes = 3;
	ok(abx_file_read(sandbox, "/tmp/part1", &o, &data, &len, &err) == ABX_OK &&
		   len == 3 && strcmp(data, "456") == 0,
	   "a part of a file");
	abx_free(data);
	o.offset_bytes = 10;
	ok(abx_file_read(sandbox, "/tmp/part1", &o, &data, &len, &err) == ABX_OK &&
		   len == 0,
	   "behind its end there is nothing");
	abx_free(data);
	ok(abx_file_write(sandbox, "/tmp/part2", "ab", 2, NULL, &err) == ABX_OK &&
		   abx_file_compose(sandbox, parts, "/tmp/whole", NULL, &err) == ABX_OK &&
		   abx_file_read(sandbox, "/tmp/whole", NULL, &data, &len, &err) ==
			   ABX_OK &&
		   strcmp(data, "0123456789ab") == 0 &&
		   abx_file_exists(sandbox, "/tmp/part1", NULL, &err) == 0,
	   "compose");
	abx_free(data);
	int r = abx_file_get_download_url(sandbox, "/tmp/whole", NULL, &url, &err);
	ok(r == ABX_EUNSUPPORTED || (r == ABX_OK && strstr(url, "signature=v1_")),
	   "a signed URL, or the reason why there is none");
	abx_free(url);
}

static void test_files(void)
{
	abx_file_info *info = NULL;
	abx_file_list *list = NULL;
	char *data = NULL;
	size_t len = 0;

	ok(abx_file_write(sandbox, "/tmp/d/e/f", "a\0b\n", 4, NULL, &err) == ABX_OK,
	   "write makes directories");
	ok(abx_file_read(sandbox, "/tmp/d/e/f", NULL, &data, &len, &err) == ABX_OK &&
		   len == 4 && memcmp(data, "a\0b\n", 5) == 0,
	   "read gives the bytes");
	abx_free(data);
	ok(abx_file_stat(sandbox, "/tmp/d/e/f", NULL, &info, &err) == ABX_OK &&
		   info->length_bytes == 4 && info->type == ABX_FILE_REGULAR &&
		   info->modified_at_ms > 0,
	   "stat");
	abx_file_info_free(info);
	ok(abx_file_list_dir(sandbox, "/tmp/d/e", NULL, &list, &err) == ABX_OK &&
		   abx_file_list_count(list) == 1 &&
		   strcmp(abx_file_list_at(list, 0)->name, "f") == 0,
	   "list");
	abx_file_list_free(list);
	ok(abx_file_exists(sandbox, "/tmp/d/e/f", NULL, &err) == 1, "exists: 1");
	ok(abx_file_exists(sandbox, "/tmp/nothing", NULL, &err) == 0, "exists: 0");
	ok(abx_file_make_dir(sandbox, "/tmp/new/deep", NULL, &err) == 1,
	   "make_dir: made");
	ok(abx_file_make_dir(sandbox, "/tmp/new/deep", NULL, &err) == 0,
	   "make_dir: there");
	ok(abx_file_move(sandbox, "/tmp/d/e/f", "/tmp/new/g", NULL, NULL, &err) ==
			   ABX_OK &&
		   abx_file_exists(sandbox, "/tmp/new/g", NULL, &err) == 1,
	   "move");
	ok(abx_file_remove(sandbox, "/tmp/new", NULL, &err) == ABX_OK &&
		   abx_file_exists(sandbox, "/tmp/new", NULL, &err) == 0,
	   "remove a tree");
	ok(abx_file_remove(sandbox, "/tmp/new", NULL, &err) == ABX_OK, "remove nothing");
	data = NULL;
	ok(abx_file_read(sandbox, "/tmp/nothing", NULL, &data, &len, &err) ==
			   ABX_ENOTFOUND &&
		   strstr(abx_error_message(err), "/tmp/nothing"),
	   "a file that is not there is ABX_ENOTFOUND by name");
	ok(abx_file_read(sandbox, "/tmp", NULL, &data, &len, &err) == ABX_EINVAL,
	   "a directory is ABX_EINVAL");
	test_streams();
	test_packed();
	test_file_extras();
}

/* ---- the end ---- */

static void test_end(void)
{
	ok(abx_sandbox_kill(sandbox, &err) == 1, "kill gives 1");
	ok(abx_sandbox_kill(sandbox, &err) == 0, "killed twice gives 0");
	ok(abx_sandbox_is_running(sandbox, &err) == 0, "a dead one does not run");
	ok(abx_command_run(sandbox, "true", NULL, NULL, &err) == ABX_ENOTFOUND,
	   "a command in a dead one is ABX_ENOTFOUND");
}

static void test_platform(void)
{
	char *json = NULL;
	int r = abx_platform_get(client, "/envs", &json, &err);

	if (r == ABX_EUNSUPPORTED) {
		printf("ok %u - platform objects # SKIP an E2B address\n", ++step_count);
		return;
	}
	ok(r == ABX_OK && strstr(json, "\"items\""), "envs");
	abx_free(json);
	ok(abx_platform_get(client, "/envs/no-such-env", &json, &err) == ABX_ENOTFOUND,
	   "an env that is not there is ABX_ENOTFOUND");
}

int main(void)
{
	static const char *const names[] = { "AGENTBOX_SOCKET", "AGENTBOX_CLUSTER_API",
					     "AGENTBOX_API_URL", "E2B_API_URL" };
	bool configured = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		configured |= getenv(names[i]) != NULL;
	if (!configured) {
		puts("1..0 # SKIP no platform: set AGENTBOX_SOCKET, AGENTBOX_CLUSTER_API "
		     "or E2B_API_URL");
		return 77;
	}
	ok(abx_client_new(NULL, &client, &err) == ABX_OK, "a client");
	if (!client)
		return 1;
	printf("# %s\n", abx_client_address(client));
	test_platform();
	test_refusals();
	ok(create(), "create");
	if (sandbox) {
		test_sandbox();
		test_pause();
		test_watching_it();
		test_snapshots();
		test_fork();
		test_commands();
		test_background();
		test_pty();
		test_watch();
		test_files();
		test_end();
	}
	abx_sandbox_free(sandbox);
	abx_client_free(client);
	printf("1..%u\n", step_count);
	return failed_count != 0;
}

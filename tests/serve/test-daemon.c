/* The daemon itself: its addresses, its files, its end. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "daemon.h"

TestSuite(serve_daemon, .fini = daemon_teardown, .timeout = 120);

Test(serve_daemon, files_are_its_owners_alone)
{
	static const char *const names[] = { "keys.json", "server.key", "agentboxd.json",
					     "agentboxd.sock", "store.db" };
	struct stat st;
	char path[128];

	daemon_begin();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", d.dir, names[i]);
		cr_assert_eq(stat(path, &st), 0, "%s", path);
		cr_assert_eq(st.st_mode & 077, 0, "%s has mode %o", path,
			     st.st_mode & 07777);
	}
	daemon_end();
	snprintf(path, sizeof(path), "%s/agentboxd.sock", d.dir);
	cr_assert_neq(stat(path, &st), 0, "the socket goes with the daemon");
}

Test(serve_daemon, is_not_root_and_has_no_way_back)
{
	char path[64], text[4096] = "";
	unsigned long uid = 0;
	FILE *file;

	daemon_begin();
	snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
	file = fopen(path, "r");
	cr_assert(file);
	cr_assert_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	cr_assert_eq(sscanf(strstr(text, "Uid:"), "Uid:\t%lu", &uid), 1);
	cr_assert_neq(uid, 0, "it runs as root");
	cr_assert(strstr(text, "CapEff:\t0000000000000000"));
	cr_assert(strstr(text, "CapPrm:\t0000000000000000"));
	cr_assert(strstr(text, "CapInh:\t0000000000000000"));
	cr_assert(strstr(text, "CapAmb:\t0000000000000000"));
	cr_assert(strstr(text, "NoNewPrivs:\t1"));
}

Test(serve_daemon, takes_as_many_descriptors_as_it_may)
{
	char path[64], line[256];
	unsigned long soft = 0, hard = 0;
	struct rlimit low;
	FILE *file;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &low), 0);
	low.rlim_cur = 256;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	daemon_begin();
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)d.pid);
	file = fopen(path, "r");
	cr_assert(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "Max open files %lu %lu", &soft, &hard);
	fclose(file);
	cr_assert_gt(hard, 256);
	cr_assert_eq(soft, hard);
	daemon_end();
}

/* `--state-dir /etc` must not give /etc away. */
Test(serve_daemon, takes_no_folder_of_roots_that_holds_other_things)
{
	char out[2048], dir[] = "/tmp/serve-other-XXXXXX", path[64];
	const char *args[] = { "--engine", "fake", "--state-dir", dir,
			       "--listen", "none", NULL };
	struct stat st;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs root");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/passwd", dir);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	close(fd);
	cr_assert_eq(run_to_end(out, sizeof(out), args), 1);
	cr_assert(strstr(out, "holds other things"), "%s", out);
	cr_assert_eq(stat(dir, &st), 0);
	cr_assert_eq(st.st_uid, 0);
	unlink(path);
	rmdir(dir);
}

Test(serve_daemon, refuses_addresses_off_loopback)
{
	char out[2048];
	static const char *const args[] = { "--engine",    "fake",
					    "--state-dir", "/tmp/serve-none",
					    "--listen",    "0.0.0.0:0",
					    NULL };

	cr_assert_eq(run_to_end(out, sizeof(out), args), 1);
	cr_assert(strstr(out, "0.0.0.0 is not a loopback address"), "%s", out);
	cr_assert(strstr(out, "--allow-remote"), "%s", out);
	cr_assert_neq(access("/tmp/serve-none", F_OK), 0, "nothing was made");
}

Test(serve_daemon, names_wrong_options)
{
	char out[2048];
	static const char *const table[][4] = {
		{ "--listen", "8080", NULL, "\"8080\" is not IP:PORT" },
		{ "--listen", "127.0.0.1:99999", NULL, "is not IP:PORT" },
		{ "--engine", "docker", NULL, "neither local nor fake" },
		{ "--purge", NULL, NULL, "--purge goes with --stop" },
		{ "surplus", NULL, NULL, "\"surplus\" is not an option" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		cr_assert_eq(run_to_end(out, sizeof(out), table[i]), 1);
		cr_assert(strstr(out, table[i][3]), "%s", out);
	}
}

Test(serve_daemon, one_per_state_directory)
{
	char out[4096];
	const char *args[] = { "--engine", "fake", "--state-dir", d.dir,
			       "--listen", "none", NULL };

	daemon_begin();
	cr_assert_eq(run_to_end(out, sizeof(out), args), 1);
	cr_assert(strstr(out, "cannot start"), "%s", out);
	expect("GET", "/v2/sandboxes", NULL, 200, "[]");
}

Test(serve_daemon, keeps_its_sandboxes_over_a_restart_of_its_documents)
{
	answer a;

	daemon_begin();
	make_env("base", 1);
	daemon_again();
	a = ask("GET", "/v1/envs/base", NULL);
	cr_assert_eq(a.status, 200);
	answer_done(&a);
	wait_idle("base", 1);
}

/* ---- off loopback ---- */

/* The status a path gives on the second address, with the key or without. */
static int ask_second(const char *path, bool with_key)
{
	char first[64], key[128], *colon;
	const char *const headers[] = { key, NULL };
	answer a;

	snprintf(first, sizeof(first), "%s", d.url);
	snprintf(key, sizeof(key), "X-API-Key: %s", d.agbx);
	colon = strrchr(d.url, ':');
	snprintf(colon + 1, sizeof(d.url) - (size_t)(colon + 1 - d.url), "%s",
		 strrchr(d.second, ':') + 1);
	a = ask_with("GET", path, NULL, with_key ? headers : NULL);
	snprintf(d.url, sizeof(d.url), "%s", first);
	cr_assert_gt(a.status, 0);
	int status = a.status;
	answer_done(&a);
	return status;
}

Test(serve_daemon, off_loopback_everything_wants_a_key)
{
	answer a;

	daemon_start("--listen", "0.0.0.0:0", "--allow-remote", NULL);
	cr_assert_eq(ask_second("/v2/sandboxes", false), 401);
	cr_assert_eq(ask_second("/v2/sandboxes", true), 200);
	cr_assert_eq(ask_second("/sandboxes/abc/49983/health", false), 401);
	cr_assert_eq(ask_second("/sandboxes/abc/49983/health", true), 502);
	a = ask_with("GET", "/sandboxes/abc/49983/health", NULL, NULL);
	cr_assert_eq(a.status, 502, "on loopback the data plane needs none");
	answer_done(&a);
	a = ask_with("GET", "/v2/sandboxes", NULL, NULL);
	cr_assert_eq(a.status, 401, "on loopback the APIs do");
	answer_done(&a);
}

Test(serve_daemon, the_e2b_address_serves_nothing_else)
{
	answer a;

	daemon_start("--e2b-listen", "127.0.0.1:0", NULL);
	cr_assert_eq(ask_second("/v2/sandboxes", true), 200);
	cr_assert_eq(ask_second("/v1/envs", true), 404);
	cr_assert_eq(ask_second("/sandboxes/abc/49983/health", true), 502);
	a = ask("GET", "/v1/envs", NULL);
	cr_assert_eq(a.status, 200);
	answer_done(&a);
}

/* ---- the supervisor ---- */

static pid_t pid_in(const char *name)
{
	char path[128], text[32] = "";
	uint64_t pid = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", d.dir, name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	close(fd);
	text[strcspn(text, "\n")] = '\0';
	cr_assert_eq(abx__parse_u64(text, 1, INT32_MAX, &pid), 0);
	return (pid_t)pid;
}

static pid_t daemon_pid(void)
{
	char path[128], text[512] = "";
	const char *p;
	int fd;

	snprintf(path, sizeof(path), "%s/agentboxd.json", d.dir);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	close(fd);
	p = strstr(text, "\"pid\":");
	return p ? (pid_t)strtol(p + 6, NULL, 10) : 0;
}

static void nap(void)
{
	const struct timespec t = { .tv_nsec = 20000000 };

	nanosleep(&t, NULL);
}

static void supervise(void)
{
	static const char *args[] = { "--supervise", "--daemon",    "--engine",
				      "fake",        "--state-dir", d.dir,
				      "--listen",    "127.0.0.1:0", NULL };
	char out[2048];

	snprintf(d.dir, sizeof(d.dir), "/tmp/serve-test-XXXXXX");
	cr_assert(mkdtemp(d.dir));
	snprintf(d.socket, sizeof(d.socket), "%s/agentboxd.sock", d.dir);
	cr_assert_eq(run_to_end(out, sizeof(out), args), 0, "%s", out);
}

/* Gone, or dead and not fetched yet by whoever adopted it, which may take its time. */
static bool has_ended(pid_t pid)
{
	char path[64], text[256] = "";
	const char *state;
	FILE *file;

	if (kill(pid, 0) != 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return true;
	if (fread(text, 1, sizeof(text) - 1, file) == 0)
		text[0] = '\0';
	fclose(file);
	state = strrchr(text, ')');
	return !state || state[2] == 'Z';
}

Test(serve_daemon, supervisor_starts_again_what_died_and_stops_all)
{
	char out[2048];
	const char *stop[] = { "--stop", "--purge", "--state-dir", d.dir, NULL };
	pid_t supervisor, first, second = 0;
	answer a;

	supervise();
	a = ask_unix("GET", "/ping", NULL);
	cr_assert_eq(a.status, 200, "--daemon returns when requests are answered");
	answer_done(&a);
	supervisor = pid_in("supervise.pid");
	first = daemon_pid();
	cr_assert_gt(supervisor, 0);
	cr_assert_eq(kill(supervisor, 0), 0);
	kill(first, SIGKILL);
	for (int i = 0; i < 250 && (second = daemon_pid()) == first; i++)
		nap();
	cr_assert_neq(second, first, "it was not started again");
	a = ask_unix("GET", "/ping", NULL);
	cr_assert_eq(a.status, 200);
	answer_done(&a);
	cr_assert_eq(run_to_end(out, sizeof(out), stop), 0, "%s", out);
	cr_assert(has_ended(second), "agentboxd still runs");
	cr_assert(has_ended(supervisor), "the supervisor still runs");
	cr_assert_neq(access(d.dir, F_OK), 0, "the state directory is still there");
	cr_assert_eq(run_to_end(out, sizeof(out), stop), 0, "stopping twice is fine: %s",
		     out);
}

Test(serve_daemon, supervisor_gives_up_on_what_never_starts)
{
	const char *args[] = { "--supervise",    "--daemon", "--engine", "fake",
			       "--state-dir",    d.dir,      "--listen", "192.0.2.1:1",
			       "--allow-remote", NULL };
	char out[2048];
	struct stat st;

	snprintf(d.dir, sizeof(d.dir), "/tmp/serve-test-XXXXXX");
	cr_assert(mkdtemp(d.dir));
	cr_assert_eq(run_to_end(out, sizeof(out), args), 1);
	cr_assert(strstr(out, "did not start; its log is"), "%s", out);
	for (int i = 0; i < 100 && pid_in("supervise.pid"); i++)
		nap();
	snprintf(out, sizeof(out), "%s/agentboxd.log", d.dir);
	cr_assert_eq(stat(out, &st), 0);
}

Test(serve_daemon, stop_removes_nothing_that_is_not_its_own)
{
	char out[2048], file[128];
	const char *stop[] = { "--stop", "--purge", "--state-dir", d.dir, NULL };

	snprintf(d.dir, sizeof(d.dir), "/tmp/serve-test-XXXXXX");
	cr_assert(mkdtemp(d.dir));
	snprintf(file, sizeof(file), "%s/letter.txt", d.dir);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	cr_assert_eq(run_to_end(out, sizeof(out), stop), 1);
	cr_assert(strstr(out, "is not a state directory"), "%s", out);
	cr_assert_eq(access(file, F_OK), 0);
}

/* Whoever starts it twice is told, and the first goes on. */
Test(serve_daemon, a_second_one_on_its_state_directory_is_refused)
{
	char out[4096];
	const char *args[] = { "--state-dir", d.dir,  "--engine", "fake",
			       "--listen",    "none", "--socket", "/tmp/abx-second.sock",
			       NULL };

	daemon_begin();
	cr_assert_neq(run_to_end(out, sizeof(out), args), 0);
	cr_assert(strstr(out, "another"), "%s", out);
	cr_assert(strstr(out, d.dir), "%s", out);
	expect("GET", "/ping", NULL, 200, "ok");
	daemon_end();
}

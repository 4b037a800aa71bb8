/*
 * test-sqlite.c - the SQLite store: the port's suite, and what only this filling
 * promises: lock, reopening, durability across a kill, full disk, foreign files, memory
 * that runs out.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "store/sqlite.h"
#include "suite-store.h"

typedef struct fixture {
	const char *const *light_kinds;
	uv_loop_t loop;
	char dir[64];
	abx__store *store;
	bool closed;
} fixture;

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void fixture_dir(fixture *f)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/abx-store-XXXXXX");
	cr_assert(mkdtemp(f->dir));
	cr_assert_eq(uv_loop_init(&f->loop), 0);
}

static int try_open(fixture *f, uint64_t max_bytes, abx_error **reterr)
{
	abx__store_sqlite_options options = { .dir = f->dir,
					      .max_bytes = max_bytes,
					      .light_kinds = f->light_kinds };

	f->closed = false;
	return abx__store_sqlite_open(&f->loop, &options, &f->store, reterr);
}

static void open_store(fixture *f)
{
	abx_error *err = NULL;

	cr_assert_eq(try_open(f, 0, &err), ABX_OK, "%s", abx_error_message(err));
}

static void on_close(void *userdata)
{
	*(bool *)userdata = true;
}

static void close_store(fixture *f)
{
	f->store->ops->close(f->store, on_close, &f->closed);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	cr_assert(f->closed);
	f->store = NULL;
}

static void fixture_done(fixture *f)
{
	if (f->store)
		close_store(f);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles left in the loop");
	nftw(f->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void turn(void *userdata)
{
	fixture *f = userdata;

	uv_run(&f->loop, UV_RUN_ONCE);
}

#define PORT_TEST(name)                                                             \
	Test(store_sqlite_port, name)                                               \
	{                                                                           \
		fixture f;                                                          \
		fixture_dir(&f);                                                    \
		open_store(&f);                                                     \
		suite_store s = { .store = f.store, .turn = turn, .userdata = &f }; \
		suite_store_##name(&s);                                             \
		fixture_done(&f);                                                   \
	}
ABX__SUITE_STORE_CASES(PORT_TEST)

typedef struct answer {
	int calls;
	int r;
	uint64_t version;
	char message[256], hint[256];
} answer;

static void on_doc(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	answer *a = userdata;

	a->calls++;
	a->r = r;
	a->version = doc ? doc->version : 0;
	snprintf(a->message, sizeof(a->message), "%s", abx_error_message(err));
	snprintf(a->hint, sizeof(a->hint), "%s",
		 abx_error_hint(err) ? abx_error_hint(err) : "");
}

static answer create(fixture *f, const char *name, const char *body)
{
	answer a = { 0 };

	f->store->ops->create(f->store, "Pod", "team", name, body, strlen(body), on_doc,
			      &a);
	while (!a.calls)
		uv_run(&f->loop, UV_RUN_ONCE);
	return a;
}

static answer get(fixture *f, const char *name)
{
	answer a = { 0 };

	f->store->ops->get(f->store, "Pod", "team", name, on_doc, &a);
	while (!a.calls)
		uv_run(&f->loop, UV_RUN_ONCE);
	return a;
}

Test(store_sqlite, documents_and_versions_survive_reopening)
{
	fixture f;
	answer a, removed = { 0 };

	fixture_dir(&f);
	open_store(&f);
	a = create(&f, "a", "{}");
	create(&f, "b", "{}");
	f.store->ops->remove(f.store, "Pod", "team", "b", 0, on_doc, &removed);
	close_store(&f);
	cr_assert_eq(removed.calls, 1, "what is queued is finished before the close");
	open_store(&f);
	cr_assert_eq(get(&f, "a").version, a.version);
	cr_assert_eq(get(&f, "b").r, ABX_ENOTFOUND);
	cr_assert_gt(create(&f, "c", "{}").version, removed.version,
		     "versions do not go back after a removal and a restart");
	fixture_done(&f);
}

Test(store_sqlite, a_second_process_is_refused_and_the_first_goes_on)
{
	fixture f;
	int status;
	pid_t pid;

	fixture_dir(&f);
	open_store(&f);
	pid = fork();
	if (pid == 0) {
		fixture second = { 0 };
		abx_error *err = NULL;
		int r;

		memcpy(second.dir, f.dir, sizeof(f.dir));
		uv_loop_init(&second.loop);
		r = try_open(&second, 0, &err);
		_exit(r == ABX_ESTATE && strstr(abx_error_message(err), f.dir) &&
				      abx_error_hint(err)
			      ? 0
			      : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
	cr_assert_eq(create(&f, "a", "{}").r, ABX_OK);
	fixture_done(&f);
}

Test(store_sqlite, files_are_the_owners_alone)
{
	const char *const files[] = { "store.db", "store.lock" };
	char path[128];
	struct stat st;
	fixture f;

	fixture_dir(&f);
	open_store(&f);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", f.dir, files[i]);
		cr_assert_eq(stat(path, &st), 0);
		cr_assert_eq(st.st_mode & 0777, 0600, "%s has mode %o", path,
			     st.st_mode & 0777);
	}
	fixture_done(&f);
}

/* The child reports each acknowledged write through the pipe and is killed in the middle
 * of them. */
static void write_forever(fixture *f, int out)
{
	open_store(f);
	for (int i = 0;; i++) {
		char name[32];

		snprintf(name, sizeof(name), "p%d", i);
		if (create(f, name, "{\"phase\":\"running\"}").r != ABX_OK ||
		    write(out, &i, sizeof(i)) != sizeof(i))
			_exit(1);
	}
}

Test(store_sqlite, acknowledged_writes_survive_a_kill)
{
	static const char *const light[] = { "Record", "Pod", NULL };

	for (int round = 0; round < 5; round++) {
		int fds[2], last = -1, n;
		fixture f;
		pid_t pid;

		fixture_dir(&f);
		f.light_kinds = round % 2 ? light : NULL; /* both ways to commit */
		cr_assert_eq(pipe(fds), 0);
		pid = fork();
		if (pid == 0)
			write_forever(&f, fds[1]);
		close(fds[1]);
		while (last < 10 + 7 * round && read(fds[0], &n, sizeof(n)) == sizeof(n))
			last = n;
		kill(pid, SIGKILL);
		while (read(fds[0], &n, sizeof(n)) == sizeof(n))
			last = n;
		waitpid(pid, NULL, 0);
		close(fds[0]);
		cr_assert_geq(last, 10);
		open_store(&f);
		for (int i = 0; i <= last; i++) {
			char name[32];

			snprintf(name, sizeof(name), "p%d", i);
			cr_assert_eq(get(&f, name).r, ABX_OK, "round %d lost %s of %d",
				     round, name, last);
		}
		fixture_done(&f);
	}
}

Test(store_sqlite, a_full_store_refuses_writes_and_keeps_what_it_has)
{
	char body[8192];
	answer a = { 0 };
	char name[16];
	fixture f;
	int n;

	fixture_dir(&f);
	cr_assert_eq(try_open(&f, 256 * 1024, NULL), ABX_OK);
	memset(body, '1', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	for (n = 0; n < 100; n++) {
		snprintf(name, sizeof(name), "p%d", n);
		a = create(&f, name, body);
		if (a.r != ABX_OK)
			break;
	}
	cr_assert_eq(a.r, ABX_EEXHAUSTED, "%d: %s", a.r, a.message);
	cr_assert(strstr(a.message, "full") && strstr(a.hint, "free"), "%s (%s)",
		  a.message, a.hint);
	cr_assert_gt(n, 10);
	cr_assert_eq(get(&f, "p0").r, ABX_OK);
	cr_assert_eq(get(&f, name).r, ABX_ENOTFOUND);
	/* Room again: writes go on. */
	a = (answer){ 0 };
	f.store->ops->remove(f.store, "Pod", "team", "p0", 0, on_doc, &a);
	while (!a.calls)
		uv_run(&f.loop, UV_RUN_ONCE);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_eq(create(&f, "again", "{}").r, ABX_OK);
	fixture_done(&f);
}

/* Until not one more byte fits. */
static void fill_disk(fixture *f)
{
	static const char block[65536];
	char path[128];
	size_t size = sizeof(block);
	int fd;

	snprintf(path, sizeof(path), "%s/filler", f->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	while (size > 0)
		if (write(fd, block, size) <= 0)
			size /= 2;
	close(fd);
}

static answer remove_doc(fixture *f, const char *name)
{
	answer a = { 0 };

	f->store->ops->remove(f->store, "Pod", "team", name, 0, on_doc, &a);
	while (!a.calls)
		uv_run(&f->loop, UV_RUN_ONCE);
	return a;
}

Test(store_sqlite, a_full_disk_takes_writes_all_the_same, .timeout = 60)
{
	answer a;
	fixture f;
	char name[16], path[128];

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		cr_skip_test("needs root, for a small file system of its own");
	fixture_dir(&f);
	cr_assert_eq(mount("abx", f.dir, "tmpfs", 0, "size=24m"), 0);
	open_store(&f);
	create(&f, "kept", "{}");
	fill_disk(&f);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		a = create(&f, name, "{}");
		cr_assert_eq(a.r, ABX_OK, "%d: %s", i, a.message);
		cr_assert_eq(remove_doc(&f, name).r, ABX_OK);
	}
	snprintf(path, sizeof(path), "%s/store.db-shm", f.dir);
	cr_assert_lt(access(path, F_OK), 0, "%s would be one more that needs room", path);
	/* The room is still there when it was closed, and opened on a full disk. */
	for (int i = 0; i < 3; i++) {
		close_store(&f);
		fill_disk(&f);
		open_store(&f);
		cr_assert_eq(get(&f, "kept").r, ABX_OK);
		cr_assert_eq(create(&f, "more", "{}").r, ABX_OK);
		cr_assert_eq(remove_doc(&f, "more").r, ABX_OK);
	}
	close_store(&f);
	umount(f.dir);
	fixture_done(&f);
}

Test(store_sqlite, one_write_that_does_not_fit_does_not_fail_its_neighbours)
{
	answer a[3] = { 0 };
	size_t len = 1 << 20;
	char *body = malloc(len);
	fixture f;

	memset(body, '1', len);
	fixture_dir(&f);
	cr_assert_eq(try_open(&f, 256 * 1024, NULL), ABX_OK);
	f.store->ops->create(f.store, "Pod", "team", "a", "{}", 2, on_doc, &a[0]);
	f.store->ops->create(f.store, "Pod", "team", "b", body, len, on_doc, &a[1]);
	f.store->ops->create(f.store, "Pod", "team", "c", "{}", 2, on_doc, &a[2]);
	while (!a[2].calls)
		uv_run(&f.loop, UV_RUN_ONCE);
	cr_assert_eq(a[0].r, ABX_OK, "%s", a[0].message);
	cr_assert_eq(a[1].r, ABX_EEXHAUSTED, "%s", a[1].message);
	cr_assert_eq(a[2].r, ABX_OK, "%s", a[2].message);
	cr_assert_eq(get(&f, "a").r, ABX_OK);
	cr_assert_eq(get(&f, "c").r, ABX_OK);
	free(body);
	fixture_done(&f);
}

static void run_sql(fixture *f, const char *sql, sqlite3 **ret)
{
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/store.db", f->dir);
	cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s",
		     sqlite3_errmsg(db));
	if (ret)
		*ret = db;
	else
		sqlite3_close(db);
}

Test(store_sqlite, a_newer_format_is_refused)
{
	abx_error *err = NULL;
	fixture f;

	fixture_dir(&f);
	open_store(&f);
	close_store(&f);
	run_sql(&f, "PRAGMA user_version = 99", NULL);
	cr_assert_eq(try_open(&f, 0, &err), ABX_EUNSUPPORTED);
	cr_assert(strstr(abx_error_message(err), "format 99"), "%s",
		  abx_error_message(err));
	abx_error_free(err);
	f.store = NULL;
	fixture_done(&f);
}

Test(store_sqlite, a_file_that_is_no_database_is_refused_with_its_name)
{
	abx_error *err = NULL;
	char path[128];
	fixture f;
	FILE *file;

	fixture_dir(&f);
	snprintf(path, sizeof(path), "%s/store.db", f.dir);
	file = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fputs("this is not a database ", file);
	fclose(file);
	cr_assert_eq(try_open(&f, 0, &err), ABX_EIO);
	cr_assert(strstr(abx_error_message(err), path), "%s", abx_error_message(err));
	abx_error_free(err);
	f.store = NULL;
	fixture_done(&f);
}

Test(store_sqlite, a_missing_directory_is_refused_with_its_name)
{
	fixture f = { .dir = "/tmp/abx-store-nosuch/dir" };
	abx_error *err = NULL;

	uv_loop_init(&f.loop);
	cr_assert_eq(try_open(&f, 0, &err), ABX_EIO);
	cr_assert(strstr(abx_error_message(err), f.dir), "%s", abx_error_message(err));
	abx_error_free(err);
	uv_loop_close(&f.loop);
}

Test(store_sqlite, a_lock_held_for_longer_than_we_wait_is_unavailable, .timeout = 30)
{
	abx_error *err = NULL;
	sqlite3 *other;
	fixture f;

	fixture_dir(&f);
	open_store(&f);
	close_store(&f);
	run_sql(&f, "BEGIN IMMEDIATE", &other);
	cr_assert_eq(try_open(&f, 0, &err), ABX_EUNAVAILABLE, "%s",
		     abx_error_message(err));
	cr_assert(strstr(abx_error_message(err), "locked"), "%s", abx_error_message(err));
	abx_error_free(err);
	sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_close(other);
	open_store(&f);
	cr_assert_eq(create(&f, "a", "{}").r, ABX_OK);
	fixture_done(&f);
}

Test(store_sqlite, allocation_failures_complete_with_nomem)
{
	fixture f;
	int r = ABX_ENOMEM;

	fixture_dir(&f);
	open_store(&f);
	for (unsigned n = 0; r != ABX_OK; n++) {
		answer a = { 0 };

		cr_assert_lt(n, 100);
		abx__test_fail_alloc_after(n);
		f.store->ops->create(f.store, "Pod", "team", "a", "{}", 2, on_doc, &a);
		cr_assert_eq(a.calls, 0, "completed inside the call");
		while (!a.calls)
			uv_run(&f.loop, UV_RUN_ONCE);
		abx__test_alloc_reset();
		r = a.r;
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
	}
	fixture_done(&f);
}

Test(store_sqlite, allocation_failures_while_opening_are_nomem)
{
	fixture f;
	int r = ABX_ENOMEM;

	fixture_dir(&f);
	for (unsigned n = 0; r != ABX_OK; n++) {
		abx_error *err = NULL;

		cr_assert_lt(n, 100);
		f.store = NULL;
		abx__test_fail_alloc_after(n);
		r = try_open(&f, 0, &err);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
		abx_error_free(err);
	}
	fixture_done(&f);
}

Test(store_sqlite, a_burst_shares_transactions)
{
	enum { BURST = 300 };
	static answer a[BURST];
	uint64_t start;
	char name[16];
	fixture f;

	fixture_dir(&f);
	open_store(&f);
	start = uv_hrtime();
	for (int i = 0; i < BURST; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		f.store->ops->create(f.store, "Pod", "team", name, "{}", 2, on_doc,
				     &a[i]);
	}
	while (!a[BURST - 1].calls)
		uv_run(&f.loop, UV_RUN_ONCE);
	for (int i = 0; i < BURST; i++)
		cr_assert_eq(a[i].r, ABX_OK);
	/* A sync for each would be visible on any disk; generous for a loaded machine. */
	cr_assert_lt((uv_hrtime() - start) / 1000000, 2000);
	fixture_done(&f);
}

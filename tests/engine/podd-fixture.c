/*
 * podd-fixture.c - starts, kills and clears away a real podd.
 */
#include "podd-fixture.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/id.h"

static const char *program(void)
{
	static char path[PATH_MAX];
	const char *top = getenv("top_builddir"), *other = getenv("ABX_TEST_PODD");

	if (other)
		return other;
	snprintf(path, sizeof(path), "%s/src/agentbox-podd", top ? top : ".");
	return path;
}

const char *podd_fixture_missing(void)
{
	if (geteuid() != 0)
		return "needs root";
	if (access("/usr/bin/crun", X_OK) < 0)
		return "needs crun";
	if (access("/bin/busybox", X_OK) < 0)
		return "needs busybox-static";
	if (access("/usr/share/containers/seccomp.json", R_OK) < 0)
		return "needs golang-github-containers-common";
	if (access(program(), X_OK) < 0)
		return "needs src/agentbox-podd";
	return NULL;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

static pid_t spawn(podd_fixture *f, const char *extra)
{
	pid_t pid = fork();

	if (pid == 0) {
		int log = open(f->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		/* A test that ends early takes its podd along. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(log, 1);
		dup2(log, 2);
		execl(program(), "agentbox-podd", "--state-dir", f->dir, "--socket",
		      f->socket, "--account", "0", "--runtime-dir", f->dir, extra,
		      (char *)NULL);
		_exit(127);
	}
	return pid;
}

void podd_fixture_start(podd_fixture *f)
{
	f->pid = spawn(f, f->option);
	for (int i = 0; i < 2000 && access(f->socket, F_OK) < 0; i++)
		nap();
	cr_assert(access(f->socket, F_OK) == 0, "podd did not start; see %s", f->log);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* A test that fails never gets to podd_fixture_close(): a process that hears its end
 * clears away instead. */
static void spawn_cleaner(podd_fixture *f)
{
	int fds[2], status;
	char byte;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	f->cleaner = fork();
	if (f->cleaner) {
		close(fds[0]);
		f->cleaner_fd = fds[1];
		return;
	}
	close(fds[1]);
	close_range(0, 2, 0);
	setsid();
	if (read(fds[0], &byte, 1) == 1)
		_exit(0);
	waitpid(spawn(f, "--purge"), &status, 0);
	nftw(f->dir, remove_one, 32, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}

void podd_fixture_open(podd_fixture *f)
{
	char real[PATH_MAX];
	unsigned char hash[ABX__SHA256_LEN];

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/agentbox-test-podd-XXXXXX");
	cr_assert(mkdtemp(f->dir));
	chmod(f->dir, 0711);
	snprintf(f->socket, sizeof(f->socket), "%s/podd.sock", f->dir);
	snprintf(f->log, sizeof(f->log), "%s/podd.log", f->dir);
	cr_assert(realpath(f->dir, real));
	abx__sha256(real, strlen(real), hash);
	abx__hex(hash, 2, f->tag);
	spawn_cleaner(f);
	podd_fixture_start(f);
}

void podd_fixture_kill(podd_fixture *f, int signal_)
{
	kill(f->pid, signal_);
	waitpid(f->pid, NULL, 0);
	f->pid = 0;
	unlink(f->socket);
}

/* ---- what is left ---- */

static unsigned count_entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static bool has_links(const podd_fixture *f)
{
	struct if_nameindex *list = if_nameindex();
	char prefix[8];
	bool found = false;

	snprintf(prefix, sizeof(prefix), "ab%s", f->tag);
	for (struct if_nameindex *i = list; i && i->if_index; i++)
		found |= strncmp(i->if_name, prefix, strlen(prefix)) == 0;
	if_freenameindex(list);
	return found;
}

static bool has_mounts(const podd_fixture *f)
{
	FILE *m = fopen("/proc/self/mountinfo", "r");
	char line[4096];
	bool found = false;

	while (m && fgets(line, sizeof(line), m))
		found |= strstr(line, f->dir) != NULL || strstr(line, "agentbox") != NULL;
	if (m)
		fclose(m);
	return found;
}

static bool has_groups(const podd_fixture *f)
{
	static const char *const hierarchies[] = { "cpu", "memory", "pids", "freezer",
						   "." };
	bool found = false;

	for (size_t i = 0; i < 5; i++) {
		char path[256];
		DIR *d;
		struct dirent *e;

		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/agentbox-%s",
			 hierarchies[i], f->tag);
		d = opendir(path);
		while (d && (e = readdir(d)))
			found |= e->d_type == DT_DIR && e->d_name[0] != '.';
		if (d)
			closedir(d);
	}
	return found;
}

bool podd_fixture_is_clean(const podd_fixture *f, char *what, size_t size)
{
	char path[128];

	*what = '\0';
	if (has_links(f))
		snprintf(what, size, "links ab%s...", f->tag);
	else if (has_mounts(f))
		snprintf(what, size, "mounts");
	else if (has_groups(f))
		snprintf(what, size, "cgroups agentbox-%s/*", f->tag);
	snprintf(path, sizeof(path), "%s/podd/pods", f->dir);
	if (!*what && count_entries(path))
		snprintf(what, size, "%u folders of Pods", count_entries(path));
	snprintf(path, sizeof(path), "%s/podd/trash", f->dir);
	if (!*what && count_entries(path))
		snprintf(what, size, "%u entries of trash", count_entries(path));
	return !*what;
}

unsigned podd_fixture_count_fds(const podd_fixture *f)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)f->pid);
	return count_entries(path);
}

void podd_fixture_close(podd_fixture *f)
{
	int status = 0;
	char path[128];
	pid_t pid;

	if (f->pid)
		podd_fixture_kill(f, SIGTERM);
	pid = spawn(f, "--purge");
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0, "purge failed");
	cr_assert_not(has_links(f), "links are left after purge");
	cr_assert_not(has_groups(f), "cgroups are left after purge");
	snprintf(path, sizeof(path), "%s/podd", f->dir);
	cr_assert_lt(access(path, F_OK), 0, "%s is left after purge", path);
	nftw(f->dir, remove_one, 32, FTW_DEPTH | FTW_PHYS);
	cr_assert_eq(write(f->cleaner_fd, "x", 1), 1);
	close(f->cleaner_fd);
	waitpid(f->cleaner, NULL, 0);
}

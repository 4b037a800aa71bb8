/*
 * floors.c - what the machine itself can do, measured in the same run as our figures.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* crun refuses a hybrid cgroup hierarchy: leave the v2 half of it in a mount namespace of
 * our own, so that the floor is crun alone. */
void floor_leave_hybrid(void)
{
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		rig_die("floor: no mount namespace of our own");
	umount2("/sys/fs/cgroup/unified", MNT_DETACH);
}

double floor_spawn_ms(const char *const *argv, int count)
{
	double *samples = calloc((size_t)count, sizeof(*samples)), p50;
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	for (int i = 0; i < count; i++) {
		double start = rig_now_ms();
		pid_t pid;
		int status;

		if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv,
				 environ) != 0)
			rig_die("floor: cannot run %s", argv[0]);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		samples[i] = rig_now_ms() - start;
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			rig_die("floor: %s failed", argv[0]);
	}
	posix_spawn_file_actions_destroy(&actions);
	p50 = percentile(samples, count, 50);
	free(samples);
	return p50;
}

double floor_roundtrip_ms(const bench_rig *rig, int count)
{
	double *samples = calloc((size_t)count, sizeof(*samples)), p50;

	for (int i = 0; i < count; i++) {
		double start = rig_now_ms();

		rig_call(rig, "GET", "/ping", NULL, NULL);
		samples[i] = rig_now_ms() - start;
	}
	p50 = percentile(samples, count, 50);
	free(samples);
	return p50;
}

double floor_fdatasync_ms(const char *folder, int count)
{
	double *samples = calloc((size_t)count, sizeof(*samples)), p50;
	char path[512], block[4096] = "x";
	int fd;

	snprintf(path, sizeof(path), "%s/bench-fdatasync", folder);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	for (int i = 0; i < count; i++) {
		double start = rig_now_ms();

		if (write(fd, block, sizeof(block)) < 0 || fdatasync(fd) < 0)
			rig_die("floor: cannot write %s", path);
		samples[i] = rig_now_ms() - start;
	}
	close(fd);
	unlink(path);
	p50 = percentile(samples, count, 50);
	free(samples);
	return p50;
}

static void send_all(int fd, uint64_t bytes)
{
	static char block[256 << 10];

	while (bytes) {
		ssize_t n =
			write(fd, block, bytes < sizeof(block) ? bytes : sizeof(block));

		if (n <= 0)
			_exit(1);
		bytes -= (uint64_t)n;
	}
	_exit(0);
}

double floor_loopback_mbs(uint64_t bytes)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	static char block[256 << 10];
	uint64_t got = 0;
	double start, took;
	pid_t pid;

	if (bind(listener, (struct sockaddr *)&addr, len) < 0 ||
	    listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) < 0)
		rig_die("floor: no loopback listener");
	pid = fork();
	if (pid == 0) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(fd, (struct sockaddr *)&addr, len) < 0)
			_exit(1);
		send_all(fd, bytes);
	}
	fd = accept(listener, NULL, NULL);
	start = rig_now_ms();
	while (got < bytes) {
		ssize_t n = read(fd, block, sizeof(block));

		if (n <= 0)
			rig_die("floor: loopback stream broke");
		got += (uint64_t)n;
	}
	took = rig_now_ms() - start;
	waitpid(pid, NULL, 0);
	close(fd);
	close(listener);
	return (double)bytes / 1e6 / (took / 1e3);
}

double floor_disk_mbs(const char *folder, uint64_t bytes)
{
	static char block[256 << 10];
	char path[512];
	double start = rig_now_ms(), took;
	int fd;

	snprintf(path, sizeof(path), "%s/bench-disk", folder);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	for (uint64_t left = bytes; left;) {
		size_t len = left < sizeof(block) ? (size_t)left : sizeof(block);
		ssize_t n = write(fd, block, len);

		if (n <= 0)
			rig_die("floor: cannot write %s", path);
		left -= (uint64_t)n;
	}
	took = rig_now_ms() - start;
	close(fd);
	unlink(path);
	return (double)bytes / 1e6 / (took / 1e3);
}

/* nftw has no userdata: one walk at a time. */
static void (*walk_each)(long pid);
static long walk_kib;
static int walk_processes;

long process_pss_kib(long pid)
{
	char path[64], line[256];
	FILE *f;
	long kib = -1;

	snprintf(path, sizeof(path), "/proc/%ld/smaps_rollup", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %ld kB", &kib) != 1)
			kib = -1;
	fclose(f);
	return kib;
}

static void add_process(long pid)
{
	long kib = process_pss_kib(pid);

	if (kib < 0)
		return;
	walk_kib += kib;
	walk_processes++;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	FILE *f;
	long pid;

	(void)st;
	if (type != FTW_F || strcmp(path + ftw->base, "cgroup.procs") != 0)
		return 0;
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fscanf(f, "%ld", &pid) == 1)
		walk_each(pid);
	fclose(f);
	return 0;
}

void cgroup_each(const char *cgroup, void (*each)(long pid))
{
	int tries = 5;

	/* A Pod that ends meanwhile takes its folder away from under the walk. */
	walk_each = each;
	do
		walk_kib = walk_processes = 0;
	while (nftw(cgroup, visit, 16, FTW_PHYS) < 0 && --tries > 0);
	if (tries == 0)
		rig_die("cannot walk %s", cgroup);
}

long cgroup_pss_kib(const char *cgroup, int *ret_processes)
{
	cgroup_each(cgroup, add_process);
	*ret_processes = walk_processes;
	return walk_kib;
}

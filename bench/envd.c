/*
 * envd.c - the runtime of a Pod by itself: from its exec to an answer, and its memory at
 * rest.
 */
#include "rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 5000

extern char **environ;

static uint16_t free_port(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		rig_die("envd: no free port");
	close(fd);
	return ntohs(addr.sin_port);
}

static pid_t start(const char *envd, const char *run_dir, uint16_t port)
{
	char number[8];
	const char *argv[] = { envd,       "-port",    number,  "-bind", "127.0.0.1",
			       "-isnotfc", "-run-dir", run_dir, NULL };
	pid_t pid;

	snprintf(number, sizeof(number), "%u", port);
	if (posix_spawn(&pid, envd, NULL, NULL, (char *const *)argv, environ) != 0)
		rig_die("envd: cannot run %s", envd);
	return pid;
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	double until = rig_now_ms() + PATIENCE_MS;

	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
			return fd;
		close(fd);
		if (rig_now_ms() > until)
			rig_die("envd: does not listen");
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
}

static void ask_health(uint16_t port)
{
	static const char request[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n"
				      "Connection: close\r\n\r\n";
	int fd = connect_to(port);
	char answer[64] = "";

	if (write(fd, request, sizeof(request) - 1) < 0 ||
	    read(fd, answer, sizeof(answer) - 1) < 12 ||
	    memcmp(answer, "HTTP/1.1 2", 10) != 0)
		rig_die("envd: /health answered %.20s", answer);
	close(fd);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void bench_envd(const char *envd, const char *run_dir)
{
	enum { COUNT = 60 };
	const char *argv[] = { "/usr/bin/busybox", "true", NULL };
	static double samples[COUNT];
	uint16_t port = free_port();
	char figure[64], floor[64], ratio[32];
	double p50, spawn;
	pid_t pid;
	long kib;

	for (int i = -3; i < COUNT; i++) {
		double begin = rig_now_ms();

		pid = start(envd, run_dir, port);
		ask_health(port);
		if (i >= 0)
			samples[i] = rig_now_ms() - begin;
		stop(pid);
	}
	spawn = floor_spawn_ms(argv, COUNT);
	p50 = percentile(samples, COUNT, 50);
	snprintf(figure, sizeof(figure), "p50 %.2f p99 %.2f ms", p50,
		 percentile(samples, COUNT, 99));
	snprintf(floor, sizeof(floor), "spawn of a static true %.2f ms", spawn);
	snprintf(ratio, sizeof(ratio), "%.1f", p50 / spawn);
	row("envd start (exec to /health answered)", figure, floor, ratio, "< 5 ms",
	    p50 < 5);

	pid = start(envd, run_dir, port);
	ask_health(port);
	nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
	kib = process_pss_kib(pid);
	stop(pid);
	snprintf(figure, sizeof(figure), "%.2f MiB PSS, alone", (double)kib / 1024);
	row("envd, idle", figure, "-", "-", "<= 2.5 MiB", kib <= 2560);
}

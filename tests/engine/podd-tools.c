/*
 * podd-tools.c - see podd-tools.h.
 */
#include "podd-tools.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void run(const char *program, const char *const *args)
{
	const char *argv[64] = { program };
	char path[512];
	int status = -1;
	pid_t pid;

	for (size_t i = 0; args[i] && i < 62; i++)
		argv[i + 1] = args[i];
	snprintf(path, sizeof(path), "%s/%s", getenv("top_srcdir"), program);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		execv(path, (char *const *)argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0, "%s failed", program);
}

int run_tool(const char *const *argv)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f, "%s", path);
	fputs(text, f);
	fclose(f);
}

void build_busybox(podd_peer *p)
{
	mkdir(podd_peer_path(p, "images"), 0755);
	run("deploy/images/build-busybox",
	    (const char *const[]){ podd_peer_path(p, "images/busybox"), NULL });
}

int listen_any(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(listen(fd, 8), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

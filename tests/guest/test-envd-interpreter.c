/*
 * test-envd-interpreter.c - the code interpreter's port: when it listens, who serves it,
 * and what becomes of a server that does not stay. The server is a stand-in.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd-child.h"

/* Greets one visitor with what it sees of its start, and ends. */
#define GREETER                                                                         \
	"#!/bin/sh\n: > \"${0%/*}/started\"\nexec /usr/bin/python3 -c '\nimport os, "   \
	"socket, sys\ns = socket.socket(fileno=0)\ns.setblocking(True)\nc, _ = "        \
	"s.accept()\nc.sendall((\" \".join([*sys.argv[1:], os.environ[\"FROM_INIT\"], " \
	"os.environ[\"HOME\"], "                                                        \
	"str(os.environ.get(\"AGENTBOX_SECRET\"))])).encode())\n' "                     \
	"\"$@\"\n"

static envd_child child;
static char dir[64], path[96], file[96];
static uint16_t port;

static void put(const char *name, const char *text)
{
	ABX_CLEANUP(abx__freep) char *full = abx__strf("%s/%s", dir, name);
	FILE *out = fopen(full, "w");

	cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
	cr_assert_eq(chmod(full, 0755), 0);
}

static void make_dirs(const char *const *names)
{
	for (; *names; names++) {
		ABX_CLEANUP(abx__freep) char *full = abx__strf("%s/%s", dir, *names);

		cr_assert_eq(mkdir(full, 0755), 0);
	}
}

static int local_socket(struct sockaddr_in *at)
{
	*at = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void pick_port(void)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	int fd;

	port = 0;
	fd = local_socket(&at);
	cr_assert(bind(fd, (struct sockaddr *)&at, len) == 0 &&
		  getsockname(fd, (struct sockaddr *)&at, &len) == 0);
	port = ntohs(at.sin_port);
	close(fd);
}

/* An image with the stand-in as its python3; `with_kernel`: and with ipykernel. */
static void start(const char *python, bool with_kernel)
{
	char number[8];

	snprintf(dir, sizeof(dir), "/tmp/abx-interpreter-XXXXXX");
	cr_assert(mkdtemp(dir));
	make_dirs((const char *const[]){ "bin", "lib", "lib/python3.9",
					 "lib/python3.9/site-packages", NULL });
	if (with_kernel)
		make_dirs((const char *const[]){ "lib/python3.9/site-packages/ipykernel",
						 NULL });
	put("bin/python3", python);
	put("interpreter.pyz", "");
	snprintf(path, sizeof(path), "%s/bin:/usr/bin:/bin", dir);
	snprintf(file, sizeof(file), "%s/interpreter.pyz", dir);
	setenv("PATH", path, 1);
	setenv("AGENTBOX_SECRET", "x", 1);
	pick_port();
	snprintf(number, sizeof(number), "%u", (unsigned)port);
	envd_child_start(&child,
			 (const char *const[]){ "-isnotfc", "-interpreter", file,
						"-interpreter-port", number, NULL });
}

static int remove_one(const char *name, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(name);
}

static void stop(void)
{
	if (child.pid)
		envd_child_stop(&child);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(envd_interpreter, .fini = stop, .timeout = 60);

/* What the port says until it closes; NULL when nobody listens. */
static char *visit(void)
{
	struct sockaddr_in at;
	int fd = local_socket(&at);
	char text[512] = "";
	ssize_t n, len = 0;

	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		close(fd);
		return NULL;
	}
	while ((n = read(fd, text + len, sizeof(text) - 1 - (size_t)len)) > 0)
		len += n;
	close(fd);
	return abx__strndup(text, (size_t)len);
}

static bool has_started(void)
{
	ABX_CLEANUP(abx__freep) char *mark = abx__strf("%s/bin/started", dir);

	return access(mark, F_OK) == 0;
}

Test(envd_interpreter, it_starts_when_somebody_connects_and_again_after_its_end)
{
	ABX_CLEANUP(abx__freep) char *want = NULL;
	envd_answer answer;

	start(GREETER, true);
	answer =
		envd_child_call(&child, "/init", "{\"envVars\":{\"FROM_INIT\":\"yes\"}}");
	cr_assert_eq(answer.status, 204);
	envd_answer_done(&answer);
	cr_assert(!has_started());
	want = abx__strf("-B %s yes %s None", file,
			 getuid() == 0 ? "/root" : getenv("HOME"));
	for (int i = 0; i < 2; i++) {
		ABX_CLEANUP(abx__freep) char *said = visit();

		cr_assert_str_eq(said, want);
	}
	cr_assert(has_started());
}

Test(envd_interpreter, without_ipykernel_nobody_listens)
{
	start(GREETER, false);
	cr_assert_null(visit());
	cr_assert(!has_started());
}

Test(envd_interpreter, one_that_ends_at_once_is_given_up_and_the_port_closed)
{
	char *said = NULL;
	int tries;

	start("#!/bin/sh\nexit 1\n", true);
	for (tries = 0; tries < 500 && (tries == 0 || said); tries++) {
		abx__free(said);
		said = visit(); /* waits until the listener closes, or comes too late */
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	cr_assert_null(said);
}

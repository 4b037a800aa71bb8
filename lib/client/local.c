/*
 * local.c - the local engine: found by its Unix socket, or started.
 *
 * Starting is one `agentboxd --supervise --daemon`, which returns when it is under way;
 * then the socket is asked until it answers. AGENTBOX_DAEMON names another program to
 * start (tests, builds that are not installed).
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "client/client.h"

#define START_LIMIT_MS 15000
#define ASK_EVERY_MS 20

/* 1 somebody listens, 0 nobody, negative errno for what starting a daemon would not mend.
 */
static int answers(const char *path)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (abx__str_copy(addr.sun_path, sizeof(addr.sun_path), path) < 0)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 || errno == EAGAIN)
		return 1;
	if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
		return 0;
	return -errno;
}

static int unavailable(const char *path, abx_error **reterr)
{
	abx__error_set(reterr, ABX_EUNAVAILABLE, "no local engine listens at %s", path);
	abx__error_hint(reterr, "start one with \"agentboxd --supervise --daemon\" as "
				"root (or ./quickstart), "
				"or set AGENTBOX_CLUSTER_API and AGENTBOX_API_KEY to use "
				"a platform elsewhere");
	return ABX_EUNAVAILABLE;
}

static int spawn(const char *state_dir, pid_t *ret, abx_error **reterr)
{
	const char *named = getenv("AGENTBOX_DAEMON");
	const char *program = named && *named ? named : "agentboxd";
	char *argv[] = { (char *)"agentboxd",   (char *)"--supervise", (char *)"--daemon",
			 (char *)"--state-dir", (char *)state_dir,     NULL };
	posix_spawn_file_actions_t actions;
	int error;

	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return abx__error_errno(reterr, ABX_EIO, error, "start %s", program);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	error = posix_spawnp(ret, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error == ENOENT && program != named)
		error = posix_spawn(ret, ABX_SBINDIR "/agentboxd", NULL, NULL, argv,
				    environ);
	if (!error)
		return ABX_OK;
	abx__error_errno(reterr, ABX_EUNAVAILABLE, error, "start the local engine (%s)",
			 program);
	abx__error_hint(reterr, "install it, or set PATH so that agentboxd is found");
	return ABX_EUNAVAILABLE;
}

/* What the starting process said, once it ended: ABX_OK while it runs or when it went
 * well. */
static int check_child(pid_t *pid, abx_error **reterr)
{
	int status = 0;

	if (!*pid || waitpid(*pid, &status, WNOHANG) != *pid)
		return ABX_OK;
	*pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return ABX_OK;
	abx__error_set(reterr, ABX_EUNAVAILABLE,
		       "the local engine did not start (agentboxd ended with %s %d)",
		       WIFEXITED(status) ? "status" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	abx__error_hint(reterr, "run \"agentboxd --supervise\" in a terminal to see why");
	return ABX_EUNAVAILABLE;
}

static int start(const char *state_dir, const char *path, abx_error **reterr)
{
	struct timespec nap = { .tv_nsec = ASK_EVERY_MS * 1000000L };
	int64_t end = abx__mono_ms() + START_LIMIT_MS;
	pid_t pid = 0;
	int r;

	r = spawn(state_dir, &pid, reterr);
	if (r < 0)
		return r;
	while (abx__mono_ms() < end) {
		r = check_child(&pid, reterr);
		if (r < 0)
			return r;
		if (answers(path) == 1 && !pid)
			return ABX_OK;
		nanosleep(&nap, NULL);
	}
	abx__error_set(reterr, ABX_EUNAVAILABLE,
		       "the local engine was started but does not listen at %s", path);
	abx__error_hint(reterr, "look at its log in %s", state_dir);
	return ABX_EUNAVAILABLE;
}

int abx__local_find(const char *state_dir, bool may_start, const abx__log *log,
		    char **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/agentboxd.sock", state_dir);
	int r;

	if (!path)
		return abx__error_nomem(reterr);
	r = answers(path);
	if (r < 0) {
		abx__error_errno(reterr, r == -EACCES ? ABX_EDENIED : ABX_EUNAVAILABLE,
				 -r, "reach the local engine at %s", path);
		return r == -EACCES ? ABX_EDENIED : ABX_EUNAVAILABLE;
	}
	if (r == 0) {
		if (!may_start || geteuid() != 0)
			return unavailable(path, reterr);
		abx__log_debug(log, "starting the local engine", "state_dir=%s",
			       state_dir);
		r = start(state_dir, path, reterr);
		if (r < 0)
			return r;
	}
	*ret = abx_take(path);
	return ABX_OK;
}

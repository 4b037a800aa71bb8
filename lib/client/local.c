/*
 * local.c - the local engine: found by its Unix socket, or started.
 *
 * Starting is one `agentboxd --supervise --daemon --with-base`, which returns when the
 * instance is ready. The daemon holds the lock of its state directory: of several
 * programs that start one at once, one starts it and the others wait for its socket.
 * AGENTBOX_DAEMON names another program to start (builds that are not installed, tests).
 * Nothing of the caller's process goes into it but its environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

#define START_LIMIT_MS 30000
#define ASK_EVERY_MS 20
#define AGAIN_AFTER_MS 500
#define SAID_MAX 1024
/* agentboxd's exit status when its state directory has an instance, and what it says
 * then (src/agentboxd-background.c). */
#define RUNS_ALREADY 75
#define ALREADY_TEXT " runs already; "

/* A start under way. */
struct starter {
	const char *state_dir;
	const char *program; /* to be named */
	pid_t pid;           /* 0: it has ended */
	int said_fd;         /* its standard error; -1 */
	char said[SAID_MAX];
	size_t said_len;
	bool other; /* somebody else starts one */
};

/* 1 somebody listens (`*ret_pid`, unless NULL, who), 0 nobody, negative errno for what
 * starting a daemon would not mend. */
static int answers(const char *path, pid_t *ret_pid)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (abx__str_copy(addr.sun_path, sizeof(addr.sun_path), path) < 0)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
		if (ret_pid && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
			*ret_pid = peer.pid;
		return 1;
	}
	if (errno == EAGAIN)
		return 1;
	if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
		return 0;
	return -errno;
}

static int unavailable(const char *path, bool may_start, abx_error **reterr)
{
	if (may_start)
		abx__error_set(
			reterr, ABX_EUNAVAILABLE,
			"no local engine listens at %s, and only root can start one",
			path);
	else
		abx__error_set(reterr, ABX_EUNAVAILABLE, "no local engine listens at %s",
			       path);
	abx__error_hint(
		reterr,
		"run as root, or start one with \"agentboxd --supervise --daemon "
		"--with-base\" as root (or ./quickstart); everybody else reaches it, or "
		"a platform elsewhere, by AGENTBOX_CLUSTER_API and AGENTBOX_API_KEY");
	return ABX_EUNAVAILABLE;
}

/* ---- the process ---- */

/* What was named; else what was installed with this library; else what the PATH has. */
static const char *find_program(void)
{
	const char *named = getenv("AGENTBOX_DAEMON");

	if (named && *named)
		return named;
	return access(ABX_SBINDIR "/agentboxd", X_OK) == 0 ? ABX_SBINDIR "/agentboxd"
							   : "agentboxd";
}

/* Signals as a new program expects them, whatever the caller blocks or ignores. */
static void reset_signals(posix_spawnattr_t *attr)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn_with(struct starter *s, int said)
{
	char *argv[] = { (char *)"agentboxd",
			 (char *)"--supervise",
			 (char *)"--daemon",
			 (char *)"--with-base",
			 (char *)"--state-dir",
			 (char *)s->state_dir,
			 NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int error;

	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return error;
	error = posix_spawnattr_init(&attr);
	if (error) {
		posix_spawn_file_actions_destroy(&actions);
		return error;
	}
	reset_signals(&attr);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, said, 2);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	error = posix_spawnp(&s->pid, s->program, &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static void starter_done(struct starter *s)
{
	if (s->said_fd >= 0)
		close(s->said_fd);
	s->said_fd = -1;
	/* It waits for the instance, which goes on without it. */
	if (s->pid > 0 && kill(s->pid, SIGKILL) == 0)
		waitpid(s->pid, NULL, 0);
	s->pid = 0;
}

static int spawn(struct starter *s, abx_error **reterr)
{
	int fds[2], error;

	starter_done(s);
	s->said_len = 0;
	s->other = false;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "start %s", s->program);
	s->said_fd = fds[0];
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	error = spawn_with(s, fds[1]);
	close(fds[1]);
	if (!error)
		return ABX_OK;
	s->pid = 0;
	abx__error_errno(reterr, ABX_EUNAVAILABLE, error,
			 "no local engine runs, and its daemon cannot be started: %s",
			 s->program);
	abx__error_hint(reterr, "install agentboxd (make install), or name it in "
				"AGENTBOX_DAEMON; or set AGENTBOX_CLUSTER_API and "
				"AGENTBOX_API_KEY to use a platform elsewhere");
	return ABX_EUNAVAILABLE;
}

/* ---- what became of it ---- */

static void read_said(struct starter *s)
{
	char more[256];
	ssize_t n;

	while ((n = read(s->said_fd, more, sizeof(more))) > 0) {
		size_t room = SAID_MAX - 1 - s->said_len;
		size_t take = (size_t)n < room ? (size_t)n : room;

		memcpy(s->said + s->said_len, more, take);
		s->said_len += take;
	}
}

/* What it said on one line, without its name before every line. */
static void flatten(struct starter *s)
{
	static const char name[] = "agentboxd: ";
	char *in = s->said, *out = s->said;

	s->said[s->said_len] = '\0';
	while (*in) {
		if ((in == s->said || in[-1] == '\n') && abx__str_starts(in, name))
			in += sizeof(name) - 1;
		if (*in == '\n') {
			in++;
			while (*in == ' ')
				in++;
			if (*in && out > s->said) {
				*out++ = ';';
				*out++ = ' ';
			}
			continue;
		}
		*out++ = *in++;
	}
	*out = '\0';
}

static void hint_log(const struct starter *s, abx_error **reterr)
{
	abx__error_hint(reterr,
			"its log, when it came that far: %s/agentboxd.log; in a terminal "
			"it says more: %s --supervise --with-base --state-dir %s",
			s->state_dir, s->program, s->state_dir);
}

static int failed(const struct starter *s, int status, abx_error **reterr)
{
	if (*s->said)
		abx__error_set(reterr, ABX_EUNAVAILABLE,
			       "the local engine did not start: %s", s->said);
	else
		abx__error_set(reterr, ABX_EUNAVAILABLE,
			       "the local engine did not start (%s ended with %s %d)",
			       s->program, WIFEXITED(status) ? "status" : "signal",
			       WIFEXITED(status) ? WEXITSTATUS(status)
						 : WTERMSIG(status));
	hint_log(s, reterr);
	return ABX_EUNAVAILABLE;
}

/* Its status, when the caller ignores SIGCHLD or its handler was quicker: agentboxd says
 * something when it fails, and nothing else. */
static int guess_status(const struct starter *s)
{
	if (strstr(s->said, ALREADY_TEXT))
		return W_EXITCODE(RUNS_ALREADY, 0);
	return *s->said ? W_EXITCODE(1, 0) : 0;
}

/* ABX_OK while it runs, when it went well, and when another one is at it. */
static int check_child(struct starter *s, abx_error **reterr)
{
	int status = 0;
	pid_t r;

	if (!s->pid)
		return ABX_OK;
	read_said(s);
	r = waitpid(s->pid, &status, WNOHANG);
	if (r == 0 || (r < 0 && errno == EINTR))
		return ABX_OK;
	s->pid = 0;
	read_said(s);
	flatten(s);
	if (r < 0)
		status = guess_status(s);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return ABX_OK;
	s->other = WIFEXITED(status) && WEXITSTATUS(status) == RUNS_ALREADY;
	return s->other ? ABX_OK : failed(s, status, reterr);
}

static int give_up(struct starter *s, const char *path, abx_error **reterr)
{
	flatten(s);
	abx__error_set(reterr, ABX_EUNAVAILABLE,
		       "the local engine was started but does not listen at %s after %d "
		       "s%s%s",
		       path, START_LIMIT_MS / 1000, *s->said ? ": " : "", s->said);
	hint_log(s, reterr);
	return ABX_EUNAVAILABLE;
}

/* ---- the start ---- */

static int wait_for(struct starter *s, const char *path, pid_t *ret_pid,
		    abx_error **reterr)
{
	const struct timespec nap = { .tv_nsec = ASK_EVERY_MS * 1000000L };
	int64_t end = abx__mono_ms() + START_LIMIT_MS;
	int64_t again = abx__mono_ms() + AGAIN_AFTER_MS;
	int r;

	for (int64_t now = 0; now < end; now = abx__mono_ms()) {
		r = check_child(s, reterr);
		if (r < 0)
			return r;
		if (!s->pid && answers(path, ret_pid) == 1)
			return ABX_OK;
		/* The other one's start may have failed meanwhile; then it is our turn.
		 */
		if (s->other && now >= again) {
			again = now + AGAIN_AFTER_MS;
			r = spawn(s, reterr);
			if (r < 0)
				return r;
		}
		nanosleep(&nap, NULL);
	}
	return give_up(s, path, reterr);
}

static int start(const char *state_dir, const char *path, const abx__log *log,
		 abx_error **reterr)
{
	struct starter s = { .state_dir = state_dir,
			     .program = find_program(),
			     .said_fd = -1 };
	pid_t engine = 0;
	bool other;
	int r;

	abx__log_debug(log, "starting the local engine", "program=%s state_dir=%s",
		       s.program, state_dir);
	r = spawn(&s, reterr);
	if (r >= 0)
		r = wait_for(&s, path, &engine, reterr);
	other = s.other;
	starter_done(&s);
	if (r >= 0 && !other)
		abx__log_info(log, "started the local engine agentboxd",
			      "pid=%d socket=%s stop=\"%s --stop --state-dir %s\"",
			      (int)engine, path, s.program, state_dir);
	return r;
}

int abx__local_find(const char *state_dir, bool may_start, const abx__log *log,
		    char **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/agentboxd.sock", state_dir);
	int r;

	if (!path)
		return abx__error_nomem(reterr);
	r = answers(path, NULL);
	if (r < 0) {
		abx__error_errno(reterr, r == -EACCES ? ABX_EDENIED : ABX_EUNAVAILABLE,
				 -r, "reach the local engine at %s", path);
		return r == -EACCES ? ABX_EDENIED : ABX_EUNAVAILABLE;
	}
	if (r == 0) {
		if (!may_start || geteuid() != 0)
			return unavailable(path, may_start, reterr);
		r = start(state_dir, path, log, reterr);
		if (r < 0)
			return r;
	}
	*ret = abx_take(path);
	return ABX_OK;
}

/*
 * agentboxd-supervise.c - keeps agentbox-podd and agentboxd running.
 *
 * The supervisor stays root where it was started as root, reads nothing from the network
 * and only waits. A daemon that dies is started again: at once the first time, then after
 * 0.1 s, doubling up to 5 s, until it has lived for 10 s. The instance is ready once both
 * said so. The supervisor holds a lock on supervise.pid; the kernel names the holder, so
 * what the file says need not be believed. Of two that start at once one has the lock,
 * and the other ends with AGENTBOXD_RUNS_ALREADY.
 */
#include "agentboxd-children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define HEALTHY_MS 10000
#define FAILED_STARTS_MAX 5

enum { PODD, AGENTBOXD, CHILDREN };

typedef struct supervisor {
	const agentboxd_settings *s;
	abx__log log;
	agentboxd_child children[CHILDREN];
	int signals;
	int lock;
	bool stopping;
	bool was_ready;
	unsigned failed_starts;
	int64_t kill_at_ms;
	int status;
} supervisor;

static const abx__log stderr_log = { .write = abx__log_json_line,
				     .userdata = (void *)(intptr_t)STDERR_FILENO,
				     .level = ABX__LOG_INFO };

/* ---- starting and watching ---- */

static void start_child(supervisor *sv, agentboxd_child *c)
{
	int fds[2] = { -1, -1 };

	if (pipe2(fds, O_CLOEXEC) < 0)
		fds[0] = fds[1] = -1;
	c->started_ms = abx__mono_ms();
	c->pid = fork();
	if (c->pid == 0)
		agentboxd_child_become(c->argv, fds[1]);
	if (fds[1] >= 0)
		close(fds[1]);
	if (c->ready_fd >= 0)
		close(c->ready_fd);
	c->ready_fd = fds[0];
	c->is_ready = false;
	if (c->pid < 0) {
		c->pid = 0;
		c->start_at_ms = c->started_ms + BACKOFF_MAX_MS;
		abx__log_error(&sv->log, "cannot fork", "program=%s errno=%d", c->name,
			       errno);
		return;
	}
	abx__log_info(&sv->log, "started", "program=%s pid=%d", c->name, (int)c->pid);
}

static void plan_restart(agentboxd_child *c, int64_t now)
{
	if (now - c->started_ms >= HEALTHY_MS)
		c->backoff_ms = 0;
	c->start_at_ms = now + c->backoff_ms;
	c->backoff_ms = c->backoff_ms ? c->backoff_ms * 2 : BACKOFF_FIRST_MS;
	if (c->backoff_ms > BACKOFF_MAX_MS)
		c->backoff_ms = BACKOFF_MAX_MS;
}

static void send_stop(supervisor *sv, int signum)
{
	for (int i = CHILDREN - 1; i >= 0; i--)
		if (sv->children[i].pid > 0)
			kill(sv->children[i].pid, signum);
}

static void begin_stop(supervisor *sv, int status)
{
	if (sv->stopping)
		return;
	sv->stopping = true;
	sv->status = status;
	sv->kill_at_ms = abx__mono_ms() + AGENTBOXD_END_LIMIT_MS;
	send_stop(sv, SIGTERM);
}

static void on_child_end(supervisor *sv, agentboxd_child *c, int status)
{
	int64_t now = abx__mono_ms();

	c->pid = 0;
	if (sv->stopping)
		return;
	abx__log_warn(&sv->log, "ended", "program=%s %s=%d", c->name,
		      WIFEXITED(status) ? "status" : "signal",
		      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	plan_restart(c, now);
	/* What never worked will not start to: a wrong option, an address in use. */
	if (!sv->was_ready && ++sv->failed_starts >= FAILED_STARTS_MAX) {
		abx__log_error(&sv->log, "giving up: the instance did not start", NULL);
		begin_stop(sv, 1);
	}
}

static void reap(supervisor *sv)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < CHILDREN; i++)
			if (sv->children[i].pid == pid)
				on_child_end(sv, &sv->children[i], status);
}

/* Certificates are read again. Without TLS agentboxd does not listen for it. */
static void reload(supervisor *sv)
{
	const agentboxd_settings *s = sv->s;
	pid_t pid = sv->children[AGENTBOXD].pid;

	for (size_t i = 0; i < s->listen_count && pid > 0; i++) {
		if (s->listen[i].tls) {
			kill(pid, SIGHUP);
			return;
		}
	}
}

static void read_signals(supervisor *sv)
{
	struct signalfd_siginfo info;

	while (read(sv->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(sv);
		else if (info.ssi_signo == SIGHUP && sv->s->daemon)
			reload(sv); /* there is no terminal that could hang up */
		else
			begin_stop(sv, 0);
	}
}

/* Requests that are answered while no Pod can be made are not a start. */
static bool all_ready(const supervisor *sv)
{
	for (int i = 0; i < CHILDREN; i++)
		if (sv->children[i].argc && !sv->children[i].is_ready)
			return false;
	return true;
}

static void read_ready(supervisor *sv, agentboxd_child *c)
{
	char buf[16];
	ssize_t n = read(c->ready_fd, buf, sizeof(buf));

	if (n < 0 && errno == EINTR)
		return;
	close(c->ready_fd);
	c->ready_fd = -1;
	c->is_ready = n > 0;
	if (!all_ready(sv) || sv->was_ready)
		return;
	sv->was_ready = true;
	abx__log_info(&sv->log, "instance is ready", "state_dir=%s", sv->s->state_dir);
	if (sv->s->ready_fd >= 0) {
		if (write(sv->s->ready_fd, "ready\n", 6) < 0)
			abx__log_warn(&sv->log, "nobody waits for the ready notice",
				      NULL);
		close(sv->s->ready_fd);
	}
}

/* Milliseconds until something is due; -1: nothing. */
static int next_wait(const supervisor *sv, int64_t now)
{
	int64_t next = INT64_MAX;

	if (sv->stopping)
		next = sv->kill_at_ms;
	for (int i = 0; i < CHILDREN && !sv->stopping; i++)
		if (sv->children[i].argc && !sv->children[i].pid &&
		    sv->children[i].start_at_ms < next)
			next = sv->children[i].start_at_ms;
	if (next == INT64_MAX)
		return -1;
	return next > now ? (int)(next - now) : 0;
}

static bool any_running(const supervisor *sv)
{
	return sv->children[PODD].pid > 0 || sv->children[AGENTBOXD].pid > 0;
}

static void watch(supervisor *sv)
{
	while (!sv->stopping || any_running(sv)) {
		struct pollfd fds[CHILDREN + 1] = { [CHILDREN] = { .fd = sv->signals,
								   .events = POLLIN } };
		int64_t now = abx__mono_ms();

		for (int i = 0; i < CHILDREN && !sv->stopping; i++) {
			agentboxd_child *c = &sv->children[i];
			if (c->argc && !c->pid && c->start_at_ms <= now)
				start_child(sv, c);
		}
		if (sv->stopping && now >= sv->kill_at_ms) {
			abx__log_error(&sv->log, "daemons did not end in time; killed",
				       NULL);
			send_stop(sv, SIGKILL);
			sv->kill_at_ms = now + AGENTBOXD_END_LIMIT_MS;
		}
		for (int i = 0; i < CHILDREN; i++)
			fds[i] = (struct pollfd){ .fd = sv->children[i].ready_fd,
						  .events = POLLIN };
		if (poll(fds, CHILDREN + 1, next_wait(sv, abx__mono_ms())) <= 0)
			continue;
		for (int i = 0; i < CHILDREN; i++)
			if (fds[i].revents)
				read_ready(sv, &sv->children[i]);
		if (fds[CHILDREN].revents)
			read_signals(sv);
	}
}

/* ---- the lock ---- */

static int take_lock(const agentboxd_settings *s, int *ret_fd, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = agentboxd_lock_path(s);
	ABX_CLEANUP(abx__closep) int fd = -1;
	struct flock lock = agentboxd_lock_whole();
	struct stat st;
	char text[24];
	int len;

	if (!path)
		return abx__error_nomem(reterr);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0 || fstat(fd, &st) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return abx__error_set(reterr, ABX_EDENIED, "%s is not a file of its own",
				      path);
	if (fcntl(fd, F_SETLK, &lock) < 0)
		return abx__error_set(
			reterr, ABX_EEXISTS,
			"an instance of %s runs already; agentboxd --stop ends it",
			s->state_dir);
	len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	/* The lock is what counts; the number is for people, and a full disk may be why
	 * it starts. */
	if (ftruncate(fd, 0) < 0 ||
	    (write(fd, text, (size_t)len) != len && errno != ENOSPC))
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", path);
	*ret_fd = abx_take_fd(fd);
	return ABX_OK;
}

/* ---- the command ---- */

static int prepare(supervisor *sv, const agentboxd_account *account, abx_error **reterr)
{
	const agentboxd_settings *s = sv->s;
	agentboxd_child *podd = &sv->children[PODD],
			*main_child = &sv->children[AGENTBOXD];
	sigset_t set;
	int r = take_lock(s, &sv->lock, reterr);

	if (r < 0)
		return r;
	podd->name = "agentbox-podd";
	main_child->name = "agentboxd";
	podd->ready_fd = main_child->ready_fd = -1;
	if ((strcmp(s->engine, "local") == 0 &&
	     !agentboxd_child_podd(podd, s, account)) ||
	    !agentboxd_child_main(main_child, s, account))
		return abx__error_nomem(reterr);
	/* Left over from a supervisor that was killed: theirs would be in the way. */
	if (!agentboxd_end_listener(s->socket_path, SOCK_STREAM) ||
	    !agentboxd_end_listener(s->podd_socket, SOCK_SEQPACKET))
		return abx__error_set(reterr, ABX_ESTATE,
				      "daemons of %s run and do not end", s->state_dir);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sv->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sv->signals < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "signalfd");
	return ABX_OK;
}

int agentboxd_supervise(const agentboxd_settings *s, const agentboxd_account *account)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	supervisor sv = { .s = s, .log = stderr_log, .signals = -1, .lock = -1 };

	int r;

	signal(SIGPIPE, SIG_IGN);
	r = prepare(&sv, account, &err);
	if (r < 0) {
		abx__log_error(&sv.log, "cannot supervise", "error=\"%s\"",
			       abx_error_message(err));
		sv.status = r == ABX_EEXISTS ? AGENTBOXD_RUNS_ALREADY : 1;
	} else {
		watch(&sv);
	}
	for (int i = 0; i < CHILDREN; i++)
		agentboxd_child_done(&sv.children[i]);
	if (sv.signals >= 0)
		close(sv.signals);
	if (sv.lock >= 0) {
		ABX_CLEANUP(abx__freep) char *path = agentboxd_lock_path(s);

		if (path)
			unlink(path);
		close(sv.lock);
	}
	return sv.status;
}

/*
 * agentboxd-supervise.c - keeps agentbox-podd and agentboxd running, and ends an
 * instance.
 *
 * The supervisor stays root where it was started as root, reads nothing from the network
 * and only waits. A daemon that dies is started again: at once the first time, then after
 * 0.1 s, doubling up to 5 s, until it has lived for 10 s. The instance is ready once both
 * said so. The supervisor holds a lock on supervise.pid; the kernel names the holder, so
 * what the file says need not be believed. Of two that start at once one has the lock,
 * and the other ends with AGENTBOXD_RUNS_ALREADY.
 */
#include "agentboxd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentboxd-tree.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define HEALTHY_MS 10000
#define END_LIMIT_MS 12000
#define FAILED_STARTS_MAX 5
#define ARGS_MAX 128

typedef struct child {
	const char *name;
	char *argv[ARGS_MAX]; /* of our own; NULL: not to be run */
	size_t argc;
	pid_t pid; /* 0: not running */
	int64_t started_ms;
	int64_t start_at_ms;
	int64_t backoff_ms;
	int ready_fd; /* read end; -1 */
	bool is_ready;
} child;

enum { PODD, AGENTBOXD, CHILDREN };

typedef struct supervisor {
	const agentboxd_settings *s;
	abx__log log;
	child children[CHILDREN];
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

/* ---- programs and their arguments ---- */

static char *self_path(void)
{
	char buf[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", buf, sizeof(buf) - 1);

	if (n <= 0)
		return NULL;
	buf[n] = '\0';
	return abx__strdup(buf);
}

/* agentbox-podd lies beside agentboxd in the build tree, and among the programs nobody
 * types in an installation. */
static char *podd_path(const agentboxd_settings *s)
{
	ABX_CLEANUP(abx__freep) char *self = NULL;
	ABX_CLEANUP(abx__freep) char *beside = NULL;
	char *slash;

	if (s->podd_program)
		return abx__strdup(s->podd_program);
	self = self_path();
	slash = self ? strrchr(self, '/') : NULL;
	if (!slash)
		return NULL;
	*slash = '\0';
	beside = abx__strf("%s/agentbox-podd", self);
	if (beside && access(beside, X_OK) == 0)
		return abx_take(beside);
	return abx__strdup(ABX_LIBEXECDIR "/agentbox-podd");
}

/* Takes `text`. */
static bool add_arg(child *c, char *text)
{
	if (!text || c->argc + 1 >= ARGS_MAX) {
		abx__free(text);
		return false;
	}
	c->argv[c->argc++] = text;
	return true;
}

static bool add_pair(child *c, const char *name, const char *value)
{
	return add_arg(c, abx__strdup(name)) && add_arg(c, abx__strdup(value));
}

static bool add_account(child *c, const agentboxd_account *account)
{
	return add_arg(c, abx__strdup("--account")) &&
	       add_arg(c, abx__strf("%u:%u", account->uid, account->gid));
}

static bool podd_args(child *c, const agentboxd_settings *s,
		      const agentboxd_account *account)
{
	bool ok = add_arg(c, podd_path(s)) && add_pair(c, "--state-dir", s->state_dir) &&
		  add_pair(c, "--socket", s->podd_socket) && add_account(c, account);

	for (size_t i = 0; ok && i < s->podd_arg_count; i++)
		ok = add_arg(c, abx__strdup(s->podd_args[i]));
	return ok;
}

static const char *listen_option(const agentboxd_address *a)
{
	return a->tls ? "--tls-listen" : a->e2b_only ? "--e2b-listen" : "--listen";
}

static bool add_addresses(child *c, const agentboxd_settings *s)
{
	bool ok = true, plain = false;

	for (size_t i = 0; ok && i < s->listen_count; i++) {
		const agentboxd_address *a = &s->listen[i];

		plain = plain || !a->tls;
		/* The default address stays the child's own default, which it may do
		 * without. */
		if (a->fallback)
			continue;
		ok = add_arg(c, abx__strdup(listen_option(a))) &&
		     add_arg(c, abx__strf(strchr(a->ip, ':') ? "[%s]:%u" : "%s:%u", a->ip,
					  a->port));
	}
	return ok && !plain ? add_pair(c, "--listen", "none") : ok;
}

static bool add_tls(child *c, const agentboxd_settings *s)
{
	if (!add_pair(c, "--domain", s->domain))
		return false;
	return !s->tls_cert || (add_pair(c, "--tls-cert", s->tls_cert) &&
				add_pair(c, "--tls-key", s->tls_key));
}

static bool add_console(child *c, const agentboxd_settings *s)
{
	return (!s->jwt_secret_file ||
		add_pair(c, "--jwt-secret-file", s->jwt_secret_file)) &&
	       (!s->console_url || add_pair(c, "--console-url", s->console_url));
}

static bool agentboxd_args(child *c, const agentboxd_settings *s,
			   const agentboxd_account *account)
{
	bool ok = add_arg(c, self_path()) && add_pair(c, "--state-dir", s->state_dir) &&
		  add_pair(c, "--socket", s->socket_path) &&
		  add_pair(c, "--podd-socket", s->podd_socket) &&
		  add_pair(c, "--cluster-id", s->cluster_id) &&
		  add_pair(c, "--engine", s->engine) && add_addresses(c, s) &&
		  add_tls(c, s) && add_console(c, s);

	if (ok && geteuid() == 0)
		ok = add_account(c, account);
	if (ok && s->allow_remote)
		ok = add_arg(c, abx__strdup("--allow-remote"));
	if (ok && s->with_base)
		ok = add_arg(c, abx__strdup("--with-base"));
	if (ok && s->debug)
		ok = add_arg(c, abx__strdup("--debug"));
	return ok;
}

static void child_done(child *c)
{
	for (size_t i = 0; i < c->argc; i++)
		abx__free(c->argv[i]);
	if (c->ready_fd >= 0)
		close(c->ready_fd);
}

/* ---- starting and watching ---- */

/* In the child, between fork and exec. */
static void become(char **argv, int ready_fd)
{
	char number[16];
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0); /* a terminal's ^C is the supervisor's to pass on */
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (ready_fd >= 0) {
		size_t n = 0;

		fcntl(ready_fd, F_SETFD, 0);
		snprintf(number, sizeof(number), "%d", ready_fd);
		while (argv[n])
			n++;
		argv[n++] = (char *)"--ready-fd";
		argv[n++] = number;
		argv[n] = NULL;
	}
	execv(argv[0], argv);
	_exit(127);
}

static void start_child(supervisor *sv, child *c)
{
	int fds[2] = { -1, -1 };

	if (pipe2(fds, O_CLOEXEC) < 0)
		fds[0] = fds[1] = -1;
	c->started_ms = abx__mono_ms();
	c->pid = fork();
	if (c->pid == 0)
		become(c->argv, fds[1]);
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

static void plan_restart(child *c, int64_t now)
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
	sv->kill_at_ms = abx__mono_ms() + END_LIMIT_MS;
	send_stop(sv, SIGTERM);
}

static void on_child_end(supervisor *sv, child *c, int status)
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

static void read_ready(supervisor *sv, child *c)
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
			child *c = &sv->children[i];
			if (c->argc && !c->pid && c->start_at_ms <= now)
				start_child(sv, c);
		}
		if (sv->stopping && now >= sv->kill_at_ms) {
			abx__log_error(&sv->log, "daemons did not end in time; killed",
				       NULL);
			send_stop(sv, SIGKILL);
			sv->kill_at_ms = now + END_LIMIT_MS;
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

static char *lock_path(const agentboxd_settings *s)
{
	return abx__strf("%s/supervise.pid", s->state_dir);
}

static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

static int take_lock(const agentboxd_settings *s, int *ret_fd, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = lock_path(s);
	ABX_CLEANUP(abx__closep) int fd = -1;
	struct flock lock = whole_file();
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

/* Who holds it; 0: nobody. */
static pid_t lock_holder(const agentboxd_settings *s)
{
	ABX_CLEANUP(abx__freep) char *path = lock_path(s);
	ABX_CLEANUP(abx__closep)
	int fd = path ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct flock lock = whole_file();

	if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid;
}

/* ---- what runs without a supervisor ---- */

/* The state directory is the account's: a socket in it may be a link to somebody else's.
 * Only our own programs are ended. */
static bool is_ours(pid_t pid)
{
	char path[40], exe[PATH_MAX];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n <= 0)
		return false;
	exe[n] = '\0';
	base = strrchr(exe, '/');
	base = base ? base + 1 : exe;
	return abx__str_starts(base, "agentboxd") ||
	       abx__str_starts(base, "agentbox-podd");
}

/* The process that listens on the Unix socket of that type; 0: none. */
static pid_t listener_of(const char *path, int type)
{
	ABX_CLEANUP(abx__closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0 ||
	    abx__str_copy(address.sun_path, sizeof(address.sun_path), path) < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid > 1 ? peer.pid : 0;
}

static void nap(void)
{
	const struct timespec t = { .tv_nsec = 20000000 };

	nanosleep(&t, NULL);
}

/* SIGTERM, and SIGKILL for what does not listen to it. */
static bool end_process(pid_t pid)
{
	int64_t kill_at = abx__mono_ms() + 2 * END_LIMIT_MS,
		give_up = kill_at + END_LIMIT_MS;
	bool killed = false;

	if (kill(pid, SIGTERM) < 0)
		return errno == ESRCH;
	while (kill(pid, 0) == 0) {
		if (!killed && abx__mono_ms() > kill_at) {
			killed = true;
			kill(pid, SIGKILL);
		}
		if (abx__mono_ms() > give_up)
			return false;
		nap();
	}
	return true;
}

static bool end_listener(const char *path, int type)
{
	pid_t pid = listener_of(path, type);

	return pid == 0 || (is_ours(pid) && end_process(pid));
}

/* ---- the two commands ---- */

static int prepare(supervisor *sv, const agentboxd_account *account, abx_error **reterr)
{
	const agentboxd_settings *s = sv->s;
	child *podd = &sv->children[PODD], *main_child = &sv->children[AGENTBOXD];
	sigset_t set;
	int r = take_lock(s, &sv->lock, reterr);

	if (r < 0)
		return r;
	podd->name = "agentbox-podd";
	main_child->name = "agentboxd";
	podd->ready_fd = main_child->ready_fd = -1;
	if ((strcmp(s->engine, "local") == 0 && !podd_args(podd, s, account)) ||
	    !agentboxd_args(main_child, s, account))
		return abx__error_nomem(reterr);
	/* Left over from a supervisor that was killed: theirs would be in the way. */
	if (!end_listener(s->socket_path, SOCK_STREAM) ||
	    !end_listener(s->podd_socket, SOCK_SEQPACKET))
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
		child_done(&sv.children[i]);
	if (sv.signals >= 0)
		close(sv.signals);
	if (sv.lock >= 0) {
		ABX_CLEANUP(abx__freep) char *path = lock_path(s);

		if (path)
			unlink(path);
		close(sv.lock);
	}
	return sv.status;
}

static bool is_dir(const char *parent, const char *name)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/%s", parent, name);
	struct stat st;

	return path && lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* podd ends every Pod of the directory and what belongs to them. */
static int end_pods(const agentboxd_settings *s, const agentboxd_account *account)
{
	child c = { .name = "agentbox-podd", .ready_fd = -1 };
	int status = 0;

	if (!is_dir(s->state_dir, "podd"))
		return 0;
	if (!podd_args(&c, s, account) || !add_arg(&c, abx__strdup("--purge"))) {
		child_done(&c);
		return 1;
	}
	c.pid = fork();
	if (c.pid == 0)
		become(c.argv, -1);
	if (c.pid < 0 || waitpid(c.pid, &status, 0) < 0)
		status = 1;
	child_done(&c);
	if (status != 0)
		fprintf(stderr,
			"agentboxd: agentbox-podd --purge failed; Pods of %s may be "
			"left\n",
			s->state_dir);
	return status != 0;
}

/* Only what looks like ours is removed. */
static int remove_state(const agentboxd_settings *s)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (agentboxd_tree_remove(s->state_dir, &err) == ABX_OK)
		return 0;
	fprintf(stderr, "agentboxd: %s\n", abx_error_message(err));
	return 1;
}

int agentboxd_stop(const agentboxd_settings *s)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	agentboxd_account account;
	struct stat st;
	pid_t pid;

	if (lstat(s->state_dir, &st) < 0 && errno == ENOENT)
		return 0;
	if (!agentboxd_tree_is_ours(s->state_dir)) {
		fprintf(stderr, "agentboxd: %s is not a state directory of agentboxd\n",
			s->state_dir);
		return 1;
	}
	pid = lock_holder(s);
	if ((pid > 1 && !end_process(pid)) ||
	    !end_listener(s->socket_path, SOCK_STREAM) ||
	    !end_listener(s->podd_socket, SOCK_SEQPACKET)) {
		fprintf(stderr, "agentboxd: daemons of %s do not end\n", s->state_dir);
		return 1;
	}
	if (agentboxd_account_find(s->account, &account, &err) < 0) {
		fprintf(stderr, "agentboxd: %s\n", abx_error_message(err));
		return 1;
	}
	if (end_pods(s, &account) != 0)
		return 1;
	return s->purge ? remove_state(s) : 0;
}

/*
 * agentboxd-stop.c - ends an instance: its supervisor, daemons that outlived one, Pods,
 * and the directory.
 *
 * The kernel names the lock's holder and a socket's listener. The state directory is the
 * account's, so only what runs our own programs is ended.
 */
#include "agentboxd-children.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
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

char *agentboxd_lock_path(const agentboxd_settings *s)
{
	return abx__strf("%s/supervise.pid", s->state_dir);
}

struct flock agentboxd_lock_whole(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

/* Who holds it; 0: nobody. */
static pid_t lock_holder(const agentboxd_settings *s)
{
	ABX_CLEANUP(abx__freep) char *path = agentboxd_lock_path(s);
	ABX_CLEANUP(abx__closep)
	int fd = path ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct flock lock = agentboxd_lock_whole();

	if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid;
}

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

/* True when it ended within the time. */
static bool wait_end(int pidfd, int64_t limit_ms)
{
	int64_t until = abx__mono_ms() + limit_ms, left;
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	while ((left = until - abx__mono_ms()) > 0)
		if (poll(&p, 1, (int)left) > 0)
			return true;
	return false;
}

/* SIGTERM, and SIGKILL for what does not listen to it. A process that is none of ours is
 * left alone; its number may be another's by now, the descriptor is not. */
static bool end_process(pid_t pid)
{
	ABX_CLEANUP(abx__closep) int fd = pidfd_open(pid, 0);

	if (fd < 0)
		return errno == ESRCH;
	if (!is_ours(pid))
		return wait_end(fd, 1);
	if (pidfd_send_signal(fd, SIGTERM, NULL, 0) < 0)
		return errno == ESRCH;
	if (wait_end(fd, 2 * AGENTBOXD_END_LIMIT_MS))
		return true;
	pidfd_send_signal(fd, SIGKILL, NULL, 0);
	return wait_end(fd, AGENTBOXD_END_LIMIT_MS);
}

bool agentboxd_end_listener(const char *path, int type)
{
	pid_t pid = listener_of(path, type);

	return pid == 0 || end_process(pid);
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
	agentboxd_child c = { .name = "agentbox-podd", .ready_fd = -1 };
	int status = 0;

	if (!is_dir(s->state_dir, "podd"))
		return 0;
	if (!agentboxd_child_podd(&c, s, account) ||
	    !agentboxd_child_add(&c, abx__strdup("--purge"))) {
		agentboxd_child_done(&c);
		return 1;
	}
	c.pid = fork();
	if (c.pid == 0)
		agentboxd_child_become(c.argv, -1);
	if (c.pid < 0 || waitpid(c.pid, &status, 0) < 0)
		status = 1;
	agentboxd_child_done(&c);
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
	    !agentboxd_end_listener(s->socket_path, SOCK_STREAM) ||
	    !agentboxd_end_listener(s->podd_socket, SOCK_SEQPACKET)) {
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

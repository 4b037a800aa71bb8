/*
 * spawn.c - clone, become the user, exec.
 *
 * Raw system calls for the ids: glibc's wrappers would change every thread of ours. All
 * signals are blocked around the clone, so no handler of ours can run in the child, which
 * shares our memory.
 */
#include "envd/spawn.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)

struct child {
	const abx__spawn *spawn;
	sigset_t mask; /* to restore */
	volatile int error;
	volatile int step;
};

/* The parent waits while the child runs, so one stack serves every call. */
static char stack[STACK_BYTES] __attribute__((aligned(64)));

static int fail(struct child *child, enum abx__spawn_step step)
{
	child->step = step;
	child->error = errno;
	return 127;
}

static void reset_signals(const sigset_t *mask)
{
	struct sigaction act = { .sa_handler = SIG_DFL };

	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			sigaction(sig, &act, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

static int become_user(const abx__spawn *spawn)
{
	/* Without root's rights the daemon serves its own account only. */
	if (geteuid() != 0 && geteuid() == spawn->uid)
		return 0;
	if (syscall(SYS_setgroups, spawn->group_count, spawn->groups) < 0 ||
	    syscall(SYS_setresgid, spawn->gid, spawn->gid, spawn->gid) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, spawn->uid, spawn->uid, spawn->uid);
}

/* execvp(3)'s rule: go on after "not here", remember "may not". */
static void exec_files(const abx__spawn *spawn)
{
	int denied = 0;

	for (size_t i = 0; spawn->files[i]; i++) {
		execve(spawn->files[i], spawn->argv, spawn->envp);
		if (errno == EACCES)
			denied = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			return;
	}
	if (denied)
		errno = denied;
}

__attribute__((no_sanitize("address", "undefined"))) static int run_child(void *arg)
{
	struct child *child = arg;
	const abx__spawn *spawn = child->spawn;

	for (int fd = 0; fd < 3; fd++)
		if (dup2(spawn->fds[fd], fd) < 0)
			_exit(fail(child, ABX__SPAWN_STDIO));
	setsid();
	if (spawn->has_tty && ioctl(0, TIOCSCTTY, 0) < 0)
		_exit(fail(child, ABX__SPAWN_STDIO));
	if (spawn->nofile)
		setrlimit(RLIMIT_NOFILE, spawn->nofile);
	if (become_user(spawn) < 0)
		_exit(fail(child, ABX__SPAWN_USER));
	if (chdir(spawn->cwd) < 0)
		_exit(fail(child, ABX__SPAWN_CWD));
	reset_signals(&child->mask);
	exec_files(spawn);
	_exit(fail(child, ABX__SPAWN_EXEC));
}

pid_t abx__spawn_run(const abx__spawn *spawn, enum abx__spawn_step *ret_step)
{
	struct child child = { .spawn = spawn };
	sigset_t all;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &child.mask);
	pid = clone(run_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
		    &child);
	if (pid < 0) {
		child.error = errno;
		child.step = ABX__SPAWN_CLONE;
	} else if (child.error) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	sigprocmask(SIG_SETMASK, &child.mask, NULL);
	if (!child.error)
		return pid;
	*ret_step = (enum abx__spawn_step)child.step;
	return -child.error;
}

/*
 * child.c - podd's children by pid. podd is a subreaper, so a container's init becomes
 * its child when crun is gone.
 */
#include "engine/podd/podd.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void abx__child_add(struct podd *podd, struct child *child)
{
	HASH_ADD_INT(podd->children, pid, child);
}

void abx__child_forget(struct podd *podd, struct child *child)
{
	struct child *found;

	if (!child->pid)
		return;
	HASH_FIND_INT(podd->children, &child->pid, found);
	if (found == child)
		HASH_DEL(podd->children, child);
	child->pid = 0;
}

/*
 * A container's init becomes podd's child before crun has ended, and may end before it
 * too: then its status comes first and its pid, from crun's file, later.
 */
void abx__child_note_orphan(struct podd *podd, pid_t pid, int status)
{
	unsigned i = podd->orphan_next++ % ABX__ORPHAN_MAX;

	podd->orphans[i].pid = pid;
	podd->orphans[i].status = status;
}

bool abx__child_orphan(struct podd *podd, pid_t pid, int *ret_status)
{
	for (unsigned i = 0; i < ABX__ORPHAN_MAX; i++)
		if (podd->orphans[i].pid == pid) {
			*ret_status = podd->orphans[i].status;
			podd->orphans[i].pid = 0;
			return true;
		}
	return false;
}

/* In the child; what podd did not finish it must not leave running. */
static void settle(pid_t parent)
{
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	/* The flag does not pass to a container's init. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

pid_t abx__child_fork(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid == 0)
		settle(parent);
	return pid;
}

pid_t abx__child_fork_into(int cgroup_fd, bool *ret_inside)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP,
				   .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)cgroup_fd };
	pid_t parent = getpid(), pid = -1;

	/* One thread: nothing that fork(3) would see to. */
	if (cgroup_fd >= 0)
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	*ret_inside = pid >= 0;
	if (pid < 0)
		return abx__child_fork();
	if (pid == 0)
		settle(parent);
	return pid;
}

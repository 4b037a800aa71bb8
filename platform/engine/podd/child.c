/*
 * child.c - podd's children by pid. podd is a subreaper, so a container's init becomes
 * its child when crun is gone.
 */
#include "engine/podd/podd.h"

#include <signal.h>
#include <sys/prctl.h>
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

pid_t abx__child_fork(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	/* What podd did not finish it must not leave running. The flag does not pass to a
	 * container's init. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

/*
 * spawn.h - one program started as one user, at about the cost of posix_spawn(3).
 *
 * The child shares our memory until its execve (CLONE_VM | CLONE_VFORK), so nothing is
 * copied and every failure comes back as an errno with the step it belongs to. It makes
 * system calls only: no locks, no allocation.
 *
 * The program leads a session and a process group of its own: what it starts can be
 * signalled together, and a signal for the daemon's group does not reach it.
 */
#ifndef ABX_ENVD_SPAWN_H
#define ABX_ENVD_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

enum abx__spawn_step {
	ABX__SPAWN_CLONE,
	ABX__SPAWN_STDIO,
	ABX__SPAWN_USER,
	ABX__SPAWN_CWD,
	ABX__SPAWN_EXEC,
};

typedef struct abx__spawn {
	const char *const *files; /* paths to try in turn, NULL-terminated: the command
				     found along PATH */
	char *const *argv;
	char *const *envp;
	const char *cwd;
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t group_count;
	const struct rlimit *nofile; /* what the program gets; NULL: what we have */
	int fds[3];                  /* become 0, 1 and 2; each must be above 2 */
	bool has_tty;                /* fds[0] becomes the controlling terminal */
} abx__spawn;

/* The pid, or a negative errno with *ret_step set. SIGCHLD tells the end. */
pid_t abx__spawn_run(const abx__spawn *spawn, enum abx__spawn_step *ret_step);

#endif

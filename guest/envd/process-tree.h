/*
 * process-tree.h - a command and everything it started, as one thing to signal.
 *
 * Every command leads a session of its own. To its tree belong who is in that session and
 * whoever descends from one of those, so that `timeout`, an interactive shell's jobs and
 * other makers of groups are reached, too. What left its parents and its session behind
 * (a daemon) is not part of it.
 */
#ifndef ABX_ENVD_PROCESS_TREE_H
#define ABX_ENVD_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Sends `sig` to the tree of `leader`, which must not have been reaped. A negative errno
   when the leader could not be signalled. Without /proc only its process group is
   reached. */
int abx__process_tree_signal(pid_t leader, int sig);

/* One line of /proc/PID/stat: what the tree is made from. False when it is not one. */
typedef struct abx__process_stat {
	pid_t pid, parent, session;
	bool is_dead; /* waits to be reaped */
} abx__process_stat;
bool abx__process_stat_parse(const char *line, abx__process_stat *ret);

#endif

/*
 * agentboxd-children.h - the two daemons as programs to run, and an instance's lock and
 * sockets, by which those who run them are found.
 */
#ifndef AGENTBOXD_CHILDREN_H
#define AGENTBOXD_CHILDREN_H

#include <fcntl.h>
#include <stdint.h>

#include "agentboxd.h"

#define AGENTBOXD_CHILD_ARGS_MAX 128
/* What a daemon may take to end by itself. */
#define AGENTBOXD_END_LIMIT_MS 12000

typedef struct agentboxd_child {
	const char *name;
	char *argv[AGENTBOXD_CHILD_ARGS_MAX]; /* of our own; NULL: not to be run */
	size_t argc;
	pid_t pid; /* 0: not running */
	int64_t started_ms;
	int64_t start_at_ms;
	int64_t backoff_ms;
	int ready_fd; /* read end; -1 */
	bool is_ready;
} agentboxd_child;

/* Fill argv. False: out of memory. */
bool agentboxd_child_podd(agentboxd_child *c, const agentboxd_settings *s,
			  const agentboxd_account *account);
bool agentboxd_child_main(agentboxd_child *c, const agentboxd_settings *s,
			  const agentboxd_account *account);
/* One more argument; takes `text`, which may be NULL. */
bool agentboxd_child_add(agentboxd_child *c, char *text);
void agentboxd_child_done(agentboxd_child *c);
/* Between fork and exec: becomes the program. `ready_fd` is passed on; -1: none. */
void agentboxd_child_become(char **argv, int ready_fd);

/* The supervisor holds a lock on this file. */
char *agentboxd_lock_path(const agentboxd_settings *s);
struct flock agentboxd_lock_whole(void);
/* Ends the daemon of ours that listens on this Unix socket; false: it does not end, or is
 * none of ours. */
bool agentboxd_end_listener(const char *path, int type);

#endif

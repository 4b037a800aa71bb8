/*
 * process-tree.c - the tree as /proc shows it. SIGKILL looks again after each round,
 * since what is being killed may still fork.
 */
#include "envd/process-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#define KILL_ROUNDS 3
#define MAX_PIDS 65536

struct member {
	abx__process_stat stat;
	bool is_in;
};

struct snapshot {
	struct member *items;
	size_t count, size;
};

static void snapshot_done(struct snapshot *snapshot)
{
	abx__free(snapshot->items);
}

static bool read_number(const char **at, int *ret)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(*at, &end, 10);
	if (end == *at || errno || value < INT32_MIN || value > INT32_MAX)
		return false;
	*at = end;
	*ret = (int)value;
	return true;
}

/* "PID (COMM) STATE PPID PGRP SESSION ...": COMM may hold anything, so its end is the
 * last parenthesis. */
bool abx__process_stat_parse(const char *line, abx__process_stat *ret)
{
	const char *at = line, *end = strrchr(line, ')');
	int pid, parent, group, session;
	char state;

	if (!end || !read_number(&at, &pid) || end[1] != ' ' || !end[2])
		return false;
	state = end[2];
	at = end + 3;
	if (!read_number(&at, &parent) || !read_number(&at, &group) ||
	    !read_number(&at, &session))
		return false;
	*ret = (abx__process_stat){ .pid = pid,
				    .parent = parent,
				    .session = session,
				    .is_dead = state == 'Z' || state == 'X' };
	return true;
}

static bool read_stat(int proc, const char *name, abx__process_stat *ret)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	char path[64], line[512];
	ssize_t n;

	snprintf(path, sizeof(path), "%.20s/stat", name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (n <= 0)
		return false;
	line[n] = '\0';
	return abx__process_stat_parse(line, ret);
}

static int add(struct snapshot *snapshot, const abx__process_stat *stat)
{
	if (snapshot->count == snapshot->size) {
		size_t size = snapshot->size ? snapshot->size * 2 : 64;
		struct member *items =
			abx__reallocarray(snapshot->items, size, sizeof(*items));

		if (!items)
			return -1;
		snapshot->items = items;
		snapshot->size = size;
	}
	snapshot->items[snapshot->count++] = (struct member){ .stat = *stat };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct member *left = a, *right = b;

	return left->stat.pid < right->stat.pid ? -1 : left->stat.pid > right->stat.pid;
}

static void take_snapshot(struct snapshot *snapshot)
{
	DIR *dir = opendir("/proc");
	abx__process_stat stat;
	struct dirent *d;

	snapshot->count = 0;
	while (dir && snapshot->count < MAX_PIDS && (d = readdir(dir)))
		if (*d->d_name >= '1' && *d->d_name <= '9' &&
		    read_stat(dirfd(dir), d->d_name, &stat) && add(snapshot, &stat) < 0)
			break;
	if (dir)
		closedir(dir);
	if (snapshot->count > 1)
		qsort(snapshot->items, snapshot->count, sizeof(*snapshot->items),
		      compare);
}

static bool parent_is_in(const struct snapshot *snapshot, const abx__process_stat *stat)
{
	struct member key = { .stat.pid = stat->parent };
	const struct member *parent =
		bsearch(&key, snapshot->items, snapshot->count, sizeof(key), compare);

	return parent && parent->is_in;
}

/* Parents mostly have the smaller numbers, so this is one round, or two. */
static void mark_members(struct snapshot *snapshot, pid_t leader)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < snapshot->count; i++) {
			struct member *member = &snapshot->items[i];

			if (member->is_in || (member->stat.pid != leader &&
					      member->stat.session != leader &&
					      !parent_is_in(snapshot, &member->stat)))
				continue;
			member->is_in = true;
			changed = true;
		}
	}
}

/* True when there was somebody left to signal besides the leader. */
static bool signal_members(const struct snapshot *snapshot, pid_t leader, int sig)
{
	bool any = false;

	for (size_t i = 0; i < snapshot->count; i++) {
		const struct member *member = &snapshot->items[i];

		if (!member->is_in || member->stat.is_dead ||
		    member->stat.pid == leader || member->stat.pid == getpid())
			continue;
		any |= kill(member->stat.pid, sig) == 0;
	}
	return any;
}

int abx__process_tree_signal(pid_t leader, int sig)
{
	ABX_CLEANUP(snapshot_done) struct snapshot snapshot = { 0 };
	int r = 0;

	/* Halted it starts nobody between the look and the signal, and wakes up to it. */
	if (sig != SIGKILL)
		kill(leader, SIGSTOP);
	for (int round = 0; round < (sig == SIGKILL ? KILL_ROUNDS : 1); round++) {
		take_snapshot(&snapshot);
		mark_members(&snapshot, leader);
		/* The leader first: a shell that saw its child die would go on. */
		if (round == 0 && kill(leader, sig) < 0)
			r = -errno;
		if (!signal_members(&snapshot, leader, sig) && snapshot.count > 0)
			break;
	}
	if (snapshot.count == 0)
		kill(-leader, sig);
	if (sig != SIGKILL)
		kill(leader, SIGCONT);
	return r;
}

/*
 * memory.c - the most that processes had in memory: VmHWM since the mark was cleared.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long memory_peak_kib(const char *pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld kB", &kib) != 1)
			kib = -1;
	fclose(f);
	return kib;
}

void memory_clear_peak(const char *pid)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/clear_refs", pid);
	f = fopen(path, "we");
	if (!f)
		return;
	fputs("5\n", f);
	fclose(f);
}

long memory_daemons_kib(const char *pids, int clear)
{
	char *list = strdup(pids), *save = NULL;
	long sum = 0;

	for (char *pid = strtok_r(list, ",", &save); pid;
	     pid = strtok_r(NULL, ",", &save)) {
		long kib = memory_peak_kib(pid);

		if (kib < 0)
			rig_die("no process %s", pid);
		sum += kib;
		if (clear)
			memory_clear_peak(pid);
	}
	free(list);
	return sum;
}

/* Of all Pods the envd that has grown most is the one that streams. */
static long envd_most_kib;
static int envd_clear;

static void look_at_envd(long number)
{
	char path[64], pid[32], comm[32] = "";
	FILE *f;
	long kib;

	snprintf(path, sizeof(path), "/proc/%ld/comm", number);
	snprintf(pid, sizeof(pid), "%ld", number);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(comm, sizeof(comm), f))
		comm[0] = '\0';
	fclose(f);
	if (strcmp(comm, "envd\n") != 0)
		return;
	if (envd_clear)
		memory_clear_peak(pid);
	kib = memory_peak_kib(pid);
	envd_most_kib = kib > envd_most_kib ? kib : envd_most_kib;
}

long memory_envd_kib(const char *cgroup, int clear)
{
	envd_most_kib = 0;
	envd_clear = clear;
	cgroup_each(cgroup, look_at_envd);
	return envd_most_kib;
}

/*
 * soak-flat.c - what processes hold over time. Flat is: the straight line that fits the
 * samples of the last two thirds best grows by no more than a process may, from the
 * first to the last of them, in PSS, RSS and descriptors alike. What a process keeps on
 * purpose of each sandbox that ended is allowed beside that.
 */
#include "soak.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROCESSES 32
#define MAX_SAMPLES 8192

enum { PSS, RSS, FDS, KINDS };

typedef struct held {
	char name[32];
	pid_t pid;
	soak_limits limits;
	int is_gone;
	int count;
	float at[KINDS][MAX_SAMPLES];
} held;

static held processes[MAX_PROCESSES];
static int process_count;
static float minutes[MAX_SAMPLES];
static long ends[MAX_SAMPLES]; /* of sandboxes, so far */
static int sample_count;

void soak_flat_add(const char *name, pid_t pid, const soak_limits *limits)
{
	held *h;

	if (process_count == MAX_PROCESSES)
		rig_die("soak: more than %d processes to look at", MAX_PROCESSES);
	h = &processes[process_count++];
	snprintf(h->name, sizeof(h->name), "%s", name);
	h->pid = pid;
	h->limits = *limits;
}

static long rss_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld kB", &kib) != 1)
			kib = -1;
	fclose(f);
	return kib;
}

static int descriptors(pid_t pid)
{
	char path[64];
	int count = -2; /* "." and ".." */
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

void soak_flat_sample(double minute, long ended)
{
	if (sample_count == MAX_SAMPLES)
		return;
	for (int i = 0; i < process_count; i++) {
		held *h = &processes[i];
		long pss = process_pss_kib(h->pid), rss = rss_kib(h->pid);
		int fds = descriptors(h->pid);

		h->is_gone |= pss < 0 || rss < 0 || fds < 0;
		if (h->is_gone)
			continue;
		h->at[PSS][sample_count] = (float)pss;
		h->at[RSS][sample_count] = (float)rss;
		h->at[FDS][sample_count] = (float)fds;
		h->count++;
	}
	ends[sample_count] = ended;
	minutes[sample_count++] = (float)minute;
}

/* The slope of the least squares' line through the samples from `from` on. */
static double slope(const float *values, int from)
{
	double n = sample_count - from, x = 0, y = 0, xx = 0, xy = 0;

	for (int i = from; i < sample_count; i++) {
		x += (double)minutes[i];
		y += (double)values[i];
		xx += (double)minutes[i] * (double)minutes[i];
		xy += (double)minutes[i] * (double)values[i];
	}
	return n * xx - x * x > 0 ? (n * xy - x * y) / (n * xx - x * x) : 0;
}

static double mean(const float *values, int from, int to)
{
	double sum = 0;

	for (int i = from; i < to; i++)
		sum += (double)values[i];
	return to > from ? sum / (to - from) : 0;
}

static int judge_one(const held *h)
{
	static const char *const units[KINDS] = { "PSS KiB", "RSS KiB", "descriptors" };
	int from = sample_count / 3, tenth = sample_count / 10 + 1, bad = 0;
	long ended = ends[sample_count - 1] - ends[from];
	double window = (double)(minutes[sample_count - 1] - minutes[from]);

	for (int kind = 0; kind < KINDS; kind++) {
		double most = kind == FDS ? h->limits.descriptors
					  : h->limits.kib +
						    h->limits.kib_per_end * (double)ended;
		double per_minute = slope(h->at[kind], from);
		int is_bad = per_minute * window > most;

		printf("%-20s %-12s %10.0f %10.0f %10.0f %12.2f %10.1f %8.0f%s\n",
		       kind == 0 ? h->name : "", units[kind], mean(h->at[kind], 0, tenth),
		       mean(h->at[kind], from, from + tenth),
		       mean(h->at[kind], sample_count - tenth, sample_count), per_minute,
		       per_minute * window, most, is_bad ? "   <-- not flat" : "");
		bad |= is_bad;
	}
	return bad;
}

int soak_flat_judge(void)
{
	int bad = 0;

	if (sample_count < 12)
		rig_die("soak: %d samples are too few to judge by", sample_count);
	printf("\n%-20s %-12s %10s %10s %10s %12s %10s %8s\n", "process", "holds",
	       "at first", "at 1/3", "at last", "per minute", "grown by", "at most");
	for (int i = 0; i < process_count; i++) {
		if (processes[i].is_gone) {
			printf("%-20s ended in the middle   <-- not flat\n",
			       processes[i].name);
			bad++;
			continue;
		}
		bad += judge_one(&processes[i]);
	}
	return bad;
}

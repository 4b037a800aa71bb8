/*
 * soak.c - 32 clients at mixed work, each a process, while we look at what the daemons,
 * the residents' envds and the residents' clients hold.
 *
 *     bench-soak URL KEY STATE_DIR CGROUP PIDS ENV [MINUTES [PAUSE_MS [SEED]]]
 *
 * CGROUP is the instance's cgroup folder, PIDS "NAME=PID,..." of its daemons. Exit status
 * 1 when an act failed, when a process is not flat, or when more is left at the end than
 * was there before the first client.
 */
#include "soak.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#define CLIENTS 32
#define SAMPLE_MS 5000
#define WARM_UP_SHARE 10 /* of the time: a tenth, before the first sample */
#define END_MS 90000     /* the last acts, and the idle time of what is left behind */

typedef struct soak {
	bench_rig rig;
	const char *cgroup, *env;
	soak_shared *shared;
	pid_t clients[CLIENTS];
	unsigned seed, pause_ms, lives;
	int notes[2];
	int act_create;
	long done[64], failed[64];
} soak;

/* ---- clients ---- */

static void start_client(soak *s, unsigned number)
{
	pid_t pid = fork();

	if (pid < 0)
		rig_die("soak: fork: %s", strerror(errno));
	s->lives++;
	if (pid == 0) {
		const soak_client client = {
			.rig = &s->rig,
			.env = s->env,
			.shared = s->shared,
			.number = number,
			.seed = s->seed + s->lives * 1000,
			.pause_ms = s->pause_ms,
			.notes_fd = s->notes[1],
		};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		soak_client_run(&client);
	}
	s->clients[number] = pid;
}

/* Those that vanished come anew; anything but a clean end is a failure. */
static void reap_clients(soak *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < CLIENTS; i++) {
			if (s->clients[i] != pid)
				continue;
			s->clients[i] = 0;
			if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
				rig_die("soak: client %u ended with status %d", i,
					status);
			if (!s->shared->is_ending)
				start_client(s, i);
		}
}

static void read_notes(soak *s, double minute)
{
	soak_note note;

	while (read(s->notes[0], &note, sizeof(note)) == (ssize_t)sizeof(note)) {
		s->done[note.act]++;
		if (!note.has_failed)
			continue;
		s->failed[note.act]++;
		printf("failed at minute %.2f: %s: %s\n", minute, soak_act_name(note.act),
		       note.text);
		fflush(stdout);
	}
}

/* Looks after the clients for so long. */
static void attend(soak *s, double begun_ms, double for_ms)
{
	double until = rig_now_ms() + for_ms;
	struct pollfd p = { .fd = s->notes[0], .events = POLLIN };

	while (rig_now_ms() < until) {
		poll(&p, 1, 100);
		read_notes(s, (rig_now_ms() - begun_ms) / 60000);
		reap_clients(s);
	}
}

/* ---- who is looked at ---- */

/* agentboxd keeps a record of each of the last 10,000 sandboxes that ended
 * (control/history.h). The descriptors are those of calls under way. */
static const soak_limits of_daemons = { 2048, 16, 0.8 }, of_envds = { 512, 16, 0 },
			 of_clients = { 512, 4, 0 };

static int resident_envds;

/* Whether a process is an envd; its parent, too. */
static int is_envd(long pid, long *ret_parent)
{
	char path[64], comm[32] = "";
	int found;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	found = fscanf(f, "%*d (%31[^)]) %*c %ld", comm, ret_parent) == 2 &&
		strcmp(comm, "envd") == 0;
	fclose(f);
	return found;
}

/* A child of envd is an envd, too, until it has become the command. */
static void add_resident_envd(long pid)
{
	char path[96];
	long parent, above;

	snprintf(path, sizeof(path), "/proc/%ld/root/tmp/soak-resident", pid);
	if (access(path, F_OK) < 0 || !is_envd(pid, &parent) || is_envd(parent, &above))
		return;
	snprintf(path, sizeof(path), "envd %d", ++resident_envds);
	soak_flat_add(path, (pid_t)pid, &of_envds);
}

static void add_daemons(const char *list)
{
	char *copy = strdup(list), *save = NULL;

	for (char *one = strtok_r(copy, ",", &save); one;
	     one = strtok_r(NULL, ",", &save)) {
		char *pid = strchr(one, '=');

		if (!pid)
			rig_die("soak: not NAME=PID: %s", one);
		*pid++ = '\0';
		soak_flat_add(one, (pid_t)strtol(pid, NULL, 10), &of_daemons);
	}
	free(copy);
}

static void add_residents(soak *s)
{
	cgroup_each(s->cgroup, add_resident_envd);
	if (resident_envds != SOAK_RESIDENTS)
		rig_die("soak: %d envds of residents, not %d", resident_envds,
			SOAK_RESIDENTS);
	for (int i = 0; i < SOAK_RESIDENTS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "client %d", i + 1);
		soak_flat_add(name, s->clients[i], &of_clients);
	}
}

/* ---- before and after ---- */

typedef struct quiet {
	int processes, mounts;
	int descriptors[8];
	int daemons;
} quiet;

static int count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	int count = 0, c;

	while (f && (c = getc(f)) != EOF)
		count += c == '\n';
	if (f)
		fclose(f);
	return count;
}

static int count_folder(const char *path)
{
	DIR *dir = opendir(path);
	int count = -2;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void look(const soak *s, const char *daemons, quiet *ret)
{
	const char *pid = daemons;

	memset(ret, 0, sizeof(*ret));
	cgroup_pss_kib(s->cgroup, &ret->processes);
	ret->mounts = count_lines("/proc/self/mountinfo");
	while ((pid = strchr(pid, '=')) && ret->daemons < 8) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%ld/fd", strtol(++pid, NULL, 10));
		ret->descriptors[ret->daemons++] = count_folder(path);
	}
}

static int has_left(const quiet *before, const quiet *after)
{
	int bad = after->processes > before->processes || after->mounts > before->mounts;

	for (int i = 0; i < before->daemons; i++)
		bad |= after->descriptors[i] > before->descriptors[i] + 8;
	return bad;
}

static int running_count(const bench_rig *rig)
{
	json_object *list = NULL;
	int count;

	if (rig_call(rig, "GET", "/agent-sandbox/api/e2b/v2/sandboxes", NULL, &list) !=
	    200)
		rig_die("soak: the sandboxes cannot be listed");
	count = (int)json_object_array_length(list);
	json_object_put(list);
	return count;
}

/* Until nothing of the soak is left, or not in time. */
static int wait_until_quiet(soak *s, const char *daemons, const quiet *before,
			    double begun)
{
	double until = rig_now_ms() + END_MS;
	quiet after;
	int bad;

	do {
		attend(s, begun, 1000);
		look(s, daemons, &after);
		bad = running_count(&s->rig) > 0 || has_left(before, &after);
	} while (bad && rig_now_ms() < until);
	printf("\nbefore the first client, and when all were gone: processes of Pods %d, "
	       "%d; mounts %d, %d; descriptors of the daemons",
	       before->processes, after.processes, before->mounts, after.mounts);
	for (int i = 0; i < before->daemons; i++)
		printf(" %d, %d%s", before->descriptors[i], after.descriptors[i],
		       i + 1 < before->daemons ? ";" : "");
	printf("; sandboxes left: %d%s\n", running_count(&s->rig),
	       bad ? "   <-- something is left" : "");
	return bad;
}

/* ---- the soak ---- */

static long print_acts(const soak *s)
{
	long failed = 0;

	printf("\n%-12s %10s %10s\n", "act", "done", "failed");
	for (int i = 0; i < soak_act_count(); i++) {
		printf("%-12s %10ld %10ld\n", soak_act_name(i), s->done[i], s->failed[i]);
		failed += s->failed[i];
	}
	return failed;
}

static void prepare(soak *s, int argc, char **argv)
{
	s->rig = (bench_rig){ argv[1], argv[2] };
	s->cgroup = argv[4];
	s->env = argv[6];
	s->pause_ms = argc > 8 ? (unsigned)strtoul(argv[8], NULL, 10) : 500;
	s->seed = argc > 9 ? (unsigned)strtoul(argv[9], NULL, 10) : (unsigned)time(NULL);
	while (strcmp(soak_act_name(s->act_create), "create") != 0)
		s->act_create++;
	s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->shared == MAP_FAILED || pipe2(s->notes, O_CLOEXEC) < 0 ||
	    fcntl(s->notes[0], F_SETFL, O_NONBLOCK) < 0)
		rig_die("soak: %s", strerror(errno));
	rig_wait_idle(&s->rig, s->env, 100);
}

static void start_clients(soak *s, double begun)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		start_client(s, i);
		/* Visitors need the residents' sandboxes. */
		while (i < SOAK_RESIDENTS && !s->shared->resident_ids[i][0])
			attend(s, begun, 200);
	}
}

int main(int argc, char **argv)
{
	static soak s;
	double minutes, begun, warm_ms;
	quiet before;
	int bad;

	if (argc < 7)
		rig_die("usage: %s URL KEY STATE_DIR CGROUP PIDS ENV [MINUTES [PAUSE_MS "
			"[SEED]]]",
			argv[0]);
	minutes = argc > 7 ? strtod(argv[7], NULL) : 30;
	if (!(minutes >= 2))
		rig_die("soak: at least 2 minutes, not \"%s\"", argv[7]);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	prepare(&s, argc, argv);
	look(&s, argv[5], &before);
	printf("%.0f minutes, %d clients, seed %u\n", minutes, CLIENTS, s.seed);
	fflush(stdout);
	begun = rig_now_ms();
	warm_ms = minutes * 60000 / WARM_UP_SHARE;
	start_clients(&s, begun);
	add_daemons(argv[5]);
	add_residents(&s);
	attend(&s, begun, warm_ms);
	while (rig_now_ms() - begun < minutes * 60000) {
		soak_flat_sample((rig_now_ms() - begun) / 60000, s.done[s.act_create]);
		attend(&s, begun, SAMPLE_MS);
	}
	bad = soak_flat_judge();
	s.shared->is_ending = 1;
	bad += wait_until_quiet(&s, argv[5], &before, begun);
	bad += print_acts(&s) > 0;
	printf("\n%u lives of clients; %s\n", s.lives,
	       bad ? "NOT flat and clean" : "flat and clean");
	return bad != 0;
}

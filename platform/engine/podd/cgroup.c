/*
 * cgroup.c - one cgroup a Pod, agentbox-<tag>/<pod>, in every hierarchy that limits
 * or counts something.
 *
 * podd makes the groups itself and its children step into them before they start crun,
 * which runs with its own cgroup handling off: half of crun's time went there, and
 * Debian's crun refuses hybrid hosts. v1 (also hybrid) and v2.
 */
#include "engine/podd/podd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define ROOT "/sys/fs/cgroup"
#define PIDS_MAX "4096"
#define CPU_PERIOD_US 100000
#define CPU_QUOTA_MIN_US 1000 /* the kernel takes no less; Kubernetes rounds up too */

static int write_file(const char *folder, const char *file, const char *text)
{
	char path[PATH_MAX];
	int fd, r;

	if (snprintf(path, sizeof(path), "%s/%s", folder, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static int write_number(const char *folder, const char *file, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return write_file(folder, file, text);
}

static char *read_file(const char *folder, const char *file)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", folder, file) >= (int)sizeof(path))
		return NULL;
	return abx__fs_read(AT_FDCWD, path, (size_t)4 << 20, NULL);
}

/* ---- finding the hierarchies ---- */

static bool has_option(const char *options, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = options; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, name, len) == 0 &&
		    (p[len] == ',' || p[len] == '\0' || p[len] == '\n'))
			return true;
	}
	return false;
}

static int add_hierarchy(struct podd *podd, const char *mount_point, const char *options)
{
	struct cgroups *g = &podd->cgroups;
	char *base;

	if (g->count == ABX__CGROUP_MAX)
		return ABX_OK;
	base = abx__strf("%s/agentbox-%s", mount_point, podd->tag);
	if (!base)
		return ABX_ENOMEM;
	g->at[g->count].base = base;
	g->at[g->count].cpu = has_option(options, "cpu");
	g->at[g->count].cpuacct = has_option(options, "cpuacct");
	g->at[g->count].memory = has_option(options, "memory");
	g->at[g->count].pids = has_option(options, "pids");
	g->at[g->count].freezer = has_option(options, "freezer");
	g->count++;
	return ABX_OK;
}

/* A line of mountinfo: "... MOUNT_POINT OPTIONS [optional...] - TYPE SOURCE
 * SUPER_OPTIONS". */
static int read_mount_line(struct podd *podd, const char *root, char *line)
{
	char *point, *dash = strstr(line, " - "), *type, *super, *save = line;

	if (!dash)
		return ABX_OK;
	*dash = '\0';
	type = dash + 3;
	for (int i = 0; i < 4; i++) {
		save = strchr(save, ' ');
		if (!save)
			return ABX_OK;
		save++;
	}
	point = save;
	point[strcspn(point, " ")] = '\0';
	super = strchr(type, ' ');
	super = super ? strchr(super + 1, ' ') : NULL;
	if (!super || strncmp(point, root, strlen(root)) != 0)
		return ABX_OK;
	super++;
	if (strncmp(type, "cgroup2 ", 8) == 0) {
		if (strcmp(point, root) == 0) {
			podd->cgroups.v2 = true;
			/* Freezing and counting CPU time are in its core. */
			return add_hierarchy(podd, point, "freezer,cpuacct");
		}
		podd->hybrid = true;
		return ABX_OK;
	}
	if (strncmp(type, "cgroup ", 7) != 0)
		return ABX_OK;
	if (has_option(super, "cpu") || has_option(super, "memory") ||
	    has_option(super, "pids") || has_option(super, "freezer") ||
	    has_option(super, "cpuacct"))
		return add_hierarchy(podd, point, super);
	return ABX_OK;
}

static void enable_controllers(const char *folder)
{
	static const char *const names[] = { "+cpu", "+memory", "+pids" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		write_file(folder, "cgroup.subtree_control", names[i]);
}

/* v2: what the groups below `base` will have. The kernel refuses to hand a controller
 * down from a group with processes, as in a container that has no cgroup namespace. */
static void note_controllers(struct cgroups *g, size_t i)
{
	char *text;

	enable_controllers(g->at[i].base);
	text = read_file(g->at[i].base, "cgroup.subtree_control");
	for (char *p = text; p && *p; p++)
		if (*p == ' ')
			*p = ',';
	g->at[i].cpu = text && has_option(text, "cpu");
	g->at[i].memory = text && has_option(text, "memory");
	g->at[i].pids = text && has_option(text, "pids");
	abx__free(text);
}

static int make_bases(struct podd *podd, abx_error **reterr)
{
	struct cgroups *g = &podd->cgroups;
	bool cpu = false, memory = false, pids = false;

	for (size_t i = 0; i < g->count; i++) {
		if (mkdir(g->at[i].base, 0755) < 0 && errno != EEXIST)
			return abx__error_errno(reterr, ABX_EIO, errno, "cgroup %s",
						g->at[i].base);
		if (g->v2)
			note_controllers(g, i);
		cpu |= g->at[i].cpu;
		memory |= g->at[i].memory;
		pids |= g->at[i].pids;
	}
	for (size_t i = 0; i < g->count; i++)
		if (g->at[i].pids || (!pids && i == 0)) {
			g->at[i].processes = true;
			break;
		}
	if (!cpu || !memory || !pids)
		abx__log_warn(podd->log,
			      "limits will not all hold: a cgroup controller is missing",
			      "cpu=%d memory=%d pids=%d", cpu, memory, pids);
	return ABX_OK;
}

int abx__cgroups_open_at(struct podd *podd, const char *root, char *mountinfo,
			 abx_error **reterr)
{
	int r = ABX_OK;

	for (char *line = mountinfo, *end; r == ABX_OK && line && *line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		r = read_mount_line(podd, root, line);
	}
	if (r < 0)
		return abx__error_nomem(reterr);
	if (podd->cgroups.v2)
		enable_controllers(root);
	return make_bases(podd, reterr);
}

int abx__cgroups_open(struct podd *podd, abx_error **reterr)
{
	char *text =
		abx__fs_read(AT_FDCWD, "/proc/self/mountinfo", (size_t)1 << 20, NULL);
	int r;

	if (!text)
		return abx__error_errno(reterr, ABX_EIO, errno, "/proc/self/mountinfo");
	r = abx__cgroups_open_at(podd, ROOT, text, reterr);
	abx__free(text);
	return r;
}

void abx__cgroups_close(struct podd *podd)
{
	for (size_t i = 0; i < podd->cgroups.count; i++)
		abx__free(podd->cgroups.at[i].base);
	podd->cgroups.count = 0;
}

/* ---- a Pod's groups ---- */

static int group_path(struct podd *podd, size_t i, const char *key, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/%s", podd->cgroups.at[i].base, key) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

static int64_t cpu_quota_us(const abx__spec_container *c)
{
	int64_t quota = (int64_t)c->cpu_milli * CPU_PERIOD_US / 1000;

	return quota < CPU_QUOTA_MIN_US ? CPU_QUOTA_MIN_US : quota;
}

static int limit_v1(const char *path, bool cpu, bool memory, bool pids,
		    const abx__spec_container *c)
{
	int r = 0;

	if (cpu && c->cpu_milli) {
		r = write_number(path, "cpu.cfs_period_us", CPU_PERIOD_US);
		if (r == 0)
			r = write_number(path, "cpu.cfs_quota_us",
					 (uint64_t)cpu_quota_us(c));
	}
	if (r == 0 && cpu && c->cpu_request_milli)
		r = write_number(path, "cpu.shares",
				 (uint64_t)c->cpu_request_milli * 1024 / 1000);
	if (r == 0 && memory && c->memory_bytes) {
		r = write_number(path, "memory.limit_in_bytes", c->memory_bytes);
		/* Absent without swap accounting; then there is no swap to limit either.
		 */
		if (r == 0 && write_number(path, "memory.memsw.limit_in_bytes",
					   c->memory_bytes) < 0)
			write_number(path, "memory.swappiness", 0);
	}
	if (r == 0 && pids)
		r = write_file(path, "pids.max", PIDS_MAX);
	return r;
}

static int limit_v2(const char *path, bool cpu, bool memory, bool pids,
		    const abx__spec_container *c)
{
	char text[64];
	int r = 0;

	if (cpu && c->cpu_milli) {
		snprintf(text, sizeof(text), "%lld %d", (long long)cpu_quota_us(c),
			 CPU_PERIOD_US);
		r = write_file(path, "cpu.max", text);
	}
	if (r == 0 && cpu && c->cpu_request_milli) {
		int64_t weight = 1 + c->cpu_request_milli * 39 / 1000;

		r = write_number(path, "cpu.weight",
				 (uint64_t)(weight > 10000 ? 10000 : weight));
	}
	if (r == 0 && memory && c->memory_bytes) {
		r = write_number(path, "memory.max", c->memory_bytes);
		/* Absent on a kernel without swap. */
		if (r == 0)
			write_number(path, "memory.swap.max", 0);
	}
	if (r == 0 && pids)
		r = write_file(path, "pids.max", PIDS_MAX);
	return r;
}

int abx__cgroup_make(struct podd *podd, const char *key, const abx__spec_container *c,
		     abx_error **reterr)
{
	struct cgroups *g = &podd->cgroups;

	for (size_t i = 0; i < g->count; i++) {
		char path[PATH_MAX];
		int r = group_path(podd, i, key, path);

		if (r == 0 && mkdir(path, 0755) < 0 && errno != EEXIST)
			r = -errno;
		if (r == 0)
			r = (g->v2 ? limit_v2 : limit_v1)(
				path, g->at[i].cpu, g->at[i].memory, g->at[i].pids, c);
		if (r < 0)
			return abx__error_errno(reterr, ABX_EIO, -r,
						"limits of cgroup %s", path);
	}
	return ABX_OK;
}

int abx__cgroup_open(struct podd *podd, const char *key)
{
	char path[PATH_MAX];

	if (!podd->cgroups.v2 || !podd->cgroups.count ||
	    group_path(podd, 0, key, path) < 0)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/*
 * v1: `tasks` moves the one thread that asks, which the kernel does at once; moving a
 * process (`cgroup.procs`) first waits for every processor, milliseconds that a claim
 * waits for. Callers have one thread. On v2 they are forked into their group instead,
 * see abx__cgroup_open(), unless the kernel is too old.
 */
int abx__cgroup_enter(struct podd *podd, const char *key)
{
	const char *file = podd->cgroups.v2 ? "cgroup.procs" : "tasks";

	for (size_t i = 0; i < podd->cgroups.count; i++) {
		char path[PATH_MAX];
		int r = group_path(podd, i, key, path);

		if (r == 0)
			r = write_file(path, file, "0");
		if (r < 0) {
			errno = -r;
			return ABX_EIO;
		}
	}
	return ABX_OK;
}

static char *processes(struct podd *podd, const char *key)
{
	for (size_t i = 0; i < podd->cgroups.count; i++) {
		char path[PATH_MAX];

		if (podd->cgroups.at[i].processes && group_path(podd, i, key, path) == 0)
			return read_file(path, "cgroup.procs");
	}
	return NULL;
}

/* ---- freezing ---- */

/* The Pod's group that can be frozen. */
static bool freezer_path(struct podd *podd, const char *key, char path[PATH_MAX])
{
	for (size_t i = 0; i < podd->cgroups.count; i++)
		if (podd->cgroups.at[i].freezer)
			return group_path(podd, i, key, path) == 0;
	return false;
}

bool abx__cgroups_can_freeze(const struct podd *podd)
{
	for (size_t i = 0; i < podd->cgroups.count; i++)
		if (podd->cgroups.at[i].freezer)
			return true;
	return false;
}

void abx__cgroup_freeze(struct podd *podd, const char *key, bool frozen)
{
	char path[PATH_MAX];

	if (!freezer_path(podd, key, path))
		return;
	if (podd->cgroups.v2)
		write_file(path, "cgroup.freeze", frozen ? "1" : "0");
	else
		write_file(path, "freezer.state", frozen ? "FROZEN" : "THAWED");
}

bool abx__cgroup_is_frozen(struct podd *podd, const char *key)
{
	char path[PATH_MAX], *text;
	bool frozen;

	if (!freezer_path(podd, key, path))
		return false;
	text = read_file(path, podd->cgroups.v2 ? "cgroup.events" : "freezer.state");
	frozen = text && strstr(text, podd->cgroups.v2 ? "frozen 1" : "FROZEN");
	abx__free(text);
	return frozen;
}

/*
 * One by one, on v2 too: a group that was once killed by `cgroup.kill` is no place for
 * CLONE_INTO_CGROUP any more. Linux 6.1 (6.1.0-50-cloud-amd64 was seen to) then kills
 * every process that is cloned into it. What forks meanwhile dies with the init of its
 * PID namespace, or of its parent's death.
 */
void abx__cgroup_kill(struct podd *podd, const char *key)
{
	char *text = processes(podd, key);

	for (char *line = text, *end; line && *line; line = end) {
		uint64_t pid;

		end = strchr(line, '\n');
		if (!end)
			break;
		*end++ = '\0';
		if (abx__parse_u64(line, 2, INT_MAX, &pid) == ABX_OK)
			kill((pid_t)pid, SIGKILL);
	}
	abx__free(text);
	/* A process in a frozen v1 group dies when it is thawed. */
	abx__cgroup_freeze(podd, key, false);
}

bool abx__cgroup_is_empty(struct podd *podd, const char *key)
{
	char *text = processes(podd, key);
	bool empty = !text || !*text;

	abx__free(text);
	return empty;
}

static void remove_tree(const char *path, int depth)
{
	DIR *d;
	struct dirent *e;

	if (rmdir(path) == 0 || errno == ENOENT || depth > 16)
		return;
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char sub[PATH_MAX];

		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
		    snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name) <
			    (int)sizeof(sub))
			remove_tree(sub, depth + 1);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

void abx__cgroup_remove(struct podd *podd, const char *key)
{
	for (size_t i = 0; i < podd->cgroups.count; i++) {
		char path[PATH_MAX];

		if (group_path(podd, i, key, path) == 0)
			remove_tree(path, 0);
	}
}

static struct pod *pod_of_key(struct podd *podd, const char *key)
{
	struct pod *pod = NULL;

	HASH_FIND_STR(podd->pods, key, pod);
	return pod;
}

void abx__cgroup_sweep(struct podd *podd)
{
	for (size_t i = 0; i < podd->cgroups.count; i++) {
		DIR *d = opendir(podd->cgroups.at[i].base);
		struct dirent *e;

		while (d && (e = readdir(d))) {
			if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
			    pod_of_key(podd, e->d_name))
				continue;
			abx__cgroup_kill(podd, e->d_name);
			abx__cgroup_remove(podd, e->d_name);
		}
		if (d)
			closedir(d);
	}
}

uint64_t abx__cgroup_oom_kills(struct podd *podd, const char *key)
{
	for (size_t i = 0; i < podd->cgroups.count; i++) {
		char path[PATH_MAX], *text, *at;
		uint64_t n = 0;

		if (!podd->cgroups.at[i].memory || group_path(podd, i, key, path) < 0)
			continue;
		text = read_file(path, podd->cgroups.v2 ? "memory.events"
							: "memory.oom_control");
		at = text ? strstr(text, "oom_kill ") : NULL;
		if (at) {
			at += strlen("oom_kill ");
			at[strcspn(at, "\n")] = '\0';
			if (abx__parse_u64(at, 0, UINT64_MAX, &n) < 0)
				n = 0;
		}
		abx__free(text);
		return n;
	}
	return 0;
}

char *abx__cgroup_read(struct podd *podd, const char *key, bool memory, const char *v2,
		       const char *v1)
{
	struct cgroups *g = &podd->cgroups;

	for (size_t i = 0; i < g->count; i++) {
		char path[PATH_MAX];

		if ((memory ? g->at[i].memory : g->at[i].cpuacct) &&
		    group_path(podd, i, key, path) == 0)
			return read_file(path, g->v2 ? v2 : v1);
	}
	return NULL;
}

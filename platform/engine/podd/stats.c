/*
 * stats.c - what a Pod uses (its cgroup's own counts, and the file system its root lies
 * on) and what its container has said. A few small files a question; nothing is kept.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

/* The number in `text`; 0 for "max" and for what is no number. */
static uint64_t number(const char *text)
{
	uint64_t n = 0;
	char copy[24];

	if (!text || abx__str_copy(copy, sizeof(copy), text) < 0)
		return 0;
	copy[strcspn(copy, " \n")] = '\0';
	return abx__parse_u64(copy, 0, UINT64_MAX, &n) == ABX_OK ? n : 0;
}

/* The number behind "NAME " at the start of a line. */
static uint64_t field(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line && *line;) {
		const char *end = strchr(line, '\n');
		char copy[24];

		if (strncmp(line, name, len) == 0 && line[len] == ' ') {
			size_t n = strcspn(line + len + 1, "\n");

			if (n >= sizeof(copy))
				return 0;
			memcpy(copy, line + len + 1, n);
			copy[n] = '\0';
			return number(copy);
		}
		line = end ? end + 1 : NULL;
	}
	return 0;
}

static uint64_t read_number(struct pod *pod, const char *v2, const char *v1)
{
	char *text = abx__cgroup_read(pod->podd, pod->key, true, v2, v1);
	uint64_t n = number(text);

	abx__free(text);
	return n;
}

static uint64_t cpu_ns(struct pod *pod)
{
	bool v2 = pod->podd->cgroups.v2;
	char *text =
		abx__cgroup_read(pod->podd, pod->key, false, "cpu.stat", "cpuacct.usage");
	uint64_t n = v2 ? field(text, "usage_usec") * 1000 : number(text);

	abx__free(text);
	return n;
}

static uint64_t machine_memory(void)
{
	struct sysinfo info;

	return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
}

static int put(json_object *o, const char *key, uint64_t value)
{
	json_object *n = json_object_new_uint64(value);

	if (n && json_object_object_add(o, key, n) == 0)
		return ABX_OK;
	json_object_put(n);
	return ABX_ENOMEM;
}

/* The file cache is the kernel's to take back, so it is not what the Pod uses. */
static int put_memory(json_object *o, struct pod *pod)
{
	bool v2 = pod->podd->cgroups.v2;
	char *stat =
		abx__cgroup_read(pod->podd, pod->key, true, "memory.stat", "memory.stat");
	uint64_t used = read_number(pod, "memory.current", "memory.usage_in_bytes");
	uint64_t limit = read_number(pod, "memory.max", "memory.limit_in_bytes");
	uint64_t unused = field(stat, v2 ? "inactive_file" : "total_inactive_file");
	uint64_t cache = field(stat, v2 ? "file" : "total_cache");
	uint64_t machine = machine_memory();
	int r;

	abx__free(stat);
	r = put(o, "memory", used > unused ? used - unused : 0);
	if (r == ABX_OK)
		r = put(o, "cache", cache);
	return r == ABX_OK ? put(o, "memory_total",
				 limit > 0 && limit < machine ? limit : machine)
			   : r;
}

static int put_disk(json_object *o, struct pod *pod)
{
	ABX_CLEANUP(abx__freep)
	char *path = abx__strf("%s/pods/%s", pod->podd->dir, pod->key);
	uint64_t total = 0, used = 0;
	struct statvfs fs;
	int r;

	if (path && statvfs(path, &fs) == 0) {
		total = (uint64_t)fs.f_blocks * fs.f_frsize;
		used = total - (uint64_t)fs.f_bavail * fs.f_frsize;
	}
	r = put(o, "disk_used", used);
	return r == ABX_OK ? put(o, "disk_total", total) : r;
}

json_object *abx__pod_stats_json(struct pod *pod)
{
	json_object *o = json_object_new_object();

	if (o && put(o, "cpu_ns", cpu_ns(pod)) == ABX_OK &&
	    put_memory(o, pod) == ABX_OK && put_disk(o, pod) == ABX_OK)
		return o;
	json_object_put(o);
	return NULL;
}

int abx__pod_open_log(struct pod *pod, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("pods/%s/log", pod->key);
	int fd;

	if (!path)
		return abx__error_nomem(reterr);
	fd = openat(pod->podd->dir_fd, path,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "Pod %s has written nothing yet", pod->name);
	return abx__error_errno(reterr, ABX_EIO, errno, "the log of Pod %s", pod->name);
}

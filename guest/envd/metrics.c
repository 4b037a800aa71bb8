/*
 * metrics.c - figures of the Pod where its cgroup tells them (v2, then v1), else of the
 * machine.
 *
 * The processor's share is over the time since the last call, the first time since the
 * daemon's start.
 */
#include "envd/metrics.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/envd.h"
#include "io/json.h"

#define CGROUP "/sys/fs/cgroup"

struct figures {
	unsigned cpu_count;
	double cpu_used_pct;
	uint64_t mem_total, mem_used, mem_cache;
	uint64_t disk_total, disk_used;
};

/* What the last call saw. */
static uint64_t last_cpu_us;
static int64_t last_at_us;

static bool read_text(const char *path, char *buf, size_t size)
{
	ABX_CLEANUP(abx__closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The number behind `key` at the start of a line; an empty key is the file's first word.
 */
static bool find_number(const char *text, const char *key, uint64_t *ret)
{
	size_t key_len = strlen(key);

	while (text && *text) {
		const char *p = text + key_len + strspn(text + key_len, ": \t");

		if (strncmp(text, key, key_len) == 0 &&
		    (key_len == 0 || p > text + key_len)) {
			char digits[24];
			size_t len = strspn(p, "0123456789");

			if (len == 0 || len >= sizeof(digits))
				return false;
			memcpy(digits, p, len);
			digits[len] = '\0';
			return abx__parse_u64(digits, 0, UINT64_MAX, ret) == ABX_OK;
		}
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return false;
}

static bool read_number(const char *path, const char *key, uint64_t *ret)
{
	char text[8192];

	return read_text(path, text, sizeof(text)) && find_number(text, key, ret);
}

static unsigned count_cpus(void)
{
	cpu_set_t set;
	unsigned count = sched_getaffinity(0, sizeof(set), &set) == 0
				 ? (unsigned)CPU_COUNT(&set)
				 : 1;
	uint64_t quota = 0, period = 0;
	char text[64];
	char *blank;

	if (read_text(CGROUP "/cpu.max", text, sizeof(text)) &&
	    find_number(text, "", &quota)) {
		blank = strchr(text, ' ');
		if (!blank || !find_number(blank + 1, "", &period))
			period = 0;
	} else if (!read_number(CGROUP "/cpu/cpu.cfs_quota_us", "", &quota) ||
		   !read_number(CGROUP "/cpu/cpu.cfs_period_us", "", &period)) {
		period = 0;
	}
	if (period && quota && (quota + period - 1) / period < count)
		count = (unsigned)((quota + period - 1) / period);
	return count;
}

/* Processor time used so far; of the machine when the cgroup does not tell. */
static bool read_cpu_us(uint64_t *ret)
{
	uint64_t user = 0;
	unsigned long long t[4] = { 0 };
	char text[256];

	if (read_number(CGROUP "/cpu.stat", "usage_usec", ret))
		return true;
	if (read_number(CGROUP "/cpuacct/cpuacct.usage", "", &user)) {
		*ret = user / 1000;
		return true;
	}
	if (!read_text("/proc/stat", text, sizeof(text)) ||
	    sscanf(text, "cpu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3]) != 4)
		return false;
	*ret = (t[0] + t[1] + t[2]) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	return true;
}

static double measure_cpu(const abx__envd *envd, unsigned cpus)
{
	int64_t now = abx__mono_us(), since = last_at_us ? last_at_us : envd->started_us;
	uint64_t used = 0, before = last_at_us ? last_cpu_us : 0;
	double pct;

	if (!read_cpu_us(&used) || now <= since)
		return 0;
	if (!last_at_us && used > (uint64_t)(now - since) * cpus)
		before = used; /* older than we are: nothing to compare with yet */
	last_cpu_us = used;
	last_at_us = now;
	pct = used > before
		      ? (double)(used - before) * 100 / ((double)(now - since) * cpus)
		      : 0;
	return round((pct > 100 ? 100 : pct) * 100) / 100;
}

static bool measure_memory(struct figures *f)
{
	uint64_t total = 0, available = 0, cached = 0, limit = 0, current = 0, file = 0;
	char text[4096];

	if (!read_text("/proc/meminfo", text, sizeof(text)) ||
	    !find_number(text, "MemTotal", &total))
		return false;
	if (!find_number(text, "MemAvailable", &available))
		available = 0;
	if (!find_number(text, "Cached", &cached))
		cached = 0;
	f->mem_total = total * 1024;
	f->mem_used = (total - available) * 1024;
	f->mem_cache = cached * 1024;
	if (read_number(CGROUP "/memory.max", "", &limit) ||
	    read_number(CGROUP "/memory/memory.limit_in_bytes", "", &limit))
		f->mem_total = limit < f->mem_total ? limit : f->mem_total;
	if ((read_number(CGROUP "/memory.current", "", &current) &&
	     read_number(CGROUP "/memory.stat", "file", &file)) ||
	    (read_number(CGROUP "/memory/memory.usage_in_bytes", "", &current) &&
	     read_number(CGROUP "/memory/memory.stat", "cache", &file))) {
		f->mem_cache = file;
		f->mem_used = current > file ? current - file : 0;
	}
	return true;
}

static bool measure(const abx__envd *envd, struct figures *f)
{
	struct statvfs fs;

	if (!measure_memory(f) || statvfs("/", &fs) < 0)
		return false;
	f->cpu_count = count_cpus();
	f->cpu_used_pct = measure_cpu(envd, f->cpu_count);
	f->disk_total = (uint64_t)fs.f_blocks * fs.f_frsize;
	f->disk_used = f->disk_total - (uint64_t)fs.f_bavail * fs.f_frsize;
	return true;
}

static json_object *to_json(const struct figures *f)
{
	json_object *obj = json_object_new_object();

	if (obj &&
	    (abx__json_set_i64(obj, "ts", time(NULL)) < 0 ||
	     abx__json_set_i64(obj, "cpu_count", f->cpu_count) < 0 ||
	     abx__json_set_double(obj, "cpu_used_pct", f->cpu_used_pct) < 0 ||
	     abx__json_set_i64(obj, "mem_total_mib", (int64_t)(f->mem_total >> 20)) < 0 ||
	     abx__json_set_i64(obj, "mem_used_mib", (int64_t)(f->mem_used >> 20)) < 0 ||
	     abx__json_set_i64(obj, "mem_total", (int64_t)f->mem_total) < 0 ||
	     abx__json_set_i64(obj, "mem_used", (int64_t)f->mem_used) < 0 ||
	     abx__json_set_i64(obj, "mem_cache", (int64_t)f->mem_cache) < 0 ||
	     abx__json_set_i64(obj, "disk_used", (int64_t)f->disk_used) < 0 ||
	     abx__json_set_i64(obj, "disk_total", (int64_t)f->disk_total) < 0)) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
}

void abx__metrics_handle(struct abx__envd *envd, abx__http_req *req)
{
	struct figures f = { 0 };

	abx__http_res_header(req, "Cache-Control", "no-store");
	if (!measure(envd, &f)) {
		abx__http_res_send(req, 500, NULL, NULL, 0);
		return;
	}
	abx__answer_json_take(req, 200, "application/json", to_json(&f));
}

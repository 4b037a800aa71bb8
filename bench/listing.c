/*
 * listing.c - a directory of 20,000 files through the library, beside readdir and stat of
 * the same directory on this machine.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "library.h"

#define FILES 20000
#define FOLDER "/tmp/bench-listing"
#define RUNS 7

/* The folder as this machine sees it, through a process of the Pod. */
static char seen_at[128];

static void look_for_folder(long pid)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%ld/root" FOLDER, pid);
	if (access(path, F_OK) == 0)
		snprintf(seen_at, sizeof(seen_at), "%s", path);
}

/* readdir and stat of each, and with `attributes` also a look for extended attributes,
 * as an entry's metadata needs it. */
static double floor_ms(int attributes)
{
	double start = rig_now_ms();
	DIR *dir = opendir(seen_at);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		rig_die("floor: %s cannot be read", seen_at);
	while ((entry = readdir(dir))) {
		struct stat st;
		char path[512], names[256];

		if (entry->d_name[0] == '.')
			continue;
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			rig_die("floor: stat of %s", entry->d_name);
		count++;
		if (!attributes)
			continue;
		snprintf(path, sizeof(path), "%s/%s", seen_at, entry->d_name);
		if (llistxattr(path, names, sizeof(names)) < 0)
			rig_die("floor: attributes of %s", path);
	}
	closedir(dir);
	if (count != FILES)
		rig_die("floor: %d files", count);
	return rig_now_ms() - start;
}

static double ours_ms(abx_sandbox *sandbox)
{
	double start = rig_now_ms();
	abx_file_list *list = NULL;
	abx_error *err = NULL;
	int r = abx_file_list_dir(sandbox, FOLDER, NULL, &list, &err);
	size_t count;

	if (r < 0)
		library_die("list", r, err);
	count = abx_file_list_count(list);
	if (count != FILES)
		rig_die("list: %zu files", count);
	abx_file_list_free(list);
	return rig_now_ms() - start;
}

void bench_row_of_listing(const bench_rig *rig, const char *env, const char *cgroup)
{
	abx_client *client = library_client(rig);
	abx_sandbox *sandbox = library_sandbox(client, env);
	double ours[RUNS], plain[RUNS], with_attributes[RUNS], p50;
	char figure[64], floor[64], ratio[32];

	library_sh(sandbox,
		   "mkdir " FOLDER " && cd " FOLDER " && seq 20000 | xargs touch");
	cgroup_each(cgroup, look_for_folder);
	for (int i = 0; i < RUNS; i++) {
		ours[i] = ours_ms(sandbox);
		plain[i] = floor_ms(0);
		with_attributes[i] = floor_ms(1);
	}
	p50 = percentile(ours, RUNS, 50);
	snprintf(figure, sizeof(figure), "p50 %.0f ms", p50);
	snprintf(floor, sizeof(floor), "readdir+stat %.0f, +xattr %.0f ms",
		 percentile(plain, RUNS, 50), percentile(with_attributes, RUNS, 50));
	snprintf(ratio, sizeof(ratio), "%.1f",
		 p50 / percentile(with_attributes, RUNS, 50));
	row("list of a directory with 20,000 files", figure, floor, ratio, "-", 1);
	abx_sandbox_kill(sandbox, NULL);
	abx_sandbox_free(sandbox);
	abx_client_free(client);
}

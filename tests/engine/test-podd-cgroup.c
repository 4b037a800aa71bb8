/*
 * test-podd-cgroup.c - what limits become in a cgroup v2 tree: plain files in a temporary
 * folder stand for the kernel's. Hybrid and v1 hosts run the same code for real in
 * test-podd.c.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/podd/podd.h"

static char root[64];
static struct podd podd;
static abx__log quiet = { .level = ABX__LOG_ERROR };

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	f = fopen(full, "we");
	cr_assert(f, "%s", full);
	fputs(text, f);
	fclose(f);
}

static const char *get(const char *path)
{
	static char text[256];
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	f = fopen(full, "re");
	cr_assert(f, "%s", full);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

/* Writes go over the beginning of a plain file, so what is to be read stands behind it.
 */
static void open_v2(const char *controllers)
{
	static const char *const files[] = { "cpu.max",     "cpu.weight",
					     "memory.max",  "memory.swap.max",
					     "pids.max",    "cgroup.procs",
					     "cgroup.kill", "memory.events" };
	char text[256];

	snprintf(root, sizeof(root), "/tmp/agentbox-test-cgroup-XXXXXX");
	cr_assert(mkdtemp(root));
	memset(&podd, 0, sizeof(podd));
	memcpy(podd.tag, "abcd", 5);
	podd.log = &quiet;
	snprintf(text, sizeof(text), "%s/agentbox-abcd", root);
	mkdir(text, 0755);
	snprintf(text, sizeof(text), "%s/agentbox-abcd/t_a", root);
	mkdir(text, 0755);
	put("cgroup.subtree_control", "");
	snprintf(text, sizeof(text), "........ %s\n", controllers);
	put("agentbox-abcd/cgroup.subtree_control", text);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(text, sizeof(text), "agentbox-abcd/t_a/%s", files[i]);
		put(text, "");
	}
	snprintf(text, sizeof(text),
		 "22 1 0:21 / /proc rw - proc proc rw\n"
		 "30 22 0:26 / %s rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
		 root);
	cr_assert_eq(abx__cgroups_open_at(&podd, root, text, NULL), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void fini(void)
{
	abx__cgroups_close(&podd);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

Test(podd_cgroup, v2_limits_are_the_ones_asked_for, .fini = fini)
{
	abx__spec_container c = { .cpu_milli = 1500,
				  .cpu_request_milli = 1000,
				  .memory_bytes = 64 << 20 };

	open_v2("cpu memory pids");
	cr_assert(podd.cgroups.v2);
	cr_assert_eq(podd.cgroups.count, 1);
	cr_assert_eq(abx__cgroup_make(&podd, "t_a", &c, NULL), 0);
	cr_assert_str_eq(get("agentbox-abcd/t_a/cpu.max"), "150000 100000");
	cr_assert_str_eq(get("agentbox-abcd/t_a/cpu.weight"), "40");
	cr_assert_str_eq(get("agentbox-abcd/t_a/memory.max"), "67108864");
	/* Memory and swap together are no more than memory alone. */
	cr_assert_str_eq(get("agentbox-abcd/t_a/memory.swap.max"), "0");
	cr_assert_str_eq(get("agentbox-abcd/t_a/pids.max"), "4096");
}

Test(podd_cgroup, v2_without_limits_bounds_processes_only, .fini = fini)
{
	abx__spec_container c = { 0 };

	open_v2("cpu memory pids");
	cr_assert_eq(abx__cgroup_make(&podd, "t_a", &c, NULL), 0);
	cr_assert_str_eq(get("agentbox-abcd/t_a/cpu.max"), "");
	cr_assert_str_eq(get("agentbox-abcd/t_a/memory.max"), "");
	cr_assert_str_eq(get("agentbox-abcd/t_a/pids.max"), "4096");
}

Test(podd_cgroup, v2_a_tiny_cpu_limit_is_the_kernels_least, .fini = fini)
{
	abx__spec_container c = { .cpu_milli = 1 };

	open_v2("cpu memory pids");
	cr_assert_eq(abx__cgroup_make(&podd, "t_a", &c, NULL), 0);
	cr_assert_str_eq(get("agentbox-abcd/t_a/cpu.max"), "1000 100000");
}

Test(podd_cgroup, v2_asks_for_its_controllers_and_knows_which_it_got, .fini = fini)
{
	abx__spec_container c = { .cpu_milli = 1000, .memory_bytes = 1 << 20 };

	open_v2("cpuset memory");
	cr_assert(strchr(get("cgroup.subtree_control"), '+'), "asked for none");
	cr_assert_not(podd.cgroups.at[0].cpu);
	cr_assert(podd.cgroups.at[0].memory);
	cr_assert_not(podd.cgroups.at[0].pids);
	cr_assert(podd.cgroups.at[0].processes);
	cr_assert_eq(abx__cgroup_make(&podd, "t_a", &c, NULL), 0);
	cr_assert_str_eq(get("agentbox-abcd/t_a/cpu.max"), "");
	cr_assert_str_eq(get("agentbox-abcd/t_a/memory.max"), "1048576");
}

Test(podd_cgroup, v2_a_limit_that_cannot_be_set_is_an_error_naming_the_group,
     .fini = fini)
{
	abx__spec_container c = { .memory_bytes = 1 << 20 };
	abx_error *err = NULL;
	char path[128];

	open_v2("cpu memory pids");
	snprintf(path, sizeof(path), "%s/agentbox-abcd/t_a/memory.max", root);
	unlink(path);
	cr_assert_eq(abx__cgroup_make(&podd, "t_a", &c, &err), ABX_EIO);
	cr_assert(strstr(abx_error_message(err), "agentbox-abcd/t_a"), "%s",
		  abx_error_message(err));
	abx_error_free(err);
}

Test(podd_cgroup, v2_enters_counts_and_kills, .fini = fini)
{
	char text[32];
	int status = 0;
	pid_t pid;

	open_v2("cpu memory pids");
	put("agentbox-abcd/t_a/memory.events",
	    "low 0\nhigh 0\nmax 7\noom 4\noom_kill 3\noom_group_kill 0\n");
	cr_assert_eq(abx__cgroup_oom_kills(&podd, "t_a"), 3);
	cr_assert(abx__cgroup_is_empty(&podd, "t_a"));
	cr_assert_eq(abx__cgroup_enter(&podd, "t_a"), 0);
	cr_assert_str_eq(get("agentbox-abcd/t_a/cgroup.procs"), "0");
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	put("agentbox-abcd/t_a/cgroup.procs", text);
	cr_assert_not(abx__cgroup_is_empty(&podd, "t_a"));
	abx__cgroup_kill(&podd, "t_a");
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* The group is used again, and Linux 6.1 lets nothing live that is cloned into
	 * one killed so. */
	cr_assert_str_eq(get("agentbox-abcd/t_a/cgroup.kill"), "");
}

Test(podd_cgroup, v2_freezes_and_sees_when_it_is_done, .fini = fini)
{
	open_v2("cpu memory pids");
	cr_assert(abx__cgroups_can_freeze(&podd));
	put("agentbox-abcd/t_a/cgroup.freeze", "0");
	put("agentbox-abcd/t_a/cgroup.events", "populated 1\nfrozen 0\n");
	abx__cgroup_freeze(&podd, "t_a", true);
	cr_assert_str_eq(get("agentbox-abcd/t_a/cgroup.freeze"), "1");
	cr_assert(!abx__cgroup_is_frozen(&podd, "t_a"));
	put("agentbox-abcd/t_a/cgroup.events", "populated 1\nfrozen 1\n");
	cr_assert(abx__cgroup_is_frozen(&podd, "t_a"));
	abx__cgroup_freeze(&podd, "t_a", false);
	cr_assert_str_eq(get("agentbox-abcd/t_a/cgroup.freeze"), "0");
}

/* A process would be moved with every processor waited for, a thread is not. */
Test(podd_cgroup, v1_enters_as_a_thread, .fini = fini)
{
	open_v2("cpu memory pids");
	podd.cgroups.v2 = false;
	put("agentbox-abcd/t_a/tasks", "");
	put("agentbox-abcd/t_a/cgroup.procs", "");
	cr_assert_eq(abx__cgroup_open(&podd, "t_a"), -1);
	cr_assert_eq(abx__cgroup_enter(&podd, "t_a"), 0);
	cr_assert_str_eq(get("agentbox-abcd/t_a/tasks"), "0");
	cr_assert_str_eq(get("agentbox-abcd/t_a/cgroup.procs"), "");
}

Test(podd_cgroup, v1_hierarchies_are_found_by_their_controllers)
{
	char text[] =
		"1 0 0:1 / /x rw - tmpfs tmpfs rw\n"
		"2 1 0:2 / /x/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
		"3 1 0:3 / /x/blkio rw - cgroup cgroup rw,blkio\n"
		"4 1 0:4 / /x/unified rw - cgroup2 cgroup2 rw\n"
		"not a line of mountinfo\n";

	memset(&podd, 0, sizeof(podd));
	memcpy(podd.tag, "abcd", 5);
	podd.log = &quiet;
	/* The folders are not there: finding them is what is looked at. */
	cr_assert_eq(abx__cgroups_open_at(&podd, "/x", text, NULL), ABX_EIO);
	cr_assert_not(podd.cgroups.v2);
	cr_assert(podd.hybrid);
	cr_assert_eq(podd.cgroups.count, 1);
	cr_assert_str_eq(podd.cgroups.at[0].base, "/x/cpu,cpuacct/agentbox-abcd");
	cr_assert(podd.cgroups.at[0].cpu);
	cr_assert_not(podd.cgroups.at[0].memory);
	abx__cgroups_close(&podd);
}

/*
 * test-podd-limits.c - what a container may use: memory, processes, CPU. Real Pods.
 */
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"
#include "podd-case.h"

#define PODD_TEST(name) PODD_CASE(podd_limits, name)

PODD_TEST(the_memory_limit_holds_and_says_so)
{
	podd_peer_create(&p, "a", "runtime:",
			 "\"command\":[\"tail\",\"/dev/"
			 "zero\"],\"resources\":{\"limits\":{\"memory\":\"32Mi\"}}",
			 "");
	while (strcmp(podd_peer_settle(&p, "a", 1), "failed") != 0)
		podd_peer_call(
			&p, ABX__PODD_CONNECT,
			podd_peer_body("{\"ns\":\"t\",\"name\":\"a\",\"port\":1}"));
	cr_assert_str_eq(podd_peer_get(&p, "a", "reason"), "OOMKilled", "%s",
			 podd_peer_get(&p, "a", "message"));
}

PODD_TEST(the_process_limit_holds)
{
	char line[256] = "";

	/* The shell that cannot fork any more says so and goes; the main process stays.
	 */
	podd_peer_create(&p, "a", "runtime:",
			 "\"command\":[\"/bin/sh\",\"-c\",\"(i=0; while [ $i -lt 4400 ]; "
			 "do sleep 100 & "
			 "i=$((i+1)); done) 2>/out/err; exec sleep 1000\"],"
			 "\"volumeMounts\":[{\"name\":\"out\",\"mountPath\":\"/out\"}]",
			 "\"volumes\":[{\"name\":\"out\",\"emptyDir\":{}}]");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	for (int i = 0; i < 12000 && !*line; i++) {
		FILE *f = fopen(in_dir("podd/pods/t_a/vol/out/err"), "r");

		if (f && !fgets(line, sizeof(line), f))
			*line = '\0';
		if (f)
			fclose(f);
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	cr_assert(strstr(line, "fork"), "fork never failed: %s", line);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

PODD_TEST(the_cpu_limit_holds)
{
	/* Two seconds of a busy loop at a tenth of a CPU: its own clock must have moved
	 * far less. */
	const char *out = podd_peer_run(&p, "a", "runtime:",
					"timeout 2 sh -c 'while :; do :; done'\n"
					"cat /proc/self/stat >/dev/null; awk '{print "
					"\"ticks\", $14+$15+$16+$17}' /proc/$$/stat\n",
					"\"resources\":{\"limits\":{\"cpu\":\"100m\"}}");
	const char *at = strstr(out, "ticks ");

	cr_assert(at, "%s", out);
	cr_assert_lt(atoi(at + 6), 60, "used %s hundredths of a second of 200", at + 6);
}

PODD_TEST(the_least_cpu_limit_is_one_the_kernel_takes)
{
	cr_assert_eq(podd_peer_create(
			     &p, "a", "runtime:",
			     SLEEP ",\"resources\":{\"limits\":{\"cpu\":\"5m\"}}", ""),
		     0, "%s", podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running", "%s",
			 podd_peer_get(&p, "a", "message"));
}

/* This test's process sees cgroup v2 alone, and so does its podd. */
static void init_v2(void)
{
	const char *root = "/sys/fs/cgroup";
	struct statfs at;

	if (podd_fixture_missing())
		cr_skip_test("%s", podd_fixture_missing());
	if (statfs(root, &at) < 0)
		cr_skip_test("needs %s", root);
	if (at.f_type != CGROUP2_SUPER_MAGIC &&
	    (unshare(CLONE_NEWNS) < 0 ||
	     mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	     umount2(root, MNT_DETACH) < 0 ||
	     mount("cgroup2", root, "cgroup2", 0, NULL) < 0))
		cr_skip_test("needs cgroup v2");
	init();
}

Test(podd_limits, starters_are_born_in_their_group_where_cgroups_are_v2, .init = init_v2,
     .fini = fini, .timeout = 180)
{
	char path[64], want[80], text[4096] = "";
	FILE *f;
	int first;

	podd_peer_create(&p, "a", "runtime:", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	first = podd_peer_init_pid(&p, "a");
	for (uint64_t generation = 2; generation < 5; generation++) {
		cr_assert_eq(podd_peer_swap(&p, "a", "host:", generation, true), ABX_OK);
		cr_assert_str_eq(podd_peer_settle(&p, "a", generation), "running");
	}
	cr_assert_neq(podd_peer_init_pid(&p, "a"), first);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", podd_peer_init_pid(&p, "a"));
	snprintf(want, sizeof(want), "0::/agentbox-%s/t_a\n", p.podd.tag);
	f = fopen(path, "r");
	cr_assert(f && fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	cr_assert(strstr(text, want), "%s", text);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

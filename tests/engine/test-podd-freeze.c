/*
 * test-podd-freeze.c - Pods that stand still with their memory, and Pods that are stopped
 * with their files kept. Real Pods.
 */
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"
#include "podd-case.h"

#define FREEZE_TEST(name) PODD_CASE(podd_freeze, name)

/* Counts in memory, and says where it is. */
#define COUNTER                                                                        \
	"\"command\":[\"/bin/sh\",\"-c\",\"i=0; while :; do i=$((i+1)); echo $i >/n; " \
	"sleep 0.01; done\"]"

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* The file as the Pod's upper layer has it; -1 when it is not there. */
static long number_in(const char *file)
{
	char pattern[256], line[32] = "";
	long n = -1;
	glob_t found;
	FILE *f;

	snprintf(pattern, sizeof(pattern), "%s/podd/pods/t_a/c*/up/%s", p.podd.dir, file);
	if (glob(pattern, 0, NULL, &found) != 0)
		return -1;
	cr_assert_eq(found.gl_pathc, 1, "one container's folder");
	f = fopen(found.gl_pathv[0], "r");
	if (f && fgets(line, sizeof(line), f))
		n = strtol(line, NULL, 10);
	if (f)
		fclose(f);
	globfree(&found);
	return n;
}

static void become(const char *activity)
{
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_ACTIVITY,
				    podd_peer_body("{\"ns\":\"t\",\"name\":\"a\","
						   "\"activity\":\"%s\"}",
						   activity)),
		     ABX_OK, "%s", podd_peer_message(&p));
	for (int i = 0; i < 4000 && strcmp(podd_peer_get(&p, "a", "activity"), activity);
	     i++) {
		nap(1);
		/* Any answered call takes the events in. */
		podd_peer_call(&p, 17, podd_peer_body("{}"));
	}
	cr_assert_str_eq(podd_peer_get(&p, "a", "activity"), activity);
}

static void start_counter(void)
{
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", COUNTER, ""), 0, "%s",
		     podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	while (number_in("n") < 3)
		nap(5);
}

static void assert_stands_still(void)
{
	long n = number_in("n");

	nap(200);
	cr_assert_eq(number_in("n"), n, "it runs");
}

static void assert_goes_on_from(long n)
{
	long now;

	do {
		nap(5);
		now = number_in("n");
	} while (now <= n);
	cr_assert_leq(now - n, 10000, "it counts on from %ld, not from the start", n);
}

static void restart_podd(void)
{
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGKILL);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
}

FREEZE_TEST(a_frozen_pod_keeps_its_memory)
{
	int pid;
	long n;

	start_counter();
	pid = podd_peer_init_pid(&p, "a");
	become("freeze");
	assert_stands_still();
	n = number_in("n");
	become("run");
	assert_goes_on_from(n);
	cr_assert_eq(podd_peer_init_pid(&p, "a"), pid);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

FREEZE_TEST(a_new_podd_finds_it_frozen_and_thaws_it)
{
	int pid;
	long n;

	start_counter();
	pid = podd_peer_init_pid(&p, "a");
	become("freeze");
	restart_podd();
	n = number_in("n");
	become("freeze");
	assert_stands_still();
	become("run");
	assert_goes_on_from(n);
	cr_assert_eq(podd_peer_init_pid(&p, "a"), pid);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

FREEZE_TEST(a_podd_killed_right_after_the_wish_carries_it_out)
{
	start_counter();
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_ACTIVITY,
				    podd_peer_body("{\"ns\":\"t\",\"name\":\"a\","
						   "\"activity\":\"freeze\"}")),
		     ABX_OK);
	restart_podd();
	become("freeze");
	assert_stands_still();
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

FREEZE_TEST(a_frozen_pod_is_swapped_and_deleted)
{
	start_counter();
	become("freeze");
	cr_assert_eq(podd_peer_swap(&p, "a", "runtime:", 2, true), 0);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running");
	cr_assert_str_eq(podd_peer_get(&p, "a", "activity"), "run");
	become("freeze");
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

/* What a killed podd's frozen Pods leave is swept like any other's. */
FREEZE_TEST(purging_ends_frozen_pods)
{
	start_counter();
	become("freeze");
	/* The fixture's close purges and looks. */
}

/* A start is a boot, being thawed is not. */
FREEZE_TEST(the_boot_id_tells_a_start_from_a_thaw)
{
	char first[64], second[64], host[64];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	cr_assert(f && fgets(host, sizeof(host), f));
	fclose(f);
	snprintf(first, sizeof(first), "%s",
		 podd_peer_run(&p, "a", "runtime:", "cat /proc/sys/kernel/random/boot_id",
			       ""));
	cr_assert_eq(strlen(first), 37, "%s", first);
	cr_assert_str_neq(first, host);
	become("freeze");
	become("run");
	become("stop");
	snprintf(second, sizeof(second), "%s", first);
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_SWAP,
				    podd_peer_body("{\"ns\":\"t\",\"name\":\"a\","
						   "\"image\":\"runtime:\","
						   "\"generation\":2,\"restart\":"
						   "false,\"keep\":true}")),
		     ABX_OK);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running");
	for (int i = 0; i < 1000 && strcmp(first, second) == 0; i++) {
		char path[256];

		nap(5);
		snprintf(path, sizeof(path), "%s/podd/pods/t_a/vol/out/result",
			 p.podd.dir);
		f = fopen(path, "r");
		if (f) {
			if (!fgets(second, sizeof(second), f))
				snprintf(second, sizeof(second), "%s", first);
			fclose(f);
		}
	}
	cr_assert_str_neq(first, second);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

#define MARKS                                                                   \
	"\"command\":[\"/bin/sh\",\"-c\",\"[ -e /starts ] && read n </starts; " \
	"echo $((n+1)) >/starts; rm -f /etc/hostname; exec sleep 1000\"]"

static int go_on(uint64_t generation)
{
	return podd_peer_call(&p, ABX__PODD_SWAP,
			      podd_peer_body("{\"ns\":\"t\",\"name\":\"a\",\"image\":"
					     "\"runtime:\",\"generation\":%llu,"
					     "\"restart\":false,\"keep\":true}",
					     (unsigned long long)generation));
}

FREEZE_TEST(a_stopped_pod_keeps_its_files)
{
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", MARKS, ""), 0);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	while (number_in("starts") != 1)
		nap(5);
	become("stop");
	cr_assert_eq(number_in("starts"), 1);
	cr_assert_eq(go_on(2), ABX_OK, "%s", podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running", "%s",
			 podd_peer_get(&p, "a", "message"));
	while (number_in("starts") != 2)
		nap(5);
	/* And once more, so that a folder can be taken over twice; then anew. */
	become("stop");
	cr_assert_eq(go_on(3), ABX_OK);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 3), "running");
	while (number_in("starts") != 3)
		nap(5);
	cr_assert_eq(podd_peer_swap(&p, "a", "runtime:", 4, true), 0);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 4), "running");
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

FREEZE_TEST(a_stopped_pod_survives_podd)
{
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", MARKS, ""), 0);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	while (number_in("starts") != 1)
		nap(5);
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_ACTIVITY,
				    podd_peer_body("{\"ns\":\"t\",\"name\":\"a\","
						   "\"activity\":\"stop\"}")),
		     ABX_OK);
	restart_podd();
	become("stop");
	cr_assert_eq(number_in("starts"), 1);
	restart_podd();
	become("stop");
	cr_assert_eq(go_on(2), ABX_OK);
	restart_podd();
	cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running", "%s",
			 podd_peer_get(&p, "a", "message"));
	while (number_in("starts") < 2)
		nap(5);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

FREEZE_TEST(requests_that_make_no_sense_are_refused)
{
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", MARKS, ""), 0);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_ACTIVITY,
				    podd_peer_body("{\"ns\":\"t\",\"name\":\"a\","
						   "\"activity\":\"fly\"}")),
		     ABX_EINVAL);
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_ACTIVITY,
				    podd_peer_body("{\"ns\":\"t\",\"name\":\"a\"}")),
		     ABX_EINVAL);
	become("stop");
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_ACTIVITY,
				    podd_peer_body("{\"ns\":\"t\",\"name\":\"a\","
						   "\"activity\":\"run\"}")),
		     ABX_ECONFLICT);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

/* dash starts programs with vfork(2): its wait for the child is the place where the v1
   freezer misses a process that it has asked. */
FREEZE_TEST(one_that_starts_programs_all_the_time)
{
	cr_assert_eq(podd_peer_create(&p, "a", "host:",
				      "\"command\":[\"/bin/sh\",\"-c\",\"while :; do "
				      "/bin/true; done\"]",
				      ""),
		     0, "%s", podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	nap(100);
	for (int i = 0; i < 200; i++) {
		become("freeze");
		become("run");
	}
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

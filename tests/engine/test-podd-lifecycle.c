/*
 * test-podd-lifecycle.c - a Pod is made, restarted, adopted and deleted; nothing is lost
 * and nothing is left. Real Pods.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "podd-case.h"
#include "podd-tools.h"

#define PODD_TEST(name) PODD_CASE(podd_lifecycle, name)

PODD_TEST(a_pod_runs_and_its_deletion_leaves_nothing)
{
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", SLEEP, ""), 0, "%s",
		     podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

PODD_TEST(init_containers_run_in_order_and_fill_volumes)
{
	static const char more[] =
		"\"initContainers\":["
		"{\"name\":\"one\",\"image\":\"runtime:\",\"command\":[\"sh\",\"-c\"],"
		"\"args\":[\"echo -n 1 >/v/f\"],"
		"\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}]},"
		"{\"name\":\"two\",\"image\":\"runtime:\",\"command\":[\"sh\",\"-c\","
		"\"echo -n 2 >>/v/f\"],"
		"\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}]}],"
		"\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]";
	char text[8] = "";
	int fd;

	cr_assert_eq(podd_peer_create(&p, "a", "runtime:",
				      SLEEP ",\"volumeMounts\":[{\"name\":\"v\","
					    "\"mountPath\":\"/v\",\"readOnly\":true}]",
				      more),
		     0, "%s", podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running", "%s",
			 podd_peer_get(&p, "a", "message"));
	fd = open(in_dir("podd/pods/t_a/vol/v/f"), O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(read(fd, text, sizeof(text) - 1), 2);
	close(fd);
	cr_assert_str_eq(text, "12");
}

PODD_TEST(a_failing_init_container_fails_the_pod)
{
	podd_peer_create(&p, "a", "runtime:", SLEEP,
			 "\"initContainers\":[{\"name\":\"one\",\"image\":\"runtime:\","
			 "\"command\":[\"false\"]}]");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "init container one"), "%s",
		  podd_peer_get(&p, "a", "message"));
	cr_assert_eq(podd_peer_get_int(&p, "a", "exit_code"), 1);
}

PODD_TEST(a_restart_begins_with_nothing_of_before)
{
	static const char container[] =
		"\"command\":[\"/bin/sh\",\"-c\",\"ls /tmp /v >/v/../tmp/x; cat /tmp/x "
		">/v/listing; touch /tmp/left "
		"/v/left; exec sleep "
		"1000\"],\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}]";
	char text[256] = "";
	int fd = -1;

	podd_peer_create(&p, "a", "runtime:", container,
			 "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	for (int i = 0; i < 1000 && access(in_dir("podd/pods/t_a/vol/v/left"), F_OK) < 0;
	     i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	cr_assert_eq(podd_peer_swap(&p, "a", "runtime:", 2, true), 0);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running");
	for (int i = 0; i < 1000 && access(in_dir("podd/pods/t_a/vol/v/left"), F_OK) < 0;
	     i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	fd = open(in_dir("podd/pods/t_a/vol/v/listing"), O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_gt(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	cr_assert_null(strstr(text, "left"), "%s", text);
}

/* Programs tell by it whether the machine went on or began again. */
PODD_TEST(each_start_is_a_boot_of_its_own)
{
	static const char script[] =
		"cat /proc/sys/kernel/random/boot_id; "
		"echo x >/proc/sys/kernel/random/boot_id || echo kept";
	char first[64] = "", host[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY);

	cr_assert_eq(read(fd, host, 37), 37);
	close(fd);
	snprintf(first, sizeof(first), "%.37s",
		 podd_peer_run(&p, "a", "runtime:", script, ""));
	const char *out = podd_peer_run(&p, "b", "runtime:", script, "");
	cr_assert(strlen(first) == 37 && first[36] == '\n' && strlen(out) > 37, "%s%s",
		  first, out);
	cr_assert_neq(memcmp(first, out, 37), 0, "%s", out);
	cr_assert_neq(memcmp(first, host, 37), 0, "%s", first);
	cr_assert(strstr(out, "kept"), "%s", out);
}

/* ---- nothing lost, nothing left ---- */

PODD_TEST(cycles_leave_nothing)
{
	unsigned before,
		cycles = getenv("ABX_CYCLES")
				 ? (unsigned)strtoul(getenv("ABX_CYCLES"), NULL, 10)
				 : 40;

	podd_peer_create(&p, "warm", "runtime:", SLEEP, "");
	podd_peer_settle(&p, "warm", 1);
	podd_peer_delete(&p, "warm");
	podd_peer_wait_clean(&p);
	before = podd_fixture_count_fds(&p.podd);
	for (unsigned i = 0; i < cycles; i++) {
		cr_assert_eq(podd_peer_create(&p, "a", "runtime:", SLEEP, ""), 0);
		cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running", "%s",
				 podd_peer_get(&p, "a", "message"));
		if (i % 2) {
			podd_peer_swap(&p, "a", "idle:", 2, i % 4 == 1);
			cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running");
		}
		podd_peer_delete(&p, "a");
	}
	podd_peer_wait_clean(&p);
	cr_assert_eq(podd_fixture_count_fds(&p.podd), before, "descriptors are left");
}

PODD_TEST(podd_may_be_killed_at_any_moment)
{
	enum { PODS = 6, ROUNDS = 12 };
	uint64_t generation[PODS];

	srandom(7);
	for (int i = 0; i < PODS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "p%d", i);
		generation[i] = 1;
		cr_assert_eq(podd_peer_create(&p, name, "runtime:", SLEEP, ""), 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < PODS; i++) {
			char name[8];

			if (random() % 2)
				continue;
			snprintf(name, sizeof(name), "p%d", i);
			cr_assert_eq(podd_peer_swap(&p, name,
						    random() % 2 ? "idle:" : "runtime:",
						    ++generation[i], random() % 2),
				     0, "%s", podd_peer_message(&p));
		}
		nanosleep(&(struct timespec){ .tv_nsec = random() % 60 * 1000000 }, NULL);
		podd_peer_disconnect(&p);
		podd_fixture_kill(&p.podd, SIGKILL);
		podd_fixture_start(&p.podd);
		podd_peer_connect(&p);
	}
	for (int i = 0; i < PODS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "p%d", i);
		cr_assert_str_eq(podd_peer_settle(&p, name, generation[i]), "running",
				 "%s: %s", name, podd_peer_get(&p, name, "message"));
		podd_peer_delete(&p, name);
	}
	podd_peer_wait_clean(&p);
}

PODD_TEST(what_a_killed_podd_left_half_done_is_collected_at_the_start)
{
	static const char *const folders[] = {
		"podd/pods/t_a/c1",     "podd/pods/t_a/c1/up", "podd/pods/t_ghost",
		"podd/pods/t_ghost/c2", "podd/tmp/half",       "podd/trash/old"
	};
	static const char *const files[] = { "podd/pods/t_a/c1/up/big",
					     "podd/pods/t_ghost/c2/big",
					     "podd/tmp/half/big", "podd/trash/old/big" };
	static const char *const gone[] = { "podd/pods/t_a/c1", "podd/pods/t_ghost",
					    "podd/tmp/half", "podd/trash/old" };
	int pid;

	podd_peer_create(&p, "a", "runtime:", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	pid = podd_peer_init_pid(&p, "a");
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGKILL);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		cr_assert_eq(mkdir(in_dir("%s", folders[i]), 0755), 0, "%s", folders[i]);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		write_text(in_dir("%s", files[i]), "left by a crash");
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	/* The trash is emptied by a child, off everyone's path. */
	for (int i = 0; i < 4000 && access(in_dir("podd/trash/old"), F_OK) == 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		cr_assert_lt(access(in_dir("%s", gone[i]), F_OK), 0, "%s is left",
			     gone[i]);
	/* The Pod that ran runs on. */
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	cr_assert_eq(podd_peer_init_pid(&p, "a"), pid);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

/* The one folder of the Pod whose name begins so; false: none. */
static bool folder_of_a(const char *prefix, char name[64], ino_t *ret_inode)
{
	DIR *d = opendir(in_dir("podd/pods/t_a"));
	struct dirent *e;
	bool found = false;

	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
		    !strstr(e->d_name, ".new")) {
			snprintf(name, 64, "%.63s", e->d_name);
			*ret_inode = e->d_ino;
			found = true;
		}
	if (d)
		closedir(d);
	return found;
}

static void wait_for_spare(char name[64], ino_t *ret_inode)
{
	bool found = false;

	for (int i = 0; i < 4000 && !found; i++) {
		found = folder_of_a("spare-", name, ret_inode);
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	cr_assert(found, "no spare was made");
}

PODD_TEST(the_next_container_uses_the_folder_made_ahead)
{
	char name[64], before[64];
	ino_t spare, used;

	podd_peer_create(&p, "a", "runtime:", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	wait_for_spare(name, &spare);
	cr_assert_eq(podd_peer_swap(&p, "a", "host:", 2, false), ABX_OK);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running");
	cr_assert(folder_of_a("c", name, &used));
	cr_assert_eq(used, spare);
	/* A new podd does not know what an earlier one made it for: it makes its own. */
	wait_for_spare(before, &spare);
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGKILL);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running");
	wait_for_spare(name, &spare);
	cr_assert_str_neq(name, before);
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

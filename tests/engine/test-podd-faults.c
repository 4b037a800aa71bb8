/*
 * test-podd-faults.c - a Pod is made and deleted while the n-th call of a kind fails, for
 * every n there is: each time it ends in a documented error or in a Pod that works, podd
 * lives on, and nothing is left.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"
#include "faults.h"
#include "podd-peer.h"

#define SLEEP "\"command\":[\"/bin/sleep\",\"1000\"]"
#define POD_VOLUMES "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]"
#define LIMITS "\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"64Mi\"}}"
#define MOUNTS "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}]"

static podd_peer p;
static struct fault *fault;
static char fault_file[64];

static void init(void)
{
	static char program[512];
	const char *top = getenv("top_builddir");
	int fd;

	snprintf(program, sizeof(program), "%s/tests/engine/faulty-podd",
		 top ? top : ".");
	setenv("ABX_TEST_PODD", program, 1);
	snprintf(fault_file, sizeof(fault_file), "/tmp/agentbox-test-fault-XXXXXX");
	fd = mkstemp(fault_file);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, sizeof(*fault)), 0);
	fault = mmap(NULL, sizeof(*fault), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(fault != MAP_FAILED);
	close(fd);
	setenv("ABX_FAULT_FILE", fault_file, 1);
	if (podd_fixture_missing())
		unlink(fault_file);
	podd_peer_open(&p);
	p.may_hang_up = true;
}

static void fini(void)
{
	unlink(fault_file);
	podd_peer_close(&p);
}

#define FAULT_TEST(name) \
	Test(podd_faults, name, .init = init, .fini = fini, .timeout = 300)

static void order(int kind, int n)
{
	__atomic_store_n(&fault->kind, FAULT_NONE, __ATOMIC_RELEASE);
	fault->hits = 0;
	fault->countdown = n;
	__atomic_store_n(&fault->kind, kind, __ATOMIC_RELEASE);
}

static void again(void)
{
	podd_peer_disconnect(&p);
	podd_peer_connect(&p);
}

/* A word for how it went, or a failed test. */
static const char *make(int kind, int n)
{
	int r = podd_peer_create(&p, "a", "runtime:", SLEEP "," LIMITS "," MOUNTS,
				 POD_VOLUMES);
	const char *phase;

	if (r == ABX_EUNAVAILABLE) /* it hung up: what is there now counts */
		again();
	else if (r < 0) {
		cr_assert(r == ABX_ENOMEM || r == ABX_EIO || r == ABX_EINVAL,
			  "kind %d call %d: create gave %d: %s", kind, n, r,
			  podd_peer_message(&p));
		cr_assert_gt(strlen(podd_peer_message(&p)), 5, "kind %d call %d", kind,
			     n);
		return "refused";
	}
	if (r < 0 && !podd_peer_has(&p, "a"))
		return "hung up";
	while (!(phase = podd_peer_settle(&p, "a", 1)))
		again();
	if (strcmp(phase, "failed") == 0) {
		cr_assert_gt(strlen(podd_peer_get(&p, "a", "reason")), 2,
			     "kind %d call %d: no reason", kind, n);
		cr_assert_gt(strlen(podd_peer_get(&p, "a", "message")), 5,
			     "kind %d call %d: no message", kind, n);
	}
	return phase;
}

static void cycle(int kind, int n)
{
	make(kind, n);
	for (int i = 0; podd_peer_has(&p, "a") && !podd_peer_try_delete(&p, "a"); i++) {
		cr_assert_lt(i, 3, "kind %d call %d: not to be deleted", kind, n);
		again();
	}
}

static void every_call(int kind)
{
	unsigned before;
	int n = 0, hits = 1;

	/* Once without, so that the image is there and what stays open is open. */
	order(FAULT_NONE, 0);
	cycle(FAULT_NONE, 0);
	podd_peer_wait_clean(&p);
	before = podd_fixture_count_fds(&p.podd);
	while (hits && n < 2000) {
		order(kind, ++n);
		cycle(kind, n);
		hits = fault->hits;
		order(FAULT_NONE, 0);
		podd_peer_wait_clean(&p);
		cr_assert_eq(waitpid(p.podd.pid, NULL, WNOHANG), 0,
			     "kind %d call %d: podd died", kind, n);
		cr_assert_eq(podd_fixture_count_fds(&p.podd), before,
			     "kind %d call %d: descriptors are left", kind, n);
	}
	cr_assert_gt(n, 3, "kind %d: nothing ever failed", kind);
	cr_log_info("kind %d: %d calls", kind, n - 1);
	/* And it still works. */
	cr_assert_str_eq(make(FAULT_NONE, 0), "running");
	podd_peer_delete(&p, "a");
}

FAULT_TEST(every_allocation_may_fail)
{
	every_call(FAULT_ALLOC);
}

FAULT_TEST(every_fork_may_fail)
{
	every_call(FAULT_FORK);
}

FAULT_TEST(every_mount_may_fail)
{
	every_call(FAULT_MOUNT);
}

FAULT_TEST(every_descriptor_may_be_one_too_many)
{
	every_call(FAULT_DESCRIPTOR);
}

FAULT_TEST(every_write_may_find_a_full_disk)
{
	every_call(FAULT_FILES);
}

FAULT_TEST(every_clone_and_mount_syscall_may_fail)
{
	every_call(FAULT_SYSCALL);
}

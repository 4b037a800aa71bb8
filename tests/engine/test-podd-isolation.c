/*
 * test-podd-isolation.c - what keeps a Pod apart from the machine, from podd and from
 * what is podd's own: ids, namespaces, seccomp, rights, names, folders. Real Pods.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"
#include "podd-case.h"

#define PODD_TEST(name) PODD_CASE(podd_isolation, name)

PODD_TEST(root_inside_is_nobody_outside)
{
	char path[64], line[256];
	unsigned uid = 0;
	FILE *f;

	podd_peer_create(&p, "a", "runtime:", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	snprintf(path, sizeof(path), "/proc/%d/status", podd_peer_init_pid(&p, "a"));
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "Uid:", 4) == 0)
			uid = (unsigned)strtoul(line + 4, NULL, 10);
	if (f)
		fclose(f);
	cr_assert_geq(uid, 0x10000000u);
}

PODD_TEST(a_container_is_confined)
{
	const char *out = podd_peer_run(
		&p, "a", "runtime:",
		"grep -E 'Seccomp:|CapBnd' /proc/self/status\n"
		"head -c1 /proc/kcore | wc -c\n"
		"echo 1 >/proc/sys/kernel/printk && echo WROTE\n"
		"mount -t tmpfs none /mnt && echo MOUNTED\n"
		"mknod /sda b 8 0 && echo MADE\n"
		"hostname x && echo RENAMED\n"
		"unshare -U true && echo NESTED\n"
		"(sleep 0 & wait) && echo forks\n"
		"ls /proc/1/exe >/dev/null && echo pid1\n"
		"echo pids $(ls /proc | grep -c '^[0-9]')\n"
		"for d in $(find / -xdev -type b 2>/dev/null); do echo DEVICE $d; done\n",
		"");

	cr_assert(strstr(out, "Seccomp:\t2"), "%s", out);
	cr_assert(strstr(out, "CapBnd:\t00000000a80425fb"), "%s", out);
	cr_assert_null(strstr(out, "WROTE"), "%s", out);
	cr_assert_null(strstr(out, "MOUNTED"), "%s", out);
	cr_assert_null(strstr(out, "MADE"), "%s", out);
	cr_assert_null(strstr(out, "RENAMED"), "%s", out);
	cr_assert_null(strstr(out, "NESTED"), "a user namespace of its own: %s", out);
	cr_assert(strstr(out, "forks"), "%s", out);
	cr_assert_null(strstr(out, "DEVICE"), "%s", out);
	cr_assert(strstr(out, "pids "), "%s", out);
	cr_assert(strstr(out, "\n0\n"), "/proc/kcore is empty: %s", out);
}

/* What Debian's seccomp profile lets through, tried by number; 32-bit ways included. */
PODD_TEST(no_program_gets_user_namespaces_or_vsock)
{
	static const char script[] =
		"python3 - <<'END'\n"
		"import ctypes, socket\n"
		"libc = ctypes.CDLL(None, use_errno=True)\n"
		"for name, nr, arg in (('unshare', 272, 0x10000000), ('clone', 56, "
		"0x10000011), ('clone3', 435, 0)):\n"
		"    if libc.syscall(nr, arg, 0, 0, 0, 0) != -1: print('NESTED', name, "
		"flush=True)\n"
		"    elif ctypes.get_errno() == 22: print('REACHED', name)\n"
		"for family in (1, 2, 10, 16, 17):\n"
		"    socket.socket(family, 3 if family > 10 else 1)\n"
		"try: print('VSOCK', socket.socket(40, 1))\n"
		"except OSError: print('refused')\n"
		"import threading, subprocess\n"
		"threading.Thread(target=print, args=('threads',)).start()\n"
		"print(subprocess.run(['echo', 'children'], "
		"capture_output=True).stdout)\n"
		"END\n";
	const char *out;

#ifndef __x86_64__
	cr_skip_test("system call numbers of x86_64");
#endif
	if (access("/usr/bin/python3", X_OK) < 0)
		cr_skip_test("needs python3");
	out = podd_peer_run(&p, "a", "host:", script, "");
	cr_assert_null(strstr(out, "NESTED"), "%s", out);
	cr_assert_null(strstr(out, "REACHED"), "%s", out);
	cr_assert_null(strstr(out, "VSOCK"), "%s", out);
	cr_assert(strstr(out, "refused") && strstr(out, "threads") &&
			  strstr(out, "children"),
		  "%s", out);
}

PODD_TEST(privileged_starts_privileged)
{
	const char *out = podd_peer_run(
		&p, "a", "runtime:",
		"cat /proc/self/uid_map; grep -E 'Seccomp:' /proc/self/status\n"
		"mount -t tmpfs none /mnt && echo MOUNTED\n"
		"[ -e /dev/null ] && ls /sys/fs/cgroup | wc -l\n",
		"\"securityContext\":{\"privileged\":true}");

	cr_assert(strstr(out, "4294967295"), "no shifted ids: %s", out);
	cr_assert(strstr(out, "Seccomp:\t0"), "%s", out);
	cr_assert(strstr(out, "MOUNTED"), "%s", out);
}

PODD_TEST(privileged_is_refused_where_the_machine_runs_none)
{
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGTERM);
	p.podd.option = "--no-privileged";
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:",
				      SLEEP ",\"securityContext\":{\"privileged\":true}",
				      ""),
		     ABX_EUNSUPPORTED);
	cr_assert(strstr(podd_peer_message(&p), "--no-privileged"), "%s",
		  podd_peer_message(&p));
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", SLEEP, ""), 0);
}

/* The test's shell keeps two of its own. */
PODD_TEST(a_container_inherits_no_descriptor_of_its_starter)
{
	const char *out =
		podd_peer_run(&p, "a", "host:", "ls -l /proc/1/fd | grep -c memfd", "");

	cr_assert_str_eq(out, "0\n");
}

/* ---- podd believes nobody ---- */

PODD_TEST(names_that_are_paths_are_refused)
{
	static const char *const names[] = { "../a", "a/b", ".", "A", "", "a_b" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_assert_eq(podd_peer_create(&p, names[i], "runtime:", SLEEP, ""),
			     ABX_EINVAL, "name %s", names[i]);
	cr_assert_eq(podd_peer_create(&p, "a", "oci:../../../etc", SLEEP, ""), 0);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "a", "reason"), "InvalidImageName");
}

static int run_podd_here(void)
{
	char program[512];
	int status = -1;
	pid_t pid;

	snprintf(program, sizeof(program), "%s/src/agentbox-podd",
		 getenv("top_builddir") ? getenv("top_builddir") : ".");
	pid = fork();
	if (pid == 0) {
		int log = open(p.podd.log, O_WRONLY | O_APPEND | O_CREAT, 0600);

		dup2(log, 2);
		execl(program, "agentbox-podd", "--state-dir", p.podd.dir, "--purge",
		      (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* The state folder is agentboxd's, which can put a folder of its own in the place of
 * podd's. */
PODD_TEST(a_folder_that_is_not_roots_alone_is_not_believed)
{
	static const struct {
		uid_t owner;
		mode_t mode;
	} cases[] = { { 65534, 0700 }, { 0, 0770 }, { 0, 0702 } };

	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGTERM);
	cr_assert_eq(rename(in_dir("podd"), in_dir("moved")), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(mkdir(in_dir("podd"), 0700), 0);
		cr_assert_eq(chmod(in_dir("podd"), cases[i].mode), 0);
		cr_assert_eq(chown(in_dir("podd"), cases[i].owner, 0), 0);
		cr_assert_neq(run_podd_here(), 0, "case %zu", i);
		cr_assert_eq(rmdir(in_dir("podd")), 0, "case %zu was used", i);
	}
	cr_assert_eq(rename(in_dir("moved"), in_dir("podd")), 0);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
}

/* Layers hold setuid programs of foreign images, owned by root out here. */
PODD_TEST(nobody_else_passes_through_podds_folder)
{
	static const char *const folders[] = { "podd", "podd/layers", "podd/pods",
					       "podd/tmp", "podd/trash" };
	struct stat st;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		cr_assert_eq(stat(in_dir("%s", folders[i]), &st), 0);
		cr_assert_eq(st.st_mode & 07777, 0700, "%s", folders[i]);
		cr_assert_eq(st.st_uid, 0);
	}
}

PODD_TEST(only_known_requests_are_answered)
{
	cr_assert_eq(podd_peer_call(&p, 17, podd_peer_body("{}")), ABX_EUNSUPPORTED);
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_SWAP, podd_peer_body("{\"ns\":\"t\"}")),
		     ABX_EINVAL);
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_SWAP,
				    podd_peer_body("{\"ns\":\"t\",\"name\":\"no\"}")),
		     ABX_ENOTFOUND);
	cr_assert_eq(podd_peer_call(
			     &p, ABX__PODD_CONNECT,
			     podd_peer_body("{\"ns\":\"t\",\"name\":\"no\",\"port\":1}")),
		     ABX_ENOTFOUND);
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", SLEEP,
				      "\"runtimeClassName\":\"kata-fc\""),
		     ABX_EUNSUPPORTED);
	cr_assert(strstr(podd_peer_message(&p), "kata-fc"));
}

/*
 * test-podd.c - what agentbox-podd promises of isolation, limits, images, and leaving
 * nothing behind. Real Pods.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"
#include "podd-peer.h"

static podd_peer p;

static void fini(void)
{
	podd_peer_close(&p);
}

static void init(void)
{
	podd_peer_open(&p);
}

#define PODD_TEST(name) Test(podd, name, .init = init, .fini = fini, .timeout = 180)

#define SLEEP "\"command\":[\"/bin/sleep\",\"1000\"]"

/* Runs a program of the tree; its output is not wanted. */
static void run(const char *program, const char *const *args)
{
	const char *argv[64] = { program };
	char path[512];
	int status = -1;
	pid_t pid;

	for (size_t i = 0; args[i] && i < 62; i++)
		argv[i + 1] = args[i];
	snprintf(path, sizeof(path), "%s/%s", getenv("top_srcdir"), program);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		execv(path, (char *const *)argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0, "%s failed", program);
}

/* A program of the system, to its end: its status. */
static int run_tool(const char *const *argv)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

static const char *in_dir(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *in_dir(const char *fmt, ...)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];
	int n = snprintf(path, 256, "%s/", p.podd.dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path + n, 256 - (size_t)n, fmt, ap);
	va_end(ap);
	return path;
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f, "%s", path);
	fputs(text, f);
	fclose(f);
}

static void build_busybox(void)
{
	mkdir(in_dir("images"), 0755);
	run("deploy/images/build-busybox",
	    (const char *const[]){ in_dir("images/busybox"), NULL });
}

/* ---- the ways of a container ---- */

PODD_TEST(a_pod_runs_and_its_deletion_leaves_nothing)
{
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", SLEEP, ""), 0, "%s",
		     podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

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

PODD_TEST(fields_that_are_not_honoured_are_refused_by_path)
{
	static const struct {
		const char *container, *more, *path;
	} cases[] = {
		{ "\"livenessProbe\":{}", "", "spec.containers[0].livenessProbe" },
		{ "\"securityContext\":{\"capabilities\":{}}", "",
		  "spec.containers[0].securityContext.capabilities" },
		{ "\"env\":[{\"name\":\"A\",\"valueFrom\":{}}]", "",
		  "spec.containers[0].env[0].valueFrom" },
		{ "\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}", "",
		  "spec.containers[0].resources.limits.nvidia.com/gpu" },
		{ "", "\"hostNetwork\":true", "spec.hostNetwork" },
		{ "", "\"nodeSelector\":{}", "spec.nodeSelector" },
		{ "", "\"shareProcessNamespace\":true", "spec.shareProcessNamespace" },
		{ "", "\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/\"}}]",
		  "spec.volumes[0].hostPath" },
		{ "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/proc/x\"}]", "",
		  "spec.containers[0].volumeMounts[0].mountPath" },
		{ "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/a/../b\"}]", "",
		  "spec.containers[0].volumeMounts[0].mountPath" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = podd_peer_create(&p, "a", "runtime:", cases[i].container,
					 cases[i].more);

		cr_assert(r == ABX_EUNSUPPORTED || r == ABX_EINVAL, "case %zu gave %d", i,
			  r);
		cr_assert(strstr(podd_peer_message(&p), cases[i].path), "case %zu: %s", i,
			  podd_peer_message(&p));
	}
	podd_peer_wait_clean(&p);
}

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

/* ---- limits ---- */

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

/* ---- network ---- */

static int listen_any(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(listen(fd, 8), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* Until somebody listens there. */
static void connect_to(const char *name, int port)
{
	p.reply_fd = -1;
	for (int i = 0; i < 1000 && p.reply_fd < 0; i++) {
		podd_peer_call(
			&p, ABX__PODD_CONNECT,
			podd_peer_body("{\"ns\":\"t\",\"name\":\"%s\",\"port\":%d}", name,
				       port));
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	cr_assert_geq(p.reply_fd, 0, "%s", podd_peer_message(&p));
}

static bool host_reaches(const char *address, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct timeval limit = { .tv_sec = 1 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool reached;

	cr_assert_eq(inet_pton(AF_INET, address, &a.sin_addr), 1);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	reached = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	close(fd);
	return reached;
}

PODD_TEST(a_pod_reaches_neither_another_pod_nor_the_host)
{
	char script[1024], other[64] = "";
	uint16_t port;
	int fd = listen_any(&port);
	const char *out;

	out = podd_peer_run(
		&p, "a", "runtime:",
		"(while :; do echo PEER | nc -l -p 8000; done) >/dev/null 2>&1 &\n"
		"ip -4 -o addr show eth0 | sed 's/.*inet \\([0-9.]*\\).*/\\1/'\n",
		"");
	sscanf(out, "%63[0-9.]", other);
	if (!*other)
		cr_skip_test("no network for Pods on this machine");
	/* It does listen, so not reaching it means something. */
	connect_to("a", 8000);
	close(p.reply_fd);
	cr_assert_not(host_reaches(other, 8000), "by whoever has an account on the host");
	snprintf(script, sizeof(script),
		 "echo | nc -w 1 127.0.0.1 1; echo self\n"
		 "nc -w 2 %s 8000 </dev/null && echo REACHED-POD\n"
		 "gw=$(ip route | sed -n 's/default via \\([0-9.]*\\).*/\\1/p'); echo gw "
		 "$gw\n"
		 "echo | nc -w 2 $gw %u && echo REACHED-HOST\n"
		 "ping -c1 -W1 $gw >/dev/null && echo PINGED-HOST\n"
		 "ping -c1 -W1 127.0.0.1 >/dev/null && echo ping works\n",
		 other, port);
	out = podd_peer_run(&p, "b", "runtime:", script, "");
	close(fd);
	cr_assert(strstr(out, "gw 100."), "%s", out);
	cr_assert(strstr(out, "ping works"), "%s", out);
	cr_assert_null(strstr(out, "REACHED"), "%s", out);
	cr_assert_null(strstr(out, "PINGED"), "%s", out);
}

PODD_TEST(a_port_on_the_pods_loopback_is_reached_by_connect)
{
	char text[16] = "";

	podd_peer_run(&p, "a", "runtime:",
		      "(while :; do echo hello | nc -l -p 8000; done) "
		      ">/dev/null 2>&1 &",
		      "");
	connect_to("a", 8000);
	fcntl(p.reply_fd, F_SETFL, 0);
	cr_assert_eq(read(p.reply_fd, text, sizeof(text) - 1), 6);
	close(p.reply_fd);
	p.reply_fd = -1;
	cr_assert_str_eq(text, "hello\n");
}

/* Which "localhost" is to some servers. */
PODD_TEST(a_port_on_the_pods_ipv6_loopback_alone_is_reached_too)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	char text[16] = "";

	podd_peer_run(&p, "a", "runtime:", "httpd -f -p '[::1]:8001' >/dev/null 2>&1 &",
		      "");
	connect_to("a", 8001);
	fcntl(p.reply_fd, F_SETFL, 0);
	cr_assert_eq(write(p.reply_fd, request, sizeof(request) - 1),
		     sizeof(request) - 1);
	cr_assert_eq(read(p.reply_fd, text, 7), 7);
	close(p.reply_fd);
	p.reply_fd = -1;
	cr_assert_str_eq(text, "HTTP/1.");
}

/* ---- images ---- */

PODD_TEST(the_host_image_is_a_machine_for_user)
{
	const char *out;

	if (access("/usr/bin/sudo", X_OK) < 0 || access("/usr/bin/python3", X_OK) < 0 ||
	    access("/usr/bin/git", X_OK) < 0 || access("/usr/bin/curl", X_OK) < 0)
		cr_skip_test("the host lacks sudo, python3, git or curl");
	out = podd_peer_run(&p, "a", "host:",
			    "su user -c 'cd; id -un; sudo -n id -u; python3 -c \"import "
			    "json, ssl; print(6*7)\"; python -V; "
			    "git --version; curl --version | head -1; touch x && stat -c "
			    "%U x; cat /etc/shadow'\n"
			    "touch /usr/local/x && echo usr writable\n"
			    "ls -ld /usr/bin/sudo\n",
			    "");
	cr_assert(strstr(out, "user\n0\n42\n"), "%s", out);
	cr_assert(strstr(out, "git version"), "%s", out);
	cr_assert(strstr(out, "curl "), "%s", out);
	cr_assert(strstr(out, "Permission denied"), "shadow is not for user: %s", out);
	cr_assert(strstr(out, "usr writable"), "%s", out);
	cr_assert(access("/usr/local/x", F_OK) < 0, "the host's /usr was written to");
}

PODD_TEST(a_busybox_only_image_runs)
{
	build_busybox();
	cr_assert(
		strstr(podd_peer_run(&p, "a", "oci:busybox", "id -u; ls /", ""), "0\n"));
}

PODD_TEST(an_image_without_a_shell_says_what_is_missing)
{
	mkdir(in_dir("images"), 0755);
	mkdir(in_dir("empty"), 0755);
	write_text(in_dir("empty/hello"), "hello");
	run("deploy/images/oci-layout",
	    (const char *const[]){ in_dir("images/empty"), in_dir("empty"), NULL });
	podd_peer_create(
		&p, "a", "oci:empty",
		"\"command\":[\"/mnt/agentbox/tini\",\"-g\",\"--\",\"/bin/sh\",\"x\"]",
		"");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "a", "reason"), "StartError");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "/bin/sh") &&
			  strstr(podd_peer_get(&p, "a", "message"), "oci:empty"),
		  "%s", podd_peer_get(&p, "a", "message"));
	/* And again with a program that is found on PATH or not at all. */
	podd_peer_create(&p, "b", "oci:empty", "\"command\":[\"nosuch\"]", "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), "nosuch"), "%s",
		  podd_peer_get(&p, "b", "message"));
	podd_peer_create(&p, "c", "oci:empty", "", "");
	cr_assert_str_eq(podd_peer_settle(&p, "c", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "c", "message"), "Entrypoint"), "%s",
		  podd_peer_get(&p, "c", "message"));
}

PODD_TEST(an_image_that_does_not_exist_is_named)
{
	podd_peer_create(&p, "a", "oci:nosuch", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "a", "reason"), "ErrImagePull");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "oci:nosuch"), "%s",
		  podd_peer_get(&p, "a", "message"));
	/* A registry nobody listens at. */
	if (access("/usr/bin/skopeo", X_OK) < 0)
		return;
	podd_peer_create(&p, "b", "127.0.0.1:1/no/such:1", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "b", "reason"), "ErrImagePull");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), "127.0.0.1:1/no/such:1"),
		  "%s", podd_peer_get(&p, "b", "message"));
}

/* Debian's registry on a free port, ended with the test. */
static pid_t start_registry(uint16_t port)
{
	char text[512];
	pid_t pid;

	snprintf(text, sizeof(text),
		 "version: 0.1\nlog: {level: error}\n"
		 "storage: {filesystem: {rootdirectory: %s/registry}}\n"
		 "http: {addr: '127.0.0.1:%u'}\n",
		 p.podd.dir, port);
	write_text(in_dir("registry.yml"), text);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 1);
		dup2(null, 2);
		execl("/usr/bin/docker-registry", "docker-registry", "serve",
		      in_dir("registry.yml"), (char *)NULL);
		_exit(127);
	}
	return pid;
}

static int push(const char *reference)
{
	char from[300], to[300];
	int status = -1;

	snprintf(from, sizeof(from), "oci:%s/images/busybox:latest", p.podd.dir);
	snprintf(to, sizeof(to), "docker://%s", reference);
	/* Until it listens. */
	for (int i = 0; i < 100 && status != 0; i++) {
		if (i)
			nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
		status = run_tool((const char *const[]){
			"/usr/bin/skopeo", "copy", "--quiet", "--insecure-policy",
			"--dest-tls-verify=false", from, to, NULL });
	}
	return status;
}

PODD_TEST(a_registry_is_pulled_from_once_and_an_absent_tag_is_named)
{
	char image[64], absent[64];
	uint16_t port;
	pid_t registry;

	if (access("/usr/bin/docker-registry", X_OK) < 0 ||
	    access("/usr/bin/skopeo", X_OK) < 0)
		cr_skip_test("needs docker-registry and skopeo");
	build_busybox();
	close(listen_any(&port));
	registry = start_registry(port);
	snprintf(image, sizeof(image), "127.0.0.1:%u/team/busybox:1", port);
	snprintf(absent, sizeof(absent), "127.0.0.1:%u/team/busybox:nosuch", port);
	cr_assert_eq(push(image), 0, "the registry took no image");
	cr_assert_str_eq(podd_peer_run(&p, "a", image, "echo pulled", ""), "pulled\n");
	podd_peer_create(&p, "b", absent, SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "b", "reason"), "ErrImagePull");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), absent), "%s",
		  podd_peer_get(&p, "b", "message"));
	kill(registry, SIGKILL);
	waitpid(registry, NULL, 0);
	/* What is unpacked needs no registry, also for the next podd. */
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGTERM);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	cr_assert_str_eq(podd_peer_run(&p, "c", image, "echo kept", ""), "kept\n");
}

PODD_TEST(an_archive_of_a_layout_runs_and_an_absent_one_is_named)
{
	char from[300], to[300];

	if (access("/usr/bin/skopeo", X_OK) < 0)
		cr_skip_test("needs skopeo");
	build_busybox();
	snprintf(from, sizeof(from), "oci:%s/images/busybox:latest", p.podd.dir);
	snprintf(to, sizeof(to), "oci-archive:%s/images/box.tar", p.podd.dir);
	cr_assert_eq(
		run_tool((const char *const[]){ "/usr/bin/skopeo", "copy", "--quiet",
						"--insecure-policy", from, to, NULL }),
		0);
	cr_assert_str_eq(
		podd_peer_run(&p, "a", "oci-archive:box.tar", "echo it runs", ""),
		"it runs\n");
	podd_peer_create(&p, "b", "oci-archive:nosuch.tar", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "b", "reason"), "ErrImagePull");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), "nosuch.tar"), "%s",
		  podd_peer_get(&p, "b", "message"));
}

PODD_TEST(fifty_layers_with_whiteouts)
{
	const char *args[64], *out;
	static char names[50][256];
	char command[600], out_dir[256];
	size_t n = 0;

	build_busybox();
	snprintf(out_dir, sizeof(out_dir), "%s/images/deep", p.podd.dir);
	args[n++] = out_dir;
	snprintf(names[0], 256, "%s/l0", p.podd.dir);
	mkdir(names[0], 0755);
	mkdir(in_dir("l0/bin"), 0755);
	mkdir(in_dir("l0/gone"), 0755);
	mkdir(in_dir("l0/opaque"), 0755);
	write_text(in_dir("l0/gone/file"), "x");
	write_text(in_dir("l0/opaque/old"), "x");
	write_text(in_dir("l0/removed"), "x");
	snprintf(command, sizeof(command),
		 "cd %s/bin && cp /bin/busybox . && for i in sh ls cat mv sleep; do ln "
		 "-s busybox $i; done",
		 names[0]);
	cr_assert_eq(system(command), 0);
	args[n++] = names[0];
	for (int i = 1; i < 50; i++) {
		char path[300];

		snprintf(names[i], 256, "%s/l%d", p.podd.dir, i);
		mkdir(names[i], 0755);
		snprintf(path, sizeof(path), "%s/f%d", names[i], i);
		write_text(path, "y");
		/* Each layer hides the file of the one before. */
		snprintf(path, sizeof(path), "%s/.wh.f%d", names[i], i - 1);
		write_text(path, "");
		args[n++] = names[i];
	}
	write_text(in_dir("l20/.wh.gone"), "");
	write_text(in_dir("l21/.wh.removed"), "");
	mkdir(in_dir("l22/opaque"), 0755);
	write_text(in_dir("l22/opaque/.wh..wh..opq"), "");
	write_text(in_dir("l22/opaque/new"), "x");
	args[n] = NULL;
	run("deploy/images/oci-layout", args);
	out = podd_peer_run(&p, "a", "oci:deep", "ls /; echo :; ls /opaque", "");
	cr_assert(strstr(out, "f49\n"), "%s", out);
	cr_assert_null(strstr(out, "f48\n"), "%s", out);
	cr_assert_null(strstr(out, "gone"), "%s", out);
	cr_assert_null(strstr(out, "removed"), "%s", out);
	cr_assert(strstr(out, ":\nnew\n"), "%s", out);
	cr_assert_null(strstr(out, "old"), "%s", out);
}

PODD_TEST(a_hostile_layer_writes_nothing_outside_and_brings_no_device)
{
	static const char script[] =
		"import tarfile, io, sys\n"
		"t = tarfile.open(sys.argv[1], 'w')\n"
		"def add(name, kind=tarfile.REGTYPE, link='', **k):\n"
		"    i = tarfile.TarInfo(name); i.type = kind; i.linkname = link\n"
		"    for a, v in k.items(): setattr(i, a, v)\n"
		"    data = b'' if kind != tarfile.REGTYPE else b'evil'\n"
		"    i.size = len(data); t.addfile(i, io.BytesIO(data))\n"
		"add('dev/sda', tarfile.BLKTYPE, devmajor=8, devminor=0)\n"
		"add('abs', tarfile.SYMTYPE, sys.argv[2])\n"
		"add(sys.argv[3])\n"
		"t.close()\n";
	static const char *const entries[] = { "../../escaped", "abs/escaped" };

	mkdir(in_dir("images"), 0755);
	write_text(in_dir("evil.py"), script);
	for (int i = 0; i < 2; i++) {
		char command[1024], image[32], layout[64];

		snprintf(command, sizeof(command), "python3 %s %s %s %s",
			 in_dir("evil.py"), in_dir("evil.tar"), p.podd.dir, entries[i]);
		cr_assert_eq(system(command), 0);
		snprintf(image, sizeof(image), "oci:evil%d", i);
		snprintf(layout, sizeof(layout), "images/evil%d", i);
		run("deploy/images/oci-layout",
		    (const char *const[]){ in_dir("%s", layout), in_dir("evil.tar"),
					   NULL });
		snprintf(command, sizeof(command), "e%d", i);
		podd_peer_create(&p, command, image, SLEEP, "");
		cr_assert_str_eq(podd_peer_settle(&p, command, 1), "failed");
		/* A link in the way is replaced by a folder of the layer's own, which is
		 * as good. */
		if (i == 0)
			cr_assert_str_eq(podd_peer_get(&p, command, "reason"),
					 "ErrImagePull");
		cr_assert_lt(access(in_dir("escaped"), F_OK), 0, "escaped");
	}
}

PODD_TEST(a_damaged_layer_is_refused)
{
	DIR *d;
	struct dirent *e;

	build_busybox();
	d = opendir(in_dir("images/busybox/blobs/sha256"));
	while (d && (e = readdir(d))) {
		struct stat st;
		const char *path = in_dir("images/busybox/blobs/sha256/%s", e->d_name);

		if (e->d_name[0] != '.' && stat(path, &st) == 0 && st.st_size > 100000) {
			int fd = open(path, O_WRONLY | O_APPEND);

			cr_assert_eq(write(fd, "x", 1), 1);
			close(fd);
		}
	}
	closedir(d);
	podd_peer_create(&p, "a", "oci:busybox", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "digest"), "%s",
		  podd_peer_get(&p, "a", "message"));
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

/* The test's shell keeps two of its own. */
PODD_TEST(a_container_inherits_no_descriptor_of_its_starter)
{
	const char *out =
		podd_peer_run(&p, "a", "host:", "ls -l /proc/1/fd | grep -c memfd", "");

	cr_assert_str_eq(out, "0\n");
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

Test(podd, starters_are_born_in_their_group_where_cgroups_are_v2, .init = init_v2,
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

/*
 * test-envd-root.c - the static daemon in a root that holds nothing but busybox: no
 * libraries, no accounts, no /proc.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "envd-child.h"

static envd_child child;
static char root[64];

static bool copy_program(const char *from, const char *to)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execlp("cp", "cp", from, to, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status == 0;
}

static bool make_root(void)
{
	const char *top = getenv("top_builddir");
	char path[4200], envd[4200];

	snprintf(root, sizeof(root), "/tmp/abx-envd-root-XXXXXX");
	if (!mkdtemp(root))
		return false;
	snprintf(envd, sizeof(envd), "%s/agentbox-envd", top ? top : ".");
	snprintf(path, sizeof(path), "%s/envd", root);
	if (!copy_program(envd, path))
		return false;
	snprintf(path, sizeof(path), "%s/bin", root);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/bin/busybox", root);
	if (!copy_program("/bin/busybox", path))
		return false;
	snprintf(path, sizeof(path), "%s/bin/sh", root);
	if (symlink("busybox", path) < 0)
		return false;
	snprintf(path, sizeof(path), "%s/dev", root);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/dev/null", root);
	return mknod(path, S_IFCHR | 0666, makedev(1, 3)) == 0;
}

static void remove_root(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", root, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static bool is_static_and_allowed(void)
{
#ifdef __SANITIZE_ADDRESS__
	return false;
#else
	return geteuid() == 0 && access("/bin/busybox", X_OK) == 0;
#endif
}

Test(envd_root, a_busybox_root_without_accounts_is_enough, .timeout = 60)
{
	envd_run run;
	envd_answer answer;

	if (!is_static_and_allowed())
		cr_skip_test("needs root, /bin/busybox (busybox-static) and a build "
			     "without sanitizers");
	cr_assert(make_root());
	child.root = root;
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
	run = envd_child_run(&child, "{\"process\":{\"cmd\":\"sh\",\"args\":[\"-c\","
				     "\"echo $HOME $USER; pwd\"]},"
				     "\"stdin\":false}");
	cr_assert_str_eq(abx__buf_str(&run.out), "/root root\n/\n", "%s",
			 run.error_message);
	cr_assert(run.has_end && run.exit_code == 0);
	envd_run_done(&run);
	run = envd_child_run(&child, "{\"process\":{\"cmd\":\"/bin/bash\"}}");
	cr_assert(strstr(run.error_message,
			 "cannot run '/bin/bash': no such file in this image"));
	envd_run_done(&run);
	answer = envd_child_request(&child, "POST", "/files?path=/a/b",
				    "Content-Type: application/octet-stream\r\n", "hello",
				    5);
	cr_assert(answer.status == 200, "%s", abx__buf_str(&answer.body));
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "GET", "/files?path=/a/b", NULL, NULL, 0);
	cr_assert_str_eq(abx__buf_str(&answer.body), "hello");
	envd_answer_done(&answer);
	answer = envd_child_call(&child, "/filesystem.Filesystem/ListDir",
				 "{\"path\":\"/\",\"depth\":2}");
	cr_assert(strstr(abx__buf_str(&answer.body), "\"path\":\"/a/b\""));
	cr_assert(strstr(abx__buf_str(&answer.body), "\"owner\":\"root\""));
	envd_answer_done(&answer);
	answer = envd_child_request(&child, "GET", "/metrics", NULL, NULL, 0);
	cr_assert(answer.status == 500, "metrics need /proc");
	envd_answer_done(&answer);
	envd_child_stop(&child);
	remove_root();
}

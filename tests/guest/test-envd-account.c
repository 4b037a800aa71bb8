/*
 * test-envd-account.c - whose rights, groups, home and environment a command has: an
 * image of our own with an account that is not root.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd-child.h"
#include "envd-root.h"

static envd_child child;
static char root[64];

static void in_root(char path[128], const char *name)
{
	snprintf(path, 128, "%s/%s", root, name);
}

static void make_dir(const char *name, mode_t mode, uid_t uid)
{
	char path[128];

	in_root(path, name);
	mkdir(path, 0755);
	cr_assert(chmod(path, mode) == 0 && chown(path, uid, uid) == 0, "%s", path);
}

static void start(void)
{
	envd_answer answer;

	if (!envd_root_is_possible())
		cr_skip_test("needs root, /bin/busybox (busybox-static) and a build "
			     "without sanitizers");
	cr_assert(envd_root_make(root));
	make_dir("", 0755, 0);
	make_dir("etc", 0755, 0);
	make_dir("home", 0755, 0);
	make_dir("home/user", 0755, 1000);
	make_dir("secret", 0700, 0);
	make_dir("work", 0755, 0);
	envd_root_put(root, "etc/passwd",
		      "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"
		      "lost:x:1001:1001::/home/lost:/bin/sh\n");
	envd_root_put(
		root, "etc/group",
		"root:x:0:\nuser:x:1000:\ndocker:x:2000:other,user\nmail:x:8:other\n"
		"video:x:44:user\n");
	envd_root_put(root, "etc/profile", "export FROM_PROFILE=yes\n");
	child.root = root;
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
	answer = envd_child_call(&child, "/init", "{\"defaultUser\":\"user\"}");
	cr_assert(answer.status == 204, "%s", abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

static void stop(void)
{
	if (child.pid)
		envd_child_stop(&child);
	if (*root)
		envd_root_remove(root);
}

TestSuite(envd_account, .init = start, .fini = stop, .timeout = 60);

/* A shell script of the default user, or of `headers`; `config` are members of the
 * process. */
static envd_run run_sh(const char *headers, const char *flags, const char *script,
		       const char *config)
{
	ABX_CLEANUP(abx__freep)
	char *json =
		abx__strf("{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"%s\",\"%s\"]%s},"
			  "\"stdin\":false}",
			  flags, script, config);
	envd_answer answer =
		envd_child_stream(&child, "/process.Process/Start", headers, json);
	envd_run run = { 0 };

	envd_run_read(&run, &answer);
	envd_answer_done(&answer);
	return run;
}

static void expect_out(const char *headers, const char *flags, const char *script,
		       const char *config, const char *want)
{
	envd_run run = run_sh(headers, flags, script, config);

	cr_assert_str_eq(abx__buf_str(&run.out), want, "%s: %s %s %s", script,
			 abx__buf_str(&run.out), abx__buf_str(&run.err),
			 run.error_message);
	envd_run_done(&run);
}

Test(envd_account, the_default_user_has_his_ids_groups_and_home)
{
	expect_out(NULL, "-c",
		   "busybox id -u; busybox id -g; busybox id -G; pwd; echo $HOME $USER "
		   "$LOGNAME",
		   "", "1000\n1000\n1000 44 2000\n/home/user\n/home/user user user\n");
}

Test(envd_account, a_call_may_name_another)
{
	/* "root:" */
	expect_out("Authorization: Basic cm9vdDo=\r\n", "-c",
		   "busybox id -u; busybox id -G; pwd", "", "0\n0\n/\n");
	/* "lost:", whose home does not exist */
	expect_out("Authorization: Basic bG9zdDo=\r\n", "-c", "busybox id -u; pwd", "",
		   "1001\n/\n");
}

Test(envd_account, the_default_working_directory_is_inits)
{
	envd_answer answer = envd_child_call(&child, "/init",
					     "{\"defaultWorkdir\":\"/work\",\"envVars\":"
					     "{\"A\":\"init\",\"B\":\"init\"}}");

	cr_assert(answer.status == 204);
	envd_answer_done(&answer);
	expect_out(NULL, "-c", "pwd; echo $A $B", ",\"envs\":{\"B\":\"mine\"}",
		   "/work\ninit mine\n");
	expect_out(NULL, "-c", "pwd", ",\"cwd\":\"sub/..\"", "/home/user\n");
}

Test(envd_account, a_login_shell_reads_its_profile)
{
	expect_out(NULL, "-lc", "echo $FROM_PROFILE", "", "yes\n");
	expect_out(NULL, "-c", "echo [$FROM_PROFILE]", "", "[]\n");
}

Test(envd_account, a_forbidden_directory_is_refused)
{
	envd_run run = run_sh(NULL, "-c", "pwd", ",\"cwd\":\"/secret\"");

	cr_assert_str_eq(run.error_code, "invalid_argument");
	cr_assert(strstr(run.error_message, "cwd '/secret': Permission denied"), "%s",
		  run.error_message);
	cr_assert_not(run.has_end);
	envd_run_done(&run);
}

Test(envd_account, a_deleted_directory_is_refused)
{
	envd_run run = run_sh(NULL, "-c", "busybox mkdir d; busybox rmdir d", "");

	cr_assert(run.has_end && run.exit_code == 0);
	envd_run_done(&run);
	run = run_sh(NULL, "-c", "pwd", ",\"cwd\":\"d\"");
	cr_assert_str_eq(run.error_code, "invalid_argument");
	cr_assert_str_eq(run.error_message, "cwd '/home/user/d' does not exist");
	envd_run_done(&run);
}

Test(envd_account, a_closed_stdin_reads_as_its_end)
{
	envd_run run = run_sh(NULL, "-c", "read -p name: x", "");

	cr_assert(run.has_end && run.exit_code == 1, "%d", run.exit_code);
	envd_run_done(&run);
}

Test(envd_account, an_image_without_terminals_says_so)
{
	envd_answer answer = envd_child_stream(
		&child, "/process.Process/Start", NULL,
		"{\"process\":{\"cmd\":\"/bin/sh\"},\"pty\":{\"size\":{\"cols\":1}}}");
	envd_run run = { 0 };

	envd_run_read(&run, &answer);
	cr_assert_str_eq(run.error_code, "internal");
	cr_assert(strstr(run.error_message, "/dev/ptmx"), "%s", run.error_message);
	envd_run_done(&run);
	envd_answer_done(&answer);
}

Test(envd_account, without_proc_a_kill_still_reaches_the_group)
{
	envd_stream stream;
	ABX_CLEANUP(abx__freep) char *kill_json = NULL;
	envd_answer answer;
	int pid;

	envd_stream_open(&stream, &child, "/process.Process/Start", NULL,
			 "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\","
			 "\"busybox sleep 300 & echo $!; wait\"]}}");
	envd_stream_until(&stream, "stdout");
	pid = (int)strtol(abx__buf_str(&stream.run.out), NULL, 10);
	kill_json = abx__strf("{\"process\":{\"pid\":%u},\"signal\":9}", stream.run.pid);
	answer = envd_child_call(&child, "/process.Process/SendSignal", kill_json);
	cr_assert(answer.status == 200, "%s", abx__buf_str(&answer.body));
	envd_answer_done(&answer);
	envd_stream_to_end(&stream);
	envd_stream_close(&stream);
	envd_expect_gone(pid);
}

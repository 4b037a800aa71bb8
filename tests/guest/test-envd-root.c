/*
 * test-envd-root.c - the static daemon in a root that holds nothing but busybox: no
 * libraries, no accounts, no /proc.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "envd-child.h"
#include "envd-root.h"

static envd_child child;
static char root[64];

Test(envd_root, a_busybox_root_without_accounts_is_enough, .timeout = 60)
{
	envd_run run;
	envd_answer answer;

	if (!envd_root_is_possible())
		cr_skip_test("needs root, /bin/busybox (busybox-static) and a build "
			     "without sanitizers");
	cr_assert(envd_root_make(root));
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
	envd_root_remove(root);
}

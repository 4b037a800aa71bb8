/*
 * test-image.c - what an image gets before it is a sandbox.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/image.h"

static char dir[64];

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/abx-image-test-XXXXXX");
	cr_assert(mkdtemp(dir));
}

static void remove_dir(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", dir, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

TestSuite(guest_image, .init = make_dir, .fini = remove_dir, .timeout = 30);

static int at(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd;
}

static void put_dir(const char *name)
{
	cr_assert(mkdirat(at(), name, 0755) == 0, "%s", name);
}

static void put_file(const char *name, const char *text, mode_t mode)
{
	int fd = openat(at(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void expect_file(const char *name, const char *want)
{
	char text[4096];
	int fd = openat(at(), name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	cr_assert(n >= 0, "no %s", name);
	text[n] = '\0';
	cr_assert_str_eq(text, want, "%s", name);
	close(fd);
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	cr_assert(fstatat(at(), name, &st, AT_SYMLINK_NOFOLLOW) == 0, "no %s", name);
	return st;
}

static bool is_there(const char *name)
{
	return faccessat(at(), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: it gives a directory away");
}

Test(guest_image, makes_the_account_once)
{
	struct stat st;

	need_root();
	put_dir("etc");
	put_dir("etc/sudoers.d");
	/* The last line lacks its end. */
	put_file("etc/passwd",
		 "root:x:0:0:root:/root:/bin/sh\nubuntu:x:1000:1000::/u:/bin/sh", 0644);
	put_file("etc/group", "root:x:0:\nubuntu:x:1000:\nother:x:1001:\n", 0644);
	put_file("etc/shadow", "root:*:1::::::\n", 0640);
	for (int i = 0; i < 2; i++) {
		abx__image_prepare(dir);
		expect_file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
					  "ubuntu:x:1000:1000::/u:/bin/sh\n"
					  "user:x:1001:1002::/home/user:/bin/sh\n");
		expect_file("etc/group", "root:x:0:\nubuntu:x:1000:\nother:x:1001:\n"
					 "user:x:1002:\n");
		expect_file("etc/shadow", "root:*:1::::::\nuser:*:19700:0:99999:7:::\n");
		expect_file("etc/sudoers.d/agentbox-user",
			    "user ALL=(ALL:ALL) NOPASSWD: ALL\n");
		st = stat_of("home/user");
		cr_assert(st.st_uid == 1001 && st.st_gid == 1002 &&
			  (st.st_mode & 0777) == 0755);
		st = stat_of("etc/sudoers.d/agentbox-user");
		cr_assert((st.st_mode & 0777) == 0440);
	}
}

Test(guest_image, works_where_there_are_no_accounts)
{
	need_root();
	abx__image_prepare(dir);
	expect_file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
				  "user:x:1000:1000::/home/user:/bin/sh\n");
	expect_file("etc/group", "root:x:0:\nuser:x:1000:\n");
	expect_file("etc/profile", "for i in /etc/profile.d/*.sh; do [ -r \"$i\" ] && . "
				   "\"$i\"; done; unset i\n");
	cr_assert(!is_there("etc/shadow") && !is_there("etc/sudoers.d"));
	cr_assert(S_ISDIR(stat_of("etc/profile.d").st_mode));
}

Test(guest_image, leaves_an_account_and_a_profile_alone)
{
	need_root();
	put_dir("etc");
	put_file("etc/passwd", "user:x:7:8::/somewhere:/bin/zsh\n", 0644);
	put_file("etc/profile", "mine\n", 0644);
	abx__image_prepare(dir);
	expect_file("etc/passwd", "user:x:7:8::/somewhere:/bin/zsh\n");
	expect_file("etc/profile", "mine\n");
	cr_assert(!is_there("home/user"));
}

Test(guest_image, joins_a_group_that_is_there_and_takes_bash)
{
	need_root();
	put_dir("etc");
	put_dir("bin");
	put_file("bin/bash", "", 0755);
	put_file("etc/passwd", "a:x:1000:1:::\nb:x:1001:1:::\n", 0644);
	put_file("etc/group", "user:x:50:\n", 0644);
	abx__image_prepare(dir);
	expect_file("etc/passwd", "a:x:1000:1:::\nb:x:1001:1:::\n"
				  "user:x:1002:50::/home/user:/bin/bash\n");
	expect_file("etc/group", "user:x:50:\n");
}

Test(guest_image, a_new_home_holds_the_skeleton)
{
	struct stat st;

	need_root();
	put_dir("etc");
	put_dir("etc/skel");
	put_dir("etc/skel/sub");
	put_file("etc/skel/.bashrc", "hello\n", 0640);
	put_file("etc/skel/sub/deep", "deep\n", 0600);
	cr_assert(symlinkat("/etc/passwd", at(), "etc/skel/link") == 0);
	cr_assert(mkfifoat(at(), "etc/skel/pipe", 0600) == 0);
	abx__image_prepare(dir);
	expect_file("home/user/.bashrc", "hello\n");
	expect_file("home/user/sub/deep", "deep\n");
	st = stat_of("home/user/.bashrc");
	cr_assert(st.st_uid == 1000 && st.st_gid == 1000 && (st.st_mode & 0777) == 0640);
	st = stat_of("home/user/sub/deep");
	cr_assert(st.st_uid == 1000);
	st = stat_of("home/user/link");
	cr_assert(S_ISLNK(st.st_mode) && st.st_uid == 1000);
	cr_assert(stat_of("etc/passwd").st_uid == 0,
		  "what a link points to is not given");
	cr_assert(!is_there("home/user/pipe"));
}

Test(guest_image, a_home_that_is_there_is_given_to_the_user_as_it_is)
{
	need_root();
	put_dir("etc");
	put_dir("etc/skel");
	put_file("etc/skel/.bashrc", "hello\n", 0640);
	put_dir("home");
	put_dir("home/user");
	put_file("home/user/kept", "kept\n", 0600);
	abx__image_prepare(dir);
	cr_assert(stat_of("home/user").st_uid == 1000);
	cr_assert(stat_of("home/user/kept").st_uid == 1000);
	cr_assert(!is_there("home/user/.bashrc"));
}

Test(guest_image, what_cannot_be_read_is_no_reason_to_stop)
{
	need_root();
	put_dir("etc");
	put_dir("etc/passwd");
	put_dir("etc/group");
	abx__image_prepare(dir);
	cr_assert(S_ISDIR(stat_of("etc/profile.d").st_mode));
	abx__image_prepare("/no/such/root");
}

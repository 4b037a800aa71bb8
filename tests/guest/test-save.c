/*
 * test-save.c - files that appear whole or not at all.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "envd/save.h"

static char dir[64], path[128];

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/abx-save-test-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
}

/* Only what a test names may be left. */
static void remove_dir(void)
{
	char other[128];

	unlink(path);
	snprintf(other, sizeof(other), "%s/other", dir);
	unlink(other);
	cr_assert(rmdir(dir) == 0, "something was left in %s", dir);
}

TestSuite(guest_save, .init = make_dir, .fini = remove_dir);

static int save(const char *data, size_t len, size_t times, bool commit)
{
	abx__save s;
	int r = abx__save_open(&s, path, getuid(), getgid(), NULL);

	for (size_t i = 0; r == ABX_OK && i < times; i++)
		r = abx__save_write(&s, data, len, NULL);
	if (r == ABX_OK && commit)
		r = abx__save_commit(&s, NULL);
	abx__save_done(&s);
	return r;
}

static void expect(const char *want)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY);

	cr_assert(fd >= 0);
	cr_assert(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	cr_assert_str_eq(text, want);
}

Test(guest_save, a_new_file_appears_at_the_commit)
{
	cr_assert(save("abc", 3, 1, false) == ABX_OK);
	cr_assert(access(path, F_OK) < 0);
	cr_assert(save("abc", 3, 1, true) == ABX_OK);
	expect("abc");
}

Test(guest_save, an_uncommitted_overwrite_changes_nothing)
{
	struct stat before, after;

	cr_assert(save("old", 3, 1, true) == ABX_OK);
	cr_assert(chmod(path, 0640) == 0 && stat(path, &before) == 0);
	cr_assert(save("new content", 11, 1, false) == ABX_OK);
	expect("old");
	cr_assert(save("new", 3, 1, true) == ABX_OK);
	expect("new");
	cr_assert(stat(path, &after) == 0 && after.st_ino == before.st_ino);
	cr_assert((after.st_mode & 07777) == 0640);
}

Test(guest_save, a_large_overwrite_keeps_mode_and_a_hard_links_file)
{
	static char block[1 << 20];
	char other[128];
	struct stat st, st2;

	memset(block, 'z', sizeof(block));
	cr_assert(save("old", 3, 1, true) == ABX_OK && chmod(path, 0604) == 0);
	cr_assert(save(block, sizeof(block), 9, true) == ABX_OK);
	cr_assert(stat(path, &st) == 0 && st.st_size == 9 << 20 &&
		  (st.st_mode & 07777) == 0604);
	snprintf(other, sizeof(other), "%s/other", dir);
	cr_assert(link(path, other) == 0);
	cr_assert(save(block, sizeof(block), 10, true) == ABX_OK);
	cr_assert(stat(path, &st) == 0 && stat(other, &st2) == 0);
	cr_assert(st.st_ino == st2.st_ino && st2.st_size == 10 << 20);
}

Test(guest_save, links_are_followed_and_devices_written)
{
	char other[128];
	abx__save s;

	snprintf(other, sizeof(other), "%s/other", dir);
	cr_assert(symlink("other", path) == 0);
	cr_assert(save("through", 7, 1, true) == ABX_OK);
	cr_assert(access(other, F_OK) == 0);
	expect("through");
	cr_assert(save("again", 5, 1, true) == ABX_OK);
	expect("again");
	cr_assert(abx__save_open(&s, "/dev/null", getuid(), getgid(), NULL) == ABX_OK &&
		  s.is_direct);
	cr_assert(abx__save_write(&s, "x", 1, NULL) == ABX_OK &&
		  abx__save_commit(&s, NULL) == ABX_OK);
	abx__save_done(&s);
}

Test(guest_save, a_fifo_is_refused_not_waited_for)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *fifo = abx__strf("%s/fifo", dir);
	abx__save s;

	cr_assert_eq(mkfifo(fifo, 0600), 0);
	cr_assert(abx__save_open(&s, fifo, getuid(), getgid(), &err) == ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "not a regular file"));
	abx__save_done(&s);
	unlink(fifo);
}

/* Somebody puts one in the file's place while its content arrives. */
static void expect_refusal_of_a_late_fifo(bool was_there)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__save s;

	cr_assert(!was_there || save("old", 3, 1, true) == ABX_OK);
	cr_assert(abx__save_open(&s, path, getuid(), getgid(), NULL) == ABX_OK &&
		  abx__save_write(&s, "new", 3, NULL) == ABX_OK);
	cr_assert(!was_there || unlink(path) == 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert(abx__save_commit(&s, &err) == ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "not a regular file"));
	abx__save_done(&s);
}

Test(guest_save, a_fifo_that_comes_later_is_refused_too, .timeout = 20)
{
	expect_refusal_of_a_late_fifo(false);
	unlink(path);
	expect_refusal_of_a_late_fifo(true);
}

Test(guest_save, a_late_fifo_that_is_read_is_refused_too, .timeout = 20)
{
	char text[8];
	int reader;
	abx__save s;

	cr_assert(abx__save_open(&s, path, getuid(), getgid(), NULL) == ABX_OK &&
		  abx__save_write(&s, "new", 3, NULL) == ABX_OK);
	cr_assert_eq(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	cr_assert(reader >= 0);
	cr_assert(abx__save_commit(&s, NULL) == ABX_EINVAL);
	cr_assert_eq(read(reader, text, sizeof(text)), 0, "something was written");
	close(reader);
	abx__save_done(&s);
}

Test(guest_save, directories_and_full_disks_are_named)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__save s;

	cr_assert(abx__save_open(&s, dir, getuid(), getgid(), &err) == ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "path is a directory: "));
	abx__save_done(&s);
	cr_assert(abx__save_open(&s, "/dev/full", getuid(), getgid(), &err) == ABX_OK);
	cr_assert(abx__save_write(&s, "x", 1, &err) == ABX_EEXHAUSTED);
	cr_assert_str_eq(abx_error_message(err), "not enough disk space available");
	abx__save_done(&s);
}

/* Pours `len` bytes into the file at `to`; what came of it. */
static int pour(const char *to, size_t len, abx_error **reterr)
{
	abx__tube *tube = abx__tube_new();
	FILE *from = tmpfile();
	abx__save s;
	int r;

	cr_assert(tube && from);
	for (size_t i = 0; i < len; i++)
		fputc('a' + (int)(i % 26), from);
	fflush(from);
	cr_assert_eq(abx__tube_fill_at(tube, fileno(from), 0, len), (ssize_t)len);
	r = abx__save_open(&s, to, getuid(), getgid(), reterr);
	if (r == ABX_OK)
		r = abx__save_pour(&s, tube, reterr);
	if (r == ABX_OK) {
		cr_assert_eq(s.written, len);
		cr_assert_eq(tube->held, 0);
		r = abx__save_commit(&s, reterr);
	}
	abx__save_done(&s);
	abx__tube_free(tube);
	fclose(from);
	return r;
}

Test(guest_save, what_a_tube_holds_is_written)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	char name[32] = "";
	FILE *comm;

	cr_assert_eq(pour(path, 30, NULL), ABX_OK);
	expect("abcdefghijklmnopqrstuvwxyzabcd");
	cr_assert_eq(pour("/dev/full", 30, &err), ABX_EEXHAUSTED);
	cr_assert_str_eq(abx_error_message(err), "not enough disk space available");
	/* A file that does not splice. */
	cr_assert_eq(pour("/proc/self/comm", 8, NULL), ABX_OK);
	comm = fopen("/proc/self/comm", "re");
	cr_assert(fgets(name, sizeof(name), comm));
	fclose(comm);
	cr_assert_str_eq(name, "abcdefgh\n");
}

/*
 * test-find-python.c - which python3 the code interpreter runs on, read off folders.
 */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/interpreter.h"

static char dir[] = "/tmp/abx-python-test-XXXXXX";

static void make(const char *path, bool is_program)
{
	ABX_CLEANUP(abx__freep) char *full = abx__strf("%s/%s", dir, path);
	FILE *file;

	for (char *slash = full + strlen(dir); (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	if (!is_program) {
		cr_assert_eq(mkdir(full, 0755), 0);
		return;
	}
	file = fopen(full, "w");
	cr_assert(file && fclose(file) == 0 && chmod(full, 0755) == 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void expect(const char *first, const char *second, const char *want)
{
	ABX_CLEANUP(abx__freep)
	char *path = abx__strf("%s/%s:%s/%s", dir, first, dir, second);
	ABX_CLEANUP(abx__freep) char *found = abx__interpreter_find_python(path);
	ABX_CLEANUP(abx__freep) char *full = want ? abx__strf("%s/%s", dir, want) : NULL;

	cr_assert((!found && !full) || (found && full && strcmp(found, full) == 0),
		  "%s: %s", path, found ? found : "none");
}

Test(guest_find_python, the_first_along_the_path_decides)
{
	cr_assert(mkdtemp(dir));
	make("plain/bin/python3", true);
	make("plain/lib/python3.9/site-packages/other", false);
	make("venv/bin/python3", true);
	make("venv/lib/python3.12/site-packages/ipykernel", false);
	make("debian/bin/python3", true);
	make("debian/lib/python3/dist-packages/ipykernel", false);
	expect("nothing", "venv/bin", "venv/bin/python3");
	expect("debian/bin", "plain/bin", "debian/bin/python3");
	expect("plain/bin", "venv/bin", NULL); /* the user's python3 is the first */
	expect("nothing", "other", NULL);
	cr_assert_null(abx__interpreter_find_python(NULL));
	cr_assert_null(abx__interpreter_find_python(""));
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

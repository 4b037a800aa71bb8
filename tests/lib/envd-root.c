/*
 * envd-root.c - a root directory with busybox and nothing else.
 */
#include "envd-root.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

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

bool envd_root_make(char root[64])
{
	const char *top = getenv("top_builddir");
	char path[4200], envd[4200];

	snprintf(root, 64, "/tmp/abx-envd-root-XXXXXX");
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

void envd_root_remove(const char *root)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", root, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

bool envd_root_is_possible(void)
{
#ifdef __SANITIZE_ADDRESS__
	return false;
#else
	return geteuid() == 0 && access("/bin/busybox", X_OK) == 0;
#endif
}

void envd_root_put(const char *root, const char *path, const char *text)
{
	char full[4200];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	f = fopen(full, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

/*
 * A layer's tar, unpacked for real: into a folder that is the process's root meanwhile,
 * as in podd's child. Needs root, or a user namespace made at the first input.
 */
#include "engine/podd/image-unpack.c"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int real_root = -1, here = -1, into = -1, outside = -1, tar = -1;
static char dir[64];

static void done(void)
{
	abx__fs_empty(outside);
	rmdir(dir);
}

static void prepare(void)
{
	if (geteuid() != 0 && unshare(CLONE_NEWUSER) < 0) {
		fprintf(stderr, "fuzz-layer: SKIP, no root and no user namespaces\n");
		exit(77);
	}
	snprintf(dir, sizeof(dir), "/tmp/agentbox-fuzz-XXXXXX");
	if (!mkdtemp(dir))
		abort();
	real_root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	outside = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tar = memfd_create("layer", MFD_CLOEXEC);
	if (real_root < 0 || here < 0 || outside < 0 || tar < 0)
		abort();
	atexit(done);
}

/* Nothing but the folder in the folder above it. */
static int is_alone(void)
{
	int fd = openat(outside, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int others = 0, in = 0;

	while (d && (e = readdir(d))) {
		in += strcmp(e->d_name, "in") == 0;
		others += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	}
	if (d)
		closedir(d);
	return in == 1 && others == 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct source source;
	char why[512] = "";
	int r;

	if (real_root < 0)
		prepare();
	mkdirat(outside, "in", 0755);
	into = openat(outside, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (into < 0 || ftruncate(tar, 0) < 0 ||
	    pwrite(tar, data, size, 0) != (ssize_t)size || lseek(tar, 0, SEEK_SET) != 0 ||
	    fchdir(into) < 0 || chroot(".") < 0)
		abort();
	source.fd = tar;
	umask(0);
	r = unpack(&source, size % 2 == 0, NULL, why);
	if (fchdir(real_root) < 0 || chroot(".") < 0 || fchdir(here) < 0)
		abort();
	if ((r != 0 && !*why) || !is_alone())
		abort();
	abx__fs_empty(into);
	close(into);
	unlinkat(outside, "in", AT_REMOVEDIR);
	return 0;
}

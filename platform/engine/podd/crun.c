/*
 * crun.c - crun, copied once into sealed memory.
 *
 * A container must not reach the file its runtime was started from (CVE-2019-5736), so
 * crun starts by copying itself and running the copy, unless it runs from a memfd with
 * all seals on already, which nobody can write to. One such copy serves all starts; it
 * is made anew when the file was replaced. Where it cannot be made crun runs by path and
 * sees to itself.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define SIZE_MAX_BYTES ((off_t)64 << 20)

static int new_memory(void)
{
	int fd = memfd_create("crun", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	/* Before Linux 6.3 every memfd is executable. */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("crun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

static int seal(int from, off_t size)
{
	ABX_CLEANUP(abx__closep) int fd = new_memory();

	if (fd < 0)
		return -1;
	for (off_t left = size; left > 0;) {
		ssize_t n = sendfile(fd, from, NULL, (size_t)left);

		if (n <= 0)
			return -1;
		left -= n;
	}
	if (fchmod(fd, 0500) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -1;
	return abx_take_fd(fd);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int abx__crun_sealed(struct podd *podd)
{
	ABX_CLEANUP(abx__closep) int from = -1;
	struct stat now;

	if (stat(podd->options.crun, &now) < 0)
		return -1;
	if (podd->crun_fd >= 0 && is_same(&now, &podd->crun_stat))
		return podd->crun_fd;
	if (podd->crun_fd >= 0)
		close(podd->crun_fd);
	podd->crun_fd = -1;
	from = open(podd->options.crun, O_RDONLY | O_CLOEXEC);
	if (from < 0 || fstat(from, &podd->crun_stat) < 0 ||
	    !S_ISREG(podd->crun_stat.st_mode) ||
	    podd->crun_stat.st_size > SIZE_MAX_BYTES || podd->crun_stat.st_size == 0)
		return -1;
	podd->crun_fd = seal(from, podd->crun_stat.st_size);
	return podd->crun_fd;
}

/*
 * faulty-podd.c - agentbox-podd with faults on order, by the linker's --wrap: the n-th
 * call of a kind, by podd or any of its children, fails as the kernel or the allocator
 * might.
 *
 * The order is a file that the test and podd share (ABX_FAULT_FILE, struct fault). A
 * fault strikes once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "faults.h"

static struct fault *fault;

__attribute__((constructor)) static void open_orders(void)
{
	const char *path = getenv("ABX_FAULT_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*fault), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		fault = at;
	close(fd);
}

static int strikes(int kind, int error)
{
	if (!fault || __atomic_load_n(&fault->kind, __ATOMIC_ACQUIRE) != kind ||
	    __atomic_sub_fetch(&fault->countdown, 1, __ATOMIC_ACQ_REL) != 0)
		return 0;
	__atomic_add_fetch(&fault->hits, 1, __ATOMIC_ACQ_REL);
	errno = error;
	return 1;
}

/* WRAP(kind, error, what a failure gives, type, name, (parameters), (arguments)) */
#define WRAP(kind, error, failure, type, name, params, args) \
	type __real_##name params;                           \
	type __wrap_##name params;                           \
	type __wrap_##name params                            \
	{                                                    \
		if (strikes(kind, error))                    \
			return failure;                      \
		return __real_##name args;                   \
	}

WRAP(FAULT_ALLOC, ENOMEM, NULL, void *, abx__malloc, (size_t n), (n))
WRAP(FAULT_ALLOC, ENOMEM, NULL, void *, abx__calloc, (size_t n, size_t s), (n, s))
WRAP(FAULT_ALLOC, ENOMEM, NULL, void *, abx__realloc, (void *p, size_t n), (p, n))
WRAP(FAULT_ALLOC, ENOMEM, NULL, char *, abx__strdup, (const char *s), (s))
WRAP(FAULT_ALLOC, ENOMEM, NULL, char *, abx__strndup, (const char *s, size_t n), (s, n))

WRAP(FAULT_FORK, EAGAIN, -1, pid_t, fork, (void), ())
WRAP(FAULT_MOUNT, ENOMEM, -1, int, mount,
     (const char *s, const char *t, const char *f, unsigned long l, const void *d),
     (s, t, f, l, d))
WRAP(FAULT_MOUNT, EPERM, -1, int, unshare, (int f), (f))
WRAP(FAULT_MOUNT, ENOMEM, -1, int, setns, (int fd, int t), (fd, t))
WRAP(FAULT_DESCRIPTOR, EMFILE, -1, int, pipe2, (int f[2], int l), (f, l))
WRAP(FAULT_DESCRIPTOR, EMFILE, -1, int, socketpair, (int d, int t, int p, int s[2]),
     (d, t, p, s))
WRAP(FAULT_DESCRIPTOR, EMFILE, -1, int, socket, (int d, int t, int p), (d, t, p))
WRAP(FAULT_DESCRIPTOR, EMFILE, -1, int, pidfd_open, (pid_t p, unsigned f), (p, f))
WRAP(FAULT_FILES, ENOSPC, -1, int, mkdirat, (int fd, const char *p, mode_t m), (fd, p, m))
WRAP(FAULT_FILES, ENOSPC, -1, int, mkdir, (const char *p, mode_t m), (p, m))
WRAP(FAULT_FILES, ENOSPC, -1, ssize_t, write, (int fd, const void *p, size_t n),
     (fd, p, n))
WRAP(FAULT_FILES, EIO, -1, int, renameat2,
     (int a, const char *f, int b, const char *t, unsigned l), (a, f, b, t, l))
WRAP(FAULT_FILES, EIO, -1, int, renameat, (int a, const char *f, int b, const char *t),
     (a, f, b, t))

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode = 0;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return strikes(FAULT_DESCRIPTOR, EMFILE) ? -1
						 : __real_openat(fd, path, flags, mode);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode = 0;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return strikes(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_open(path, flags, mode);
}

/* clone3, open_tree, move_mount, mount_setattr, openat2, close_range. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return strikes(FAULT_SYSCALL, ENOMEM)
		       ? -1
		       : __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/*
 * pty.c - pseudo terminals without libc's help, which looks for helpers and mounts an
 * image need not have.
 */
#include "envd/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/tty.h>

#include "base/cleanup.h"

/* The kernel's own way since 4.13; the name in /dev/pts for what does not know it. */
static int open_slave(int master)
{
	int fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	unsigned number;
	char path[32];

	if (fd >= 0 || ioctl(master, TIOCGPTN, &number) < 0)
		return fd;
	snprintf(path, sizeof(path), "/dev/pts/%u", number);
	return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

int abx__pty_open(abx__pty *pty, uid_t uid, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep)
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int unlock = 0, slave;

	if (master < 0)
		return abx__error_errno(reterr, ABX_EIO, errno,
					"open a terminal: /dev/ptmx");
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "unlock a terminal");
	slave = open_slave(master);
	if (slave < 0)
		return abx__error_errno(reterr, ABX_EIO, errno,
					"open a terminal: its end in /dev/pts");
	/* Best effort: without it the command merely cannot open its terminal by name. */
	if (fchown(slave, uid, (gid_t)-1) == 0)
		(void)!fchmod(slave, 0620);
	pty->master = abx_take_fd(master);
	pty->slave = slave;
	return ABX_OK;
}

int abx__pty_resize(int master, uint32_t cols, uint32_t rows, abx_error **reterr)
{
	struct winsize size = { .ws_col = (unsigned short)cols,
				.ws_row = (unsigned short)rows };

	if (cols > UINT16_MAX || rows > UINT16_MAX)
		return abx__error_set(reterr, ABX_EINVAL,
				      "pty.size: %u x %u is too big; 65535 is the most",
				      cols, rows);
	if (ioctl(master, TIOCSWINSZ, &size) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "resize the terminal");
	return ABX_OK;
}

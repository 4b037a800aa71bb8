/*
 * pty.h - a pair of pseudo terminals: the master for us, the slave for a command.
 */
#ifndef ABX_ENVD_PTY_H
#define ABX_ENVD_PTY_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct abx__pty {
	int master, slave; /* both close-on-exec */
} abx__pty;

/* The slave belongs to `uid`, so that what runs on it may open it by name. ABX_EIO says
 * what the image lacks. */
int abx__pty_open(abx__pty *pty, uid_t uid, abx_error **reterr);
/* In characters; ABX_EINVAL above 65535. The foreground processes get SIGWINCH. */
int abx__pty_resize(int master, uint32_t cols, uint32_t rows, abx_error **reterr);

#endif

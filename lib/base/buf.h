/*
 * buf.h - a growable byte buffer with a cap, always NUL-terminated behind its length.
 *
 * A buffer past its cap gives ABX_ETOOBIG and keeps what it had. Zero-initialised is
 * valid (cap 0: no cap beyond ABX__BUF_DEFAULT_CAP).
 */
#ifndef ABX_BASE_BUF_H
#define ABX_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

#include "base/cleanup.h"

#define ABX__BUF_DEFAULT_CAP ((size_t)64 << 20)

typedef struct abx__buf {
	char *data; /* NULL while empty and untouched */
	size_t len;
	size_t size; /* allocated */
	size_t cap;  /* most bytes `len` may reach; 0: the default */
} abx__buf;

#define ABX__BUF_INIT \
	{             \
		0     \
	}
#define ABX__BUF_INIT_CAP(n) \
	{                    \
		.cap = (n)   \
	}

void abx__buf_done(abx__buf *buf);
void abx__buf_clear(abx__buf *buf); /* length 0, memory kept */
int abx__buf_reserve(abx__buf *buf, size_t extra);
int abx__buf_add(abx__buf *buf, const void *data, size_t len);
int abx__buf_adds(abx__buf *buf, const char *s);
int abx__buf_addc(abx__buf *buf, char c);
int abx__buf_addf(abx__buf *buf, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int abx__buf_vaddf(abx__buf *buf, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
void abx__buf_consume(abx__buf *buf, size_t len); /* drops bytes at the front */
const char *abx__buf_str(const abx__buf *buf);    /* never NULL */
char *abx__buf_take(abx__buf *buf); /* caller owns; NULL when out of memory */

#define ABX_CLEANUP_BUF ABX_CLEANUP(abx__buf_done)

#endif

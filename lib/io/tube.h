/*
 * tube.h - a pipe on the way of a long body: bytes go from one descriptor through it to
 * another inside the kernel (splice(2)), and no process copies them.
 *
 * Who owns a tube counts on `held`: what went in and has not come out. Descriptors may be
 * non-blocking sockets, or files, for which a fill or a pour blocks as read(2) and
 * write(2) would. One thread at a time.
 */
#ifndef ABX_IO_TUBE_H
#define ABX_IO_TUBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A body shorter than this is not worth a tube. */
#define ABX__TUBE_WORTH ((int64_t)256 << 10)

/* What is copied at once where bytes have to go through memory after all. */
#define ABX__TUBE_PIECE ((size_t)64 << 10)

typedef struct abx__tube {
	int in, out; /* the pipe's ends, non-blocking; in: bytes go in here */
	size_t room; /* it holds at most so much; less when it comes in small pieces */
	size_t held;
} abx__tube;

/* NULL when there is none to be had (memory, descriptors): go without. */
abx__tube *abx__tube_new(void);
void abx__tube_free(abx__tube *tube);

/* Both give the bytes moved, at most `most`, or a negative errno: -EAGAIN when nothing
 * can be moved now, one for which abx__tube_is_refused() when `fd` does not splice at
 * all (nothing is lost then: read or write it in the ordinary way), or the descriptor's
 * own error. A fill gives 0 at the end of the stream. */
ssize_t abx__tube_fill(abx__tube *tube, int fd, uint64_t most);
ssize_t abx__tube_pour(abx__tube *tube, int fd);
bool abx__tube_is_refused(ssize_t r);
/* From a place of a file, which does not move its offset. */
ssize_t abx__tube_fill_at(abx__tube *tube, int fd, int64_t offset, uint64_t most);
/* Takes bytes out; fewer than `len` only when fewer are held. */
size_t abx__tube_take(abx__tube *tube, char *data, size_t len);
/* Drops what is held. */
void abx__tube_drop(abx__tube *tube);

#endif

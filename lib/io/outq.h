/*
 * outq.h - the way of bytes into a stream: small pieces gather and leave together, large
 * ones are offered to the kernel at once, and only what it does not take is copied and
 * queued.
 *
 * A queue that has met an error is broken: it takes and drops everything from then on.
 * The stream must outlive it up to its close callback; abx__outq_done() belongs there.
 */
#ifndef ABX_IO_OUTQ_H
#define ABX_IO_OUTQ_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "base/buf.h"
#include "io/tls.h"
#include "io/tube.h"

typedef struct abx__outq {
	uv_stream_t *stream;
	abx__buf pending; /* leaves with what comes next, or at the flush */
	abx__tls *tls;    /* NULL: bytes leave as they are */
	abx__buf sealed;  /* what `tls` made, on its way out within a call */
	/* Holds what follows all that libuv has; nothing is pending then. NULL: none. */
	abx__tube *tube;
	bool broken;
	/* Runs from the loop when a queued write has ended (well, or the queue is now
	   broken). Not while the stream is closing. */
	void (*moved)(void *userdata);
	void *userdata;
} abx__outq;

void abx__outq_init(abx__outq *q, uv_stream_t *stream, void (*moved)(void *userdata),
		    void *userdata);
void abx__outq_done(abx__outq *q);
/* Bytes not yet in the kernel. */
size_t abx__outq_queued(const abx__outq *q);
/* Sends `data`, then the short `tail`; copies. ABX_EIO and ABX_ENOMEM: the queue is
 * broken. */
int abx__outq_write(abx__outq *q, const void *data, size_t len, const char *tail);
/* As above without copying `data`: `done` runs once, later. When the call fails it does
 * not run. */
int abx__outq_write_ref(abx__outq *q, const void *data, size_t len, const char *tail,
			void (*done)(void *userdata), void *userdata);
/* Sends what the tube holds; not under TLS. What the kernel does not take stays in it and
 * follows later; it must live until nothing of it is queued, or the stream is closing. */
int abx__outq_pour(abx__outq *q, abx__tube *tube);
/* Small text that waits for the next write or flush. */
int abx__outq_put(abx__outq *q, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void abx__outq_flush(abx__outq *q);
/* Bytes that come in many pieces and need not leave one by one. */
int abx__outq_gather(abx__outq *q, const void *data, size_t len);
/* Sends what TLS has put behind `sealed` by itself. */
void abx__outq_flush_sealed(abx__outq *q);
/* Tells a peer under TLS that nothing follows; what is pending goes first. */
void abx__outq_end(abx__outq *q);

#endif

/*
 * gzip.h - gzip as filters (RFC 1952), in constant memory: bytes in at any split, bytes
 * out. A filter costs some 50 KiB (reading) or 270 KiB (writing) while it lives, nothing
 * otherwise.
 */
#ifndef ABX_ENVD_GZIP_H
#define ABX_ENVD_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* A body that unpacks to more than this may not unpack to more than RATIO times itself:
   one that does is made to fill a disk. */
#define ABX__GUNZIP_FREE_BYTES ((uint64_t)1 << 30)
#define ABX__GUNZIP_MAX_RATIO 256

typedef struct abx__gunzip abx__gunzip;
/* A negative result stops the filter and is what feed() returns. */
typedef int (*abx__gunzip_sink)(void *userdata, const char *data, size_t len);

abx__gunzip *abx__gunzip_new(void); /* NULL when out of memory */
void abx__gunzip_free(abx__gunzip *gunzip);
/* Several members one after the other are one body. ABX_EPROTO: not gzip, or damaged;
   ABX_ETOOBIG: see above; ABX_ENOMEM; or what `sink` returned, then without an error.
   After a failure it stays failed. */
int abx__gunzip_feed(abx__gunzip *gunzip, const char *data, size_t len,
		     abx__gunzip_sink sink, void *userdata, abx_error **reterr);
/* ABX_EPROTO when the last member is not whole, or there was none. */
int abx__gunzip_finish(const abx__gunzip *gunzip, abx_error **reterr);

typedef struct abx__gzip abx__gzip;

abx__gzip *abx__gzip_new(void); /* NULL when out of memory */
void abx__gzip_free(abx__gzip *gzip);
/* Adds what comes out to `out`; `last` ends the stream. What does not shrink is passed
   through after its first pieces. ABX_ENOMEM. */
int abx__gzip_feed(abx__gzip *gzip, const char *data, size_t len, bool last,
		   abx__buf *out);

#endif

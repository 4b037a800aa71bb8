/*
 * ranges.h - byte ranges of a request (RFC 9110, section 14). Pure.
 */
#ifndef ABX_ENVD_RANGES_H
#define ABX_ENVD_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ABX__RANGES_MAX 64 /* asked for more, the whole is sent, which is allowed */

typedef struct abx__range {
	int64_t start, length; /* within the file; at least one byte */
} abx__range;

/* The ranges a Range header (may be NULL) asks of `size` bytes, in its order; those that
   begin behind the end are left out. Returns their count; 0: send the whole - none asked
   for, too many, or more bytes than the file has. ABX_EINVAL with "invalid range", or
   "invalid range: failed to overlap" when all begin behind the end: 416. */
int abx__ranges_parse(const char *header, int64_t size, abx__range ret[ABX__RANGES_MAX],
		      abx_error **reterr);

#endif

/*
 * duration.h - Go duration strings ("30s", "2m", "1h30m", "1.5s", "0") as milliseconds,
 * and back.
 */
#ifndef ABX_MODEL_DURATION_H
#define ABX_MODEL_DURATION_H

#include <stdint.h>

#include <agentbox/error.h>

#define ABX__DURATION_SIZE 48

/* Milliseconds; what is finer is rounded away from zero, so that only zero is zero. A
   sign is taken: what a negative duration means is the caller's rule. ABX_EINVAL, also
   past Go's own range (about 292 years). */
int abx__duration_parse(const char *s, int64_t *ret_ms, abx_error **reterr);
/* "0s", "1.5s", "2m", "1h30m": what parses back to the same value. */
void abx__duration_print(int64_t ms, char out[ABX__DURATION_SIZE]);

#endif

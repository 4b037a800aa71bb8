/*
 * clock.h - time. Waits use the monotonic clock; wall time is for people and documents
 * (RFC 3339, UTC).
 *
 * A room that must not read a clock (platform/control) takes an `abx__clock` and calls
 * through it, so tests turn the hands.
 */
#ifndef ABX_BASE_CLOCK_H
#define ABX_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef struct abx__clock {
	int64_t (*mono_ms)(void *userdata); /* never goes back */
	int64_t (*wall_ms)(void *userdata); /* since the Unix epoch */
	void *userdata;
} abx__clock;

extern const abx__clock abx__clock_system;

int64_t abx__mono_ms(void);
int64_t abx__mono_us(void);
int64_t abx__wall_ms(void);

#define ABX__RFC3339_SIZE 32
/* "2026-01-02T03:04:05Z", with ".mmm" when the milliseconds are not zero. */
void abx__rfc3339_format(int64_t wall_ms, char out[ABX__RFC3339_SIZE]);
/* The same of microseconds: ".uuuuuu" when milliseconds do not say it all. */
void abx__rfc3339_format_us(int64_t wall_us, char out[ABX__RFC3339_SIZE]);
/* Accepts fractions and offsets; ABX_EINVAL for anything else. Microsecond result, so
 * that paging is exact. */
int abx__rfc3339_parse(const char *s, int64_t *ret_wall_us);

#endif

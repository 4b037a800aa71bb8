/*
 * clock.c - monotonic and wall time, and RFC 3339 both ways.
 */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <agentbox/error.h>

static int64_t clock_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t abx__mono_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

int64_t abx__mono_ms(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

int64_t abx__wall_ms(void)
{
	return clock_us(CLOCK_REALTIME) / 1000;
}

static int64_t system_mono(void *userdata)
{
	(void)userdata;
	return abx__mono_ms();
}

static int64_t system_wall(void *userdata)
{
	(void)userdata;
	return abx__wall_ms();
}

const abx__clock abx__clock_system = { system_mono, system_wall, NULL };

void abx__rfc3339_format_us(int64_t wall_us, char out[ABX__RFC3339_SIZE])
{
	int64_t seconds = wall_us / 1000000;
	unsigned us = (unsigned)(wall_us % 1000000);
	char fraction[8] = "";
	time_t t;
	struct tm tm;

	if (wall_us % 1000000 < 0) {
		us = (unsigned)(wall_us % 1000000 + 1000000);
		seconds--;
	}
	t = (time_t)seconds;
	if (!gmtime_r(&t, &tm) || tm.tm_year + 1900 > 9999) {
		memcpy(out, "9999-12-31T23:59:59Z", 21);
		return;
	}
	if (us % 1000)
		snprintf(fraction, sizeof(fraction), ".%06u", us % 1000000);
	else if (us)
		snprintf(fraction, sizeof(fraction), ".%03u", us / 1000 % 1000);
	snprintf(out, ABX__RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u%sZ",
		 (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
		 (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
		 (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100, fraction);
}

void abx__rfc3339_format(int64_t wall_ms, char out[ABX__RFC3339_SIZE])
{
	abx__rfc3339_format_us(wall_ms * 1000, out);
}

/* Reads exactly `digits` decimal digits. */
static bool take_number(const char **s, int digits, int *ret)
{
	int value = 0;

	for (int i = 0; i < digits; i++, (*s)++) {
		if (**s < '0' || **s > '9')
			return false;
		value = value * 10 + (**s - '0');
	}
	*ret = value;
	return true;
}

static bool take_char(const char **s, const char *any)
{
	if (!**s || !strchr(any, **s))
		return false;
	(*s)++;
	return true;
}

static bool take_fraction(const char **s, int64_t *ret_us)
{
	int64_t us = 0, unit = 100000;

	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; (*s)++, unit /= 10)
		us += (**s - '0') * unit;
	*ret_us = us;
	return true;
}

int abx__rfc3339_parse(const char *s, int64_t *ret_wall_us)
{
	int year, mon, day, hour, min, sec, off_hour = 0, off_min = 0, sign = 0;
	int64_t us = 0, seconds;
	struct tm tm = { 0 };

	if (!take_number(&s, 4, &year) || !take_char(&s, "-") ||
	    !take_number(&s, 2, &mon) || !take_char(&s, "-") ||
	    !take_number(&s, 2, &day) || !take_char(&s, "Tt ") ||
	    !take_number(&s, 2, &hour) || !take_char(&s, ":") ||
	    !take_number(&s, 2, &min) || !take_char(&s, ":") || !take_number(&s, 2, &sec))
		return ABX_EINVAL;
	if (take_char(&s, ".") && !take_fraction(&s, &us))
		return ABX_EINVAL;
	if (!take_char(&s, "Zz")) {
		sign = *s == '-' ? -1 : 1;
		if (!take_char(&s, "+-") || !take_number(&s, 2, &off_hour) ||
		    !take_char(&s, ":") || !take_number(&s, 2, &off_min))
			return ABX_EINVAL;
	}
	if (*s || mon < 1 || mon > 12 || day < 1 || day > 31 || hour > 23 || min > 59 ||
	    sec > 60 || off_hour > 23 || off_min > 59)
		return ABX_EINVAL;
	tm.tm_year = year - 1900;
	tm.tm_mon = mon - 1;
	tm.tm_mday = day;
	tm.tm_hour = hour;
	tm.tm_min = min;
	tm.tm_sec = sec;
	seconds = (int64_t)timegm(&tm);
	if (tm.tm_mon != mon - 1) /* 31 February and the like */
		return ABX_EINVAL;
	seconds -= sign * (off_hour * 3600 + off_min * 60);
	*ret_wall_us = seconds * 1000000 + us;
	return ABX_OK;
}

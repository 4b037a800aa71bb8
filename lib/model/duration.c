/*
 * duration.c - Go's time.ParseDuration: [-+] then "0" or one or more <number><unit>.
 */
#include "model/duration.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define DURATION_MAX_LEN 64
#define NS_IN_MS 1000000

static const struct {
	const char *name;
	int64_t ns;
} units[] = {
	{ "ns", 1 },           { "us", 1000 },
	{ "\xc2\xb5s", 1000 }, /* U+00B5 */
	{ "\xce\xbcs", 1000 }, /* U+03BC */
	{ "ms", 1000000 },     { "s", 1000000000 },
	{ "m", 60000000000 },  { "h", 3600000000000 },
};

static int64_t unit_ns(const char *s, size_t len)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == len && memcmp(units[i].name, s, len) == 0)
			return units[i].ns;
	return 0;
}

/* Digits into `value`; past 63 bits is an error, or, in a fraction, ignored as Go does.
 */
static int digits(const char **s, int64_t *value, int64_t *scale)
{
	int count = 0;
	bool full = false;

	for (; **s >= '0' && **s <= '9'; (*s)++, count++) {
		int64_t next;

		if (full)
			continue;
		if ((scale && *scale > INT64_MAX / 10) ||
		    __builtin_mul_overflow(*value, 10, &next) ||
		    __builtin_add_overflow(next, **s - '0', &next)) {
			if (!scale)
				return ABX_EINVAL;
			full = true;
			continue;
		}
		*value = next;
		if (scale)
			*scale *= 10;
	}
	return count;
}

/* One <number><unit>, added to `total` in nanoseconds. */
static int element(const char **s, int64_t *total)
{
	int64_t whole = 0, fraction = 0, scale = 1, unit, ns;
	int count, more = 0;
	size_t len;

	count = digits(s, &whole, NULL);
	if (count >= 0 && **s == '.') {
		(*s)++;
		more = digits(s, &fraction, &scale);
	}
	if (count < 0 || count + more == 0)
		return ABX_EINVAL;
	len = strcspn(*s, ".0123456789");
	unit = unit_ns(*s, len);
	*s += len;
	if (!unit || __builtin_mul_overflow(whole, unit, &ns))
		return ABX_EINVAL;
	if (scale > 1 &&
	    __builtin_add_overflow(ns, (int64_t)((__int128)fraction * unit / scale), &ns))
		return ABX_EINVAL;
	return __builtin_add_overflow(*total, ns, total) ? ABX_EINVAL : ABX_OK;
}

static int parse(const char *s, int64_t *ret_ms)
{
	bool negative = *s == '-';
	int64_t total = 0;
	int r;

	if (strnlen(s, DURATION_MAX_LEN + 1) > DURATION_MAX_LEN)
		return ABX_EINVAL;
	if (*s == '-' || *s == '+')
		s++;
	if (strcmp(s, "0") == 0) {
		*ret_ms = 0;
		return ABX_OK;
	}
	do {
		r = element(&s, &total);
		if (r < 0)
			return r;
	} while (*s);
	total = total / NS_IN_MS + (total % NS_IN_MS != 0);
	if (total > INT64_MAX / NS_IN_MS)
		return ABX_EINVAL;
	*ret_ms = negative ? -total : total;
	return ABX_OK;
}

int abx__duration_parse(const char *s, int64_t *ret_ms, abx_error **reterr)
{
	if (parse(s, ret_ms) == ABX_OK)
		return ABX_OK;
	abx__error_set(reterr, ABX_EINVAL, "\"%.64s\" is not a duration", s);
	abx__error_hint(reterr, "write numbers with units, such as 30s, 2m or 1h30m; "
				"0 means none");
	return ABX_EINVAL;
}

void abx__duration_print(int64_t ms, char out[ABX__DURATION_SIZE])
{
	uint64_t left = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
	uint64_t hours = left / 3600000, minutes = left / 60000 % 60;
	uint64_t seconds = left / 1000 % 60, rest = left % 1000;
	const char *sign = ms < 0 ? "-" : "";
	char head[32] = "", tail[16] = "";

	if (hours && minutes)
		snprintf(head, sizeof(head), "%lluh%llum", (unsigned long long)hours,
			 (unsigned long long)minutes);
	else if (hours || minutes)
		snprintf(head, sizeof(head), "%llu%c",
			 (unsigned long long)(hours ? hours : minutes),
			 hours ? 'h' : 'm');
	if (rest) {
		int len = snprintf(tail, sizeof(tail), "%llu.%03llu",
				   (unsigned long long)seconds, (unsigned long long)rest);

		while (tail[len - 1] == '0')
			len--;
		tail[len] = 's';
		tail[len + 1] = '\0';
	} else if (seconds || !*head) {
		snprintf(tail, sizeof(tail), "%llus", (unsigned long long)seconds);
	}
	snprintf(out, ABX__DURATION_SIZE, "%s%s%s", sign, head, tail);
}

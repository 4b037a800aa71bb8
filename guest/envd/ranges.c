/*
 * ranges.c - byte ranges. Where the RFC leaves a choice, the reference's: an empty file
 * has no ranges, an end behind the file is the file's end, blanks around numbers are
 * allowed.
 */
#include "envd/ranges.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define UNIT "bytes="

/* A decimal number between `p` and `end`, blanks around it: false for anything else, or
 * past 2^63. */
static bool read_number(const char *p, const char *end, int64_t *ret)
{
	int64_t value = 0;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (p == end)
		return false;
	for (; p < end; p++)
		if (*p < '0' || *p > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *p - '0', &value))
			return false;
	*ret = value;
	return true;
}

static bool is_blank(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p == end;
}

/* One of the list: 1 a range, 0 none (blank, or behind the end; then *ret_missed),
 * negative when it is not well formed. */
static int read_range(const char *p, const char *end, int64_t size, abx__range *ret,
		      bool *ret_missed)
{
	const char *dash = memchr(p, '-', (size_t)(end - p));
	int64_t first, last = size - 1;

	if (is_blank(p, end))
		return 0;
	if (!dash)
		return ABX_EINVAL;
	if (is_blank(p, dash)) { /* the last bytes */
		if (!read_number(dash + 1, end, &last))
			return ABX_EINVAL;
		last = last > size ? size : last;
		*ret_missed |= last == 0;
		*ret = (abx__range){ .start = size - last, .length = last };
		return last > 0;
	}
	if (!read_number(p, dash, &first))
		return ABX_EINVAL;
	if (first >= size) {
		*ret_missed = true;
		return 0;
	}
	if (!is_blank(dash + 1, end) &&
	    (!read_number(dash + 1, end, &last) || last < first))
		return ABX_EINVAL;
	last = last >= size ? size - 1 : last;
	*ret = (abx__range){ .start = first, .length = last - first + 1 };
	return 1;
}

int abx__ranges_parse(const char *header, int64_t size, abx__range ret[ABX__RANGES_MAX],
		      abx_error **reterr)
{
	bool missed = false, is_too_much = false;
	int64_t total = 0;
	int count = 0;

	if (!header || !*header)
		return 0;
	if (strncasecmp(header, UNIT, strlen(UNIT)) != 0)
		return abx__error_set(reterr, ABX_EINVAL, "invalid range");
	header += strlen(UNIT);
	for (const char *end; header; header = *end ? end + 1 : NULL) {
		abx__range range;
		int r;

		end = header + strcspn(header, ",");
		r = read_range(header, end, size, &range, &missed);
		if (r < 0)
			return abx__error_set(reterr, ABX_EINVAL, "invalid range");
		if (r == 0)
			continue;
		is_too_much |= range.length > size - total || count == ABX__RANGES_MAX;
		if (!is_too_much) {
			total += range.length;
			ret[count++] = range;
		}
	}
	if (missed && count == 0 && !is_too_much && size > 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "invalid range: failed to overlap");
	return is_too_much || size == 0 ? 0 : count;
}

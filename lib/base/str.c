/*
 * str.c - strings, checked numbers and URL components.
 */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include <agentbox/error.h>

char *abx__strf(const char *fmt, ...)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = abx__buf_vaddf(&buf, fmt, ap);
	va_end(ap);
	return r < 0 ? NULL : abx__buf_take(&buf);
}

int abx__str_copy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);

	if (len >= size) {
		if (size)
			dst[0] = '\0';
		return ABX_ETOOBIG;
	}
	memcpy(dst, src, len + 1);
	return ABX_OK;
}

bool abx__str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool abx__str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool abx__str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

int abx__parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!s || !*s)
		return ABX_EINVAL;
	for (; *s; s++) {
		unsigned digit = (unsigned)(*s - '0');

		if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return ABX_EINVAL;
	}
	if (value < min || value > max)
		return ABX_EINVAL;
	*ret = value;
	return ABX_OK;
}

int abx__parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = s && *s == '-';
	uint64_t magnitude;
	int64_t value;
	int r;

	r = abx__parse_u64(negative ? s + 1 : s, 0, (uint64_t)INT64_MAX + negative,
			   &magnitude);
	if (r < 0)
		return r;
	value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	if (value < min || value > max)
		return ABX_EINVAL;
	*ret = value;
	return ABX_OK;
}

int abx__hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int abx__url_decode(const char *s, size_t len, bool plus, char **ret)
{
	char *out = abx__malloc(len + 1);
	size_t n = 0;

	if (!out)
		return ABX_ENOMEM;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (c == '%') {
			int hi = len - i > 2 ? abx__hex_value(s[i + 1]) : -1;
			int lo = len - i > 2 ? abx__hex_value(s[i + 2]) : -1;

			if (hi < 0 || lo < 0) {
				abx__free(out);
				return ABX_EINVAL;
			}
			c = (char)(hi * 16 + lo);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (c == '\0') {
			abx__free(out);
			return ABX_EINVAL;
		}
		out[n++] = c;
	}
	out[n] = '\0';
	*ret = out;
	return ABX_OK;
}

char *abx__url_encode(const char *s)
{
	static const char hex[] = "0123456789ABCDEF";
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;

	if (abx__buf_reserve(&buf, strlen(s)) < 0)
		return NULL;
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		char escape[3] = { '%', hex[c >> 4], hex[c & 15] };
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr("-._~", c);

		if (abx__buf_add(&buf, plain ? (const char *)s : escape, plain ? 1 : 3) <
		    0)
			return NULL;
	}
	return abx__buf_take(&buf);
}

int abx__query_get(const char *query, const char *key, char **ret)
{
	while (query && *query) {
		size_t len = strcspn(query, "&");
		const char *eq = memchr(query, '=', len);
		size_t name_len = eq ? (size_t)(eq - query) : len;
		ABX_CLEANUP(abx__freep) char *name = NULL;
		int r = abx__url_decode(query, name_len, true, &name);

		if (r < 0)
			return r;
		if (strcmp(name, key) == 0) {
			r = abx__url_decode(eq ? eq + 1 : "", eq ? len - name_len - 1 : 0,
					    true, ret);
			return r < 0 ? r : 1;
		}
		query += len;
		if (*query == '&')
			query++;
	}
	return 0;
}

/* RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF. */
/* Bytes of the character that begins at `p`; 0: none does. */
static size_t utf8_char(const unsigned char *p, const unsigned char *end)
{
	unsigned c = *p, more, low = 0x80, high = 0xBF;

	if (c < 0x80)
		return 1;
	if (c >= 0xC2 && c <= 0xDF)
		more = 1;
	else if (c >= 0xE0 && c <= 0xEF)
		more = 2;
	else if (c >= 0xF0 && c <= 0xF4)
		more = 3;
	else
		return 0;
	if (c == 0xE0)
		low = 0xA0;
	else if (c == 0xED)
		high = 0x9F;
	else if (c == 0xF0)
		low = 0x90;
	else if (c == 0xF4)
		high = 0x8F;
	if ((size_t)(end - p) <= more || p[1] < low || p[1] > high)
		return 0;
	for (unsigned i = 2; i <= more; i++)
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	return more + 1;
}

bool abx__utf8_is_valid(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + len;

	for (size_t n; p < end; p += n)
		if ((n = utf8_char(p, end)) == 0)
			return false;
	return true;
}

void abx__utf8_repair(char *s)
{
	unsigned char *p = (unsigned char *)s, *end = p + strlen(s);

	while (p < end) {
		size_t n = utf8_char(p, end);

		if (n == 0)
			*p = '?';
		p += n ? n : 1;
	}
}

/*
 * str.h - strings and checked numbers. Foreign numbers go through the one parser here.
 */
#ifndef ABX_BASE_STR_H
#define ABX_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Formats into a new string; NULL when out of memory. */
char *abx__strf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Copies with termination; ABX_ETOOBIG when it does not fit (dst is then empty). */
int abx__str_copy(char *dst, size_t size, const char *src);
bool abx__str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool abx__str_starts(const char *s, const char *prefix);
bool abx__str_ends(const char *s, const char *suffix);
/* Decimal digits only, whole string; ABX_EINVAL outside [min, max] or for any other byte.
 */
int abx__parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
int abx__parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret);
/* The value of a hex digit, -1 for another byte. */
int abx__hex_value(char c);
/* Percent-decoding of one URL component in place rules: ABX_EINVAL for a broken escape or
   a NUL byte. The result is new; `plus` turns '+' into a blank (form encoding). */
int abx__url_decode(const char *s, size_t len, bool plus, char **ret);
/* Percent-encodes everything outside RFC 3986's unreserved set; NULL when out of memory.
 */
char *abx__url_encode(const char *s);
/* The decoded value of `key` in a query string (without '?'): 1 found, 0 not there,
 * negative on error. */
int abx__query_get(const char *query, const char *key, char **ret);
bool abx__utf8_is_valid(const char *s, size_t len);
/* Each byte that is part of no character becomes '?': what a cut leaves of the last one.
 */
void abx__utf8_repair(char *s);

#endif

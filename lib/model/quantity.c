/*
 * quantity.c - Kubernetes quantities: <digits>[.<digits>][<suffix> | e<exponent>].
 *
 * A value is kept as mantissa * 10^ten * 2^two until the end, so nothing is rounded on
 * the way.
 */
#include "model/quantity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

#define QUANTITY_MAX_LEN 64

typedef unsigned __int128 wide;

typedef struct parts {
	uint64_t mantissa; /* below 2^63 */
	int ten;
	int two;
} parts;

static const struct {
	const char *suffix;
	int ten, two;
} suffixes[] = {
	{ "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
	{ "k", 3, 0 },   { "M", 6, 0 },   { "G", 9, 0 },   { "T", 12, 0 },
	{ "P", 15, 0 },  { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
	{ "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
};

static int parse_digits(const char **s, parts *p, bool fraction)
{
	int count = 0, zeros = 0;

	for (; **s >= '0' && **s <= '9'; (*s)++, count++) {
		unsigned digit = (unsigned)(**s - '0');

		/* Zeros at the end of a fraction say nothing, however many there are. */
		if (fraction && digit == 0) {
			zeros++;
			continue;
		}
		for (int shift = fraction ? zeros + 1 : 1; shift > 0; shift--) {
			if (__builtin_mul_overflow(p->mantissa, 10u, &p->mantissa))
				return ABX_EINVAL;
			p->ten -= fraction;
		}
		zeros = 0;
		if (__builtin_add_overflow(p->mantissa, digit, &p->mantissa) ||
		    p->mantissa > INT64_MAX)
			return ABX_EINVAL;
	}
	return count;
}

static int parse_suffix(const char *s, parts *p)
{
	int64_t exponent;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (strcmp(s, suffixes[i].suffix) != 0)
			continue;
		p->ten += suffixes[i].ten;
		p->two = suffixes[i].two;
		return ABX_OK;
	}
	if (*s != 'e' && *s != 'E')
		return ABX_EINVAL;
	s += s[1] == '+' ? 2 : 1;
	if (abx__parse_i64(s, -64, 64, &exponent) < 0)
		return ABX_EINVAL;
	p->ten += (int)exponent;
	return ABX_OK;
}

static int parse(const char *s, parts *p)
{
	int whole, fraction = 0;

	*p = (parts){ 0 };
	if (strnlen(s, QUANTITY_MAX_LEN + 1) > QUANTITY_MAX_LEN)
		return ABX_EINVAL;
	if (*s == '+')
		s++;
	whole = parse_digits(&s, p, false);
	if (whole >= 0 && *s == '.') {
		s++;
		fraction = parse_digits(&s, p, true);
	}
	if (whole < 0 || fraction < 0 || whole + fraction == 0)
		return ABX_EINVAL;
	return parse_suffix(s, p);
}

/* `p` times 10^scale as an integer: ABX_ETOOBIG past 63 bits, ABX_EINVAL when a fraction
 * is left. */
static int to_integer(const parts *p, int scale, int64_t *ret)
{
	wide value = (wide)p->mantissa << p->two; /* below 2^123 */
	int ten = p->ten + scale;

	for (; ten > 0 && value; ten--)
		if (__builtin_mul_overflow(value, (wide)10, &value) || value > INT64_MAX)
			return ABX_ETOOBIG;
	for (; ten < 0 && value; ten++) {
		if (value % 10)
			return ABX_EINVAL;
		value /= 10;
	}
	if (value > INT64_MAX)
		return ABX_ETOOBIG;
	*ret = (int64_t)value;
	return ABX_OK;
}

static int quantity(const char *s, int scale, const char *unit, int64_t *ret,
		    abx_error **reterr)
{
	parts p;
	int r;

	if (*s == '-')
		return abx__error_set(reterr, ABX_EINVAL,
				      "quantity \"%.64s\" is negative", s);
	r = parse(s, &p);
	if (r < 0) {
		abx__error_set(reterr, ABX_EINVAL, "\"%.64s\" is not a quantity", s);
		abx__error_hint(reterr, "write a number with an optional suffix, such as "
					"500m, 2, 1.5Gi, 1500M or 1e3");
		return ABX_EINVAL;
	}
	r = to_integer(&p, scale, ret);
	if (r == ABX_ETOOBIG)
		return abx__error_set(reterr, ABX_EINVAL,
				      "quantity \"%.64s\" is too large", s);
	if (r < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "quantity \"%.64s\" is finer than %s", s, unit);
	return ABX_OK;
}

int abx__quantity_milli(const char *s, int64_t *ret, abx_error **reterr)
{
	return quantity(s, 3, "one thousandth", ret, reterr);
}

int abx__quantity_bytes(const char *s, int64_t *ret, abx_error **reterr)
{
	return quantity(s, 0, "one unit", ret, reterr);
}

void abx__quantity_print_milli(int64_t milli, char out[ABX__QUANTITY_SIZE])
{
	bool whole = milli % 1000 == 0;

	snprintf(out, ABX__QUANTITY_SIZE, "%lld%s",
		 (long long)(whole ? milli / 1000 : milli), whole ? "" : "m");
}

static int print_scaled(int64_t value, int64_t step, const char *const *names, char *out)
{
	int i = 0;

	for (; i < 6 && value && value % step == 0; i++)
		value /= step;
	if (i > 0)
		snprintf(out, ABX__QUANTITY_SIZE, "%lld%s", (long long)value,
			 names[i - 1]);
	return i;
}

void abx__quantity_print_bytes(int64_t bytes, char out[ABX__QUANTITY_SIZE])
{
	static const char *const binary[] = { "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
	static const char *const decimal[] = { "k", "M", "G", "T", "P", "E" };

	if (!print_scaled(bytes, 1024, binary, out) &&
	    !print_scaled(bytes, 1000, decimal, out))
		snprintf(out, ABX__QUANTITY_SIZE, "%lld", (long long)bytes);
}

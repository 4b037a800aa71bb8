/*
 * meter.c - see meter.h. A series is found by its values, joined with a byte that no
 * label value keeps.
 */
#include "base/meter.h"

#include <agentbox/error.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) abx__malloc(size)
#define uthash_free(ptr, size) abx__free(ptr)
#include <uthash.h>

#define KEY_MAX 1024
#define SEPARATOR '\x1f'

typedef struct series {
	UT_hash_handle hh; /* by key */
	double value;      /* or the sum of a histogram */
	uint64_t *counts;  /* of each bucket alone; the last is +Inf */
	uint64_t count;
	char key[];
} series;

struct abx__meters {
	const abx__meter_family *families;
	size_t count;
	series **series; /* a hash a family */
	uint64_t dropped;
};

static size_t label_count(const abx__meter_family *f)
{
	size_t n = 0;

	while (n < ABX__METER_LABELS_MOST && f->labels[n])
		n++;
	return n;
}

abx__meters *abx__meters_new(const abx__meter_family *families, size_t count)
{
	abx__meters *m = abx__calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->families = families;
	m->count = count;
	m->series = abx__calloc(count ? count : 1, sizeof(*m->series));
	if (m->series)
		return m;
	abx__free(m);
	return NULL;
}

static void series_free(series *s)
{
	abx__free(s->counts);
	abx__free(s);
}

void abx__meter_clear(abx__meters *m, size_t family)
{
	series *s, *next;

	if (!m)
		return;
	HASH_ITER(hh, m->series[family], s, next)
	{
		HASH_DEL(m->series[family], s);
		series_free(s);
	}
}

void abx__meters_free(abx__meters *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++)
		abx__meter_clear(m, i);
	abx__free(m->series);
	abx__free(m);
}

/* Values that are too long are cut; two that agree so far count as one. */
static size_t make_key(const abx__meter_family *f, const char *const *values,
		       char key[KEY_MAX])
{
	size_t n = label_count(f), len = 0;

	for (size_t i = 0; i < n; i++) {
		const char *v = values[i] ? values[i] : "";

		for (; *v && len < KEY_MAX - 2; v++)
			key[len++] = *v == SEPARATOR ? ' ' : *v;
		if (len < KEY_MAX - 1)
			key[len++] = SEPARATOR;
	}
	key[len] = '\0';
	return len;
}

static series *series_new(const abx__meters *m, size_t family, const char *key,
			  size_t len)
{
	const abx__meter_family *f = &m->families[family];
	series *s;

	if (HASH_COUNT(m->series[family]) >= ABX__METER_SERIES_MOST)
		return NULL;
	s = abx__calloc(1, sizeof(*s) + len + 1);
	if (!s)
		return NULL;
	memcpy(s->key, key, len + 1);
	if (f->kind == ABX__METER_HISTOGRAM) {
		s->counts = abx__calloc(f->buckets + 1, sizeof(*s->counts));
		if (!s->counts) {
			abx__free(s);
			return NULL;
		}
	}
	HASH_ADD_KEYPTR(hh, m->series[family], s->key, len, s);
	if (s->hh.tbl)
		return s;
	series_free(s);
	return NULL;
}

static series *find(abx__meters *m, size_t family, const char *const *values)
{
	char key[KEY_MAX];
	series *s = NULL;
	size_t len;

	if (!m)
		return NULL;
	len = make_key(&m->families[family], values, key);
	HASH_FIND(hh, m->series[family], key, len, s);
	if (!s)
		s = series_new(m, family, key, len);
	if (!s)
		m->dropped++;
	return s;
}

void abx__meter_add(abx__meters *m, size_t family, const char *const *values, double by)
{
	series *s = find(m, family, values);

	if (s)
		s->value += by;
}

void abx__meter_set(abx__meters *m, size_t family, const char *const *values, double to)
{
	series *s = find(m, family, values);

	if (s)
		s->value = to;
}

void abx__meter_observe(abx__meters *m, size_t family, const char *const *values,
			double value)
{
	series *s = find(m, family, values);
	const abx__meter_family *f;
	double bound;
	size_t i = 0;

	if (!s)
		return;
	f = &m->families[family];
	for (bound = f->first; i < f->buckets && value > bound; i++)
		bound *= f->factor;
	s->counts[i]++;
	s->count++;
	s->value += value;
}

double abx__meter_get(const abx__meters *m, size_t family, const char *const *values)
{
	char key[KEY_MAX];
	series *s = NULL;
	size_t len;

	if (!m)
		return 0;
	len = make_key(&m->families[family], values, key);
	HASH_FIND(hh, m->series[family], key, len, s);
	if (!s)
		return 0;
	return m->families[family].kind == ABX__METER_HISTOGRAM ? (double)s->count
								: s->value;
}

/* The value of the label at this place. */
static bool has_value(const char *key, size_t place, const char *value)
{
	size_t len = strlen(value);

	while (place-- > 0) {
		key = strchr(key, SEPARATOR);
		if (!key)
			return false;
		key++;
	}
	return strncmp(key, value, len) == 0 && key[len] == SEPARATOR;
}

static bool is_meant(const abx__meter_family *f, const series *s,
		     const char *const *labels_and_values)
{
	for (const char *const *at = labels_and_values; at[0] && at[1]; at += 2) {
		size_t place = 0, n = label_count(f);

		while (place < n && strcmp(f->labels[place], at[0]) != 0)
			place++;
		if (place == n || !has_value(s->key, place, at[1]))
			return false;
	}
	return true;
}

void abx__meter_drop(abx__meters *m, const char *const *labels_and_values)
{
	for (size_t i = 0; m && i < m->count; i++) {
		series *s, *next;

		HASH_ITER(hh, m->series[i], s, next)
		{
			if (!is_meant(&m->families[i], s, labels_and_values))
				continue;
			HASH_DEL(m->series[i], s);
			series_free(s);
		}
	}
}

/* --- as text --- */

static int add_value(abx__buf *buf, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int r;

		if (text[i] == '\\' || text[i] == '"')
			r = abx__buf_addf(buf, "\\%c", text[i]);
		else if (text[i] == '\n')
			r = abx__buf_addf(buf, "\\n");
		else
			r = abx__buf_addc(buf, text[i]);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

/* name_suffix{label="value",...,le="bound"} */
static int add_head(abx__buf *buf, const abx__meter_family *f, const char *suffix,
		    const series *s, const char *le)
{
	const char *value = s->key;
	int r = abx__buf_addf(buf, "%s%s", f->name, suffix);
	size_t n = label_count(f);

	if (n == 0 && !le)
		return r;
	for (size_t i = 0; r == ABX_OK && i < n; i++) {
		const char *end = strchr(value, SEPARATOR);
		size_t len = end ? (size_t)(end - value) : strlen(value);

		r = abx__buf_addf(buf, "%c%s=\"", i == 0 ? '{' : ',', f->labels[i]);
		if (r == ABX_OK)
			r = add_value(buf, value, len);
		if (r == ABX_OK)
			r = abx__buf_addc(buf, '"');
		value = end ? end + 1 : "";
	}
	if (r == ABX_OK && le)
		r = abx__buf_addf(buf, "%cle=\"%s\"", n == 0 ? '{' : ',', le);
	return r == ABX_OK ? abx__buf_addc(buf, '}') : r;
}

/* Whole numbers as such: no counter is told with an exponent. */
static int add_number(abx__buf *buf, double value)
{
	if (value > -1e15 && value < 1e15 && (double)(int64_t)value == value)
		return abx__buf_addf(buf, " %" PRId64 "\n", (int64_t)value);
	return abx__buf_addf(buf, " %.9g\n", value);
}

static int add_histogram(abx__buf *buf, const abx__meter_family *f, const series *s)
{
	double bound = f->first;
	uint64_t so_far = 0;
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && i <= f->buckets; i++) {
		char le[32] = "+Inf";

		if (i < f->buckets)
			snprintf(le, sizeof(le), "%.9g", bound);
		bound *= f->factor;
		so_far += s->counts[i];
		r = add_head(buf, f, "_bucket", s, le);
		if (r == ABX_OK)
			r = add_number(buf, (double)so_far);
	}
	if (r == ABX_OK)
		r = add_head(buf, f, "_sum", s, NULL);
	if (r == ABX_OK)
		r = add_number(buf, s->value);
	if (r == ABX_OK)
		r = add_head(buf, f, "_count", s, NULL);
	return r == ABX_OK ? add_number(buf, (double)s->count) : r;
}

static int add_family(abx__buf *buf, const abx__meter_family *f, const series *first)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram" };
	int r = abx__buf_addf(buf, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help,
			      f->name, kinds[f->kind]);

	for (const series *s = first; r == ABX_OK && s; s = s->hh.next) {
		if (f->kind == ABX__METER_HISTOGRAM) {
			r = add_histogram(buf, f, s);
			continue;
		}
		r = add_head(buf, f, "", s, NULL);
		if (r == ABX_OK)
			r = add_number(buf, s->value);
	}
	return r;
}

int abx__meters_print(const abx__meters *m, abx__buf *buf)
{
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && i < m->count; i++)
		if (m->series[i])
			r = add_family(buf, &m->families[i], m->series[i]);
	return r;
}

uint64_t abx__meters_dropped(const abx__meters *m)
{
	return m ? m->dropped : 0;
}

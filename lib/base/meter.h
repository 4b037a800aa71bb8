/*
 * meter.h - counters, gauges and histograms, and their text for Prometheus (exposition
 * format 0.0.4).
 *
 * A family has a name, a kind and label names; a series of it is told by its label
 * values. Counting never fails: a series that finds no memory, or no room among the
 * ABX__METER_SERIES_MOST of its family, is not counted, and that is counted
 * (abx__meters_dropped()). One thread.
 */
#ifndef ABX_BASE_METER_H
#define ABX_BASE_METER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ABX__METER_SERIES_MOST 20000
#define ABX__METER_LABELS_MOST 8
#define ABX__METER_BUCKETS_MOST 24

enum abx__meter_kind { ABX__METER_COUNTER, ABX__METER_GAUGE, ABX__METER_HISTOGRAM };

typedef struct abx__meter_family {
	const char *name, *help;
	enum abx__meter_kind kind;
	const char *labels[ABX__METER_LABELS_MOST + 1]; /* NULL-terminated */
	/* Of a histogram: so many upper bounds, the first this, each the factor above the
	   one before; then +Inf. */
	double first, factor;
	size_t buckets;
} abx__meter_family;

typedef struct abx__meters abx__meters;

/* `families` is borrowed and outlives it. NULL: out of memory. */
abx__meters *abx__meters_new(const abx__meter_family *families, size_t count);
void abx__meters_free(abx__meters *meters);

/* `family` is an index into the table; `values` are as many as it has labels, NULL
   counting as "". `meters` NULL: nothing is counted. */
void abx__meter_add(abx__meters *meters, size_t family, const char *const *values,
		    double by);
void abx__meter_set(abx__meters *meters, size_t family, const char *const *values,
		    double to);
void abx__meter_observe(abx__meters *meters, size_t family, const char *const *values,
			double value);
/* For tests and whoever computes with them: the counter's or gauge's value, or how many
   were observed; 0 for an unknown series. */
double abx__meter_get(const abx__meters *meters, size_t family,
		      const char *const *values);
/* Forgets every series that has these values for these labels (label, value, ...,
   NULL): what they were about is gone. */
void abx__meter_drop(abx__meters *meters, const char *const *labels_and_values);
/* Forgets the series of a gauge, before it is set anew. */
void abx__meter_clear(abx__meters *meters, size_t family);
/* Appends all families that have a series. ABX_ENOMEM, ABX_ETOOBIG (of the buffer). */
int abx__meters_print(const abx__meters *meters, abx__buf *buf);
/* How many times something was not counted. */
uint64_t abx__meters_dropped(const abx__meters *meters);

#endif

/*
 * metrics.h - what sandboxes use, over time: a sample of each running one every five
 * seconds, the last half hour of them kept in memory, lost with the process.
 *
 * One sandbox is asked about at a time, in turn, so that a thousand of them are a
 * question every five milliseconds and not a thousand at once; nothing is asked while
 * there is no sandbox, and nothing on the way of a claim.
 */
#ifndef ABX_CONTROL_METRICS_H
#define ABX_CONTROL_METRICS_H

#include "control/sandboxes.h"

#define ABX__METRICS_EVERY_MS 5000
#define ABX__METRICS_MOST 360

typedef struct abx__metric {
	int64_t unix_s;
	double cpu_pct; /* of the CPUs it may use, since the sample before */
	uint64_t memory_used, memory_total, memory_cache, disk_used,
		disk_total; /* bytes */
} abx__metric;

/* The kept samples, oldest first; false past the end. */
bool abx__metrics_at(const abx__sandbox_rec *sandbox, size_t index, abx__metric *ret);

#endif

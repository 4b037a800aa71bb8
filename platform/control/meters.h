/*
 * meters.h - the platform's own numbers, in the reference's metric families
 * (platform-inventory.md, section 1.12), for GET /metrics.
 *
 * Counters and histograms are counted as things happen; gauges are read when asked for.
 * What they count starts with the process. Families the reference has for parts that are
 * not here (a refreshed cache of Pods, the egress sidecar, the hub) are left out.
 */
#ifndef ABX_CONTROL_METERS_H
#define ABX_CONTROL_METERS_H

#include "base/buf.h"
#include "base/meter.h"

enum abx__control_meter {
	ABX__METER_CLAIM,      /* asked for until answered; outcome */
	ABX__METER_CLAIM_PATH, /* of those that succeeded: warm, swapped, queued, scaled
				*/
	ABX__METER_STARTING,   /* a Pod taken until it runs; outcome */
	ABX__METER_RUNNING,    /* stop_reason */
	ABX__METER_RECYCLE,    /* given back until it is idle again */
	ABX__METER_CREATE,     /* result */
	ABX__METER_DELETE,     /* stop_reason */
	ABX__METER_UPDATE,     /* target: claim or release; result */
	ABX__METER_CAS,        /* outcome of the conditional write of a claim */
	ABX__METER_DISPATCH,   /* asked for until a Pod is taken */
	ABX__METER_PROTECTED,  /* Pods a scale-down left, for they may still be claimed */
	ABX__METER_EVICTED,    /* idle Pods that became unable to take a claim */
	ABX__METER_COUNT,
};

struct abx__control;

/* All families as Prometheus text, appended. ABX_ENOMEM, ABX_ETOOBIG (of the buffer). */
int abx__control_meters_print(struct abx__control *control, abx__buf *buf);
/* What was counted, for tests and benchmarks. */
const abx__meters *abx__control_meters(const struct abx__control *control);

#endif

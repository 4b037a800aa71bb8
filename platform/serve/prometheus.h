/*
 * prometheus.h - GET /metrics: what control/ counts, and the requests. Inside of serve/
 * only.
 */
#ifndef ABX_SERVE_PROMETHEUS_H
#define ABX_SERVE_PROMETHEUS_H

#include "serve/call.h"

/* NULL: out of memory. Freed with abx__meters_free(). */
abx__meters *abx__prometheus_new(void);
/* A call was answered with this status. */
void abx__prometheus_answered(const abx__call *call, int status);
/* The handler. */
void abx__prometheus_metrics(abx__call *call);

#endif

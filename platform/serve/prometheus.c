/*
 * prometheus.c - see prometheus.h. A request counts under its route's pattern, so that
 * ids make no series; one that no route takes counts under "unmatched".
 */
#include "serve/prometheus.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "control/meters.h"

#define TEXT_MAX ((size_t)64 << 20)
#define LABELS "method", "path", "status_code", "api"

enum { REQUESTS, DURATION };

static const abx__meter_family families[] = {
	[REQUESTS] = { .name = "agentbox_http_requests_total",
		       .help = "Requests to the APIs.",
		       .kind = ABX__METER_COUNTER,
		       .labels = { LABELS } },
	[DURATION] = { .name = "agentbox_http_request_duration_seconds",
		       .help = "From a request's head to its answer.",
		       .kind = ABX__METER_HISTOGRAM,
		       .labels = { LABELS },
		       .first = 0.01,
		       .factor = 2,
		       .buckets = 17 },
};

abx__meters *abx__prometheus_new(void)
{
	return abx__meters_new(families, sizeof(families) / sizeof(families[0]));
}

void abx__prometheus_answered(const abx__call *call, int status)
{
	const abx__serve *serve = call->serve;
	int64_t now = serve->clock->mono_ms(serve->clock->userdata);
	char code[16];
	const char *values[] = { call->route ? call->route->method : "",
				 call->route ? call->route->path : "unmatched", code,
				 call->surface == ABX__SURFACE_E2B ? "e2b" : "native" };

	snprintf(code, sizeof(code), "%d", status);
	abx__meter_add(serve->meters, REQUESTS, values, 1);
	abx__meter_observe(serve->meters, DURATION, values,
			   (double)(now - call->began_ms) / 1000.0);
}

void abx__prometheus_metrics(abx__call *call)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT_CAP(TEXT_MAX);
	int r = abx__control_meters_print(call->serve->control, &buf);

	if (r == ABX_OK)
		r = abx__meters_print(call->serve->meters, &buf);
	if (r < 0)
		abx__call_nomem(call);
	else
		abx__call_text(call, 200, "text/plain; version=0.0.4; charset=utf-8",
			       abx__buf_str(&buf), buf.len);
}

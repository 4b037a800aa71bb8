/*
 * agentbox/metrics.h - what a sandbox uses: processor, memory, disk.
 */
#ifndef AGENTBOX_METRICS_H
#define AGENTBOX_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a sandbox used at one moment. */
typedef struct abx_metric {
	size_t size; /* what this library filled */
	int64_t timestamp_ms;
	uint32_t cpu_count;
	double cpu_used_pct; /* of one processor: 150 is one and a half */
	uint64_t memory_used_bytes;
	uint64_t memory_total_bytes;
	uint64_t memory_cache_bytes;
	uint64_t disk_used_bytes;
	uint64_t disk_total_bytes;
} abx_metric;

/** Which moments. */
typedef struct abx_metrics_options {
	size_t size;      /* set by ABX_METRICS_OPTIONS_INIT */
	int64_t start_ms; /* this one or later, in whole seconds; 0: the oldest kept */
	int64_t end_ms;   /* this one or earlier, in whole seconds; 0: now */
} abx_metrics_options;
#define ABX_METRICS_OPTIONS_INIT ABX_OPTIONS_INIT(abx_metrics_options)
/** Does what ABX_METRICS_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_metrics_options_init(abx_metrics_options *opts);

/** Moments, the oldest first. */
typedef struct abx_metrics abx_metrics;
/** How many; 0 is possible. Since: 0.1.0 */
ABX_API size_t abx_metrics_count(abx_metrics *metrics);
/** The one at `index`, or NULL past the end. Owner: the list. Since: 0.1.0 */
ABX_API const abx_metric *abx_metrics_at(abx_metrics *metrics, size_t index);
/** Frees a list. NULL is fine. Since: 0.1.0 */
ABX_API void abx_metrics_free(abx_metrics *metrics);
/** A completion with a list, which is the completion's: abx_metrics_free(). */
typedef void (*abx_metrics_fn)(void *userdata, int r, abx_metrics *metrics,
			       const abx_error *err);

/**
 * What a sandbox used, as far back as the platform keeps it. `opts` may be NULL.
 *
 * Errors: ABX_ENOTFOUND (no such sandbox, or it ended), ABX_EINVAL (an empty window),
 * ABX_EUNSUPPORTED (the platform does not measure). Owner: the caller,
 * abx_metrics_free(). Since: 0.1.0
 */
ABX_API int abx_sandbox_get_metrics(abx_sandbox *sandbox, const abx_metrics_options *opts,
				    abx_metrics **ret, abx_error **reterr);
/** abx_sandbox_get_metrics() as an operation (op.h). */
ABX_API int abx_sandbox_get_metrics_async(abx_sandbox *sandbox,
					  const abx_metrics_options *opts,
					  abx_metrics_fn done, void *userdata,
					  abx_free_fn free_userdata, abx_op **ret_op,
					  abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif

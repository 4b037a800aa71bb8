/*
 * metrics.c - the calls of <agentbox/metrics.h>: SandboxMetric of the control API.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/options.h"
#include "client/sandbox.h"
#include "io/json.h"

#define MAX_ANSWER ((size_t)16 << 20)

struct abx_metrics {
	abx_metric *items;
	size_t count;
};

size_t abx_metrics_count(abx_metrics *metrics)
{
	return metrics->count;
}

const abx_metric *abx_metrics_at(abx_metrics *metrics, size_t index)
{
	return index < metrics->count ? &metrics->items[index] : NULL;
}

void abx_metrics_free(abx_metrics *metrics)
{
	if (!metrics)
		return;
	abx__free(metrics->items);
	abx__free(metrics);
}

ABX_DEFINE_FREEP(metrics_freep, abx_metrics, abx_metrics_free)

static uint64_t bytes_of(json_object *obj, const char *key)
{
	int64_t value = 0;

	abx__json_get_i64(obj, key, 0, INT64_MAX, &value, NULL);
	return (uint64_t)value;
}

static int parse_one(json_object *obj, abx_metric *ret)
{
	json_object *pct = NULL;
	int64_t seconds = 0, cpus = 0;

	if (!json_object_is_type(obj, json_type_object) ||
	    abx__json_get_i64(obj, "timestampUnix", 0, INT64_MAX / 1000, &seconds,
			      NULL) <= 0)
		return ABX_EPROTO;
	abx__json_get_i64(obj, "cpuCount", 0, UINT32_MAX, &cpus, NULL);
	json_object_object_get_ex(obj, "cpuUsedPct", &pct);
	*ret = (abx_metric){
		.size = sizeof(*ret),
		.timestamp_ms = seconds * 1000,
		.cpu_count = (uint32_t)cpus,
		.cpu_used_pct = json_object_get_double(pct),
		.memory_used_bytes = bytes_of(obj, "memUsed"),
		.memory_total_bytes = bytes_of(obj, "memTotal"),
		.memory_cache_bytes = bytes_of(obj, "memCache"),
		.disk_used_bytes = bytes_of(obj, "diskUsed"),
		.disk_total_bytes = bytes_of(obj, "diskTotal"),
	};
	return ABX_OK;
}

static int parse_all(json_object *array, abx_metrics **ret)
{
	ABX_CLEANUP(metrics_freep)
	abx_metrics *metrics = abx__calloc(1, sizeof(*metrics));
	size_t count;

	if (!metrics)
		return ABX_ENOMEM;
	if (!json_object_is_type(array, json_type_array))
		return ABX_EPROTO;
	count = json_object_array_length(array);
	metrics->items = abx__calloc(count + 1, sizeof(*metrics->items));
	if (!metrics->items)
		return ABX_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int r = parse_one(json_object_array_get_idx(array, i),
				  &metrics->items[i]);

		if (r < 0)
			return r;
		metrics->count++;
	}
	*ret = abx_take(metrics);
	return ABX_OK;
}

static int metrics_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *array = NULL;
	abx_metrics *metrics = NULL;
	int r;

	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = abx__json_parse(abx__buf_str(&op->in), op->in.len, MAX_ANSWER, &array, NULL);
	if (r >= 0)
		r = parse_all(array, &metrics);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0)
		return abx__error_set(reterr, ABX_EPROTO,
				      "the answer is not a list of metrics");
	op->result = metrics;
	return ABX_OK;
}

static int start_metrics(abx_sandbox *sandbox, const abx_metrics_options *user_opts,
			 const abx__then *then, abx_error **reterr)
{
	char start[40] = "", end[40] = "", tail[112];
	abx_metrics_options opts;
	int r;

	r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_metrics_options",
			      reterr);
	if (r < 0)
		return r;
	if (opts.start_ms < 0 || opts.end_ms < 0 ||
	    (opts.end_ms && opts.start_ms > opts.end_ms))
		return abx__error_set(reterr, ABX_EINVAL,
				      "the window of metrics ends before it begins");
	if (opts.start_ms)
		snprintf(start, sizeof(start), "start=%" PRId64, opts.start_ms / 1000);
	if (opts.end_ms)
		snprintf(end, sizeof(end), "end=%" PRId64, (opts.end_ms + 999) / 1000);
	snprintf(tail, sizeof(tail), "/metrics%s%s%s%s", *start || *end ? "?" : "", start,
		 *start && *end ? "&" : "", end);
	return abx__sandbox_control(sandbox, then, "look at the metrics of sandbox",
				    "GET", tail, NULL, metrics_answer, reterr);
}

int abx_sandbox_get_metrics(abx_sandbox *sandbox, const abx_metrics_options *opts,
			    abx_metrics **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_METRICS, &wait);

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_get_metrics: ret is NULL");
	return abx__wait_object(ABX__CLIENT_OF(sandbox), &then,
				start_metrics(sandbox, opts, &then, reterr), ret, reterr);
}

int abx_sandbox_get_metrics_async(abx_sandbox *sandbox, const abx_metrics_options *opts,
				  abx_metrics_fn done, void *userdata,
				  abx_free_fn free_userdata, abx_op **ret_op,
				  abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_METRICS, metrics, done);

	return abx__then_end(&then, start_metrics(sandbox, opts, &then, reterr));
}

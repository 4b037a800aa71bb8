/*
 * e2b-metrics.c - what sandboxes use: one of them over a window of time, the latest of
 * several.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "control/metrics.h"
#include "serve/e2b.h"
#include "serve/list.h"

#define IDS_MOST 100
#define TIME_MOST INT64_C(253402300799) /* the year 9999 */

static int64_t cpu_count(const abx__sandbox_rec *rec)
{
	return rec->cpu_milli > 0 ? (rec->cpu_milli + 999) / 1000 : 1;
}

static json_object *metric(const abx__sandbox_rec *rec, const abx__metric *m)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	int r = o ? abx__json_set_time(o, "timestamp", m->unix_s * 1000) : ABX_ENOMEM;

	if (r == ABX_OK)
		r = abx__json_set_i64(o, "timestampUnix", m->unix_s);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "cpuCount", cpu_count(rec));
	if (r == ABX_OK)
		r = abx__json_set_double(o, "cpuUsedPct", round(m->cpu_pct * 100) / 100);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "memUsed", (int64_t)m->memory_used);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "memTotal", (int64_t)m->memory_total);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "memCache", (int64_t)m->memory_cache);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "diskUsed", (int64_t)m->disk_used);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "diskTotal", (int64_t)m->disk_total);
	return r == ABX_OK ? abx_take(o) : NULL;
}

/* ---- one ---- */

/* Unix seconds; 1, or 0 when it is absent. */
static int seconds_param(const char *query, const char *name, int64_t *ret,
			 abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int r = query ? abx__query_get(query, name, &text) : 0;

	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r == 0)
		return 0;
	if (r < 0 || abx__parse_i64(text, 0, TIME_MOST, ret) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s is a time in Unix seconds, not \"%s\"", name,
				      text ? text : "");
	return 1;
}

static int parse_window(const char *query, int64_t *ret_start, int64_t *ret_end,
			abx_error **reterr)
{
	int r;

	*ret_start = 0;
	*ret_end = TIME_MOST;
	r = seconds_param(query, "start", ret_start, reterr);
	if (r >= 0)
		r = seconds_param(query, "end", ret_end, reterr);
	if (r < 0)
		return r;
	/* A window of the same second is one: E2B's own tests ask for it. */
	if (*ret_start > *ret_end)
		return abx__error_set(reterr, ABX_EINVAL,
				      "start must be earlier than end");
	return ABX_OK;
}

void abx__e2b_metrics(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *array = json_object_new_array();
	const abx__sandbox_rec *rec;
	int64_t start, end;
	abx__metric m;

	if (parse_window(abx__http_req_query(call->req), &start, &end, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	rec = abx__call_sandbox(call);
	if (!rec)
		return;
	for (size_t i = 0; array && abx__metrics_at(rec, i, &m); i++) {
		json_object *o;

		if (m.unix_s < start || m.unix_s > end)
			continue;
		o = metric(rec, &m);
		if (!o || abx__json_push_take(array, o) < 0) {
			abx__call_nomem(call);
			return;
		}
	}
	abx__call_json(call, 200, abx_take(array));
}

/* ---- several ---- */

static bool latest(const abx__sandbox_rec *rec, abx__metric *ret)
{
	size_t i = 0;

	while (abx__metrics_at(rec, i, ret))
		i++;
	return i > 0;
}

/* What is unknown, not the caller's, or has no sample yet is left out. */
static int add_latest(abx__call *call, json_object *map, const char *id)
{
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(abx__control_sandboxes(call->serve->control), id);
	json_object *o;
	abx__metric m;

	if (!rec || rec->state != ABX__SANDBOX_RUNNING ||
	    !abx__list_visible(&call->who, rec) || !latest(rec, &m))
		return ABX_OK;
	o = metric(rec, &m);
	return o ? abx__json_set_take(map, rec->id, o) : ABX_ENOMEM;
}

static size_t count_ids(const char *text)
{
	size_t n = *text ? 1 : 0;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

static void answer_latest(abx__call *call, char *ids)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *map = json_object_new_object();
	char *rest = ids, *id;
	int r = o && map ? ABX_OK : ABX_ENOMEM;

	while (r == ABX_OK && (id = strsep(&rest, ",")))
		r = add_latest(call, map, id);
	if (r == ABX_OK)
		r = abx__json_set_take(o, "sandboxes", json_object_get(map));
	json_object_put(map);
	abx__call_json(call, 200, r == ABX_OK ? abx_take(o) : NULL);
}

void abx__e2b_metrics_many(abx__call *call)
{
	const char *query = abx__http_req_query(call->req);
	ABX_CLEANUP(abx__freep) char *ids = NULL;
	int r = query ? abx__query_get(query, "sandbox_ids", &ids) : 0;

	if (r == ABX_ENOMEM)
		abx__call_nomem(call);
	else if (r < 0)
		abx__call_fail(call, 400, "sandbox_ids is not well encoded");
	else if (r == 0 || !*ids)
		abx__call_fail(call, 400, "sandbox_ids is required");
	else if (count_ids(ids) > IDS_MOST)
		abx__call_fail(call, 400, "Too many sandboxes requested, maximum is %d",
			       IDS_MOST);
	else
		answer_latest(call, ids);
}

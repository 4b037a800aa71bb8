/*
 * native-sandboxes.c - sandboxes of the native API (native-api.md, section 6). Only live
 * ones: there is no history yet, so a sandbox that ended is 404.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/address.h"
#include "model/duration.h"
#include "model/quantity.h"
#include "serve/list.h"
#include "serve/native.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 1000

/* ---- the object on the wire ---- */

const char *abx__native_sandbox_status(const abx__sandbox_rec *rec)
{
	switch (rec->state) {
	case ABX__SANDBOX_STARTING:
		return "Starting";
	case ABX__SANDBOX_RUNNING:
		return "Running";
	case ABX__SANDBOX_PAUSING:
	case ABX__SANDBOX_PAUSED:
	case ABX__SANDBOX_RESUMING:
		return "Paused";
	case ABX__SANDBOX_STOPPING:
		break;
	}
	return "Stopping";
}

static int put_names(json_object *o, const abx__sandbox_rec *rec)
{
	const char *const texts[][2] = {
		{ "sandboxId", rec->id },  { "namespace", rec->namespace_ },
		{ "poolName", rec->pool }, { "podName", rec->pod },
		{ "envName", rec->env },   { "team", rec->team },
		{ "user", rec->user },     { "status", abx__native_sandbox_status(rec) },
	};
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = abx__native_put_str(o, texts[i][0], texts[i][1]);
	return r;
}

static int put_size(json_object *o, const abx__sandbox_rec *rec)
{
	char text[ABX__QUANTITY_SIZE];
	int r = ABX_OK;

	if (rec->cpu_milli > 0) {
		abx__quantity_print_milli(rec->cpu_milli, text);
		r = abx__json_set_str(o, "cpu", text);
	}
	if (r == ABX_OK && rec->memory_bytes > 0) {
		abx__quantity_print_bytes(rec->memory_bytes, text);
		r = abx__json_set_str(o, "memory", text);
	}
	return r;
}

static int put_times(json_object *o, const abx__sandbox_rec *rec, int64_t now_ms)
{
	int r = abx__json_set_time(o, "claimedAt", rec->claimed_ms);

	if (r == ABX_OK && rec->started_ms)
		r = abx__json_set_time(o, "startedAt", rec->started_ms);
	if (r == ABX_OK && rec->state == ABX__SANDBOX_RUNNING)
		r = abx__json_set_i64(o, "durationSeconds",
				      (now_ms - rec->started_ms) / 1000);
	if (r == ABX_OK && rec->idle_timeout_ms > 0)
		r = abx__json_set_i64(o, "idleTimeoutSeconds",
				      rec->idle_timeout_ms / 1000);
	return r;
}

static int put_endpoints(const abx__serve *serve, json_object *o,
			 const abx__sandbox_rec *rec)
{
	ABX_CLEANUP_JSON json_object *all = json_object_new_object();
	ABX_CLEANUP_JSON json_object *envd = json_object_new_object();
	ABX_CLEANUP(abx__freep) char *url = NULL;

	if (rec->state != ABX__SANDBOX_RUNNING || !rec->runtime_port)
		return ABX_OK;
	url = abx__strf("%s/sandboxes/%s/%u", serve->base_url, rec->id,
			rec->runtime_port);
	if (!all || !envd || !url || abx__json_set_str(envd, "url", url) < 0 ||
	    abx__json_set_take(all, "envd", abx_take(envd)) < 0)
		return ABX_ENOMEM;
	return abx__json_set_take(o, "endpoints", abx_take(all));
}

static json_object *sandbox_view(const abx__serve *serve, const abx__sandbox_rec *rec)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	int64_t now = serve->clock->wall_ms(serve->clock->userdata);

	if (!o || put_names(o, rec) < 0 || put_size(o, rec) < 0 ||
	    put_times(o, rec, now) < 0 ||
	    abx__json_set_map(o, "metadata", &rec->metadata) < 0 ||
	    put_endpoints(serve, o, rec) < 0)
		return NULL;
	return abx_take(o);
}

static void answer_sandbox(abx__call *call, int status, const abx__sandbox_rec *rec)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *view = sandbox_view(call->serve, rec);

	if (!view || !o) {
		json_object_put(view);
		abx__call_nomem(call);
	} else if (abx__json_set_take(o, "sandbox", view) < 0) {
		abx__call_nomem(call);
	} else {
		abx__call_json(call, status, abx_take(o));
	}
}

/* ---- create ---- */

typedef struct create_body {
	abx__address address;
	abx__map labels, annotations, metadata;
	const char *image; /* borrowed from the body or the address */
	int64_t startup_ms, idle_ms;
} create_body;

static void create_body_done(create_body *b)
{
	abx__address_done(&b->address);
	abx__map_done(&b->labels);
	abx__map_done(&b->annotations);
	abx__map_done(&b->metadata);
}

/* 1, 0 when absent; ABX_EINVAL. */
static int get_duration(json_object *body, const char *key, int64_t *ret_ms,
			abx_error **reterr)
{
	const char *text = NULL;
	int r = abx__json_get_str(body, key, &text, reterr);

	if (r <= 0)
		return r;
	r = abx__duration_parse(text, ret_ms, reterr);
	return r < 0 ? abx__error_prefix(reterr, "%s", key) : 1;
}

static int parse_address(json_object *body, create_body *b, abx_error **reterr)
{
	const char *name = NULL;
	int r = abx__json_get_str(body, "poolName", &name, reterr);

	if (r == 0)
		r = abx__error_set(reterr, ABX_EINVAL, "poolName is required");
	if (r < 0)
		return r;
	if (abx__address_parse(name, &b->address, reterr) < 0)
		return abx__error_prefix(reterr, "poolName");
	if (b->address.image)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"poolName: \"//IMAGE\" is the E2B API's; use the field image");
	return abx__json_get_str(body, "image", &b->image, reterr);
}

static int parse_times(json_object *body, create_body *b, abx_error **reterr)
{
	int r = get_duration(body, "startupTimeout", &b->startup_ms, reterr);

	if (r == 1 && b->startup_ms <= 0)
		r = abx__error_set(reterr, ABX_EINVAL,
				   "startupTimeout must be more than 0");
	if (r >= 0)
		r = get_duration(body, "idleTimeout", &b->idle_ms, reterr);
	if (r == 1 && b->idle_ms < 0)
		r = abx__error_set(reterr, ABX_EINVAL,
				   "idleTimeout must not be negative");
	if (r == 1 && b->idle_ms == 0)
		b->idle_ms = -1; /* "0" says none; absent says the pool's */
	return r < 0 ? r : ABX_OK;
}

static int parse_create(json_object *body, create_body *b, abx_error **reterr)
{
	static const char *const known[] = {
		"poolName", "image",          "containerImages", "labels", "annotations",
		"metadata", "startupTimeout", "idleTimeout",     NULL
	};
	json_object *images = NULL;
	int r = abx__json_only(body, known, reterr);

	if (r == ABX_OK)
		r = parse_address(body, b, reterr);
	if (r >= 0)
		r = abx__json_get_object(body, "containerImages", &images, reterr);
	if (r == 1 && json_object_object_length(images) > 0)
		r = abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"containerImages is not supported by this server yet; use image");
	if (r >= 0)
		r = abx__json_get_map(body, "labels", &b->labels, reterr);
	if (r >= 0)
		r = abx__json_get_map(body, "annotations", &b->annotations, reterr);
	if (r >= 0)
		r = abx__json_get_map(body, "metadata", &b->metadata, reterr);
	if (r >= 0)
		r = parse_times(body, b, reterr);
	return r;
}

/* PoolStatusDetail: what the pools look like when there is no idle Pod. NULL when out of
 * memory. */
static json_object *pool_status(abx__call *call, int retry_after)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	abx__pool_counts n = { 0 };

	if (!o || abx__control_counts(call->serve->control, call->who.namespace_,
				      call->subject, NULL, &n, NULL) < 0)
		return NULL;
	if (abx__json_set_i64(o, "idle", n.idle) < 0 ||
	    abx__json_set_i64(o, "running", n.running) < 0 ||
	    abx__json_set_i64(o, "starting", n.starting) < 0 ||
	    abx__json_set_i64(o, "stopping", n.stopping) < 0 ||
	    abx__json_set_i64(o, "failed", n.failed) < 0)
		return NULL;
	if (n.stopping > 0 &&
	    (abx__json_set_str(o, "hint", "Pods are being recycled; try again soon") <
		     0 ||
	     abx__json_set_i64(o, "retryAfter", retry_after) < 0))
		return NULL;
	return abx_take(o);
}

static void claim_failed(abx__call *call, const abx_error *err)
{
	char seconds[16];
	int s;

	if (abx_error_code(err) != ABX_EEXHAUSTED) {
		abx__call_error(call, err);
		return;
	}
	s = abx__control_retry_after_s(call->serve->control, call->who.namespace_,
				       call->subject);
	snprintf(seconds, sizeof(seconds), "%d", s);
	abx__call_header(call, "Retry-After", seconds);
	abx__call_fail_detail(call, 429, pool_status(call, s), abx_error_message(err));
}

static void on_claimed(void *userdata, int r, const abx__sandbox_rec *rec,
		       const abx_error *err)
{
	abx__call *call = userdata;

	call->claim = NULL;
	if (r < 0) {
		claim_failed(call, err);
	} else {
		call->created = abx__strdup(rec->id);
		answer_sandbox(call, 201, rec);
	}
	abx__call_drop(call);
}

static void start_claim(abx__call *call, const create_body *b)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__claim_request request = {
		.namespace_ = call->who.namespace_,
		.name = b->address.name,
		.or_pool = b->address.cluster != NULL,
		.image = b->image,
		.startup_timeout_ms = b->startup_ms,
		.idle_timeout_ms = b->idle_ms,
		.team = call->who.team,
		.user = call->who.user,
		.admin = abx__identity_sees_all(&call->who),
		.metadata = &b->metadata,
		.labels = &b->labels,
		.annotations = &b->annotations,
	};

	call->subject = abx__strdup(b->address.name);
	if (!call->subject) {
		abx__call_nomem(call);
		return;
	}
	abx__call_hold(call);
	if (abx__control_claim(call->serve->control, &request, on_claimed, call,
			       &call->claim, &err) < 0) {
		claim_failed(call, err);
		abx__call_drop(call);
	}
}

void abx__native_sandbox_create(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	create_body b = { 0 };
	int r = parse_create(call->body, &b, &err);

	if (r >= 0 && b.address.cluster &&
	    !abx__str_eq(b.address.cluster, call->serve->cluster_id))
		r = abx__error_set(
			&err, ABX_ENOTFOUND,
			"cluster \"%s\" is not connected to this one, which is \"%s\"",
			b.address.cluster, call->serve->cluster_id);
	if (r < 0)
		abx__call_error(call, err);
	else if (b.idle_ms == 0 || abx__call_timeout_fits(call, b.idle_ms))
		start_claim(call, &b);
	create_body_done(&b);
}

/* ---- list ---- */

typedef struct list_params {
	const char *pool, *status; /* NULL: any */
	uint64_t limit, offset;
} list_params;

static int number_param(const char *query, const char *name, uint64_t min, uint64_t max,
			uint64_t *ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int r = query ? abx__query_get(query, name, &text) : 0;

	if (r == 1 && abx__parse_u64(text, min, max, ret) == ABX_OK)
		return ABX_OK;
	if (r == 0)
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "%s is %llu to %llu", name,
			      (unsigned long long)min, (unsigned long long)max);
}

static bool status_is_asked(const char *list, const char *status)
{
	for (const char *p = list; *p;) {
		size_t len = strcspn(p, ",");

		if (len == strlen(status) && strncmp(p, status, len) == 0)
			return true;
		p += len;
		if (*p == ',')
			p++;
	}
	return false;
}

static int newest_first(const void *a, const void *b)
{
	const abx__sandbox_rec *x = *(const abx__sandbox_rec *const *)a;
	const abx__sandbox_rec *y = *(const abx__sandbox_rec *const *)b;

	if (x->claimed_ms != y->claimed_ms)
		return x->claimed_ms > y->claimed_ms ? -1 : 1;
	return strcmp(x->id, y->id);
}

static bool is_asked(const abx__call *call, const list_params *p,
		     const abx__sandbox_rec *rec)
{
	return abx__list_visible(&call->who, rec) &&
	       (!p->pool || abx__str_eq(p->pool, rec->pool)) &&
	       (!p->status ||
		status_is_asked(p->status, abx__native_sandbox_status(rec)));
}

/* All that are asked for, sorted; NULL with *ret_count 0 is none, and false out of
 * memory. */
static bool collect(const abx__call *call, const list_params *p,
		    const abx__sandbox_rec ***ret, size_t *ret_count)
{
	const abx__sandboxes *table = abx__control_sandboxes(call->serve->control);
	const abx__sandbox_rec **recs = NULL, *rec;
	size_t count = 0, size = 0;

	for (size_t i = 0; abx__sandboxes_at(table, i, &rec); i++) {
		if (!is_asked(call, p, rec))
			continue;
		if (count == size) {
			void *more;

			size = size ? 2 * size : 64;
			more = abx__reallocarray(recs, size, sizeof(*recs));
			if (!more) {
				abx__free(recs);
				return false;
			}
			recs = more;
		}
		recs[count++] = rec;
	}
	if (count > 1)
		qsort(recs, count, sizeof(*recs), newest_first);
	*ret = recs;
	*ret_count = count;
	return true;
}

static json_object *list_page(const abx__call *call, const list_params *p,
			      const abx__sandbox_rec **recs, size_t count)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *items = json_object_new_array();

	if (!o || !items)
		return NULL;
	for (size_t i = p->offset; i < count && i - p->offset < p->limit; i++) {
		json_object *view = sandbox_view(call->serve, recs[i]);

		if (!view || abx__json_push_take(items, view) < 0)
			return NULL;
	}
	if (abx__json_set_take(o, "items", abx_take(items)) < 0 ||
	    abx__json_set_i64(o, "total", (int64_t)count) < 0 ||
	    abx__json_set_i64(o, "limit", (int64_t)p->limit) < 0 ||
	    abx__json_set_i64(o, "offset", (int64_t)p->offset) < 0)
		return NULL;
	return abx_take(o);
}

void abx__native_sandbox_list(abx__call *call)
{
	const char *query = abx__http_req_query(call->req);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *pool = NULL;
	ABX_CLEANUP(abx__freep) char *status = NULL;
	list_params p = { .limit = LIMIT_DEFAULT };
	const abx__sandbox_rec **recs = NULL;
	size_t count = 0;

	if (number_param(query, "limit", 1, LIMIT_MAX, &p.limit, &err) < 0 ||
	    number_param(query, "offset", 0, INT32_MAX, &p.offset, &err) < 0 ||
	    (query && (abx__query_get(query, "poolName", &pool) < 0 ||
		       abx__query_get(query, "status", &status) < 0))) {
		if (!err)
			abx__error_set(&err, ABX_EINVAL, "the query is not well encoded");
		abx__call_error(call, err);
		return;
	}
	p.pool = pool && *pool ? pool : NULL;
	p.status = status && *status ? status : NULL;
	if (collect(call, &p, &recs, &count))
		abx__call_json(call, 200, list_page(call, &p, recs, count));
	else
		abx__call_nomem(call);
	abx__free(recs);
}

void abx__native_sandbox_get(abx__call *call)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(call);

	if (rec)
		answer_sandbox(call, 200, rec);
}

/* ---- delete and timeout ---- */

static void on_killed(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_json(call, 202, json_object_get(call->body));
	abx__call_drop(call);
}

/* {sandboxId, namespace, poolName, podName, status}: made before the record goes. */
static json_object *deleted_view(const abx__sandbox_rec *rec)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "sandboxId", rec->id) < 0 ||
	    abx__json_set_str(o, "namespace", rec->namespace_) < 0 ||
	    abx__json_set_str(o, "poolName", rec->pool) < 0 ||
	    abx__json_set_str(o, "podName", rec->pod) < 0 ||
	    abx__json_set_str(o, "status", "Stopping") < 0)
		return NULL;
	return abx_take(o);
}

void abx__native_sandbox_delete(abx__call *call)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(call);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (!rec)
		return;
	call->body = deleted_view(rec);
	if (!call->body) {
		abx__call_nomem(call);
		return;
	}
	abx__call_hold(call);
	if (abx__control_kill(call->serve->control, rec->id, "Completed", on_killed, call,
			      &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

static void on_timeout_set(void *userdata, int r, const abx__sandbox_rec *rec,
			   const abx_error *err)
{
	abx__call *call = userdata;

	(void)rec;
	if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_empty(call, 204);
	abx__call_drop(call);
}

void abx__native_sandbox_timeout(abx__call *call)
{
	static const char *const known[] = { "timeout", NULL };
	const abx__sandbox_rec *rec = abx__call_sandbox(call);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int64_t ms = 0;
	int r;

	if (!rec)
		return;
	r = abx__json_only(call->body, known, &err);
	if (r == ABX_OK)
		r = get_duration(call->body, "timeout", &ms, &err);
	if (r == 0)
		r = abx__error_set(&err, ABX_EINVAL, "timeout is required");
	if (r == 1 && !abx__call_timeout_fits(call, ms))
		return;
	abx__call_hold(call);
	if (r == 1) /* 0 or less removes the timeout */
		r = abx__control_set_timeout(call->serve->control, rec->id,
					     ms > 0 ? ms : 0, false, on_timeout_set, call,
					     &err);
	if (r < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

/*
 * native-sandbox-view.c - a sandbox as the native API shows it (native-api.md, section
 * 6.2), alive or ended; one, and pages of both.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/quantity.h"
#include "serve/list.h"
#include "serve/log-query.h"
#include "serve/native.h"
#include "serve/view.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 1000

const char *abx__native_sandbox_status(const abx__sandbox_rec *rec)
{
	return abx__sandbox_status_name(abx__sandbox_status_of(rec));
}

/* ---- parts that both kinds have ---- */

static int put_texts(json_object *o, const char *const (*texts)[2], size_t count)
{
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && i < count; i++)
		r = abx__native_put_str(o, texts[i][0], texts[i][1]);
	return r;
}

static int put_size(json_object *o, int64_t cpu_milli, int64_t memory_bytes)
{
	char text[ABX__QUANTITY_SIZE];
	int r = ABX_OK;

	if (cpu_milli > 0) {
		abx__quantity_print_milli(cpu_milli, text);
		r = abx__json_set_str(o, "cpu", text);
	}
	if (r == ABX_OK && memory_bytes > 0) {
		abx__quantity_print_bytes(memory_bytes, text);
		r = abx__json_set_str(o, "memory", text);
	}
	return r;
}

static int put_time(json_object *o, const char *key, int64_t ms)
{
	return ms > 0 ? abx__json_set_time(o, key, ms) : ABX_OK;
}

static int put_number(json_object *o, const char *key, bool has, int64_t n)
{
	return has ? abx__json_set_i64(o, key, n) : ABX_OK;
}

/* ---- a live one ---- */

static int put_endpoint(json_object *all, const abx__serve *serve, const char *id,
			const char *name, unsigned port, const char *log)
{
	ABX_CLEANUP(abx__freep)
	char *url = abx__strf("%s/sandboxes/%s/%u", serve->base_url, id, port);
	json_object *o = json_object_new_object();

	if (!url || !o) {
		json_object_put(o);
		return ABX_ENOMEM;
	}
	if (abx__json_set_take(all, name, o) < 0 || abx__json_set_str(o, "url", url) < 0)
		return ABX_ENOMEM;
	return log && *log ? abx__json_set_str(o, "logDir", log) : ABX_OK;
}

/* Of every runtime that has a port. Without the template that is envd. */
static int put_endpoints(json_object *o, const abx__serve *serve,
			 const abx__sandbox_rec *rec, json_object *template_)
{
	ABX_CLEANUP_JSON json_object *all = json_object_new_object();
	json_object *runtimes = abx__view_path(template_, "spec", "runtimes");
	size_t n = runtimes ? json_object_array_length(runtimes) : 0;
	int r = all ? ABX_OK : ABX_ENOMEM;

	if (rec->state != ABX__SANDBOX_RUNNING || !rec->runtime_port)
		return ABX_OK;
	for (size_t i = 0; r == ABX_OK && i < n; i++) {
		json_object *runtime = json_object_array_get_idx(runtimes, i);
		json_object *port = abx__view_path(runtime, "port");
		const char *name = abx__view_str(runtime, "name");

		if (name && port)
			r = put_endpoint(all, serve, rec->id, name,
					 (unsigned)json_object_get_int(port),
					 abx__view_str(runtime, "logDir"));
	}
	if (r == ABX_OK && n == 0)
		r = put_endpoint(all, serve, rec->id, "envd", rec->runtime_port, NULL);
	return r == ABX_OK ? abx__json_set_take(o, "endpoints", abx_take(all)) : r;
}

static int put_images(json_object *o, json_object *template_, const char *image)
{
	json_object *images;

	if (!template_ || !image)
		return ABX_OK;
	images = json_object_new_object();
	if (!images || abx__json_set_take(o, "containerImages", images) < 0)
		return ABX_ENOMEM;
	return abx__json_set_str(images, abx__log_main_container(template_), image);
}

json_object *abx__native_sandbox_view(const abx__serve *serve,
				      const abx__sandbox_rec *rec, json_object *template_)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	int64_t now = serve->clock->wall_ms(serve->clock->userdata);
	const char *const texts[][2] = {
		{ "sandboxId", rec->id },  { "namespace", rec->namespace_ },
		{ "poolName", rec->pool }, { "podName", rec->pod },
		{ "envName", rec->env },   { "team", rec->team },
		{ "user", rec->user },     { "status", abx__native_sandbox_status(rec) },
	};

	if (!o || put_texts(o, texts, sizeof(texts) / sizeof(texts[0])) < 0 ||
	    put_size(o, rec->cpu_milli, rec->memory_bytes) < 0 ||
	    abx__json_set_time(o, "claimedAt", rec->claimed_ms) < 0 ||
	    put_time(o, "startedAt", rec->started_ms) < 0 ||
	    put_number(o, "durationSeconds", rec->state == ABX__SANDBOX_RUNNING,
		       (now - rec->started_ms) / 1000) < 0 ||
	    put_number(o, "idleTimeoutSeconds", rec->idle_timeout_ms > 0,
		       rec->idle_timeout_ms / 1000) < 0 ||
	    abx__json_set_map(o, "metadata", &rec->metadata) < 0 ||
	    put_images(o, template_, rec->image) < 0 ||
	    put_endpoints(o, serve, rec, template_) < 0)
		return NULL;
	return abx_take(o);
}

/* ---- one that ended ---- */

static json_object *ended_view(const abx__ended *e)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	const char *const texts[][2] = {
		{ "sandboxId", e->id },
		{ "namespace", e->namespace_ },
		{ "poolName", e->pool },
		{ "podName", e->pod },
		{ "envName", e->env },
		{ "team", e->team },
		{ "user", e->user },
		{ "status", abx__sandbox_status_name(e->status) },
		{ "failureReason", e->failure_reason },
		{ "failureMessage", e->failure_message },
	};
	bool ran = e->started_ms > 0 && e->status != ABX__STATUS_CANCELED;

	if (!o || put_texts(o, texts, sizeof(texts) / sizeof(texts[0])) < 0 ||
	    put_size(o, e->cpu_milli, e->memory_bytes) < 0 ||
	    abx__json_set_time(o, "claimedAt", e->claimed_ms) < 0 ||
	    put_time(o, "startedAt", e->started_ms) < 0 ||
	    put_time(o, "terminatedAt", e->ended_ms) < 0 ||
	    put_number(o, "durationSeconds", ran, (e->ended_ms - e->started_ms) / 1000) <
		    0 ||
	    put_number(o, "exitCode", e->exit_code >= 0, e->exit_code) < 0 ||
	    put_number(o, "idleTimeoutSeconds", e->idle_timeout_ms > 0,
		       e->idle_timeout_ms / 1000) < 0 ||
	    abx__json_set_map(o, "metadata", &e->metadata) < 0)
		return NULL;
	return abx_take(o);
}

const abx__ended *abx__native_ended(const abx__call *call)
{
	abx__control *control = call->serve->control;
	const char *id = call->params[0];
	const abx__ended *ended = abx__control_ended(control, id);

	if (!ended || abx__sandboxes_find(abx__control_sandboxes(control), id) ||
	    !(abx__identity_sees_all(&call->who) ||
	      abx__identity_is(&call->who, ended->team, ended->user)))
		return NULL;
	return ended;
}

/* Live ones first, then those that ended; whichever the caller may see. */
void abx__native_sandbox_get(abx__call *call)
{
	const abx__ended *ended = abx__native_ended(call);
	const abx__sandbox_rec *rec = ended ? NULL : abx__call_sandbox(call);
	ABX_CLEANUP_JSON json_object *template_ = NULL;
	ABX_CLEANUP_JSON json_object *o = NULL;
	json_object *view;

	if (!ended && !rec)
		return;
	if (rec)
		abx__control_template_get(call->serve->control, rec->template_,
					  &template_, NULL);
	view = rec ? abx__native_sandbox_view(call->serve, rec, template_)
		   : ended_view(ended);
	o = json_object_new_object();
	if (!o || !view) {
		json_object_put(view);
		abx__call_nomem(call);
	} else if (abx__json_set_take(o, "sandbox", view) < 0) {
		abx__call_nomem(call);
	} else {
		abx__call_json(call, 200, abx_take(o));
	}
}

/* ---- pages ---- */

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

/* Bits of the names in the list; a name that no sandbox has stands for none. */
static unsigned statuses_of(const char *list)
{
	unsigned bits = 0;

	for (const char *p = list; *p;) {
		size_t len = strcspn(p, ",");
		enum abx__sandbox_status status = ABX__STATUS_COUNT;
		char name[32];

		if (len < sizeof(name)) {
			memcpy(name, p, len);
			name[len] = '\0';
			if (abx__sandbox_status_parse(name, &status) &&
			    status < ABX__STATUS_COUNT)
				bits |= 1U << status;
		}
		p += len + (p[len] == ',');
	}
	return bits;
}

static json_object *page_view(const abx__call *call, const abx__sandbox_item *items,
			      size_t count, size_t total, uint64_t limit, uint64_t offset)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < count; i++) {
		json_object *view =
			items[i].live ? abx__native_sandbox_view(call->serve,
								 items[i].live, NULL)
				      : ended_view(items[i].ended);

		if (!view || abx__json_push_take(list, view) < 0)
			return NULL;
	}
	if (!o || !list || abx__json_set_take(o, "items", abx_take(list)) < 0 ||
	    abx__json_set_i64(o, "total", (int64_t)total) < 0 ||
	    abx__json_set_i64(o, "limit", (int64_t)limit) < 0 ||
	    abx__json_set_i64(o, "offset", (int64_t)offset) < 0)
		return NULL;
	return abx_take(o);
}

static void answer_page(abx__call *call, const abx__sandbox_query *q, bool none,
			uint64_t limit, uint64_t offset)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) abx__sandbox_item *items = NULL;
	size_t count = 0, total = 0;
	int r = ABX_OK;

	items = abx__calloc(limit, sizeof(*items));
	if (!items)
		r = abx__error_nomem(&err);
	else if (!none)
		r = abx__control_sandbox_list(call->serve->control, q, offset, limit,
					      items, &count, &total, &err);
	if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_json(call, 200,
			       page_view(call, items, count, total, limit, offset));
}

void abx__native_sandbox_list(abx__call *call)
{
	const char *query = abx__http_req_query(call->req);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *pool = NULL;
	ABX_CLEANUP(abx__freep) char *status = NULL;
	abx__sandbox_query q = { 0 };
	uint64_t limit = LIMIT_DEFAULT, offset = 0;
	bool none = false;

	if (number_param(query, "limit", 1, LIMIT_MAX, &limit, &err) < 0 ||
	    number_param(query, "offset", 0, INT32_MAX, &offset, &err) < 0 ||
	    (query && (abx__query_get(query, "poolName", &pool) < 0 ||
		       abx__query_get(query, "status", &status) < 0))) {
		if (!err)
			abx__error_set(&err, ABX_EINVAL, "the query is not well encoded");
		abx__call_error(call, err);
		return;
	}
	if (!abx__identity_sees_all(&call->who)) {
		q.namespace_ = call->who.namespace_;
		q.team = call->who.team;
		q.user = call->who.user;
	}
	q.pool = pool && *pool ? pool : NULL;
	if (status && *status) {
		q.statuses = statuses_of(status);
		none = q.statuses == 0;
	}
	answer_page(call, &q, none, limit, offset);
}

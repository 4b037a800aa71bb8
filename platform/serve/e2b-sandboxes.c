/*
 * e2b-sandboxes.c - sandboxes of the E2B API: create, list, get, kill, timeout,
 * refresh.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "control/ingress.h"
#include "model/keys.h"
#include "serve/e2b.h"
#include "serve/list.h"

/* `endAt` is required on the wire; a sandbox without an end says this. 2100-01-01. */
#define NO_END_MS INT64_C(4102444800000)
#define REFRESH_MIN_MS 15000
#define REFRESH_MAX_MS 3600000

/* ---- shapes ---- */

static int set_ids(json_object *o, const abx__sandbox_rec *rec)
{
	int r = abx__json_set_str(o, "templateID",
				  rec->snapshot ? rec->snapshot : rec->env);

	if (r == ABX_OK)
		r = abx__json_set_str(o, "alias", rec->env);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "sandboxID", rec->id);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "clientID", ABX__SANDBOX_CLIENT_ID);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "envdVersion", ABX__SERVE_ENVD_VERSION);
	return r;
}

static int set_token(json_object *o, const abx__sandbox_rec *rec)
{
	if (!rec->access_token)
		return ABX_OK;
	return abx__json_set_str(o, "envdAccessToken",
				 abx__secret_reveal(rec->access_token));
}

json_object *abx__e2b_sandbox(const abx__sandbox_rec *rec)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || set_ids(o, rec) < 0 || set_token(o, rec) < 0 ||
	    abx__json_set_str(o, "trafficAccessToken",
			      rec->traffic_token ? abx__secret_reveal(rec->traffic_token)
						 : NULL) < 0 ||
	    abx__json_set_str(o, "domain", NULL) < 0)
		return NULL;
	return abx_take(o);
}

static int set_state(json_object *o, const abx__sandbox_rec *rec)
{
	int64_t end = abx__sandbox_end_ms(rec);
	char started[ABX__RFC3339_SIZE];
	int r;

	abx__rfc3339_format_us(rec->started_us, started);
	r = abx__json_set_str(o, "startedAt", started);

	if (r == ABX_OK)
		r = abx__json_set_time(o, "endAt", end ? end : NO_END_MS);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "cpuCount",
				      rec->cpu_milli > 0 ? (rec->cpu_milli + 999) / 1000
							 : 1);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "memoryMB", rec->memory_bytes >> 20);
	if (r == ABX_OK)
		r = abx__json_set_i64(o, "diskSizeMB", 0);
	if (r == ABX_OK)
		r = abx__json_set_str(o, "state",
				      rec->state == ABX__SANDBOX_RUNNING ? "running"
									 : "paused");
	if (r == ABX_OK)
		r = abx__json_set_map(o, "metadata", &rec->metadata);
	return r;
}

static json_object *listed(const abx__sandbox_rec *rec)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || set_ids(o, rec) < 0 || set_state(o, rec) < 0)
		return NULL;
	return abx_take(o);
}

static int set_network(json_object *o, const abx__sandbox_rec *rec)
{
	json_object *network = rec->ingress ? abx__ingress_json(rec->ingress) : NULL;

	if (!network)
		return rec->ingress ? ABX_ENOMEM : ABX_OK;
	return abx__json_set_take(o, "network", network);
}

static json_object *detail(const abx__sandbox_rec *rec)
{
	ABX_CLEANUP_JSON json_object *o = listed(rec);
	json_object *lifecycle = json_object_new_object();

	if (!o || !lifecycle) {
		json_object_put(lifecycle);
		return NULL;
	}
	if (abx__json_set_take(o, "lifecycle", lifecycle) < 0 ||
	    abx__json_set_bool(lifecycle, "autoResume", rec->lifecycle.auto_resume) < 0 ||
	    abx__json_set_str(lifecycle, "onTimeout",
			      rec->lifecycle.auto_pause ? "pause" : "kill") < 0 ||
	    set_token(o, rec) < 0 || abx__json_set_str(o, "domain", NULL) < 0 ||
	    abx__json_set_str(o, "allowInternetAccess", NULL) < 0 ||
	    set_network(o, rec) < 0)
		return NULL;
	return abx_take(o);
}

/* ---- create ---- */

static void claim_failed(abx__call *call, const abx_error *err)
{
	const char *message = abx_error_message(err);
	char seconds[16];

	switch (abx_error_code(err)) {
	case ABX_ENOTFOUND:
		abx__call_fail(call, 400, "sandbox env or pool \"%s\" not found",
			       call->subject);
		return;
	case ABX_EEXHAUSTED:
		snprintf(seconds, sizeof(seconds), "%d",
			 abx__control_retry_after_s(call->serve->control,
						    call->who.namespace_, call->subject));
		abx__call_header(call, "Retry-After", seconds);
		abx__call_fail(call, 429, "%s", message);
		return;
	case ABX_EUNAVAILABLE:
	case ABX_ETIMEDOUT:
		/* Asking again at once gives the same; a newer SDK would, three times, on
		 * its own. */
		abx__call_header(call, "Should-Retry", "false");
		abx__call_error(call, err);
		return;
	default:
		abx__call_error(call, err);
	}
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
		abx__call_json(call, 201, abx__e2b_sandbox(rec));
	}
	abx__call_drop(call);
}

/* The cluster of the address is this one, or the call is answered. */
static bool cluster_is_here(abx__call *call, const abx__address *address)
{
	if (!address->cluster || strcmp(address->cluster, call->serve->cluster_id) == 0)
		return true;
	abx__call_fail(call, 400,
		       "sandbox env or pool \"%s::%s\" not found: this is cluster "
		       "\"%s\", and cluster "
		       "\"%s\" is not connected to it",
		       address->cluster, address->name, call->serve->cluster_id,
		       address->cluster);
	return false;
}

static void start_claim(abx__call *call, const abx__e2b_create *c)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep)
	char *shown = c->snapshot ? abx__e2b_snapshot_template(c->snapshot) : NULL;
	const abx__claim_request request = {
		.namespace_ =
			c->snapshot ? c->snapshot->namespace_ : call->who.namespace_,
		.name = c->address.name,
		.or_pool = c->address.cluster != NULL,
		.image = c->image,
		.scaling_group = c->scaling_group,
		.startup_timeout_ms = c->startup_timeout_ms,
		.idle_timeout_ms = c->idle_timeout_ms,
		.idle_default_ms = ABX__E2B_IDLE_DEFAULT_MS,
		.no_wait = c->no_wait,
		.secure = c->secure,
		.ingress = &c->ingress,
		.lifecycle = c->lifecycle,
		.snapshot_id = c->snapshot ? c->snapshot->id : NULL,
		.snapshot = shown,
		.team = call->who.team,
		.user = call->who.user,
		.admin = abx__identity_sees_all(&call->who),
		.metadata = &c->metadata,
		.env_vars = &c->env_vars,
	};
	int r;

	if (c->mcp && *c->mcp)
		abx__log_info(call->serve->log, "sandbox with MCP servers",
			      "env=%s servers=%s", c->address.name, c->mcp);
	call->subject = abx__strdup(c->address.name);
	if (!call->subject || (c->snapshot && !shown)) {
		abx__call_nomem(call);
		return;
	}
	abx__call_hold(call);
	r = abx__control_claim(call->serve->control, &request, on_claimed, call,
			       &call->claim, &err);
	if (r < 0) {
		claim_failed(call, err);
		abx__call_drop(call);
	}
}

/* An env with a tag behind its name: "default" is the env, another tag is nothing. */
static int take_env_tag(abx__call *call, const char *id, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *env = NULL;
	abx__e2b_ref ref = { 0 };
	int r = ABX_OK;

	if (!strchr(id, ':') || strstr(id, "::") || strstr(id, "//") ||
	    abx__e2b_ref_parse(id, &ref, NULL) < 0)
		return ABX_OK;
	if (ref.tag && !ref.namespace_ &&
	    abx__control_env_get(call->serve->control, call->who.namespace_, ref.name,
				 &env, NULL) == ABX_OK) {
		if (strcmp(ref.tag, ABX__SNAPSHOT_TAG_DEFAULT) != 0)
			r = abx__error_set(reterr, ABX_ENOTFOUND,
					   "tag '%s' does not exist for template '%s'",
					   ref.tag, ref.name);
		else if (abx__json_set_str(call->body, "templateID", ref.name) < 0)
			r = abx__error_nomem(reterr);
	}
	abx__e2b_ref_done(&ref);
	return r;
}

/* A snapshot stands for the env it was made in. An env's own name always means the env.
 */
static int take_snapshot(abx__call *call, const abx__snapshot_rec **ret,
			 abx_error **reterr)
{
	json_object *env = NULL;
	const char *id = NULL;

	if (abx__json_get_str(call->body, "templateID", &id, NULL) != 1)
		return ABX_OK;
	if (abx__control_env_get(call->serve->control, call->who.namespace_, id, &env,
				 NULL) == ABX_OK) {
		json_object_put(env);
		return ABX_OK;
	}
	*ret = abx__e2b_snapshot_named(call, id);
	if (!*ret)
		return take_env_tag(call, id, reterr);
	return abx__json_set_str(call->body, "templateID", (*ret)->env) < 0
		       ? abx__error_nomem(reterr)
		       : ABX_OK;
}

static void create(abx__call *call, bool v2)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__snapshot_rec *snapshot = NULL;
	abx__e2b_create c = { 0 };

	if (abx__http_req_header(call->req, "Idempotency-Key")) {
		abx__call_fail(call, 400,
			       "Idempotency-Key is not supported by this server yet");
		return;
	}
	if (take_snapshot(call, &snapshot, &err) < 0 ||
	    abx__e2b_create_parse(call->body, v2, &c, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	c.snapshot = snapshot;
	if (c.idle_timeout_ms && !abx__call_timeout_fits(call, c.idle_timeout_ms)) {
		abx__e2b_create_done(&c);
		return;
	}
	if (snapshot && c.image)
		abx__call_fail(call, 400,
			       "metadata \"" ABX__METADATA_IMAGE
			       "\": a sandbox from a snapshot runs no other image");
	else if (cluster_is_here(call, &c.address))
		start_claim(call, &c);
	abx__e2b_create_done(&c);
}

void abx__e2b_create_v1(abx__call *call)
{
	create(call, false);
}

void abx__e2b_create_v2(abx__call *call)
{
	create(call, true);
}

/* ---- list and get ---- */

static json_object *page_array(const abx__list_page *page)
{
	ABX_CLEANUP_JSON json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < page->count; i++) {
		json_object *o = listed(page->items[i]);

		if (!o || abx__json_push_take(array, o) < 0)
			return NULL;
	}
	return abx_take(array);
}

static void answer_list(abx__call *call, const abx__list_query *q, bool v2)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__list_page page = { 0 };
	char total[24];
	int r = abx__list_page_make(abx__control_sandboxes(call->serve->control),
				    &call->who, q, &page, &err);

	if (r < 0) {
		abx__call_error(call, err);
		return;
	}
	snprintf(total, sizeof(total), "%zu", page.total_running);
	if (v2 && q->running)
		abx__call_header(call, "X-Total-Running", total);
	if (v2 && page.next_token)
		abx__call_header(call, "X-Next-Token", page.next_token);
	abx__call_json(call, 200, page_array(&page));
	abx__list_page_done(&page);
}

void abx__e2b_list_v2(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__list_query q;

	if (abx__list_query_parse(abx__http_req_query(call->req), &q, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	answer_list(call, &q, true);
	abx__list_query_done(&q);
}

void abx__e2b_list_v1(abx__call *call)
{
	const char *query = abx__http_req_query(call->req);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *metadata = NULL;
	abx__list_query q = { .running = true, .limit = UINT32_MAX };
	int r = query ? abx__query_get(query, "metadata", &metadata) : 0;

	if (r < 0)
		abx__error_set(&err, ABX_EINVAL, "metadata is not well encoded");
	else if (r == 1)
		r = abx__list_metadata_parse(metadata, &q.metadata, &err);
	if (r < 0)
		abx__call_error(call, err);
	else
		answer_list(call, &q, false);
	abx__list_query_done(&q);
}

void abx__e2b_get(abx__call *call)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(call);

	if (rec)
		abx__call_json(call, 200, detail(rec));
}

/* ---- kill and timeouts ---- */

void abx__e2b_kill(abx__call *call)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(call);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (!rec)
		return;
	abx__call_hold(call);
	if (abx__control_kill(call->serve->control, rec->id, "Completed",
			      abx__call_on_gone, call, &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

static void set_timeout(abx__call *call, int64_t timeout_ms, bool extend_only,
			abx__claim_done done)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(call);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (!rec)
		return;
	abx__call_hold(call);
	if (abx__control_set_timeout(call->serve->control, rec->id, timeout_ms,
				     extend_only, done, call, &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

static void on_timeout_set(void *userdata, int r, const abx__sandbox_rec *rec,
			   const abx_error *err)
{
	(void)rec;
	abx__call_on_gone(userdata, r, err);
}

/* The seconds in `key`; `fallback_ms` 0: they must be there. False when the call was
 * answered. */
static bool body_seconds(abx__call *call, const char *const *known, int64_t fallback_ms,
			 int64_t *ret_ms)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = abx__json_only(call->body, known, &err);

	*ret_ms = fallback_ms;
	if (r == ABX_OK)
		r = abx__e2b_seconds(call->body, known[0], ret_ms, &err);
	if (r == 0 && fallback_ms == 0)
		r = abx__error_set(&err, ABX_EINVAL, "%s is required", known[0]);
	if (r < 0)
		abx__call_error(call, err);
	return r >= 0;
}

void abx__e2b_timeout(abx__call *call)
{
	static const char *const known[] = { "timeout", NULL };
	int64_t ms;

	if (abx__e2b_pause_now(call))
		return;
	if (body_seconds(call, known, 0, &ms) && abx__call_timeout_fits(call, ms))
		set_timeout(call, ms, false, on_timeout_set);
}

void abx__e2b_refresh(abx__call *call)
{
	static const char *const known[] = { "duration", NULL };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int64_t s = 0;
	int r = abx__json_only(call->body, known, &err);

	if (r == ABX_OK)
		r = abx__json_get_i64(call->body, "duration", 0, REFRESH_MAX_MS / 1000,
				      &s, &err);
	if (r < 0)
		abx__call_error(call, err);
	else
		set_timeout(call, s * 1000 < REFRESH_MIN_MS ? REFRESH_MIN_MS : s * 1000,
			    true, on_timeout_set);
}

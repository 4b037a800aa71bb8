/*
 * native-sandboxes.c - sandboxes of the native API (native-api.md, section 6): created,
 * ended, and their timeouts.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/address.h"
#include "model/duration.h"
#include "serve/native.h"

static void answer_sandbox(abx__call *call, int status, const abx__sandbox_rec *rec)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *view = abx__native_sandbox_view(call->serve, rec, NULL);

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
static json_object *deleted_view(const char *id, const char *namespace_, const char *pool,
				 const char *pod, const char *status)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "sandboxId", id) < 0 ||
	    abx__json_set_str(o, "namespace", namespace_) < 0 ||
	    abx__json_set_str(o, "poolName", pool) < 0 ||
	    abx__json_set_str(o, "podName", pod) < 0 ||
	    abx__json_set_str(o, "status", status) < 0)
		return NULL;
	return abx_take(o);
}

void abx__native_sandbox_delete(abx__call *call)
{
	const abx__ended *ended = abx__native_ended(call);
	const abx__sandbox_rec *rec;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (ended) {
		abx__call_json(call, 202,
			       deleted_view(ended->id, ended->namespace_, ended->pool,
					    ended->pod, "Terminated"));
		return;
	}
	rec = abx__call_sandbox(call);
	if (!rec)
		return;
	call->body =
		deleted_view(rec->id, rec->namespace_, rec->pool, rec->pod, "Stopping");
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

/*
 * e2b-pause.c - pausing and resuming, and connecting, which may be a resume.
 *
 * A paused sandbox answers 409 to a second pause, a running one to a resume; connect
 * takes both: 200 and never a shorter life for one that runs, 201 for one it resumed.
 */
#include "base/error.h"
#include "serve/e2b.h"

#define RESUME_DEFAULT_MS 15000
#define CONNECT_DEFAULT_MS 300000

/* ---- pause ---- */

/* Starts it on a held call that is answered 204. */
static void pause_sandbox(abx__call *call, const abx__sandbox_rec *rec, bool keep_memory)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__call_hold(call);
	if (abx__control_pause(call->serve->control, rec->id, keep_memory,
			       abx__call_on_gone, call, &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

void abx__e2b_pause(abx__call *call)
{
	static const char *const known[] = { "memory", NULL };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__sandbox_rec *rec;
	bool memory = true;
	int r = abx__json_only(call->body, known, &err);

	if (r == ABX_OK)
		r = abx__json_get_bool(call->body, "memory", &memory, &err);
	if (r < 0) {
		abx__call_error(call, err);
		return;
	}
	rec = abx__call_sandbox(call);
	if (rec)
		pause_sandbox(call, rec, memory);
}

bool abx__e2b_pause_now(abx__call *call)
{
	json_object *v = NULL;
	const abx__sandbox_rec *rec;

	if (!json_object_object_get_ex(call->body, "timeout", &v) ||
	    !json_object_is_type(v, json_type_int) || json_object_get_int64(v) != 0 ||
	    json_object_object_length(call->body) != 1)
		return false;
	rec = abx__sandboxes_find(abx__control_sandboxes(call->serve->control),
				  call->params[0]);
	if (!rec || rec->state != ABX__SANDBOX_RUNNING || !rec->lifecycle.auto_pause)
		return false;
	rec = abx__call_sandbox(call);
	if (rec)
		pause_sandbox(call, rec, !rec->lifecycle.files_only);
	return true;
}

/* ---- resume and connect ---- */

/* What the bodies of resume and connect have in common, understood. */
typedef struct wake {
	int64_t timeout_ms;
	bool memory;
} wake;

static int parse_wake(json_object *body, const char *const *known, int64_t fallback_ms,
		      wake *ret, abx_error **reterr)
{
	int r = abx__json_only(body, known, reterr);

	*ret = (wake){ .timeout_ms = fallback_ms, .memory = true };
	if (r == ABX_OK)
		r = abx__e2b_seconds(body, "timeout", &ret->timeout_ms, reterr);
	if (r == 0 && fallback_ms == 0)
		r = abx__error_set(reterr, ABX_EINVAL, "timeout is required");
	if (r >= 0)
		r = abx__json_get_bool(body, "memory", &ret->memory, reterr);
	return r < 0 ? r : ABX_OK;
}

static void answer(abx__call *call, int status, int r, const abx__sandbox_rec *rec,
		   const abx_error *err)
{
	if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_json(call, status, abx__e2b_sandbox(rec));
	abx__call_drop(call);
}

static void on_resumed(void *userdata, int r, const abx__sandbox_rec *rec,
		       const abx_error *err)
{
	answer(userdata, 201, r, rec, err);
}

static void on_extended(void *userdata, int r, const abx__sandbox_rec *rec,
			const abx_error *err)
{
	answer(userdata, 200, r, rec, err);
}

static void resume(abx__call *call, const abx__sandbox_rec *rec, const wake *w)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__call_hold(call);
	if (abx__control_resume(call->serve->control, rec->id, w->timeout_ms, !w->memory,
				on_resumed, call, &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

void abx__e2b_resume(abx__call *call)
{
	static const char *const known[] = { "timeout", "autoPause", "memory", NULL };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__sandbox_rec *rec;
	bool auto_pause = false;
	int has_auto_pause;
	wake w;

	if (parse_wake(call->body, known, RESUME_DEFAULT_MS, &w, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	has_auto_pause = abx__json_get_bool(call->body, "autoPause", &auto_pause, &err);
	if (has_auto_pause < 0) {
		abx__call_error(call, err);
		return;
	}
	if (!abx__call_timeout_fits(call, w.timeout_ms))
		return;
	rec = abx__call_sandbox(call);
	if (!rec)
		return;
	/* Deprecated; what a timeout does is settled when a sandbox is created. */
	if (has_auto_pause == 1 && auto_pause != rec->lifecycle.auto_pause)
		abx__call_fail(call, 400,
			       "autoPause: a resume does not change it; this sandbox was "
			       "created with %s",
			       rec->lifecycle.auto_pause ? "true" : "false");
	else
		resume(call, rec, &w);
}

static void connect_sandbox(abx__call *call, int64_t fallback_ms)
{
	static const char *const known[] = { "timeout", "memory", NULL };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__sandbox_rec *rec;
	wake w;

	if (parse_wake(call->body, known, fallback_ms, &w, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	if (!abx__call_timeout_fits(call, w.timeout_ms))
		return;
	rec = abx__call_sandbox(call);
	if (!rec)
		return;
	if (rec->state != ABX__SANDBOX_RUNNING) {
		resume(call, rec, &w);
		return;
	}
	/* `memory` says how a paused one wakes up: this one has nothing to wake from. */
	abx__call_hold(call);
	if (abx__control_set_timeout(call->serve->control, rec->id, w.timeout_ms, true,
				     on_extended, call, &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

void abx__e2b_connect_v1(abx__call *call)
{
	connect_sandbox(call, 0);
}

void abx__e2b_connect_v2(abx__call *call)
{
	connect_sandbox(call, CONNECT_DEFAULT_MS);
}

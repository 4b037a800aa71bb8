/*
 * pod.c - one Pod: what the engine says of it, what we are writing to it, what is wished
 * of it next.
 *
 * One write at a time. abx__pod_settle() is called when something ended or a wish came
 * up, and starts what comes next: deletion before release before persisting before being
 * idle.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/internal.h"

#define RETRY_FIRST_MS 1000
#define RETRY_LAST_MS 30000

static void on_pod_timer(abx__timer *timer);

int abx__podrec_new(abx__control *control, abx__pool *pool, const char *namespace_,
		    const char *name, abx__podrec **ret)
{
	abx__podrec *pod = abx__calloc(1, sizeof(*pod));

	if (!pod)
		return ABX_ENOMEM;
	pod->control = control;
	pod->namespace_ = abx__strdup(namespace_);
	pod->name = abx__strdup(name);
	pod->key = abx__control_key(namespace_, name);
	if (pod->namespace_ && pod->name && pod->key &&
	    abx__timers_reserve(&control->timers, &pod->timer, on_pod_timer, pod) ==
		    ABX_OK)
		HASH_ADD_KEYPTR(hh, control->pods, pod->key, strlen(pod->key), pod);
	if (!pod->hh.tbl) {
		abx__podrec_free(pod);
		return ABX_ENOMEM;
	}
	pod->pool = pool;
	if (pool) {
		DL_APPEND(pool->pods, pod);
		pool->total++;
		pool->counts[pod->state]++;
	}
	*ret = pod;
	return ABX_OK;
}

/* Out of every list; the struct stays. */
static void unlink_pod(abx__podrec *pod)
{
	abx__pool *pool = pod->pool;

	if (pod->hh.tbl) {
		HASH_DEL(pod->control->pods, pod);
		pod->hh.tbl = NULL;
	}
	if (!pool)
		return;
	if (pod->in_idle_list) {
		DL_DELETE2(pool->idle, pod, idle_prev, idle_next);
		pod->in_idle_list = false;
		pool->ready_idle--;
	}
	DL_DELETE(pool->pods, pod);
	pool->total--;
	pool->counts[pod->state]--;
	if (pod->deleting)
		pool->being_deleted--;
	pod->pool = NULL;
}

void abx__podrec_free(abx__podrec *pod)
{
	if (!pod)
		return;
	unlink_pod(pod);
	abx__timers_release(&pod->control->timers, &pod->timer);
	if (pod->sandbox)
		pod->sandbox->pod = NULL;
	json_object_put(pod->managed_labels);
	json_object_put(pod->managed_annotations);
	if (pod->init_body)
		abx__wipe(pod->init_body, pod->init_len);
	abx__free(pod->init_body);
	abx__free(pod->image);
	abx__free(pod->message);
	abx__free(pod->key);
	abx__free(pod->namespace_);
	abx__free(pod->name);
	abx__free(pod);
}

bool abx__podrec_is_ready(const abx__podrec *pod)
{
	return pod->phase == ABX__POD_RUNNING && pod->ready &&
	       pod->running_generation >= pod->target_generation;
}

void abx__podrec_update_idle(abx__podrec *pod)
{
	abx__pool *pool = pod->pool;
	bool should = pool && pod->state == ABX__PODREC_IDLE &&
		      pod->write == ABX__WRITE_NONE && !pod->deleting &&
		      !pod->want_delete && !pod->gone && abx__podrec_is_ready(pod) &&
		      pod->version != pod->stale_version;

	if (!pool || should == pod->in_idle_list)
		return;
	if (should)
		abx__meter_pod_recycled(pod);
	else if (pod->write != ABX__WRITE_CLAIM)
		abx__meter_count(pod->control, ABX__METER_EVICTED);
	pod->in_idle_list = should;
	if (should) {
		DL_PREPEND2(pool->idle, pod, idle_prev, idle_next);
		pool->ready_idle++;
		pod->idle_since_ms = abx__control_mono(pod->control);
		pod->doomed_at_ms = 0;
		pool->fail_backoff_ms = 0;
		if (pool->problem)
			abx__pool_problem(pool, NULL);
	} else {
		DL_DELETE2(pool->idle, pod, idle_prev, idle_next);
		pool->ready_idle--;
	}
	/* One more that is available may let a stale one roll. */
	abx__pool_touch(pool, should);
}

void abx__podrec_set_state(abx__podrec *pod, enum abx__podrec_state state)
{
	if (pod->pool) {
		pod->pool->counts[pod->state]--;
		pod->pool->counts[state]++;
		abx__pool_touch(pod->pool, false);
	}
	pod->state = state;
	abx__podrec_update_idle(pod);
}

void abx__podrec_view(abx__podrec *pod, const abx__pod *view)
{
	char *image;

	if (view->version < pod->version)
		return;
	pod->version = view->version;
	pod->generation = view->generation;
	pod->running_generation = view->running_generation;
	pod->phase = view->phase;
	pod->exit_code = view->exit_code;
	pod->ready = view->ready;
	pod->activity = view->activity;
	snprintf(pod->reason, sizeof(pod->reason), "%s",
		 view->reason ? view->reason : "");
	if (!pod->image || strcmp(pod->image, view->image) != 0) {
		image = abx__strdup(view->image);
		/* Not knowing the image costs a restart at the next claim, nothing more.
		 */
		abx__free(pod->image);
		pod->image = image;
	}
	abx__free(pod->message);
	pod->message =
		view->message && *view->message ? abx__strdup(view->message) : NULL;
}

/* --- failures of the Pod itself --- */

int64_t abx__backoff_next(int64_t *wait, int64_t first, int64_t last)
{
	*wait = *wait ? 2 * *wait : first;
	if (*wait > last)
		*wait = last;
	return *wait;
}

static void pod_failed(abx__podrec *pod)
{
	abx__pool *pool = pod->pool;
	int64_t now = abx__control_mono(pod->control);
	int64_t at;

	if (pod->state == ABX__PODREC_FAILED || !pool)
		return;
	abx__podrec_set_state(pod, ABX__PODREC_FAILED);
	abx__pool_problem(pool, pod->message ? pod->message : pod->reason);
	/* Those that fail together wait together. */
	if (pool->counts[ABX__PODREC_FAILED] == 1 || !pool->fail_backoff_ms)
		abx__backoff_next(&pool->fail_backoff_ms, RETRY_FIRST_MS,
				  2 * RETRY_LAST_MS);
	at = now + pool->fail_backoff_ms;
	abx__control_set_timer(pod->control, &pod->timer, at);
	abx__env_tell(pool->env, pool, true, pod->reason[0] ? pod->reason : "PodFailed",
		      NULL, "Pod %s: %s", pod->name,
		      pod->message ? pod->message : pod->reason);
}

static void on_pod_timer(abx__timer *timer)
{
	abx__podrec *pod = timer->owner;

	pod->stale_version = 0;
	if (pod->state == ABX__PODREC_FAILED || pod->deleting)
		pod->want_delete = true;
	abx__pod_settle(pod);
}

/* --- deleting --- */

void abx__pod_leaves(abx__podrec *pod)
{
	if (pod->deleting)
		return;
	pod->deleting = true;
	if (pod->pool) {
		pod->pool->being_deleted++;
		abx__pool_touch(pod->pool, true);
	}
	abx__podrec_set_state(pod, ABX__PODREC_STOPPING);
}

static void on_deleted(void *userdata, int r, const abx_error *err)
{
	abx__podrec *pod = userdata;
	abx__control *control = pod->control;
	abx__sandbox *sandbox = pod->sandbox;

	pod->write = ABX__WRITE_NONE;
	if (r == ABX_OK || r == ABX_ENOTFOUND) {
		if (sandbox && !pod->gone) {
			pod->sandbox = NULL;
			sandbox->pod = NULL;
			abx__sandbox_released(sandbox, ABX_OK, NULL);
		}
		if (r == ABX_ENOTFOUND)
			abx__pod_gone(pod);
		else
			abx__pod_settle(pod);
	} else {
		abx__log_warn(control->config.log, "pod could not be deleted",
			      "pod=%s error=%s", pod->key, abx_error_message(err));
		if (sandbox)
			abx__sandbox_released(sandbox, r, err);
		abx__control_set_timer(control, &pod->timer,
				       abx__control_mono(control) +
					       abx__backoff_next(&pod->retry_ms,
								 RETRY_FIRST_MS,
								 RETRY_LAST_MS));
		if (pod->gone)
			abx__pod_settle(pod);
	}
	abx__control_call_end(control);
}

void abx__pod_issue_delete(abx__podrec *pod)
{
	abx__engine *engine = pod->control->config.engine;

	abx__pod_leaves(pod);
	pod->want_delete = false;
	pod->want_release = false;
	pod->write = ABX__WRITE_DELETE;
	pod->control->config.runtime->ops->forget(pod->control->config.runtime,
						  pod->namespace_, pod->name);
	abx__control_call_begin(pod->control);
	engine->ops->delete_pod(engine, pod->namespace_, pod->name, on_deleted, pod);
}

void abx__pod_delete(abx__podrec *pod)
{
	abx__pod_leaves(pod);
	pod->want_delete = true;
	abx__pod_settle(pod);
}

/* --- writing --- */

static void on_changed(void *userdata, int r, const abx__pod *view, const abx_error *err);

int abx__pod_write(abx__podrec *pod, enum abx__podrec_write write,
		   const abx__pod_change *change)
{
	abx__engine *engine = pod->control->config.engine;

	pod->write = write;
	if (write == ABX__WRITE_CLAIM || write == ABX__WRITE_RELEASE)
		pod->target_generation = UINT64_MAX;
	abx__podrec_update_idle(pod);
	abx__control_call_begin(pod->control);
	engine->ops->change_pod(engine, pod->namespace_, pod->name, change, on_changed,
				pod);
	return ABX_OK;
}

static void released(abx__podrec *pod, int r, const abx_error *err)
{
	abx__sandbox *sandbox = pod->sandbox;

	if (r == ABX_ENOTFOUND) {
		abx__pod_gone(pod);
		return;
	}
	if (r < 0) {
		abx__log_warn(pod->control->config.log,
			      "pod could not be released; deleting it", "pod=%s error=%s",
			      pod->key, abx_error_message(err));
		abx__pod_leaves(pod);
		pod->want_delete = true;
		return;
	}
	json_object_put(pod->managed_labels);
	json_object_put(pod->managed_annotations);
	pod->managed_labels = pod->managed_annotations = NULL;
	pod->sandbox = NULL;
	if (sandbox) {
		sandbox->pod = NULL;
		abx__sandbox_released(sandbox, ABX_OK, NULL);
	}
}

/* The state machine's answer to a view that is new. */
void abx__pod_changed(abx__podrec *pod)
{
	bool failed = pod->phase == ABX__POD_FAILED &&
		      pod->target_generation != UINT64_MAX &&
		      pod->generation >= pod->target_generation;

	if (pod->gone || pod->deleting || pod->want_delete)
		return;
	switch (pod->state) {
	case ABX__PODREC_IDLE:
		if (failed)
			pod_failed(pod);
		abx__podrec_update_idle(pod);
		break;
	case ABX__PODREC_STOPPING:
		if (pod->write != ABX__WRITE_NONE || pod->want_release)
			break;
		if (failed)
			pod_failed(pod);
		else if (abx__podrec_is_ready(pod))
			abx__podrec_set_state(pod, ABX__PODREC_IDLE);
		break;
	case ABX__PODREC_FAILED:
		if (abx__podrec_is_ready(pod)) {
			abx__timers_clear(&pod->control->timers, &pod->timer);
			abx__podrec_set_state(pod, ABX__PODREC_IDLE);
		}
		break;
	case ABX__PODREC_STARTING:
		if (pod->sandbox && pod->sandbox->claim)
			abx__claim_pod_changed(pod->sandbox->claim);
		break;
	case ABX__PODREC_RUNNING:
		if (pod->sandbox && pod->write == ABX__WRITE_NONE &&
		    abx__sandbox_pod_changed(pod->sandbox))
			break;
		if (pod->phase == ABX__POD_FAILED && pod->write == ABX__WRITE_NONE)
			abx__pod_release_failed(pod);
		break;
	case ABX__PODREC_STATES:
		break;
	}
}

/* A start from files is another generation. */
static void moved(abx__podrec *pod, int r, const abx__pod *view, const abx_error *err)
{
	if (r == ABX_OK && view)
		pod->target_generation = view->generation;
	abx__sandbox_moved(pod->sandbox, r, err);
}

static void on_changed(void *userdata, int r, const abx__pod *view, const abx_error *err)
{
	abx__podrec *pod = userdata;
	abx__control *control = pod->control;
	enum abx__podrec_write write = pod->write;
	abx__claim *claim = pod->sandbox ? pod->sandbox->claim : NULL;

	pod->write = ABX__WRITE_NONE;
	pod->held = true;
	if (r == ABX_OK && view)
		abx__podrec_view(pod, view);
	if (write == ABX__WRITE_CLAIM || write == ABX__WRITE_RELEASE)
		pod->target_generation =
			r == ABX_OK && view ? view->generation : pod->generation;
	abx__meter_pod_written(pod, write, r);
	if (!pod->gone) {
		if (write == ABX__WRITE_RELEASE)
			released(pod, r, err);
		else if (write == ABX__WRITE_PERSIST && pod->sandbox)
			abx__sandbox_persisted(pod->sandbox, r, err);
		else if (write == ABX__WRITE_MOVE && pod->sandbox && !pod->want_release)
			moved(pod, r, view, err);
		else if (claim && !pod->want_release)
			abx__claim_written(claim, write, r, err);
		if (!pod->gone)
			abx__pod_changed(pod);
	}
	pod->held = false;
	abx__pod_settle(pod);
	abx__control_call_end(control);
}

/* --- what comes next --- */

/* Is it worth bringing back? */
static bool is_to_go(const abx__podrec *pod)
{
	const abx__pool *pool = pod->pool;

	return !pool || pool->deleting || abx__pool_is_stale(pool, pod) ||
	       pool->total - pool->being_deleted > abx__pool_wanted(pool);
}

void abx__pod_settle(abx__podrec *pod)
{
	abx__pool *pool = pod->pool;

	if (pod->write != ABX__WRITE_NONE || pod->arming || pod->held)
		return;
	if (pod->gone) {
		abx__podrec_free(pod);
		return;
	}
	if (pod->want_delete) {
		abx__pod_issue_delete(pod);
	} else if (pod->want_release) {
		if (is_to_go(pod))
			abx__pod_issue_delete(pod);
		else
			abx__pod_issue_release(pod);
	} else if (pod->want_move && pod->sandbox) {
		abx__sandbox_move(pod);
		if (pod->want_persist && pod->write == ABX__WRITE_NONE && pod->sandbox)
			abx__sandbox_persist(pod);
	} else if (pod->want_persist && pod->sandbox) {
		abx__sandbox_persist(pod);
	} else {
		abx__podrec_update_idle(pod);
		if (pool && pool->waiting && pool->idle)
			abx__claims_dispatch(pool);
	}
}

/* Nothing of it is left. */
void abx__pod_gone(abx__podrec *pod)
{
	abx__sandbox *sandbox = pod->sandbox;
	abx__pool *pool = pod->pool;

	if (pod->gone)
		return;
	pod->gone = true;
	pod->control->config.runtime->ops->forget(pod->control->config.runtime,
						  pod->namespace_, pod->name);
	unlink_pod(pod);
	abx__timers_clear(&pod->control->timers, &pod->timer);
	pod->sandbox = NULL;
	if (sandbox) {
		abx__history_add(sandbox, ABX__STOP_FAILED, "PodGone",
				 "its Pod was deleted by somebody else", -1);
		sandbox->pod = NULL;
		if (sandbox->claim)
			abx__claim_pod_gone(sandbox->claim);
		else
			abx__sandbox_released(sandbox, ABX_OK, NULL);
	}
	if (pool)
		abx__pool_touch(pool, true);
	abx__pod_settle(pod);
}

void abx__pods_on_event(void *userdata, const abx__pod *view)
{
	abx__control *control = userdata;
	abx__podrec *pod = NULL;
	char key[320];

	if (snprintf(key, sizeof(key), "%s/%s", view->namespace_, view->name) >=
	    (int)sizeof(key))
		return;
	HASH_FIND_STR(control->pods, key, pod);
	if (view->phase == ABX__POD_GONE) {
		if (pod)
			abx__pod_gone(pod);
		return;
	}
	if (!pod) {
		abx__pool *pool = NULL;
		const char *name = abx__map_get(&view->labels, ABX__LABEL_POOL);

		if (name)
			pool = abx__pool_find(control, view->namespace_, name);
		if (abx__podrec_new(control, pool, view->namespace_, view->name, &pod) <
		    0) {
			control->sync_nomem = !control->synced;
			return;
		}
		abx__podrec_view(pod, view);
		if (abx__pod_adopt(pod, view) < 0)
			control->sync_nomem = !control->synced;
	} else {
		abx__podrec_view(pod, view);
	}
	if (!control->synced || control->state == ABX__CONTROL_CLOSING)
		return;
	abx__pod_changed(pod);
	if (!pod->gone)
		abx__pod_settle(pod);
}

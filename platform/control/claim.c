/*
 * claim.c - from a request to a sandbox: choose a pool (claim-choose.c), wait for an idle
 * Pod, write the claim on it, wait for the image, arm it (claim-arm.c), write that it
 * runs, answer.
 *
 * All memory a claim needs up to the write is found when it is asked for
 * (claim-prepare.c). From the write on, whatever goes wrong releases the Pod. The answer
 * follows the write of phase "running": that is what a restarted server goes by.
 */
#include "control/claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"

#define CONFLICTS_MAX 8
#define CONFLICT_WAIT_MS 1000

static void on_claim_timer(abx__timer *timer);

void abx__claim_free(abx__claim *claim)
{
	if (!claim)
		return;
	if (claim->pool && claim->state == ABX__CLAIM_QUEUED && claim->prev) {
		DL_DELETE(claim->pool->queue, claim);
		claim->pool->waiting--;
	}
	if (claim->all_prev)
		DL_DELETE2(claim->control->claims, claim, all_prev, all_next);
	if (claim->sandbox) {
		claim->sandbox->claim = NULL;
		if (!claim->sandbox->pod)
			abx__sandbox_free(claim->sandbox);
	}
	abx__timers_release(&claim->control->timers, &claim->timer);
	abx__map_done(&claim->env_vars);
	abx__map_done(&claim->labels);
	abx__map_done(&claim->annotations);
	json_object_put(claim->managed_labels);
	json_object_put(claim->managed_annotations);
	abx__free(claim->image);
	abx__free(claim);
}

/* --- the queue --- */

/* A Pod that cannot run, when there is one: the reason nobody's claim is served. */
static const abx__podrec *ailing(const abx__pool *pool)
{
	const abx__podrec *pod;

	for (pod = pool->pods; pod; pod = pod->next)
		if (pod->reason[0])
			return pod;
	return NULL;
}

static void capacity_error(const abx__pool *pool, const char *what, abx_error **reterr)
{
	const abx__podrec *pod = ailing(pool);
	const char *message = pod && pod->message ? pod->message : "";

	abx__error_set(reterr, ABX_EEXHAUSTED,
		       "%s in pool %s: %d running, %d starting, %d stopping, "
		       "%d waiting, %d replicas%s%s%s%.500s",
		       what, pool->config.name, pool->counts[ABX__PODREC_RUNNING],
		       pool->counts[ABX__PODREC_STARTING],
		       pool->counts[ABX__PODREC_STOPPING], pool->waiting,
		       pool->config.replicas, pod ? "; its Pods fail: " : "",
		       pod ? pod->reason : "", *message ? ": " : "", message);
	if (pod)
		abx__error_hint(reterr, "mend what makes the Pods of the pool fail");
	else
		abx__error_hint(reterr, "retry later, or give the pool more replicas");
}

int abx__control_retry_after_s(const abx__control *control, const char *namespace_,
			       const char *env)
{
	const abx__env *e = abx__env_find(control, namespace_, env);

	for (const abx__pool *pool = e ? e->pools : NULL; pool; pool = pool->next)
		if (pool->counts[ABX__PODREC_STOPPING] > 0)
			return 1;
	return 5;
}

static int admit(abx__control *control, abx__pool *pool,
		 const abx__claim_request *request, abx_error **reterr)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (pool->ready_idle > 0 && pool->waiting == 0)
		return ABX_OK;
	if (request->no_wait)
		capacity_error(pool, "no idle Pod", &err);
	else if ((size_t)pool->waiting >= control->config.queue_cap)
		capacity_error(pool, "the claim queue is full", &err);
	else
		return ABX_OK;
	abx__meter_claim_refused(pool);
	abx__env_tell(pool->env, pool, true, ABX__EVENT_CLAIM_REFUSED, NULL, "%s",
		      abx_error_message(err));
	if (reterr)
		*reterr = abx_take(err);
	return ABX_EEXHAUSTED;
}

static int64_t startup_ms_of(const abx__control *control, const abx__pool *pool,
			     const abx__claim_request *request)
{
	if (request->startup_timeout_ms > 0)
		return request->startup_timeout_ms;
	if (pool->config.startup_timeout_ms > 0)
		return pool->config.startup_timeout_ms;
	return control->config.startup_timeout_ms;
}

static void enqueue(abx__claim *claim, const abx__claim_request *request,
		    int64_t startup_ms)
{
	abx__control *control = claim->control;
	abx__pool *pool = claim->pool;
	int64_t now = abx__control_mono(control);

	claim->asked_ms = now;
	claim->startup_deadline_ms = now + startup_ms;
	claim->queue_deadline_ms = claim->startup_deadline_ms;
	if (request->max_wait_ms > 0 && request->max_wait_ms < startup_ms)
		claim->queue_deadline_ms = now + request->max_wait_ms;
	claim->state = ABX__CLAIM_QUEUED;
	DL_APPEND(pool->queue, claim);
	pool->waiting++;
	DL_APPEND2(control->claims, claim, all_prev, all_next);
	abx__control_set_timer(control, &claim->timer, claim->queue_deadline_ms);
	pool->last_create_ms = now;
	if (pool->config.policy.enabled && pool->env)
		abx__env_state_changed(pool->env);
	abx__claims_dispatch(pool);
	claim->waited = claim->state == ABX__CLAIM_QUEUED;
	if (pool->waiting > 0) {
		abx__pool_touch(pool, false);
		if (pool->config.policy.enabled && !pool->deleting)
			abx__control_set_timer_sooner(control, &pool->scale_timer, 0);
	}
}

int abx__control_claim(abx__control *control, const abx__claim_request *request,
		       abx__claim_done done, void *userdata, abx__claim **ret_claim,
		       abx_error **reterr)
{
	abx__pool *pool = NULL;
	abx__claim *claim;
	int64_t startup_ms;
	int r;

	if (control->state != ABX__CONTROL_RUNNING)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "the server is starting or stopping");
	r = abx__claim_choose(control, request, &pool, reterr);
	if (r == ABX_OK)
		r = abx__claim_check_image(pool, request, reterr);
	if (r == ABX_OK)
		r = admit(control, pool, request, reterr);
	if (r < 0)
		return r;
	claim = abx__calloc(1, sizeof(*claim));
	if (!claim)
		return abx__error_nomem(reterr);
	claim->control = control;
	claim->done = done;
	claim->userdata = userdata;
	startup_ms = startup_ms_of(control, pool, request);
	r = abx__claim_prepare(claim, pool, request, startup_ms, reterr);
	if (r == ABX_OK && abx__timers_reserve(&control->timers, &claim->timer,
					       on_claim_timer, claim) < 0)
		r = abx__error_nomem(reterr);
	if (r < 0) {
		abx__claim_free(claim);
		return r;
	}
	claim->pool = pool;
	if (ret_claim)
		*ret_claim = claim;
	enqueue(claim, request, startup_ms);
	return ABX_OK;
}

static void unqueue(abx__claim *claim)
{
	DL_DELETE(claim->pool->queue, claim);
	claim->prev = claim->next = NULL;
	claim->pool->waiting--;
}

/* Back to the front: it has waited longest. */
static void requeue(abx__claim *claim)
{
	claim->state = ABX__CLAIM_QUEUED;
	DL_PREPEND(claim->pool->queue, claim);
	claim->pool->waiting++;
	abx__control_set_timer(claim->control, &claim->timer, claim->queue_deadline_ms);
	abx__claims_dispatch(claim->pool);
}

/* --- taking a Pod --- */

static int note_claim_time(abx__claim *claim)
{
	char text[ABX__RFC3339_SIZE];

	claim->sandbox->rec.claimed_ms = abx__control_wall(claim->control);
	abx__rfc3339_format(claim->sandbox->rec.claimed_ms, text);
	return abx__map_set(&claim->annotations, ABX__ANNOTATION_CLAIMED_AT, text);
}

static int attach(abx__claim *claim, abx__podrec *pod)
{
	abx__sandbox *s = claim->sandbox;

	abx__free(s->pod_name);
	s->rec.pod = s->pod_name = abx__strdup(pod->name);
	if (!s->pod_name || note_claim_time(claim) < 0 ||
	    abx__sandboxes_add(&claim->control->sandboxes, s) < 0)
		return ABX_ENOMEM;
	s->pod = pod;
	pod->sandbox = s;
	json_object_put(pod->managed_labels);
	json_object_put(pod->managed_annotations);
	pod->managed_labels = json_object_get(claim->managed_labels);
	pod->managed_annotations = json_object_get(claim->managed_annotations);
	return ABX_OK;
}

static void detach(abx__claim *claim)
{
	abx__sandbox *s = claim->sandbox;

	abx__sandboxes_remove(&claim->control->sandboxes, s);
	if (s->pod)
		s->pod->sandbox = NULL;
	s->pod = NULL;
}

static void take(abx__claim *claim, abx__podrec *pod)
{
	static const char *const no_owner[] = { ABX__LABEL_TEAM, ABX__LABEL_USER, NULL };
	const abx__sandbox *s = claim->sandbox;
	abx__pod_change change = {
		.expect_version = pod->version,
		.set_labels = &claim->labels,
		.set_annotations = &claim->annotations,
		.image =
			pod->image && strcmp(pod->image, s->image) == 0 ? NULL : s->image,
		/* Whoever had it before is not its owner now. */
		.remove_labels = s->team && s->user ? NULL : no_owner + (s->team ? 1 : 0),
	};

	if (attach(claim, pod) < 0) {
		/* Told by the timer: this may still be the call that started the claim.
		 */
		detach(claim);
		claim->nomem = true;
		abx__control_set_timer(claim->control, &claim->timer, 0);
		return;
	}
	claim->state = ABX__CLAIM_WRITING;
	abx__meter_claim_taken(claim, change.image != NULL);
	abx__control_set_timer(claim->control, &claim->timer, claim->startup_deadline_ms);
	abx__podrec_set_state(pod, ABX__PODREC_STARTING);
	if (change.image)
		claim->control->config.runtime->ops->forget(
			claim->control->config.runtime, pod->namespace_, pod->name);
	abx__pod_write(pod, ABX__WRITE_CLAIM, &change);
}

void abx__claims_dispatch(abx__pool *pool)
{
	while (pool->queue && pool->idle) {
		abx__claim *claim = pool->queue;

		unqueue(claim);
		take(claim, pool->idle);
	}
}

/* --- ending --- */

void abx__claim_fail(abx__claim *claim, int r, const abx_error *err,
		     const char *stop_reason, const char *failure_reason)
{
	abx__sandbox *s = claim->sandbox;
	abx__podrec *pod = s->pod;
	abx__claim_done done = claim->done;
	void *userdata = claim->userdata;

	abx__meter_claim_ended(claim, r);
	if (r != ABX_ECANCELED && claim->pool)
		abx__env_tell(claim->pool->env, claim->pool, true,
			      pod ? ABX__EVENT_CLAIM_FAILED : ABX__EVENT_CLAIM_REFUSED,
			      NULL, "%s", abx_error_message(err));
	if (claim->prev)
		unqueue(claim);
	abx__timers_clear(&claim->control->timers, &claim->timer);
	s->claim = NULL;
	if (pod) {
		claim->sandbox = NULL;
		abx__pod_release(pod, stop_reason, failure_reason,
				 r == ABX_ECANCELED ? NULL : abx_error_message(err));
	}
	abx__claim_free(claim);
	if (done)
		done(userdata, r, NULL, err);
}

void abx__control_claim_cancel(abx__control *control, abx__claim *claim)
{
	(void)control;
	claim->done = NULL;
	abx__claim_fail(claim, ABX_ECANCELED, NULL, ABX__STOP_CANCELED, NULL);
}

void abx__claims_drop_pool(abx__pool *pool)
{
	while (pool->queue) {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		abx__error_set(&err, ABX_ENOTFOUND, "pool %s was deleted",
			       pool->config.name);
		abx__claim_fail(pool->queue, ABX_ENOTFOUND, err, ABX__STOP_CANCELED,
				NULL);
	}
}

static void on_claim_timer(abx__timer *timer)
{
	abx__claim *claim = timer->owner;
	const abx__podrec *pod = claim->sandbox->pod;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int64_t waited = abx__control_mono(claim->control) - claim->asked_ms;

	if (claim->nomem) {
		abx__error_nomem(&err);
		abx__claim_fail(claim, ABX_ENOMEM, err, ABX__STOP_CANCELED, NULL);
		return;
	}
	if (claim->state == ABX__CLAIM_QUEUED) {
		char what[64];

		snprintf(what, sizeof(what), "no Pod became free within %" PRId64 " s",
			 (waited + 500) / 1000);
		capacity_error(claim->pool, what, &err);
		abx__claim_fail(claim, ABX_EEXHAUSTED, err, ABX__STOP_CANCELED, NULL);
		return;
	}
	abx__error_set(&err, ABX_ETIMEDOUT,
		       "sandbox of env %s with image %s was not ready within %" PRId64
		       " s%s%s",
		       claim->sandbox->env, claim->sandbox->image, (waited + 500) / 1000,
		       pod && pod->reason[0] ? ": " : "", pod ? pod->reason : "");
	abx__error_hint(
		&err,
		"give it a longer startup timeout; the first pull of a large image is "
		"slow");
	abx__claim_fail(claim, ABX_ETIMEDOUT, err, ABX__STOP_FAILED, "StartupTimeout");
}

void abx__claim_pod_gone(abx__claim *claim)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__sandboxes_remove(&claim->control->sandboxes, claim->sandbox);
	abx__error_set(&err, ABX_EUNAVAILABLE,
		       "the Pod of sandbox %s vanished while it started",
		       claim->sandbox->id);
	abx__claim_fail(claim, ABX_EUNAVAILABLE, err, ABX__STOP_FAILED, "PodGone");
}

/* --- writing that it runs --- */

void abx__claim_start(abx__claim *claim)
{
	abx__sandbox *s = claim->sandbox;
	abx__map labels = ABX__MAP_INIT, annotations = ABX__MAP_INIT;
	abx__pod_change change = { .set_labels = &labels,
				   .set_annotations = &annotations };
	int64_t wall = abx__control_wall(claim->control);
	char text[ABX__RFC3339_SIZE], started[ABX__RFC3339_SIZE];

	claim->state = ABX__CLAIM_STARTING;
	abx__rfc3339_format(wall, text);
	s->rec.started_us = abx__control_start_us(claim->control, wall);
	abx__rfc3339_format_us(s->rec.started_us, started);
	if (abx__map_set(&labels, ABX__LABEL_PHASE, ABX__PHASE_RUNNING) == ABX_OK &&
	    abx__map_set(&annotations, ABX__ANNOTATION_STARTED_AT, started) == ABX_OK &&
	    abx__map_set(&annotations, ABX__ANNOTATION_LAST_ACTIVE, text) == ABX_OK) {
		s->persisted_active_ms = wall;
		abx__pod_write(s->pod, ABX__WRITE_START, &change);
	} else {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		abx__error_nomem(&err);
		abx__claim_fail(claim, ABX_ENOMEM, err, ABX__STOP_FAILED, NULL);
	}
	abx__map_done(&labels);
	abx__map_done(&annotations);
}

static void succeed(abx__claim *claim)
{
	abx__sandbox *s = claim->sandbox;
	abx__claim_done done = claim->done;
	void *userdata = claim->userdata;
	int64_t wall = abx__control_wall(claim->control);

	s->rec.state = ABX__SANDBOX_RUNNING;
	abx__sandboxes_started(&claim->control->sandboxes, s, s->persisted_active_ms);
	s->rec.last_active_ms = wall;
	s->active_mono_ms = abx__control_mono(claim->control);
	abx__podrec_set_state(s->pod, ABX__PODREC_RUNNING);
	abx__sandbox_arm_idle(s);
	abx__metrics_wake(claim->control);
	abx__meter_claim_ended(claim, ABX_OK);
	s->claim = NULL;
	claim->sandbox = NULL;
	abx__claim_free(claim);
	if (done)
		done(userdata, ABX_OK, &s->rec, NULL);
}

/* Somebody else changed the Pod: it goes back untouched, and waits for news of itself. */
static void conflict(abx__claim *claim)
{
	abx__podrec *pod = claim->sandbox->pod;

	detach(claim);
	pod->stale_version = pod->version;
	abx__control_set_timer(claim->control, &pod->timer,
			       abx__control_mono(claim->control) + CONFLICT_WAIT_MS);
	abx__podrec_set_state(pod, ABX__PODREC_IDLE);
	if (claim->conflicts++ < CONFLICTS_MAX) {
		requeue(claim);
	} else {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		abx__error_set(&err, ABX_EUNAVAILABLE,
			       "pool %s: its Pods change faster than they can "
			       "be claimed",
			       claim->pool->config.name);
		abx__claim_fail(claim, ABX_EUNAVAILABLE, err, ABX__STOP_CANCELED, NULL);
	}
}

static void claim_not_written(abx__claim *claim, int r, const abx_error *err)
{
	abx__podrec *pod = claim->sandbox->pod;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	if (r == ABX_ECONFLICT) {
		conflict(claim);
	} else if (r == ABX_ENOTFOUND) {
		/* It vanished unseen: another one will do. */
		detach(claim);
		abx__pod_gone(pod);
		requeue(claim);
	} else {
		own = abx__error_copy(err);
		abx__error_prefix(&own, "claim pod %s", pod->name);
		abx__claim_fail(claim, r, own, ABX__STOP_FAILED, NULL);
	}
}

void abx__claim_written(abx__claim *claim, enum abx__podrec_write write, int r,
			const abx_error *err)
{
	if (write == ABX__WRITE_CLAIM && claim->state == ABX__CLAIM_WRITING) {
		if (r < 0) {
			claim_not_written(claim, r, err);
			return;
		}
		claim->state = ABX__CLAIM_SWAPPING;
		abx__claim_pod_changed(claim);
	} else if (write == ABX__WRITE_START && claim->state == ABX__CLAIM_STARTING) {
		if (r < 0)
			claim_not_written(claim,
					  r == ABX_ECONFLICT || r == ABX_ENOTFOUND
						  ? ABX_EUNAVAILABLE
						  : r,
					  err);
		else
			succeed(claim);
	}
}

/*
 * reclaim.c - how sandboxes end, and when: killing, timeouts, idle reclaim, and writing
 * activity down now and then.
 *
 * A sandbox is reclaimed when now - last activity reaches its idle timeout, by the
 * monotonic clock. Activity only moves a number; the timer that fires early looks at it
 * and goes back to sleep.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/internal.h"

#define PERSIST_LOOK_MS 5000

int64_t abx__sandbox_end_ms(const abx__sandbox_rec *sandbox)
{
	if (sandbox->paused_ms)
		return sandbox->paused_ms;
	return sandbox->idle_timeout_ms
		       ? sandbox->last_active_ms + sandbox->idle_timeout_ms
		       : 0;
}

void abx__sandbox_arm_idle(abx__sandbox *s)
{
	if (s->rec.state != ABX__SANDBOX_RUNNING)
		return;
	if (s->rec.idle_timeout_ms == 0)
		abx__timers_clear(&s->control->timers, &s->timer);
	else
		abx__control_set_timer(s->control, &s->timer,
				       s->active_mono_ms + s->rec.idle_timeout_ms);
}

void abx__sandbox_idle_fired(abx__timer *timer)
{
	abx__sandbox *s = timer->owner;
	int64_t now = abx__control_mono(s->control);

	if (s->moves) {
		abx__sandbox_move_late(s);
		return;
	}
	if (s->rec.state != ABX__SANDBOX_RUNNING || s->rec.idle_timeout_ms == 0)
		return;
	if (s->streams > 0) {
		s->active_mono_ms = now;
		s->rec.last_active_ms = abx__control_wall(s->control);
	}
	if (now < s->active_mono_ms + s->rec.idle_timeout_ms)
		abx__sandbox_arm_idle(s);
	else if (s->rec.lifecycle.auto_pause)
		abx__sandbox_auto_pause(s);
	else
		abx__pod_release(s->pod, ABX__STOP_RELEASED, "IdleTimeout", NULL);
}

/* --- waiters --- */

static int waiter_add(abx__waiter **list, abx__claim_done claim_done,
		      abx__control_done done, void *userdata)
{
	abx__waiter *w = abx__calloc(1, sizeof(*w));

	if (!w)
		return ABX_ENOMEM;
	w->claim_done = claim_done;
	w->done = done;
	w->userdata = userdata;
	while (*list)
		list = &(*list)->next;
	*list = w;
	return ABX_OK;
}

static void waiters_tell(abx__waiter *list, int r, const abx__sandbox_rec *rec,
			 const abx_error *err)
{
	while (list) {
		abx__waiter *w = list;

		list = w->next;
		if (w->claim_done)
			w->claim_done(w->userdata, r, r == ABX_OK ? rec : NULL, err);
		else if (w->done)
			w->done(w->userdata, r, err);
		abx__free(w);
	}
}

static abx__waiter *waiters_take(abx__waiter **list)
{
	abx__waiter *all = *list;

	*list = NULL;
	return all;
}

/* --- killing --- */

static int not_found(const char *id, abx_error **reterr)
{
	return abx__error_set(
		reterr, ABX_ENOTFOUND,
		"Sandbox \"%s\" doesn't exist or you don't have access to it", id);
}

int abx__control_kill(abx__control *control, const char *id, const char *reason,
		      abx__control_done done, void *userdata, abx_error **reterr)
{
	abx__sandbox *s = abx__sandboxes_get(&control->sandboxes, id);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (!s || s->rec.state == ABX__SANDBOX_STOPPING || !s->pod)
		return not_found(id, reterr);
	if (waiter_add(&s->kill_waiters, NULL, done, userdata) < 0)
		return abx__error_nomem(reterr);
	if (s->claim) {
		abx__error_set(&err, ABX_ECANCELED,
			       "sandbox %s was killed while it started", s->id);
		abx__claim_fail(s->claim, ABX_ECANCELED, err, ABX__STOP_CANCELED, NULL);
	} else {
		abx__pod_release(s->pod, reason, NULL, NULL);
	}
	return ABX_OK;
}

/* The Pod is no longer this sandbox's, durably; or, with an error, that could not be had
 * (and is tried again). */
void abx__sandbox_released(abx__sandbox *s, int r, const abx_error *err)
{
	abx__waiter *kill = waiters_take(&s->kill_waiters);
	abx__waiter *persist = waiters_take(&s->persist_waiters);
	abx__waiter *persisting = waiters_take(&s->persisting);
	ABX_CLEANUP(abx__error_freep) abx_error *gone = NULL;

	not_found(s->id, &gone);
	abx__sandbox_drop_moves(s, ABX_ENOTFOUND, gone);
	if (r == ABX_OK)
		abx__sandbox_free(s);
	waiters_tell(persisting, ABX_ENOTFOUND, NULL, gone);
	waiters_tell(persist, ABX_ENOTFOUND, NULL, gone);
	waiters_tell(kill, r, NULL, err);
}

/* --- timeouts --- */

int abx__control_set_timeout(abx__control *control, const char *id, int64_t timeout_ms,
			     bool extend_only, abx__claim_done done, void *userdata,
			     abx_error **reterr)
{
	abx__sandbox *s = abx__sandboxes_get(&control->sandboxes, id);
	int64_t now = abx__control_mono(control);

	if (!s || s->rec.state == ABX__SANDBOX_STOPPING)
		return not_found(id, reterr);
	if (s->rec.state != ABX__SANDBOX_RUNNING)
		return abx__error_set(reterr, ABX_ESTATE, "sandbox %s is %s", s->id,
				      s->rec.state == ABX__SANDBOX_STARTING
					      ? "still starting"
					      : "paused: resume it first");
	if (timeout_ms < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "timeout of %" PRId64 " ms is negative",
				      timeout_ms);
	if (waiter_add(&s->persist_waiters, done, NULL, userdata) < 0)
		return abx__error_nomem(reterr);
	timeout_ms = (timeout_ms + 999) / 1000 * 1000;
	if (!extend_only || timeout_ms == 0 ||
	    (s->rec.idle_timeout_ms != 0 &&
	     now + timeout_ms > s->active_mono_ms + s->rec.idle_timeout_ms)) {
		s->rec.idle_timeout_ms = timeout_ms;
		s->active_mono_ms = now;
		s->rec.last_active_ms = abx__control_wall(control);
		abx__sandbox_arm_idle(s);
	}
	s->pod->want_persist = true;
	abx__pod_settle(s->pod);
	return ABX_OK;
}

void abx__sandbox_persist(abx__podrec *pod)
{
	static const char *const no_timeout[] = { ABX__ANNOTATION_IDLE_TIMEOUT, NULL };
	abx__sandbox *s = pod->sandbox;
	abx__map set = ABX__MAP_INIT;
	abx__pod_change change = { .set_annotations = &set };
	char text[ABX__RFC3339_SIZE], seconds[24];
	bool ok;

	pod->want_persist = false;
	abx__rfc3339_format(s->rec.last_active_ms, text);
	snprintf(seconds, sizeof(seconds), "%" PRId64, s->rec.idle_timeout_ms / 1000);
	ok = abx__map_set(&set, ABX__ANNOTATION_LAST_ACTIVE, text) == ABX_OK;
	if (s->rec.idle_timeout_ms == 0)
		change.remove_annotations = no_timeout;
	else
		ok = ok &&
		     abx__map_set(&set, ABX__ANNOTATION_IDLE_TIMEOUT, seconds) == ABX_OK;
	s->persisting = waiters_take(&s->persist_waiters);
	if (ok) {
		s->persisted_active_ms = s->rec.last_active_ms;
		abx__pod_write(pod, ABX__WRITE_PERSIST, &change);
	} else {
		/* Nobody hears of it from inside a call: the look at the table tries
		 * again. */
		s->persist_waiters = waiters_take(&s->persisting);
		abx__control_set_timer_sooner(s->control, &s->control->persist_timer,
					      abx__control_mono(s->control) + 1000);
	}
	abx__map_done(&set);
}

void abx__sandbox_persisted(abx__sandbox *s, int r, const abx_error *err)
{
	abx__waiter *list = waiters_take(&s->persisting);

	if (r < 0)
		abx__log_warn(s->control->config.log,
			      "sandbox timeout could not be written",
			      "sandbox=%s error=%s", s->id, abx_error_message(err));
	waiters_tell(list, r, &s->rec, err);
}

void abx__persist_fired(abx__timer *timer)
{
	abx__control *control = timer->owner;
	int64_t wall = abx__control_wall(control);

	for (size_t i = 0; i < control->sandboxes.count; i++) {
		abx__sandbox *s = control->sandboxes.order[i];

		if (s->rec.state != ABX__SANDBOX_RUNNING || !s->pod)
			continue;
		if (s->streams > 0) {
			s->active_mono_ms = abx__control_mono(control);
			s->rec.last_active_ms = wall;
		}
		if (!s->persist_waiters &&
		    (s->rec.last_active_ms <= s->persisted_active_ms ||
		     wall - s->persisted_active_ms < ABX__LAST_ACTIVE_PERSIST_MS))
			continue;
		s->pod->want_persist = true;
		abx__pod_settle(s->pod);
	}
	abx__control_set_timer(control, &control->persist_timer,
			       abx__control_mono(control) + PERSIST_LOOK_MS);
}

/*
 * pause.c - between running and paused: pausing, resuming, what waits for its turn.
 *
 * A sandbox's moves are carried out one after the other, in the order they were asked
 * for; one whose end is there already when its turn comes is done. A move is a durable
 * write of the Pod (phase, and what the engine is to do), then the engine's word that it
 * is so. So after a crash the Pod says which it was, and the engine carries on.
 *
 * Memory kept: the Pod is frozen, and thawed. Files only: its container ends and starts
 * anew on its files, is armed as a claim is, and is written running last: until then a
 * restarted server finds it paused. Killing goes before everything that waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/claim.h"

#define SETTLE_MS 15000 /* for a freeze or a thaw */
#define AUTO_RESUME_LEAST_MS 300000
#define RETRY_MS 1000

struct abx__move {
	abx__move *next;
	enum { MOVE_PAUSE, MOVE_RESUME, MOVE_SNAPSHOT } kind;
	bool keep_memory;   /* of a pause */
	bool again;         /* of a pause: also when it is paused */
	bool cold;          /* of a resume: memory that was kept is given up */
	int64_t timeout_ms; /* of a resume; 0: as it was */
	abx__snapshot *snapshot;
	abx__claim_done claim_done;
	abx__control_done done;
	void *userdata;
};

/* How far the first move is. */
enum {
	STAGE_NONE,    /* not begun */
	STAGE_WRITING, /* what is wanted */
	STAGE_WAITING, /* for the engine */
	STAGE_ARMING,
	STAGE_STARTING, /* phase running is being written */
	STAGE_UNDOING,  /* what was there before is being written */
	STAGE_COPYING,  /* a snapshot: the engine has it in hand */
};

static void set_deadline(abx__sandbox *s, int64_t ms)
{
	abx__control_set_timer(s->control, &s->timer, abx__control_mono(s->control) + ms);
}

/* --- ending a move --- */

static void tell(abx__move *m, int r, const abx__sandbox_rec *rec, const abx_error *err)
{
	if (m->snapshot && r < 0)
		abx__snapshot_failed(m->snapshot, r, err);
	else if (m->claim_done)
		m->claim_done(m->userdata, r, r == ABX_OK ? rec : NULL, err);
	else if (m->done)
		m->done(m->userdata, r, err);
	abx__free(m);
}

/* The first one is over. What is behind it gets its turn when the Pod settles. */
static void finish(abx__sandbox *s, int r, const abx_error *err)
{
	abx__move *m = s->moves;

	s->moves = m->next;
	s->stage = STAGE_NONE;
	abx_error_free(abx_take(s->move_error));
	if (s->moves && s->pod)
		s->pod->want_move = true;
	if (r < 0)
		abx__log_warn(s->control->config.log, "sandbox not moved",
			      "sandbox=%s to=%s error=%s", s->id,
			      m->kind == MOVE_PAUSE      ? "paused"
			      : m->kind == MOVE_SNAPSHOT ? "snapshot"
							 : "running",
			      abx_error_message(err));
	tell(m, r, &s->rec, err);
}

void abx__sandbox_drop_moves(abx__sandbox *s, int r, const abx_error *err)
{
	abx__move *list = abx_take(s->moves);

	/* The engine says how that one ends. */
	if (s->stage == STAGE_COPYING)
		list->snapshot = NULL;
	s->stage = STAGE_NONE;
	abx_error_free(abx_take(s->move_error));
	while (list) {
		abx__move *m = list;

		list = m->next;
		tell(m, r, NULL, err);
	}
}

void abx__sandbox_free_moves(abx__sandbox *s)
{
	while (s->moves) {
		abx__move *m = s->moves;

		s->moves = m->next;
		abx__free(m);
	}
	abx_error_free(abx_take(s->move_error));
}

static void be_running(abx__sandbox *s)
{
	s->rec.state = ABX__SANDBOX_RUNNING;
	s->rec.paused_ms = 0;
	s->rec.memory_kept = false;
	s->active_mono_ms = abx__control_mono(s->control);
	s->rec.last_active_ms = abx__control_wall(s->control);
	abx__sandbox_arm_idle(s);
}

static void be_paused(abx__sandbox *s)
{
	s->rec.state = ABX__SANDBOX_PAUSED;
	abx__timers_clear(&s->control->timers, &s->timer);
}

/* --- writing --- */

static int put_seconds(abx__map *map, const char *key, int64_t ms)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, (ms + 999) / 1000);
	return abx__map_set(map, key, text);
}

static int put_time(abx__map *map, const char *key, int64_t wall_ms)
{
	char text[ABX__RFC3339_SIZE];

	abx__rfc3339_format(wall_ms, text);
	return abx__map_set(map, key, text);
}

/* Phase, activity, and what a restarted server must know; `phase` NULL: as it is. */
static int write_move(abx__sandbox *s, const char *phase, enum abx__pod_activity activity)
{
	static const char *const was_paused[] = { ABX__ANNOTATION_PAUSED_AT,
						  ABX__ANNOTATION_PAUSED_MEMORY, NULL };
	abx__map labels = ABX__MAP_INIT, annotations = ABX__MAP_INIT;
	abx__pod_change change = { .set_labels = &labels,
				   .set_annotations = &annotations,
				   .activity = activity };
	bool paused = abx__str_eq(phase, ABX__PHASE_PAUSED);
	int r = phase ? abx__map_set(&labels, ABX__LABEL_PHASE, phase) : ABX_OK;

	if (r == ABX_OK && paused)
		r = put_time(&annotations, ABX__ANNOTATION_PAUSED_AT, s->rec.paused_ms);
	if (r == ABX_OK && paused)
		r = abx__map_set(&annotations, ABX__ANNOTATION_PAUSED_MEMORY,
				 s->rec.memory_kept ? "true" : "false");
	if (r == ABX_OK && phase && !paused) {
		change.remove_annotations = was_paused;
		r = put_time(&annotations, ABX__ANNOTATION_LAST_ACTIVE,
			     abx__control_wall(s->control));
	}
	if (r == ABX_OK && s->rec.idle_timeout_ms > 0)
		r = put_seconds(&annotations, ABX__ANNOTATION_IDLE_TIMEOUT,
				s->rec.idle_timeout_ms);
	if (r == ABX_OK)
		r = abx__pod_write(s->pod, ABX__WRITE_MOVE, &change);
	abx__map_done(&labels);
	abx__map_done(&annotations);
	return r;
}

/* Back to what was there before the first move; its caller gets the error. */
static void undo(abx__sandbox *s, abx_error *err)
{
	bool pausing = s->moves->kind == MOVE_PAUSE;

	s->move_error = err;
	s->stage = STAGE_UNDOING;
	set_deadline(s, SETTLE_MS);
	if (pausing)
		s->rec.paused_ms = 0;
	if (s->pod->write == ABX__WRITE_NONE &&
	    write_move(s, pausing ? ABX__PHASE_RUNNING : ABX__PHASE_PAUSED,
		       pausing ? ABX__POD_RUN : ABX__POD_STOP) == ABX_OK)
		return;
	/* No memory, or a write in flight: the deadline tries again. */
	set_deadline(s, RETRY_MS);
}

static void undone(abx__sandbox *s)
{
	abx_error *err = abx_take(s->move_error);
	bool pausing = s->moves->kind == MOVE_PAUSE;

	if (pausing)
		be_running(s);
	else
		be_paused(s);
	finish(s, abx_error_code(err), err);
	abx_error_free(err);
}

/* --- beginning --- */

static bool is_there(const abx__sandbox *s, const abx__move *m)
{
	if (m->kind == MOVE_SNAPSHOT)
		return false;
	return m->kind == MOVE_PAUSE ? s->rec.state == ABX__SANDBOX_PAUSED && !m->again
				     : s->rec.state == ABX__SANDBOX_RUNNING;
}

/* A resume without the memory that was kept: it is given up first. */
static int give_up_memory(abx__sandbox *s)
{
	abx__move *m = abx__calloc(1, sizeof(*m));

	if (!m)
		return ABX_ENOMEM;
	m->kind = MOVE_PAUSE;
	m->again = true;
	m->next = s->moves;
	s->moves = m;
	return ABX_OK;
}

static void begin_snapshot(abx__sandbox *s)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (s->rec.state == ABX__SANDBOX_RUNNING) {
		s->stage = STAGE_COPYING;
		abx__timers_clear(&s->control->timers, &s->timer);
		abx__snapshot_begin(s->moves->snapshot, s->pod);
		return;
	}
	abx__error_set(&err, ABX_ESTATE,
		       "Sandbox '%s' cannot be snapshotted while in 'paused' state",
		       s->id);
	finish(s, ABX_ESTATE, err);
}

static int begin(abx__sandbox *s)
{
	abx__move *m = s->moves;
	int r;

	if (m->kind == MOVE_SNAPSHOT) {
		begin_snapshot(s);
		return ABX_OK;
	}

	if (m->kind == MOVE_RESUME && m->cold && s->rec.memory_kept) {
		r = give_up_memory(s);
		if (r < 0)
			return r;
		m = s->moves;
	}
	s->stage = STAGE_WRITING;
	abx__timers_clear(&s->control->timers, &s->timer);
	if (m->kind == MOVE_PAUSE) {
		s->rec.state = ABX__SANDBOX_PAUSING;
		if (!s->rec.paused_ms)
			s->rec.paused_ms = abx__control_wall(s->control);
		s->rec.memory_kept = m->keep_memory;
		return write_move(s, ABX__PHASE_PAUSED,
				  m->keep_memory ? ABX__POD_FREEZE : ABX__POD_STOP);
	}
	s->rec.state = ABX__SANDBOX_RESUMING;
	if (m->timeout_ms > 0)
		s->rec.idle_timeout_ms = (m->timeout_ms + 999) / 1000 * 1000;
	if (s->rec.memory_kept)
		return write_move(s, ABX__PHASE_RUNNING, ABX__POD_RUN);
	/* Connections to the runtime that was. */
	s->control->config.runtime->ops->forget(s->control->config.runtime,
						s->pod->namespace_, s->pod->name);
	return write_move(s, NULL, ABX__POD_RUN);
}

static void fail_nomem(abx__sandbox *s)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__error_nomem(&err);
	if (s->moves->kind == MOVE_PAUSE && !s->moves->again)
		be_running(s);
	else
		be_paused(s);
	finish(s, ABX_ENOMEM, err);
}

void abx__sandbox_move(abx__podrec *pod)
{
	abx__sandbox *s = pod->sandbox;

	pod->want_move = false;
	while (s->moves && s->stage == STAGE_NONE && pod->sandbox == s &&
	       pod->write == ABX__WRITE_NONE && !pod->want_release) {
		if (is_there(s, s->moves))
			finish(s, ABX_OK, NULL);
		else if (begin(s) < 0)
			fail_nomem(s);
	}
}

/* --- on the way --- */

static void write_started(abx__sandbox *s)
{
	s->stage = STAGE_STARTING;
	if (write_move(s, ABX__PHASE_RUNNING, ABX__POD_RUN) < 0)
		set_deadline(s, RETRY_MS);
}

static void on_armed(void *userdata, int r, const abx_error *err)
{
	abx__podrec *pod = userdata;
	abx__control *control = pod->control;
	abx__sandbox *s = pod->sandbox;

	abx__pod_armed(pod);
	if (s && s->stage == STAGE_ARMING && !pod->want_release && !pod->gone) {
		if (r == ABX_OK) {
			write_started(s);
		} else {
			abx_error *own = abx__error_copy(err);

			abx__error_prefix(&own, "sandbox %s could not be armed", s->id);
			undo(s, own);
		}
	}
	abx__pod_settle(pod);
	abx__control_call_end(control);
}

static void arm(abx__sandbox *s)
{
	ABX_CLEANUP(abx__secret_freep) abx__secret *vars = NULL;
	abx_error *err = NULL;
	int r = abx__sandbox_env_vars(s, &vars, &err);

	s->stage = STAGE_ARMING;
	if (r == ABX_OK)
		r = abx__pod_arm(s->pod, vars ? abx__secret_reveal(vars) : "{}",
				 s->control->config.startup_timeout_ms, on_armed);
	if (r < 0 && !err)
		abx__error_nomem(&err);
	if (r < 0)
		undo(s, err);
}

/* Is what the first move waits for so? */
static void look(abx__sandbox *s)
{
	const abx__podrec *pod = s->pod;
	const abx__move *m = s->moves;
	enum abx__pod_activity wanted = m->kind == MOVE_RESUME ? ABX__POD_RUN
					: m->keep_memory       ? ABX__POD_FREEZE
							       : ABX__POD_STOP;

	if (pod->activity != wanted)
		return;
	if (m->kind == MOVE_PAUSE) {
		be_paused(s);
		finish(s, ABX_OK, NULL);
	} else if (s->rec.memory_kept) {
		be_running(s);
		finish(s, ABX_OK, NULL);
	} else if (abx__podrec_is_ready(pod)) {
		arm(s);
	}
}

static void not_written(abx__sandbox *s, int r, const abx_error *err)
{
	abx__move *m = s->moves;

	if (r == ABX_ENOTFOUND) {
		abx__pod_gone(s->pod);
		return;
	}
	if (s->stage == STAGE_UNDOING || s->stage == STAGE_STARTING) {
		set_deadline(s, RETRY_MS);
		return;
	}
	if (m->kind == MOVE_PAUSE && !m->again)
		be_running(s);
	else
		be_paused(s);
	finish(s, r, err);
}

void abx__sandbox_moved(abx__sandbox *s, int r, const abx_error *err)
{
	if (!s->moves || s->stage == STAGE_NONE)
		return;
	if (r < 0) {
		not_written(s, r, err);
	} else if (s->stage == STAGE_STARTING) {
		be_running(s);
		finish(s, ABX_OK, NULL);
	} else if (s->stage == STAGE_UNDOING) {
		undone(s);
	} else {
		s->stage = STAGE_WAITING;
		set_deadline(s, s->moves->kind == MOVE_PAUSE || s->rec.memory_kept
					? SETTLE_MS
					: s->control->config.startup_timeout_ms);
		look(s);
	}
}

bool abx__sandbox_pod_changed(abx__sandbox *s)
{
	const abx__podrec *pod = s->pod;
	bool files_only = !s->rec.memory_kept && (s->rec.state == ABX__SANDBOX_PAUSED ||
						  s->rec.state == ABX__SANDBOX_PAUSING ||
						  s->rec.state == ABX__SANDBOX_RESUMING);

	if (pod->phase == ABX__POD_FAILED && !files_only)
		return false;
	if (!s->moves || s->stage != STAGE_WAITING)
		return true;
	if (pod->phase == ABX__POD_FAILED && s->moves->kind == MOVE_RESUME &&
	    pod->generation >= pod->target_generation) {
		abx_error *err = NULL;

		abx__error_set(&err, ABX_EUNAVAILABLE,
			       "sandbox %s does not start: %s%s%s", s->id, pod->reason,
			       pod->message ? ": " : "",
			       pod->message ? pod->message : "");
		undo(s, err);
		return true;
	}
	look(s);
	return true;
}

void abx__sandbox_move_late(abx__sandbox *s)
{
	abx_error *err = NULL;

	if (!s->moves || s->pod->write != ABX__WRITE_NONE) {
		set_deadline(s, RETRY_MS);
		return;
	}
	switch (s->stage) {
	case STAGE_WAITING:
		abx__error_set(&err, ABX_ETIMEDOUT, "sandbox %s did not %s in time",
			       s->id,
			       s->moves->kind == MOVE_PAUSE ? "stand still" : "start");
		if (s->moves->kind == MOVE_RESUME && s->rec.memory_kept) {
			/* It is written to run, and will. */
			be_running(s);
			finish(s, ABX_ETIMEDOUT, err);
			abx_error_free(err);
		} else {
			undo(s, err);
		}
		break;
	case STAGE_STARTING:
		write_started(s);
		break;
	case STAGE_UNDOING:
		undo(s, abx_take(s->move_error));
		break;
	default:
		break;
	}
	abx__pod_settle(s->pod);
}

/* --- snapshots --- */

void abx__sandbox_snapshot_over(abx__control *control, const char *id,
				const abx__snapshot *snapshot)
{
	abx__sandbox *s = abx__sandboxes_get(&control->sandboxes, id);

	if (!s || !s->moves || s->stage != STAGE_COPYING ||
	    s->moves->snapshot != snapshot)
		return;
	/* Its caller hears of it when it is written down. */
	s->moves->snapshot = NULL;
	s->active_mono_ms = abx__control_mono(control);
	s->rec.last_active_ms = abx__control_wall(control);
	abx__sandbox_arm_idle(s);
	finish(s, ABX_OK, NULL);
	abx__pod_settle(s->pod);
}

/* --- asking --- */

static int add(abx__sandbox *s, const abx__move *move)
{
	abx__move **at = &s->moves, *m = abx__memdup(move, sizeof(*move));

	if (!m)
		return ABX_ENOMEM;
	while (*at)
		at = &(*at)->next;
	*at = m;
	s->pod->want_move = true;
	abx__pod_settle(s->pod);
	return ABX_OK;
}

static int find(abx__control *control, const char *id, abx__sandbox **ret,
		abx_error **reterr)
{
	abx__sandbox *s = abx__sandboxes_get(&control->sandboxes, id);

	if (!s || s->rec.state == ABX__SANDBOX_STOPPING || !s->pod)
		return abx__error_set(
			reterr, ABX_ENOTFOUND,
			"Sandbox \"%s\" doesn't exist or you don't have access to it",
			id);
	if (s->rec.state == ABX__SANDBOX_STARTING)
		return abx__error_set(reterr, ABX_ESTATE, "sandbox %s is still starting",
				      s->id);
	if (control->state != ABX__CONTROL_RUNNING)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "the server is starting or stopping");
	*ret = s;
	return ABX_OK;
}

int abx__sandbox_can_snapshot(abx__control *control, const char *id,
			      const abx__sandbox **ret, abx_error **reterr)
{
	abx__sandbox *s = NULL;
	const char *state = NULL;
	int r = find(control, id, &s, reterr);

	if (r < 0)
		return r;
	if (!s->moves && s->rec.state == ABX__SANDBOX_PAUSED)
		state = "paused";
	for (const abx__move *m = s->moves; m; m = m->next)
		if (m->kind == MOVE_SNAPSHOT)
			state = "snapshotting";
	if (state)
		return abx__error_set(reterr, ABX_ESTATE,
				      "Sandbox '%s' cannot be snapshotted while in '%s' "
				      "state",
				      s->id, state);
	*ret = s;
	return ABX_OK;
}

int abx__sandbox_add_snapshot(abx__control *control, const char *id,
			      abx__snapshot *snapshot, abx_error **reterr)
{
	const abx__sandbox *s = NULL;
	int r = abx__sandbox_can_snapshot(control, id, &s, reterr);

	if (r == ABX_OK &&
	    add((abx__sandbox *)s,
		&(abx__move){ .kind = MOVE_SNAPSHOT, .snapshot = snapshot }) < 0)
		r = abx__error_nomem(reterr);
	return r;
}

int abx__control_pause(abx__control *control, const char *id, bool keep_memory,
		       abx__control_done done, void *userdata, abx_error **reterr)
{
	abx__sandbox *s = NULL;
	int r = find(control, id, &s, reterr);

	if (r < 0)
		return r;
	if (!s->moves && s->rec.state == ABX__SANDBOX_PAUSED)
		return abx__error_set(reterr, ABX_ESTATE,
				      "Error pausing sandbox - sandbox '%s' is already "
				      "paused",
				      s->id);
	if (add(s, &(abx__move){ .kind = MOVE_PAUSE,
				 .keep_memory = keep_memory,
				 .done = done,
				 .userdata = userdata }) < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

int abx__control_resume(abx__control *control, const char *id, int64_t timeout_ms,
			bool without_memory, abx__claim_done done, void *userdata,
			abx_error **reterr)
{
	abx__sandbox *s = NULL;
	int r = find(control, id, &s, reterr);

	if (r < 0)
		return r;
	if (s->stage == STAGE_COPYING)
		return abx__error_set(reterr, ABX_ESTATE,
				      "Sandbox snapshot is currently being created for "
				      "sandbox '%s'",
				      s->id);
	if (!s->moves && s->rec.state == ABX__SANDBOX_RUNNING)
		return abx__error_set(reterr, ABX_ESTATE, "Sandbox %s is already running",
				      s->id);
	if (add(s, &(abx__move){ .kind = MOVE_RESUME,
				 .timeout_ms = timeout_ms,
				 .cold = without_memory,
				 .claim_done = done,
				 .userdata = userdata }) < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

/* What it was made with; but not so little that it is paused again before it answers. */
static int64_t auto_timeout(const abx__sandbox *s)
{
	if (s->first_timeout_ms == 0)
		return 0;
	return s->first_timeout_ms < AUTO_RESUME_LEAST_MS ? AUTO_RESUME_LEAST_MS
							  : s->first_timeout_ms;
}

int abx__control_wake(abx__control *control, const char *id, abx__control_done done,
		      void *userdata, abx_error **reterr)
{
	abx__sandbox *s = NULL;
	int r = find(control, id, &s, reterr);

	if (r < 0)
		return r;
	/* One that somebody else resumes is waited for by everybody. */
	if (s->rec.state != ABX__SANDBOX_RESUMING &&
	    (!s->rec.lifecycle.auto_resume || !s->rec.memory_kept))
		return abx__error_set(reterr, ABX_EDENIED,
				      "sandbox %s is paused and not to be resumed by "
				      "traffic",
				      s->id);
	if (add(s, &(abx__move){ .kind = MOVE_RESUME,
				 .timeout_ms = auto_timeout(s),
				 .done = done,
				 .userdata = userdata }) < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

void abx__sandbox_auto_pause(abx__sandbox *s)
{
	if (s->moves)
		return;
	if (add(s, &(abx__move){ .kind = MOVE_PAUSE,
				 .keep_memory = !s->rec.lifecycle.files_only }) < 0)
		set_deadline(s, RETRY_MS);
}

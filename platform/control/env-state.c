/*
 * env-state.c - see env-state.h. Times are kept by the monotonic clock and written by the
 * wall clock; a time read that lies ahead (the wall clock went back) counts as now.
 */
#include "control/env-state.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"

#define WRITE_AFTER_MS 5000
#define RETRY_MS 30000

static void on_timer(abx__timer *timer);

int abx__env_state_new(abx__env *env)
{
	abx__control *control = env->control;
	abx__env_state *state = abx__calloc(1, sizeof(*state));

	if (!state)
		return ABX_ENOMEM;
	state->control = control;
	state->env = env;
	state->namespace_ = abx__strdup(env->object.namespace_);
	state->name = abx__strdup(env->object.name);
	if (!state->namespace_ || !state->name ||
	    abx__timers_reserve(&control->timers, &state->timer, on_timer, state) < 0) {
		abx__free(state->namespace_);
		abx__free(state->name);
		abx__free(state);
		return ABX_ENOMEM;
	}
	DL_APPEND(control->env_states, state);
	env->state = state;
	return ABX_OK;
}

static void state_free(abx__env_state *state)
{
	DL_DELETE(state->control->env_states, state);
	abx__timers_release(&state->control->timers, &state->timer);
	abx__events_done(state);
	json_object_put(state->pools);
	abx__free(state->namespace_);
	abx__free(state->name);
	abx__free(state);
}

void abx__env_states_done(abx__control *control)
{
	while (control->env_states)
		state_free(control->env_states);
}

static void on_removed(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__control *control = userdata;

	(void)doc;
	if (r < 0 && r != ABX_ENOTFOUND)
		abx__log_warn(control->config.log,
			      "what was kept of a deleted env could not be removed",
			      "error=%s", abx_error_message(err));
	abx__control_call_end(control);
}

static void remove_doc(abx__control *control, const char *namespace_, const char *name)
{
	abx__store *store = control->config.store;

	abx__control_call_begin(control);
	store->ops->remove(store, ABX__KIND_ENV_STATE, namespace_, name, 0, on_removed,
			   control);
}

void abx__env_state_drop(abx__env *env, bool deleted)
{
	abx__env_state *state = env->state;

	env->state = NULL;
	if (!state)
		return;
	state->env = NULL;
	if (deleted && (state->stored || state->writing))
		remove_doc(state->control, state->namespace_, state->name);
	if (state->writing)
		abx__timers_clear(&state->control->timers, &state->timer);
	else
		state_free(state);
}

void abx__env_state_changed(abx__env *env)
{
	env->state->dirty = true;
	abx__control_set_timer_sooner(env->control, &env->state->timer,
				      abx__control_mono(env->control) + WRITE_AFTER_MS);
}

/* --- pools --- */

static const struct {
	const char *key;
	size_t offset; /* in abx__pool; monotonic */
} times[] = {
	{ "lastScaleUpTime", offsetof(abx__pool, scale.last_up_ms) },
	{ "lastScaleDownTime", offsetof(abx__pool, scale.last_down_ms) },
	{ "idleZeroSince", offsetof(abx__pool, scale.idle_zero_since_ms) },
	{ "lastScaleUpAttemptTime", offsetof(abx__pool, scale.last_attempt_ms) },
	{ "lastSandboxCreateTime", offsetof(abx__pool, last_create_ms) },
};
#define TIME_COUNT (sizeof(times) / sizeof(times[0]))

static json_object *pool_write(const abx__pool *pool)
{
	int64_t ago = abx__control_mono(pool->control);
	int64_t wall = abx__control_wall(pool->control);
	json_object *o = json_object_new_object();
	int r = o ? abx__field_take(o, "createdAt", abx__time_field(pool->created_ms))
		  : ABX_ENOMEM;

	for (size_t i = 0; r == ABX_OK && i < TIME_COUNT; i++) {
		int64_t at = *(const int64_t *)((const char *)pool + times[i].offset);

		if (at)
			r = abx__field_take(o, times[i].key,
					    abx__time_field(wall - (ago - at)));
	}
	if (r == ABX_OK && pool->scale.last_result != ABX__SCALE_NEVER)
		r = abx__field_set_int(o, "lastScaleUpAttemptResult",
				       pool->scale.last_result);
	if (r == ABX_OK && pool->scale_message)
		r = abx__field_set_str(o, "scaleUpErrorMessage", pool->scale_message);
	if (r == ABX_OK)
		return o;
	json_object_put(o);
	return NULL;
}

static int64_t wall_of(json_object *o, const char *key)
{
	const char *text = abx__field_str(o, key);
	int64_t us = 0;

	return text && abx__rfc3339_parse(text, &us) == ABX_OK ? us / 1000 : 0;
}

void abx__pool_recall(abx__pool *pool)
{
	int64_t now = abx__control_mono(pool->control);
	int64_t wall = abx__control_wall(pool->control);
	abx__env_state *state = pool->env->state;
	json_object *o = abx__field_object(state->pools, pool->config.name);
	int64_t result = abx__field_int(o, "lastScaleUpAttemptResult", ABX__SCALE_NEVER);
	const char *message = abx__field_str(o, "scaleUpErrorMessage");

	pool->created_ms = wall_of(o, "createdAt");
	if (pool->created_ms == 0) {
		pool->created_ms = wall;
		abx__env_state_changed(pool->env);
	}
	for (size_t i = 0; i < TIME_COUNT; i++) {
		int64_t at = wall_of(o, times[i].key);
		int64_t mono = now - (wall > at ? wall - at : 0);

		/* 0 means never, here. */
		if (at)
			*(int64_t *)((char *)pool + times[i].offset) = mono ? mono : 1;
	}
	if (result > ABX__SCALE_NEVER && result <= ABX__SCALE_FAILED)
		pool->scale.last_result = (enum abx__scale_result)result;
	if (message && !pool->scale_message)
		pool->scale_message = abx__strdup(message);
	if (o)
		json_object_object_del(state->pools, pool->config.name);
}

/* --- the document --- */

static json_object *document(const abx__env_state *state)
{
	json_object *doc = json_object_new_object();
	json_object *pools = json_object_new_object();
	int r = doc && pools ? ABX_OK : ABX_ENOMEM;

	for (const abx__pool *pool = state->env->pools; r == ABX_OK && pool;
	     pool = pool->next)
		r = abx__field_take(pools, pool->config.name, pool_write(pool));
	if (r == ABX_OK)
		r = abx__field_take(doc, "events", abx__events_write(state));
	if (r == ABX_OK)
		r = abx__field_share(doc, "pools", pools);
	json_object_put(pools);
	if (r == ABX_OK)
		return doc;
	json_object_put(doc);
	return NULL;
}

static void write_doc(abx__env_state *state);

static void on_written(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__env_state *state = userdata;
	abx__control *control = state->control;
	bool was_stored = state->stored;

	(void)doc;
	state->writing = false;
	state->stored = r == ABX_OK || r == ABX_EEXISTS;
	if (!state->env) {
		state_free(state);
	} else if ((was_stored && r == ABX_ENOTFOUND) ||
		   (!was_stored && r == ABX_EEXISTS)) {
		write_doc(state);
	} else if (r < 0) {
		state->stored = was_stored;
		state->dirty = true;
		abx__log_warn(control->config.log, "an env's events could not be stored",
			      "env=%s error=%s", state->env->key, abx_error_message(err));
		abx__control_set_timer_sooner(control, &state->timer,
					      abx__control_mono(control) + RETRY_MS);
	} else if (state->dirty) {
		abx__control_set_timer_sooner(control, &state->timer,
					      abx__control_mono(control) +
						      WRITE_AFTER_MS);
	}
	abx__control_call_end(control);
}

static void write_doc(abx__env_state *state)
{
	abx__control *control = state->control;
	abx__store *store = control->config.store;
	json_object *doc = document(state);
	const char *body;
	size_t len;

	if (!doc) {
		abx__control_set_timer_sooner(control, &state->timer,
					      abx__control_mono(control) + RETRY_MS);
		return;
	}
	body = json_object_to_json_string_length(doc, JSON_C_TO_STRING_PLAIN, &len);
	state->dirty = false;
	state->writing = true;
	abx__control_call_begin(control);
	if (state->stored)
		store->ops->update(store, ABX__KIND_ENV_STATE, state->namespace_,
				   state->name, 0, body, len, on_written, state);
	else
		store->ops->create(store, ABX__KIND_ENV_STATE, state->namespace_,
				   state->name, body, len, on_written, state);
	json_object_put(doc);
}

static void on_timer(abx__timer *timer)
{
	abx__env_state *state = timer->owner;

	if (state->dirty && !state->writing && state->env)
		write_doc(state);
}

/* The last seconds, too. */
void abx__env_states_flush(abx__control *control)
{
	abx__env_state *state;

	DL_FOREACH(control->env_states, state)
	{
		on_timer(&state->timer);
	}
}

int abx__env_state_load(abx__control *control, const abx__doc *doc, abx_error **reterr)
{
	const abx__env *env = abx__env_find(control, doc->namespace_, doc->name);
	json_object *body;
	int r;

	if (!env) {
		remove_doc(control, doc->namespace_, doc->name);
		return ABX_OK;
	}
	body = json_tokener_parse(doc->body);
	env->state->stored = true;
	r = abx__events_read(env->state, abx__field_array(body, "events"));
	json_object_put(env->state->pools);
	env->state->pools = json_object_get(abx__field_object(body, "pools"));
	json_object_put(body);
	for (abx__pool *pool = env->pools; r == ABX_OK && pool; pool = pool->next)
		abx__pool_recall(pool);
	return r == ABX_ENOMEM ? abx__error_nomem(reterr) : r;
}

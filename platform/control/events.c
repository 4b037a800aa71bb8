/*
 * events.c - the events of an env: told, counted, listed, and as part of what is kept of
 * it beside its document (env-state.c).
 */
#include "control/events.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/env-state.h"
#include "control/fields.h"

#define MESSAGE_MAX 1024
#define WARNING_REPEATS_MS (INT64_C(10) * 60 * 1000)

static void event_done(abx__event *e)
{
	abx__free(e->pool);
	abx__free(e->reason);
	abx__free(e->action);
	abx__free(e->message);
	*e = (abx__event){ 0 };
}

void abx__events_done(abx__env_state *state)
{
	for (size_t i = 0; i < state->event_count; i++)
		event_done(&state->events[i]);
	abx__free(state->events);
	state->events = NULL;
	state->event_count = 0;
}

static bool is_same(const abx__event *a, const abx__event *b)
{
	if (a->warning != b->warning || strcmp(a->reason, b->reason) != 0 ||
	    !abx__str_eq(a->pool, b->pool))
		return false;
	return strcmp(a->message, b->message) == 0 ||
	       (a->warning && b->last_ms - a->last_ms < WARNING_REPEATS_MS);
}

/* Room at the end: the oldest gives way. */
static int make_room(abx__env_state *state)
{
	if (!state->events)
		state->events = abx__calloc(ABX__EVENTS_MOST, sizeof(*state->events));
	if (!state->events)
		return ABX_ENOMEM;
	if (state->event_count < ABX__EVENTS_MOST)
		return ABX_OK;
	event_done(&state->events[0]);
	state->event_count--;
	memmove(&state->events[0], &state->events[1],
		state->event_count * sizeof(*state->events));
	return ABX_OK;
}

/* Takes the event's strings. Said before: that one moves to the end. */
static int take(abx__env_state *state, abx__event *e)
{
	for (size_t i = state->event_count; i > 0; i--) {
		const abx__event *old = &state->events[i - 1];

		if (!is_same(old, e))
			continue;
		e->count += old->count;
		e->first_ms = old->first_ms;
		event_done(&state->events[i - 1]);
		state->event_count--;
		memmove(&state->events[i - 1], &state->events[i],
			(state->event_count - i + 1) * sizeof(*state->events));
		break;
	}
	if (make_room(state) < 0) {
		event_done(e);
		return ABX_ENOMEM;
	}
	state->events[state->event_count++] = *e;
	return ABX_OK;
}

static int fill(abx__event *e, const char *pool, const char *reason, const char *action,
		const char *message)
{
	e->pool = abx__strdup(pool);
	e->reason = abx__strdup(reason);
	e->action = abx__strdup(action);
	e->message = abx__strndup(message, MESSAGE_MAX);
	if ((pool && !e->pool) || !e->reason || (action && !e->action) || !e->message) {
		event_done(e);
		return ABX_ENOMEM;
	}
	return ABX_OK;
}

void abx__env_tell(abx__env *env, const abx__pool *pool, bool warning, const char *reason,
		   const char *action, const char *fmt, ...)
{
	char message[MESSAGE_MAX];
	abx__event e = { .warning = warning, .count = 1 };
	va_list args;

	if (!env)
		return;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	e.first_ms = e.last_ms = abx__control_wall(env->control);
	/* One event less is all that memory running out does here. */
	if (fill(&e, pool ? pool->config.name : NULL, reason, action, message) < 0 ||
	    take(env->state, &e) < 0)
		return;
	abx__env_state_changed(env);
	if (e.count == 1)
		abx__log_event(env->control->config.log,
			       warning ? ABX__LOG_WARN : ABX__LOG_INFO, reason,
			       "env=%s pool=%s message=\"%s\"", env->key,
			       pool ? pool->config.name : "", message);
}

/* --- as documents --- */

static json_object *event_document(const abx__event *e, const char *env_name)
{
	json_object *o = json_object_new_object();

	if (o &&
	    abx__field_set_str(o, "involvedKind",
			       e->pool ? ABX__KIND_POOL : ABX__KIND_ENV) == ABX_OK &&
	    abx__field_set_str(o, "involvedName", e->pool ? e->pool : env_name) ==
		    ABX_OK &&
	    abx__field_set_str(o, "reason", e->reason) == ABX_OK &&
	    abx__field_set_str(o, "message", e->message) == ABX_OK &&
	    abx__field_set_str(o, "type", e->warning ? "Warning" : "Normal") == ABX_OK &&
	    abx__field_set_int(o, "count", e->count) == ABX_OK &&
	    (!e->action || abx__field_set_str(o, "action", e->action) == ABX_OK) &&
	    abx__field_take(o, "firstTimestamp", abx__time_field(e->first_ms)) ==
		    ABX_OK &&
	    abx__field_take(o, "lastTimestamp", abx__time_field(e->last_ms)) == ABX_OK)
		return o;
	json_object_put(o);
	return NULL;
}

static json_object *events_document(const abx__env_state *state, const char *env_name,
				    size_t limit)
{
	json_object *list = json_object_new_array();

	for (size_t i = state->event_count; list && i > 0 && limit-- > 0; i--)
		abx__array_take(&list, event_document(&state->events[i - 1], env_name));
	return list;
}

json_object *abx__events_write(const abx__env_state *state)
{
	return events_document(state, state->name, ABX__EVENTS_MOST);
}

static int64_t time_of(json_object *o, const char *key)
{
	const char *text = abx__field_str(o, key);
	int64_t us = 0;

	return text && abx__rfc3339_parse(text, &us) == ABX_OK ? us / 1000 : 0;
}

/* Written newest first. What does not hold together is left out. */
int abx__events_read(abx__env_state *state, json_object *list)
{
	for (size_t i = abx__array_count(list); i > 0; i--) {
		json_object *o = json_object_array_get_idx(list, i - 1);
		const char *kind = abx__field_str(o, "involvedKind");
		const char *reason = abx__field_str(o, "reason");
		const char *message = abx__field_str(o, "message");
		const char *pool = abx__str_eq(kind, ABX__KIND_POOL)
					   ? abx__field_str(o, "involvedName")
					   : NULL;
		abx__event e = {
			.warning = abx__str_eq(abx__field_str(o, "type"), "Warning"),
			.count = (int)abx__field_int(o, "count", 1),
			.first_ms = time_of(o, "firstTimestamp"),
			.last_ms = time_of(o, "lastTimestamp"),
		};

		if (!reason || !message)
			continue;
		if (fill(&e, pool, reason, abx__field_str(o, "action"), message) < 0 ||
		    take(state, &e) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

int abx__control_env_events(abx__control *control, const char *namespace_,
			    const char *name, size_t limit, json_object **ret,
			    abx_error **reterr)
{
	const abx__env *env = abx__env_find(control, namespace_, name);
	json_object *list;

	if (!env)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "env %s does not exist in namespace %s", name,
				      namespace_);
	list = events_document(env->state, name, limit);
	if (!list)
		return abx__error_nomem(reterr);
	*ret = list;
	return ABX_OK;
}

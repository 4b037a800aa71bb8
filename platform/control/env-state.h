/*
 * env-state.h - what is kept of an env beside its document: its events, and when its
 * pools were made and last changed size. Inside of control/ only.
 *
 * One document an env (kind "EnvState"), written a few seconds after something changed;
 * what a crash loses of it are those seconds.
 */
#ifndef ABX_CONTROL_ENV_STATE_H
#define ABX_CONTROL_ENV_STATE_H

#include "control/internal.h"

typedef struct abx__event {
	char *pool; /* NULL: about the env */
	char *reason, *message;
	char *action; /* NULL: none */
	bool warning;
	int count;
	int64_t first_ms, last_ms; /* wall */
} abx__event;

struct abx__env_state {
	abx__control *control;
	abx__env *env; /* NULL: it is gone; so is this, once its write answered */
	abx__env_state *prev, *next;
	char *namespace_, *name;
	abx__event *events; /* the oldest first */
	size_t event_count;
	json_object *pools; /* read at start: by name, until their pools took them over */
	bool stored, writing, dirty;
	abx__timer timer;
};

/* events.c */
void abx__events_done(abx__env_state *state);
json_object *abx__events_write(const abx__env_state *state);
int abx__events_read(abx__env_state *state, json_object *list);

#endif

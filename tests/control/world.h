/*
 * world.h - control with everything around it faked, and time turned by hand.
 */
#ifndef TESTS_CONTROL_WORLD_H
#define TESTS_CONTROL_WORLD_H

#include "control/control.h"
#include "engine/fake.h"
#include "fake-runtime.h"
#include "fake-store.h"
#include "turned-clock.h"

#define IDLE_IMAGE "idle:1"
#define OWN_IMAGE "work:1"

typedef struct world {
	turned_clock clock;
	abx__store *store;
	abx__engine *engine;
	fake_runtime runtime;
	abx__control *control;
	abx__log log;
	unsigned wakes;
	const abx__capacity *capacity; /* of the next boot; NULL: none */
	size_t history_most;           /* of the next boot; 0: the default */
} world;

/* What one call answered. */
typedef struct answer {
	int calls;
	int r;
	char message[512], hint[256];
	char id[32], pod[64], image[64];
	enum abx__sandbox_state state;
	json_object *object; /* owned */
} answer;

void world_init(world *w);
void world_done(world *w);
/* Makes control on what there is and starts it. */
void world_boot(world *w);
/* The process dies: nothing in flight is reported, control is gone. */
void world_crash(world *w);

/* One thing happens; false when nothing is due now. */
bool world_step(world *w);
/* Everything that is due now happens. */
void world_settle(world *w);
/* Time passes, with everything that comes due in between. */
void world_pass(world *w, int64_t ms);

void answer_done(answer *a);
void on_object(void *userdata, int r, json_object *object, const abx_error *err);
void on_done(void *userdata, int r, const abx_error *err);
void on_claim(void *userdata, int r, const abx__sandbox_rec *sandbox,
	      const abx_error *err);

json_object *template_doc(const char *name, const char *idle_image);
/* One member of 1 CPU and 2Gi with so many replicas; overrides: JSON or NULL; autoscaling
 * group: JSON or NULL. */
json_object *env_doc(const char *name, int replicas, const char *overrides,
		     const char *group);
/* Applied, warm. */
void world_template(world *w, const char *name);
void world_env(world *w, const char *name, int replicas, const char *overrides,
	       const char *group);
answer world_apply(world *w, json_object *doc, bool create);

int claim_start(world *w, const char *env, answer *a, abx__claim **ret,
		abx_error **reterr);
int claim_with(world *w, const abx__claim_request *request, answer *a, abx__claim **ret,
	       abx_error **reterr);
/* Claims from the env and waits; the id is in the answer. */
answer world_claim(world *w, const char *env);
answer world_kill(world *w, const char *id);
abx__pool_counts world_counts(world *w, const char *env);
/* The label of the Pod, or NULL. */
const char *pod_label(world *w, const char *pod, const char *key);
const char *pod_annotation(world *w, const char *pod, const char *key);
json_object *condition_of(json_object *doc, const char *type);

#endif

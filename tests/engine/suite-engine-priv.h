/*
 * suite-engine-priv.h - what the suite's files share: the last view of each Pod, one
 * call's answer, calls that wait for it.
 */
#ifndef TESTS_ENGINE_SUITE_ENGINE_PRIV_H
#define TESTS_ENGINE_SUITE_ENGINE_PRIV_H

#include <criterion/criterion.h>
#include <string.h>

#include "suite-engine.h"

#define MAX_PODS 8
#define NS "suite"

/* The last view of a Pod, copied. */
typedef struct suite_view {
	bool known;
	char name[64];
	uint64_t version, generation, running_generation;
	enum abx__pod_phase phase;
	bool ready;
	enum abx__pod_activity activity;
	char image[256], running_image[256], reason[64], message[512];
	char labels[512], annotations[512]; /* "key=value\n" each: nothing to free */
	int events;
} suite_view;

/* What start() has reported. */
extern struct suite_watch {
	suite_view pods[MAX_PODS];
	bool synced;
	int events_before_sync;
} suite_watch;

typedef struct suite_answer {
	int calls;
	int r;
	int fd;
	suite_view pod;
	char message[512];
} suite_answer;

/* A statement expression, so that the message shows the condition. */
#define WAIT_FOR(condition)                                                        \
	do {                                                                       \
		for (int turns = 0; !(condition) && turns < s->max_turns; turns++) \
			s->turn(s);                                                \
		cr_assert(condition, "did not come: " #condition);                 \
	} while (0)

/* The Pod's view; a new one when none is known. */
suite_view *suite_seen(const char *name);
/* Of "key=value\n" lines. NULL when absent; lives until the fourth call after this one.
 */
const char *suite_value_of(const char *map, const char *key);

/* Completions; `userdata` is a suite_answer. */
void suite_on_pod_done(void *userdata, int r, const abx__pod *pod, const abx_error *err);
void suite_on_done(void *userdata, int r, const abx_error *err);
void suite_on_fd(void *userdata, int r, int fd, const abx_error *err);
/* Waits for one completion that did not come inside the call. */
void suite_await(suite_engine *s, suite_answer *a);

void suite_start(suite_engine *s);
suite_answer suite_create(suite_engine *s, const char *name, const char *image);
/* Takes over `pod_template`. */
suite_answer suite_create_with(suite_engine *s, const char *name,
			       json_object *pod_template, const abx__map *labels,
			       const abx__map *annotations);
/* Created, and waited for. */
suite_view *suite_ready_pod(suite_engine *s, const char *name, const char *image);
suite_answer suite_change(suite_engine *s, const char *name, const abx__pod_change *c);
suite_answer suite_delete(suite_engine *s, const char *name);

#endif

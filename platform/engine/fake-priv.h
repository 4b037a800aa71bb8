/*
 * fake-priv.h - what the fake engine is made of. See fake.h.
 *
 * Invariants: everything that happens is an event in one list ordered by (due, sequence);
 * a step takes the first that is due; callbacks run from a step only. Allocation failures
 * of the seam are reported as ABX_ENOMEM through `done`, as a real engine would.
 */
#ifndef ABX_ENGINE_FAKE_PRIV_H
#define ABX_ENGINE_FAKE_PRIV_H

#include "engine/fake.h"

typedef struct fake_pod {
	struct fake_pod *next;
	char *namespace_, *name;
	uint64_t version;
	int64_t created_ms;
	abx__map labels, annotations;
	char *image, *running_image, *message;
	char reason[32];
	uint64_t generation, running_generation;
	enum abx__pod_phase phase;
	bool ready;
	int exit_code;
	enum abx__pod_activity wanted, activity;
	bool deleting;
	bool dirty; /* to be reported */
} fake_pod;

enum event_type {
	EV_APPLY,    /* a write becomes durable */
	EV_REPORT,   /* a write is reported done */
	EV_START,    /* a container start ends, well or badly */
	EV_ACTIVITY, /* a Pod does what it is to do */
	EV_GONE,
	EV_SYNCED,
	EV_CLOSED,
	EV_CONNECT,
	EV_SNAPSHOT,
	EV_SNAPSHOT_GONE,
	EV_STATS,
	EV_LOG,
};

typedef struct event {
	struct event *next;
	enum event_type type;
	int64_t due;
	uint64_t generation;
	enum abx__fake_op op;
	char *namespace_, *name;
	/* create and change */
	abx__map set_labels, set_annotations;
	char **remove_labels, **remove_annotations;
	char *image;
	uint64_t expect_version;
	enum abx__pod_activity activity;
	bool restart;
	int inject; /* code to fail with */
	/* report */
	int r;
	abx_error *err;
	abx__pod_done pod_done;
	abx__engine_done done;
	abx__fd_done fd_done;
	abx__snapshot_done snapshot_done;
	abx__stats_done stats_done;
	void (*closed)(void *userdata);
	void *userdata;
} event;

typedef struct bad_image {
	struct bad_image *next;
	char *image;
	char reason[32];
} bad_image;

typedef struct fake_engine {
	abx__engine base;
	abx__fake_engine_options options;
	fake_pod *pods, **pods_tail;
	size_t pod_count;
	event *events;
	uint64_t version;
	bad_image *bad_images;
	bad_image *snapshots; /* their ids */
	struct {
		unsigned skip, count;
		int code;
		unsigned calls;
	} ops[ABX__FAKE_OP_COUNT];
	void (*on_pod)(void *userdata, const abx__pod *pod);
	void (*on_synced)(void *userdata, int r, const abx_error *err);
	void *userdata;
} fake_engine;

/* ---- fake-pods.c ---- */

int64_t abx__fake_now_ms(const fake_engine *e);
int abx__fake_strings_copy(const char *const *list, char ***ret);
void abx__fake_event_free(event *ev);
event *abx__fake_event_new(enum event_type type, const char *namespace_,
			   const char *name);
void abx__fake_event_add(fake_engine *e, event *ev, int64_t delay_ms);
fake_pod *abx__fake_find_pod(const fake_engine *e, const char *namespace_,
			     const char *name);
abx__pod abx__fake_view_of(const fake_pod *p);
void abx__fake_announce(fake_engine *e, fake_pod *p);
void abx__fake_pod_free(fake_pod *p);
int abx__fake_schedule_activity(fake_engine *e, fake_pod *p, int64_t delay_ms);
int abx__fake_schedule_start(fake_engine *e, fake_pod *p, int64_t delay_ms);

#endif

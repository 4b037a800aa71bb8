/*
 * fake.h - an engine that runs nothing: Pods in memory, time from a clock tests turn,
 * failures and delays on demand. It fills control/port-engine.h and passes the port's
 * suite, so what control/ does against it, it does against the real ones.
 *
 * Nothing happens by itself: abx__fake_engine_step() lets the next due thing happen. A
 * write is applied (durable) in one step and reported in later ones, so a test can "kill"
 * the controller between the two with abx__fake_engine_detach() and start another one on
 * the same Pods.
 */
#ifndef ABX_ENGINE_FAKE_H
#define ABX_ENGINE_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "base/clock.h"
#include "control/port-engine.h"

enum abx__fake_op {
	ABX__FAKE_CREATE,
	ABX__FAKE_CHANGE,
	ABX__FAKE_DELETE,
	ABX__FAKE_SNAPSHOT,
	ABX__FAKE_STAT,
	ABX__FAKE_OP_COUNT,
};

typedef struct abx__fake_engine_options {
	const abx__clock *clock;
	int64_t write_ms;    /* until a write is durable */
	int64_t start_ms;    /* from there until the container is ready */
	int64_t swap_ms;     /* a swap or restart */
	int64_t delete_ms;   /* from acceptance until a Pod is gone */
	int64_t snapshot_ms; /* until a snapshot is made */
	int64_t freeze_ms;   /* until a Pod stands still, is stopped or thawed */
} abx__fake_engine_options;

/* What every fake container has written. */
#define ABX__FAKE_LOG                                                                  \
	"first light\n"                                                                \
	"{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"msg\":\"low\"}\n" \
	"ERROR: it broke\n"

int abx__fake_engine_new(const abx__fake_engine_options *options, abx__engine **ret,
			 abx_error **reterr);
void abx__fake_engine_free(abx__engine *engine);

/* Lets one due thing happen; false when nothing is due by the clock. */
bool abx__fake_engine_step(abx__engine *engine);
/* Monotonic time of the next thing; INT64_MAX: none. */
int64_t abx__fake_engine_next_ms(const abx__engine *engine);

/* The controller died: nothing is reported to it any more; writes that were not yet
   applied are lost. start() may be called again, by another. */
void abx__fake_engine_detach(abx__engine *engine);

/* After `skip` more operations of this kind, `count` of them fail with `code`, nothing
 * applied. */
void abx__fake_engine_fail(abx__engine *engine, enum abx__fake_op op, unsigned skip,
			   unsigned count, int code);
/* The options of these names, from now on. */
void abx__fake_engine_set_snapshot(abx__engine *engine, int64_t snapshot_ms);
void abx__fake_engine_set_freeze(abx__engine *engine, int64_t freeze_ms);
/* Containers of this image do not start: reason "ErrImagePull" or the like. NULL reason:
 * they do again. */
int abx__fake_engine_bad_image(abx__engine *engine, const char *image,
			       const char *reason);
/* The running container ends: the Pod fails with this reason and exit code. */
void abx__fake_engine_kill_container(abx__engine *engine, const char *namespace_,
				     const char *name, const char *reason, int exit_code);
/* The Pod vanishes, as when somebody else deleted it. */
void abx__fake_engine_vanish(abx__engine *engine, const char *namespace_,
			     const char *name);

/* What there is, for a test to look at; the view lives until the next step. False past
 * the end. */
bool abx__fake_engine_at(const abx__engine *engine, size_t index, abx__pod *ret);
size_t abx__fake_engine_snapshots(const abx__engine *engine);
size_t abx__fake_engine_count(const abx__engine *engine);
/* How many operations of a kind were asked for. */
unsigned abx__fake_engine_calls(const abx__engine *engine, enum abx__fake_op op);

#endif

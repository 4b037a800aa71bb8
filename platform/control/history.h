/*
 * history.h - sandboxes that ended, and lists over those that live and those that ended
 * (native-api.md, sections 6.2, 6.3 and 11).
 *
 * What ended keeps a record: in memory, by id and by claim time, and as a document of the
 * store (kind "SandboxRecord"), so that a restart has it again. The number and the age of
 * records are bounded (abx__control_config.history_*). A record is written before its Pod
 * is given back, so no sandbox that a caller knew of ends without one; like Pods it
 * survives a killed process and may be lost with the machine's power.
 *
 * Reads answer at once; what they give is borrowed until the loop turns.
 */
#ifndef ABX_CONTROL_HISTORY_H
#define ABX_CONTROL_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "base/map.h"
#include "control/sandboxes.h"

#define ABX__KIND_RECORD "SandboxRecord"

/* The last four come from records only. */
enum abx__sandbox_status {
	ABX__STATUS_STARTING,
	ABX__STATUS_RUNNING,
	ABX__STATUS_PAUSED, /* on its way in or out of it, too */
	ABX__STATUS_STOPPING,
	ABX__STATUS_FAILED,    /* its Pod broke, or it never came up */
	ABX__STATUS_COMPLETED, /* its caller ended it */
	ABX__STATUS_CANCELED,  /* ended before it was started */
	ABX__STATUS_RELEASED,  /* the platform ended it: idle timeout, deleted env */
	ABX__STATUS_COUNT,
};

/* "Starting", ...; NULL past the end. */
const char *abx__sandbox_status_name(enum abx__sandbox_status status);
/* False: no such name (case counts). "Pending" is one that nothing ever has: it gives
   ABX__STATUS_COUNT. */
bool abx__sandbox_status_parse(const char *name, enum abx__sandbox_status *ret);
enum abx__sandbox_status abx__sandbox_status_of(const abx__sandbox_rec *live);

typedef struct abx__ended {
	const char *id;
	const char *namespace_, *env, *pool, *pod, *template_, *image;
	const char *team, *user; /* owner; NULL: none */
	enum abx__sandbox_status status;
	/* Wall clock. started_ms 0: it never ran. */
	int64_t claimed_ms, started_ms, ended_ms;
	/* A code (IdleTimeout, StartupTimeout, OOMKilled, ErrImagePull, PodFailed, ...)
	   and a text for people; NULL: none. */
	const char *failure_reason, *failure_message;
	int exit_code;           /* of its main container; -1: none, or by a signal */
	int64_t idle_timeout_ms; /* 0: none */
	int64_t cpu_milli, memory_bytes;
	abx__map metadata; /* the caller's own */
} abx__ended;

struct abx__control;

/* Any spelling of the id; NULL: no record. A sandbox that lives again under the id after
   a crash has none to show. */
const abx__ended *abx__control_ended(const struct abx__control *control, const char *id);

typedef struct abx__sandbox_query {
	const char *namespace_, *env, *pool, *team, *user; /* exact; NULL: any */
	unsigned statuses; /* bits (1u << enum abx__sandbox_status); 0: all */
} abx__sandbox_query;

/* One of the two. */
typedef struct abx__sandbox_item {
	const abx__sandbox_rec *live;
	const abx__ended *ended;
} abx__sandbox_item;

/* Newest claim first, then by id. Skips `offset` and fills `items` with up to `limit`;
   `*ret_total` is how many match in all. ABX_ENOMEM. */
int abx__control_sandbox_list(struct abx__control *control,
			      const abx__sandbox_query *query, size_t offset,
			      size_t limit, abx__sandbox_item *items, size_t *ret_count,
			      size_t *ret_total, abx_error **reterr);

/* A new object {total, byStatus: {Running: n, ...}, byNamespace: {ns: n}} over the
   ones that match: live ones, and with `ended` the records too. */
int abx__control_sandbox_statistics(struct abx__control *control,
				    const abx__sandbox_query *query, bool ended,
				    json_object **ret, abx_error **reterr);

#endif

/*
 * snapshots.h - the snapshots there are: images made of sandboxes, to create others from.
 * Kept by control/, read on the same thread.
 */
#ifndef ABX_CONTROL_SNAPSHOTS_H
#define ABX_CONTROL_SNAPSHOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#define ABX__SNAPSHOT_TAG_DEFAULT "default"
#define ABX__SNAPSHOT_NAME_MAX 128
#define ABX__SNAPSHOTS_MAX 1000 /* a server keeps */

typedef struct abx__snapshot_rec {
	const char *id;
	const char *namespace_; /* of the sandbox it was made of */
	const char *sandbox;
	const char *env;
	const char *team, *user; /* owner; may be NULL */
	const char *name;        /* NULL: it has none */
	const char *tag;
	int64_t created_ms; /* wall clock */
	int64_t bytes;      /* that it takes on disk beside what it stands on */
	bool hidden;        /* of a fork: not listed, and gone after it */
} abx__snapshot_rec;

typedef void (*abx__snapshot_cb)(void *userdata, int r, const abx__snapshot_rec *snapshot,
				 const abx_error *err);

#endif

/*
 * sqlite.h - the store port filled with SQLite: one file, one worker thread, one process.
 *
 * Durability: WAL. What was acknowledged has been synced to disk (synchronous=FULL), so
 * it survives both a killed process and a power cut; except documents of `light_kinds`,
 * which survive a killed process only. Operations that queue up while the worker commits
 * share the next commit.
 */
#ifndef ABX_STORE_SQLITE_H
#define ABX_STORE_SQLITE_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <uv.h>

#include "control/port-store.h"

#define ABX__STORE_BODY_CAP ((size_t)4 << 20) /* of one document; more is ABX_ETOOBIG */

typedef struct abx__store_sqlite_options {
	const char *dir; /* an existing directory of ours: holds store.db and store.lock,
			    mode 0600 */
	uint64_t max_bytes; /* of the database; 0: 1 GiB. Past it writes are
			       ABX_EEXHAUSTED */
	size_t queue_cap;   /* operations waiting; 0: 65536. Past it they complete with
			       ABX_EEXHAUSTED */
	/* Documents of these kinds (NULL-terminated) tell of what ends with the machine's
	   power (Pods), or of what may be missed after it (records, events): their writes
	   do not wait for the disk. NULL: none. Outlives the store. */
	const char *const *light_kinds;
} abx__store_sqlite_options;

/* Opens (or makes) the database, migrates it, takes the directory's lock and starts the
   worker. Blocks for the time that takes: call it before the loop runs. ABX_ESTATE:
   another process has this directory; ABX_EUNSUPPORTED: written by a newer version;
   ABX_EIO. Closed through its ops. */
int abx__store_sqlite_open(uv_loop_t *loop, const abx__store_sqlite_options *options,
			   abx__store **ret, abx_error **reterr);

#endif

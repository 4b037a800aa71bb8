/*
 * history-priv.h - what the files of the history share. Inside of control/ only.
 */
#ifndef ABX_CONTROL_HISTORY_PRIV_H
#define ABX_CONTROL_HISTORY_PRIV_H

#include <stdlib.h>

#include "control/internal.h"

typedef struct abx__name {
	UT_hash_handle hh;
	size_t uses;
	char text[];
} abx__name;

typedef struct abx__record {
	abx__ended rec; /* first: lookups hand it out */
	abx__history *history;
	struct abx__record *prev, *next; /* by end, the oldest first */
	UT_hash_handle hh;               /* by id */
	char id[ABX__SANDBOX_ID_LEN + 1];
	bool writing, creating, unsaved, dropped;
} abx__record;

/* What a filter looks at, side by side in memory. */
typedef struct abx__history_entry {
	abx__record *record;
	const char *namespace_, *env, *pool, *team, *user; /* the history's own strings */
	enum abx__sandbox_status status;
} abx__history_entry;

struct abx__history {
	abx__control *control;
	abx__name *names;
	abx__record *by_id, *oldest;
	abx__history_entry *order;
	size_t count, size;
	abx__timer timer;
};

/* The history's own copy of a name; NULL: no record has it. */
const char *abx__history_known(const abx__history *history, const char *text);
/* Claimed earlier comes first; at the same moment, the later id. */
int abx__history_compare(int64_t claimed_a, const char *id_a, int64_t claimed_b,
			 const char *id_b);

/* record.c: as it is stored. NULL: out of memory. */
json_object *abx__record_document(const abx__ended *ended);
/* Strings are the document's; the metadata is the callee's. ABX_EPROTO, ABX_ENOMEM. */
int abx__record_read(json_object *doc, const char *namespace_, const char *id,
		     abx__ended *ret);

#endif

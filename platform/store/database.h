/*
 * database.h - the SQL of the SQLite store: documents in one STRICT table, a version
 * counter, migrations by user_version. Used by one thread at a time; knows nothing of
 * loops or queues.
 */
#ifndef ABX_STORE_DATABASE_H
#define ABX_STORE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "control/port-store.h"

typedef struct abx__database abx__database;

/* Documents whose strings are owned; freed with abx__docs_free(). */
void abx__docs_free(abx__doc *docs, size_t count);
int abx__doc_copy(const abx__doc *src, abx__doc *dst);

int abx__database_open(const char *path, uint64_t max_bytes, abx__database **ret,
		       abx_error **reterr);
void abx__database_close(abx__database *db);

/* `synced`: what is committed survives a power cut; without, a killed process only. */
int abx__database_begin(abx__database *db, bool synced, abx_error **reterr);
int abx__database_commit(abx__database *db, abx_error **reterr);
void abx__database_rollback(abx__database *db);
/* The version of the last write in the open transaction or, outside one, committed. */
uint64_t abx__database_version(const abx__database *db);

/* Inside a transaction. `*ret` is one document, or for list an array. The second kind of
   failure, where the transaction is lost with it, sets `*ret_broken`. */
int abx__database_get(abx__database *db, const char *kind, const char *namespace_,
		      const char *name, abx__doc **ret, bool *ret_broken,
		      abx_error **reterr);
int abx__database_list(abx__database *db, const char *kind, const char *namespace_,
		       abx__doc **ret, size_t *ret_count, bool *ret_broken,
		       abx_error **reterr);
int abx__database_create(abx__database *db, const char *kind, const char *namespace_,
			 const char *name, int64_t now_ms, const char *body,
			 size_t body_len, abx__doc **ret, bool *ret_broken,
			 abx_error **reterr);
int abx__database_update(abx__database *db, const char *kind, const char *namespace_,
			 const char *name, uint64_t version, const char *body,
			 size_t body_len, abx__doc **ret, bool *ret_broken,
			 abx_error **reterr);
/* `*ret` is the document as it was, with the version of its removal. */
int abx__database_remove(abx__database *db, const char *kind, const char *namespace_,
			 const char *name, uint64_t version, abx__doc **ret,
			 bool *ret_broken, abx_error **reterr);

#endif

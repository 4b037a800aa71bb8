/*
 * local.h - the engine port filled by this machine: Pod documents in the store (kind
 * "Pod"), carried out by podd.
 *
 * The document is what should be; podd says what is. Each change is one store update,
 * then podd is told; after a crash of either side the documents are compared with what
 * podd has, and podd is brought into line: a Pod without a document is deleted, a
 * document without a Pod is created, an older generation is swapped.
 */
#ifndef ABX_ENGINE_LOCAL_LOCAL_H
#define ABX_ENGINE_LOCAL_LOCAL_H

#include <agentbox/error.h>
#include <uv.h>

#include "base/log.h"
#include "control/port-engine.h"
#include "control/port-store.h"

/* `store` must outlive the engine; `log` may be NULL. start() connects to podd at
   `podd_socket` and keeps at it; on_synced comes when the documents are read and podd has
   answered. Closed, and freed, through ops->close. */
int abx__engine_local_new(uv_loop_t *loop, abx__store *store, const char *podd_socket,
			  const abx__log *log, abx__engine **ret, abx_error **reterr);

#endif

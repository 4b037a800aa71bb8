/*
 * podd-client.h - agentboxd's end of podd's socket: calls with answers, events, and
 * coming back after podd's death.
 *
 * While podd is away calls with `hold` wait for it, others fail with ABX_EUNAVAILABLE.
 * Every call completes once, later, on the loop.
 */
#ifndef ABX_ENGINE_LOCAL_PODD_CLIENT_H
#define ABX_ENGINE_LOCAL_PODD_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>
#include <uv.h>

#include "base/log.h"
#include "engine/podd/proto.h"

typedef struct abx__podd_client abx__podd_client;

/* `body` is borrowed; `fd` is the callee's to close when it is not -1. */
typedef void (*abx__podd_reply)(void *userdata, int r, json_object *body, int fd,
				const abx_error *err);

typedef struct abx__podd_client_events {
	void (*on_hello)(void *userdata,
			 json_object *hello); /* connected; events follow, SYNCED last */
	void (*on_event)(void *userdata, uint16_t type, json_object *body);
	void (*on_down)(void *userdata);
} abx__podd_client_events;

int abx__podd_client_new(uv_loop_t *loop, const char *path, const abx__log *log,
			 const abx__podd_client_events *events, void *userdata,
			 abx__podd_client **ret, abx_error **reterr);
void abx__podd_client_start(abx__podd_client *client);
/* Takes a reference of `body`. */
void abx__podd_client_call(abx__podd_client *client, uint16_t type, json_object *body,
			   bool hold, abx__podd_reply done, void *userdata);
/* Calls under way complete with ABX_ECANCELED; `done` when the handles are gone, and the
 * client with them. */
void abx__podd_client_close(abx__podd_client *client, void (*done)(void *userdata),
			    void *userdata);

#endif

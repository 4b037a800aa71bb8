/*
 * podd-peer.h - a blocking client of podd's socket, for tests: calls, and the last word
 * about each Pod.
 */
#ifndef TESTS_ENGINE_PODD_PEER_H
#define TESTS_ENGINE_PODD_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "podd-fixture.h"

typedef struct podd_peer {
	podd_fixture podd;
	int fd;
	uint64_t seq;
	bool synced;
	bool may_hang_up; /* podd may close the connection: calls give ABX_EUNAVAILABLE */
	json_object *pods;      /* name -> its last POD event */
	json_object *snapshots; /* id -> its SNAPSHOT_DONE */
	json_object *reply;
	int reply_fd;
} podd_peer;

void podd_peer_open(podd_peer *p); /* with a fixture of its own, or skips the test */
void podd_peer_close(podd_peer *p);
void podd_peer_connect(podd_peer *p); /* again, after podd was killed */
void podd_peer_disconnect(podd_peer *p);
/* Gives r; `reply`, `reply_fd` hold the rest. Takes over `body`. */
int podd_peer_call(podd_peer *p, uint16_t type, json_object *body);
const char *podd_peer_message(podd_peer *p);
json_object *podd_peer_body(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* CREATE in namespace "t"; `container` is JSON of the main container without its name,
 * `more` of other spec fields. */
int podd_peer_create(podd_peer *p, const char *name, const char *image,
		     const char *container, const char *more);
int podd_peer_swap(podd_peer *p, const char *name, const char *image, uint64_t generation,
		   bool restart);
void podd_peer_delete(podd_peer *p, const char *name); /* and waits until it is gone */
/* Waits until the Pod is ready at `generation`, or failed; gives its phase. */
const char *podd_peer_settle(podd_peer *p, const char *name, uint64_t generation);
const char *podd_peer_get(podd_peer *p, const char *name, const char *key);
int podd_peer_get_int(podd_peer *p, const char *name, const char *key);
/* Runs `script` as the main container's program and gives what it printed; lives until
 * the next call. */
const char *podd_peer_run(podd_peer *p, const char *name, const char *image,
			  const char *script, const char *more);
/* Below the state folder; lives until the eighth call after this one. */
const char *podd_peer_path(podd_peer *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The id of the Pod's first process, from outside. */
int podd_peer_init_pid(podd_peer *p, const char *name);
bool podd_peer_has(podd_peer *p, const char *name);
/* False when podd refused or hung up. */
bool podd_peer_try_delete(podd_peer *p, const char *name);
void podd_peer_wait_clean(podd_peer *p);

#endif

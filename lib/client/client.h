/*
 * client.h - the client behind <agentbox/client.h>: one loop, one HTTP client, the
 * operations under way.
 *
 * The owner's reference ends with abx_client_free(), which closes the loop at once;
 * handles made from the client hold references too, so that their memory stays good and
 * their calls answer ABX_ESTATE.
 */
#ifndef ABX_CLIENT_CLIENT_H
#define ABX_CLIENT_CLIENT_H

#include <agentbox/agentbox.h>
#include <uv.h>

#include "base/log.h"
#include "client/op.h"
#include "client/settings.h"
#include "io/http-client.h"

/* Something to do in the next turn of the loop, embedded in what wants it. */
typedef struct abx__kick {
	struct abx__kick *next;
	void (*fn)(struct abx__kick *kick);
	bool is_queued;
} abx__kick;

struct abx_client {
	unsigned refs;
	bool is_closed;
	bool is_busy;     /* a callback may be running */
	bool free_wanted; /* abx_client_free() was called inside one */
	uv_loop_t loop;
	uv_async_t async;
	uv_timer_t wait_timer;
	abx__http_client *http;
	abx__settings settings;
	abx__log log;
	abx_op *ops;
	size_t op_count;
	abx_op *first_done, *last_done;
	abx__kick *kicks;
};

abx_client *abx__client_ref(abx_client *client);
void abx__client_unref(abx_client *client);
/* Something a caller may wait for happened: the turn that runs does not go on to wait.
   libuv runs timers before it polls, so without this a call that ends in a timer would be
   noticed at the next event only. */
void abx__client_happened(abx_client *client);
/* One turn of the loop and the completions that are ready. */
void abx__client_turn(abx_client *client, uv_run_mode mode);

/* Queues `kick`, once however often; abx__kick_cancel() before its memory goes. */
void abx__kick_add(abx_client *client, abx__kick *kick);
void abx__kick_cancel(abx_client *client, abx__kick *kick);

/* local.c: the socket of the local engine, found or started. */
int abx__local_find(const char *state_dir, bool may_start, const abx__log *log,
		    char **ret, abx_error **reterr);

#endif

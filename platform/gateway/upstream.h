/*
 * upstream.h - connections to ports of Pods: made through the engine port, and those to
 * the runtime's port kept for the next request. Shared by the passages of the data plane
 * and by arming.
 *
 * A connection is kept per Pod (namespace and name); at most KEPT of them, each for a
 * while. What is kept for a Pod is dropped when its container is replaced, and what was
 * in use then is not kept afterwards.
 */
#ifndef ABX_GATEWAY_UPSTREAM_H
#define ABX_GATEWAY_UPSTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <uv.h>

#include "control/port-engine.h"
#include "io/http-conn.h"

typedef struct abx__upstreams abx__upstreams;
typedef struct abx__upstream_ticket abx__upstream_ticket;

/* One connection, in use by one caller or kept. */
typedef struct abx__upstream {
	abx__http_conn *conn;
	bool was_kept;  /* it served before: the peer may have closed it meanwhile */
	bool forgotten; /* not to be kept: its Pod's container is another one now */
	/* the rest is upstream.c's */
	abx__upstreams *pool;
	struct abx__upstream *prev, *next; /* in use: of the pool; kept: of the host */
	struct upstream_host *host;        /* kept under it; NULL while in use */
	uint64_t kept_at;
	char *namespace_, *pod;
	uint16_t port;
} abx__upstream;

typedef struct abx__upstreams_options {
	uv_loop_t *loop;
	abx__engine *engine;
	size_t piece_bytes; /* read buffer, shared */
	unsigned kept_most; /* per Pod */
	uint64_t kept_ms;
	uint64_t connect_ms; /* for one try */
	/* A descriptor to speak plain to, in the place of one that speaks TLS, which it
	   takes over on success. */
	int (*secure)(void *userdata, int fd, int *ret_fd);
	void *userdata;
} abx__upstreams_options;

/* How often a closed port is tried, and the waits between: `first_wait_ms`, then twice,
   three times as long... Once `until` (loop time, 0: none) has passed there is no further
   try. */
typedef struct abx__upstream_tries {
	unsigned count;
	uint64_t first_wait_ms;
	uint64_t until;
	bool tls; /* the port speaks TLS */
} abx__upstream_tries;

abx__upstreams *abx__upstreams_new(const abx__upstreams_options *opts);
/* `done` runs from the loop once nothing of it is left; tickets must have been cancelled
 * and connections given back. */
void abx__upstreams_close(abx__upstreams *pool, void (*done)(void *userdata),
			  void *userdata);

/* A kept connection to this Pod, or NULL. */
abx__upstream *abx__upstream_take(abx__upstreams *pool, const char *namespace_,
				  const char *pod, uint16_t port);
/* Connects. `done` runs once from the loop, unless the ticket was cancelled first: ABX_OK
   with a connection, or the engine's code with its error; ABX_ETIMEDOUT. NULL when out of
   memory (`done` does not run). The ticket is gone when `done` runs. */
abx__upstream_ticket *abx__upstream_connect(
	abx__upstreams *pool, const char *namespace_, const char *pod, uint16_t port,
	const abx__upstream_tries *tries,
	void (*done)(void *userdata, int r, abx__upstream *up, const abx_error *err),
	void *userdata);
void abx__upstream_cancel(abx__upstream_ticket *ticket);
/* Gives a connection back: kept when `keep` and it may be used again, else closed. */
void abx__upstream_release(abx__upstream *up, bool keep);
void abx__upstreams_forget(abx__upstreams *pool, const char *namespace_, const char *pod);
/* Closes what was kept too long. */
void abx__upstreams_sweep(abx__upstreams *pool);
size_t abx__upstreams_kept(const abx__upstreams *pool);

#endif

/*
 * gateway.h - the data plane: a request for a sandbox's port is carried to that port and
 * the answer back, both streamed with back pressure at constant memory. Connections come
 * from the engine port; ids are looked up in control's table.
 *
 * agentboxd's on_request asks abx__gateway_match() first and gives what matches to
 * abx__gateway_serve(), which answers it whatever it is.
 */
#ifndef ABX_GATEWAY_GATEWAY_H
#define ABX_GATEWAY_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <uv.h>

#include "base/log.h"
#include "control/port-engine.h"
#include "control/port-runtime.h"
#include "control/sandboxes.h"
#include "io/http-server.h"

typedef struct abx__gateway abx__gateway;

typedef struct abx__gateway_options {
	uv_loop_t *loop;
	abx__engine *engine;       /* started; closed after the gateway */
	abx__sandboxes *sandboxes; /* outlives the gateway */
	const abx__log *log;       /* NULL: silence */
	/* NULL: nobody needs a key. Else asked for every request, before the sandbox is
	   told of it: ABX_OK lets it pass, anything else is 401. `key` is the value of
	   AGENTBOX-API-KEY or X-API-Key, NULL when absent; neither header reaches the
	   sandbox then. Whether a request may go without (loopback, a Unix socket, the
	   sandbox's own access token in X-Access-Token) is for the callback to say. */
	int (*check_key)(void *userdata, const abx__http_req *req, const char *key,
			 const abx__sandbox_rec *sandbox);
	/* NULL: a paused sandbox is refused. Else asked to make it run: ABX_OK when
	   `done` will run once, later, and the request waits for it; a negative code
	   (ABX_EDENIED) when traffic may not. */
	int (*resume)(void *userdata, const char *id,
		      void (*done)(void *done_userdata, int r, const abx_error *err),
		      void *done_userdata);
	void *userdata;
	/* For ports that speak TLS (httpsPorts): a descriptor to speak plain to, in the
	   place of `fd`, which is taken over on success. NULL: there are no such ports.
	   What it gives is used until the gateway is closed. */
	int (*secure)(void *userdata, int fd, int *ret_fd);
	void *secure_userdata;
	const char *domain; /* names below it are the platform's (route.h); NULL: none
			       known; borrowed */
	/* For an answer to begin, and for what waits to be taken by the sandbox; 0: 640
	   s. A stream under way may be silent for as long as it likes. */
	uint64_t idle_timeout_ms;
	uint64_t connect_ms; /* for one try; 0: 10 s */
	uint64_t retry_ms; /* waits 1, 2, 3, 4 times this between five tries; 0: 100 ms */
	size_t piece_bytes; /* read at once, and queued at most; 0: 256 KiB */
	unsigned kept_most; /* idle connections kept to a runtime's port; 0: 8 */
	uint64_t kept_ms;   /* for how long; 0: 60 s */
} abx__gateway_options;

int abx__gateway_new(const abx__gateway_options *opts, abx__gateway **ret,
		     abx_error **reterr);
/* Breaks off what is under way and gives everything back; `done` runs from the loop. The
   HTTP servers whose requests it serves may be closed before or after, but must still
   turn. */
void abx__gateway_close(abx__gateway *gateway, void (*done)(void *userdata),
			void *userdata);

/* Is this request for a sandbox's port? */
bool abx__gateway_match(const abx__gateway *gateway, const abx__http_req *req);
void abx__gateway_serve(abx__gateway *gateway, abx__http_req *req);

/* Arming over the same connections; lives as long as the gateway. */
abx__runtime *abx__gateway_runtime(abx__gateway *gateway);

#endif

/*
 * serve.h - the face of the room: the native API and the E2B API over control/, behind
 * keys. For src/agentboxd.
 *
 * The caller owns the listeners and tells the surfaces apart (docs/architecture.md, Wire
 * surfaces): it hands over the requests that are not the data plane's.
 */
#ifndef ABX_SERVE_SERVE_H
#define ABX_SERVE_SERVE_H

#include <stdbool.h>

#include <agentbox/error.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/control.h"
#include "io/http-server.h"
#include "serve/keys.h"

/* What the E2B SDKs switch features by (e2b-control-api.md, section 9): the version envd
   itself tells, with all that is gated up to it. */
#define ABX__SERVE_ENVD_VERSION "0.6.13"

#define ABX__SERVE_BODY_MAX ((size_t)1 << 20)
#define ABX__SERVE_BODY_TIMEOUT_MS 30000

typedef struct abx__serve abx__serve;

typedef struct abx__serve_options {
	uv_loop_t *loop;
	abx__control *control; /* all borrowed; outlive serve */
	abx__keys *keys;
	abx__engine *engine; /* for ports of Pods: the terminal, commands */
	const char *cluster_id;
	const char
		*base_url; /* where the gateway answers, as in "http://127.0.0.1:8080" */
	/* Where people look at this cluster, for links in refusals; NULL: not known. */
	const char *console_url;
	/* What console sessions are signed with (jwt.h); NULL: there are none. */
	const abx__secret *jwt_secret;
	const abx__clock *clock;
	const abx__log *log; /* NULL: silence */
	/* What a request's idle timeout may be at most; 0: anything. An env's own default
	 * is its owner's. */
	int64_t max_timeout_ms;
} abx__serve_options;

int abx__serve_new(const abx__serve_options *opts, abx__serve **ret, abx_error **reterr);
/* After the servers are closed and control has completed everything. `done` from the
 * loop; frees the room. */
void abx__serve_close(abx__serve *serve, void (*done)(void *userdata), void *userdata);

/* Answers any request: `/v1/...`, `/ping`, `/openapi.json` and `/metrics` as the native
   API, all else, also below `/e2b` and
   `/agent-sandbox/api/e2b`, as the E2B API. `e2b_only`: the E2B listener's. */
void abx__serve_request(abx__serve *serve, abx__http_req *req, bool e2b_only);
/* Does the request carry a valid key, or come over the Unix socket? For the data plane
 * off loopback. */
bool abx__serve_is_authenticated(abx__serve *serve, const abx__http_req *req);
/* 401 in the data plane's words. */
void abx__serve_refuse(abx__serve *serve, abx__http_req *req);

#endif

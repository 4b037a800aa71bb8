/*
 * pod-call.h - one HTTP request to a port of a Pod, over a connection of its own from the
 * engine port. Inside of serve/ only.
 *
 * `done` runs once, later, from the loop; after abx__pod_call_cancel() neither it nor
 * `on_data` runs.
 */
#ifndef ABX_SERVE_POD_CALL_H
#define ABX_SERVE_POD_CALL_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "serve/serve.h"

typedef struct abx__pod_call abx__pod_call;

typedef struct abx__pod_call_options {
	const char *namespace_, *pod;
	uint16_t port;
	const char *method, *path; /* as they go into the request line */
	const char *headers;       /* "Name: value\r\n" each; may be "" */
	const void *body;          /* copied */
	size_t body_len;
	uint64_t timeout_ms; /* for the whole of it; 0: none */
	size_t most;         /* of the answer's body, when it is collected */
	/* NULL: the body is collected for `done`. */
	void (*on_data)(void *userdata, int status, const char *data, size_t len);
	/* ABX_OK with a whole answer of any status; the engine's code, ABX_EIO,
	   ABX_EPROTO, ABX_ETIMEDOUT, ABX_ETOOBIG, ABX_ENOMEM. */
	void (*done)(void *userdata, int r, int status, const char *body, size_t len,
		     const abx_error *err);
	void *userdata;
} abx__pod_call_options;

/* NULL: out of memory, `done` does not run. */
abx__pod_call *abx__pod_call_start(abx__serve *serve, const abx__pod_call_options *opts);
void abx__pod_call_cancel(abx__pod_call *call);
/* No `on_data` until resumed. Not from `on_data` of a call that may be cancelled in it.
 */
void abx__pod_call_pause(abx__pod_call *call);
void abx__pod_call_resume(abx__pod_call *call);
/* At the end of the room: every call ends with ABX_ECANCELED. */
void abx__pod_calls_abort(abx__serve *serve);

#endif

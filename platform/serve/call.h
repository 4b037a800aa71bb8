/*
 * call.h - one API request on its way: who asks, what was matched, how it is answered.
 * Inside of serve/ only.
 *
 * A call lives until its exchange is over and nothing it started is pending
 * (abx__call_hold/drop). Answering a call whose peer is gone does nothing. Every answer
 * carries X-AgentBox-Server-Version; an error has the shape of the call's surface: {code,
 * message} or {error, errorCode?, detail?}.
 */
#ifndef ABX_SERVE_CALL_H
#define ABX_SERVE_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/meter.h"
#include "io/http-conn.h"
#include "io/json.h"
#include "model/schema.h"
#include "serve/approvals.h"
#include "serve/exec-tokens.h"
#include "serve/serve.h"
#include "serve/wire.h"

typedef struct abx__call abx__call;

enum abx__surface { ABX__SURFACE_E2B, ABX__SURFACE_NATIVE };

enum abx__endpoint_flags {
	ABX__BODY = 1,       /* takes a JSON object */
	ABX__BODY_MAYBE = 2, /* the same, or nothing, which counts as {} */
	ABX__BODY_OWN =
		4, /* the handler knows better than the schema what to say about it */
};

/* What answers an operation of the generated route tables. One without an endpoint is
 * 501, by its name. */
typedef struct abx__endpoint {
	const char *operation;
	unsigned flags;
	void (*handle)(abx__call *call);
} abx__endpoint;

#define ABX__CALL_PARAMS 3

struct abx__call {
	abx__serve *serve;
	abx__http_req *req; /* NULL once the exchange is over */
	const abx__route *route;
	const abx__endpoint *endpoint;
	enum abx__surface surface;
	abx__identity who;              /* a copy of the call's own */
	char *path;                     /* as matched, undecoded, without a prefix */
	char *params[ABX__CALL_PARAMS]; /* decoded {parts} of the path */
	json_object *body;
	unsigned refs;
	int64_t began_ms; /* monotonic */
	size_t pending;   /* parts of an answer that are waited for */
	bool reading;
	int64_t deadline_ms; /* for the body */
	abx__claim *claim;   /* waiting; cancelled when the peer goes */
	char *subject;       /* the env or pool a claim is for, as the caller wrote it */
	/* The exchange is over: what goes on for it is to end. Runs once. */
	void (*on_gone)(abx__call *call);
	void *gone_userdata;
	char *created; /* a sandbox made by this call, killed when its answer was not
			  taken */
	abx__call *prev, *next;
};

struct abx__serve {
	uv_loop_t *loop;
	abx__control *control;
	abx__keys *keys;
	abx__engine *engine;
	abx__approvals *approvals;
	const abx__secret *jwt_secret; /* NULL: no console sessions */
	char *cluster_id;
	char *base_url;
	char *console_url; /* NULL: not known */
	const abx__clock *clock;
	const abx__log *log;
	abx__meters *meters;       /* of requests; see prometheus.h */
	int64_t max_timeout_ms;    /* 0: none */
	abx__call *calls;          /* open ones */
	uv_timer_t timer;          /* while a body is being read */
	uv_timer_t sweep;          /* while approvals wait */
	unsigned handles;          /* that are not closed yet */
	abx__http_scratch scratch; /* of connections to Pods */
	struct abx__pod_call *pod_calls;
	struct abx__sandbox_process *processes;
	abx__exec_tokens exec_tokens;
	void (*closed)(void *userdata);
	void *closed_userdata;
};

/* Something with a handle of the loop that the room's end waits for. */
void abx__serve_retain(abx__serve *serve);
void abx__serve_release(abx__serve *serve);

/* NULL: out of memory, the request was aborted. */
abx__call *abx__call_new(abx__serve *serve, abx__http_req *req,
			 enum abx__surface surface);
void abx__call_hold(abx__call *call);
void abx__call_drop(abx__call *call);

/* Takes `value`; NULL is out of memory (500). */
void abx__call_json(abx__call *call, int status, json_object *value);
void abx__call_empty(abx__call *call, int status);
/* An answer that is not JSON; copied. */
void abx__call_text(abx__call *call, int status, const char *content_type,
		    const char *text, size_t len);
/* The header every answer has, for one that is streamed. */
void abx__call_version(abx__call *call);
/* A completion of control/ for a held call (userdata): 204, or the error. */
void abx__call_on_gone(void *userdata, int r, const abx_error *err);
void abx__call_fail(abx__call *call, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As fail with `detail` (taken, may be NULL), which only the native surface has. */
void abx__call_fail_detail(abx__call *call, int status, json_object *detail,
			   const char *message);
/* The same with an `errorCode`, which only the native surface has. */
void abx__call_fail_code(abx__call *call, int status, const char *code,
			 json_object *detail, const char *message);
/* The status that belongs to the error's code, its message and hint. */
void abx__call_error(abx__call *call, const abx_error *err);
int abx__call_status_of(const abx_error *err);
void abx__call_nomem(abx__call *call);
/* The sandbox {id} of the path, if it runs or is paused and the caller may see it; else
 * the call is answered 404. */
const abx__sandbox_rec *abx__call_sandbox(abx__call *call);
/* Is an idle timeout (0: none) what this server allows? False: the call was answered. */
bool abx__call_timeout_fits(abx__call *call, int64_t ms);
/* A header of the answer to come; ignored when the peer is gone. */
void abx__call_header(abx__call *call, const char *name, const char *value);

extern const abx__endpoint abx__e2b_endpoints[];
extern const size_t abx__e2b_endpoint_count;
extern const abx__endpoint abx__native_endpoints[];
extern const size_t abx__native_endpoint_count;
/* Routes outside the specification (native-api.md, section 14). */
extern const abx__route abx__native_extra_routes[];
extern const size_t abx__native_extra_route_count;

/* Who the request's credential belongs to, as a copy to be done by the caller whatever is
   returned: ABX_EUNAUTHENTICATED with the text for 401, ABX_ENOMEM. The Unix socket needs
   none. */
int abx__auth_check(const abx__serve *serve, const abx__http_req *req, abx__identity *ret,
		    abx_error **reterr);
/* X-Impersonate-Team and -User of an admin: `who` becomes that person. */
int abx__auth_impersonate(const abx__serve *serve, const abx__http_req *req,
			  abx__identity *who, abx_error **reterr);

/* The approval gate (native-api.md, section 3). False: the call was answered. */
bool abx__gate_pass(abx__call *call, const char *body, size_t len);

/* Matches `path` (undecoded) against the pattern; fills params on a match. 1, 0 or
   ABX_ENOMEM; a part that does not decode is no match. */
void abx__route_params_free(char *params[ABX__CALL_PARAMS]);
int abx__route_match(const char *pattern, const char *path,
		     char *params[ABX__CALL_PARAMS]);

#endif

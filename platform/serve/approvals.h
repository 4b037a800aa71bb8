/*
 * approvals.h - writes of an agent's key wait here for a person: what is asked for, what
 * was decided, and how long it counts (native-api.md, section 3). A state machine on a
 * clock: it reads no request and writes no document.
 *
 * A request lives 15 minutes. Approved for once it lets the same call (method, path and
 * body) of the same person pass one time within them; approved for a session it becomes a
 * grant of two hours for that operation in that session; approved for the key it is
 * written on the key, by the owner of this. Ends are kept by the monotonic clock, so that
 * turning the wall clock neither opens nor closes a gate; what is shown is wall time.
 */
#ifndef ABX_SERVE_APPROVALS_H
#define ABX_SERVE_APPROVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "base/clock.h"
#include "base/id.h"

#define ABX__APPROVAL_LIFE_MS (15 * 60 * INT64_C(1000))
#define ABX__APPROVAL_SESSION_MS (2 * 3600 * INT64_C(1000))
#define ABX__APPROVAL_SWEEP_MS (30 * INT64_C(1000))
/* Waiting at one time: of one key, and of all. Grants of sessions: of all. */
#define ABX__APPROVALS_PER_KEY 100
#define ABX__APPROVALS_MAX 10000
#define ABX__APPROVAL_GRANTS_MAX 10000
#define ABX__APPROVAL_SESSION_LEN 128
#define ABX__APPROVAL_ID_SIZE 24 /* apr_ and grn_ with 16 hex digits */

/* ---- the catalogue ---- */

typedef struct abx__gated {
	const char *method, *path; /* of the route, with {parameters} */
	const char *operation;     /* "env.delete" */
	const char *summary;       /* "Delete an environment" */
	bool once_only;
	bool refused; /* never, for an agent's key */
} abx__gated;

/* NULL: such a write is not gated. */
const abx__gated *abx__gated_find(const char *method, const char *route_path);

/* ---- requests ---- */

enum abx__approval_status {
	ABX__APPROVAL_PENDING,
	ABX__APPROVAL_APPROVED,
	ABX__APPROVAL_DENIED,
	ABX__APPROVAL_EXPIRED,
};

enum abx__approval_scope {
	ABX__SCOPE_NONE, /* not decided, or denied */
	ABX__SCOPE_ONCE,
	ABX__SCOPE_SESSION,
	ABX__SCOPE_KEY,
};

/* Strings are its own. */
typedef struct abx__approval {
	char id[ABX__APPROVAL_ID_SIZE];
	char *team, *user, *key_id;
	char *session_id; /* "" when the caller named none */
	const abx__gated *gated;
	char *path;                                 /* the concrete one */
	char *summary;                              /* with the names in parentheses */
	int64_t created_ms, expires_ms, decided_ms; /* wall clock; 0: not decided */
	enum abx__approval_status status;
	enum abx__approval_scope scope;
	char *decided_by; /* NULL: not decided */
	/* the rest is approvals.c's */
	uint8_t fingerprint[ABX__SHA256_LEN];
	int64_t until_ms; /* monotonic */
	bool spent;
	struct abx__approval *prev, *next; /* newest first */
} abx__approval;

/* For a session; strings are its own. */
typedef struct abx__approval_grant {
	char id[ABX__APPROVAL_ID_SIZE];
	char *team, *user, *key_id, *session_id, *granted_by;
	const abx__gated *gated;
	int64_t created_ms, expires_ms; /* wall clock */
	int64_t until_ms;               /* monotonic */
	struct abx__approval_grant *prev, *next;
} abx__approval_grant;

typedef struct abx__approvals abx__approvals;

int abx__approvals_new(const abx__clock *clock, abx__approvals **ret, abx_error **reterr);
void abx__approvals_free(abx__approvals *approvals);

/* A write that wants to pass. Borrowed for the call. */
typedef struct abx__gate_call {
	const abx__gated *gated;
	const char *path;         /* the concrete one */
	const char *const *names; /* values of the route's parameters, NULL at the end */
	const void *body;
	size_t body_len;
	const char *team, *user, *key_id;
	const char *session_id; /* NULL or "": none */
} abx__gate_call;

/* 1: it may pass, and what let it pass once is spent; 0: it waits, as *ret says, which
   lives until the next call; ABX_EEXHAUSTED: too many wait; ABX_EINVAL: a session id that
   is too long; ABX_ENOMEM. A grant on the key is for the caller to look for first. */
int abx__approvals_check(abx__approvals *approvals, const abx__gate_call *call,
			 const abx__approval **ret, abx_error **reterr);

/* The request of that person; NULL. */
abx__approval *abx__approvals_find(abx__approvals *approvals, const char *id,
				   const char *team, const char *user);
/* That person's, newest first; `after` NULL: the first. NULL past the end. */
const abx__approval *abx__approvals_next(const abx__approvals *approvals,
					 const abx__approval *after, const char *team,
					 const char *user);
const abx__approval_grant *abx__approvals_next_grant(const abx__approvals *approvals,
						     const abx__approval_grant *after,
						     const char *team, const char *user);

/* May it be decided so? ABX_EINVAL with the text for the caller. For a key's scope this
   is asked before the grant is written. */
int abx__approvals_may(abx__approvals *approvals, const abx__approval *request,
		       bool approve, enum abx__approval_scope scope, abx_error **reterr);
/* Decides; with session scope the grant is made. The codes of _may(), ABX_EEXHAUSTED,
   ABX_ENOMEM; then nothing has changed. */
int abx__approvals_decide(abx__approvals *approvals, abx__approval *request, bool approve,
			  enum abx__approval_scope scope, const char *by,
			  abx_error **reterr);
/* ABX_ENOTFOUND: no such grant of that person. */
int abx__approvals_revoke(abx__approvals *approvals, const char *id, const char *team,
			  const char *user);
/* Forgets what is over. Every ABX__APPROVAL_SWEEP_MS. */
void abx__approvals_sweep(abx__approvals *approvals);
bool abx__approvals_is_empty(const abx__approvals *approvals);

#endif

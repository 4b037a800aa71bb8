/*
 * control.h - decisions: templates and envs become pools, pools become Pods, an idle Pod
 * becomes a sandbox and goes back. This is the face of the room for serve/ and
 * src/agentboxd.
 *
 * Control opens no socket, reads no clock and runs no SQL: it is given a store, an
 * engine, a runtime and a clock. All calls on one thread. Reads answer at once from
 * memory. A writing call returns ABX_OK when it was accepted: then `done` runs exactly
 * once, later, never from inside the call; or a negative code (with `reterr`) when it was
 * refused: then `done` never runs. What `done` is given is borrowed until it returns.
 *
 * Documents are json_object in the shape of api/crds.yaml: {apiVersion, kind, metadata,
 * spec}, with `status` on the way out. Documents passed in are copied. serve/ has
 * validated their shape; control checks the rules between fields and objects, and refuses
 * what it cannot honour (ABX_EUNSUPPORTED naming the field).
 *
 * Time: the owner calls abx__control_tick() when abx__control_next_deadline_ms() is
 * reached, and is told through `wake` when that moment moved nearer. After
 * abx__control_start() has completed, claims are taken.
 */
#ifndef ABX_CONTROL_CONTROL_H
#define ABX_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "control/capacity.h"
#include "control/events.h"
#include "control/history.h"
#include "control/port-engine.h"
#include "control/port-runtime.h"
#include "control/port-store.h"
#include "control/sandboxes.h"
#include "control/snapshots.h"

typedef struct abx__control abx__control;
typedef struct abx__claim abx__claim;

#define ABX__CONTROL_TOKEN_KEY_LEN 32

typedef struct abx__control_config {
	const char *cluster_id; /* this cluster's id; required */
	/* Access tokens are HMACs of the sandbox id under this key
	   (ABX__CONTROL_TOKEN_KEY_LEN bytes), as E2B's are: nothing to store, and the
	   same again after a restart. Required. */
	const uint8_t *token_key;
	size_t queue_cap;           /* claims waiting per pool; 0: 1024 */
	int64_t startup_timeout_ms; /* when neither claim nor pool says; 0: 2 minutes */
	int64_t arm_timeout_ms;     /* 0: what is left of the startup timeout */
	/* Records of sandboxes that ended: so many, for so long (control/history.h); a
	   sixteenth more at times, as they are dropped some at once. 0: 10,000, 7 days */
	size_t history_most;
	int64_t history_age_ms;
	abx__store *store; /* all borrowed; outlive control */
	abx__engine *engine;
	abx__runtime *runtime;
	const abx__clock *clock;
	const abx__log *log;           /* NULL: silence */
	const abx__capacity *capacity; /* NULL: no instance types, no quotas */
	/* Text that only this server can read again, as long as it belongs to `name`: for
	   what a sandbox was created with and its documents must not tell. NULL: a
	   sandbox that is started from its files has no variables. */
	int (*seal)(void *userdata, const char *name, const char *plain, size_t len,
		    char **ret, abx_error **reterr);
	int (*unseal)(void *userdata, const char *name, const char *sealed,
		      abx__secret **ret, abx_error **reterr);
	void *seal_userdata;
	/* The next deadline moved nearer; re-arm the timer. Do not call back into control
	 * from it. */
	void (*wake)(void *userdata);
	void *wake_userdata;
} abx__control_config;

typedef void (*abx__control_done)(void *userdata, int r, const abx_error *err);
/* `object` is the object as written, with status; borrowed. NULL on failure and after a
 * delete. */
typedef void (*abx__object_done)(void *userdata, int r, json_object *object,
				 const abx_error *err);
typedef void (*abx__claim_done)(void *userdata, int r, const abx__sandbox_rec *sandbox,
				const abx_error *err);

int abx__control_new(const abx__control_config *config, abx__control **ret,
		     abx_error **reterr);
/* Reads the store, adopts the Pods the engine has, gives back what no caller was told
 * about. */
int abx__control_start(abx__control *control, abx__control_done done, void *userdata,
		       abx_error **reterr);
/* Stops deciding. Waiting claims complete with ABX_ECANCELED; writes in flight complete
   first; Pods go on running. `done` last; free after it. */
void abx__control_close(abx__control *control, void (*done)(void *userdata),
			void *userdata);
void abx__control_free(abx__control *control);

/* Monotonic; INT64_MAX: nothing to wait for. In the past: call tick now. */
int64_t abx__control_next_deadline_ms(const abx__control *control);
void abx__control_tick(abx__control *control);

abx__sandboxes *abx__control_sandboxes(abx__control *control);
/* Last activity + idle timeout, wall clock; 0: no end. */
int64_t abx__sandbox_end_ms(const abx__sandbox_rec *sandbox);

/* --- Templates (cluster-scoped)
 * ------------------------------------------------------------------------------ */

/* Creates (create true: ABX_EEXISTS when there) or replaces (ABX_ENOTFOUND when absent).
   A metadata.resourceVersion in the document must be the present one (ABX_ECONFLICT). The
   engine's word on the Pod template (ABX_EUNSUPPORTED, e.g. naming a runtimeClassName) is
   asked before anything changes. */
int abx__control_template_put(abx__control *control, json_object *doc, bool create,
			      abx__object_done done, void *userdata, abx_error **reterr);
/* ABX_ENOTFOUND; ABX_ESTATE while an env is bound to it (named). */
int abx__control_template_delete(abx__control *control, const char *name,
				 abx__control_done done, void *userdata,
				 abx_error **reterr);
/* A new reference, with status. ABX_ENOTFOUND, ABX_ENOMEM. */
int abx__control_template_get(abx__control *control, const char *name, json_object **ret,
			      abx_error **reterr);
/* A new JSON array, by name. */
int abx__control_template_list(abx__control *control, json_object **ret,
			       abx_error **reterr);

/* --- Envs
 * ------------------------------------------------------------------------------------------------------
 */

/* The whole SandboxEnv, members of the local cluster and autoscaling groups included.
   Missing member names and scaling groups are derived (crds.md section 6); given names
   must agree. ABX_EEXISTS; ABX_EINVAL (unknown template, name, member rules);
   ABX_EUNSUPPORTED (overrides.gateway, overrides.volumes, mode OnDemandJob). */
int abx__control_env_create(abx__control *control, json_object *doc,
			    abx__object_done done, void *userdata, abx_error **reterr);
/* Replaces the spec. templateRef and mode are fixed: another value is ABX_EINVAL naming
   the one in force. metadata.resourceVersion, when given, must be the present one.
   Segments of other clusters are kept as they come. */
int abx__control_env_update(abx__control *control, json_object *doc,
			    abx__object_done done, void *userdata, abx_error **reterr);
/* Its pools and their Pods go with it, claimed ones too. Completes when durable; Pods
 * vanish after. */
int abx__control_env_delete(abx__control *control, const char *namespace_,
			    const char *name, abx__control_done done, void *userdata,
			    abx_error **reterr);
int abx__control_env_get(abx__control *control, const char *namespace_, const char *name,
			 json_object **ret, abx_error **reterr);
/* SandboxEnvSummary objects (native-api.md, section 7.3) by namespace and name, of this
   owner (team and user NULL: anybody's; an env without one is everybody's). Skips
   `offset`, gives at most `limit`; `*ret_total` is how many there are in all. */
int abx__control_env_summaries(abx__control *control, const char *namespace_,
			       const char *team, const char *user, size_t offset,
			       size_t limit, json_object **ret, size_t *ret_total,
			       abx_error **reterr);
/* namespace_ NULL: all. */
int abx__control_env_list(abx__control *control, const char *namespace_,
			  json_object **ret, abx_error **reterr);

/* --- Member pools: written in the env's document
 * --------------------------------------------------------------- */

/* `member` is a spec.clusters[].members[] entry ({config, spec: {replicas}}), without a
   name or with the derived one. Completes with the SandboxPool. ABX_ENOTFOUND (env),
   ABX_EEXISTS, ABX_EINVAL. */
int abx__control_pool_create(abx__control *control, const char *namespace_,
			     const char *env, json_object *member, abx__object_done done,
			     void *userdata, abx_error **reterr);
/* The same shape, desired state: missing bounds and updateStrategy are cleared, a missing
   spec.replicas leaves the size alone. Another instanceType, multiplier, inlineResources,
   scalingGroup, labels or annotations: ABX_EINVAL naming the value in force. `replicas`
   of an enabled group: ABX_EINVAL unless unchanged. */
int abx__control_pool_update(abx__control *control, const char *namespace_,
			     const char *env, const char *pool, json_object *member,
			     abx__object_done done, void *userdata, abx_error **reterr);
int abx__control_pool_delete(abx__control *control, const char *namespace_,
			     const char *env, const char *pool, abx__control_done done,
			     void *userdata, abx_error **reterr);
/* SandboxPool objects: metadata (labels env, scaling-group, template-hash, owner), spec,
   status. The member entry of the env's document is in abx__control_env_get(). env NULL:
   whichever env has it. */
int abx__control_pool_get(abx__control *control, const char *namespace_, const char *env,
			  const char *pool, json_object **ret, abx_error **reterr);
int abx__control_pool_list(abx__control *control, const char *namespace_, const char *env,
			   json_object **ret, abx_error **reterr);

typedef struct abx__pool_counts {
	int replicas; /* wanted */
	int idle, unavailable_idle, running, starting, stopping, failed;
	int pending; /* claims waiting */
} abx__pool_counts;

/* Of one pool, or with pool NULL summed over the env. */
int abx__control_counts(abx__control *control, const char *namespace_, const char *env,
			const char *pool, abx__pool_counts *ret, abx_error **reterr);

/* --- Autoscaling groups: written in the env's document
 * --------------------------------------------------------- */

/* Desired state of the group (crds.md 2.3, without or with its own name). ABX_ENOTFOUND:
   no member names the group. ABX_EINVAL: Aggressive without maxReplicas, min > max.
   Completes with the group, defaults filled in. */
int abx__control_group_put(abx__control *control, const char *namespace_, const char *env,
			   const char *group, json_object *policy, abx__object_done done,
			   void *userdata, abx_error **reterr);
/* Back to the disabled default; gone when no member names it. */
int abx__control_group_delete(abx__control *control, const char *namespace_,
			      const char *env, const char *group, abx__control_done done,
			      void *userdata, abx_error **reterr);

/* --- Claims
 * ------------------------------------------------------------------------------------------------------
 */

typedef struct abx__claim_request {
	const char *namespace_;
	const char *name;  /* an env */
	bool or_pool;      /* `CLUSTER::NAME`: when no env has the name, a pool may */
	const char *image; /* main image instead of the env's; NULL: none */
	const char *scaling_group;  /* only members of it; case ignored; NULL: any */
	int64_t startup_timeout_ms; /* from now to ready; 0: the pool's, else the config's
				     */
	int64_t idle_timeout_ms;    /* 0: the pool's, else none; -1: none; whole seconds,
				       rounded up */
	int64_t idle_default_ms;    /* when neither says; 0: none */
	int64_t max_wait_ms;        /* in the queue; 0: the startup timeout */
	bool no_wait;               /* no idle Pod now: ABX_EEXHAUSTED */
	bool secure;                /* give envd an access token */
	const abx__ingress *ingress; /* NULL: public */
	const char *team, *user;     /* owner; may be NULL */
	bool admin;                  /* may claim another team's env */
	abx__lifecycle lifecycle;
	const char *snapshot_id;  /* runs that, instead of an image; NULL: none */
	const char *snapshot;     /* and shows it as its template */
	const abx__map *metadata; /* NULL: none */
	const abx__map *env_vars; /* NULL: none */
	const abx__map *labels, *annotations; /* on the Pod while claimed; NULL: none. Not
						 of our prefixes */
} abx__claim_request;

/* At once: ABX_ENOTFOUND (no such env), ABX_EDENIED (another team's), ABX_EINVAL (the
   image is the idle image, bad reference), ABX_EUNAVAILABLE (no member, or none in the
   group), ABX_EEXHAUSTED (queue full, or no_wait; see abx__control_retry_after_s()).
   Later: ABX_EEXHAUSTED (no Pod became free in time), ABX_ETIMEDOUT (Pod not ready in
   time), ABX_EINVAL (the image asked for does not run; message from the engine),
   ABX_EUNAVAILABLE, ABX_ENOMEM; on success the sandbox is durable and armed. `*ret_claim`
   (may be NULL) is valid until `done` runs or it is cancelled. */
int abx__control_claim(abx__control *control, const abx__claim_request *request,
		       abx__claim_done done, void *userdata, abx__claim **ret_claim,
		       abx_error **reterr);
/* The caller went away: `done` does not run any more; a Pod already taken is released
 * (reason Canceled). */
void abx__control_claim_cancel(abx__control *control, abx__claim *claim);
/* What to put in Retry-After after ABX_EEXHAUSTED. */
int abx__control_retry_after_s(const abx__control *control, const char *namespace_,
			       const char *env);

/* --- Sandboxes: see also control/sandboxes.h
 * ------------------------------------------------------------------- */

/* Completes when the Pod's release (or deletion) is durable; the restart goes on after
   it. Any spelling of the id. ABX_ENOTFOUND: unknown, or being killed already. `reason`:
   "Completed", "Canceled", "Released", "Failed". */
int abx__control_kill(abx__control *control, const char *id, const char *reason,
		      abx__control_done done, void *userdata, abx_error **reterr);
/* Nothing of the sandbox runs any more: with its memory kept, or its files only. Its idle
   clock stands still. What is asked for while it is on its way from one to the other
   waits for its turn. ABX_ENOTFOUND; ABX_ESTATE: it is paused already, or starting.
   Later: ABX_ETIMEDOUT (it did not stand still; it runs on), ABX_ENOTFOUND (it was killed
   meanwhile). */
int abx__control_pause(abx__control *control, const char *id, bool keep_memory,
		       abx__control_done done, void *userdata, abx_error **reterr);
/* Runs again, with a new idle timeout (0: the old one). Without memory it starts anew
   from its files, also when its memory was kept. ABX_ENOTFOUND; ABX_ESTATE: it runs.
   Later: ABX_EUNAVAILABLE, ABX_ETIMEDOUT (it did not start; it stays paused). */
int abx__control_resume(abx__control *control, const char *id, int64_t timeout_ms,
			bool without_memory, abx__claim_done done, void *userdata,
			abx_error **reterr);
/* Somebody calls a sandbox that does not run. Completes when it does. ABX_EDENIED: it is
   not one that traffic resumes. */
int abx__control_wake(abx__control *control, const char *id, abx__control_done done,
		      void *userdata, abx_error **reterr);
/* The sandbox's files, to create others from; it stands still while they are copied.
   Completes when it is durable. `name` NULL: it has none; an older one with the same
   name, tag and owner is deleted. `hidden`: for the caller alone, and gone after a
   restart. ABX_ENOTFOUND, ABX_ESTATE (paused, or one is being made), ABX_EEXHAUSTED
   (there are as many as are kept); later the engine's too. */
int abx__control_snapshot(abx__control *control, const char *sandbox_id, const char *name,
			  const char *tag, bool hidden, abx__snapshot_cb done,
			  void *userdata, abx_error **reterr);
/* The variables a sandbox was created with. ABX_ENOTFOUND. */
int abx__control_env_vars(abx__control *control, const char *id, abx__map *ret,
			  abx_error **reterr);
/* Nothing is created from it any more; what was lives on. ABX_ENOTFOUND. */
int abx__control_snapshot_delete(abx__control *control, const char *id,
				 abx__control_done done, void *userdata,
				 abx_error **reterr);
/* NULL: unknown, or not made yet. Borrowed until the loop turns. */
const abx__snapshot_rec *abx__control_snapshot_find(const abx__control *control,
						    const char *id);
/* The one made before `after` (NULL: the newest), hidden ones left out; NULL past the
 * end. */
const abx__snapshot_rec *abx__control_snapshot_next(const abx__control *control,
						    const abx__snapshot_rec *after);
/* A sandbox that was created from it, and lives; NULL. */
const abx__sandbox_rec *abx__control_snapshot_user(const abx__control *control,
						   const char *id);
/* ABX_ESTATE while it is paused. From now on the idle timeout is `timeout_ms` (0: none;
   rounded up to seconds) and now counts as activity. With `extend_only` nothing changes
   when that would end the sandbox sooner. Completes when durable, with the record. */
int abx__control_set_timeout(abx__control *control, const char *id, int64_t timeout_ms,
			     bool extend_only, abx__claim_done done, void *userdata,
			     abx_error **reterr);

/* What the sandbox's main container has written since it was last started: a descriptor
   to read to its end, the callee's. ABX_ENOTFOUND at once: no such sandbox; later:
   nothing was written yet. */
int abx__control_open_log(abx__control *control, const char *id, abx__fd_done done,
			  void *userdata, abx_error **reterr);

#endif

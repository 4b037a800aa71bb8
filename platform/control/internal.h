/*
 * internal.h - what the files of this room share. Nothing outside platform/control
 * includes it.
 *
 * Ownership: control owns templates, envs, pools, Pods, claims and sandboxes through the
 * hashes below. A pool outlives its env until its last Pod is gone; a Pod struct outlives
 * the Pod until its write and arming in flight have answered. One write per Pod is in
 * flight at a time (pod->write); what comes up meanwhile is a wish (pod->want_*) that
 * abx__pod_settle() turns into the next write.
 */
#ifndef ABX_CONTROL_INTERNAL_H
#define ABX_CONTROL_INTERNAL_H

#include "base/alloc.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) abx__malloc(size)
#define uthash_free(ptr, size) abx__free(ptr)
#include <uthash.h>
#include <utlist.h>

#include "base/id.h"
#include "control/autoscale.h"
#include "control/control.h"
#include "control/meters.h"
#include "control/timers.h"
#include "model/keys.h"
#include "model/names.h"
#include "model/revision.h"

#define ABX__ANNOTATION_SECURE ABX__KEY_PREFIX "secure"
#define ABX__RUNTIME_PORT 49983
#define ABX__LAST_ACTIVE_PERSIST_MS 30000

typedef struct abx__template abx__template;
typedef struct abx__env abx__env;
typedef struct abx__pool abx__pool;
typedef struct abx__podrec abx__podrec;
typedef struct abx__sandbox abx__sandbox;
typedef struct abx__write abx__write;
typedef struct abx__move abx__move;
typedef struct abx__metrics abx__metrics;
typedef struct abx__metrics_asking abx__metrics_asking;
typedef struct abx__snapshot abx__snapshot;
typedef struct abx__history abx__history;
typedef struct abx__env_state abx__env_state;

/* What templates and envs have in common: a stored document. */
typedef struct abx__object {
	char *namespace_, *name, *uid;
	uint64_t version;
	int64_t created_ms;
	json_object *doc; /* {metadata: {labels, annotations, generation}, spec} */
} abx__object;

struct abx__template {
	abx__object object;
	UT_hash_handle hh; /* by name */
};

/* One condition of a status: the transition time moves with the status value only. */
typedef struct abx__condition {
	bool known, value;
	const char *reason;
	int64_t since_ms;
} abx__condition;

struct abx__env {
	abx__object object;
	abx__control *control;
	char *key;
	UT_hash_handle hh; /* by key */
	abx__pool *pools;  /* doubly linked, by member order */
	abx__timer timer;  /* a sync that found no memory is tried again */
	abx__env_state *state;
	const char *team, *user; /* its owner, in the document; NULL: nobody */
	abx__condition ready, consistent;
};

/* What an env's document and its template say about one member; made by members.c. */
typedef struct abx__pool_config {
	char *name;
	char *group; /* NULL: outside autoscaling */
	char *template_;
	char *template_version;
	char *team, *user;                 /* the env's owner; NULL: none */
	json_object *spec;                 /* the SandboxPool's spec, materialised */
	json_object *labels, *annotations; /* its caller's own; NULL: none */
	json_object *pod_template; /* spec.template with the image a Pod rests on */
	char *default_image;       /* what a claim without an image runs */
	char *rest_image;          /* what an unclaimed Pod runs */
	bool refuse_idle_image;    /* policy IdleImage: a claim may not ask for the rest
				      image */
	char revision[ABX__REVISION_SIZE];
	int replicas;
	int min, max; /* ABX__NO_CAP: none */
	int priority, up_priority;
	int64_t startup_timeout_ms, idle_timeout_ms; /* 0: not said */
	bool auto_update;
	int max_unavailable; /* Pods, or percent */
	bool max_unavailable_is_percent;
	int64_t cpu_milli, memory_bytes;
	char *instance_type, *quota; /* what its quota counts; NULL: none */
	int multiplier;
	uint16_t runtime_port;
	char *readiness;          /* the runtime's probe for the engine; NULL: none */
	abx__scale_policy policy; /* of its group */
} abx__pool_config;

enum abx__podrec_state {
	ABX__PODREC_IDLE, /* unclaimed: ready or not */
	ABX__PODREC_STARTING,
	ABX__PODREC_RUNNING,
	ABX__PODREC_STOPPING, /* going back to idle, or being deleted */
	ABX__PODREC_FAILED,
	ABX__PODREC_STATES,
};

struct abx__pool {
	abx__control *control;
	char *key; /* "namespace/name" */
	char *namespace_;
	char *env_name;
	abx__env *env; /* NULL once it is being taken down */
	abx__pool *prev, *next;
	UT_hash_handle hh;
	abx__pool_config config;
	bool deleting;
	abx__podrec *pods; /* doubly linked */
	abx__podrec *idle; /* ready ones, the last to come first */
	abx__claim *queue; /* waiting, first come first */
	int waiting;
	int counts[ABX__PODREC_STATES];
	int ready_idle;
	int total, being_deleted, creating;
	abx__timer timer; /* reconcile and evaluate; also the ends of back-offs */
	bool reconcile;
	int64_t create_after_ms; /* back-off after a failed create */
	int64_t create_backoff_ms;
	int64_t fail_backoff_ms; /* between replacements of failed Pods */
	char *problem; /* the last create or Pod failure, for people; NULL: none */
	abx__timer scale_timer;
	abx__scale_state scale;
	bool scale_writing;
	int64_t last_create_ms; /* a sandbox was asked for */
	int64_t created_ms;     /* wall */
	char *scale_message;    /* why the last attempt to grow came to less; NULL */
	int64_t stuck_told_ms;  /* that a scale-down cannot go on; 0: not */
	bool rolling;           /* as last told */
	enum { ABX__TOLD_NOTHING, ABX__TOLD_READY, ABX__TOLD_DEGRADED } told;
	abx__condition available, scaling, degraded, admitted_cond;
	int admitted;    /* replicas its quota has room for; INT_MAX: none limits it */
	int quota_total; /* Pods when its quota was last shared out */
};

enum abx__podrec_write {
	ABX__WRITE_NONE,
	ABX__WRITE_CREATE,
	ABX__WRITE_CLAIM,   /* labels, image */
	ABX__WRITE_START,   /* phase running: from here on the sandbox survives us */
	ABX__WRITE_RELEASE, /* labels off, restart */
	ABX__WRITE_PERSIST, /* timeouts and last activity */
	ABX__WRITE_MOVE,    /* paused, or running again */
	ABX__WRITE_DELETE,
};

struct abx__podrec {
	abx__control *control;
	abx__pool *pool; /* NULL: an orphan on its way out */
	char *key, *namespace_, *name;
	UT_hash_handle hh;
	abx__podrec *prev, *next;           /* in the pool */
	abx__podrec *idle_prev, *idle_next; /* among the ready idle ones */
	bool in_idle_list;
	enum abx__podrec_state state;
	enum abx__podrec_write write; /* in flight */
	bool arming;
	bool gone;     /* the Pod is; the struct waits for answers */
	bool held;     /* an answer is being taken in: do not settle under it */
	bool deleting; /* delete accepted or wanted */
	bool want_delete, want_release, want_persist, want_move;
	/* the engine's view */
	uint64_t version, generation, running_generation;
	enum abx__pod_phase phase;
	enum abx__pod_activity activity;
	bool ready;
	/* ready counts from this generation on; UINT64_MAX while a write that restarts is
	 * in flight */
	uint64_t target_generation;
	char revision[ABX__REVISION_SIZE];
	char *image; /* that should run */
	char reason[32];
	int exit_code;          /* of the main container's last end; -1: none */
	char *message;          /* of the engine, for people; NULL: none */
	uint64_t stale_version; /* a claim met a conflict at this one: wait for news of
				   the Pod */
	int64_t idle_since_ms;
	int64_t released_ms;  /* given back, not idle yet; 0: not on that way */
	int64_t doomed_at_ms; /* a scale-down marked it; 0: none */
	abx__timer timer;     /* retry of a delete, replacement of a failed one */
	int64_t retry_ms;
	abx__sandbox *sandbox;
	/* what to strip at release: the caller's own keys */
	json_object *managed_labels, *managed_annotations;
	char *init_body; /* while arming; wiped */
	size_t init_len;
};

enum abx__claim_state {
	ABX__CLAIM_QUEUED,
	ABX__CLAIM_WRITING,  /* change_pod in flight */
	ABX__CLAIM_SWAPPING, /* waiting for the Pod to be ready */
	ABX__CLAIM_ARMING,
	ABX__CLAIM_STARTING, /* phase running is being written */
};

struct abx__claim {
	abx__control *control;
	abx__pool *pool;
	abx__claim *prev, *next;         /* in the pool's queue */
	abx__claim *all_prev, *all_next; /* of control's */
	enum abx__claim_state state;
	abx__sandbox *sandbox;
	char *image; /* NULL: the pool's default */
	int64_t startup_deadline_ms, queue_deadline_ms, asked_ms;
	abx__timer timer;
	int conflicts;
	bool nomem;           /* found when it took a Pod; the timer tells */
	bool waited, swapped; /* in the queue; for another image */
	int64_t taken_ms;     /* a Pod was; 0: none */
	bool secure;
	abx__map env_vars;
	abx__map labels, annotations; /* all but what is known only with the Pod */
	json_object *managed_labels, *managed_annotations;
	abx__claim_done done;
	void *userdata;
};

typedef struct abx__waiter {
	struct abx__waiter *next;
	abx__claim_done claim_done;
	abx__control_done done;
	void *userdata;
} abx__waiter;

struct abx__sandbox {
	abx__sandbox_rec rec; /* first: the table hands it out */
	abx__control *control;
	UT_hash_handle hh; /* by id */
	char id[ABX__SANDBOX_ID_LEN + 1];
	char *namespace_, *env, *template_, *image, *pod_name, *pool_name, *team, *user;
	abx__ingress *ingress; /* NULL: public */
	abx__metrics *metrics; /* NULL: none yet */
	abx__podrec *pod;
	abx__claim *claim; /* while STARTING */
	abx__timer timer;  /* idle reclaim */
	int64_t active_mono_ms;
	unsigned streams;
	bool in_table;
	int64_t persisted_active_ms;  /* wall */
	bool recorded;                /* its end is in the history */
	abx__waiter *kill_waiters;    /* of the release */
	abx__waiter *persist_waiters; /* of the next persist write */
	abx__waiter *persisting;      /* of the one in flight */
	abx__move *moves;             /* asked for; the first one is under way, or next */
	int stage;                    /* of the first: see pause.c */
	abx_error *move_error;        /* why it is being undone */
	int64_t first_timeout_ms;     /* the idle timeout it was created with */
	char *snapshot;    /* what it was created from, for people; NULL: an env */
	char *sealed_vars; /* the variables it was created with; NULL: none, or lost */
};

struct abx__sandboxes {
	abx__sandbox *by_id;
	abx__sandbox **order; /* by start (else claim) time, then id */
	size_t count, size;
	const char *cluster_id;
	abx__control *control;
};

/* One change of a stored document. They run one after the other, so each sees what the
 * ones before it did. */
struct abx__write {
	abx__write *prev, *next;
	abx__control *control;
	/* Makes the document to be stored from the present state; leaves *ret NULL to
	 * remove it. */
	int (*make)(abx__write *write, json_object **ret, abx_error **reterr);
	const char *kind;
	char *namespace_, *name, *part; /* part: pool or group */
	json_object *input, *made;
	bool create;
	int replicas; /* of a scale write */
	abx__object_done object_done;
	abx__control_done done;
	void (*internal_done)(abx__write *write, int r, const abx_error *err);
	void *userdata;
};

struct abx__control {
	abx__control_config config;
	char *cluster_id;
	uint8_t token_key[ABX__CONTROL_TOKEN_KEY_LEN];
	abx__timers timers;
	int64_t told_deadline_ms; /* what the owner last heard */
	bool ticking;
	abx__template *templates;
	abx__env *envs;
	bool envs_unsorted; /* by key */
	abx__pool *pools;
	abx__podrec *pods;
	abx__claim *claims;
	abx__snapshot *snapshots; /* the newest first */
	abx__history *history;
	abx__env_state *env_states;
	abx__meters *meters;
	abx__sandboxes sandboxes;
	abx__write *writes; /* the head is in flight when write_running */
	bool write_running;
	abx__timer writes_timer;
	abx__timer persist_timer;
	abx__timer metrics_timer;
	size_t metrics_turn; /* who is asked next */
	int64_t last_start_us;
	abx__metrics_asking *metrics_asking;
	int in_flight; /* calls into the ports that have not answered */
	enum {
		ABX__CONTROL_NEW,
		ABX__CONTROL_STARTING,
		ABX__CONTROL_RUNNING,
		ABX__CONTROL_CLOSING
	} state;
	bool synced, sync_nomem;
	abx__control_done start_done;
	void *start_userdata;
	size_t kinds_read; /* of what the store keeps, while it starts */
	void (*close_done)(void *userdata);
	void *close_userdata;
	abx__timer close_timer;
};

/* control.c */
int64_t abx__control_mono(const abx__control *control);
int64_t abx__control_wall(const abx__control *control);
/* A start at this time, told from all others. */
int64_t abx__control_start_us(abx__control *control, int64_t wall_ms);
void abx__control_set_timer(abx__control *control, abx__timer *timer, int64_t at);
void abx__control_set_timer_sooner(abx__control *control, abx__timer *timer, int64_t at);
void abx__control_call_begin(abx__control *control);
void abx__control_call_end(abx__control *control);
char *abx__control_key(const char *namespace_, const char *name);

/* objects.c */
void abx__object_done_(abx__object *object);
int abx__object_init(abx__object *object, const abx__doc *doc, abx_error **reterr);
int abx__object_replace(abx__object *object, const abx__doc *doc, abx_error **reterr);
/* {apiVersion, kind, metadata, spec}; a new document. */
json_object *abx__object_document(const abx__object *object, const char *kind);
abx__template *abx__template_find(const abx__control *control, const char *name);
abx__env *abx__env_find(const abx__control *control, const char *namespace_,
			const char *name);
void abx__template_free(abx__template *template_);
void abx__env_free(abx__env *env);
int abx__template_load(abx__control *control, const abx__doc *doc, abx_error **reterr);
int abx__env_load(abx__control *control, const abx__doc *doc, abx_error **reterr);
void abx__env_unlink(abx__env *env);
/* By namespace and name from here on. */
void abx__envs_sort(abx__control *control);

/* writes.c */
void abx__writes_run(abx__timer *timer);
void abx__writes_drop(abx__control *control);
void abx__write_free(abx__write *write);
int abx__write_scale(abx__pool *pool, int replicas);

/* members.c: the env's document as pools. */
int abx__members_build(const abx__control *control, const char *env_name,
		       json_object *env_doc, json_object *template_doc,
		       abx__pool_config **ret, size_t *ret_count, abx_error **reterr);
void abx__members_free(abx__pool_config *configs, size_t count);
void abx__pool_config_done(abx__pool_config *config);
/* Fills in the names and groups that are derived; checks the ones that were given. */
/* Members that `old_doc` (NULL: no env yet) does not have are checked and sized. */
int abx__members_complete(const abx__control *control, const char *env_name,
			  json_object *env_doc, json_object *old_doc, abx_error **reterr);
json_object *abx__members_local(const abx__control *control, json_object *env_doc);
json_object *abx__members_find(const abx__control *control, json_object *env_doc,
			       const char *name);
json_object *abx__groups_find(json_object *env_doc, const char *name);
/* Whether a member belongs to the group. */
bool abx__env_names_group(json_object *env_doc, const char *name);
int abx__policy_read(json_object *group, abx__scale_policy *ret, abx_error **reterr);
/* The group's document with every default filled in. */
json_object *abx__policy_document(const char *name, const abx__scale_policy *policy);

/* pool.c */
abx__pool *abx__pool_find(const abx__control *control, const char *namespace_,
			  const char *name);
void abx__env_sync(abx__env *env);
void abx__pool_free(abx__pool *pool);
/* Something about its Pods changed: evaluate, and with `reconcile` also correct, at the
 * next tick. */
void abx__pool_touch(abx__pool *pool, bool reconcile);
bool abx__pool_is_stale(const abx__pool *pool, const abx__podrec *pod);
void abx__pool_take_down(abx__pool *pool);
void abx__pool_problem(abx__pool *pool, const char *text);

/* quota.c */

/* Replicas it may have now. */
int abx__pool_wanted(const abx__pool *pool);
/* How many of `replicas` its quota has room for now. */
int abx__quota_grant(const abx__pool *pool, int replicas);
/* Shares out the quota of a pool anew. ABX_ENOMEM: later. */
int abx__quota_evaluate(abx__pool *pool);
/* ABX_EEXHAUSTED when its quota has no room for so many. `pool` may be NULL. */
int abx__quota_check_grow(const abx__pool *pool, int replicas, abx_error **reterr);

/* pod.c */
int abx__podrec_new(abx__control *control, abx__pool *pool, const char *namespace_,
		    const char *name, abx__podrec **ret);
void abx__podrec_free(abx__podrec *pod);
void abx__podrec_set_state(abx__podrec *pod, enum abx__podrec_state state);
void abx__podrec_update_idle(abx__podrec *pod);
void abx__podrec_view(abx__podrec *pod, const abx__pod *view);
bool abx__podrec_is_ready(const abx__podrec *pod);
void abx__pod_settle(abx__podrec *pod);
void abx__pod_gone(abx__podrec *pod);
void abx__pod_delete(abx__podrec *pod);
/* It no longer counts: it is being deleted. */
void abx__pod_leaves(abx__podrec *pod);
/* The sandbox ends: its Pod goes back, or away. */
void abx__pod_release(abx__podrec *pod, const char *stop_reason,
		      const char *failure_reason, const char *failure_message);
/* Its container ended, or never came up: the sandbox on it is over. */
void abx__pod_release_failed(abx__podrec *pod);
void abx__pods_on_event(void *userdata, const abx__pod *view);
void abx__pods_on_synced(void *userdata, int r, const abx_error *err);
int abx__pod_write(abx__podrec *pod, enum abx__podrec_write write,
		   const abx__pod_change *change);
/* The state machine's answer to a view that is new. */
void abx__pod_changed(abx__podrec *pod);
/* Twice the last wait, within these. */
int64_t abx__backoff_next(int64_t *wait, int64_t first, int64_t last);
void abx__pod_issue_delete(abx__podrec *pod);

/* pod-create.c */
int abx__pod_create(abx__pool *pool);

/* pod-release.c */
void abx__pod_issue_release(abx__podrec *pod);

/* pod.c */
void abx__pods_adopted(abx__control *control);

/* adopt.c */
int abx__pod_adopt(abx__podrec *pod, const abx__pod *view);

/* claim.c */
void abx__claims_dispatch(abx__pool *pool);
void abx__claim_pod_changed(abx__claim *claim);
void abx__claim_written(abx__claim *claim, enum abx__podrec_write write, int r,
			const abx_error *err);
void abx__claim_pod_gone(abx__claim *claim);
/* Completes with this error; its Pod, if any, is released. */
void abx__claim_fail(abx__claim *claim, int r, const abx_error *err,
		     const char *stop_reason, const char *failure_reason);
void abx__claim_free(abx__claim *claim);
void abx__claims_drop_pool(abx__pool *pool);

/* sandboxes.c */
abx__sandbox *abx__sandbox_new(abx__control *control);
void abx__sandbox_free(abx__sandbox *sandbox);
int abx__sandboxes_reserve(abx__sandboxes *table);
int abx__sandboxes_add(abx__sandboxes *table, abx__sandbox *sandbox);
void abx__sandboxes_remove(abx__sandboxes *table, abx__sandbox *sandbox);
void abx__sandboxes_done(abx__sandboxes *table);
/* It was started: its place in the order changes. */
void abx__sandboxes_started(abx__sandboxes *table, abx__sandbox *sandbox,
			    int64_t started_ms);
abx__sandbox *abx__sandboxes_get(const abx__sandboxes *table, const char *id);
/* What is left of any spelling, and how long it is. */
const char *abx__sandbox_id_bare(const abx__sandboxes *table, const char *id,
				 size_t *ret_len);
/* Hex of an HMAC of `prefix` and the id: the same one every time it is asked for. */
int abx__sandbox_token(const abx__control *control, const char *prefix, const char *id,
		       abx__secret **ret);
/* Copies it, and makes the token it asks for; NULL and the default leave both out. */
int abx__sandbox_set_ingress(abx__sandbox *sandbox, const abx__ingress *ingress);

/* pause.c */
void abx__sandbox_move(abx__podrec *pod);
void abx__sandbox_moved(abx__sandbox *sandbox, int r, const abx_error *err);
void abx__sandbox_move_late(abx__sandbox *sandbox);
/* False: the Pod failed, and with it the sandbox. */
bool abx__sandbox_pod_changed(abx__sandbox *sandbox);
void abx__sandbox_auto_pause(abx__sandbox *sandbox);
void abx__sandbox_free_moves(abx__sandbox *sandbox);
/* Fits its state and what waits; `ret` is the sandbox. */
int abx__sandbox_can_snapshot(abx__control *control, const char *id,
			      const abx__sandbox **ret, abx_error **reterr);
/* When its turn comes, abx__snapshot_begin(), or abx__snapshot_failed(). */
int abx__sandbox_add_snapshot(abx__control *control, const char *id,
			      abx__snapshot *snapshot, abx_error **reterr);
/* The engine is done with it: the sandbox goes on. */
void abx__sandbox_snapshot_over(abx__control *control, const char *id,
				const abx__snapshot *snapshot);
/* All that waits gets the error. */
void abx__sandbox_drop_moves(abx__sandbox *sandbox, int r, const abx_error *err);

/* snapshot.c */
int abx__snapshot_load(abx__control *control, const abx__doc *doc, abx_error **reterr);
/* What a crash left is deleted. */
void abx__snapshots_adopted(abx__control *control);
void abx__snapshot_begin(abx__snapshot *snapshot, const abx__podrec *pod);
/* Tells whoever asked, and forgets it. */
void abx__snapshot_failed(abx__snapshot *snapshot, int r, const abx_error *err);
void abx__snapshot_free(abx__snapshot *snapshot);
/* Whoever waits is told that the server stops. */
void abx__snapshots_close(abx__control *control, const abx_error *err);
void abx__snapshots_done(abx__control *control);

/* history.c */
int abx__history_init(abx__control *control);
void abx__history_done(abx__control *control);
int abx__history_load(abx__control *control, const abx__doc *docs, size_t count,
		      abx_error **reterr);
/* The sandbox ends, by this: kept once, the first time it is said. One that never had a
   Pod leaves nothing. */
void abx__history_add(abx__sandbox *sandbox, const char *stop_reason,
		      const char *failure_reason, const char *failure_message,
		      int exit_code);
/* A sandbox of this id lives: it has not ended after all. */
void abx__history_forget(abx__control *control, const char *id);

/* env-state.c */
int abx__env_state_new(abx__env *env);
/* `deleted`: its document goes, too. */
void abx__env_state_drop(abx__env *env, bool deleted);
int abx__env_state_load(abx__control *control, const abx__doc *doc, abx_error **reterr);
void abx__env_states_flush(abx__control *control);
void abx__env_states_done(abx__control *control);
/* It is written down soon. */
void abx__env_state_changed(abx__env *env);
/* What was kept of a pool of this name in this env. */
void abx__pool_recall(abx__pool *pool);

/* events.c: see control/events.h. `env` NULL: nobody to tell. `pool` NULL: about the env.
   `action` may be NULL. Logged when it is news. */
void abx__env_tell(abx__env *env, const abx__pool *pool, bool warning, const char *reason,
		   const char *action, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

size_t abx__history_count(const abx__control *control);

/* meters.c: what control/meters.h tells. */
int abx__control_meters_init(abx__control *control);
void abx__meter_claim_ended(const abx__claim *claim, int r);
void abx__meter_claim_refused(const abx__pool *pool);
void abx__meter_claim_taken(abx__claim *claim, bool swapped);
void abx__meter_sandbox_ended(const abx__sandbox *sandbox, const char *stop_reason);
void abx__meter_pod_written(const abx__podrec *pod, enum abx__podrec_write write, int r);
void abx__meter_pod_recycled(abx__podrec *pod);
void abx__meter_count(abx__control *control, enum abx__control_meter meter);
void abx__meter_pool_gone(const abx__pool *pool);

/* lifecycle.c */
int abx__lifecycle_put(const abx__sandbox *sandbox, abx__map *annotations);
int abx__lifecycle_read(abx__sandbox *sandbox, const abx__map *annotations);
/* Sealed, for a start without them at hand. */
int abx__sandbox_keep_vars(abx__sandbox *sandbox, const abx__map *vars,
			   abx_error **reterr);
/* JSON; NULL stays when there are none. */
int abx__sandbox_env_vars(const abx__sandbox *sandbox, abx__secret **ret,
			  abx_error **reterr);
/* metrics.c */
void abx__metrics_fired(abx__timer *timer);
/* A sandbox runs: from now on there is something to ask. */
void abx__metrics_wake(abx__control *control);
void abx__metrics_free(abx__metrics *metrics);
/* Questions without an answer. */
void abx__metrics_drop(abx__control *control);

/* reclaim.c */
void abx__sandbox_arm_idle(abx__sandbox *sandbox);
void abx__sandbox_idle_fired(abx__timer *timer);
void abx__sandbox_persist(abx__podrec *pod);
void abx__sandbox_persisted(abx__sandbox *sandbox, int r, const abx_error *err);
void abx__sandbox_released(abx__sandbox *sandbox, int r, const abx_error *err);
void abx__persist_fired(abx__timer *timer);

/* scale.c */
void abx__scale_fired(abx__timer *timer);
void abx__scale_arm(abx__pool *pool);
/* An attempt to grow came to less than was decided, or to nothing. */
void abx__pool_scale_refused(abx__pool *pool, enum abx__scale_result result,
			     const char *why);
int abx__pool_group_total(const abx__pool *pool);
int64_t abx__pool_saturated_until_ms(const abx__pool *pool);

/* status.c */
void abx__condition_set(abx__condition *condition, int64_t wall_ms, bool value,
			const char *reason);
void abx__pool_evaluate(abx__pool *pool);
void abx__env_evaluate(abx__env *env);
json_object *abx__pool_document(const abx__pool *pool);
json_object *abx__env_document(abx__env *env);
json_object *abx__template_document(const abx__template *template_);
json_object *abx__time_field(int64_t wall_ms);

#endif

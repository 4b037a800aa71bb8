/*
 * state.h - what the files of the local engine share.
 *
 * Invariants: a Pod's `doc` is what the store has acknowledged; podd is told only what is
 * durable; writes of one Pod happen one after the other, so a version checked is a
 * version held. Views given out are made anew each time.
 */
#ifndef ABX_ENGINE_LOCAL_STATE_H
#define ABX_ENGINE_LOCAL_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>
#include <uthash.h>
#include <uv.h>

#include "base/log.h"
#include "base/map.h"
#include "control/port-engine.h"
#include "control/port-store.h"
#include "engine/local/doc.h"
#include "engine/local/podd-client.h"
#include "engine/podd/spec.h"

#define ABX__LOCAL_KIND "Pod"

struct local;

/* A change waiting for its turn, or under way: owned copies. */
struct write {
	abx__pod_change change;
	abx__map set_labels, set_annotations;
	char **remove_labels, **remove_annotations;
	char *image;
	abx__pod_done done;
	void *userdata;
	struct write *next;
};

struct lpod {
	struct local *local;
	char *key; /* "ns/name" */
	char *ns, *name;
	abx__pod_doc doc;
	uint64_t version;
	int64_t created_ms;
	bool creating; /* not durable yet: nobody hears of it */
	bool deleting; /* its document is to be removed, or is gone */
	bool removing; /* the store has been asked to */
	bool reported;
	struct write *writes,
		**writes_tail; /* the first one is under way when `writing` */
	bool writing;
	abx__pod_doc next; /* what the write under way makes of it */
	bool next_anew, next_restart;
	abx__pod_done create_done;
	abx__engine_done delete_done;
	void *op_userdata;

	/* what podd says */
	bool in_podd;
	uint64_t podd_generation, running_generation;
	char *running_image, *reason, *message;
	char phase[12], activity[12];
	bool ready;
	int exit_code;
	/* podd refused to make it */
	char *refused;
	UT_hash_handle hh;
};

/* A completion that must not happen inside the call that asked for it. */
struct later {
	void (*fn)(struct later *l);
	int r;
	abx_error *err;
	abx__pod_done pod_done;
	abx__engine_done engine_done;
	abx__fd_done fd_done;
	abx__snapshot_done snapshot_done;
	abx__stats_done stats_done;
	void *userdata;
	struct later *next;
};

/* A snapshot podd was asked for: its SNAPSHOT_DONE, or podd's death, completes it. */
struct shot {
	struct local *local;
	char id[ABX__SNAPSHOT_ID_MAX + 1];
	abx__snapshot_done done;
	void *userdata;
	struct shot *next;
};

struct local {
	abx__engine engine;
	struct shot *shots;
	uv_loop_t *loop;
	abx__store *store;
	const abx__log *log;
	abx__podd_client *podd;
	struct lpod *pods;
	json_object *classes; /* from podd's HELLO */
	void (*on_pod)(void *userdata, const abx__pod *pod);
	void (*on_synced)(void *userdata, int r, const abx_error *err);
	void *userdata;
	bool started, listed, podd_synced, synced;
	struct later *later, **later_tail;
	uv_timer_t turn;
	unsigned busy; /* store calls under way */
	bool closing, podd_closed, turn_closed;
	void (*closed)(void *userdata);
	void *closed_userdata;
};

/* ---- local.c ---- */

struct local *abx__local_of(abx__engine *engine);
/* Takes over `err`. */
void abx__local_fail_later(struct local *l, int r, abx_error *err, struct later how);
/* To be called whenever `busy` went down. */
void abx__local_maybe_closed(struct local *l);

/* ---- ask.c: what is asked of podd and changes nothing ---- */

void abx__local_connect_pod(abx__engine *engine, const char *namespace_, const char *name,
			    uint16_t port, abx__fd_done done, void *userdata);
void abx__local_stat_pod(abx__engine *engine, const char *namespace_, const char *name,
			 abx__stats_done done, void *userdata);
void abx__local_open_log(abx__engine *engine, const char *namespace_, const char *name,
			 abx__fd_done done, void *userdata);

/* ---- pod.c ---- */

struct lpod *abx__lpod_find(struct local *l, const char *ns, const char *name);
/* Is there, and stays. */
struct lpod *abx__lpod_find_live(struct local *l, const char *ns, const char *name,
				 abx_error **reterr);
struct lpod *abx__lpod_new(struct local *l, const char *ns, const char *name);
void abx__lpod_free(struct lpod *p);
void abx__lpod_forget_podd(struct lpod *p);
abx__pod abx__lpod_view(const struct lpod *p);
void abx__lpod_report(struct lpod *p);
void abx__lpod_set_refused(struct lpod *p, const char *message);
/* After GONE, or when podd never had it. */
void abx__lpod_gone(struct lpod *p);
void abx__local_write_free(struct write *w);

/* ---- tell.c ---- */

/* {ns, name}, NULL when out of memory. */
json_object *abx__tell_request(const struct lpod *p);
void abx__tell_create(struct lpod *p);
void abx__tell_swap(struct lpod *p, bool restart);
/* What the document says its main container is to do. */
void abx__tell_activity(struct lpod *p);
void abx__tell_delete(struct local *l, const char *ns, const char *name);

/* ---- sync.c ---- */

extern const abx__podd_client_events abx__local_podd_events;
void abx__local_start(abx__engine *engine,
		      void (*on_pod)(void *userdata, const abx__pod *pod),
		      void (*on_synced)(void *userdata, int r, const abx_error *err),
		      void *userdata);
void abx__local_bring_into_line(struct lpod *p);

/* ---- snapshot.c ---- */

void abx__local_snapshot_pod(abx__engine *engine, const char *namespace_,
			     const char *name, const char *id, abx__snapshot_done done,
			     void *userdata);
void abx__local_delete_snapshot(abx__engine *engine, const char *id,
				abx__engine_done done, void *userdata);
void abx__local_snapshot_event(struct local *l, json_object *body);
/* Nobody will say how they ended. */
void abx__local_snapshots_lost(struct local *l, int r);

/* ---- create.c, change.c ---- */

int abx__local_check_template(abx__engine *engine, json_object *pod_template,
			      abx_error **reterr);
void abx__local_create_pod(abx__engine *engine, const char *namespace_, const char *name,
			   const abx__map *labels, const abx__map *annotations,
			   json_object *pod_template, abx__pod_done done, void *userdata);
void abx__local_change_pod(abx__engine *engine, const char *namespace_, const char *name,
			   const abx__pod_change *change, abx__pod_done done,
			   void *userdata);
void abx__local_delete_pod(abx__engine *engine, const char *namespace_, const char *name,
			   abx__engine_done done, void *userdata);
/* A deletion that waited for the writes before it. */
void abx__local_begin_delete(struct lpod *p);

#endif

/*
 * e2b.h - the E2B control API's handlers and the parts of them a test reads alone. Inside
 * of serve/ only.
 */
#ifndef ABX_SERVE_E2B_H
#define ABX_SERVE_E2B_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "model/address.h"
#include "serve/call.h"

/* Without a timeout of its own and without its env's, a sandbox ends after so long
 * without activity. */
#define ABX__E2B_IDLE_DEFAULT_MS 300000

/* A create body, understood. */
typedef struct abx__e2b_create {
	abx__address address;
	abx__map metadata; /* without the reserved keys */
	abx__map env_vars;
	char *image;                /* NULL: the env's */
	char *scaling_group;        /* NULL: any */
	char *mcp;                  /* names of MCP servers, NULL: none were asked for */
	int64_t startup_timeout_ms; /* 0: the pool's */
	int64_t idle_timeout_ms;    /* 0: the env's */
	bool no_wait;
	bool secure;
	abx__lifecycle lifecycle;
	const abx__snapshot_rec *snapshot; /* instead of an image; NULL: none */
	abx__ingress ingress;
} abx__e2b_create;

/* ABX_EINVAL and ABX_EUNSUPPORTED name the field. */
int abx__e2b_create_parse(json_object *body, bool v2, abx__e2b_create *ret,
			  abx_error **reterr);
void abx__e2b_create_done(abx__e2b_create *create);

/* ABX_EUNSUPPORTED in the words of all of them. */
int abx__e2b_unsupported(const char *field, abx_error **reterr);
/* Fields that may only say what is the case anyway; `name` is the field in the message.
 */
int abx__e2b_only_bool(json_object *o, const char *key, const char *name, bool allowed,
		       abx_error **reterr);
/* Absent, null, {}, [] or "". */
int abx__e2b_only_empty(json_object *o, const char *key, const char *name,
			abx_error **reterr);
/* What filters traffic that leaves, of a create or an update: there is no filter here
 * yet, so what would not filter is all that is taken. */
int abx__e2b_egress_check(json_object *network, abx_error **reterr);
/* The member `network` of a create's body. */
int abx__e2b_network_parse(json_object *body, bool secure, abx__ingress *ret,
			   abx_error **reterr);

/* A `timeout` or `duration` in whole seconds: 1, 0 when absent; ABX_EINVAL for 0,
 * negatives and junk. */
int abx__e2b_seconds(json_object *body, const char *key, int64_t *ret_ms,
		     abx_error **reterr);
/* Sandbox of the answers to create and connect; NULL when out of memory. */
json_object *abx__e2b_sandbox(const abx__sandbox_rec *rec);

void abx__e2b_create_v1(abx__call *call);
void abx__e2b_create_v2(abx__call *call);
void abx__e2b_list_v1(abx__call *call);
void abx__e2b_list_v2(abx__call *call);
void abx__e2b_get(abx__call *call);
void abx__e2b_kill(abx__call *call);
void abx__e2b_timeout(abx__call *call);
void abx__e2b_refresh(abx__call *call);
void abx__e2b_connect_v1(abx__call *call);
void abx__e2b_connect_v2(abx__call *call);
void abx__e2b_logs_v1(abx__call *call);
void abx__e2b_logs_v2(abx__call *call);
void abx__e2b_metrics(abx__call *call);
void abx__e2b_metrics_many(abx__call *call);
void abx__e2b_network_update(abx__call *call);
void abx__e2b_template_alias(abx__call *call);
void abx__e2b_teams(abx__call *call);
void abx__e2b_access_token(abx__call *call);
void abx__e2b_pause(abx__call *call);
void abx__e2b_resume(abx__call *call);
void abx__e2b_fork(abx__call *call);
void abx__e2b_snapshot_create(abx__call *call);
void abx__e2b_snapshot_list(abx__call *call);
void abx__e2b_template_delete(abx__call *call);
void abx__e2b_template_tags(abx__call *call);

/* [namespace/]name[:tag], taken apart; the parts lie in `text`. */
typedef struct abx__e2b_ref {
	char *text;
	const char *namespace_, *name, *tag; /* NULL: not said */
} abx__e2b_ref;

int abx__e2b_ref_parse(const char *text, abx__e2b_ref *ret, abx_error **reterr);
void abx__e2b_ref_done(abx__e2b_ref *ref);
bool abx__e2b_ref_matches(const abx__e2b_ref *ref, const abx__snapshot_rec *snapshot);
/* The newest it can mean to the caller, then the next one. */
const abx__snapshot_rec *abx__e2b_snapshot_lookup(abx__call *call,
						  const abx__e2b_ref *ref,
						  const abx__snapshot_rec *after);
/* The snapshot a create means by this templateID, the tag "default" before all others;
 * NULL: none that the caller may see. */
const abx__snapshot_rec *abx__e2b_snapshot_named(abx__call *call,
						 const char *template_id);
/* What a sandbox made from it shows as its template; NULL when out of memory. */
char *abx__e2b_snapshot_template(const abx__snapshot_rec *snapshot);

/* A timeout of 0 seconds for a running sandbox that its timeout pauses: it is paused now.
 * False: the call is not that. */
bool abx__e2b_pause_now(abx__call *call);
void abx__e2b_templates(abx__call *call);
void abx__e2b_template(abx__call *call);
void abx__e2b_keys_list(abx__call *call);
void abx__e2b_keys_create(abx__call *call);
void abx__e2b_keys_delete(abx__call *call);
void abx__e2b_health(abx__call *call);

#endif

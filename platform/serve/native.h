/*
 * native.h - the native API's handlers. Inside of serve/ only.
 */
#ifndef ABX_SERVE_NATIVE_H
#define ABX_SERVE_NATIVE_H

#include "serve/call.h"
#include "serve/docs.h"

void abx__native_ping(abx__call *call);
void abx__native_openapi(abx__call *call);
void abx__native_whoami(abx__call *call);
void abx__native_clusters(abx__call *call);
void abx__native_gates(abx__call *call);

void abx__native_teams(abx__call *call);
void abx__native_users(abx__call *call);
void abx__native_namespaces(abx__call *call);
void abx__native_statistics(abx__call *call);
void abx__native_statistics_all(abx__call *call);
void abx__native_volumes(abx__call *call);
void abx__native_quotas(abx__call *call);
void abx__native_instance_types(abx__call *call);

void abx__native_key_create(abx__call *call);
void abx__native_key_list(abx__call *call); /* the caller's own; of the admin route all */
void abx__native_key_delete(abx__call *call);
void abx__native_key_create_for(abx__call *call);
void abx__native_key_delete_any(abx__call *call);
void abx__native_key_promote(abx__call *call);

void abx__native_approval_list(abx__call *call);
void abx__native_approval_get(abx__call *call);
void abx__native_approval_decide(abx__call *call);
void abx__native_grant_revoke(abx__call *call);

void abx__native_sandbox_create(abx__call *call);
void abx__native_sandbox_list(abx__call *call);
void abx__native_sandbox_get(abx__call *call);
void abx__native_sandbox_delete(abx__call *call);
void abx__native_sandbox_timeout(abx__call *call);

void abx__native_logs(abx__call *call);
void abx__native_logs_stream(abx__call *call);
void abx__native_exec(abx__call *call);
void abx__native_exec_token(abx__call *call);
void abx__native_is_ready(abx__call *call);
void abx__native_terminal(abx__call *call);

void abx__native_env_list(abx__call *call);
void abx__native_env_create(abx__call *call);
void abx__native_env_get(abx__call *call);
void abx__native_env_update(abx__call *call);
void abx__native_env_delete(abx__call *call);

void abx__native_events(abx__call *call);

void abx__native_groups_spec(abx__call *call);
void abx__native_group_list(abx__call *call);
void abx__native_group_get(abx__call *call);
void abx__native_group_put(abx__call *call);
void abx__native_group_delete(abx__call *call);

void abx__native_pool_create(abx__call *call);
void abx__native_pool_list(abx__call *call);
void abx__native_pool_get(abx__call *call);
void abx__native_pool_update(abx__call *call);
void abx__native_pool_delete(abx__call *call);

void abx__native_template_list(abx__call *call);
void abx__native_template_list_all(abx__call *call);
void abx__native_template_get(abx__call *call);
void abx__native_template_create(abx__call *call);
void abx__native_template_update(abx__call *call);
void abx__native_template_delete(abx__call *call);

/* {Sandbox}; what only its template tells is left out without one. NULL: out of memory.
 */
json_object *abx__native_sandbox_view(const abx__serve *serve,
				      const abx__sandbox_rec *rec,
				      json_object *template_);
/* "Running" and the like. */
const char *abx__native_sandbox_status(const abx__sandbox_rec *rec);
/* The record of {sandboxId}, if it ended and the caller may see it; NULL, and the call is
 * not answered. */
const abx__ended *abx__native_ended(const abx__call *call);
/* The env {name} of the path, if the caller may see it (a new reference); else the call
 * is answered. */
json_object *abx__native_env_of(abx__call *call);
/* Members of pages that are not cut: total, limit and offset next to `items` (taken).
 * Answers the call. */
void abx__native_page(abx__call *call, json_object *items, bool with_limits);
/* {name, namespace, status}. */
void abx__native_terminating(abx__call *call, int status, const char *name,
			     const char *state);

/* The template's documentation, rendered, when it has any. ABX_ENOMEM. */
int abx__native_put_docs(json_object *o, const char *key, json_object *template_,
			 const abx__docs_names *names);

/* A document as YAML text. ABX_ENOMEM. */
int abx__native_put_yaml(json_object *o, const char *key, json_object *doc);

/* `o` gets `key` = `value` (borrowed; nothing for NULL). ABX_ENOMEM. */
int abx__native_put(json_object *o, const char *key, json_object *value);
int abx__native_put_str(json_object *o, const char *key, const char *value);

#endif

/*
 * manifest.h - a kubectl-style document, checked and taken apart into calls of the native
 * API.
 *
 * A SandboxTemplate is one call. A SandboxEnv becomes, in this order: the env, its member
 * pools in this cluster, and the policies of its scaling groups. The native API derives a
 * pool's name and group from its size, so a manifest that says another name is refused
 * naming both. What no call can carry is refused as well, never dropped: priorities,
 * defaults, snapshots of pools. What the server writes and nobody can mean (status, uid,
 * generation, times, managedFields) is passed over, so that `kubectl get -o yaml`
 * applies.
 */
#ifndef ABX_MODEL_MANIFEST_H
#define ABX_MODEL_MANIFEST_H

#include <stddef.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "base/cleanup.h"
#include "model/gen/crds.h"

enum abx__manifest_kind { ABX__MANIFEST_TEMPLATE = 1, ABX__MANIFEST_ENV };

/* By apiVersion and kind. ABX_EINVAL; ABX_EUNSUPPORTED for a SandboxPool, which belongs
 * to its env. */
int abx__manifest_kind(json_object *manifest, enum abx__manifest_kind *ret,
		       abx_error **reterr);
/* Checks the whole document; `*ret` is the caller's. Errors start with kind and name,
 * then the path. */
int abx__manifest_template(json_object *manifest, abx__m_sandbox_template **ret,
			   abx_error **reterr);
int abx__manifest_env(json_object *manifest, abx__m_sandbox_env **ret,
		      abx_error **reterr);

typedef struct abx__call {
	const char *method; /* static */
	char *path;         /* with /v1 */
	json_object *body;
} abx__call;

typedef struct abx__calls {
	enum abx__manifest_kind kind;
	char *name; /* the object's */
	abx__call *items;
	size_t count;
	char **skipped; /* clusters of an env that are not this one: their own servers
			   take them */
	size_t n_skipped;
} abx__calls;

typedef struct abx__manifest_context {
	const char *cluster;    /* this cluster's id */
	const char *namespace_; /* the credential's; NULL: not known */
} abx__manifest_context;

/* `*ret` is filled on success only. */
int abx__manifest_calls(json_object *manifest, const abx__manifest_context *context,
			abx__calls *ret, abx_error **reterr);
void abx__calls_done(abx__calls *calls);

#define ABX__CLEANUP_CALLS ABX_CLEANUP(abx__calls_done)

#endif

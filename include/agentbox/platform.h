/*
 * agentbox/platform.h - the platform's own objects: templates, envs, pools, and its list
 * of sandboxes.
 *
 * Documents go in and come out as JSON text, in the shapes of the native API; manifests
 * may also be YAML. Paths are those of the native API behind /v1 and begin with '/':
 *
 *     /envs  /envs/NAME  /envs/NAME/sandboxpools  /envs/NAME/sandboxpools/POOL
 *     /sandbox-templates  /sandbox-templates/NAME  /admin/sandbox-templates/NAME
 *     /sandboxes  /sandboxes/ID  /auth/whoami  /clusters
 *
 * "/clusters" behind a console is the console's own list, and needs no cluster.
 *
 * Every call can fail with ABX_EUNSUPPORTED when the address is an E2B API alone,
 * ABX_EDENIED (the key may not), and as sandbox.h says at its top. Messages are the
 * platform's; a `detail` it sent is the hint.
 */
#ifndef AGENTBOX_PLATFORM_H
#define AGENTBOX_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One request of the native API, and the JSON text it answers ("" when it has no body).
 *
 * `method` is "GET", "POST", "PUT" or "DELETE"; `path` may have a query; its parts are
 * encoded by the caller (abx_platform_escape()). `body` is JSON text or NULL. Errors:
 * ABX_EINVAL, ABX_ENOTFOUND, ABX_EEXISTS or ABX_ECONFLICT, ABX_EEXHAUSTED, by the
 * answer's status, which abx_error_http_status() gives. Owner: the caller, abx_free().
 * Since: 0.1.0
 */
ABX_API int abx_platform_request(abx_client *client, const char *method, const char *path,
				 const char *body, char **ret, abx_error **reterr);
/** abx_platform_request() as an operation (op.h). */
ABX_API int abx_platform_request_async(abx_client *client, const char *method,
				       const char *path, const char *body,
				       abx_text_fn done, void *userdata,
				       abx_free_fn free_userdata, abx_op **ret_op,
				       abx_error **reterr);

/**
 * The JSON text at a path: abx_platform_request() with "GET".
 * Owner: the caller, abx_free(). Since: 0.1.0
 *
 *     r = abx_platform_get(client, "/envs/base", &json, &err);
 */
ABX_API int abx_platform_get(abx_client *client, const char *path, char **ret,
			     abx_error **reterr);

/**
 * What the body of a request must be, as JSON text, from the tables the platform itself
 * checks bodies with. Needs no client, address or network.
 *
 * `path` as in abx_platform_request(), with a name or "{name}" where a name goes:
 * "/envs/{name}/sandboxpools". The text is {"schema": NAME, "describe": TEXT, "fields":
 * [FIELD...], "schemas": {NAME: [FIELD...]}}; a FIELD has `name`, `type`, `required`,
 * `fixed` (at create), `describe`, and where they apply `ref`, `lever` (what to do
 * instead of changing a fixed one), `values`, `default`, `fields`. Types are string, int,
 * number, bool, "A | B" for a choice, <NAME> and <NAME>[] for objects, string[], int[],
 * map[string]string, any. Objects are written out three levels deep; what is deeper is in
 * `schemas` by its name, which is left out when nothing is.
 *
 * Errors: ABX_ENOTFOUND (no such operation, or it has no body). Owner: the caller,
 * abx_free(). Since: 0.1.0
 *
 *     r = abx_platform_schema("POST", "/envs", &json, &err);
 */
ABX_API int abx_platform_schema(const char *method, const char *path, char **ret,
				abx_error **reterr);

/** `text` percent-encoded for one part of a path; NULL when out of memory. Owner: the
 * caller. */
ABX_API char *abx_platform_escape(const char *text);

enum abx_apply_mode {
	ABX_APPLY_ANY = 0,    /* create what is missing, update what is there */
	ABX_APPLY_CREATE = 1, /* ABX_EEXISTS when it is there */
	ABX_APPLY_UPDATE = 2  /* ABX_ENOTFOUND when it is missing */
};

/** How to apply a manifest. Strings are borrowed for the call. */
typedef struct abx_apply_options {
	size_t size;          /* set by ABX_APPLY_OPTIONS_INIT */
	int mode;             /* enum abx_apply_mode */
	const char *resource; /* the path a native body goes to: "/envs" or "/envs/NAME";
				 NULL: only whole objects (apiVersion, kind, metadata) are
				 taken */
	const char *name; /* of the source in messages, such as a file's name; or NULL */
} abx_apply_options;
#define ABX_APPLY_OPTIONS_INIT ABX_OPTIONS_INIT(abx_apply_options)
/** Does what ABX_APPLY_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_apply_options_init(abx_apply_options *opts);

/**
 * Applies a manifest: YAML or JSON, one document or several divided by "---". A document
 * is a whole object as kubectl would take it (SandboxTemplate, SandboxEnv, SandboxPool),
 * or, with `opts->resource`, a body of the native API. Documents are checked before the
 * first is sent, then sent in order; the first that fails ends it, and those before it
 * stay applied (the message says which document it was).
 *
 * `*ret` is a JSON array with one element for each request sent:
 * {"kind": "SandboxEnv", "name": "base", "action": "created" | "updated", "object":
 * {...}}. Errors: ABX_EINVAL (text that does not parse, an unknown field, a wrong value;
 * the message names document and field), ABX_EEXISTS, ABX_ENOTFOUND, ABX_ECONFLICT,
 * ABX_ETOOBIG (over 4 MiB). Owner: the caller, abx_free(). Since: 0.1.0
 */
ABX_API int abx_platform_apply(abx_client *client, const char *text, size_t len,
			       const abx_apply_options *opts, char **ret,
			       abx_error **reterr);
/** abx_platform_apply() as an operation (op.h). */
ABX_API int abx_platform_apply_async(abx_client *client, const char *text, size_t len,
				     const abx_apply_options *opts, abx_text_fn done,
				     void *userdata, abx_free_fn free_userdata,
				     abx_op **ret_op, abx_error **reterr);

/**
 * The documents of a manifest as a JSON array, read as abx_platform_apply() reads them:
 * YAML or JSON, each an object. Nothing is sent.
 *
 * Errors: ABX_EINVAL (it does not parse; the message says where), ABX_ETOOBIG. Owner: the
 * caller, abx_free(). Since: 0.1.0
 */
ABX_API int abx_platform_parse(const char *text, size_t len, char **ret,
			       abx_error **reterr);

/**
 * Deletes the object at a path, such as "/envs/base", and gives what the platform
 * answered.
 *
 * Errors: ABX_ENOTFOUND. Owner: the caller, abx_free(). `ret` may be NULL. Since: 0.1.0
 */
ABX_API int abx_platform_delete(abx_client *client, const char *path, char **ret,
				abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif

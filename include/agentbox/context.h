/*
 * agentbox/context.h - the file of known deployments,
 * ${XDG_CONFIG_HOME:-~/.config}/abx/config.json, which abx_client_new() reads.
 *
 * The file is JSON and holds keys, so it is written with mode 0600, beside itself and
 * renamed: a reader sees the old one or the new one. Members this library does not know
 * are kept. `config_path` NULL is the usual place. Calls are blocking, need no client and
 * may be made from any thread; of two that write at once one wins.
 */
#ifndef AGENTBOX_CONTEXT_H
#define AGENTBOX_CONTEXT_H

#include <stddef.h>

#include <agentbox/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a context holds. Strings are borrowed for the call; NULL: left as it is. */
typedef struct abx_context_options {
	size_t size;             /* set by ABX_CONTEXT_OPTIONS_INIT */
	const char *endpoint;    /* base URL of a console; takes cluster_api's place */
	const char *cluster_api; /* base URL of one cluster; takes endpoint's place */
	const char *api_key;
	const char *cluster;
	const char *auth_scheme; /* "api-key" or "bearer" */
} abx_context_options;
#define ABX_CONTEXT_OPTIONS_INIT ABX_OPTIONS_INIT(abx_context_options)
/** Does what ABX_CONTEXT_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_context_options_init(abx_context_options *opts);

/**
 * The contexts as JSON text, without their keys: {"path": FILE, "current": NAME or null,
 * "contexts": [{"name", "endpoint", "clusterApi", "cluster", "authScheme", "hasKey"}]}.
 * What an entry does not have is left out; a file that is missing or no JSON has none.
 * `current` is the one a client would take, null when it takes none.
 *
 * Errors: ABX_ENOMEM. Owner: the caller, abx_free(). Since: 0.1.0
 */
ABX_API int abx_context_list(const char *config_path, char **ret, abx_error **reterr);

/**
 * Makes the context `name`, or changes of it what `opts` says. The first one becomes the
 * current one. What a console's pages append to an endpoint is taken off.
 *
 * Returns 1 when it is the current one now, else 0. Errors: ABX_EINVAL (no address, no
 * URL, a wrong scheme, a file that is there and no JSON object), ABX_EIO. Since: 0.1.0
 */
ABX_API int abx_context_set(const char *config_path, const char *name,
			    const abx_context_options *opts, abx_error **reterr);
/** Makes a context the current one. Errors: ABX_ENOTFOUND, ABX_EIO. Since: 0.1.0 */
ABX_API int abx_context_use(const char *config_path, const char *name,
			    abx_error **reterr);
/** Forgets a context; when it was current, the first that is left becomes so. Errors:
 * ABX_ENOTFOUND, ABX_EIO. Since: 0.1.0 */
ABX_API int abx_context_remove(const char *config_path, const char *name,
			       abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif

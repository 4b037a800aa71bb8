/*
 * agentbox/sandbox.h - sandboxes: create, find, keep alive, reach, kill.
 *
 * A sandbox goes on running when its handle or its client is freed; it ends by
 * abx_sandbox_kill() or when it had no traffic for its timeout, which may pause it
 * instead. Lists of variables and metadata are NULL-terminated arrays of "KEY=VALUE".
 * Times are milliseconds since the Unix epoch. Every call can fail with ABX_ETIMEDOUT
 * (the request's deadline), ABX_EUNAVAILABLE (the platform is not reachable),
 * ABX_EUNAUTHENTICATED, ABX_EPROTO, ABX_EIO, ABX_ENOMEM and ABX_ESTATE (its client was
 * freed); the comments name the others.
 */
#ifndef AGENTBOX_SANDBOX_H
#define AGENTBOX_SANDBOX_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A sandbox, seen from here. */
typedef struct abx_sandbox abx_sandbox;

/** What happens to a sandbox that had no traffic for its timeout. */
enum abx_on_timeout { ABX_ON_TIMEOUT_KILL = 0, ABX_ON_TIMEOUT_PAUSE = 1 };

/** What to create. Strings are borrowed for the call. */
typedef struct abx_sandbox_options {
	size_t size;             /* set by ABX_SANDBOX_OPTIONS_INIT */
	const char *template_id; /* env address [CLUSTER::]NAME[//IMAGE], or a snapshot's
				    id (snapshot.h); NULL: "base" */
	const char *const *env_vars; /* for every process in it; no blank in a name */
	const char *const *metadata; /* kept with it; can be listed by */
	const char *image;           /* container image instead of the env's */
	uint32_t timeout_ms; /* idle time it lives, up to a second more; 0: env's default
			      */
	uint32_t startup_timeout_ms; /* most time to get one; 0: the env's default */
	const char
		*scaling_group; /* pools of this resource shape only, such as "1c2gi" */
	int no_wait;            /* not 0: ABX_EEXHAUSTED at once when no Pod is idle */
	uint32_t request_timeout_ms; /* 0: startup_timeout_ms and 30 s more; when that is
					0 too, the client's, or 150 s when it has none */
	int on_timeout;              /* enum abx_on_timeout */
	int auto_resume;      /* not 0: traffic to it resumes it when it is paused */
	int pause_files_only; /* not 0: its timeout's pause keeps files, not memory; needs
				 ABX_ON_TIMEOUT_PAUSE, excludes auto_resume */
	int private_ports;    /* not 0: its ports want abx_sandbox_traffic_token() */
	const char *mask_request_host; /* what its ports see as Host, "${PORT}" in it is
					  the port; or NULL */
} abx_sandbox_options;
#define ABX_SANDBOX_OPTIONS_INIT ABX_OPTIONS_INIT(abx_sandbox_options)
/** Does what ABX_SANDBOX_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_sandbox_options_init(abx_sandbox_options *opts);

/** A completion with a sandbox, which is the completion's: abx_sandbox_free(). */
typedef void (*abx_sandbox_fn)(void *userdata, int r, abx_sandbox *sandbox,
			       const abx_error *err);

/**
 * Claims a sandbox and waits until it is usable. `opts` may be NULL.
 *
 * Errors: ABX_EINVAL (an option, or the platform refuses one; the message names it),
 * ABX_ENOTFOUND (no such env), ABX_EEXHAUSTED (no idle Pod within the startup timeout).
 * Owner: the caller, abx_sandbox_free(). Since: 0.1.0
 *
 *     abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
 *     o.template_id = "base";
 *     r = abx_sandbox_create(client, &o, &sandbox, &err);
 */
ABX_API int abx_sandbox_create(abx_client *client, const abx_sandbox_options *opts,
			       abx_sandbox **ret, abx_error **reterr);
/** abx_sandbox_create() as an operation (op.h). Cancelled too late, the sandbox is
 * killed. */
ABX_API int abx_sandbox_create_async(abx_client *client, const abx_sandbox_options *opts,
				     abx_sandbox_fn done, void *userdata,
				     abx_free_fn free_userdata, abx_op **ret_op,
				     abx_error **reterr);

/** How to connect, or to resume. */
typedef struct abx_sandbox_connect_options {
	size_t size;         /* set by ABX_SANDBOX_CONNECT_OPTIONS_INIT */
	uint32_t timeout_ms; /* lives at least this long from now; 0: the platform's
				default */
	int reboot; /* not 0: a paused one begins anew, with its files but without
		       its memory */
} abx_sandbox_connect_options;
#define ABX_SANDBOX_CONNECT_OPTIONS_INIT ABX_OPTIONS_INIT(abx_sandbox_connect_options)
/** Does what ABX_SANDBOX_CONNECT_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_sandbox_connect_options_init(abx_sandbox_connect_options *opts);

/**
 * A handle on a sandbox that runs already, from this or another process, with the right
 * to use it. A paused one is resumed. Never shortens its life. `opts` may be NULL.
 *
 * Errors: ABX_ENOTFOUND (no such sandbox, or it ended).
 * Owner: the caller, abx_sandbox_free(). Since: 0.1.0
 */
ABX_API int abx_sandbox_connect(abx_client *client, const char *id,
				const abx_sandbox_connect_options *opts,
				abx_sandbox **ret, abx_error **reterr);
/** abx_sandbox_connect() as an operation (op.h). */
ABX_API int abx_sandbox_connect_async(abx_client *client, const char *id,
				      const abx_sandbox_connect_options *opts,
				      abx_sandbox_fn done, void *userdata,
				      abx_free_fn free_userdata, abx_op **ret_op,
				      abx_error **reterr);

/**
 * A handle by id alone: asks nobody, so it may name a sandbox that does not exist. Good
 * for info, set_timeout, is_running and kill; commands and files of a secured sandbox
 * need abx_sandbox_connect().
 *
 * Errors: ABX_EINVAL (not an id). Owner: the caller, abx_sandbox_free(). Since: 0.1.0
 */
ABX_API int abx_sandbox_open(abx_client *client, const char *id, abx_sandbox **ret,
			     abx_error **reterr);

/** Gives the handle back; the sandbox goes on running. NULL is fine. Since: 0.1.0 */
ABX_API void abx_sandbox_free(abx_sandbox *sandbox);

/** Its id. Owner: the handle. Since: 0.1.0 */
ABX_API const char *abx_sandbox_id(abx_sandbox *sandbox);
/** The env it was made from, or NULL when not known. Owner: the handle. Since: 0.1.0 */
ABX_API const char *abx_sandbox_template_id(abx_sandbox *sandbox);
/**
 * What requests to its ports send as the header "e2b-traffic-access-token", or NULL when
 * they need none (or the handle is by abx_sandbox_open()). A secret. Owner: the handle.
 * Since: 0.1.0
 */
ABX_API const char *abx_sandbox_traffic_token(abx_sandbox *sandbox);

enum abx_sandbox_state {
	ABX_SANDBOX_UNKNOWN = 0, /* a state this library does not know */
	ABX_SANDBOX_RUNNING = 1,
	ABX_SANDBOX_PAUSED = 2
};

/** What the platform says of a sandbox. Strings belong to the struct. */
typedef struct abx_sandbox_info {
	size_t size; /* what this library filled */
	const char *id;
	const char *template_id;
	const char *alias; /* or NULL */
	int state;         /* enum abx_sandbox_state */
	int64_t started_at_ms;
	int64_t end_at_ms; /* when it ends without further traffic */
	uint32_t cpu_count;
	uint32_t memory_mb;
	uint32_t disk_size_mb;
	const char *envd_version;
	const char *const *metadata; /* "KEY=VALUE", NULL at the end; never NULL itself */
	const char *json;            /* the answer as it came */
	int on_timeout;              /* enum abx_on_timeout; not told in lists */
	int auto_resume;             /* not 0: traffic resumes it; not told in lists */
} abx_sandbox_info;
/** Frees what abx_sandbox_get_info() gave. NULL is fine. Since: 0.1.0 */
ABX_API void abx_sandbox_info_free(abx_sandbox_info *info);

/** A completion with an info, which is the completion's: abx_sandbox_info_free(). */
typedef void (*abx_sandbox_info_fn)(void *userdata, int r, abx_sandbox_info *info,
				    const abx_error *err);

/**
 * Asks the platform about a sandbox.
 *
 * Errors: ABX_ENOTFOUND (no such sandbox, or it ended).
 * Owner: the caller, abx_sandbox_info_free(). Since: 0.1.0
 */
ABX_API int abx_sandbox_get_info(abx_sandbox *sandbox, abx_sandbox_info **ret,
				 abx_error **reterr);
/** abx_sandbox_get_info() as an operation (op.h). */
ABX_API int abx_sandbox_get_info_async(abx_sandbox *sandbox, abx_sandbox_info_fn done,
				       void *userdata, abx_free_fn free_userdata,
				       abx_op **ret_op, abx_error **reterr);

/**
 * Sets how long the sandbox lives from now without traffic; may shorten. Rounded up to a
 * second.
 *
 * Errors: ABX_EINVAL (0, or over the platform's limit), ABX_ENOTFOUND. Since: 0.1.0
 */
ABX_API int abx_sandbox_set_timeout(abx_sandbox *sandbox, uint32_t timeout_ms,
				    abx_error **reterr);
/** abx_sandbox_set_timeout() as an operation (op.h). */
ABX_API int abx_sandbox_set_timeout_async(abx_sandbox *sandbox, uint32_t timeout_ms,
					  abx_done_fn done, void *userdata,
					  abx_free_fn free_userdata, abx_op **ret_op,
					  abx_error **reterr);

/** How to pause. */
typedef struct abx_sandbox_pause_options {
	size_t size;    /* set by ABX_SANDBOX_PAUSE_OPTIONS_INIT */
	int files_only; /* not 0: keeps its files, not its memory; resumed, it begins
			   anew */
} abx_sandbox_pause_options;
#define ABX_SANDBOX_PAUSE_OPTIONS_INIT ABX_OPTIONS_INIT(abx_sandbox_pause_options)
/** Does what ABX_SANDBOX_PAUSE_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_sandbox_pause_options_init(abx_sandbox_pause_options *opts);

/**
 * Pauses the sandbox: it keeps its files and its memory, but nothing in it runs until
 * abx_sandbox_resume(), abx_sandbox_connect() or, with `auto_resume`, traffic. Its
 * timeout does not run meanwhile. `opts` may be NULL.
 *
 * Returns 1 when this call paused it, 0 when it was paused already. Errors: ABX_ENOTFOUND
 * (no such sandbox, or it ended), ABX_ECONFLICT (it is being killed), ABX_EUNSUPPORTED
 * (the platform cannot). Since: 0.1.0
 */
ABX_API int abx_sandbox_pause(abx_sandbox *sandbox, const abx_sandbox_pause_options *opts,
			      abx_error **reterr);
/** abx_sandbox_pause() as an operation (op.h). */
ABX_API int abx_sandbox_pause_async(abx_sandbox *sandbox,
				    const abx_sandbox_pause_options *opts,
				    abx_done_fn done, void *userdata,
				    abx_free_fn free_userdata, abx_op **ret_op,
				    abx_error **reterr);

/**
 * Makes a paused sandbox run again, where it was. Never shortens its life. What the
 * handle knows of the right to use it is renewed. `opts` may be NULL.
 *
 * Returns 1 when this call resumed it, 0 when it ran already. Errors: ABX_ENOTFOUND (no
 * such sandbox, or it ended), ABX_EEXHAUSTED (no room to run it now). Since: 0.1.0
 */
ABX_API int abx_sandbox_resume(abx_sandbox *sandbox,
			       const abx_sandbox_connect_options *opts,
			       abx_error **reterr);
/** abx_sandbox_resume() as an operation (op.h). */
ABX_API int abx_sandbox_resume_async(abx_sandbox *sandbox,
				     const abx_sandbox_connect_options *opts,
				     abx_done_fn done, void *userdata,
				     abx_free_fn free_userdata, abx_op **ret_op,
				     abx_error **reterr);

/**
 * Ends the sandbox and everything in it.
 *
 * Returns 1 when this call ended it, 0 when it did not exist (any more). Since: 0.1.0
 */
ABX_API int abx_sandbox_kill(abx_sandbox *sandbox, abx_error **reterr);
/** abx_sandbox_kill() as an operation (op.h). */
ABX_API int abx_sandbox_kill_async(abx_sandbox *sandbox, abx_done_fn done, void *userdata,
				   abx_free_fn free_userdata, abx_op **ret_op,
				   abx_error **reterr);

/**
 * Asks the sandbox itself whether it answers. Counts as traffic.
 *
 * Returns 1 or 0. Since: 0.1.0
 */
ABX_API int abx_sandbox_is_running(abx_sandbox *sandbox, abx_error **reterr);
/** abx_sandbox_is_running() as an operation (op.h). */
ABX_API int abx_sandbox_is_running_async(abx_sandbox *sandbox, abx_done_fn done,
					 void *userdata, abx_free_fn free_userdata,
					 abx_op **ret_op, abx_error **reterr);

/**
 * Where others reach a port of the sandbox, without a scheme: "PORT-ID.DOMAIN" when the
 * platform has a domain, else "HOST:PORT/sandboxes/ID/PORT".
 *
 * Errors: ABX_EINVAL (port 0 or over 65535), ABX_EUNSUPPORTED (the platform is known by a
 * Unix socket only; the hint says what to set). Owner: the caller, abx_free(). Sends
 * nothing. Since: 0.1.0
 */
ABX_API int abx_sandbox_get_host(abx_sandbox *sandbox, unsigned port, char **ret,
				 abx_error **reterr);
/** The same with its scheme, "http://..." or "https://...". Since: 0.1.0 */
ABX_API int abx_sandbox_get_url(abx_sandbox *sandbox, unsigned port, char **ret,
				abx_error **reterr);

/* ---- listing ---- */

/** Which sandboxes to list. */
typedef struct abx_sandbox_list_options {
	size_t size;                 /* set by ABX_SANDBOX_LIST_OPTIONS_INIT */
	const char *const *metadata; /* all of these must match */
	const char *template_id;     /* NULL: any */
	uint32_t states;             /* bits 1 << enum abx_sandbox_state; 0: any */
	int oldest_first;            /* 0: newest first */
	uint32_t page_count;         /* sandboxes asked for at once, 1 to 100; 0: 100 */
	int64_t started_after_ms;    /* then or later; 0: any time */
} abx_sandbox_list_options;
#define ABX_SANDBOX_LIST_OPTIONS_INIT ABX_OPTIONS_INIT(abx_sandbox_list_options)
/** Does what ABX_SANDBOX_LIST_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_sandbox_list_options_init(abx_sandbox_list_options *opts);

/** A walk over sandboxes; pages are fetched as it goes. */
typedef struct abx_sandbox_iter abx_sandbox_iter;

/**
 * Starts a walk; sends nothing yet. `opts` may be NULL.
 *
 * Errors: ABX_EINVAL. Owner: the caller, abx_sandbox_iter_free(). Since: 0.1.0
 *
 *     while ((r = abx_sandbox_iter_next(iter, &info, &err)) == 1)
 *             puts(info->id);
 */
ABX_API int abx_sandbox_list(abx_client *client, const abx_sandbox_list_options *opts,
			     abx_sandbox_iter **ret, abx_error **reterr);
/**
 * The next sandbox. `*ret` belongs to the iterator and lives until its next call.
 *
 * Returns 1 with one, 0 at the end. Since: 0.1.0
 */
ABX_API int abx_sandbox_iter_next(abx_sandbox_iter *iter, const abx_sandbox_info **ret,
				  abx_error **reterr);
/** A completion of a step: `info` belongs to the iterator; NULL unless r is 1. */
typedef void (*abx_sandbox_next_fn)(void *userdata, int r, const abx_sandbox_info *info,
				    const abx_error *err);
/** abx_sandbox_iter_next() as an operation (op.h); one at a time, else ABX_ESTATE. */
ABX_API int abx_sandbox_iter_next_async(abx_sandbox_iter *iter, abx_sandbox_next_fn done,
					void *userdata, abx_free_fn free_userdata,
					abx_op **ret_op, abx_error **reterr);
/** Ends a walk; a step under way is cancelled. NULL is fine. Since: 0.1.0 */
ABX_API void abx_sandbox_iter_free(abx_sandbox_iter *iter);

#ifdef __cplusplus
}
#endif
#endif

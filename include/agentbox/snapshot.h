/*
 * agentbox/snapshot.h - what a sandbox is at one moment, kept to create others from; and
 * forks, which are made of it at once.
 *
 * A sandbox is created from a snapshot by its id: `template_id` of abx_sandbox_options.
 */
#ifndef AGENTBOX_SNAPSHOT_H
#define AGENTBOX_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A snapshot. Strings belong to the struct. */
typedef struct abx_snapshot_info {
	size_t size;              /* what this library filled */
	const char *id;           /* what template_id and abx_snapshot_delete() take */
	const char *const *names; /* NULL at the end; empty when it was given none */
	const char *json;         /* the answer as it came */
} abx_snapshot_info;
/** Frees what abx_snapshot_create() gave. NULL is fine. Since: 0.1.0 */
ABX_API void abx_snapshot_info_free(abx_snapshot_info *info);
/** A completion with a snapshot, which is the completion's: abx_snapshot_info_free(). */
typedef void (*abx_snapshot_info_fn)(void *userdata, int r, abx_snapshot_info *info,
				     const abx_error *err);

/** How to make a snapshot. Strings are borrowed for the call. */
typedef struct abx_snapshot_options {
	size_t size;      /* set by ABX_SNAPSHOT_OPTIONS_INIT */
	const char *name; /* a-z, 0-9, - and _; the caller's older one of that name is
			     replaced; NULL: none */
} abx_snapshot_options;
#define ABX_SNAPSHOT_OPTIONS_INIT ABX_OPTIONS_INIT(abx_snapshot_options)
/** Does what ABX_SNAPSHOT_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_snapshot_options_init(abx_snapshot_options *opts);

/**
 * Makes a snapshot of a sandbox, which goes on running. `opts` may be NULL.
 *
 * Errors: ABX_ENOTFOUND (no such sandbox, or it ended), ABX_ECONFLICT (it is paused or on
 * its way to be), ABX_EINVAL (the name), ABX_EUNSUPPORTED (the platform cannot). Owner:
 * the caller, abx_snapshot_info_free(). Since: 0.1.0
 *
 *     r = abx_snapshot_create(sandbox, NULL, &snapshot, &err);
 *     o.template_id = snapshot->id;
 *     r = abx_sandbox_create(client, &o, &second, &err);
 */
ABX_API int abx_snapshot_create(abx_sandbox *sandbox, const abx_snapshot_options *opts,
				abx_snapshot_info **ret, abx_error **reterr);
/** abx_snapshot_create() as an operation (op.h). */
ABX_API int abx_snapshot_create_async(abx_sandbox *sandbox,
				      const abx_snapshot_options *opts,
				      abx_snapshot_info_fn done, void *userdata,
				      abx_free_fn free_userdata, abx_op **ret_op,
				      abx_error **reterr);

/**
 * Deletes a snapshot. Sandboxes made from it go on.
 *
 * Returns 1 when there was one, 0 when there was none. Errors: ABX_EINVAL (an empty id).
 * Since: 0.1.0
 */
ABX_API int abx_snapshot_delete(abx_client *client, const char *id, abx_error **reterr);
/** abx_snapshot_delete() as an operation (op.h). */
ABX_API int abx_snapshot_delete_async(abx_client *client, const char *id,
				      abx_done_fn done, void *userdata,
				      abx_free_fn free_userdata, abx_op **ret_op,
				      abx_error **reterr);

/* ---- listing ---- */

/** Which snapshots to list. Strings are borrowed for the call. */
typedef struct abx_snapshot_list_options {
	size_t size;            /* set by ABX_SNAPSHOT_LIST_OPTIONS_INIT */
	const char *sandbox_id; /* those made of this sandbox; NULL: any */
	const char *name;       /* those of this name; NULL: any */
	uint32_t page_count;    /* snapshots asked for at once, 1 to 100; 0: 100 */
} abx_snapshot_list_options;
#define ABX_SNAPSHOT_LIST_OPTIONS_INIT ABX_OPTIONS_INIT(abx_snapshot_list_options)
/** Does what ABX_SNAPSHOT_LIST_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_snapshot_list_options_init(abx_snapshot_list_options *opts);

/** A walk over snapshots; pages are fetched as it goes. */
typedef struct abx_snapshot_iter abx_snapshot_iter;
/**
 * Starts a walk; sends nothing yet. `opts` may be NULL.
 *
 * Errors: ABX_EINVAL. Owner: the caller, abx_snapshot_iter_free(). Since: 0.1.0
 */
ABX_API int abx_snapshot_list(abx_client *client, const abx_snapshot_list_options *opts,
			      abx_snapshot_iter **ret, abx_error **reterr);
/**
 * The next snapshot. `*ret` belongs to the iterator and lives until its next call.
 *
 * Returns 1 with one, 0 at the end. Since: 0.1.0
 */
ABX_API int abx_snapshot_iter_next(abx_snapshot_iter *iter, const abx_snapshot_info **ret,
				   abx_error **reterr);
/** A completion of a step: `info` belongs to the iterator; NULL unless r is 1. */
typedef void (*abx_snapshot_next_fn)(void *userdata, int r, const abx_snapshot_info *info,
				     const abx_error *err);
/** abx_snapshot_iter_next() as an operation (op.h); one at a time, else ABX_ESTATE. */
ABX_API int abx_snapshot_iter_next_async(abx_snapshot_iter *iter,
					 abx_snapshot_next_fn done, void *userdata,
					 abx_free_fn free_userdata, abx_op **ret_op,
					 abx_error **reterr);
/** Ends a walk; a step under way is cancelled. NULL is fine. Since: 0.1.0 */
ABX_API void abx_snapshot_iter_free(abx_snapshot_iter *iter);

/* ---- forks ---- */

/** How to fork. */
typedef struct abx_fork_options {
	size_t size;         /* set by ABX_FORK_OPTIONS_INIT */
	uint32_t count;      /* how many, 1 to 100; 0: 1 */
	uint32_t timeout_ms; /* idle time each lives; 0: the platform's default */
} abx_fork_options;
#define ABX_FORK_OPTIONS_INIT ABX_OPTIONS_INIT(abx_fork_options)
/** Does what ABX_FORK_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_fork_options_init(abx_fork_options *opts);

/** One fork: a sandbox, or why there is none. Both belong to the list. */
typedef struct abx_fork {
	size_t size;          /* what this library filled */
	abx_sandbox *sandbox; /* NULL: it failed, or was taken */
	const abx_error *err; /* NULL: it did not fail */
} abx_fork;

/** Forks. */
typedef struct abx_forks abx_forks;
/** How many were asked for. Since: 0.1.0 */
ABX_API size_t abx_forks_count(abx_forks *forks);
/** The one at `index`, or NULL past the end. Owner: the list. Since: 0.1.0 */
ABX_API const abx_fork *abx_forks_at(abx_forks *forks, size_t index);
/**
 * Takes the sandbox at `index` out of the list; NULL when there is none. Owner: the
 * caller, abx_sandbox_free(). Since: 0.1.0
 */
ABX_API abx_sandbox *abx_forks_take(abx_forks *forks, size_t index);
/** Frees a list and its handles; the sandboxes go on running. NULL is fine. Since: 0.1.0
 */
ABX_API void abx_forks_free(abx_forks *forks);
/** A completion with forks, which are the completion's: abx_forks_free(). */
typedef void (*abx_forks_fn)(void *userdata, int r, abx_forks *forks,
			     const abx_error *err);

/**
 * Makes more of a sandbox: each begins as it is now. Some may fail while others do not.
 * `opts` may be NULL.
 *
 * Returns how many there are, 0 when all failed. Errors: ABX_ENOTFOUND (no such sandbox,
 * or it ended), ABX_ECONFLICT (it is paused), ABX_EINVAL (count over 100),
 * ABX_EUNSUPPORTED (the platform cannot). Owner: the caller, abx_forks_free(). Since:
 * 0.1.0
 */
ABX_API int abx_sandbox_fork(abx_sandbox *sandbox, const abx_fork_options *opts,
			     abx_forks **ret, abx_error **reterr);
/** abx_sandbox_fork() as an operation (op.h). */
ABX_API int abx_sandbox_fork_async(abx_sandbox *sandbox, const abx_fork_options *opts,
				   abx_forks_fn done, void *userdata,
				   abx_free_fn free_userdata, abx_op **ret_op,
				   abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif

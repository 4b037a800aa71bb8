/*
 * agentbox/logs.h - a sandbox's log: what its container writes, and what the platform did
 * with it. The output of commands is not in it (commands.h).
 */
#ifndef AGENTBOX_LOGS_H
#define AGENTBOX_LOGS_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One entry. Strings belong to the list. */
typedef struct abx_log_entry {
	size_t size; /* what this library filled */
	int64_t timestamp_ms;
	int level; /* enum abx_log_level */
	const char *message;
	const char *const *fields; /* "KEY=VALUE", NULL at the end; never NULL itself */
} abx_log_entry;

/** Which entries. Strings are borrowed for the call. */
typedef struct abx_logs_options {
	size_t size;       /* set by ABX_LOGS_OPTIONS_INIT */
	int64_t cursor_ms; /* this moment and later (earlier, when newest_first); 0: from
			      the first (the last) */
	uint32_t limit_count; /* at most so many, 1 to 1000; 0: 1000 */
	int newest_first;     /* 0: oldest first */
	int level;            /* enum abx_log_level: this one and above; 0: all */
	const char *search;   /* in the message, up to 256 bytes; NULL: any */
} abx_logs_options;
#define ABX_LOGS_OPTIONS_INIT ABX_OPTIONS_INIT(abx_logs_options)
/** Does what ABX_LOGS_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_logs_options_init(abx_logs_options *opts);

/** Entries. */
typedef struct abx_logs abx_logs;
/** How many. Since: 0.1.0 */
ABX_API size_t abx_logs_count(abx_logs *logs);
/** The one at `index`, or NULL past the end. Owner: the list. Since: 0.1.0 */
ABX_API const abx_log_entry *abx_logs_at(abx_logs *logs, size_t index);
/** Frees a list. NULL is fine. Since: 0.1.0 */
ABX_API void abx_logs_free(abx_logs *logs);
/** A completion with a list, which is the completion's: abx_logs_free(). */
typedef void (*abx_logs_fn)(void *userdata, int r, abx_logs *logs, const abx_error *err);

/**
 * A sandbox's log. To follow it, ask again with the last entry's timestamp as cursor and
 * leave out what was there already. `opts` may be NULL.
 *
 * Errors: ABX_ENOTFOUND (no such sandbox, or it ended), ABX_EINVAL (limit_count over
 * 1000, a negative cursor, no such level). Owner: the caller, abx_logs_free(). Since:
 * 0.1.0
 */
ABX_API int abx_sandbox_get_logs(abx_sandbox *sandbox, const abx_logs_options *opts,
				 abx_logs **ret, abx_error **reterr);
/** abx_sandbox_get_logs() as an operation (op.h). */
ABX_API int abx_sandbox_get_logs_async(abx_sandbox *sandbox, const abx_logs_options *opts,
				       abx_logs_fn done, void *userdata,
				       abx_free_fn free_userdata, abx_op **ret_op,
				       abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif

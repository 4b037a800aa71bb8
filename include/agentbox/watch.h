/*
 * agentbox/watch.h - watch a directory of a sandbox.
 *
 * A watch is a stream of events that lives as long as its handle. Paths are as files.h
 * says. Every call can fail as sandbox.h says at its top, and with ABX_ENOTFOUND when the
 * sandbox has ended; the message says whether it was that or the path.
 */
#ifndef AGENTBOX_WATCH_H
#define AGENTBOX_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/files.h>

#ifdef __cplusplus
extern "C" {
#endif

enum abx_watch_type {
	ABX_WATCH_UNKNOWN = 0, /* something this library does not know */
	ABX_WATCH_CREATE = 1,
	ABX_WATCH_WRITE = 2,
	ABX_WATCH_REMOVE = 3,
	ABX_WATCH_RENAME = 4, /* the name it had; what it has now is a create */
	ABX_WATCH_CHMOD = 5   /* its mode, owner or times */
};

/** One thing that happened. It and what it points to live until the callback returns. */
typedef struct abx_watch_event {
	size_t size;                /* what this library filled */
	int type;                   /* enum abx_watch_type */
	const char *name;           /* relative to the watched directory */
	const abx_file_info *entry; /* with include_entry, when it is still there; else
				       NULL */
} abx_watch_event;

/**
 * Takes an event.
 *
 * Returns ABX_OK, ABX_PAUSE (this one is taken, but no more until abx_watch_resume()), or
 * a negative ABX_E... code, which ends the watch with that code.
 */
typedef int (*abx_watch_event_fn)(void *userdata, const abx_watch_event *event);

/** How to watch. Strings are borrowed for the call. */
typedef struct abx_watch_options {
	size_t size;                 /* set by ABX_WATCH_OPTIONS_INIT */
	abx_watch_event_fn on_event; /* required */
	void *userdata;              /* of on_event; must live as long as the handle */
	int recursive;               /* not 0: and everything below it */
	int include_entry;           /* not 0: events tell what the file is like */
	int allow_network_mounts;    /* not 0: also where events of others are not seen */
	const char *user;            /* whose home relative paths begin at; or NULL */
	uint32_t timeout_ms;         /* then it ends with ABX_ETIMEDOUT; 0: never */
} abx_watch_options;
#define ABX_WATCH_OPTIONS_INIT ABX_OPTIONS_INIT(abx_watch_options)
/** Does what ABX_WATCH_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_watch_options_init(abx_watch_options *opts);

/** A directory that is watched. */
typedef struct abx_watch abx_watch;
/** A completion with a watch, which is the completion's: abx_watch_free(). */
typedef void (*abx_watch_fn)(void *userdata, int r, abx_watch *watch,
			     const abx_error *err);

/**
 * Watches a directory; returns when nothing that happens in it from now on is missed.
 * Events go to `opts->on_event`, from abx_client_process(), abx_client_wait() or any
 * blocking call.
 *
 * Errors: ABX_ENOTFOUND (no such directory), ABX_EINVAL (no callback, not a directory, or
 * on a network file system). Owner: the caller, abx_watch_free(). Since: 0.1.0
 *
 *     abx_watch_options o = ABX_WATCH_OPTIONS_INIT;
 *     o.on_event = tell;
 *     o.recursive = 1;
 *     r = abx_watch_start(sandbox, "/home/user/src", &o, &watch, &err);
 */
ABX_API int abx_watch_start(abx_sandbox *sandbox, const char *path,
			    const abx_watch_options *opts, abx_watch **ret,
			    abx_error **reterr);
/** abx_watch_start() as an operation (op.h); complete when it watches. */
ABX_API int abx_watch_start_async(abx_sandbox *sandbox, const char *path,
				  const abx_watch_options *opts, abx_watch_fn done,
				  void *userdata, abx_free_fn free_userdata,
				  abx_op **ret_op, abx_error **reterr);

/**
 * Waits for the end of a watch, which is always an error: ABX_ETIMEDOUT, ABX_EIO (events
 * were lost, by an overflow or because they were taken too slowly; list the directory and
 * watch again), ABX_EUNAVAILABLE (the stream broke; the sandbox ended), what the callback
 * answered, or ABX_ECANCELED (it was freed). Once for each watch, else ABX_ESTATE.
 * Since: 0.1.0
 */
ABX_API int abx_watch_wait(abx_watch *watch, abx_error **reterr);
/** abx_watch_wait() as an operation (op.h). Cancelling it leaves the watch. */
ABX_API int abx_watch_wait_async(abx_watch *watch, abx_done_fn done, void *userdata,
				 abx_free_fn free_userdata, abx_op **ret_op,
				 abx_error **reterr);
/** Lets the events go on after the callback answered ABX_PAUSE. Since: 0.1.0 */
ABX_API void abx_watch_resume(abx_watch *watch);
/** Stops watching and frees the handle, also from inside its callback. NULL is fine.
 * Since: 0.1.0 */
ABX_API void abx_watch_free(abx_watch *watch);

#ifdef __cplusplus
}
#endif
#endif

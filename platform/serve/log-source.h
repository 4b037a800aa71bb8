/*
 * log-source.h - bytes of a sandbox's log as they come: of its main container, or of a
 * file in it that a runtime writes. Inside of serve/ only.
 *
 * Callbacks run from the loop, never inside a call of the owner's.
 */
#ifndef ABX_SERVE_LOG_SOURCE_H
#define ABX_SERVE_LOG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "control/sandboxes.h"
#include "serve/serve.h"

/* Of a file in the sandbox so much is read, from its end. */
#define ABX__LOG_FILE_MAX ((size_t)1 << 20)

typedef struct abx__log_source abx__log_source;

typedef struct abx__log_source_events {
	void (*data)(void *userdata, const char *data, size_t len);
	/* What was there when it was asked for has been given; what follows is new. */
	void (*caught_up)(void *userdata);
	/* Once, last: the end of what there is, or when it is followed of the sandbox;
	   or what went wrong. */
	void (*done)(void *userdata, int r, const abx_error *err);
} abx__log_source_events;

/* The container's output. ABX_ENOTFOUND, ABX_ENOMEM. */
int abx__log_source_container(abx__serve *serve, const abx__sandbox_rec *rec, bool follow,
			      const abx__log_source_events *events, void *userdata,
			      abx__log_source **ret, abx_error **reterr);
/* The last lines (0: all) of a file in a running sandbox. ABX_ENOMEM. */
int abx__log_source_file(abx__serve *serve, const abx__sandbox_rec *rec, const char *path,
			 unsigned lines, bool follow,
			 const abx__log_source_events *events, void *userdata,
			 abx__log_source **ret, abx_error **reterr);
void abx__log_source_pause(abx__log_source *s);
void abx__log_source_resume(abx__log_source *s);
/* No callback runs any more. */
void abx__log_source_close(abx__log_source *s);

#endif

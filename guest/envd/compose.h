/*
 * compose.h - several files become one: their bytes in order, then they are gone
 * (contract/envd.md, 4.3). Blocks; runs on a worker and touches nothing of the loop's.
 */
#ifndef ABX_ENVD_COMPOSE_H
#define ABX_ENVD_COMPOSE_H

#include <stddef.h>

#include "base/error.h"
#include "envd/users.h"

#define ABX__COMPOSE_MAX_SOURCES 10000

/* Zero-initialised is valid; all of it belongs to the struct. */
typedef struct abx__compose {
	abx__user user; /* owner of what is made, and of the paths' "~" */
	char *workdir;  /* may be NULL */
	char **sources; /* as the caller gave them */
	size_t count;
	char *destination;

	char *path;         /* the destination, resolved */
	size_t left_behind; /* sources that could not be removed */
	int status;         /* HTTP status of a failure; 0: none */
	abx_error *err;
} abx__compose;

/* The destination appears whole or not at all; with a failure the sources stay. */
void abx__compose_run(abx__compose *compose);
void abx__compose_done(abx__compose *compose);

#endif

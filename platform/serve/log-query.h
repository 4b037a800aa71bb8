/*
 * log-query.h - which log of a sandbox is asked for, and how much of it. Inside of serve/
 * only.
 */
#ifndef ABX_SERVE_LOG_QUERY_H
#define ABX_SERVE_LOG_QUERY_H

#include <json-c/json.h>

#include "serve/call.h"

/* Of the end of a log so much is answered at once. */
#define ABX__LOG_TEXT_MAX ((size_t)1 << 20)

/* Zero-initialised is valid. */
typedef struct abx__log_query {
	unsigned lines;            /* 0: all */
	char *container, *runtime; /* NULL: the main one, its output */
	char *file;                /* of the runtime */
	json_object *template_;    /* of the sandbox; NULL: it has ended */
} abx__log_query;

/* `lines`, `container` and `source` of the call. `template_`: the sandbox's; NULL for one
   that ended. `lenient`: a number that is none counts as 0. ABX_EINVAL, ABX_EUNSUPPORTED
   with the text for the caller, ABX_ENOMEM; to be done whatever is returned. */
int abx__log_query_parse(abx__call *call, const char *template_, bool lenient,
			 abx__log_query *q, abx_error **reterr);
void abx__log_query_done(abx__log_query *q);

/* The name of the sandbox's own container. */
const char *abx__log_main_container(json_object *template_);
/* Names of the Pod's containers, the sandbox's own first, those that prepare it last;
 * NULL when out of memory. */
json_object *abx__log_containers(json_object *template_);

#endif

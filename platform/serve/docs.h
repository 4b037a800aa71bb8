/*
 * docs.h - the documentation a template carries, with the names and addresses of who
 * reads it in the place of ${AGBX_...} (native-api.md, section 7.4). Pure.
 *
 * ${AGBX_API_KEY} is never replaced: no document carries a live key. A placeholder whose
 * value is not known stays as it is, and so does any other ${...}.
 */
#ifndef ABX_SERVE_DOCS_H
#define ABX_SERVE_DOCS_H

#include <agentbox/error.h>

#include "base/buf.h"

#define ABX__DOCS_MAX ((size_t)1 << 20)

typedef struct abx__docs_names {
	const char *env;  /* NULL: a template's own, for no env */
	const char *pool; /* of the env; NULL: it has none here */
	const char *cluster;
	const char *base_url; /* "http://HOST:PORT", where this server is reached */
} abx__docs_names;

/* Appends. ABX_ENOMEM; ABX_ETOOBIG over ABX__DOCS_MAX. */
int abx__docs_render(const char *text, const abx__docs_names *names, abx__buf *out);

#endif

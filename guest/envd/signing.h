/*
 * signing.h - signed file URLs: the parameters of a request, and whether they let it in
 * (contract/envd.md, 4.1). Pure.
 */
#ifndef ABX_ENVD_SIGNING_H
#define ABX_ENVD_SIGNING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/secret.h"

#define ABX__SIGNING_READ "read"
#define ABX__SIGNING_WRITE "write"

/* What a query says. Zero-initialised is valid. */
typedef struct abx__signing {
	char *path;      /* decoded, not resolved; NULL: none */
	char *username;  /* NULL: none, which signs like an empty one */
	char *signature; /* NULL: none */
	bool expires;
	int64_t expires_s;
} abx__signing;

/* `query` may be NULL. ABX_EINVAL names the parameter that is broken; ABX_ENOMEM. */
int abx__signing_read(const char *query, abx__signing *ret, abx_error **reterr);
void abx__signing_done(abx__signing *signing);
/* NULL when the signature is good for `operation` at `now_s`, else what is wrong with it.
   Equality comes first: who cannot sign learns nothing of the time. */
const char *abx__signing_check(const abx__signing *signing, const abx__secret *token,
			       const char *operation, int64_t now_s);

#endif

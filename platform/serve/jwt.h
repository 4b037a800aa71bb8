/*
 * jwt.h - console sessions: JSON Web Tokens signed with HMAC-SHA256 under a secret this
 * server shares with whoever signs people in. Pure; the token is foreign.
 *
 * Only alg HS256 is taken. `exp` and `nbf` are kept when they are there, without leeway.
 * The signature is compared in constant time, before a byte of the claims is read.
 */
#ifndef ABX_SERVE_JWT_H
#define ABX_SERVE_JWT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "base/secret.h"

#define ABX__JWT_MAX 8192
#define ABX__JWT_CLAIM_MAX 253
#define ABX__JWT_SECRET_MIN 32

typedef struct abx__jwt {
	char user[ABX__JWT_CLAIM_MAX + 1]; /* `user`, else `sub`; never empty */
	char team[ABX__JWT_CLAIM_MAX + 1];
	char email[ABX__JWT_CLAIM_MAX + 1]; /* "": not said */
	bool admin;
} abx__jwt;

/* Three parts with dots between: worth to be verified as one. */
bool abx__jwt_looks_like(const char *token);
/* ABX_EUNAUTHENTICATED with a text for the caller, ABX_ENOMEM. */
int abx__jwt_verify(const char *token, const abx__secret *secret, int64_t now_ms,
		    abx__jwt *ret, abx_error **reterr);

/* The secret: the file's text without the line's end, at least ABX__JWT_SECRET_MIN bytes,
   in a file nobody else may read. ABX_EIO, ABX_EDENIED, ABX_EINVAL. */
int abx__jwt_secret_load(const char *path, abx__secret **ret, abx_error **reterr);

#endif

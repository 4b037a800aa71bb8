/*
 * agentbox/error.h - what a failed call says.
 *
 * Every function that can fail returns ABX_OK (0), a count where documented, or a
 * negative code of this list, and takes an optional `abx_error **` as its last argument.
 * The code is for branching, the message for a person, the hint says what to try next. A
 * failed call sets
 * `*reterr` when `reterr` is not NULL; a successful one leaves it as it was.
 */
#ifndef AGENTBOX_ERROR_H
#define AGENTBOX_ERROR_H

#include <agentbox/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name, value, default text. Grows only at the end; accept values you do not know. */
#define ABX_ERROR_MAP(X)                                             \
	X(EINVAL, -1, "invalid argument")                            \
	X(ENOMEM, -2, "out of memory")                               \
	X(ENOTFOUND, -3, "no such object")                           \
	X(ETIMEDOUT, -4, "deadline passed")                          \
	X(ECANCELED, -5, "operation cancelled")                      \
	X(EEXISTS, -6, "object exists already")                      \
	X(ECONFLICT, -7, "object was changed meanwhile")             \
	X(EUNAUTHENTICATED, -8, "no valid credential")               \
	X(EDENIED, -9, "not allowed")                                \
	X(EEXHAUSTED, -10, "no capacity or quota left")              \
	X(EUNAVAILABLE, -11, "service not reachable or not ready")   \
	X(ETOOBIG, -12, "over a size limit")                         \
	X(EUNSUPPORTED, -13, "not supported here")                   \
	X(EPROTO, -14, "unexpected answer from the peer")            \
	X(EIO, -15, "system or network failure")                     \
	X(ESTATE, -16, "not possible in the object's present state") \
	X(EFAIL, -17, "operation failed")

#define ABX_OK 0
#define ABX__ERROR_ENUM(name, value, text) ABX_##name = value,
enum abx_error_code { ABX_ERROR_MAP(ABX__ERROR_ENUM) ABX__ERROR_CODE_LAST = -1000 };
#undef ABX__ERROR_ENUM

/** One failure. Owner: whoever received it, freed with abx_error_free(). */
typedef struct abx_error abx_error;

/** The code, one of ABX_E...; 0 for NULL. */
ABX_API int abx_error_code(const abx_error *err);
/** What happened, to which object. Never NULL; lives as long as `err`. */
ABX_API const char *abx_error_message(const abx_error *err);
/** What to do next, or NULL. Lives as long as `err`. */
ABX_API const char *abx_error_hint(const abx_error *err);
/**
 * The JSON object a service sent as its refusal, such as {"error": "...", "errorCode":
 * "APPROVAL_REQUIRED", "detail": {...}}, or NULL. For what message and hint do not carry.
 * Lives as long as `err`. Since: 0.1.0
 */
ABX_API const char *abx_error_detail(const abx_error *err);
/** The HTTP status underneath, or 0. */
ABX_API int abx_error_http_status(const abx_error *err);
/** The errno underneath, or 0. */
ABX_API int abx_error_errno(const abx_error *err);
/** Gives an error back. NULL is fine. */
ABX_API void abx_error_free(abx_error *err);
/** The name of a code, such as "ENOTFOUND"; "EUNKNOWN" for values not in the list. */
ABX_API const char *abx_error_name(int code);
/** Gives back memory a function of this library handed over as `char *`. NULL is fine. */
ABX_API void abx_free(void *p);

#ifdef __cplusplus
}
#endif
#endif

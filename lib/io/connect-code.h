/*
 * connect-code.h - Connect's error codes: their names, the HTTP status a unary call
 * answers with, and what they are in the terms of <agentbox/error.h>.
 */
#ifndef ABX_IO_CONNECT_CODE_H
#define ABX_IO_CONNECT_CODE_H

/* Name in capitals, number (gRPC's), name on the wire, HTTP status, our code. */
#define ABX__CONNECT_CODE_MAP(X)                                            \
	X(CANCELED, 1, "canceled", 499, ABX_ECANCELED)                      \
	X(UNKNOWN, 2, "unknown", 500, ABX_EFAIL)                            \
	X(INVALID_ARGUMENT, 3, "invalid_argument", 400, ABX_EINVAL)         \
	X(DEADLINE_EXCEEDED, 4, "deadline_exceeded", 504, ABX_ETIMEDOUT)    \
	X(NOT_FOUND, 5, "not_found", 404, ABX_ENOTFOUND)                    \
	X(ALREADY_EXISTS, 6, "already_exists", 409, ABX_EEXISTS)            \
	X(PERMISSION_DENIED, 7, "permission_denied", 403, ABX_EDENIED)      \
	X(RESOURCE_EXHAUSTED, 8, "resource_exhausted", 429, ABX_EEXHAUSTED) \
	X(FAILED_PRECONDITION, 9, "failed_precondition", 400, ABX_ESTATE)   \
	X(ABORTED, 10, "aborted", 409, ABX_ECONFLICT)                       \
	X(OUT_OF_RANGE, 11, "out_of_range", 400, ABX_EINVAL)                \
	X(UNIMPLEMENTED, 12, "unimplemented", 501, ABX_EUNSUPPORTED)        \
	X(INTERNAL, 13, "internal", 500, ABX_EFAIL)                         \
	X(UNAVAILABLE, 14, "unavailable", 503, ABX_EUNAVAILABLE)            \
	X(DATA_LOSS, 15, "data_loss", 500, ABX_EIO)                         \
	X(UNAUTHENTICATED, 16, "unauthenticated", 401, ABX_EUNAUTHENTICATED)

#define ABX__CONNECT_CODE_ENUM(name, number, text, http, code) \
	ABX__CONNECT_##name = (number),
enum abx__connect_code { ABX__CONNECT_CODE_MAP(ABX__CONNECT_CODE_ENUM) };
#undef ABX__CONNECT_CODE_ENUM

const char *abx__connect_code_name(
	enum abx__connect_code code); /* "unknown" for a value not in the list */
int abx__connect_code_http(enum abx__connect_code code);
int abx__connect_code_error(enum abx__connect_code code); /* ABX_E... */
/* UNKNOWN for a name not in the list, or NULL. */
enum abx__connect_code abx__connect_code_from_name(const char *name);
/* The code one of our errors travels as. */
enum abx__connect_code abx__connect_code_from_error(int abx_code);

#endif

/*
 * error.h - making and enriching the errors of <agentbox/error.h>.
 *
 * Invariants: every setter returns the code it was given, so `return abx__error_set(...)`
 * is the idiom; a NULL `reterr` is fine; an error that cannot be allocated becomes the
 * static out-of-memory error; a setter replaces (and frees) an error already there.
 */
#ifndef ABX_BASE_ERROR_H
#define ABX_BASE_ERROR_H

#include <agentbox/error.h>

#include "base/cleanup.h"

int abx__error_set(abx_error **reterr, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As abx__error_set() with ": strerror(errnum)" appended and the errno kept. */
int abx__error_errno(abx_error **reterr, int code, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* As abx__error_set() with the HTTP status kept. */
int abx__error_http(abx_error **reterr, int code, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The static out-of-memory error; needs no allocation. */
int abx__error_nomem(abx_error **reterr);
/* Puts "context: " before the message that is there; returns the code of the error (or
 * ABX_EFAIL when none). */
int abx__error_prefix(abx_error **reterr, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets the hint of the error that is there. */
void abx__error_hint(abx_error **reterr, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Keeps the body of a refusal (JSON text) with the error that is there. */
void abx__error_detail(abx_error **reterr, const char *json);
/* A copy with its own owner; the static error for NULL-on-OOM; NULL for NULL. */
abx_error *abx__error_copy(const abx_error *err);
/* The code an HTTP status stands for, and back. */
int abx__error_code_from_http(int status);
int abx__error_http_from_code(int code);

ABX_DEFINE_FREEP(abx__error_freep, abx_error, abx_error_free)

#endif

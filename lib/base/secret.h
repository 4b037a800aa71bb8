/*
 * secret.h - the one type secrets live in: wiped when freed, compared in constant time,
 * and no function that prints one. Tokens, keys and vault values are never held as plain
 * `char *` beyond a call.
 */
#ifndef ABX_BASE_SECRET_H
#define ABX_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

typedef struct abx__secret abx__secret;

abx__secret *abx__secret_new(const char *value,
			     size_t len); /* copies; NULL when out of memory */
void abx__secret_free(abx__secret *secret);
/* The bytes, NUL-terminated, for the call that must send or hash them. Never log this. */
const char *abx__secret_reveal(const abx__secret *secret);
size_t abx__secret_len(const abx__secret *secret);
/* Constant time in the content; a NULL secret equals nothing. */
bool abx__secret_equals(const abx__secret *secret, const char *other, size_t len);
/* Wipes memory in a way the compiler keeps. */
void abx__wipe(void *p, size_t len);

ABX_DEFINE_FREEP(abx__secret_freep, abx__secret, abx__secret_free)

#endif

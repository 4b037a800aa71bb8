/*
 * accounts.h - passwd(5), group(5) or shadow(5), as far as adding the account `user`
 * needs them. Pure.
 */
#ifndef ABX_ENVD_ACCOUNTS_H
#define ABX_ENVD_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ABX__ACCOUNTS_ID_COUNT 65536

typedef struct abx__accounts {
	bool has_user;
	uint32_t user_id;    /* its third field, 0 when that is no number */
	const char *newline; /* "\n" when the last line lacks its end, else "" */
	uint8_t used[ABX__ACCOUNTS_ID_COUNT / 8];
} abx__accounts;

/* Lines that make no sense are passed over. */
void abx__accounts_read(abx__accounts *ret, const char *text, size_t len);
/* The first number from `from` on that no line has as its third field. */
uint32_t abx__accounts_free_id(const abx__accounts *accounts, uint32_t from);

#endif

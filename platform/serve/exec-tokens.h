/*
 * exec-tokens.h - tokens that open a sandbox's terminal: random, good for one sandbox,
 * one time and 30 seconds. Kept in memory, as hashes. Pure but for the random bytes.
 */
#ifndef ABX_SERVE_EXEC_TOKENS_H
#define ABX_SERVE_EXEC_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "base/id.h"

#define ABX__EXEC_TOKEN_LIFE_MS 30000
#define ABX__EXEC_TOKEN_LEN 64 /* hex digits */
#define ABX__EXEC_TOKENS_MAX 1024

typedef struct abx__exec_token {
	uint8_t hash[ABX__SHA256_LEN];
	char sandbox[64];
	int64_t until_ms;
} abx__exec_token;

/* Zero-initialised is valid; the owner frees `items`. */
typedef struct abx__exec_tokens {
	abx__exec_token *items;
	size_t count;
} abx__exec_tokens;

/* ABX_EEXHAUSTED when as many are waiting as are kept; ABX_ENOMEM, ABX_EIO. */
int abx__exec_tokens_mint(abx__exec_tokens *tokens, const char *sandbox, int64_t now_ms,
			  char out[ABX__EXEC_TOKEN_LEN + 1], abx_error **reterr);
/* Uses it up, whatever it was for. ABX_OK; ABX_EUNAUTHENTICATED with the text for the
 * caller: unknown, used, over, or another sandbox's. */
int abx__exec_tokens_spend(abx__exec_tokens *tokens, const char *token,
			   const char *sandbox, int64_t now_ms, abx_error **reterr);

#endif

/*
 * exec-tokens.c - see exec-tokens.h.
 */
#include "serve/exec-tokens.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

static void drop(abx__exec_tokens *tokens, size_t i)
{
	tokens->items[i] = tokens->items[--tokens->count];
}

static void drop_old(abx__exec_tokens *tokens, int64_t now_ms)
{
	for (size_t i = 0; i < tokens->count;)
		if (now_ms >= tokens->items[i].until_ms)
			drop(tokens, i);
		else
			i++;
}

int abx__exec_tokens_mint(abx__exec_tokens *tokens, const char *sandbox, int64_t now_ms,
			  char out[ABX__EXEC_TOKEN_LEN + 1], abx_error **reterr)
{
	uint8_t bytes[ABX__EXEC_TOKEN_LEN / 2];
	abx__exec_token t = { .until_ms = now_ms + ABX__EXEC_TOKEN_LIFE_MS };

	drop_old(tokens, now_ms);
	if (tokens->count == ABX__EXEC_TOKENS_MAX)
		return abx__error_set(reterr, ABX_EEXHAUSTED,
				      "no more than %d terminal tokens wait at a time; "
				      "each ends after 30 s",
				      ABX__EXEC_TOKENS_MAX);
	if (!tokens->items)
		tokens->items = abx__calloc(ABX__EXEC_TOKENS_MAX, sizeof(t));
	if (!tokens->items)
		return abx__error_nomem(reterr);
	if (abx__random(bytes, sizeof(bytes)) < 0)
		return abx__error_set(reterr, ABX_EIO, "no random bytes for a token");
	abx__hex(bytes, sizeof(bytes), out);
	if (abx__sha256(out, ABX__EXEC_TOKEN_LEN, t.hash) < 0 ||
	    abx__str_copy(t.sandbox, sizeof(t.sandbox), sandbox) < 0)
		return abx__error_set(reterr, ABX_EIO, "cannot hash a token");
	tokens->items[tokens->count++] = t;
	return ABX_OK;
}

static int refuse(abx_error **reterr, const char *why)
{
	return abx__error_set(reterr, ABX_EUNAUTHENTICATED, "%s", why);
}

int abx__exec_tokens_spend(abx__exec_tokens *tokens, const char *token,
			   const char *sandbox, int64_t now_ms, abx_error **reterr)
{
	uint8_t hash[ABX__SHA256_LEN];

	drop_old(tokens, now_ms);
	if (strlen(token) != ABX__EXEC_TOKEN_LEN ||
	    abx__sha256(token, ABX__EXEC_TOKEN_LEN, hash) < 0)
		return refuse(reterr, "invalid or used terminal token");
	for (size_t i = 0; i < tokens->count; i++) {
		abx__exec_token t = tokens->items[i];

		if (CRYPTO_memcmp(t.hash, hash, sizeof(hash)) != 0)
			continue;
		drop(tokens, i);
		return abx__str_eq(t.sandbox, sandbox)
			       ? ABX_OK
			       : refuse(reterr, "the token is for another sandbox");
	}
	return refuse(reterr, "invalid or used terminal token");
}

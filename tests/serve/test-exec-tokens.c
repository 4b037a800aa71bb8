/* Tokens of terminals: one use, one sandbox, 30 seconds. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "serve/exec-tokens.h"

static abx__exec_tokens tokens;

static void teardown(void)
{
	abx__free(tokens.items);
}

TestSuite(serve_exec_tokens, .fini = teardown);

static void mint(const char *sandbox, int64_t now, char out[ABX__EXEC_TOKEN_LEN + 1])
{
	cr_assert_eq(abx__exec_tokens_mint(&tokens, sandbox, now, out, NULL), ABX_OK);
	cr_assert_eq(strspn(out, "0123456789abcdef"), ABX__EXEC_TOKEN_LEN);
}

static int spend(const char *token, const char *sandbox, int64_t now)
{
	return abx__exec_tokens_spend(&tokens, token, sandbox, now, NULL);
}

Test(serve_exec_tokens, open_once)
{
	char a[ABX__EXEC_TOKEN_LEN + 1], b[ABX__EXEC_TOKEN_LEN + 1];

	mint("s", 0, a);
	mint("s", 0, b);
	cr_assert_str_neq(a, b);
	cr_assert_eq(spend(a, "s", 29999), ABX_OK);
	cr_assert_eq(spend(a, "s", 29999), ABX_EUNAUTHENTICATED);
	cr_assert_eq(spend(b, "s", 30000), ABX_EUNAUTHENTICATED, "after 30 s");
}

Test(serve_exec_tokens, open_their_sandbox_alone)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	char a[ABX__EXEC_TOKEN_LEN + 1];

	mint("s", 0, a);
	cr_assert_eq(abx__exec_tokens_spend(&tokens, a, "t", 1, &err),
		     ABX_EUNAUTHENTICATED);
	cr_assert_str_eq(abx_error_message(err), "the token is for another sandbox");
	cr_assert_eq(spend(a, "s", 1), ABX_EUNAUTHENTICATED, "it is used up");
	cr_assert_eq(spend("", "s", 1), ABX_EUNAUTHENTICATED);
}

Test(serve_exec_tokens, so_many_wait_and_no_more)
{
	char a[ABX__EXEC_TOKEN_LEN + 1];

	for (int i = 0; i < ABX__EXEC_TOKENS_MAX; i++)
		mint("s", 0, a);
	cr_assert_eq(abx__exec_tokens_mint(&tokens, "s", 1, a, NULL), ABX_EEXHAUSTED);
	mint("s", 30000, a);
	cr_assert_eq(tokens.count, 1);
}

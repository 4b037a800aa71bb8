/*
 * nft.c - hands a ruleset to libnftables. Called in a child of its own, so that the
 * library's memory goes with it.
 */
#include <nftables/libnftables.h>
#include <stdlib.h>

#include "base/str.h"
#include "engine/podd/podd.h"

int abx__nft_apply(const char *commands, char *err, size_t err_size)
{
	struct nft_ctx *nft = nft_ctx_new(NFT_CTX_DEFAULT);
	int r;

	if (!nft)
		return ABX_ENOMEM;
	nft_ctx_buffer_output(nft);
	nft_ctx_buffer_error(nft);
	r = nft_run_cmd_from_buffer(nft, commands) == 0 ? ABX_OK : ABX_EIO;
	if (r < 0 && abx__str_copy(err, err_size, nft_ctx_get_error_buffer(nft)) < 0)
		abx__str_copy(err, err_size, "libnftables refused the rules");
	nft_ctx_free(nft);
	return r;
}

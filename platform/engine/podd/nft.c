/*
 * nft.c - hands a ruleset to libnftables, and looks what other rulesets do. Called in a
 * child of its own, so that the library's memory goes with it.
 */
#include <json-c/json.h>
#include <nftables/libnftables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const char *member(json_object *object, const char *name)
{
	json_object *value;

	return json_object_object_get_ex(object, name, &value)
		       ? json_object_get_string(value)
		       : "";
}

/* Of one entry of what `nft -j list chains` prints. */
static bool drops_forwarded(json_object *entry, char *ret, size_t size)
{
	json_object *chain;

	if (!json_object_object_get_ex(entry, "chain", &chain) ||
	    strcmp(member(chain, "hook"), "forward") != 0 ||
	    strcmp(member(chain, "policy"), "drop") != 0 ||
	    (strcmp(member(chain, "family"), "ip") != 0 &&
	     strcmp(member(chain, "family"), "inet") != 0))
		return false;
	return snprintf(ret, size, "%s %s %s", member(chain, "family"),
			member(chain, "table"), member(chain, "name")) > 0;
}

int abx__nft_forward_drop(const char *unused, char *ret, size_t size)
{
	struct nft_ctx *nft = nft_ctx_new(NFT_CTX_DEFAULT);
	json_object *answer = NULL, *list;
	int r = ABX_EIO;

	(void)unused;
	*ret = '\0';
	if (!nft)
		return ABX_ENOMEM;
	nft_ctx_buffer_output(nft);
	nft_ctx_buffer_error(nft);
	nft_ctx_output_set_flags(nft, NFT_CTX_OUTPUT_JSON);
	if (nft_run_cmd_from_buffer(nft, "list chains") == 0)
		answer = json_tokener_parse(nft_ctx_get_output_buffer(nft));
	if (json_object_object_get_ex(answer, "nftables", &list) &&
	    json_object_is_type(list, json_type_array)) {
		r = ABX_OK;
		for (size_t i = 0; i < json_object_array_length(list) && !*ret; i++)
			drops_forwarded(json_object_array_get_idx(list, i), ret, size);
	}
	json_object_put(answer);
	nft_ctx_free(nft);
	return r;
}

/* The nextToken of the E2B listing: whatever is taken is a token this server could have
 * made. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "serve/list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

bool abx__sandboxes_at(const abx__sandboxes *table, size_t index,
		       const abx__sandbox_rec **ret)
{
	(void)table;
	(void)index;
	(void)ret;
	return false;
}

static void check(const char *token, bool asc)
{
	ABX_CLEANUP(abx__freep) char *id = NULL;
	ABX_CLEANUP(abx__freep) char *again = NULL;
	ABX_CLEANUP(abx__freep) char *made = NULL;
	int64_t us = 0, back = 0;

	if (abx__list_token_parse(token, asc, &us, &id, NULL) < 0)
		return;
	made = abx__list_token_make(us, id, asc);
	if (strlen(id) > 64 || us < 0)
		return;
	if (abx__list_token_parse(made, asc, &back, &again, NULL) < 0 || back != us ||
	    strcmp(id, again) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = abx__strndup((const char *)data, size);

	check(text, false);
	check(text, true);
	abx__free(text);
	return 0;
}

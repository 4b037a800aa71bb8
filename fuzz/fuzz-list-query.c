/* The query of the E2B listing, and the metadata filter in it on its own. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = abx__strndup((const char *)data, size);
	abx__map metadata = ABX__MAP_INIT;
	abx__list_query q;

	if (abx__list_query_parse(text, &q, NULL) == ABX_OK) {
		if (q.limit < 1 || q.limit > ABX__LIST_LIMIT_MAX)
			abort();
		abx__list_query_done(&q);
	}
	(void)abx__list_metadata_parse(text, &metadata, NULL);
	abx__map_done(&metadata);
	abx__free(text);
	return 0;
}

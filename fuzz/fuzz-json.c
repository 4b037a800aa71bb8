/* JSON: what parses prints to something that parses to an equal value. */
#include <stdlib.h>

#include "base/alloc.h"
#include "io/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP_JSON json_object *value = NULL;
	ABX_CLEANUP_JSON json_object *again = NULL;
	ABX_CLEANUP(abx__freep) char *text = NULL;
	size_t len;

	if (abx__json_parse((const char *)data, size, 0, &value, NULL) < 0)
		return 0;
	text = abx__json_text(value, &len);
	if (!text || abx__json_parse(text, len, 0, &again, NULL) < 0 ||
	    !json_object_equal(value, again))
		abort();
	return 0;
}

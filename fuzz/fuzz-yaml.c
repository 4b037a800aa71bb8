/* YAML: what parses is JSON that our own parser takes. */
#include <stdlib.h>

#include "base/alloc.h"
#include "io/json.h"
#include "io/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP_JSON json_object *value = NULL;
	ABX_CLEANUP_JSON json_object *again = NULL;
	ABX_CLEANUP(abx__freep) char *text = NULL;
	size_t len;

	if (abx__yaml_parse((const char *)data, size, 0, &value, NULL) < 0)
		return 0;
	text = abx__json_text(value, &len);
	/* The array of documents is one level more than the deepest of them. */
	if (!text ||
	    abx__json_parse(text, len, (size_t)64 << 20, &again, NULL) == ABX_EINVAL)
		abort();
	return 0;
}

/* Durations: what parses prints to something that parses to the same. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = abx__strndup((const char *)data, size);
	char printed[ABX__DURATION_SIZE];
	int64_t value, again;

	if (text && abx__duration_parse(text, &value, NULL) == ABX_OK) {
		abx__duration_print(value, printed);
		if (abx__duration_parse(printed, &again, NULL) != ABX_OK ||
		    again != value)
			abort();
	}
	abx__free(text);
	return 0;
}

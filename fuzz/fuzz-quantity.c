/* Quantities: what parses prints to something that parses to the same. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = abx__strndup((const char *)data, size);
	char printed[ABX__QUANTITY_SIZE];
	int64_t value, again;

	if (!text)
		return 0;
	if (abx__quantity_milli(text, &value, NULL) == ABX_OK) {
		abx__quantity_print_milli(value, printed);
		if (abx__quantity_milli(printed, &again, NULL) != ABX_OK ||
		    again != value)
			abort();
	}
	if (abx__quantity_bytes(text, &value, NULL) == ABX_OK) {
		abx__quantity_print_bytes(value, printed);
		if (abx__quantity_bytes(printed, &again, NULL) != ABX_OK ||
		    again != value)
			abort();
	}
	abx__free(text);
	return 0;
}

/* passwd(5) and group(5) of an image: an account that is added is found, under a number
 * of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/accounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = abx__calloc(1, size + 64);
	abx__accounts before, after;
	uint32_t id;

	if (!text)
		return 0;
	memcpy(text, data, size);
	abx__accounts_read(&before, text, size);
	id = abx__accounts_free_id(&before, 1000);
	if (id < 1000 || id >= ABX__ACCOUNTS_ID_COUNT)
		abort();
	if (!before.has_user) {
		int n = snprintf(text + size, 64, "%suser:x:%u::\n", before.newline, id);

		abx__accounts_read(&after, text, size + (size_t)n);
		if (!after.has_user || after.user_id != id || *after.newline)
			abort();
	}
	abx__free(text);
	return 0;
}

/*
 * Lines of a container, and the query that picks among them: the first line is the query,
 * the rest the log. What is left is within the query's limit, in its order, and prints.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *end = size ? memchr(text, '\n', size) : NULL;
	size_t head = end ? (size_t)(end - text) : size;
	char *query = abx__strndup(text, head);
	abx__logs logs = { 0 };
	abx__logs_query q;

	if (!query)
		return 0;
	if (abx__logs_query_v2(query, &q, NULL) == ABX_OK) {
		json_object *entries, *plain;

		if (end)
			abx__logs_add_text(&logs, end + 1, size - head - 1, 1);
		abx__logs_select(&logs, &q);
		if (logs.count > q.limit)
			abort();
		for (size_t i = 0; i < logs.count; i++) {
			const abx__logs_line *line = &logs.lines[i];

			if (line->ms < q.from_ms || line->ms > q.to_ms ||
			    line->level < q.level || line->len > ABX__LOGS_LINE_MAX)
				abort();
			if (i > 0 && (q.backward ? line->ms > line[-1].ms
						 : line->ms < line[-1].ms))
				abort();
		}
		entries = abx__logs_entries(&logs);
		plain = abx__logs_plain(&logs);
		if (!entries || !plain)
			abort();
		json_object_put(entries);
		json_object_put(plain);
		abx__logs_done(&logs);
		abx__logs_query_done(&q);
	}
	abx__free(query);
	return 0;
}

/* Lines of /proc/PID/stat, whose middle is whatever a process calls itself. */
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/process-tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = abx__strndup((const char *)data, size);
	abx__process_stat stat, again;

	if (line && abx__process_stat_parse(line, &stat)) {
		char *text = abx__strf("%d (x) %c %d 0 %d", (int)stat.pid,
				       stat.is_dead ? 'Z' : 'S', (int)stat.parent,
				       (int)stat.session);

		if (!text || !abx__process_stat_parse(text, &again) ||
		    again.pid != stat.pid || again.parent != stat.parent ||
		    again.session != stat.session || again.is_dead != stat.is_dead)
			abort();
		abx__free(text);
	}
	abx__free(line);
	return 0;
}

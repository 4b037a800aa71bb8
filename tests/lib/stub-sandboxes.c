/* See stub-sandboxes.h. */
#include "stub-sandboxes.h"

#include <string.h>

void stub_sandboxes_add(abx__sandboxes *table, const char *id,
			enum abx__sandbox_state state)
{
	table->recs[table->count++] = (abx__sandbox_rec){
		.id = id,
		.namespace_ = "ns",
		.pod = id,
		.state = state,
		.runtime_port = 49983,
	};
}

const abx__sandbox_rec *abx__sandboxes_find(const abx__sandboxes *table, const char *id)
{
	for (size_t i = 0; i < table->count; i++) {
		if (strcmp(table->recs[i].id, id) == 0)
			return &table->recs[i];
	}
	return NULL;
}

void abx__sandboxes_touch(abx__sandboxes *table, const char *id)
{
	(void)id;
	table->touches++;
}

void abx__sandboxes_stream_begin(abx__sandboxes *table, const char *id)
{
	(void)id;
	table->begins++;
}

void abx__sandboxes_stream_end(abx__sandboxes *table, const char *id)
{
	(void)id;
	table->ends++;
}

bool abx__sandboxes_at(const abx__sandboxes *table, size_t index,
		       const abx__sandbox_rec **ret)
{
	if (index >= table->count)
		return false;
	*ret = &table->recs[index];
	return true;
}

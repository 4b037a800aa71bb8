/* The part of control's table that serve/list.c reads, over an array. */
#include "fake-table.h"

bool abx__sandboxes_at(const abx__sandboxes *table, size_t index,
		       const abx__sandbox_rec **ret)
{
	const fake_table *t = (const fake_table *)table;

	if (index >= t->count)
		return false;
	*ret = &t->recs[index];
	return true;
}

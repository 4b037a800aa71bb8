/* A table of sandboxes tests fill by hand. */
#ifndef FAKE_TABLE_H
#define FAKE_TABLE_H

#include "control/sandboxes.h"

typedef struct fake_table {
	abx__sandbox_rec recs[512];
	char ids[512][24];
	size_t count;
} fake_table;

#endif

/*
 * stub-sandboxes.h - control/sandboxes.h for tests of what only reads it: a fixed table
 * that counts what it is told.
 */
#ifndef TESTS_LIB_STUB_SANDBOXES_H
#define TESTS_LIB_STUB_SANDBOXES_H

#include "control/sandboxes.h"

#define STUB_SANDBOXES_MOST 8

struct abx__sandboxes {
	abx__sandbox_rec recs[STUB_SANDBOXES_MOST];
	size_t count;
	int touches, begins, ends;
};

/* Adds a record in namespace "ns" with a Pod of the same name as the id. */
void stub_sandboxes_add(abx__sandboxes *table, const char *id,
			enum abx__sandbox_state state);

#endif

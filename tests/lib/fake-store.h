/*
 * fake-store.h - the store port in memory, turned by hand: a write is applied in one step
 * and reported in the next, so that a test can crash between the two. No watches.
 */
#ifndef TESTS_LIB_FAKE_STORE_H
#define TESTS_LIB_FAKE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "control/port-store.h"

abx__store *fake_store_new(void);
void fake_store_free(abx__store *store);
/* Lets one thing happen; false when nothing is waiting. */
bool fake_store_step(abx__store *store);
/* Whoever used it died: what was not applied is lost, nothing is reported. */
void fake_store_detach(abx__store *store);
/* The next `count` writes fail with `code`. */
void fake_store_fail(abx__store *store, unsigned count, int code);
size_t fake_store_count(const abx__store *store);
size_t fake_store_count_of(const abx__store *store, const char *kind);

#endif

/*
 * suite-store.h - what every filling of control/port-store.h must do, written against the
 * port alone. A filling's test file makes a subject and runs each case of
 * ABX__SUITE_STORE_CASES in a test of its own.
 */
#ifndef TESTS_STORE_SUITE_STORE_H
#define TESTS_STORE_SUITE_STORE_H

#include "control/port-store.h"

typedef struct suite_store {
	abx__store *store; /* fresh and empty */
	/* Lets the loop turn until something completed, at most a few seconds. */
	void (*turn)(void *userdata);
	void *userdata;
} suite_store;

#define ABX__SUITE_STORE_CASES(X)                       \
	X(created_document_can_be_read)                 \
	X(absent_document_is_not_found)                 \
	X(creating_twice_is_exists)                     \
	X(keys_are_kind_namespace_and_name)             \
	X(list_is_by_name_and_of_one_kind)              \
	X(list_of_nothing_is_empty)                     \
	X(update_moves_the_version)                     \
	X(update_of_an_old_version_conflicts)           \
	X(update_of_an_absent_document_is_not_found)    \
	X(removed_document_is_gone)                     \
	X(remove_of_an_old_version_conflicts)           \
	X(remove_of_an_absent_document_is_not_found)    \
	X(versions_grow_over_all_objects)               \
	X(a_name_made_again_gets_another_uid)           \
	X(completions_come_later_and_in_order)          \
	X(reads_see_the_writes_before_them)             \
	X(a_failed_write_fails_alone)                   \
	X(watch_gives_every_write_of_its_kind_in_order) \
	X(watch_gives_what_happened_since_its_version)  \
	X(watch_can_stop_itself)                        \
	X(bodies_keep_their_bytes)                      \
	X(a_body_over_the_cap_is_refused)

#define ABX__SUITE_STORE_DECLARE(name) void suite_store_##name(suite_store *s);
ABX__SUITE_STORE_CASES(ABX__SUITE_STORE_DECLARE)

#endif

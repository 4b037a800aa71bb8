/*
 * suite-engine.h - what every filling of control/port-engine.h must do, written against
 * the port alone. A filling's test file makes a subject and runs each case of
 * ABX__SUITE_ENGINE_CASES in a test of its own.
 */
#ifndef TESTS_ENGINE_SUITE_ENGINE_H
#define TESTS_ENGINE_SUITE_ENGINE_H

#include "control/port-engine.h"

typedef struct suite_engine {
	abx__engine *engine; /* open, start() not called, no Pods */
	/* Lets something happen, waiting a little for it. The suite calls it until what
	 * it waits for is there. */
	void (*turn)(struct suite_engine *s);
	int max_turns; /* then the suite gives up */
	/* Closes the engine and opens it again over the same Pods; sets `engine`. */
	void (*reopen)(struct suite_engine *s);
	/* Two images that run, one whose pull or start fails. */
	const char *image_a, *image_b, *image_bad;
	/* A Pod template with this main image and a readiness that comes true; a new
	 * reference. */
	json_object *(*pod_template)(struct suite_engine *s, const char *image);
	void *userdata;
} suite_engine;

#define ABX__SUITE_ENGINE_CASES(X)                         \
	X(start_without_pods_reports_synced)               \
	X(created_pod_becomes_ready)                       \
	X(create_completes_later_with_the_pod)             \
	X(create_keeps_labels_and_annotations)             \
	X(create_twice_is_exists)                          \
	X(create_with_an_unknown_runtime_class_is_refused) \
	X(check_template_names_what_it_cannot_do)          \
	X(change_sets_and_removes_in_one_write)            \
	X(change_of_an_absent_pod_is_not_found)            \
	X(change_of_an_old_version_conflicts)              \
	X(every_write_moves_the_version)                   \
	X(other_image_is_swapped_in_place)                 \
	X(same_image_restarts_nothing)                     \
	X(restart_makes_the_container_anew)                \
	X(an_image_that_does_not_run_fails_the_pod)        \
	X(a_failed_pod_recovers_with_another_image)        \
	X(deleted_pod_is_gone_and_its_name_free)           \
	X(a_pod_may_be_deleted_inside_a_changes_callback)  \
	X(delete_of_an_absent_pod_is_not_found)            \
	X(pods_are_adopted_after_a_reopen)                 \
	X(changes_before_a_reopen_are_kept)                \
	X(a_frozen_pod_stands_still_until_it_is_thawed)    \
	X(freezing_twice_is_one_freeze)                    \
	X(a_restart_makes_a_frozen_pod_run)                \
	X(a_frozen_pod_can_be_deleted)                     \
	X(a_frozen_pod_stays_frozen_over_a_reopen)         \
	X(a_stopped_pod_starts_a_generation_further)       \
	X(a_stopped_pod_stays_stopped_over_a_reopen)       \
	X(a_snapshot_is_an_image_until_it_is_deleted)      \
	X(what_does_not_run_cannot_be_snapshotted)         \
	X(connect_to_an_absent_pod_is_not_found)           \
	X(connect_to_a_closed_port_is_unavailable)         \
	X(a_pod_tells_what_it_uses)                        \
	X(what_an_absent_pod_uses_is_not_found)            \
	X(a_log_holds_nothing_of_the_container_before)     \
	X(the_log_of_an_absent_pod_is_not_found)

#define ABX__SUITE_ENGINE_DECLARE(name) void suite_engine_##name(suite_engine *s);
ABX__SUITE_ENGINE_CASES(ABX__SUITE_ENGINE_DECLARE)

#endif

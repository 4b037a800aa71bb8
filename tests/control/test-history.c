/*
 * test-history.c - what is kept of sandboxes that ended, listed with those that live.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"
#include "model/keys.h"
#include "world.h"

static world w;

static void setup(void)
{
	world_init(&w);
	world_env(&w, "demo", 2, NULL, NULL);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_history, .init = setup, .fini = teardown, .timeout = 120);

static const abx__ended *ended_of(const char *id)
{
	const abx__ended *e = abx__control_ended(w.control, id);

	cr_assert(e, "no record of %s", id);
	return e;
}

static answer claim_as(const char *image, const char *team, int64_t idle_ms)
{
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .image = image,
				       .team = team,
				       .user = team ? "u" : NULL,
				       .idle_timeout_ms = idle_ms,
				       .admin = true };
	answer a = { 0 };

	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	for (int i = 0; i < 1000 && !a.calls; i++)
		world_pass(&w, 1);
	return a;
}

Test(control_history, a_killed_sandbox_is_completed)
{
	answer a = world_claim(&w, "demo");
	const abx__ended *e;

	cr_assert_null(abx__control_ended(w.control, a.id), "it lives");
	world_pass(&w, 5000);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_OK);
	e = ended_of(a.id);
	cr_assert_eq(e->status, ABX__STATUS_COMPLETED);
	cr_assert_str_eq(e->env, "demo");
	cr_assert_str_eq(e->pool, "demo-1c2gi");
	cr_assert_str_eq(e->pod, a.pod);
	cr_assert_str_eq(e->image, OWN_IMAGE);
	cr_assert_str_eq(e->template_, "tmpl");
	cr_assert_null(e->failure_reason);
	cr_assert_eq(e->exit_code, -1);
	cr_assert_eq(e->cpu_milli, 1000);
	cr_assert_eq(e->ended_ms - e->started_ms >= 5000, true);
	cr_assert_geq(e->started_ms, e->claimed_ms);
	cr_assert_eq(abx__control_ended(w.control, "nosuch"), NULL);
}

Test(control_history, any_spelling_of_the_id_finds_it)
{
	answer a = world_claim(&w, "demo");
	char text[64];

	world_kill(&w, a.id);
	snprintf(text, sizeof(text), "local.%s", a.id);
	cr_assert_eq(ended_of(text), ended_of(a.id));
	snprintf(text, sizeof(text), "%s-local", a.id);
	cr_assert_eq(ended_of(text), ended_of(a.id));
	snprintf(text, sizeof(text), "other.%s", a.id);
	cr_assert_null(abx__control_ended(w.control, text));
}

Test(control_history, the_reason_of_an_end_is_kept)
{
	answer idle = claim_as(NULL, NULL, 2000), oom = claim_as(NULL, NULL, 0);
	const abx__ended *e;

	abx__fake_engine_kill_container(w.engine, "default", oom.pod, "OOMKilled", 137);
	world_pass(&w, 100);
	e = ended_of(oom.id);
	cr_assert_eq(e->status, ABX__STATUS_FAILED);
	cr_assert_str_eq(e->failure_reason, "OOMKilled");
	cr_assert_eq(e->exit_code, 137);
	world_pass(&w, 3000);
	e = ended_of(idle.id);
	cr_assert_eq(e->status, ABX__STATUS_RELEASED);
	cr_assert_str_eq(e->failure_reason, "IdleTimeout");
	cr_assert_eq(e->idle_timeout_ms, 2000);
}

Test(control_history, a_container_that_just_ended_is_a_failed_pod)
{
	answer a = world_claim(&w, "demo");

	abx__fake_engine_kill_container(w.engine, "default", a.pod, "Error", 3);
	world_pass(&w, 100);
	cr_assert_str_eq(ended_of(a.id)->failure_reason, "PodFailed");
	cr_assert_eq(ended_of(a.id)->exit_code, 3);
}

Test(control_history, a_pod_that_vanished_is_told)
{
	answer a = world_claim(&w, "demo");

	abx__fake_engine_vanish(w.engine, "default", a.pod);
	world_pass(&w, 100);
	cr_assert_str_eq(ended_of(a.id)->failure_reason, "PodGone");
	cr_assert_eq(ended_of(a.id)->status, ABX__STATUS_FAILED);
}

static const abx__ended *newest(unsigned statuses)
{
	abx__sandbox_query query = { .statuses = statuses };
	abx__sandbox_item item = { 0 };
	size_t count = 0, total = 0;

	cr_assert_eq(abx__control_sandbox_list(w.control, &query, 0, 1, &item, &count,
					       &total, NULL),
		     ABX_OK);
	cr_assert_eq(count, 1);
	cr_assert(item.ended);
	return item.ended;
}

Test(control_history, a_start_that_failed_is_told_with_its_reason)
{
	const abx__ended *e;
	answer a;

	abx__fake_engine_bad_image(w.engine, "broken:1", "ErrImagePull");
	a = claim_as("broken:1", NULL, 0);
	cr_assert_eq(a.r, ABX_EINVAL);
	e = newest(1u << ABX__STATUS_FAILED);
	cr_assert_str_eq(e->failure_reason, "ErrImagePull");
	cr_assert(strstr(e->failure_message, "broken:1"), "%s", e->failure_message);
	cr_assert_eq(e->started_ms, 0);
}

Test(control_history, a_claim_that_was_taken_back_is_canceled)
{
	abx__claim *claim = NULL;
	answer a = { 0 };

	cr_assert_eq(claim_start(&w, "demo", &a, &claim, NULL), ABX_OK);
	abx__control_claim_cancel(w.control, claim);
	world_pass(&w, 100);
	cr_assert_eq(newest(0)->status, ABX__STATUS_CANCELED);
	cr_assert_null(newest(0)->failure_message);
}

Test(control_history, waiting_alone_leaves_no_record)
{
	abx__sandbox_query query = { .statuses = 1u << ABX__STATUS_CANCELED };
	size_t count, total;
	abx__claim *claim = NULL;
	answer a = { 0 };

	world_claim(&w, "demo");
	world_claim(&w, "demo");
	cr_assert_eq(claim_start(&w, "demo", &a, &claim, NULL), ABX_OK);
	abx__control_claim_cancel(w.control, claim);
	world_pass(&w, 100);
	cr_assert_eq(abx__control_sandbox_list(w.control, &query, 0, 0, NULL, &count,
					       &total, NULL),
		     ABX_OK);
	cr_assert_eq(total, 0);
}

Test(control_history, a_restart_has_the_records_again)
{
	abx__map metadata = ABX__MAP_INIT;
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .metadata = &metadata,
				       .team = "t",
				       .user = "u",
				       .idle_timeout_ms = 1000 };
	const abx__ended *e;
	answer a = { 0 };

	cr_assert_eq(abx__map_set(&metadata, "job", "42"), ABX_OK);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 3000);
	abx__map_done(&metadata);
	world_crash(&w);
	world_boot(&w);
	e = ended_of(a.id);
	cr_assert_eq(e->status, ABX__STATUS_RELEASED);
	cr_assert_str_eq(e->failure_reason, "IdleTimeout");
	cr_assert_str_eq(e->team, "t");
	cr_assert_str_eq(e->user, "u");
	cr_assert_str_eq(e->pod, a.pod);
	cr_assert_str_eq(abx__map_get(&e->metadata, "job"), "42");
	cr_assert_gt(e->started_ms, 0);
	cr_assert_eq(e->memory_bytes, INT64_C(2) << 30);
}

/* A crash between the record and the release: the sandbox lives on, and ends once. */
Test(control_history, one_that_lives_again_is_not_listed_twice)
{
	abx__sandbox_query query = { 0 };
	abx__sandbox_item items[8];
	size_t count, total;
	answer a = world_claim(&w, "demo"), k = { 0 };

	cr_assert_eq(abx__control_kill(w.control, a.id, "Completed", on_done, &k, NULL),
		     ABX_OK);
	while (fake_store_count_of(w.store, ABX__KIND_RECORD) == 0)
		fake_store_step(w.store);
	world_crash(&w);
	world_boot(&w);
	cr_assert(abx__sandboxes_find(abx__control_sandboxes(w.control), a.id));
	cr_assert_eq(abx__control_sandbox_list(w.control, &query, 0, 8, items, &count,
					       &total, NULL),
		     ABX_OK);
	cr_assert_eq(total, 1);
	cr_assert(items[0].live);
	world_kill(&w, a.id);
	cr_assert_eq(ended_of(a.id)->status, ABX__STATUS_COMPLETED);
	world_pass(&w, 100);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_RECORD), 1);
}

Test(control_history, a_record_that_could_not_be_stored_is_stored_later)
{
	answer a = world_claim(&w, "demo");

	fake_store_fail(w.store, 2, ABX_EEXHAUSTED);
	cr_assert_eq(world_kill(&w, a.id).r, ABX_OK, "the kill does not wait for it");
	world_pass(&w, 1000);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_RECORD), 0);
	ended_of(a.id);
	world_pass(&w, 60000);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_RECORD), 1);
}

Test(control_history, the_list_is_newest_first_and_paged)
{
	abx__sandbox_query query = { 0 };
	abx__sandbox_item items[16];
	char ids[6][32];
	size_t count, total;

	for (int i = 0; i < 6; i++) {
		answer a = world_claim(&w, "demo");

		memcpy(ids[i], a.id, sizeof(ids[i]));
		if (i != 2)
			world_kill(&w, a.id); /* the third lives on */
		world_pass(&w, 1000);
	}
	for (size_t offset = 0; offset < 8; offset += 2) {
		cr_assert_eq(abx__control_sandbox_list(w.control, &query, offset, 2,
						       items, &count, &total, NULL),
			     ABX_OK);
		cr_assert_eq(total, 6);
		cr_assert_eq(count, offset < 6 ? 2 : 0);
		for (size_t i = 0; i < count; i++) {
			const char *id =
				items[i].live ? items[i].live->id : items[i].ended->id;

			cr_assert_str_eq(id, ids[5 - offset - i]);
			cr_assert_eq(items[i].live != NULL, offset + i == 3);
		}
	}
}

static size_t matching(abx__sandbox_query query)
{
	size_t count, total;

	cr_assert_eq(abx__control_sandbox_list(w.control, &query, 0, 0, NULL, &count,
					       &total, NULL),
		     ABX_OK);
	return total;
}

Test(control_history, the_list_is_filtered)
{
	answer a = claim_as(NULL, "red", 0), b = claim_as(NULL, "blue", 0);

	world_kill(&w, a.id);
	cr_assert_eq(matching((abx__sandbox_query){ 0 }), 2);
	cr_assert_eq(matching((abx__sandbox_query){ .team = "red" }), 1);
	cr_assert_eq(matching((abx__sandbox_query){ .team = "blue", .user = "u" }), 1);
	cr_assert_eq(matching((abx__sandbox_query){ .team = "green" }), 0);
	cr_assert_eq(matching((abx__sandbox_query){ .pool = "demo-1c2gi" }), 2);
	cr_assert_eq(matching((abx__sandbox_query){ .pool = "demo" }), 0);
	cr_assert_eq(matching((abx__sandbox_query){ .namespace_ = "default" }), 2);
	cr_assert_eq(matching((abx__sandbox_query){ .namespace_ = "elsewhere" }), 0);
	cr_assert_eq(matching((abx__sandbox_query){ .env = "demo" }), 2);
	cr_assert_eq(
		matching((abx__sandbox_query){ .statuses = 1u << ABX__STATUS_RUNNING }),
		1);
	cr_assert_eq(
		matching((abx__sandbox_query){ .statuses = 1u << ABX__STATUS_RUNNING |
							   1u << ABX__STATUS_COMPLETED }),
		2);
	world_kill(&w, b.id);
	cr_assert_eq(
		matching((abx__sandbox_query){ .statuses = 1u << ABX__STATUS_RUNNING }),
		0);
}

Test(control_history, statistics_count_by_status_and_namespace)
{
	abx__sandbox_query query = { 0 };
	answer a = world_claim(&w, "demo"), b = world_claim(&w, "demo");
	json_object *counts = NULL;

	(void)b;
	world_kill(&w, a.id);
	world_pass(&w, 100);
	cr_assert_eq(
		abx__control_sandbox_statistics(w.control, &query, false, &counts, NULL),
		ABX_OK);
	cr_assert_str_eq(json_object_to_json_string_ext(counts, JSON_C_TO_STRING_PLAIN),
			 "{\"total\":1,\"byStatus\":{\"Running\":1},"
			 "\"byNamespace\":{\"default\":1}}");
	json_object_put(counts);
	cr_assert_eq(
		abx__control_sandbox_statistics(w.control, &query, true, &counts, NULL),
		ABX_OK);
	cr_assert_str_eq(json_object_to_json_string_ext(counts, JSON_C_TO_STRING_PLAIN),
			 "{\"total\":2,\"byStatus\":{\"Running\":1,\"Completed\":1},"
			 "\"byNamespace\":{\"default\":2}}");
	json_object_put(counts);
}

Test(control_history, status_names_are_the_contracts)
{
	static const char *const names[] = { "Starting", "Running", "Paused",
					     "Stopping", "Failed",  "Completed",
					     "Canceled", "Released" };
	enum abx__sandbox_status status;

	for (size_t i = 0; i < ABX__STATUS_COUNT; i++) {
		cr_assert_str_eq(abx__sandbox_status_name((enum abx__sandbox_status)i),
				 names[i]);
		cr_assert(abx__sandbox_status_parse(names[i], &status));
		cr_assert_eq((size_t)status, i);
	}
	cr_assert(abx__sandbox_status_parse("Pending", &status),
		  "known, and had by none");
	cr_assert_eq(status, ABX__STATUS_COUNT);
	cr_assert_not(abx__sandbox_status_parse("running", &status));
}

/* --- bounds --- */

static void end_many(int n)
{
	for (int i = 0; i < n; i++) {
		answer a = world_claim(&w, "demo");

		cr_assert_eq(a.r, ABX_OK);
		world_kill(&w, a.id);
		world_pass(&w, 100);
	}
}

Test(control_history, the_oldest_give_way)
{
	world_crash(&w);
	w.history_most = 32;
	world_boot(&w);
	end_many(64);
	cr_assert_leq(matching((abx__sandbox_query){ 0 }), 34);
	cr_assert_geq(matching((abx__sandbox_query){ 0 }), 32);
	world_pass(&w, 61000);
	cr_assert_eq(matching((abx__sandbox_query){ 0 }), 32);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_RECORD), 32);
}

Test(control_history, the_old_give_way)
{
	end_many(2);
	world_pass(&w, INT64_C(6) * 24 * 3600 * 1000);
	end_many(1);
	world_pass(&w, INT64_C(2) * 24 * 3600 * 1000);
	cr_assert_eq(matching((abx__sandbox_query){ 0 }), 1);
	cr_assert_eq(fake_store_count_of(w.store, ABX__KIND_RECORD), 1);
}

Test(control_history, a_record_that_does_not_hold_together_is_left_out)
{
	answer a = world_claim(&w, "demo");

	world_kill(&w, a.id);
	world_pass(&w, 100);
	world_crash(&w);
	w.store->ops->create(w.store, ABX__KIND_RECORD, "default", "x", "{\"status\":7}",
			     12, NULL, NULL);
	fake_store_step(w.store);
	fake_store_detach(w.store);
	world_boot(&w);
	cr_assert_eq(matching((abx__sandbox_query){ 0 }), 1);
}

/* The listing of sandboxes: filters, order, pages, tokens. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "fake-table.h"
#include "serve/list.h"

static const abx__identity admin = { .admin = true, .team = "a", .user = "a" };

static void add(fake_table *t, const char *id, int64_t started_ms)
{
	abx__sandbox_rec *rec = &t->recs[t->count];

	cr_assert_lt(t->count, 512);
	snprintf(t->ids[t->count], sizeof(t->ids[0]), "%s", id);
	*rec = (abx__sandbox_rec){ .id = t->ids[t->count],
				   .env = "base",
				   .pool = "base-1c2gi",
				   .template_ = "t",
				   .team = "a",
				   .user = "a",
				   .state = ABX__SANDBOX_RUNNING,
				   .started_ms = started_ms,
				   .started_us = started_ms * 1000 };
	t->count++;
}

static abx__list_query parse(const char *query)
{
	abx__list_query q;
	abx_error *err = NULL;

	cr_assert_eq(abx__list_query_parse(query, &q, &err), ABX_OK, "%s: %s", query,
		     abx_error_message(err));
	return q;
}

static void refuse(const char *query, const char *text)
{
	abx__list_query q;
	abx_error *err = NULL;

	cr_assert_eq(abx__list_query_parse(query, &q, &err), ABX_EINVAL, "%s", query);
	cr_assert(strstr(abx_error_message(err), text), "%s: \"%s\" lacks \"%s\"", query,
		  abx_error_message(err), text);
	abx_error_free(err);
}

static abx__list_page page_of(const fake_table *t, const abx__list_query *q)
{
	abx__list_page page;

	cr_assert_eq(
		abx__list_page_make((const abx__sandboxes *)t, &admin, q, &page, NULL),
		ABX_OK);
	return page;
}

Test(serve_list, refuses_what_it_does_not_understand)
{
	refuse("limit=0", "limit is 1 to 100");
	refuse("limit=101", "limit is 1 to 100");
	refuse("limit=x", "limit is 1 to 100");
	refuse("order=up", "order is asc or desc");
	refuse("state=idle", "state is running, paused");
	refuse("startedAfter=yesterday", "RFC 3339");
	refuse("template=base:v1", "tag");
	refuse("metadata=a", "Invalid metadata filter");
	refuse("metadata=a%3Db%3Dc", "Invalid metadata filter");
	refuse("nextToken=!!", "Invalid next token");
	refuse("nextToken=AAAA", "Invalid next token");
}

Test(serve_list, takes_metadata_as_each_sdk_encodes_it)
{
	/* {"a b": "x&y=ü"} of the Python SDK and of the JavaScript one, and curl's {"k":
	 * "v"}. */
	static const char *const python =
		"metadata=a%252520b%3Dx%252526y%25253D%2525C3%2525BC";
	static const char *const js =
		"metadata=a%252520b%3Dx%252526y%25253D%2525C3%2525BC";
	abx__list_query q = parse(python);

	cr_assert_str_eq(abx__map_get(&q.metadata, "a b"), "x&y=\xc3\xbc");
	abx__list_query_done(&q);
	q = parse(js);
	cr_assert_str_eq(abx__map_get(&q.metadata, "a b"), "x&y=\xc3\xbc");
	abx__list_query_done(&q);
	q = parse("metadata=k%3Dv%26k2%3Dv2");
	cr_assert_str_eq(abx__map_get(&q.metadata, "k"), "v");
	cr_assert_str_eq(abx__map_get(&q.metadata, "k2"), "v2");
	abx__list_query_done(&q);
}

Test(serve_list, filters_by_metadata_template_time_state_and_owner)
{
	static fake_table t;
	static const struct {
		const char *query;
		size_t count;
	} table[] = {
		{ NULL, 3 },
		{ "metadata=k%3Dv", 1 },
		{ "metadata=k%3Dw", 0 },
		{ "template=base", 3 },
		{ "template=t", 3 },
		{ "template=base-1c2gi", 3 },
		{ "template=local%3A%3Abase", 0 },
		{ "template=other", 0 },
		{ "startedAfter=1970-01-01T00:00:02Z", 2 },
		{ "startedAfter=1970-01-01T00:00:02.000001Z", 1 },
		{ "startedAfter=1970-01-01T01:00:02%2B01:00", 2 },
		{ "state=paused", 0 },
		{ "state=running,paused", 3 },
		{ "state=running", 3 },
	};
	static const abx__identity other = { .team = "b", .user = "b" };
	abx__list_page page;
	abx__list_query q;

	add(&t, "aaa", 1000);
	add(&t, "bbb", 2000);
	add(&t, "ccc", 3000);
	abx__map_set(&t.recs[1].metadata, "k", "v");
	add(&t, "starting", 4000);
	t.recs[3].state = ABX__SANDBOX_STARTING;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		q = parse(table[i].query);
		page = page_of(&t, &q);
		cr_assert_eq(page.count, table[i].count, "%s gave %zu", table[i].query,
			     page.count);
		abx__list_page_done(&page);
		abx__list_query_done(&q);
	}
	q = parse(NULL);
	cr_assert_eq(
		abx__list_page_make((const abx__sandboxes *)&t, &other, &q, &page, NULL),
		ABX_OK);
	cr_assert_eq(page.count, 0, "another team's sandboxes are not shown");
	abx__list_page_done(&page);
	abx__list_query_done(&q);
	abx__map_done(&t.recs[1].metadata);
}

/* Every order and page size, with many of the same start time, while sandboxes come and
   go between the pages: those that live all the time are seen exactly once, in order. */
static void walk(unsigned limit, bool asc, unsigned seed)
{
	static fake_table t;
	unsigned seen[512] = { 0 };
	char *token = NULL;
	const char *last_id = NULL;
	int64_t last_ms = 0;
	size_t pages = 0;

	memset(&t, 0, sizeof(t));
	srand(seed);
	for (int i = 0; i < 200; i++) {
		char id[24];
		snprintf(id, sizeof(id), "s%03d", (i * 7919) % 1000);
		add(&t, id, 1000000 + rand() % 40);
	}
	do {
		ABX_CLEANUP(abx__freep)
		char *escaped = token ? abx__url_encode(token) : NULL;
		ABX_CLEANUP(abx__freep)
		char *query =
			abx__strf("limit=%u&order=%s%s%s", limit, asc ? "asc" : "desc",
				  token ? "&nextToken=" : "", escaped ? escaped : "");
		abx__list_query q = parse(query);
		abx__list_page page = page_of(&t, &q);

		cr_assert_leq(page.count, limit);
		for (size_t i = 0; i < page.count; i++) {
			const abx__sandbox_rec *rec = page.items[i];
			bool ordered = !last_id ||
				       (asc ? last_ms < rec->started_ms ||
							(last_ms == rec->started_ms &&
							 strcmp(last_id, rec->id) > 0)
					    : last_ms > rec->started_ms ||
							(last_ms == rec->started_ms &&
							 strcmp(last_id, rec->id) < 0));
			cr_assert(ordered, "%s after %s", rec->id, last_id);
			last_id = rec->id;
			last_ms = rec->started_ms;
			seen[rec - t.recs]++;
		}
		abx__free(token);
		token = page.next_token ? abx__strdup(page.next_token) : NULL;
		abx__list_page_done(&page);
		abx__list_query_done(&q);
		/* One goes, one comes. */
		t.recs[pages % 20].state = ABX__SANDBOX_STOPPING;
		if (t.count < 500) {
			char id[24];
			snprintf(id, sizeof(id), "n%03zu", t.count);
			add(&t, id, 1000000 + rand() % 40);
		}
		cr_assert_lt(pages++, 400);
	} while (token);
	for (size_t i = 20; i < 200; i++)
		cr_assert_eq(seen[i], 1, "limit %u %s: %s seen %u times", limit,
			     asc ? "asc" : "desc", t.recs[i].id, seen[i]);
}

Test(serve_list, pages_neither_repeat_nor_skip)
{
	static const unsigned limits[] = { 1, 3, 7, 50, 100 };

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		for (unsigned seed = 0; seed < 4; seed++) {
			walk(limits[i], false, seed);
			walk(limits[i], true, seed);
		}
}

Test(serve_list, a_token_is_for_its_own_order_only)
{
	ABX_CLEANUP(abx__freep) char *token = abx__list_token_make(1500001, "abc", false);
	ABX_CLEANUP(abx__freep) char *id = NULL;
	abx_error *err = NULL;
	int64_t us = 0;

	cr_assert_eq(abx__list_token_parse(token, false, &us, &id, NULL), ABX_OK);
	cr_assert_eq(us, 1500001);
	cr_assert_str_eq(id, "abc");
	abx__free(id);
	id = NULL;
	cr_assert_eq(abx__list_token_parse(token, true, &us, &id, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "Invalid next token");
	abx_error_free(err);
}

Test(serve_list, total_counts_all_pages)
{
	static fake_table t;
	abx__list_query q = parse("limit=2");
	abx__list_page page;

	for (int i = 0; i < 5; i++)
		add(&t, (const char *[]){ "a", "b", "c", "d", "e" }[i], i * 1000);
	page = page_of(&t, &q);
	cr_assert_eq(page.count, 2);
	cr_assert_eq(page.total_running, 5);
	cr_assert_not_null(page.next_token);
	cr_assert_str_eq(page.items[0]->id, "e");
	abx__list_page_done(&page);
	abx__list_query_done(&q);
}

/*
 * suite-store.c - the promises of control/port-store.h, one function each.
 */
#include "suite-store.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one operation answered, copied. */
typedef struct answer {
	int calls;
	int r;
	int order; /* when it completed, counted over all */
	char name[64], uid[64], body[512], message[256];
	uint64_t version;
	int64_t created_ms;
	size_t body_len;
} answer;

static int completed;

static void on_doc(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	answer *a = userdata;

	a->calls++;
	a->r = r;
	a->order = completed++;
	snprintf(a->message, sizeof(a->message), "%s", abx_error_message(err));
	cr_assert((r == ABX_OK) == (doc != NULL), "a document exactly on success");
	cr_assert((r < 0) == (err != NULL), "an error exactly on failure");
	if (!doc)
		return;
	snprintf(a->name, sizeof(a->name), "%s", doc->name);
	snprintf(a->uid, sizeof(a->uid), "%s", doc->uid);
	snprintf(a->body, sizeof(a->body), "%s", doc->body);
	a->body_len = doc->body_len;
	a->version = doc->version;
	a->created_ms = doc->created_ms;
}

static void wait_for(suite_store *s, const answer *a)
{
	for (int i = 0; i < 1000 && !a->calls; i++)
		s->turn(s->userdata);
	cr_assert_eq(a->calls, 1, "completed %d times", a->calls);
}

static answer get(suite_store *s, const char *kind, const char *ns, const char *name)
{
	answer a = { 0 };

	s->store->ops->get(s->store, kind, ns, name, on_doc, &a);
	wait_for(s, &a);
	return a;
}

static answer create(suite_store *s, const char *kind, const char *ns, const char *name,
		     const char *body)
{
	answer a = { 0 };

	s->store->ops->create(s->store, kind, ns, name, body, strlen(body), on_doc, &a);
	wait_for(s, &a);
	return a;
}

static answer update(suite_store *s, const char *name, uint64_t version, const char *body)
{
	answer a = { 0 };

	s->store->ops->update(s->store, "Env", "team", name, version, body, strlen(body),
			      on_doc, &a);
	wait_for(s, &a);
	return a;
}

static answer remove_doc(suite_store *s, const char *name, uint64_t version)
{
	answer a = { 0 };

	s->store->ops->remove(s->store, "Env", "team", name, version, on_doc, &a);
	wait_for(s, &a);
	return a;
}

typedef struct listing {
	int calls;
	int r;
	size_t count;
	char names[256]; /* "ns/name " each */
} listing;

static void on_docs(void *userdata, int r, const abx__doc *docs, size_t count,
		    const abx_error *err)
{
	listing *l = userdata;

	(void)err;
	l->calls++;
	l->r = r;
	l->count = count;
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(l->names);

		snprintf(l->names + len, sizeof(l->names) - len, "%s/%s ",
			 docs[i].namespace_, docs[i].name);
	}
}

static listing list(suite_store *s, const char *kind, const char *ns)
{
	listing l = { 0 };

	s->store->ops->list(s->store, kind, ns, on_docs, &l);
	for (int i = 0; i < 1000 && !l.calls; i++)
		s->turn(s->userdata);
	cr_assert_eq(l.calls, 1);
	cr_assert_eq(l.r, ABX_OK);
	return l;
}

void suite_store_created_document_can_be_read(suite_store *s)
{
	answer made = create(s, "Env", "team", "demo", "{\"a\":1}");
	answer got = get(s, "Env", "team", "demo");

	cr_assert_eq(made.r, ABX_OK, "%s", made.message);
	cr_assert_eq(got.r, ABX_OK, "%s", got.message);
	cr_assert_str_eq(made.body, "{\"a\":1}");
	cr_assert_str_eq(got.body, "{\"a\":1}");
	cr_assert_str_eq(got.name, "demo");
	cr_assert_str_eq(got.uid, made.uid);
	cr_assert_eq(strlen(got.uid), 36, "uid %s", got.uid);
	cr_assert_eq(got.version, made.version);
	cr_assert_gt(got.version, 0);
	cr_assert_gt(got.created_ms, 0);
}

void suite_store_absent_document_is_not_found(suite_store *s)
{
	answer got = get(s, "Env", "team", "nosuch");

	cr_assert_eq(got.r, ABX_ENOTFOUND);
	cr_assert(strstr(got.message, "nosuch"), "%s", got.message);
}

void suite_store_creating_twice_is_exists(suite_store *s)
{
	create(s, "Env", "team", "demo", "{}");
	answer again = create(s, "Env", "team", "demo", "{\"b\":2}");

	cr_assert_eq(again.r, ABX_EEXISTS);
	cr_assert(strstr(again.message, "demo"), "%s", again.message);
	cr_assert_str_eq(get(s, "Env", "team", "demo").body, "{}");
}

void suite_store_keys_are_kind_namespace_and_name(suite_store *s)
{
	cr_assert_eq(create(s, "Env", "team", "demo", "1").r, ABX_OK);
	cr_assert_eq(create(s, "Env", "other", "demo", "2").r, ABX_OK);
	cr_assert_eq(create(s, "Template", "", "demo", "3").r, ABX_OK);
	cr_assert_str_eq(get(s, "Env", "other", "demo").body, "2");
	cr_assert_str_eq(get(s, "Template", "", "demo").body, "3");
	cr_assert_eq(get(s, "Template", "team", "demo").r, ABX_ENOTFOUND);
}

void suite_store_list_is_by_name_and_of_one_kind(suite_store *s)
{
	create(s, "Env", "team", "b", "{}");
	create(s, "Env", "other", "c", "{}");
	create(s, "Env", "team", "a", "{}");
	create(s, "Template", "", "t", "{}");
	cr_assert_str_eq(list(s, "Env", NULL).names, "team/a team/b other/c ");
	cr_assert_str_eq(list(s, "Env", "team").names, "team/a team/b ");
	cr_assert_str_eq(list(s, "Template", "").names, "/t ");
}

void suite_store_list_of_nothing_is_empty(suite_store *s)
{
	cr_assert_eq(list(s, "Env", NULL).count, 0);
}

void suite_store_update_moves_the_version(suite_store *s)
{
	answer made = create(s, "Env", "team", "demo", "{}");
	answer changed = update(s, "demo", made.version, "{\"n\":1}");
	answer blind = update(s, "demo", 0, "{\"n\":2}");

	cr_assert_eq(changed.r, ABX_OK, "%s", changed.message);
	cr_assert_gt(changed.version, made.version);
	cr_assert_str_eq(changed.uid, made.uid);
	cr_assert_eq(changed.created_ms, made.created_ms);
	cr_assert_eq(blind.r, ABX_OK);
	cr_assert_gt(blind.version, changed.version);
	cr_assert_str_eq(get(s, "Env", "team", "demo").body, "{\"n\":2}");
}

void suite_store_update_of_an_old_version_conflicts(suite_store *s)
{
	answer made = create(s, "Env", "team", "demo", "{}");

	update(s, "demo", 0, "{\"n\":1}");
	cr_assert_eq(update(s, "demo", made.version, "{\"n\":2}").r, ABX_ECONFLICT);
	cr_assert_str_eq(get(s, "Env", "team", "demo").body, "{\"n\":1}");
}

void suite_store_update_of_an_absent_document_is_not_found(suite_store *s)
{
	cr_assert_eq(update(s, "nosuch", 0, "{}").r, ABX_ENOTFOUND);
	cr_assert_eq(get(s, "Env", "team", "nosuch").r, ABX_ENOTFOUND);
}

void suite_store_removed_document_is_gone(suite_store *s)
{
	answer made = create(s, "Env", "team", "demo", "{\"last\":1}");
	answer removed = remove_doc(s, "demo", made.version);

	cr_assert_eq(removed.r, ABX_OK, "%s", removed.message);
	cr_assert_str_eq(removed.body, "{\"last\":1}");
	cr_assert_gt(removed.version, made.version);
	cr_assert_eq(get(s, "Env", "team", "demo").r, ABX_ENOTFOUND);
	cr_assert_eq(list(s, "Env", NULL).count, 0);
}

void suite_store_remove_of_an_old_version_conflicts(suite_store *s)
{
	answer made = create(s, "Env", "team", "demo", "{}");

	update(s, "demo", 0, "{\"n\":1}");
	cr_assert_eq(remove_doc(s, "demo", made.version).r, ABX_ECONFLICT);
	cr_assert_eq(get(s, "Env", "team", "demo").r, ABX_OK);
}

void suite_store_remove_of_an_absent_document_is_not_found(suite_store *s)
{
	cr_assert_eq(remove_doc(s, "nosuch", 0).r, ABX_ENOTFOUND);
}

void suite_store_versions_grow_over_all_objects(suite_store *s)
{
	uint64_t a = create(s, "Env", "team", "a", "{}").version;
	uint64_t b = create(s, "Template", "", "b", "{}").version;
	uint64_t gone = remove_doc(s, "a", 0).version;
	uint64_t c = create(s, "Env", "team", "c", "{}").version;

	cr_assert(a < b && b < gone && gone < c);
}

void suite_store_a_name_made_again_gets_another_uid(suite_store *s)
{
	answer first = create(s, "Env", "team", "demo", "{}");

	remove_doc(s, "demo", 0);
	cr_assert_str_neq(create(s, "Env", "team", "demo", "{}").uid, first.uid);
}

void suite_store_completions_come_later_and_in_order(suite_store *s)
{
	answer a[20] = { 0 };
	char name[8];

	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		s->store->ops->create(s->store, "Env", "team", name, "{}", 2, on_doc,
				      &a[i]);
	}
	for (int i = 0; i < 20; i++)
		cr_assert_eq(a[i].calls, 0, "completed inside the call");
	for (int i = 0; i < 20; i++)
		wait_for(s, &a[i]);
	for (int i = 1; i < 20; i++) {
		cr_assert_gt(a[i].order, a[i - 1].order);
		cr_assert_gt(a[i].version, a[i - 1].version);
	}
}

void suite_store_reads_see_the_writes_before_them(suite_store *s)
{
	answer made = { 0 }, changed = { 0 }, got = { 0 };

	s->store->ops->create(s->store, "Env", "team", "demo", "1", 1, on_doc, &made);
	s->store->ops->update(s->store, "Env", "team", "demo", 0, "2", 1, on_doc,
			      &changed);
	s->store->ops->get(s->store, "Env", "team", "demo", on_doc, &got);
	wait_for(s, &got);
	cr_assert_str_eq(got.body, "2");
}

void suite_store_a_failed_write_fails_alone(suite_store *s)
{
	answer first = { 0 }, twice = { 0 }, last = { 0 };

	s->store->ops->create(s->store, "Env", "team", "a", "1", 1, on_doc, &first);
	s->store->ops->create(s->store, "Env", "team", "a", "2", 1, on_doc, &twice);
	s->store->ops->create(s->store, "Env", "team", "b", "3", 1, on_doc, &last);
	wait_for(s, &last);
	cr_assert_eq(first.r, ABX_OK);
	cr_assert_eq(twice.r, ABX_EEXISTS);
	cr_assert_eq(last.r, ABX_OK);
	cr_assert_str_eq(get(s, "Env", "team", "a").body, "1");
}

typedef struct seen {
	suite_store *s;
	abx__store_watch *watch;
	bool stop_at_first;
	int count;
	char log[256];
} seen;

static void on_event(void *userdata, enum abx__doc_event event, const abx__doc *doc)
{
	seen *e = userdata;
	size_t len = strlen(e->log);

	snprintf(e->log + len, sizeof(e->log) - len, "%c%s=%s ", "+~-"[event],
		 doc -> name, doc -> body);
	e->count++;
	if (e->stop_at_first)
		e->s->store->ops->watch_stop(e->s->store, e->watch);
}

void suite_store_watch_gives_every_write_of_its_kind_in_order(suite_store *s)
{
	uint64_t from = create(s, "Env", "team", "old", "0").version;
	seen e = { .s = s };

	cr_assert_eq(
		s->store->ops->watch(s->store, "Env", from, on_event, &e, &e.watch, NULL),
		ABX_OK);
	create(s, "Env", "team", "a", "1");
	create(s, "Template", "", "t", "x");
	update(s, "a", 0, "2");
	update(s, "nosuch", 0, "2");
	remove_doc(s, "a", 0);
	cr_assert_str_eq(e.log, "+a=1 ~a=2 -a=2 ");
	s->store->ops->watch_stop(s->store, e.watch);
	create(s, "Env", "team", "b", "1");
	cr_assert_eq(e.count, 3, "nothing after the stop");
}

void suite_store_watch_gives_what_happened_since_its_version(suite_store *s)
{
	uint64_t from = create(s, "Env", "team", "a", "1").version;
	seen e = { .s = s };

	update(s, "a", 0, "2");
	cr_assert_eq(
		s->store->ops->watch(s->store, "Env", from, on_event, &e, &e.watch, NULL),
		ABX_OK);
	cr_assert_eq(e.count, 0, "reported inside the call");
	create(s, "Env", "team", "b", "1");
	cr_assert_str_eq(e.log, "~a=2 +b=1 ");
	s->store->ops->watch_stop(s->store, e.watch);
}

void suite_store_watch_can_stop_itself(suite_store *s)
{
	uint64_t from = create(s, "Env", "team", "a", "1").version;
	seen e = { .s = s, .stop_at_first = true };

	cr_assert_eq(
		s->store->ops->watch(s->store, "Env", from, on_event, &e, &e.watch, NULL),
		ABX_OK);
	create(s, "Env", "team", "b", "1");
	create(s, "Env", "team", "c", "1");
	cr_assert_str_eq(e.log, "+b=1 ");
}

void suite_store_bodies_keep_their_bytes(suite_store *s)
{
	const char *body =
		"{\"text\":\"\\u0000 \xc3\xa4 'quoted' \\\" ; DROP TABLE document\"}";

	create(s, "Env", "team", "demo", body);
	answer got = get(s, "Env", "team", "demo");

	cr_assert_str_eq(got.body, body);
	cr_assert_eq(got.body_len, strlen(body));
}

void suite_store_a_body_over_the_cap_is_refused(suite_store *s)
{
	size_t len = (size_t)64 << 20;
	char *body = malloc(len);
	answer a = { 0 };

	cr_assert(body);
	memset(body, 'x', len);
	s->store->ops->create(s->store, "Env", "team", "big", body, len, on_doc, &a);
	wait_for(s, &a);
	free(body);
	cr_assert_eq(a.r, ABX_ETOOBIG, "%s", a.message);
	cr_assert(strstr(a.message, "big"), "%s", a.message);
	cr_assert_eq(get(s, "Env", "team", "big").r, ABX_ENOTFOUND);
}

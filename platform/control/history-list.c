/*
 * history-list.c - live sandboxes and records as one list, and counted.
 *
 * The live ones that match are few and sorted for each question; the records are in order
 * already, so a page of them is one walk from the newest to the oldest.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/history-priv.h"

static const char *const names[ABX__STATUS_COUNT] = {
	[ABX__STATUS_STARTING] = "Starting", [ABX__STATUS_RUNNING] = "Running",
	[ABX__STATUS_PAUSED] = "Paused",     [ABX__STATUS_STOPPING] = "Stopping",
	[ABX__STATUS_FAILED] = "Failed",     [ABX__STATUS_COMPLETED] = "Completed",
	[ABX__STATUS_CANCELED] = "Canceled", [ABX__STATUS_RELEASED] = "Released",
};

const char *abx__sandbox_status_name(enum abx__sandbox_status status)
{
	return (size_t)status < ABX__STATUS_COUNT ? names[status] : NULL;
}

bool abx__sandbox_status_parse(const char *name, enum abx__sandbox_status *ret)
{
	for (size_t i = 0; i < ABX__STATUS_COUNT; i++) {
		if (strcmp(name, names[i]) == 0) {
			*ret = (enum abx__sandbox_status)i;
			return true;
		}
	}
	*ret = ABX__STATUS_COUNT;
	return strcmp(name, "Pending") == 0;
}

enum abx__sandbox_status abx__sandbox_status_of(const abx__sandbox_rec *live)
{
	switch (live->state) {
	case ABX__SANDBOX_STARTING:
		return ABX__STATUS_STARTING;
	case ABX__SANDBOX_RUNNING:
		return ABX__STATUS_RUNNING;
	case ABX__SANDBOX_PAUSING:
	case ABX__SANDBOX_PAUSED:
	case ABX__SANDBOX_RESUMING:
		return ABX__STATUS_PAUSED;
	case ABX__SANDBOX_STOPPING:
		break;
	}
	return ABX__STATUS_STOPPING;
}

static bool is_wanted(const abx__sandbox_query *q, enum abx__sandbox_status status)
{
	return q->statuses == 0 || (q->statuses & (1u << status));
}

static bool fits(const char *wanted, const char *is)
{
	return !wanted || abx__str_eq(wanted, is);
}

static bool live_matches(const abx__sandbox_query *q, const abx__sandbox_rec *live)
{
	return is_wanted(q, abx__sandbox_status_of(live)) &&
	       fits(q->namespace_, live->namespace_) && fits(q->env, live->env) &&
	       fits(q->pool, live->pool) && fits(q->team, live->team) &&
	       fits(q->user, live->user);
}

/* The query with the history's own strings. False: no record can match. */
static bool known_query(const abx__history *h, const abx__sandbox_query *q,
			abx__sandbox_query *ret)
{
	const char **const at[] = { &ret->namespace_, &ret->env, &ret->pool, &ret->team,
				    &ret->user };

	*ret = *q;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		if (!*at[i])
			continue;
		*at[i] = abx__history_known(h, *at[i]);
		if (!*at[i])
			return false;
	}
	return true;
}

static bool record_matches(const abx__sandbox_query *q, const abx__history_entry *e)
{
	return is_wanted(q, e->status) &&
	       (!q->namespace_ || q->namespace_ == e->namespace_) &&
	       (!q->env || q->env == e->env) && (!q->pool || q->pool == e->pool) &&
	       (!q->team || q->team == e->team) && (!q->user || q->user == e->user);
}

/* Newest first, then by id. */
static int by_claim(const void *a, const void *b)
{
	const abx__sandbox_rec *x = *(const abx__sandbox_rec *const *)a;
	const abx__sandbox_rec *y = *(const abx__sandbox_rec *const *)b;

	return -abx__history_compare(x->claimed_ms, x->id, y->claimed_ms, y->id);
}

static int live_list(const abx__control *control, const abx__sandbox_query *q,
		     const abx__sandbox_rec ***ret, size_t *ret_count)
{
	const abx__sandboxes *table = &control->sandboxes;
	const abx__sandbox_rec **list;
	size_t count = 0;

	*ret = NULL;
	*ret_count = 0;
	if (table->count == 0)
		return ABX_OK;
	list = abx__calloc(table->count, sizeof(*list));
	if (!list)
		return ABX_ENOMEM;
	for (size_t i = 0; i < table->count; i++)
		if (live_matches(q, &table->order[i]->rec))
			list[count++] = &table->order[i]->rec;
	qsort(list, count, sizeof(*list), by_claim);
	*ret = list;
	*ret_count = count;
	return ABX_OK;
}

typedef struct page {
	size_t offset, limit;
	abx__sandbox_item *items;
	size_t count, seen;
} page;

static void add(page *p, const abx__sandbox_rec *live, const abx__ended *ended)
{
	if (p->seen >= p->offset && p->count < p->limit)
		p->items[p->count++] =
			(abx__sandbox_item){ .live = live, .ended = ended };
	p->seen++;
}

int abx__control_sandbox_list(abx__control *control, const abx__sandbox_query *query,
			      size_t offset, size_t limit, abx__sandbox_item *items,
			      size_t *ret_count, size_t *ret_total, abx_error **reterr)
{
	const abx__history *h = control->history;
	page p = { .offset = offset, .limit = limit, .items = items };
	const abx__sandbox_rec **live = NULL;
	size_t live_count = 0, next = 0;
	abx__sandbox_query q;

	if (live_list(control, query, &live, &live_count) < 0)
		return abx__error_nomem(reterr);
	for (size_t i = known_query(h, query, &q) ? h->count : 0; i > 0; i--) {
		const abx__history_entry *e = &h->order[i - 1];

		if (!record_matches(&q, e))
			continue;
		while (next < live_count &&
		       abx__history_compare(live[next]->claimed_ms, live[next]->id,
					    e->record->rec.claimed_ms, e->record->id) > 0)
			add(&p, live[next++], NULL);
		add(&p, NULL, &e->record->rec);
	}
	while (next < live_count)
		add(&p, live[next++], NULL);
	abx__free(live);
	*ret_count = p.count;
	*ret_total = p.seen;
	return ABX_OK;
}

/* --- counting --- */

typedef struct tally {
	int64_t total, by_status[ABX__STATUS_COUNT];
	json_object *by_namespace;
	const char *namespace_; /* of the run being counted */
	int64_t run;
	int r;
} tally;

static void end_run(tally *t)
{
	json_object *known;

	if (t->run == 0 || t->r < 0)
		return;
	known = abx__field(t->by_namespace, t->namespace_);
	if (!known)
		t->r = abx__field_set_int(t->by_namespace, t->namespace_, t->run);
	else
		json_object_int_inc(known, t->run);
	t->run = 0;
}

static void count_one(tally *t, enum abx__sandbox_status status, const char *namespace_)
{
	t->total++;
	t->by_status[status]++;
	if (t->run > 0 && strcmp(t->namespace_, namespace_) != 0)
		end_run(t);
	t->namespace_ = namespace_;
	t->run++;
}

static void count_all(const abx__control *control, const abx__sandbox_query *query,
		      bool ended, tally *t)
{
	const abx__sandboxes *table = &control->sandboxes;
	const abx__history *h = control->history;
	abx__sandbox_query q;

	for (size_t i = 0; i < table->count; i++) {
		const abx__sandbox_rec *live = &table->order[i]->rec;

		if (live_matches(query, live))
			count_one(t, abx__sandbox_status_of(live), live->namespace_);
	}
	for (size_t i = ended && known_query(h, query, &q) ? h->count : 0; i > 0; i--) {
		const abx__history_entry *e = &h->order[i - 1];

		if (record_matches(&q, e))
			count_one(t, e->status, e->namespace_);
	}
	end_run(t);
}

static json_object *status_counts(const tally *t)
{
	json_object *counts = json_object_new_object();
	int r = counts ? ABX_OK : ABX_ENOMEM;

	for (size_t i = 0; r == ABX_OK && i < ABX__STATUS_COUNT; i++)
		if (t->by_status[i])
			r = abx__field_set_int(counts, names[i], t->by_status[i]);
	if (r == ABX_OK)
		return counts;
	json_object_put(counts);
	return NULL;
}

int abx__control_sandbox_statistics(abx__control *control,
				    const abx__sandbox_query *query, bool ended,
				    json_object **ret, abx_error **reterr)
{
	tally t = { .by_namespace = json_object_new_object() };
	json_object *all = json_object_new_object();

	if (t.by_namespace)
		count_all(control, query, ended, &t);
	if (!all || !t.by_namespace || t.r < 0 ||
	    abx__field_set_int(all, "total", t.total) < 0 ||
	    abx__field_take(all, "byStatus", status_counts(&t)) < 0 ||
	    abx__field_share(all, "byNamespace", t.by_namespace) < 0) {
		json_object_put(all);
		all = NULL;
	}
	json_object_put(t.by_namespace);
	if (!all)
		return abx__error_nomem(reterr);
	*ret = all;
	return ABX_OK;
}

/*
 * history.c - the records of sandboxes that ended: made, stored, found, dropped.
 *
 * Records hang in two orders: by the moment they ended (a list, for dropping the oldest)
 * and by claim (an array, for listing). Names that repeat (namespace, env, pool, owner)
 * are kept once, so that a filter compares pointers and a hundred thousand records stay
 * small. A record whose write failed is written again later; nothing here ever holds up
 * the end of a sandbox.
 */
#include "control/history-priv.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"

#define DEFAULT_MOST 10000
#define DEFAULT_AGE_MS (INT64_C(7) * 24 * 3600 * 1000)
#define LOOK_MS 60000    /* for records that are too old */
#define RETRY_MS 10000   /* for writes that failed */
#define AT_ONCE 256      /* documents written or removed in one go */
#define MESSAGE_MAX 4096 /* bytes kept of a failure's message */

/* --- names kept once --- */

const char *abx__history_known(const abx__history *history, const char *text)
{
	abx__name *name = NULL;

	HASH_FIND_STR(history->names, text, name);
	return name ? name->text : NULL;
}

static const char *name_get(abx__history *h, const char *text)
{
	abx__name *name = NULL;
	size_t len;

	if (!text)
		return NULL;
	HASH_FIND_STR(h->names, text, name);
	if (!name) {
		len = strlen(text);
		name = abx__calloc(1, sizeof(*name) + len + 1);
		if (!name)
			return NULL;
		memcpy(name->text, text, len + 1);
		HASH_ADD_KEYPTR(hh, h->names, name->text, len, name);
		if (!name->hh.tbl) {
			abx__free(name);
			return NULL;
		}
	}
	name->uses++;
	return name->text;
}

static void name_put(abx__history *h, const char *text)
{
	abx__name *name = NULL;

	if (!text)
		return;
	HASH_FIND_STR(h->names, text, name);
	if (name && --name->uses == 0) {
		HASH_DEL(h->names, name);
		abx__free(name);
	}
}

/* --- records --- */

/* The names a record shares, each at its place. */
static const char **shared_names(abx__record *r, size_t i)
{
	const char **const at[] = { &r->rec.namespace_, &r->rec.env,
				    &r->rec.pool,       &r->rec.template_,
				    &r->rec.image,      &r->rec.team,
				    &r->rec.user,       &r->rec.failure_reason };

	return i < sizeof(at) / sizeof(at[0]) ? at[i] : NULL;
}

static void record_free(abx__history *h, abx__record *r)
{
	const char **name;

	if (!r)
		return;
	for (size_t i = 0; (name = shared_names(r, i)); i++)
		name_put(h, *name);
	abx__map_done(&r->rec.metadata);
	abx__free((char *)r->rec.failure_message);
	abx__free((char *)r->rec.pod);
	abx__free(r);
}

/* A record of its own from one whose strings are borrowed. */
static abx__record *record_new(abx__history *h, const abx__ended *from)
{
	abx__record *r = abx__calloc(1, sizeof(*r));
	const char **name;
	bool ok = r != NULL;

	if (!r)
		return NULL;
	r->history = h;
	r->rec = *from;
	r->rec.metadata = (abx__map)ABX__MAP_INIT;
	abx__str_copy(r->id, sizeof(r->id), from->id);
	r->rec.id = r->id;
	for (size_t i = 0; (name = shared_names(r, i)); i++) {
		const char *text = *name;

		*name = name_get(h, text);
		ok = ok && (!text || *name);
	}
	r->rec.pod = abx__strdup(from->pod);
	r->rec.failure_message =
		from->failure_message ? abx__strndup(from->failure_message, MESSAGE_MAX)
				      : NULL;
	ok = ok && (!from->pod || r->rec.pod) &&
	     (!from->failure_message || r->rec.failure_message) &&
	     abx__map_copy(&r->rec.metadata, &from->metadata) == ABX_OK;
	if (ok)
		return r;
	record_free(h, r);
	return NULL;
}

/* --- the order by claim: oldest first, among equals the last id first --- */

int abx__history_compare(int64_t claimed_a, const char *id_a, int64_t claimed_b,
			 const char *id_b)
{
	if (claimed_a != claimed_b)
		return claimed_a < claimed_b ? -1 : 1;
	return strcmp(id_b, id_a);
}

static size_t place_of(const abx__history *h, const abx__record *r)
{
	size_t low = 0, high = h->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const abx__record *at = h->order[middle].record;

		if (abx__history_compare(at->rec.claimed_ms, at->id, r->rec.claimed_ms,
					 r->id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int order_grow(abx__history *h)
{
	size_t size = h->size ? 2 * h->size : 64;
	abx__history_entry *order;

	if (h->count < h->size)
		return ABX_OK;
	order = abx__reallocarray(h->order, size, sizeof(*order));
	if (!order)
		return ABX_ENOMEM;
	h->order = order;
	h->size = size;
	return ABX_OK;
}

static int insert(abx__history *h, abx__record *r)
{
	size_t at;

	if (order_grow(h) < 0)
		return ABX_ENOMEM;
	HASH_ADD_STR(h->by_id, id, r);
	if (!r->hh.tbl)
		return ABX_ENOMEM;
	at = place_of(h, r);
	memmove(&h->order[at + 1], &h->order[at], (h->count - at) * sizeof(*h->order));
	h->order[at] = (abx__history_entry){
		.record = r,
		.namespace_ = r->rec.namespace_,
		.env = r->rec.env,
		.pool = r->rec.pool,
		.team = r->rec.team,
		.user = r->rec.user,
		.status = r->rec.status,
	};
	h->count++;
	DL_APPEND(h->oldest, r);
	return ABX_OK;
}

/* Those that are marked, in one pass however many they are. */
static void sweep(abx__history *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->count; i++) {
		abx__record *r = h->order[i].record;

		if (!r->dropped) {
			h->order[kept++] = h->order[i];
			continue;
		}
		HASH_DEL(h->by_id, r);
		DL_DELETE(h->oldest, r);
		record_free(h, r);
	}
	h->count = kept;
}

/* --- the store --- */

static void on_removed(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__control *control = userdata;

	(void)doc;
	if (r < 0 && r != ABX_ENOTFOUND)
		abx__log_warn(control->config.log,
			      "an old record could not be removed from the store",
			      "error=%s", abx_error_message(err));
	abx__control_call_end(control);
}

static void remove_doc(abx__control *control, const abx__record *r)
{
	abx__store *store = control->config.store;

	abx__control_call_begin(control);
	store->ops->remove(store, ABX__KIND_RECORD, r->rec.namespace_, r->id, 0,
			   on_removed, control);
}

static void write_again(abx__record *r, bool create);

static void on_written(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__record *record = userdata;
	abx__control *control = record->history->control;
	bool created = record->creating;

	(void)doc;
	record->writing = false;
	if ((created && r == ABX_EEXISTS) || (!created && r == ABX_ENOTFOUND)) {
		write_again(record, !created);
	} else if (r < 0) {
		abx__log_warn(control->config.log,
			      "the record of a sandbox could not be stored",
			      "sandbox=%s error=%s", record->id, abx_error_message(err));
		record->unsaved = true;
		abx__control_set_timer_sooner(control, &record->history->timer,
					      abx__control_mono(control) + RETRY_MS);
	}
	abx__control_call_end(control);
}

static void write_again(abx__record *r, bool create)
{
	abx__control *control = r->history->control;
	abx__store *store = control->config.store;
	json_object *doc = abx__record_document(&r->rec);
	const char *body;
	size_t len;

	r->unsaved = doc == NULL;
	if (!doc) {
		abx__control_set_timer_sooner(control, &r->history->timer,
					      abx__control_mono(control) + RETRY_MS);
		return;
	}
	r->writing = true;
	r->creating = create;
	body = json_object_to_json_string_length(doc, JSON_C_TO_STRING_PLAIN, &len);
	abx__control_call_begin(control);
	if (create)
		store->ops->create(store, ABX__KIND_RECORD, r->rec.namespace_, r->id,
				   body, len, on_written, r);
	else
		store->ops->update(store, ABX__KIND_RECORD, r->rec.namespace_, r->id, 0,
				   body, len, on_written, r);
	json_object_put(doc);
}

/* --- bounds --- */

static void on_timer(abx__timer *timer)
{
	abx__history *h = timer->owner;
	abx__control *control = h->control;
	int64_t oldest = abx__control_wall(control) - control->config.history_age_ms;
	size_t over = h->count > control->config.history_most
			      ? h->count - control->config.history_most
			      : 0;
	size_t dropped = 0, written = 0;
	int64_t next = LOOK_MS;
	abx__record *r;

	if (control->state == ABX__CONTROL_CLOSING)
		return;
	for (r = h->oldest; r && dropped < AT_ONCE; r = r->next) {
		if (dropped >= over && r->rec.ended_ms >= oldest)
			break;
		if (r->writing)
			continue;
		remove_doc(control, r);
		r->dropped = true;
		dropped++;
	}
	if (dropped == AT_ONCE)
		next = 0;
	if (dropped)
		sweep(h);
	for (r = h->oldest; r && written < AT_ONCE; r = r->next) {
		if (!r->unsaved || r->writing)
			continue;
		write_again(r, false);
		written++;
	}
	if (written && next > RETRY_MS)
		next = RETRY_MS;
	abx__control_set_timer(control, timer, abx__control_mono(control) + next);
}

/* Dropping costs a pass over all, so it is done for some at once. */
static void look_at_bounds(abx__history *h)
{
	size_t most = h->control->config.history_most;

	if (h->count > most + most / 16)
		abx__control_set_timer_sooner(h->control, &h->timer, 0);
}

/* --- the rest of control --- */

int abx__history_init(abx__control *control)
{
	abx__history *h = abx__calloc(1, sizeof(*h));

	if (!h)
		return ABX_ENOMEM;
	h->control = control;
	control->history = h;
	if (control->config.history_most == 0)
		control->config.history_most = DEFAULT_MOST;
	if (control->config.history_age_ms == 0)
		control->config.history_age_ms = DEFAULT_AGE_MS;
	return abx__timers_reserve(&control->timers, &h->timer, on_timer, h);
}

void abx__history_done(abx__control *control)
{
	abx__history *h = control->history;

	if (!h)
		return;
	while (h->count) {
		abx__record *r = h->order[--h->count].record;

		HASH_DEL(h->by_id, r);
		record_free(h, r);
	}
	abx__timers_release(&control->timers, &h->timer);
	abx__free(h->order);
	abx__free(h);
	control->history = NULL;
}

static int by_end(const void *a, const void *b)
{
	const abx__ended *x = a, *y = b;

	return x->ended_ms < y->ended_ms ? -1 : x->ended_ms > y->ended_ms;
}

int abx__history_load(abx__control *control, const abx__doc *docs, size_t count,
		      abx_error **reterr)
{
	abx__ended *all = abx__calloc(count ? count : 1, sizeof(*all));
	json_object **bodies = abx__calloc(count ? count : 1, sizeof(*bodies));
	size_t kept = 0;
	int r = all && bodies ? ABX_OK : ABX_ENOMEM;

	for (size_t i = 0; r == ABX_OK && i < count; i++) {
		bodies[i] = json_tokener_parse(docs[i].body);
		if (abx__record_read(bodies[i], docs[i].namespace_, docs[i].name,
				     &all[kept]) == ABX_OK)
			kept++;
		else
			abx__log_warn(control->config.log,
				      "a record in the store does not hold together",
				      "sandbox=%s", docs[i].name);
	}
	if (r == ABX_OK)
		qsort(all, kept, sizeof(*all), by_end);
	for (size_t i = 0; r == ABX_OK && i < kept; i++) {
		abx__record *record = record_new(control->history, &all[i]);

		r = record ? insert(control->history, record) : ABX_ENOMEM;
		if (record && r < 0)
			record_free(control->history, record);
	}
	for (size_t i = 0; i < count; i++) {
		if (all && i < kept)
			abx__map_done(&all[i].metadata);
		if (bodies)
			json_object_put(bodies[i]);
	}
	abx__free(all);
	abx__free(bodies);
	if (r == ABX_OK)
		abx__control_set_timer(control, &control->history->timer,
				       abx__control_mono(control));
	return r < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

static enum abx__sandbox_status status_after(const char *stop_reason)
{
	enum abx__sandbox_status status;

	return abx__sandbox_status_parse(stop_reason, &status) &&
			       status < ABX__STATUS_COUNT
		       ? status
		       : ABX__STATUS_RELEASED;
}

/* Its document stays: it is written over at the next end. */
void abx__history_forget(abx__control *control, const char *id)
{
	abx__history *h = control->history;
	abx__record *r = NULL;

	HASH_FIND_STR(h->by_id, id, r);
	if (!r || r->writing)
		return;
	r->dropped = true;
	sweep(h);
}

void abx__history_add(abx__sandbox *s, const char *stop_reason,
		      const char *failure_reason, const char *failure_message,
		      int exit_code)
{
	abx__history *h = s->control->history;
	const abx__sandbox_rec *live = &s->rec;
	abx__ended ended = {
		.id = s->id,
		.namespace_ = live->namespace_,
		.env = live->env,
		.pool = live->pool,
		.pod = live->pod,
		.template_ = live->template_,
		.image = live->image,
		.team = live->team,
		.user = live->user,
		.status = status_after(stop_reason),
		.claimed_ms = live->claimed_ms,
		.started_ms = live->started_ms,
		.ended_ms = abx__control_wall(s->control),
		.failure_reason =
			failure_reason && *failure_reason ? failure_reason : NULL,
		.failure_message =
			failure_message && *failure_message ? failure_message : NULL,
		.exit_code = exit_code,
		.idle_timeout_ms = live->idle_timeout_ms,
		.cpu_milli = live->cpu_milli,
		.memory_bytes = live->memory_bytes,
		.metadata = live->metadata,
	};
	abx__record *r;

	if (s->recorded || !live->pod)
		return;
	s->recorded = true;
	abx__meter_sandbox_ended(s, stop_reason);
	abx__history_forget(s->control, s->id);
	r = record_new(h, &ended);
	if (!r || insert(h, r) < 0) {
		record_free(h, r);
		abx__log_warn(s->control->config.log,
			      "no memory for the record of a sandbox", "sandbox=%s",
			      s->id);
		return;
	}
	write_again(r, true);
	look_at_bounds(h);
}

size_t abx__history_count(const abx__control *control)
{
	return control->history->count;
}

const abx__ended *abx__control_ended(const abx__control *control, const char *id)
{
	abx__record *r = NULL;
	size_t len;

	id = abx__sandbox_id_bare(&control->sandboxes, id, &len);
	HASH_FIND(hh, control->history->by_id, id, len, r);
	return r ? &r->rec : NULL;
}

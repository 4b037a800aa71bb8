/*
 * sandboxes.c - the table of claimed Pods: a hash by id and an array in the order they
 * are listed in.
 */
#include "control/sandboxes.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "control/ingress.h"
#include "control/internal.h"

int abx__sandbox_token(const abx__control *control, const char *prefix, const char *id,
		       abx__secret **ret)
{
	uint8_t mac[ABX__SHA256_LEN];
	char hex[2 * ABX__SHA256_LEN + 1], text[64 + ABX__SANDBOX_ID_LEN];
	abx__secret *secret;
	int r;

	snprintf(text, sizeof(text), "%s%s", prefix, id);
	r = abx__hmac_sha256(control->token_key, sizeof(control->token_key), text,
			     strlen(text), mac);
	if (r < 0)
		return r;
	abx__hex(mac, sizeof(mac), hex);
	secret = abx__secret_new(hex, sizeof(hex) - 1);
	abx__wipe(mac, sizeof(mac));
	abx__wipe(hex, sizeof(hex));
	if (!secret)
		return ABX_ENOMEM;
	*ret = secret;
	return ABX_OK;
}

int abx__sandbox_set_ingress(abx__sandbox *sandbox, const abx__ingress *ingress)
{
	if (!ingress || !abx__ingress_is_set(ingress))
		return ABX_OK;
	sandbox->ingress = abx__malloc(sizeof(*ingress));
	if (!sandbox->ingress)
		return ABX_ENOMEM;
	*sandbox->ingress = *ingress;
	sandbox->rec.ingress = sandbox->ingress;
	return ingress->closed
		       ? abx__sandbox_token(sandbox->control, "sandbox-traffic-",
					    sandbox->id, &sandbox->rec.traffic_token)
		       : ABX_OK;
}

abx__sandbox *abx__sandbox_new(abx__control *control)
{
	abx__sandbox *sandbox = abx__calloc(1, sizeof(*sandbox));

	if (!sandbox)
		return NULL;
	sandbox->control = control;
	if (abx__timers_reserve(&control->timers, &sandbox->timer,
				abx__sandbox_idle_fired, sandbox) < 0) {
		abx__free(sandbox);
		return NULL;
	}
	sandbox->rec.id = sandbox->id;
	return sandbox;
}

static void waiters_free(abx__waiter *list)
{
	while (list) {
		abx__waiter *w = list;

		list = w->next;
		abx__free(w);
	}
}

void abx__sandbox_free(abx__sandbox *sandbox)
{
	if (!sandbox)
		return;
	abx__sandboxes_remove(&sandbox->control->sandboxes, sandbox);
	abx__timers_release(&sandbox->control->timers, &sandbox->timer);
	abx__map_done(&sandbox->rec.metadata);
	abx__secret_free(sandbox->rec.access_token);
	abx__secret_free(sandbox->rec.traffic_token);
	abx__free(sandbox->ingress);
	abx__metrics_free(sandbox->metrics);
	waiters_free(sandbox->kill_waiters);
	waiters_free(sandbox->persist_waiters);
	waiters_free(sandbox->persisting);
	abx__sandbox_free_moves(sandbox);
	abx__free(sandbox->sealed_vars);
	abx__free(sandbox->snapshot);
	abx__free(sandbox->namespace_);
	abx__free(sandbox->env);
	abx__free(sandbox->template_);
	abx__free(sandbox->image);
	abx__free(sandbox->pod_name);
	abx__free(sandbox->pool_name);
	abx__free(sandbox->team);
	abx__free(sandbox->user);
	abx__free(sandbox);
}

static int64_t order_time(const abx__sandbox *s)
{
	return s->rec.started_ms ? s->rec.started_ms : s->rec.claimed_ms;
}

static int order_compare(const abx__sandbox *a, const abx__sandbox *b)
{
	int64_t x = order_time(a), y = order_time(b);

	return x != y ? (x < y ? -1 : 1) : strcmp(a->id, b->id);
}

/* Index of the first that is not before `sandbox`. */
static size_t order_find(const abx__sandboxes *table, const abx__sandbox *sandbox)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (order_compare(table->order[middle], sandbox) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void order_insert(abx__sandboxes *table, abx__sandbox *sandbox)
{
	size_t at = order_find(table, sandbox);

	memmove(&table->order[at + 1], &table->order[at],
		(table->count - at) * sizeof(*table->order));
	table->order[at] = sandbox;
	table->count++;
}

static void order_remove(abx__sandboxes *table, abx__sandbox *sandbox)
{
	size_t at = order_find(table, sandbox);

	table->count--;
	memmove(&table->order[at], &table->order[at + 1],
		(table->count - at) * sizeof(*table->order));
}

int abx__sandboxes_add(abx__sandboxes *table, abx__sandbox *sandbox)
{
	if (table->count == table->size) {
		size_t size = table->size ? 2 * table->size : 64;
		abx__sandbox **order =
			abx__reallocarray(table->order, size, sizeof(*order));

		if (!order)
			return ABX_ENOMEM;
		table->order = order;
		table->size = size;
	}
	HASH_ADD_STR(table->by_id, id, sandbox);
	if (!sandbox->hh.tbl)
		return ABX_ENOMEM;
	order_insert(table, sandbox);
	sandbox->in_table = true;
	return ABX_OK;
}

void abx__sandboxes_remove(abx__sandboxes *table, abx__sandbox *sandbox)
{
	if (!sandbox->in_table)
		return;
	sandbox->in_table = false;
	HASH_DEL(table->by_id, sandbox);
	order_remove(table, sandbox);
}

void abx__sandboxes_started(abx__sandboxes *table, abx__sandbox *sandbox,
			    int64_t started_ms)
{
	order_remove(table, sandbox);
	sandbox->rec.started_ms = started_ms;
	order_insert(table, sandbox);
}

void abx__sandboxes_done(abx__sandboxes *table)
{
	while (table->count)
		abx__sandbox_free(table->order[table->count - 1]);
	abx__free(table->order);
	table->order = NULL;
	table->size = 0;
}

/* ID, CLUSTER.ID, ID-CLUSTER, or E2B's older ID-CLIENTID; ids hold neither '.' nor '-'.
 */
const char *abx__sandbox_id_bare(const abx__sandboxes *table, const char *id,
				 size_t *ret_len)
{
	size_t prefix = strlen(table->cluster_id);
	const char *dash = strchr(id, '-');

	*ret_len = strlen(id);
	if (strncmp(id, table->cluster_id, prefix) == 0 && id[prefix] == '.') {
		id += prefix + 1;
		*ret_len = strlen(id);
	} else if (dash && (strcmp(dash + 1, table->cluster_id) == 0 ||
			    strcmp(dash + 1, ABX__SANDBOX_CLIENT_ID) == 0)) {
		*ret_len = (size_t)(dash - id);
	}
	return id;
}

abx__sandbox *abx__sandboxes_get(const abx__sandboxes *table, const char *id)
{
	abx__sandbox *found = NULL;
	size_t len;

	id = abx__sandbox_id_bare(table, id, &len);
	HASH_FIND(hh, table->by_id, id, len, found);
	return found;
}

const abx__sandbox_rec *abx__sandboxes_find(const abx__sandboxes *table, const char *id)
{
	const abx__sandbox *sandbox = abx__sandboxes_get(table, id);

	return sandbox ? &sandbox->rec : NULL;
}

bool abx__sandboxes_at(const abx__sandboxes *table, size_t index,
		       const abx__sandbox_rec **ret)
{
	if (index >= table->count)
		return false;
	*ret = &table->order[index]->rec;
	return true;
}

static void touch(abx__sandbox *sandbox)
{
	sandbox->active_mono_ms = abx__control_mono(sandbox->control);
	sandbox->rec.last_active_ms = abx__control_wall(sandbox->control);
}

void abx__sandboxes_touch(abx__sandboxes *table, const char *id)
{
	abx__sandbox *sandbox = abx__sandboxes_get(table, id);

	if (sandbox)
		touch(sandbox);
}

void abx__sandboxes_stream_begin(abx__sandboxes *table, const char *id)
{
	abx__sandbox *sandbox = abx__sandboxes_get(table, id);

	if (!sandbox)
		return;
	sandbox->streams++;
	touch(sandbox);
}

void abx__sandboxes_stream_end(abx__sandboxes *table, const char *id)
{
	abx__sandbox *sandbox = abx__sandboxes_get(table, id);

	if (!sandbox)
		return;
	if (sandbox->streams > 0)
		sandbox->streams--;
	touch(sandbox);
	/* The end of the stream, not the last look at it, is where the idle time starts.
	 */
	if (sandbox->streams == 0)
		abx__sandbox_arm_idle(sandbox);
}

/*
 * quota.c - how many Pods a pool may have under its quota, and what is told of it.
 *
 * A pool that asks for more than its quota has left keeps its size and gets what there is
 * (condition Admitted, ResourceQuotaExhausted); what becomes free is given to the oldest
 * pool that wants it. Nothing that runs is ever taken away.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/members.h"

static bool counts_against(const abx__pool *pool, const char *url, const char *type)
{
	return pool->env && !pool->deleting && abx__str_eq(pool->config.quota, url) &&
	       abx__str_eq(pool->config.instance_type, type);
}

int abx__pool_wanted(const abx__pool *pool)
{
	return pool->admitted < pool->config.replicas ? pool->admitted
						      : pool->config.replicas;
}

/* Units a pool is entitled to: what it was granted, and what runs beyond that. */
static int64_t entitled(const abx__pool *pool)
{
	int pods = abx__pool_wanted(pool);
	int claimed =
		pool->counts[ABX__PODREC_RUNNING] + pool->counts[ABX__PODREC_STARTING];

	return (int64_t)(claimed > pods ? claimed : pods) * pool->config.multiplier;
}

/* Units that nobody else can have: Pods on their way out count until they are gone. */
static int64_t held(const abx__pool *pool)
{
	int pods = abx__pool_wanted(pool);

	return (int64_t)(pool->total > pods ? pool->total : pods) *
	       pool->config.multiplier;
}

static int64_t used(const abx__control *control, const char *url, const char *type,
		    const abx__pool *except)
{
	int64_t sum = 0;

	for (const abx__pool *pool = control->pools; pool; pool = pool->hh.next)
		if (pool != except && counts_against(pool, url, type))
			sum += held(pool);
	return sum;
}

/* The quota a pool is under; NULL: nothing limits it. */
static const abx__quota *quota_of(const abx__pool *pool, int64_t *ret_ceiling)
{
	const abx__capacity *capacity = pool->control->config.capacity;
	const abx__quota *quota;

	if (!capacity || !pool->config.quota || !pool->config.instance_type)
		return NULL;
	quota = abx__quota_find(pool->control, pool->config.quota);
	*ret_ceiling = quota ? capacity->ops->ceiling(capacity, quota,
						      pool->config.instance_type)
			     : 0;
	return quota && *ret_ceiling != ABX__CEILING_NONE ? quota : NULL;
}

int abx__quota_grant(const abx__pool *pool, int replicas)
{
	const abx__control *control = pool->control;
	const abx__capacity *capacity = control->config.capacity;
	int64_t most = 0, left;
	const abx__quota *quota = quota_of(pool, &most);

	if (!quota)
		return replicas;
	left = most -
	       capacity->ops->reserved(capacity, quota, pool->config.instance_type) -
	       used(control, quota->url, pool->config.instance_type, pool);
	left = left > 0 ? left / pool->config.multiplier : 0;
	return left < replicas ? (int)left : replicas;
}

static void admit(abx__pool *pool, int granted)
{
	int64_t most = 0;
	bool full = granted < pool->config.replicas;
	bool news = !pool->admitted_cond.known || pool->admitted_cond.value == full;

	if (granted != pool->admitted) {
		pool->admitted = granted;
		abx__pool_touch(pool, true);
	}
	if (!quota_of(pool, &most) && !full) {
		pool->admitted_cond.known = false;
		return;
	}
	abx__condition_set(&pool->admitted_cond, abx__control_wall(pool->control), !full,
			   full ? ABX__EVENT_QUOTA_EXHAUSTED : ABX__EVENT_QUOTA_GRANTED);
	if (!news || pool->control->state != ABX__CONTROL_RUNNING)
		return;
	if (full)
		abx__env_tell(pool->env, pool, true, ABX__EVENT_QUOTA_EXHAUSTED, NULL,
			      "quota %s has room for %d of %d replicas",
			      pool->config.quota, granted, pool->config.replicas);
	else
		abx__env_tell(pool->env, pool, false, ABX__EVENT_QUOTA_GRANTED, NULL,
			      "quota %s has room for all %d replicas", pool->config.quota,
			      granted);
}

static int by_age(const void *a, const void *b)
{
	const abx__pool *x = *(abx__pool *const *)a, *y = *(abx__pool *const *)b;

	if (x->created_ms != y->created_ms)
		return x->created_ms < y->created_ms ? -1 : 1;
	return strcmp(x->key, y->key);
}

/* The pools that share a quota and a type, the oldest first. */
static abx__pool **sharers(abx__control *control, const char *url, const char *type,
			   size_t *ret_count)
{
	abx__pool **list, *pool;
	size_t count = 0;

	for (pool = control->pools; pool; pool = pool->hh.next)
		count += counts_against(pool, url, type);
	list = abx__calloc(count + 1, sizeof(*list));
	if (!list)
		return NULL;
	*ret_count = 0;
	for (pool = control->pools; pool; pool = pool->hh.next)
		if (counts_against(pool, url, type))
			list[(*ret_count)++] = pool;
	qsort(list, count, sizeof(*list), by_age);
	return list;
}

/* What was granted stays while there is room for it, the oldest pools' longest. */
static void cut(abx__pool **pools, size_t count, int64_t units)
{
	for (size_t i = 0; i < count; i++) {
		if (pools[i]->admitted > pools[i]->config.replicas)
			pools[i]->admitted = pools[i]->config.replicas;
		units -= entitled(pools[i]);
	}
	for (size_t i = count; i > 0 && units < 0; i--) {
		abx__pool *pool = pools[i - 1];
		int64_t before = entitled(pool);
		int64_t over =
			(-units + pool->config.multiplier - 1) / pool->config.multiplier;

		pool->admitted = over < pool->admitted ? pool->admitted - (int)over : 0;
		units += before - entitled(pool);
	}
}

/* The oldest get more, of what is really free. */
static void share(abx__pool **pools, size_t count, int64_t units)
{
	for (size_t i = 0; i < count; i++)
		units -= held(pools[i]);
	for (size_t i = 0; i < count; i++) {
		int64_t before = held(pools[i]);
		/* Its own Pods that were to go may stay, while there is room for them. */
		int64_t most = (held(pools[i]) + units) / pools[i]->config.multiplier;
		int now = abx__pool_wanted(pools[i]);

		if (most > pools[i]->config.replicas)
			most = pools[i]->config.replicas;
		admit(pools[i], most > now ? (int)most : now);
		units -= held(pools[i]) - before;
	}
}

int abx__quota_evaluate(abx__pool *pool)
{
	abx__control *control = pool->control;
	const abx__capacity *capacity = control->config.capacity;
	int64_t most = 0;
	const abx__quota *quota = quota_of(pool, &most);
	abx__pool **pools;
	size_t count = 0;

	if (!quota) {
		admit(pool, INT_MAX);
		return ABX_OK;
	}
	/* Before everything is known nobody can be the oldest. */
	if (control->state == ABX__CONTROL_STARTING && !control->synced)
		return ABX_OK;
	pools = sharers(control, quota->url, pool->config.instance_type, &count);
	if (!pools)
		return ABX_ENOMEM;
	most -= capacity->ops->reserved(capacity, quota, pool->config.instance_type);
	cut(pools, count, most);
	share(pools, count, most);
	abx__free(pools);
	return ABX_OK;
}

int abx__quota_check_grow(const abx__pool *pool, int replicas, abx_error **reterr)
{
	int granted;

	if (!pool || replicas <= pool->config.replicas)
		return ABX_OK;
	granted = abx__quota_grant(pool, replicas);
	if (granted >= replicas)
		return ABX_OK;
	abx__error_set(reterr, ABX_EEXHAUSTED,
		       "pool %s: quota %s has room for %d of %d replicas "
		       "(ResourceQuotaExhausted)",
		       pool->config.name, pool->config.quota, granted, replicas);
	abx__error_hint(reterr,
			"ask for fewer replicas, or whoever owns the quota for more");
	return ABX_EEXHAUSTED;
}

/* --- lists --- */

bool abx__control_has_instance_types(const abx__control *control)
{
	const abx__capacity *c = control->config.capacity;

	return c && c->ops->has_types(c);
}

bool abx__control_has_quotas(const abx__control *control)
{
	const abx__capacity *c = control->config.capacity;

	return c && c->ops->has_quotas(c);
}

int abx__control_instance_types(const abx__control *control, json_object **ret,
				abx_error **reterr)
{
	const abx__capacity *c = control->config.capacity;
	ABX_CLEANUP(abx__json_putp) json_object *list = json_object_new_array();
	const abx__instance_type *type;

	for (size_t i = 0; list && c && (type = c->ops->type_at(c, i)); i++) {
		json_object *copy = NULL;

		if (json_object_deep_copy(type->document, &copy, NULL) < 0 ||
		    json_object_array_add(list, copy) < 0) {
			json_object_put(copy);
			return abx__error_nomem(reterr);
		}
	}
	if (!list)
		return abx__error_nomem(reterr);
	*ret = abx_take(list);
	return ABX_OK;
}

static int set_count(json_object *map, const char *type, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	return abx__field_set_str(map, type, text);
}

typedef struct amounts {
	json_object *total, *used, *reserved, *free;
} amounts;

static int add_amounts(const abx__control *control, const abx__quota *q, const char *type,
		       amounts *a)
{
	const abx__capacity *c = control->config.capacity;
	int64_t most = c->ops->ceiling(c, q, type);
	int64_t taken = used(control, q->url, type, NULL);
	int64_t kept = c->ops->reserved(c, q, type);
	int64_t left = most - taken - kept;

	if (most == ABX__CEILING_NONE && taken == 0 && kept == 0 &&
	    !abx__field(q->total, type))
		return ABX_OK;
	if (set_count(a->used, type, taken) < 0 || set_count(a->reserved, type, kept) < 0)
		return ABX_ENOMEM;
	if (most == ABX__CEILING_NONE)
		return ABX_OK;
	if (set_count(a->total, type, most) < 0)
		return ABX_ENOMEM;
	return set_count(a->free, type, left > 0 ? left : 0);
}

/* Of every type the quota speaks of, or that a pool uses under it. */
static int fill_amounts(const abx__control *control, const abx__quota *q, amounts *a)
{
	const abx__capacity *c = control->config.capacity;
	const abx__instance_type *type;
	int r = ABX_OK;

	if (q->total) {
		json_object_object_foreach(q->total, name, value)
		{
			(void)value;
			if (r == ABX_OK)
				r = add_amounts(control, q, name, a);
		}
	}
	for (size_t i = 0; r == ABX_OK && (type = c->ops->type_at(c, i)); i++)
		if (!abx__field(a->used, type->name) &&
		    (used(control, q->url, type->name, NULL) > 0 ||
		     c->ops->reserved(c, q, type->name) > 0))
			r = add_amounts(control, q, type->name, a);
	return r;
}

static json_object *quota_document(const abx__control *control, const abx__quota *q)
{
	json_object *o = json_object_new_object(), *resources = json_object_new_object();
	amounts a = { json_object_new_object(), json_object_new_object(),
		      json_object_new_object(), json_object_new_object() };
	int r = o && resources && a.total && a.used && a.reserved && a.free
			? fill_amounts(control, q, &a)
			: ABX_ENOMEM;

	if (r < 0 || abx__field_set_str(o, "id", q->id) < 0 ||
	    abx__field_set_str(o, "name", q->url) < 0 ||
	    (q->team && abx__field_set_str(o, "team", q->team) < 0) ||
	    (q->user && abx__field_set_str(o, "user", q->user) < 0) ||
	    abx__field_share(resources, "total", a.total) < 0 ||
	    abx__field_share(resources, "used", a.used) < 0 ||
	    abx__field_share(resources, "reserved", a.reserved) < 0 ||
	    abx__field_share(resources, "free", a.free) < 0 ||
	    abx__field_share(o, "resources", resources) < 0 ||
	    abx__field_share(o, "metadata", q->metadata) < 0) {
		json_object_put(o);
		o = NULL;
	}
	json_object_put(resources);
	json_object_put(a.total);
	json_object_put(a.used);
	json_object_put(a.reserved);
	json_object_put(a.free);
	return o;
}

int abx__control_quotas(const abx__control *control, const char *team, const char *user,
			json_object **ret, abx_error **reterr)
{
	const abx__capacity *c = control->config.capacity;
	ABX_CLEANUP(abx__json_putp) json_object *list = json_object_new_array();
	const abx__quota *q;

	for (size_t i = 0; list && c && (q = c->ops->quota_at(c, i)); i++) {
		if (team && q->team && strcmp(team, q->team) != 0)
			continue;
		if (user && q->user && strcmp(user, q->user) != 0)
			continue;
		abx__array_take(&list, quota_document(control, q));
	}
	if (!list)
		return abx__error_nomem(reterr);
	*ret = abx_take(list);
	return ABX_OK;
}

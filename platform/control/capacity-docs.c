/*
 * capacity-docs.c - the capacity port from two documents: what one computer has, and what
 * tests use.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "control/capacity.h"
#include "control/fields.h"
#include "model/quantity.h"

#define ITEMS_MAX 1000
#define COUNT_MAX INT64_C(1000000)

typedef struct from_docs {
	abx__capacity base;
	json_object *types_doc, *quotas_doc; /* own; NULL: not here */
	abx__instance_type *types;
	size_t type_count;
	abx__quota *quotas;
	size_t quota_count;
} from_docs;

static const from_docs *of(const abx__capacity *capacity)
{
	return (const from_docs *)capacity;
}

static bool has_types(const abx__capacity *c)
{
	return of(c)->types_doc != NULL;
}

static bool has_quotas(const abx__capacity *c)
{
	return of(c)->quotas_doc != NULL;
}

static const abx__instance_type *type_at(const abx__capacity *c, size_t i)
{
	return i < of(c)->type_count ? &of(c)->types[i] : NULL;
}

static const abx__quota *quota_at(const abx__capacity *c, size_t i)
{
	return i < of(c)->quota_count ? &of(c)->quotas[i] : NULL;
}

static int64_t count_of(json_object *map, const char *type)
{
	const char *text = abx__field_str(map, type);
	int64_t n = 0;

	return text && abx__parse_i64(text, 0, COUNT_MAX, &n) == ABX_OK ? n : 0;
}

static int64_t ceiling(const abx__capacity *c, const abx__quota *q, const char *type)
{
	(void)c;
	if (abx__str_eq(abx__field_str(q->metadata, ABX__QUOTA_SKIP_CHECK), "true") ||
	    !q->total)
		return ABX__CEILING_NONE;
	return count_of(q->total, type);
}

static json_object *reserved_map(const from_docs *d, const abx__quota *q)
{
	json_object *items = abx__field_array(d->quotas_doc, "items");

	for (size_t i = 0; i < abx__array_count(items); i++) {
		json_object *item = json_object_array_get_idx(items, i);

		if (abx__str_eq(abx__field_str(item, "name"), q->url))
			return abx__field_object(abx__field_object(item, "resources"),
						 "reserved");
	}
	return NULL;
}

static int64_t reserved(const abx__capacity *c, const abx__quota *q, const char *type)
{
	return count_of(reserved_map(of(c), q), type);
}

static void docs_free(abx__capacity *c)
{
	from_docs *d = (from_docs *)c;

	abx__free(d->types);
	abx__free(d->quotas);
	json_object_put(d->types_doc);
	json_object_put(d->quotas_doc);
	abx__free(d);
}

static const abx__capacity_ops docs_ops = {
	.name = "documents",
	.has_types = has_types,
	.has_quotas = has_quotas,
	.type_at = type_at,
	.quota_at = quota_at,
	.ceiling = ceiling,
	.reserved = reserved,
	.free = docs_free,
};

void abx__capacity_free(abx__capacity *capacity)
{
	if (capacity)
		capacity->ops->free(capacity);
}

/* --- reading them --- */

static int bad(abx_error **reterr, const char *what, const char *name, const char *why)
{
	return abx__error_set(reterr, ABX_EINVAL, "%s %s: %s", what,
			      name ? name : "without a name", why);
}

static int check_resources(const char *name, json_object *base, abx_error **reterr)
{
	int64_t cpu = 0, memory = 0, n;

	if (!base || json_object_object_length(base) == 0)
		return bad(reterr, "instance type", name, "baseResources is required");
	json_object_object_foreach(base, key, value)
	{
		const char *text = json_object_is_type(value, json_type_string)
					   ? json_object_get_string(value)
					   : "";
		int r = strcmp(key, "cpu") == 0 ? abx__quantity_milli(text, &cpu, reterr)
			: strcmp(key, "memory") == 0
				? abx__quantity_bytes(text, &memory, reterr)
				: abx__quantity_milli(text, &n, reterr);

		if (r < 0)
			return abx__error_prefix(
				reterr, "instance type %s: baseResources.%s", name, key);
	}
	return cpu > 0 || memory > 0 ? ABX_OK
				     : bad(reterr, "instance type", name,
					   "baseResources has neither cpu nor memory");
}

static int read_type(json_object *item, abx__instance_type *t, abx_error **reterr)
{
	int64_t max = abx__field_int(item, "maxMultiplier", 0);

	t->name = abx__field_str(item, "name");
	t->base_resources = abx__field_object(item, "baseResources");
	t->document = item;
	if (!t->name || !*t->name)
		return bad(reterr, "instance type", NULL, "name is required");
	if (max < 0 || max > INT32_MAX)
		return bad(reterr, "instance type", t->name,
			   "maxMultiplier must not be negative");
	t->max_multiplier = (int)max;
	return check_resources(t->name, t->base_resources, reterr);
}

static int check_counts(const char *name, const char *key, json_object *map,
			abx_error **reterr)
{
	int64_t n;

	if (!map)
		return ABX_OK;
	json_object_object_foreach(map, type, value)
	{
		if (!json_object_is_type(value, json_type_string) ||
		    abx__parse_i64(json_object_get_string(value), 0, COUNT_MAX, &n) < 0)
			return abx__error_set(reterr, ABX_EINVAL,
					      "quota %s: resources.%s.%s is no count, "
					      "a string of 0..%" PRId64,
					      name, key, type, COUNT_MAX);
	}
	return ABX_OK;
}

static int read_quota(json_object *item, abx__quota *q, abx_error **reterr)
{
	json_object *resources = abx__field_object(item, "resources");
	int r;

	q->url = abx__field_str(item, "name");
	q->id = abx__field_str(item, "id");
	q->short_name = abx__field_str(item, "shortName");
	q->team = abx__field_str(item, "team");
	q->user = abx__field_str(item, "user");
	q->total = abx__field_object(resources, "total");
	q->metadata = abx__field_object(item, "metadata");
	if (!q->url || !*q->url)
		return bad(reterr, "quota", NULL, "name is required");
	if (!q->id)
		q->id = q->url;
	r = check_counts(q->url, "total", q->total, reterr);
	return r < 0 ? r
		     : check_counts(q->url, "reserved",
				    abx__field_object(resources, "reserved"), reterr);
}

static int by_type_name(const void *a, const void *b)
{
	return strcmp(((const abx__instance_type *)a)->name,
		      ((const abx__instance_type *)b)->name);
}

static int by_url(const void *a, const void *b)
{
	return strcmp(((const abx__quota *)a)->url, ((const abx__quota *)b)->url);
}

static int items_of(json_object *doc, const char *what, json_object **ret,
		    abx_error **reterr)
{
	*ret = abx__field_array(doc, "items");
	if (!*ret || abx__array_count(*ret) > ITEMS_MAX)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s: items must be an array of at most %d", what,
				      ITEMS_MAX);
	return ABX_OK;
}

static int read_types(from_docs *d, abx_error **reterr)
{
	json_object *items;
	int r = items_of(d->types_doc, "instance types", &items, reterr);

	if (r < 0)
		return r;
	d->type_count = abx__array_count(items);
	d->types = abx__calloc(d->type_count + 1, sizeof(*d->types));
	if (!d->types)
		return abx__error_nomem(reterr);
	for (size_t i = 0; i < d->type_count; i++) {
		r = read_type(json_object_array_get_idx(items, i), &d->types[i], reterr);
		if (r < 0)
			return r;
	}
	qsort(d->types, d->type_count, sizeof(*d->types), by_type_name);
	for (size_t i = 1; i < d->type_count; i++)
		if (strcmp(d->types[i - 1].name, d->types[i].name) == 0)
			return bad(reterr, "instance type", d->types[i].name,
				   "it is there twice");
	return ABX_OK;
}

static int read_quotas(from_docs *d, abx_error **reterr)
{
	json_object *items;
	int r = items_of(d->quotas_doc, "quotas", &items, reterr);

	if (r < 0)
		return r;
	d->quota_count = abx__array_count(items);
	d->quotas = abx__calloc(d->quota_count + 1, sizeof(*d->quotas));
	if (!d->quotas)
		return abx__error_nomem(reterr);
	for (size_t i = 0; i < d->quota_count; i++) {
		r = read_quota(json_object_array_get_idx(items, i), &d->quotas[i],
			       reterr);
		if (r < 0)
			return r;
	}
	qsort(d->quotas, d->quota_count, sizeof(*d->quotas), by_url);
	for (size_t i = 1; i < d->quota_count; i++)
		if (strcmp(d->quotas[i - 1].url, d->quotas[i].url) == 0)
			return bad(reterr, "quota", d->quotas[i].url,
				   "it is there twice");
	return ABX_OK;
}

static int copy(json_object *doc, json_object **ret, abx_error **reterr)
{
	return !doc || json_object_deep_copy(doc, ret, NULL) == 0
		       ? ABX_OK
		       : abx__error_nomem(reterr);
}

int abx__capacity_docs_new(json_object *types, json_object *quotas, abx__capacity **ret,
			   abx_error **reterr)
{
	from_docs *d = abx__calloc(1, sizeof(*d));
	int r;

	if (!d)
		return abx__error_nomem(reterr);
	d->base.ops = &docs_ops;
	r = copy(types, &d->types_doc, reterr);
	if (r == ABX_OK)
		r = copy(quotas, &d->quotas_doc, reterr);
	if (r == ABX_OK && d->types_doc)
		r = read_types(d, reterr);
	if (r == ABX_OK && d->quotas_doc)
		r = read_quotas(d, reterr);
	if (r < 0) {
		docs_free(&d->base);
		return r;
	}
	*ret = &d->base;
	return ABX_OK;
}

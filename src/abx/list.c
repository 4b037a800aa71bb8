/*
 * src/abx/list.c - a list of the native API: pages of it become rows, rows are expanded
 * and filtered.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "table.h"

#define PAGE_ROWS 1000
#define MAX_ROWS 200000

/* ---- envelopes ---- */

/* The array in an answer: itself, the declared member, or a usual one. NULL: none. */
static json_object *rows_of(const struct cli_resource *resource, json_object *answer)
{
	static const char *const usual[] = {
		"items",         "envs",      "pools",    "sandboxPools",
		"sandboxes",     "templates", "clusters", "quotas",
		"instanceTypes", "events",    "groups",
	};
	json_object *rows;

	if (json_object_is_type(answer, json_type_array))
		return json_object_get(answer);
	if (resource->list_field != NULL) {
		rows = cli_json_at(answer, resource->list_field);
		if (json_object_is_type(rows, json_type_array))
			return json_object_get(rows);
		if (json_object_is_type(rows, json_type_object)) {
			json_object *one = json_object_new_array();
			json_object_array_add(one, json_object_get(rows));
			return one;
		}
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		rows = cli_json_at(answer, usual[i]);
		if (json_object_is_type(rows, json_type_array))
			return json_object_get(rows);
	}
	return NULL;
}

json_object *cli_unwrap(json_object *answer)
{
	static const char *const members[] = { "env", "pool", "sandbox", "template",
					       "group" };

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_object *o = cli_json_at(answer, members[i]);
		if (json_object_is_type(o, json_type_object))
			return o;
	}
	return answer;
}

json_object *cli_row_value(json_object *row, const struct cli_column *column,
			   bool is_first)
{
	json_object *value;

	/* A bare text stands under the first heading. */
	if (!json_object_is_type(row, json_type_object))
		return is_first ? row : NULL;
	value = cli_json_at(row, column->path != NULL ? column->path : column->id);
	if (value == NULL && column->path != NULL)
		json_object_object_get_ex(row, column->id, &value);
	return value;
}

/* ---- filters ---- */

static const struct cli_column *column_of(const struct cli_resource *resource,
					  const char *filter)
{
	size_t n = strcspn(filter, "=");

	for (const struct cli_column *c = resource->columns; c->id != NULL; c++)
		if ((c->flags & CLI_COL_FILTER) != 0 && strlen(c->id) == n &&
		    strncmp(c->id, filter, n) == 0)
			return c;
	return NULL;
}

static int check_value(const struct cli_column *column, const char *value)
{
	char hint[256] = "values:";

	if (column->values == NULL)
		return 0;
	for (size_t i = 0; column->values[i] != NULL; i++) {
		if (strcmp(column->values[i], value) == 0)
			return 0;
		snprintf(hint + strlen(hint), sizeof(hint) - strlen(hint), " %s",
			 column->values[i]);
	}
	return cli_fail(hint, "--filter %s: there is no \"%s\"", column->id, value);
}

int cli_filters_check(const struct cli_resource *resource, const struct cli_args *args)
{
	for (size_t i = 0; i < args->n_filters; i++) {
		const char *filter = args->filters[i];
		const struct cli_column *column = column_of(resource, filter);
		char keys[256], hint[320];

		if (column == NULL) {
			cli_filter_keys(resource, ", ", keys, sizeof(keys));
			snprintf(hint, sizeof(hint), "%s%s",
				 keys[0] != '\0' ? "keys: " : "they have no filters",
				 keys);
			return cli_fail(hint, "%s have no filter \"%.*s\"",
					resource->plural, (int)strcspn(filter, "="),
					filter);
		}
		if (check_value(column, strchr(filter, '=') + 1) != 0)
			return 1;
	}
	return 0;
}

/* Closed sets are matched exactly, all else by a part of it in either case. */
static bool matches(const struct cli_resource *resource, json_object *row,
		    const char *filter)
{
	const struct cli_column *column = column_of(resource, filter);
	const char *wanted = strchr(filter, '=') + 1;
	char *cell = cli_cell(cli_row_value(row, column, column == resource->columns));
	bool found = cell != NULL &&
		     (column->values != NULL ? strcmp(cell, wanted) == 0
					     : strcasestr(cell, wanted) != NULL);

	free(cell);
	return found;
}

static json_object *filtered(const struct cli_resource *resource,
			     const struct cli_args *args, json_object *rows)
{
	json_object *kept = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		json_object *row = json_object_array_get_idx(rows, i);
		bool keep = true;

		for (size_t k = 0; keep && k < args->n_filters; k++)
			keep = matches(resource, row, args->filters[k]);
		if (keep)
			json_object_array_add(kept, json_object_get(row));
	}
	json_object_put(rows);
	return kept;
}

/* ---- pages ---- */

static int64_t total_of(json_object *answer)
{
	json_object *total = cli_json_at(answer, "total");

	return json_object_is_type(total, json_type_int) ? json_object_get_int64(total)
							 : -1;
}

/* One page behind the rows there are; 1 on failure. `*ret_n`: rows it had. */
static int fetch_page(abx_client *client, const struct cli_address *a, const char *path,
		      size_t limit, struct cli_list *list, size_t *ret_n)
{
	json_object *answer = NULL, *rows;
	size_t have = json_object_array_length(list->rows);
	char *paged = NULL;
	int r;

	if ((a->resource->flags & CLI_RES_PAGED) == 0)
		paged = strdup(path);
	else if (asprintf(&paged, "%s?limit=%zu&offset=%zu", path, limit, have) < 0)
		paged = NULL;
	if (paged == NULL)
		return cli_fail(NULL, "out of memory");
	r = cli_fetch(client, a, paged, &answer);
	free(paged);
	if (r != 0)
		return r;
	rows = rows_of(a->resource, answer);
	if (rows == NULL) {
		json_object_put(answer);
		return cli_fail(NULL, "the answer holds no list of %s",
				a->resource->plural);
	}
	*ret_n = json_object_array_length(rows);
	for (size_t i = 0; i < *ret_n; i++)
		json_object_array_add(
			list->rows, json_object_get(json_object_array_get_idx(rows, i)));
	list->total = total_of(answer);
	json_object_put(rows);
	json_object_put(answer);
	return 0;
}

int cli_list_fetch(const struct cli_args *args, abx_client *client,
		   const struct cli_address *a, size_t limit, struct cli_list *ret)
{
	struct cli_list list = { json_object_new_array(), -1 };
	char *path = cli_address_path(a, false);
	bool some = limit > 0 && args->n_filters == 0;
	size_t n = 0, have;
	int r = path != NULL ? 0 : cli_fail(NULL, "out of memory");

	do {
		if (r == 0)
			r = fetch_page(client, a, path, some ? limit : PAGE_ROWS, &list,
				       &n);
		have = json_object_array_length(list.rows);
	} while (r == 0 && (a->resource->flags & CLI_RES_PAGED) != 0 && !some && n > 0 &&
		 (int64_t)have < list.total && have < MAX_ROWS);
	free(path);
	if (r != 0) {
		json_object_put(list.rows);
		return r;
	}
	if (cli_resource_is(a->resource, "quotas") && !args->json) {
		json_object *expanded = cli_quota_rows(list.rows);
		json_object_put(list.rows);
		list.rows = expanded;
	}
	if (args->n_filters > 0)
		list.rows = filtered(a->resource, args, list.rows);
	have = json_object_array_length(list.rows);
	/* Only a list that was cut is longer than what is here. */
	if (!some || list.total < (int64_t)have ||
	    (a->resource->flags & CLI_RES_PAGED) == 0)
		list.total = (int64_t)have;
	*ret = list;
	return 0;
}

void cli_list_done(struct cli_list *list)
{
	json_object_put(list->rows);
	list->rows = NULL;
}

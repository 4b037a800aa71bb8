/*
 * src/abx/quota.c - a quota counts each instance type by itself; in tables each is a row,
 * with what is derived from the numbers: how much there may be, and how much is left.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "table.h"

#define SKIP_CHECK "quota.scitix.ai/skip-check"
#define DASH "—"

static const char *const maps[] = { "total", "used", "reserved", "free" };
#define N_MAPS (sizeof(maps) / sizeof(maps[0]))

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The union of the maps' keys, sorted; borrowed from `resources`. */
static size_t keys_of(json_object *resources, const char **keys, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < N_MAPS; i++) {
		json_object *map = cli_json_at(resources, maps[i]);

		if (!json_object_is_type(map, json_type_object))
			continue;
		json_object_object_foreach(map, key, value)
		{
			size_t k = 0;

			(void)value;
			while (k < n && strcmp(keys[k], key) != 0)
				k++;
			if (k == n && n < size)
				keys[n++] = key;
		}
	}
	qsort(keys, n, sizeof(keys[0]), by_text);
	return n;
}

static json_object *of_key(json_object *resources, const char *key)
{
	json_object *one = json_object_new_object();

	for (size_t i = 0; i < N_MAPS; i++) {
		json_object *map = cli_json_at(resources, maps[i]), *value;

		if (json_object_is_type(map, json_type_object) &&
		    json_object_object_get_ex(map, key, &value))
			json_object_object_add(one, maps[i], json_object_get(value));
	}
	return one;
}

/* Text of a number, or NULL. */
static const char *text_at(json_object *o, const char *key)
{
	json_object *value = cli_json_at(o, key);

	return value != NULL ? json_object_get_string(value) : NULL;
}

static double number_at(json_object *o, const char *key)
{
	const char *text = text_at(o, key);

	return text != NULL ? strtod(text, NULL) : 0;
}

static void put_text(json_object *row, const char *key, const char *text)
{
	json_object_object_add(row, key, json_object_new_string(text));
}

static void put_free(json_object *row, json_object *counts, bool unlimited)
{
	double left = number_at(counts, "total") - number_at(counts, "used") -
		      number_at(counts, "reserved");
	char text[32];

	if (unlimited) {
		put_text(row, "free", DASH);
		return;
	}
	if (text_at(counts, "free") != NULL) {
		put_text(row, "free", text_at(counts, "free"));
		return;
	}
	snprintf(text, sizeof(text), "%g", left > 0 ? left : 0);
	put_text(row, "free", text);
}

static void derive(json_object *row, json_object *counts)
{
	json_object *metadata = cli_json_at(row, "metadata"), *skip = NULL;
	const char *total = text_at(counts, "total"), *ceiling = total;
	bool has_skip = json_object_is_type(metadata, json_type_object) &&
			json_object_object_get_ex(metadata, SKIP_CHECK, &skip);

	if (has_skip && strcmp(json_object_get_string(skip), "true") == 0)
		ceiling = "unlimited";
	else if (total == NULL)
		ceiling = has_skip ? DASH : "unlimited";
	bool unlimited = strcmp(ceiling, "unlimited") == 0;
	put_text(row, "ceiling", ceiling);
	put_free(row, counts, unlimited);
	put_text(row, "note",
		 unlimited                   ? "no cap: the pool's stock decides"
		 : strcmp(ceiling, "0") == 0 ? "no quota allocated"
					     : DASH);
}

static json_object *copy_without_resources(json_object *row)
{
	json_object *copy = json_object_new_object();

	json_object_object_foreach(row, key, value)
	{
		if (strcmp(key, "resources") != 0)
			json_object_object_add(copy, key, json_object_get(value));
	}
	return copy;
}

static void add_rows(json_object *all, json_object *row)
{
	const char *keys[256];
	json_object *resources = cli_json_at(row, "resources");
	size_t n = keys_of(resources, keys, sizeof(keys) / sizeof(keys[0]));

	for (size_t i = 0; i < n || i == 0; i++) {
		json_object *one = copy_without_resources(row);
		json_object *counts =
			n > 0 ? of_key(resources, keys[i]) : json_object_new_object();

		if (n > 0)
			put_text(one, "instanceType", keys[i]);
		json_object_object_add(one, "resources", counts);
		derive(one, counts);
		json_object_array_add(all, one);
	}
}

json_object *cli_quota_rows(json_object *rows)
{
	json_object *all = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		json_object *row = json_object_array_get_idx(rows, i);

		if (json_object_is_type(row, json_type_object))
			add_rows(all, row);
	}
	return all;
}

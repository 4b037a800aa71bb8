/*
 * src/abx/table.c - what abx prints on stdout: tables through libsmartcols, JSON through
 * json-c.
 */
#include <json-c/json.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define CELL_BYTES 512
#define DASH "—"

struct cli_table {
	struct libscols_table *scols;
	size_t n, rows;
};

struct cli_table *cli_table_new(const char *const *heads, size_t n, unsigned right)
{
	struct cli_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return NULL;
	table->n = n;
	table->scols = scols_new_table();
	if (table->scols == NULL) {
		free(table);
		return NULL;
	}
	scols_table_set_column_separator(table->scols, "  ");
	for (size_t i = 0; i < n; i++) {
		int flags = (right & (1u << i)) != 0 ? SCOLS_FL_RIGHT : 0;
		if (scols_table_new_column(table->scols, heads[i], 0.1, flags) == NULL) {
			cli_table_free(table);
			return NULL;
		}
	}
	return table;
}

void cli_table_add(struct cli_table *table, const char *const *cells)
{
	struct libscols_line *line =
		table != NULL ? scols_table_new_line(table->scols, NULL) : NULL;

	if (line == NULL)
		return;
	table->rows++;
	for (size_t i = 0; i < table->n; i++)
		scols_line_set_data(line, i, cells[i]);
}

void cli_table_print(struct cli_table *table)
{
	if (table == NULL || table->rows == 0)
		return;
	scols_print_table(table->scols);
}

void cli_table_free(struct cli_table *table)
{
	if (table == NULL)
		return;
	scols_unref_table(table->scols);
	free(table);
}

void cli_print_json(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
}

struct json_object *cli_json_at(struct json_object *o, const char *path)
{
	char name[128];

	while (o != NULL && *path != '\0') {
		size_t n = strcspn(path, ".");
		if (n >= sizeof(name) || !json_object_is_type(o, json_type_object))
			return NULL;
		memcpy(name, path, n);
		name[n] = '\0';
		if (!json_object_object_get_ex(o, name, &o))
			return NULL;
		path += n + (path[n] == '.');
	}
	return o;
}

static void put(char *buf, size_t *used, const char *text)
{
	while (*text != '\0' && *used < CELL_BYTES - 4)
		buf[(*used)++] = *text++;
	buf[*used] = '\0';
}

static void cell_of(struct json_object *value, char *buf, size_t *used)
{
	const char *between = "";

	switch (json_object_get_type(value)) {
	case json_type_null:
		put(buf, used, DASH);
		break;
	case json_type_array:
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			put(buf, used, between);
			cell_of(json_object_array_get_idx(value, i), buf, used);
			between = ",";
		}
		break;
	case json_type_object: {
		json_object_object_foreach(value, key, each)
		{
			put(buf, used, between);
			put(buf, used, key);
			put(buf, used, "=");
			cell_of(each, buf, used);
			between = " ";
		}
		break;
	}
	default:
		put(buf, used, json_object_get_string(value));
	}
	if (*used == 0)
		put(buf, used, DASH);
}

char *cli_cell(struct json_object *value)
{
	char buf[CELL_BYTES] = "";
	size_t used = 0;

	cell_of(value, buf, &used);
	return strdup(buf);
}

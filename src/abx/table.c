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

/* The next name of a path, and what is behind it: a.b, or a["b.c"].d. NULL: too long. */
static const char *next_name(const char *path, char *name, size_t size)
{
	bool quoted = path[0] == '[' && path[1] == '"';
	const char *start = quoted ? path + 2 : path;
	size_t n = strcspn(start, quoted ? "\"" : ".[");

	if (n >= size)
		return NULL;
	memcpy(name, start, n);
	name[n] = '\0';
	path = start + n;
	if (quoted && path[0] == '"' && path[1] == ']')
		path += 2;
	return path + (*path == '.');
}

struct json_object *cli_json_at(struct json_object *o, const char *path)
{
	char name[128];

	while (o != NULL && *path != '\0') {
		path = next_name(path, name, sizeof(name));
		if (path == NULL || !json_object_is_type(o, json_type_object) ||
		    !json_object_object_get_ex(o, name, &o))
			return NULL;
	}
	return o;
}

static void cell_of(FILE *out, struct json_object *value)
{
	const char *between = "";

	switch (json_object_get_type(value)) {
	case json_type_null:
		fputs(DASH, out);
		break;
	case json_type_array:
		if (json_object_array_length(value) == 0)
			fputs(DASH, out);
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			fputs(between, out);
			cell_of(out, json_object_array_get_idx(value, i));
			between = ",";
		}
		break;
	case json_type_object: {
		if (json_object_object_length(value) == 0)
			fputs(DASH, out);
		json_object_object_foreach(value, key, each)
		{
			fprintf(out, "%s%s=", between, key);
			cell_of(out, each);
			between = " ";
		}
		break;
	}
	default:
		if (json_object_get_string_len(value) == 0 &&
		    json_object_is_type(value, json_type_string))
			fputs(DASH, out);
		else
			fputs(json_object_get_string(value), out);
	}
}

char *cli_cell(struct json_object *value)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL)
		return NULL;
	cell_of(out, value);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

void cli_print_pretty(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						       JSON_C_TO_STRING_SPACED |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
}

void cli_print_csv(const char *const *cells, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *cell = cells[i] != NULL ? cells[i] : "";

		if (i > 0)
			putchar(',');
		if (strpbrk(cell, "\",\r\n") == NULL) {
			fputs(cell, stdout);
			continue;
		}
		putchar('"');
		for (; *cell != '\0'; cell++) {
			if (*cell == '"')
				putchar('"');
			putchar(*cell);
		}
		putchar('"');
	}
	putchar('\n');
}

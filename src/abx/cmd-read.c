/*
 * src/abx/cmd-read.c - reading the platform: lists, one object, an env's documentation;
 * and whoami.
 *
 * The list layout: a count line, a blank line, headings, rows, a blank line, hints that
 * can be typed.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "cli.h"
#include "table.h"

#define MAX_COLUMNS 32

static int fetch(abx_client *client, const char *path, json_object **ret)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	abx_error *err = NULL;

	if (abx_platform_get(client, path, &text, &err) < 0)
		return cli_fail_error(NULL, err);
	*ret = json_tokener_parse(text);
	if (*ret == NULL)
		return cli_fail(NULL, "%s answered something that is not JSON", path);
	return 0;
}

/* The rows of a list's answer: the array itself, or the first array in it. */
static json_object *rows_of(json_object *answer)
{
	if (json_object_is_type(answer, json_type_array))
		return answer;
	if (!json_object_is_type(answer, json_type_object))
		return NULL;
	json_object_object_foreach(answer, key, value)
	{
		(void)key;
		if (json_object_is_type(value, json_type_array))
			return value;
	}
	return NULL;
}

static json_object *value_of(json_object *row, const struct cli_column *column)
{
	/* A bare text stands under the first heading. */
	if (!json_object_is_type(row, json_type_object))
		return row;
	return cli_json_at(row, column->path != NULL ? column->path : column->id);
}

static void print_rows(const struct cli_resource *resource, json_object *rows, bool wide)
{
	const char *heads[MAX_COLUMNS];
	const struct cli_column *columns[MAX_COLUMNS];
	char *cells[MAX_COLUMNS];
	size_t n = 0;

	for (const struct cli_column *c = resource->columns;
	     c->id != NULL && n < MAX_COLUMNS; c++) {
		if (c->wide && !wide)
			continue;
		columns[n] = c;
		heads[n++] = c->id;
	}
	struct cli_table *table = cli_table_new(heads, n, 0);
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		json_object *row = json_object_array_get_idx(rows, i);
		for (size_t k = 0; k < n; k++)
			cells[k] = cli_cell(
				k == 0 || json_object_is_type(row, json_type_object)
					? value_of(row, columns[k])
					: NULL);
		cli_table_add(table, (const char *const *)cells);
		for (size_t k = 0; k < n; k++)
			free(cells[k]);
	}
	cli_table_print(table);
	cli_table_free(table);
}

static void print_cluster(abx_client *client)
{
	if (abx_client_cluster(client) != NULL)
		printf(" · %s", abx_client_cluster(client));
}

static void hint_line(abx_client *client, const char *command)
{
	printf("  abx %s", command);
	if (abx_client_cluster(client) != NULL)
		printf(" --cluster %s", abx_client_cluster(client));
	putchar('\n');
}

static void list_hints(abx_client *client, const struct cli_address *a, json_object *rows)
{
	char line[512];

	if (!a->resource->one || json_object_array_length(rows) == 0)
		return;
	json_object *first =
		value_of(json_object_array_get_idx(rows, 0), &a->resource->columns[0]);
	if (!json_object_is_type(first, json_type_string))
		return;
	if (a->parent_name != NULL)
		snprintf(line, sizeof(line), "%s %s %s %s", a->resource->parent,
			 a->parent_name, a->resource->plural,
			 json_object_get_string(first));
	else
		snprintf(line, sizeof(line), "%s %s", a->resource->plural,
			 json_object_get_string(first));
	printf("\nhint:\n");
	hint_line(client, line);
}

static int show_list(const struct cli_args *args, abx_client *client,
		     const struct cli_address *a, json_object *answer)
{
	json_object *rows = rows_of(answer);

	if (rows == NULL)
		return cli_fail(NULL, "the answer holds no list of %s",
				a->resource->plural);
	if (args->json) {
		cli_print_json(rows);
		return 0;
	}
	size_t n = json_object_array_length(rows);
	json_object *total = cli_json_at(answer, "total");
	printf("%s", a->resource->kind);
	print_cluster(client);
	printf(" · %lld total",
	       total != NULL ? (long long)json_object_get_int64(total) : (long long)n);
	if (total != NULL && json_object_get_int64(total) > (int64_t)n)
		printf(" · rows 1–%zu", n);
	printf("\n\n");
	print_rows(a->resource, rows, args->wide);
	list_hints(client, a, rows);
	return 0;
}

static void show_details(const struct cli_resource *resource, json_object *o)
{
	const struct cli_column *columns =
		resource->details != NULL ? resource->details : resource->columns;
	int width = 0;

	for (const struct cli_column *c = columns; c->id != NULL; c++)
		width = (int)strlen(c->id) > width ? (int)strlen(c->id) : width;
	for (const struct cli_column *c = columns; c->id != NULL; c++) {
		char *cell = cli_cell(value_of(o, c));
		printf("%-*s  %s\n", width, c->id, cell != NULL ? cell : "");
		free(cell);
	}
}

/* The object itself: some answers hold it in a member, beside what may be edited of it.
 */
static json_object *unwrap(json_object *answer)
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

static int show_one(const struct cli_args *args, abx_client *client,
		    const struct cli_address *a, json_object *answer)
{
	json_object *o = unwrap(answer);

	if (a->docs) {
		json_object *docs = cli_json_at(answer, "envDocs");
		if (docs == NULL)
			docs = cli_json_at(o, "envDocs");
		if (json_object_is_type(docs, json_type_string) &&
		    json_object_get_string_len(docs) > 0)
			puts(json_object_get_string(docs));
		else
			printf("env %s has no documentation\n", a->name);
		return 0;
	}
	if (args->json) {
		cli_print_json(o);
		return 0;
	}
	printf("%s", a->resource->kind);
	print_cluster(client);
	printf(" · %s\n\n", a->name);
	show_details(a->resource, o);
	if (strcmp(a->resource->plural, "envs") == 0) {
		char line[512];
		printf("\nhint:\n");
		snprintf(line, sizeof(line), "envs %s pools", a->name);
		hint_line(client, line);
	}
	return 0;
}

int cmd_read(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	struct cli_address a;
	json_object *answer = NULL;
	int r;

	r = cli_address_parse(args->words, args->n_words, &a);
	if (r != 0)
		return r;
	r = cli_client(args, &client);
	if (r != 0)
		return r;
	char *path = cli_address_path(&a, false);
	if (path == NULL)
		return cli_fail(NULL, "out of memory");
	if (a.name == NULL && strcmp(a.resource->plural, "sandboxes") == 0) {
		char *all = malloc(strlen(path) + sizeof("?limit=1000"));
		if (all != NULL)
			snprintf(all, strlen(path) + sizeof("?limit=1000"),
				 "%s?limit=1000", path);
		free(path);
		path = all;
	}
	r = path != NULL ? fetch(client, path, &answer) : cli_fail(NULL, "out of memory");
	free(path);
	if (r == 0)
		r = a.name != NULL ? show_one(args, client, &a, answer)
				   : show_list(args, client, &a, answer);
	json_object_put(answer);
	return r;
}

int cmd_whoami(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	json_object *answer = NULL;

	if (args->n_words > 0)
		return cli_fail(NULL, "whoami takes no further word, not \"%s\"",
				args->words[0]);
	if (cli_client(args, &client) != 0 || fetch(client, "/auth/whoami", &answer) != 0)
		return 1;
	if (args->json)
		cli_print_json(answer);
	else
		puts(json_object_to_json_string_ext(
			answer, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
					JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(answer);
	return 0;
}

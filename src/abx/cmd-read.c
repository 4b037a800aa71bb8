/*
 * src/abx/cmd-read.c - reading the platform: lists, one object, its views; and whoami.
 *
 * Three registers: a table with hints for people, JSON and CSV for programs. What a list
 * or an object looks like comes from the registry.
 */
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "links.h"
#include "list.h"
#include "table.h"

#define MAX_COLUMNS 32
#define WATCH_SECONDS 2

/* ---- lists ---- */

static size_t chosen_columns(const struct cli_resource *resource, bool wide,
			     const struct cli_column **columns, const char **heads)
{
	size_t n = 0;

	for (const struct cli_column *c = resource->columns;
	     c->id != NULL && n < MAX_COLUMNS; c++) {
		if ((c->flags & CLI_COL_WIDE) != 0 && !wide)
			continue;
		columns[n] = c;
		heads[n++] = c->id;
	}
	return n;
}

static void print_rows(const struct cli_args *args, const struct cli_resource *resource,
		       json_object *rows, size_t limit)
{
	const struct cli_column *columns[MAX_COLUMNS];
	const char *heads[MAX_COLUMNS];
	char *cells[MAX_COLUMNS];
	size_t n = chosen_columns(resource, args->wide, columns, heads);
	struct cli_table *table = args->csv ? NULL : cli_table_new(heads, n, 0);

	if (args->csv)
		cli_print_csv(heads, n);
	for (size_t i = 0; i < json_object_array_length(rows) && i < limit; i++) {
		json_object *row = json_object_array_get_idx(rows, i);

		for (size_t k = 0; k < n; k++)
			cells[k] = cli_cell(cli_row_value(row, columns[k], k == 0));
		if (args->csv)
			cli_print_csv((const char *const *)cells, n);
		else
			cli_table_add(table, (const char *const *)cells);
		for (size_t k = 0; k < n; k++)
			free(cells[k]);
	}
	if (!args->csv && json_object_array_length(rows) == 0)
		for (size_t k = 0; k < n; k++)
			printf("%s%s", heads[k], k + 1 < n ? "  " : "\n");
	cli_table_print(table);
	cli_table_free(table);
}

static void print_more(const struct cli_resource *resource, int64_t more)
{
	char keys[256];

	cli_filter_keys(resource, "|", keys, sizeof(keys));
	printf("\n… %lld more: --limit shows more rows%s\n", (long long)more,
	       keys[0] != '\0' ? ", a filter fewer" : "");
	if (keys[0] != '\0')
		printf("  --filter <%s>\n", keys);
	else
		puts("  there are no filters here");
}

/* How this env's pools say their size; NULL: either way, or not known. */
static const char *sizing_note(abx_client *client, const struct cli_address *a)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	char *name, *path = NULL;
	const char *note = NULL;

	if (!cli_resource_is(a->resource, "pools"))
		return NULL;
	name = abx_platform_escape(a->parent_name);
	if (name == NULL || asprintf(&path, "/envs/%s", name) < 0)
		path = NULL;
	abx_free(name);
	if (path != NULL && abx_platform_get(client, path, &text, NULL) >= 0) {
		json_object *answer = json_tokener_parse(text);
		json_object *sizing = cli_json_at(cli_unwrap(answer), "poolSizing");
		const char *rule = sizing != NULL ? json_object_get_string(sizing) : "";

		if (strcmp(rule, "billed") == 0)
			note = "billed: a pool here needs instanceType and the label "
			       "quota.scitix.ai/url";
		else if (strcmp(rule, "free-form") == 0)
			note = "free-form: a pool here says inlineResources, no "
			       "instanceType";
		json_object_put(answer);
	}
	free(path);
	return note;
}

static size_t limit_of(const struct cli_args *args)
{
	return args->limit != NULL ? (size_t)strtoul(args->limit, NULL, 10)
				   : CLI_LIMIT_DEFAULT;
}

static void print_list(const struct cli_args *args, abx_client *client,
		       const struct cli_address *a, const struct cli_list *list)
{
	size_t limit = limit_of(args), have = json_object_array_length(list->rows);
	size_t shown = have < limit ? have : limit;
	json_object *first = NULL;

	if (have > 0)
		first = cli_row_value(json_object_array_get_idx(list->rows, 0),
				      &a->resource->columns[0], true);
	printf("%s", a->resource->kind);
	cli_print_cluster(client, a);
	printf(" · %lld total", (long long)list->total);
	if ((int64_t)shown < list->total)
		printf(" · rows 1–%zu", shown);
	printf("\n\n");
	print_rows(args, a->resource, list->rows, limit);
	if ((int64_t)shown < list->total)
		print_more(a->resource, list->total - (int64_t)shown);
	cli_print_links(client, a,
			json_object_is_type(first, json_type_string)
				? json_object_get_string(first)
				: NULL,
			sizing_note(client, a));
}

static int show_list(const struct cli_args *args, abx_client *client,
		     const struct cli_address *a)
{
	struct cli_list list;
	size_t limit = limit_of(args);
	bool is_table = !args->json && !args->csv;
	int r = cli_list_fetch(args, client, a, is_table && limit > 0 ? limit : 0, &list);

	if (r != 0)
		return r;
	if (args->json)
		cli_print_json(list.rows);
	else if (args->csv)
		print_rows(args, a->resource, list.rows, SIZE_MAX);
	else
		print_list(args, client, a, &list);
	cli_list_done(&list);
	return 0;
}

/* ---- one object ---- */

static const struct cli_column *details_of(const struct cli_resource *resource)
{
	return resource->details != NULL ? resource->details : resource->columns;
}

static void print_fields(const struct cli_resource *resource, json_object *o)
{
	const struct cli_column *columns = details_of(resource);
	int width = 0;

	for (const struct cli_column *c = columns; c->id != NULL; c++)
		if ((c->flags & CLI_COL_TEXT) == 0 && (int)strlen(c->id) > width)
			width = (int)strlen(c->id);
	for (const struct cli_column *c = columns; c->id != NULL; c++) {
		if ((c->flags & CLI_COL_TEXT) != 0)
			continue;
		char *cell = cli_cell(cli_row_value(o, c, c == columns));
		printf("%-*s  %s\n", width, c->id, cell != NULL ? cell : "");
		free(cell);
	}
}

static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void print_texts(const struct cli_resource *resource, json_object *o)
{
	for (const struct cli_column *c = details_of(resource); c->id != NULL; c++) {
		json_object *value = cli_row_value(o, c, false);

		if ((c->flags & CLI_COL_TEXT) == 0 ||
		    !json_object_is_type(value, json_type_string) ||
		    json_object_get_string_len(value) == 0)
			continue;
		printf("\n%s (%zu chars)\n\n%s\n", c->id,
		       characters(json_object_get_string(value)),
		       json_object_get_string(value));
	}
}

static void print_children(const struct cli_args *args, abx_client *client,
			   const struct cli_address *a)
{
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++) {
		struct cli_address child = { .resource = r, .parent_name = a->name };
		struct cli_list list;

		if ((r->flags & CLI_RES_TABLE) == 0 || r->parent == NULL ||
		    !cli_resource_is(a->resource, r->parent))
			continue;
		if (cli_list_fetch(args, client, &child, CLI_LIMIT_DEFAULT, &list) != 0)
			continue;
		printf("\n%s · %lld total\n\n", r->plural, (long long)list.total);
		print_rows(args, r, list.rows, CLI_LIMIT_DEFAULT);
		cli_list_done(&list);
	}
}

static void print_one_csv(const struct cli_resource *resource, json_object *o)
{
	const char *heads[MAX_COLUMNS] = { NULL };
	char *cells[MAX_COLUMNS];
	size_t n = 0;

	for (const struct cli_column *c = details_of(resource);
	     c->id != NULL && n < MAX_COLUMNS; c++) {
		heads[n] = c->id;
		cells[n] = cli_cell(cli_row_value(o, c, n == 0));
		n++;
	}
	cli_print_csv(heads, n);
	cli_print_csv((const char *const *)cells, n);
	while (n > 0)
		free(cells[--n]);
}

static int show_editable(const struct cli_address *a, json_object *answer)
{
	json_object *editable = cli_json_at(answer, "editable");
	char at[256], hint[400];

	if (json_object_is_type(editable, json_type_object)) {
		cli_print_pretty(editable);
		return 0;
	}
	cli_address_text(a, at, sizeof(at));
	snprintf(hint, sizeof(hint),
		 "what abx %s --json prints is no file for update: what it would not "
		 "find there it removes",
		 at);
	return cli_fail(hint, "the platform says nothing of what may be edited of %s",
			a->name);
}

static int show_one(const struct cli_args *args, abx_client *client,
		    const struct cli_address *a, json_object *answer)
{
	json_object *o = cli_unwrap(answer);

	if (args->editable)
		return show_editable(a, answer);
	if (args->json) {
		cli_print_json(o);
		return 0;
	}
	if (args->csv) {
		print_one_csv(a->resource, o);
		return 0;
	}
	printf("%s", a->resource->kind);
	cli_print_cluster(client, a);
	printf(" · %s\n\n", a->name);
	print_fields(a->resource, o);
	print_texts(a->resource, o);
	print_children(args, client, a);
	cli_print_links(client, a, NULL, NULL);
	return 0;
}

/* ---- views ---- */

static int show_document(const struct cli_address *a, json_object *answer)
{
	json_object *text = cli_json_at(cli_unwrap(answer), a->view->field);
	const char *s = json_object_is_type(text, json_type_string)
				? json_object_get_string(text)
				: "";
	size_t n = strlen(s);

	while (n > 0 && strchr(" \t\r\n", s[n - 1]) != NULL)
		n--;
	if (n > 0)
		printf("%.*s\n", (int)n, s);
	else
		printf("%s %s has no documentation\n", a->resource->kind, a->name);
	return 0;
}

static const char *text_or(json_object *o, const char *key, const char *otherwise)
{
	json_object *value = cli_json_at(o, key);

	return value != NULL ? json_object_get_string(value) : otherwise;
}

static void print_log_facts(json_object *log)
{
	static const char *const facts[] = { "containers", "source",     "namespace",
					     "podName",    "capturedAt", "totalBytes" };
	json_object *truncated = cli_json_at(log, "truncated");
	const char *scope = text_or(log, "scope", "");

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		char *cell = cli_cell(cli_json_at(log, facts[i]));

		printf("%-10s  %s\n", strcmp(facts[i], "podName") == 0 ? "pod" : facts[i],
		       cell != NULL ? cell : "");
		free(cell);
	}
	printf("%-10s  %s\n", "truncated",
	       json_object_get_boolean(truncated) ? "yes" : "no");
	if (scope[0] != '\0')
		printf("%-10s  %s\n", "scope", scope);
	putchar('\n');
}

static void print_log_entry(const struct cli_args *args, json_object *entry)
{
	const char *when = text_or(entry, "timestamp", "");
	const char *container = text_or(entry, "container", "");
	const char *line = text_or(entry, "log", "");

	if (args->csv) {
		const char *cells[] = { when, container, line };
		cli_print_csv(cells, 3);
	} else {
		printf("%s%s[%s] %s\n", when, when[0] != '\0' ? "  " : "", container,
		       line);
	}
}

static int show_log(const struct cli_args *args, const struct cli_address *a,
		    json_object *log)
{
	static const char *const heads[] = { "timestamp", "container", "log" };
	json_object *entries = cli_json_at(log, "entries");
	size_t n = json_object_is_type(entries, json_type_array)
			   ? json_object_array_length(entries)
			   : 0;

	if (args->json) {
		cli_print_json(log);
		return 0;
	}
	if (args->csv) {
		cli_print_csv(heads, 3);
	} else {
		printf("logs · %s\n\n", a->name);
		print_log_facts(log);
	}
	for (size_t i = 0; i < n; i++)
		print_log_entry(args, json_object_array_get_idx(entries, i));
	if (n == 0 && !args->csv)
		printf("%s %s wrote nothing\n", a->resource->kind, a->name);
	return 0;
}

/* ---- the command ---- */

static int check_read(const struct cli_args *args, const struct cli_address *a)
{
	char names[256], hint[320];

	if (args->editable && (a->name == NULL || a->view != NULL))
		return cli_fail("abx RESOURCE NAME --editable",
				"--editable is of one object");
	if (args->n_filters > 0 && a->name != NULL)
		return cli_fail(NULL, "--filter is for lists, not for one object");
	if (args->watch && a->name != NULL)
		return cli_fail(NULL, "--watch is for lists, not for one object");
	if (a->name == NULL)
		return cli_filters_check(a->resource, args);
	if (a->view != NULL || (a->resource->flags & CLI_RES_GET) != 0)
		return 0;
	cli_resource_names(a->resource->plural, names, sizeof(names));
	if (names[0] != '\0') {
		snprintf(hint, sizeof(hint), "abx %s %s %s", a->resource->plural, a->name,
			 names);
		return cli_fail(hint, "a %s has nothing of its own to read",
				a->resource->kind);
	}
	snprintf(hint, sizeof(hint), "abx %s", a->resource->plural);
	return cli_fail(hint, "a single %s cannot be read", a->resource->kind);
}

/* A view only a console shows. */
static int fail_view(abx_client *client, const struct cli_address *a)
{
	char page[1024], hint[1100];

	if (cli_console_page(client, a, page, sizeof(page)))
		snprintf(hint, sizeof(hint), "its page: %s", page);
	else
		snprintf(hint, sizeof(hint), "a console shows them: --endpoint URL%s",
			 strcmp(a->view->segment, "metrics") == 0
				 ? "; abx metrics ID has those of one sandbox"
				 : "");
	return cli_fail(hint, "abx does not show %s of %s", a->view->segment,
			a->resource->plural);
}

/* The list again and again, until a signal. */
static int watch_list(const struct cli_args *args, abx_client *client,
		      const struct cli_address *a)
{
	const struct timespec pause = { .tv_sec = WATCH_SECONDS };
	bool is_table = !args->json && !args->csv;
	int r;

	cli_signals_catch(client);
	do {
		if (is_table)
			fputs("\033[H\033[2J", stdout);
		r = show_list(args, client, a);
		if (fflush(stdout) != 0)
			r = cli_fail(NULL, "stdout could not be written");
		if (r == 0 && cli_signal_caught() == 0)
			nanosleep(&pause, NULL);
	} while (r == 0 && cli_signal_caught() == 0);
	if (cli_signal_caught() != 0)
		r = 128 + cli_signal_caught();
	cli_signals_release();
	return r;
}

static int read_one(const struct cli_args *args, abx_client *client,
		    const struct cli_address *a)
{
	json_object *answer = NULL;
	char *path = cli_address_path(a, false);
	int r = path != NULL ? cli_fetch(client, a, path, &answer)
			     : cli_fail(NULL, "out of memory");

	free(path);
	if (r != 0)
		return r;
	if (a->view == NULL)
		r = show_one(args, client, a, answer);
	else if (a->view->field != NULL)
		r = show_document(a, answer);
	else
		r = show_log(args, a, answer);
	json_object_put(answer);
	return r;
}

int cmd_read(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	struct cli_address a;
	int r;

	r = cli_address_parse(args->words, args->n_words, &a);
	if (r == 0)
		r = check_read(args, &a);
	if (r == 0)
		r = (a.resource->flags & CLI_RES_WIDE_OUT) != 0
			    ? cli_client(args, &client)
			    : cli_platform(args, &client);
	if (r != 0)
		return r;
	if (a.view != NULL && a.view->path == NULL)
		return fail_view(client, &a);
	if (a.name != NULL)
		return read_one(args, client, &a);
	return args->watch ? watch_list(args, client, &a) : show_list(args, client, &a);
}

/*
 * src/abx/help-resource.c - help pages of resources, and of the files that writes take.
 * All of it from the registry and the library's schemas.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "help.h"
#include "links.h"
#include "table.h"

#define TEXT_COLUMNS 78

/* `text` in lines of TEXT_COLUMNS, each behind `indent` blanks. */
static void print_wrapped(const char *text, int indent)
{
	size_t width = TEXT_COLUMNS - (size_t)indent;

	while (*text != '\0') {
		size_t n = strlen(text);

		if (n > width)
			for (n = width; n > 0 && text[n] != ' '; n--)
				;
		if (n == 0)
			n = strcspn(text, " ");
		printf("%*s%.*s\n", indent, "", (int)n, text);
		text += n + (text[n] == ' ');
	}
}

/* ---- a resource ---- */

static void print_columns(const char *title, const struct cli_column *columns)
{
	int width = 0;

	for (const struct cli_column *c = columns; c->id != NULL; c++)
		width = (int)strlen(c->id) > width ? (int)strlen(c->id) : width;
	printf("\n%s:\n", title);
	for (const struct cli_column *c = columns; c->id != NULL; c++)
		printf("  %-*s  %s%s\n", width, c->id, c->text,
		       (c->flags & CLI_COL_WIDE) != 0 ? " (--wide)" : "");
}

static void print_filters(const struct cli_resource *resource)
{
	char keys[256];

	cli_filter_keys(resource, ", ", keys, sizeof(keys));
	if (keys[0] == '\0') {
		puts("\nFilters: none");
		return;
	}
	puts("\nFilters (--filter KEY=VALUE):");
	for (const struct cli_column *c = resource->columns; c->id != NULL; c++) {
		if ((c->flags & CLI_COL_FILTER) == 0)
			continue;
		printf("  %s%s", c->id, c->values != NULL ? ": " : "");
		for (size_t i = 0; c->values != NULL && c->values[i] != NULL; i++)
			printf("%s%s", i > 0 ? ", " : "", c->values[i]);
		putchar('\n');
	}
}

static void print_subs(const struct cli_resource *resource)
{
	bool any = false;

	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++) {
		if (r->parent == NULL || !cli_resource_is(resource, r->parent))
			continue;
		printf("%s  %-14s  %s\n", any ? "" : "\nSub-resources:\n", r->plural,
		       r->text);
		any = true;
	}
	for (const struct cli_view *v = resource->views; v != NULL && v->segment != NULL;
	     v++) {
		printf("%s  %-14s  %s\n", any ? "" : "\nSub-resources:\n", v->segment,
		       v->text);
		any = true;
	}
}

static void print_actions(const struct cli_resource *resource)
{
	bool any = false;

	for (const struct cli_action *a = cli_actions; a->verb != NULL; a++) {
		if (!cli_resource_is(resource, a->resource))
			continue;
		printf("%s  abx %s %s ID  %s\n", any ? "" : "\nActions:\n", a->verb,
		       a->resource, a->text);
		any = true;
	}
}

static void print_writes(const struct cli_resource *r, const char *at)
{
	if (r->verbs == 0)
		return;
	puts("\nWrites:");
	if ((r->verbs & CLI_VERB_CREATE) != 0)
		printf("  abx create %s -f FILE\n", at);
	if ((r->verbs & CLI_VERB_UPDATE) != 0)
		printf("  abx update %s NAME -f FILE\n", at);
	if ((r->verbs & CLI_VERB_DELETE) != 0)
		printf("  abx delete %s NAME\n", at);
	if ((r->verbs & CLI_VERB_SCALE) != 0)
		printf("  abx scale %s NAME --replicas N\n", at);
	if ((r->verbs & (CLI_VERB_CREATE | CLI_VERB_UPDATE)) != 0)
		printf("What is in FILE: abx %s %s%s --help\n",
		       (r->verbs & CLI_VERB_CREATE) != 0 ? "create" : "update", at,
		       (r->verbs & CLI_VERB_CREATE) != 0 ? "" : " NAME");
}

int cli_help_resource(const struct cli_resource *r)
{
	const struct cli_address list = { .resource = r };
	char at[128];
	char *read = cli_docs_url(r->docs);

	cli_address_text(&list, at, sizeof(at));
	printf("%s — %s\n", r->plural, r->text);
	if ((r->flags & CLI_RES_ADMIN) != 0)
		puts("For the admin role alone.");
	printf("\nusage: abx %s%s\n", at, (r->flags & CLI_RES_GET) != 0 ? " [NAME]" : "");
	print_filters(r);
	print_subs(r);
	print_actions(r);
	print_columns("Columns", r->columns);
	if (r->details != NULL)
		print_columns("Detail (of one object)", r->details);
	print_writes(r, at);
	printf("\nFlags:\n");
	cli_args_print_flags(CLI_READ);
	if (read != NULL)
		printf("\nRead more: %s\n", read);
	free(read);
	return 0;
}

/* ---- a file ---- */

static const char *text_at(json_object *o, const char *key)
{
	json_object *value = cli_json_at(o, key);

	return value != NULL ? json_object_get_string(value) : "";
}

static void print_fields(json_object *fields, int level)
{
	size_t n = json_object_is_type(fields, json_type_array)
			   ? json_object_array_length(fields)
			   : 0;
	int indent = 2 + 2 * level, width = 0;

	for (size_t i = 0; i < n; i++) {
		int len = (int)strlen(
			text_at(json_object_array_get_idx(fields, i), "name"));
		width = len > width ? len : width;
	}
	for (size_t i = 0; i < n; i++) {
		json_object *f = json_object_array_get_idx(fields, i);
		bool required = json_object_get_boolean(cli_json_at(f, "required"));
		bool fixed = json_object_get_boolean(cli_json_at(f, "fixed"));

		printf("%*s%-*s  %s%s%s%s%s%s%s%s\n", indent, "", width,
		       text_at(f, "name"), text_at(f, "type"),
		       required || fixed ? "  (" : "", required ? "required" : "",
		       required && fixed ? ", " : "", fixed ? "fixed at create" : "",
		       required || fixed ? ")" : "",
		       cli_json_at(f, "default") != NULL ? "  default: " : "",
		       text_at(f, "default"));
		print_wrapped(text_at(f, "describe"), indent + 4);
		if (text_at(f, "lever")[0] != '\0')
			printf("%*sinstead: %s\n", indent + 4, "", text_at(f, "lever"));
		if (level == 0)
			print_fields(cli_json_at(f, "fields"), level + 1);
	}
}

static void print_rules(const struct cli_resource *r, unsigned verb, const char *at)
{
	puts("\nFILE is YAML or JSON; - is stdin. create makes what must not exist yet, "
	     "update changes\nwhat must; both take the same file.");
	if ((r->verbs & CLI_VERB_UPDATE) != 0)
		puts("An update puts the whole object: a field the file leaves out is "
		     "removed.");
	if ((r->verbs & CLI_VERB_UPDATE) != 0 && (r->flags & CLI_RES_GET) != 0)
		printf("Begin with what is there:\n"
		       "  abx %s NAME --editable > file.json\n"
		       "  abx update %s NAME -f file.json\n"
		       "What --json prints is another shape, and no file for a write.\n",
		       at, at);
	printf("The same for programs: abx %s %s%s --schema\n",
	       verb == CLI_VERB_UPDATE ? "update" : "create", at,
	       verb == CLI_VERB_UPDATE ? " NAME" : "");
}

int cli_help_write(const struct cli_resource *r, unsigned verb)
{
	const struct cli_address list = { .resource = r };
	json_object *body = cli_body(r, verb);
	json_object *example = cli_json_at(body, "example");
	char at[128];

	cli_address_text(&list, at, sizeof(at));
	if ((r->verbs & verb) == 0 || body == NULL) {
		json_object_put(body);
		return cli_help_resource(r);
	}
	printf("usage: abx %s %s%s -f FILE\n\n",
	       verb == CLI_VERB_UPDATE ? "update" : "create", at,
	       verb == CLI_VERB_UPDATE ? " NAME" : "");
	print_wrapped(text_at(body, "describe"), 0);
	if (example != NULL) {
		puts("\nFor example:");
		cli_print_pretty(example);
	}
	puts("\nFields:");
	print_fields(cli_json_at(body, "fields"), 0);
	print_rules(r, verb, at);
	json_object_put(body);
	return 0;
}

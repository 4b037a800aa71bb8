/*
 * src/abx/cmd-context.c - `abx context`: the known deployments. The library keeps the
 * file; no key is ever printed.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "table.h"

static const char *text_at(json_object *o, const char *key)
{
	json_object *value = cli_json_at(o, key);

	return json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : NULL;
}

static json_object *contexts(void)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;

	return abx_context_list(NULL, &text, NULL) < 0 ? NULL : json_tokener_parse(text);
}

static void print_entry(json_object *entry, const char *current, int width)
{
	const char *name = text_at(entry, "name");
	const char *direct = text_at(entry, "clusterApi");
	const char *address = direct != NULL ? direct : text_at(entry, "endpoint");
	const char *cluster = text_at(entry, "cluster");
	bool is_current = current != NULL && strcmp(current, name) == 0;

	printf("%s%-*s  %s%s", is_current ? "* " : "  ", width, name,
	       address != NULL ? address : "—", direct != NULL ? "  [direct]" : "");
	if (cluster != NULL)
		printf("  (%s)", cluster);
	putchar('\n');
}

static void print_none(const char *path)
{
	printf("no context is stored in %s\n\n"
	       "  abx context set NAME --endpoint https://CONSOLE --api-key KEY\n"
	       "  abx context set NAME --cluster-api http://HOST:PORT --api-key KEY\n\n"
	       "Without one, abx takes the local engine.\n",
	       path);
}

int cli_contexts_print(bool as_json)
{
	json_object *all = contexts(), *list = cli_json_at(all, "contexts");
	const char *current = text_at(all, "current"), *other = NULL;
	size_t n = list != NULL ? json_object_array_length(list) : 0;
	int width = 0;

	if (all == NULL)
		return cli_fail(NULL, "out of memory");
	if (as_json)
		cli_print_json(all);
	else if (n == 0)
		print_none(text_at(all, "path"));
	for (size_t i = 0; i < n && !as_json; i++) {
		const char *name = text_at(json_object_array_get_idx(list, i), "name");

		width = (int)strlen(name) > width ? (int)strlen(name) : width;
		if (other == NULL && (current == NULL || strcmp(name, current) != 0))
			other = name;
	}
	for (size_t i = 0; i < n && !as_json; i++)
		print_entry(json_object_array_get_idx(list, i), current, width);
	if (other != NULL)
		printf("\nhint:\n  abx context use %s\n", other);
	json_object_put(all);
	return 0;
}

static void print_path(void)
{
	json_object *all = contexts();

	printf(" in %s\n", text_at(all, "path"));
	json_object_put(all);
}

static int set(const struct cli_args *args, const char *name)
{
	abx_context_options opts = ABX_CONTEXT_OPTIONS_INIT;
	abx_error *err = NULL;
	int r;

	opts.endpoint = args->endpoint;
	opts.cluster_api = args->cluster_api;
	opts.api_key = args->api_key;
	opts.cluster = args->cluster;
	opts.auth_scheme = args->auth_scheme;
	r = abx_context_set(NULL, name, &opts, &err);
	if (r < 0)
		return cli_fail_error(NULL, err);
	printf("saved %s%s", name, r > 0 ? " (now current)" : "");
	print_path();
	return 0;
}

static int use(const struct cli_args *args, const char *name)
{
	abx_error *err = NULL;

	(void)args;
	if (abx_context_use(NULL, name, &err) < 0)
		return cli_fail_error(NULL, err);
	printf("now using %s\n", name);
	return 0;
}

static int forget(const struct cli_args *args, const char *name)
{
	abx_error *err = NULL;

	(void)args;
	if (abx_context_remove(NULL, name, &err) < 0)
		return cli_fail_error(NULL, err);
	printf("removed %s\n", name);
	return 0;
}

int cmd_context(const struct cli_args *args)
{
	static const struct {
		const char *word;
		int (*run)(const struct cli_args *args, const char *name);
	} commands[] = {
		{ "set", set },
		{ "use", use },
		{ "remove", forget },
		{ "delete", forget },
	};
	const char *word = args->n_words > 0 ? args->words[0] : "list";

	if (args->n_words <= 1 && strcmp(word, "list") == 0)
		return cli_contexts_print(args->json);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].word, word) != 0)
			continue;
		if (args->n_words != 2)
			return cli_fail("abx context set|use|remove NAME",
					"context %s needs one name", word);
		return commands[i].run(args, args->words[1]);
	}
	return cli_fail("abx context list, set NAME, use NAME, remove NAME",
			"context has no \"%s\"", word);
}

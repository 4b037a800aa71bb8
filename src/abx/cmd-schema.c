/*
 * src/abx/cmd-schema.c - `--schema`: what the file of a create or an update may hold, as
 * JSON. From the library's tables, which are the platform's; no platform is asked.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "table.h"

static const char *example_of(const struct cli_resource *resource, unsigned verb)
{
	if (verb == CLI_VERB_UPDATE && resource->example_update != NULL)
		return resource->example_update;
	return resource->example;
}

json_object *cli_body(const struct cli_resource *resource, unsigned verb)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	struct cli_address a = { .resource = resource,
				 .name = verb == CLI_VERB_UPDATE ? "NAME" : NULL,
				 .parent_name = "NAME" };
	char *path = cli_address_path(&a, true);
	int r = path != NULL
			? abx_platform_schema(verb == CLI_VERB_UPDATE ? "PUT" : "POST",
					      path, &text, NULL)
			: ABX_ENOMEM;

	free(path);
	if (r < 0)
		return NULL;
	json_object *schema = json_tokener_parse(text), *all = json_object_new_object();
	json_object_object_foreach(schema, key, value)
	{
		if (strcmp(key, "fields") == 0 && example_of(resource, verb) != NULL)
			json_object_object_add(
				all, "example",
				json_tokener_parse(example_of(resource, verb)));
		json_object_object_add(all, key, json_object_get(value));
	}
	json_object_put(schema);
	return all;
}

static int fail_none(void)
{
	char hint[1200] = "";

	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++) {
		const struct cli_address a = { .resource = r };
		char at[128];

		cli_address_text(&a, at, sizeof(at));
		for (unsigned verb = CLI_VERB_CREATE; verb <= CLI_VERB_UPDATE; verb <<= 1)
			if ((r->verbs & verb) != 0)
				snprintf(hint + strlen(hint), sizeof(hint) - strlen(hint),
					 "%sabx %s %s%s --schema",
					 hint[0] != '\0' ? "\n" : "",
					 verb == CLI_VERB_CREATE ? "create" : "update",
					 at, verb == CLI_VERB_CREATE ? "" : " NAME");
	}
	return cli_fail(hint, "--schema is of a create or an update");
}

int cmd_schema(const struct cli_args *args)
{
	struct cli_address a;
	unsigned verb = 0;

	if (args->n_words > 1 && strcmp(args->words[0], "create") == 0)
		verb = CLI_VERB_CREATE;
	else if (args->n_words > 1 && strcmp(args->words[0], "update") == 0)
		verb = CLI_VERB_UPDATE;
	if (verb == 0)
		return fail_none();
	if (cli_address_parse(args->words + 1, args->n_words - 1, &a) != 0)
		return 1;
	json_object *body =
		(a.resource->verbs & verb) != 0 ? cli_body(a.resource, verb) : NULL;
	if (body == NULL)
		return fail_none();
	cli_print_pretty(body);
	json_object_put(body);
	return 0;
}

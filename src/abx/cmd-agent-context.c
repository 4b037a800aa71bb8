/*
 * src/abx/cmd-agent-context.c - the whole of abx as one JSON document, from the registry,
 * for a program that is to use it.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "links.h"
#include "sight.h"
#include "table.h"

static void put(json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static json_object *texts(const char *const *lines)
{
	json_object *all = json_object_new_array();

	for (; *lines != NULL; lines++)
		json_object_array_add(all, json_object_new_string(*lines));
	return all;
}

static json_object *grammar(void)
{
	static const char *const read[] = {
		"abx RESOURCE: list",
		"abx RESOURCE NAME: get",
		"abx RESOURCE NAME SUB: list below it, or a view of it",
		"abx RESOURCE NAME SUB SUB-NAME: get below it",
		"abx RESOURCE NAME [SUB SUB-NAME] VIEW: docs, logs",
		NULL,
	};
	static const char *const write[] = {
		"abx create COLLECTION -f FILE: makes what must not exist yet",
		"abx update ITEM -f FILE: puts the whole object; what FILE leaves out is "
		"removed",
		"abx delete ITEM",
		"abx scale envs NAME pools POOL --replicas N",
		"abx approve|deny approvals ID",
		"abx promote admin-api-keys ID",
		NULL,
	};
	static const char *const notes[] = {
		"A verb is the first word or none: everything behind it is an address.",
		"Resources are plural. An address has five words at most.",
		"FILE is YAML or JSON; - is stdin. abx ITEM --editable prints the file "
		"an update would take; what --json prints is none.",
		"A write of an agent key waits for a person: run the same command again "
		"after the decision. FORBIDDEN_FOR_AGENT: never.",
		"Sandboxes: abx create --template ENV, abx exec ID -- COMMAND, abx kill "
		"ID; or an E2B SDK at the addresses abx envs NAME docs tells.",
		"Exit codes: 0, and 1 for every error, with error: and what to do on "
		"stderr; exec and run pass the command's own on.",
		NULL,
	};
	json_object *o = json_object_new_object();

	json_object_object_add(o, "read", texts(read));
	json_object_object_add(o, "write", texts(write));
	json_object_object_add(o, "notes", texts(notes));
	return o;
}

static json_object *flags(void)
{
	static const char *const names[] = {
		"cluster", "endpoint", "cluster-api", "api-key", "filter", "limit",
		"json",    "editable", "schema",      "csv",     "wide",
	};
	json_object *o = json_object_new_object();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char name[32];

		snprintf(name, sizeof(name), "--%s", names[i]);
		put(o, name, cli_args_flag_text(names[i]));
	}
	return o;
}

static json_object *auth(void)
{
	json_object *o = json_object_new_object(), *modes = json_object_new_object();

	put(o, "note",
	    "Each setting for itself: flag, environment (AGENTBOX_ENDPOINT or "
	    "AGENTBOX_CLUSTER_API, AGENTBOX_API_KEY, AGENTBOX_CLUSTER), context "
	    "(~/.config/abx/config.json), else the local engine.");
	put(o, "override", "--auth-scheme api-key|bearer");
	put(modes, "console",
	    "--endpoint: reaches every cluster; Authorization: Bearer KEY");
	put(modes, "direct",
	    "--cluster-api: serves one cluster and refuses another; AGENTBOX-API-KEY: "
	    "KEY");
	json_object_object_add(o, "modes", modes);
	return o;
}

static json_object *writes(const struct cli_resource *r)
{
	static const char *const words[] = { "create", "update", "delete", "scale" };
	json_object *all = json_object_new_array();

	for (unsigned i = 0; i < 4; i++)
		if ((r->verbs & (1u << i)) != 0)
			json_object_array_add(all, json_object_new_string(words[i]));
	for (const struct cli_action *a = cli_actions; a->verb != NULL; a++)
		if (cli_resource_is(r, a->resource))
			json_object_array_add(all, json_object_new_string(a->verb));
	return all;
}

static json_object *body(const struct cli_resource *r)
{
	json_object *create =
		(r->verbs & CLI_VERB_CREATE) != 0 ? cli_body(r, CLI_VERB_CREATE) : NULL;
	json_object *update =
		(r->verbs & CLI_VERB_UPDATE) != 0 ? cli_body(r, CLI_VERB_UPDATE) : NULL;
	json_object *o;

	if (create == NULL && update == NULL)
		return NULL;
	o = json_object_new_object();
	put(o, "plural", r->plural);
	put(o, "kind", r->kind);
	if (create != NULL)
		json_object_object_add(o, "create", create);
	if (update != NULL)
		json_object_object_add(o, "update", update);
	return o;
}

static void put_columns(json_object *o, const struct cli_resource *r)
{
	json_object *filters = json_object_new_array();
	json_object *columns = json_object_new_array();

	for (const struct cli_column *c = r->columns; c->id != NULL; c++) {
		json_object *column = json_object_new_object();

		put(column, "id", c->id);
		put(column, "describe", c->text);
		json_object_object_add(
			column, "optional",
			json_object_new_boolean((c->flags & CLI_COL_WIDE) != 0));
		json_object_array_add(columns, column);
		if ((c->flags & CLI_COL_FILTER) == 0)
			continue;
		json_object *filter = json_object_new_object();
		put(filter, "key", c->id);
		put(filter, "describe", c->text);
		if (c->values != NULL)
			json_object_object_add(filter, "values", texts(c->values));
		json_object_array_add(filters, filter);
	}
	json_object_object_add(o, "filters", filters);
	json_object_object_add(o, "columns", columns);
}

static void add_sub(json_object *subs, const char *segment, const char *text,
		    bool collection)
{
	json_object *sub = json_object_new_object();

	put(sub, "segment", segment);
	put(sub, "describe", text);
	json_object_object_add(sub, "collection", json_object_new_boolean(collection));
	json_object_array_add(subs, sub);
}

static json_object *subs(const struct cli_resource *r, const struct cli_sight *sight)
{
	json_object *all = json_object_new_array();

	for (const struct cli_resource *s = cli_resources; s->plural != NULL; s++)
		if (s->parent != NULL && cli_resource_is(r, s->parent) &&
		    cli_sight_shows(sight, s))
			add_sub(all, s->plural, s->text, true);
	for (const struct cli_view *v = r->views; v != NULL && v->segment != NULL; v++)
		add_sub(all, v->segment, v->text, false);
	return all;
}

static json_object *resource(const struct cli_resource *r, const struct cli_sight *sight)
{
	json_object *o = json_object_new_object(), *file = body(r);
	char *docs = cli_docs_url(r->docs);

	put(o, "plural", r->plural);
	put(o, "kind", r->kind);
	put(o, "describe", r->text);
	if (docs != NULL)
		put(o, "docs", docs);
	free(docs);
	if (r->parent != NULL)
		put(o, "parent", r->parent);
	json_object_object_add(o, "detail",
			       json_object_new_boolean((r->flags & CLI_RES_GET) != 0));
	if (r->gate != NULL)
		put(o, "gate", r->gate);
	json_object_object_add(o, "writes", writes(r));
	if (file != NULL)
		json_object_object_add(o, "body", file);
	put_columns(o, r);
	json_object_object_add(o, "subResources", subs(r, sight));
	return o;
}

static json_object *docs(void)
{
	json_object *o = json_object_new_object();
	char *index = cli_docs_url("concepts/index");

	if (index != NULL)
		put(o, "index", index);
	free(index);
	put(o, "note",
	    "abx envs NAME docs tells how to use an env, with this cluster's "
	    "addresses; ${AGBX_API_KEY} in it stands for your own key");
	return o;
}

int cmd_agent_context(const struct cli_args *args)
{
	json_object *o = json_object_new_object(), *roots = json_object_new_array();
	json_object *all = json_object_new_array();
	struct cli_sight sight;

	if (args->n_words > 0)
		return cli_fail(NULL, "agent-context takes no further word, not \"%s\"",
				args->words[0]);
	cli_sight_load(args, &sight);
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++) {
		if (!cli_sight_shows(&sight, r))
			continue;
		if (r->parent == NULL)
			json_object_array_add(roots, json_object_new_string(r->plural));
		json_object_array_add(all, resource(r, &sight));
	}
	cli_sight_done(&sight);
	put(o, "tool", "abx");
	put(o, "version", abx_version());
	put(o, "describe",
	    "Sandboxes from warm pools, and the platform that keeps them: envs, pools, "
	    "autoscaling, templates, keys, approvals.");
	json_object_object_add(o, "docs", docs());
	json_object_object_add(o, "grammar", grammar());
	json_object_object_add(o, "flags", flags());
	json_object_object_add(o, "auth", auth());
	json_object_object_add(o, "roots", roots);
	json_object_object_add(o, "resources", all);
	cli_print_pretty(o);
	json_object_put(o);
	return 0;
}

/*
 * src/abx/address.c - resource addresses: words in, a path of the native API out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "cli.h"

static int fail_resource(const char *word)
{
	char names[512], hint[640];

	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++) {
		if (r->parent == NULL || strcmp(r->plural, word) != 0)
			continue;
		snprintf(hint, sizeof(hint), "abx %s NAME %s", r->parent, r->plural);
		return cli_fail(hint, "%s are named under their %s", r->plural,
				r->parent);
	}
	cli_resource_names(NULL, names, sizeof(names));
	snprintf(hint, sizeof(hint), "resources: %s\nabx --help lists the other commands",
		 names);
	return cli_fail(hint, "unknown resource or command \"%s\"", word);
}

static int fail_sub(const struct cli_address *a, const char *word)
{
	char names[512], hint[640], at[256];

	cli_address_text(a, at, sizeof(at));
	cli_resource_names(a->resource->parent == NULL ? a->resource->plural : "", names,
			   sizeof(names));
	if (a->resource->parent != NULL)
		for (const struct cli_view *v = a->resource->views;
		     v != NULL && v->segment != NULL; v++)
			snprintf(names + strlen(names), sizeof(names) - strlen(names),
				 "%s%s", names[0] != '\0' ? " " : "", v->segment);
	if (names[0] == '\0')
		return cli_fail(NULL, "nothing can follow abx %s: \"%s\"", at, word);
	snprintf(hint, sizeof(hint), "below %s: %s", at, names);
	return cli_fail(hint, "%s have no \"%s\"", a->resource->plural, word);
}

/* The words behind a name: a view, or a resource below it. */
static int parse_sub(const char *const *words, size_t n, size_t *i, struct cli_address *a)
{
	const struct cli_resource *sub;

	a->view = cli_view_find(a->resource, words[*i]);
	if (a->view != NULL) {
		(*i)++;
		return 0;
	}
	sub = a->resource->parent == NULL
		      ? cli_resource_find(words[*i], a->resource->plural)
		      : NULL;
	if (sub == NULL)
		return fail_sub(a, words[*i]);
	a->resource = sub;
	a->parent_name = a->name;
	a->name = ++*i < n ? words[(*i)++] : NULL;
	return *i < n ? parse_sub(words, n, i, a) : 0;
}

static bool has_children(const struct cli_resource *resource)
{
	char names[256];

	cli_resource_names(resource->plural, names, sizeof(names));
	return names[0] != '\0';
}

int cli_address_parse(const char *const *words, size_t n, struct cli_address *ret)
{
	struct cli_address a = { 0 };
	size_t i = 1;

	if (n > 5)
		return cli_fail("the deepest address is: RESOURCE NAME SUB SUB-NAME VIEW",
				"too many words in this address");
	if (n == 0)
		return cli_fail("abx --help lists them", "a resource is missing");
	a.resource = cli_resource_find(words[0], NULL);
	if (a.resource == NULL)
		return fail_resource(words[0]);
	if (i < n)
		a.name = words[i++];
	if (i < n && parse_sub(words, n, &i, &a) != 0)
		return 1;
	if (i < n)
		return cli_fail(NULL, "nothing can follow \"%s\": \"%s\"", words[i - 1],
				words[i]);
	if (a.name != NULL && (a.resource->flags & CLI_RES_ITEM) == 0 &&
	    !has_children(a.resource)) {
		char hint[256];
		struct cli_address list = a;

		list.name = NULL;
		snprintf(hint, sizeof(hint), "abx ");
		cli_address_text(&list, hint + 4, sizeof(hint) - 4);
		return cli_fail(hint, "%s can only be listed", a.resource->plural);
	}
	*ret = a;
	return 0;
}

const char *cli_address_last(const struct cli_address *a)
{
	return a->name != NULL ? a->name : a->parent_name;
}

void cli_address_text(const struct cli_address *a, char *buf, size_t size)
{
	const struct cli_resource *r = a->resource;

	snprintf(buf, size, "%s%s%s%s%s%s%s%s%s", r->parent != NULL ? r->parent : "",
		 r->parent != NULL ? " " : "",
		 r->parent != NULL ? (a->parent_name != NULL ? a->parent_name : "NAME")
				   : "",
		 r->parent != NULL ? " " : "", r->plural, a->name != NULL ? " " : "",
		 a->name != NULL ? a->name : "", a->view != NULL ? " " : "",
		 a->view != NULL ? a->view->segment : "");
}

static void list_verbs(const struct cli_resource *r, char *buf, size_t size)
{
	static const char *const words[] = { "create", "update", "delete", "scale" };

	buf[0] = '\0';
	for (unsigned i = 0; i < 4; i++)
		if ((r->verbs & (1u << i)) != 0)
			snprintf(buf + strlen(buf), size - strlen(buf), "%s%s",
				 buf[0] != '\0' ? ", " : "", words[i]);
	for (const struct cli_action *act = cli_actions; act->verb != NULL; act++)
		if (cli_resource_is(r, act->resource))
			snprintf(buf + strlen(buf), size - strlen(buf), "%s%s",
				 buf[0] != '\0' ? ", " : "", act->verb);
}

int cli_address_verb(const struct cli_address *a, unsigned verb, const char *word)
{
	char verbs[128], hint[640], at[256];

	list_verbs(a->resource, verbs, sizeof(verbs));
	if (a->view != NULL || (a->resource->verbs & verb) == 0) {
		snprintf(hint, sizeof(hint), "%s %s",
			 verbs[0] != '\0' ? "what can be done with them:"
					  : "they are only read",
			 verbs);
		return cli_fail(hint, "%s cannot be used with %s", word,
				a->view != NULL ? a->view->segment : a->resource->plural);
	}
	struct cli_address other = *a;
	if (verb == CLI_VERB_CREATE && a->name != NULL) {
		other.name = NULL;
		cli_address_text(&other, at, sizeof(at));
		snprintf(hint, sizeof(hint),
			 "abx create %s -f FILE; the name stands in the file", at);
		return cli_fail(hint, "create needs a collection, not \"%s\"", a->name);
	}
	if (verb != CLI_VERB_CREATE && a->name == NULL) {
		other.name = "NAME";
		cli_address_text(&other, at, sizeof(at));
		snprintf(hint, sizeof(hint), "abx %s %s%s", word, at,
			 verb == CLI_VERB_UPDATE  ? " -f FILE"
			 : verb == CLI_VERB_SCALE ? " --replicas N"
						  : "");
		return cli_fail(hint, "%s needs one object", word);
	}
	return 0;
}

static char *join(char *front, const char *back, bool escape)
{
	CLI_CLEANUP(cli_textp) char *part = escape ? abx_platform_escape(back) : NULL;
	const char *text = escape ? part : back;
	char *all = NULL;

	if (front == NULL || text == NULL) {
		free(front);
		return NULL;
	}
	size_t size = strlen(front) + strlen(text) + 2;
	all = malloc(size);
	if (all != NULL)
		snprintf(all, size, "%s%s%s", front, escape ? "/" : "", text);
	free(front);
	return all;
}

char *cli_address_path(const struct cli_address *a, bool write)
{
	const struct cli_resource *r = a->resource;
	const char *list = r->path;
	char *path = strdup("");

	if (a->name != NULL && r->item_path != NULL)
		list = r->item_path;
	else if (write && r->write_path != NULL)
		list = r->write_path;
	if (r->parent != NULL) {
		path = join(path, cli_resource_find(r->parent, NULL)->path, false);
		path = join(path, a->parent_name, true);
	}
	path = join(path, list, false);
	if (a->name != NULL)
		path = join(path, a->name, true);
	return a->view != NULL && a->view->path != NULL ? join(path, a->view->path, false)
							: path;
}

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
	char names[256], hint[320];

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

static int fail_sub(const struct cli_resource *parent, const char *word)
{
	char names[256], hint[320];

	cli_resource_names(parent->plural, names, sizeof(names));
	snprintf(hint, sizeof(hint), "below %s NAME: %s%s", parent->plural, names,
		 strcmp(parent->plural, "envs") == 0 ? " docs" : "");
	return cli_fail(hint, "%s have no \"%s\"", parent->plural, word);
}

int cli_address_parse(const char *const *words, size_t n, struct cli_address *ret)
{
	struct cli_address a = { 0 };
	size_t i = 0;

	if (n > 5)
		return cli_fail("RESOURCE NAME SUB SUB-NAME VIEW is the deepest address",
				"too many words");
	if (n == 0)
		return cli_fail("abx --help lists them", "a resource is missing");
	/* The admin surface's own spelling of the templates. */
	const char *first =
		strcmp(words[0], "admin-templates") == 0 ? "templates" : words[0];
	a.resource = cli_resource_find(first, NULL);
	if (a.resource == NULL)
		return fail_resource(words[0]);
	if (++i < n)
		a.name = words[i++];
	if (i < n && strcmp(words[i], "docs") == 0 &&
	    strcmp(a.resource->plural, "envs") == 0) {
		a.docs = true;
		i++;
	} else if (i < n) {
		const struct cli_resource *sub =
			cli_resource_find(words[i], a.resource->plural);
		if (sub == NULL)
			return fail_sub(a.resource, words[i]);
		a.resource = sub;
		a.parent_name = a.name;
		a.name = ++i < n ? words[i++] : NULL;
	}
	if (i < n)
		return cli_fail(NULL, "nothing can follow: \"%s\"", words[i]);
	if (a.name != NULL && !a.resource->one)
		return cli_fail(NULL, "%s can only be listed: abx %s", a.resource->plural,
				a.resource->plural);
	*ret = a;
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
	char *path = strdup("");

	if (r->parent != NULL) {
		path = join(path, cli_resource_find(r->parent, NULL)->path, false);
		path = join(path, a->parent_name, true);
	}
	path = join(path, write && r->write_path != NULL ? r->write_path : r->path,
		    false);
	return a->name != NULL ? join(path, a->name, true) : path;
}

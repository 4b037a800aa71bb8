/*
 * src/abx/resources.c - looking things up in the registry.
 */
#include <stdio.h>
#include <string.h>

#include "resources.h"

static bool under(const struct cli_resource *resource, const char *parent)
{
	if (resource->parent == NULL || parent == NULL)
		return resource->parent == parent;
	return strcmp(resource->parent, parent) == 0;
}

bool cli_resource_is(const struct cli_resource *resource, const char *plural)
{
	return strcmp(resource->plural, plural) == 0;
}

const struct cli_resource *cli_resource_find(const char *plural, const char *parent)
{
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++)
		if (strcmp(r->plural, plural) == 0 && under(r, parent))
			return r;
	return NULL;
}

const struct cli_action *cli_action_find(const char *verb)
{
	for (const struct cli_action *a = cli_actions; a->verb != NULL; a++)
		if (strcmp(a->verb, verb) == 0)
			return a;
	return NULL;
}

const struct cli_view *cli_view_find(const struct cli_resource *resource,
				     const char *segment)
{
	for (const struct cli_view *v = resource->views; v != NULL && v->segment != NULL;
	     v++)
		if (strcmp(v->segment, segment) == 0)
			return v;
	return NULL;
}

static void append(char *buf, size_t size, const char *between, const char *text)
{
	size_t used = strlen(buf);

	snprintf(buf + used, size - used, "%s%s", used > 0 ? between : "", text);
}

void cli_resource_names(const char *parent, char *buf, size_t size)
{
	buf[0] = '\0';
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++)
		if (under(r, parent))
			append(buf, size, " ", r->plural);
	const struct cli_resource *above =
		parent != NULL ? cli_resource_find(parent, NULL) : NULL;
	for (const struct cli_view *v = above != NULL ? above->views : NULL;
	     v != NULL && v->segment != NULL; v++)
		append(buf, size, " ", v->segment);
}

void cli_filter_keys(const struct cli_resource *resource, const char *between, char *buf,
		     size_t size)
{
	buf[0] = '\0';
	for (const struct cli_column *c = resource->columns; c->id != NULL; c++)
		if ((c->flags & CLI_COL_FILTER) != 0)
			append(buf, size, between, c->id);
}

/*
 * src/abx/links.c - where to go from an answer: the console's page, the documentation,
 * commands that can be typed.
 *
 * Where documentation is kept is the distribution's to say: ABX_DOCS_BASE when it is
 * built, AGENTBOX_DOCS_URL when it runs; without either there is no read: block.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "links.h"

#ifndef ABX_DOCS_BASE
#define ABX_DOCS_BASE ""
#endif

char *cli_docs_url(const char *slug)
{
	const char *base = getenv("AGENTBOX_DOCS_URL");
	char *url = NULL;

	if (base == NULL || base[0] == '\0')
		base = ABX_DOCS_BASE;
	if (base[0] == '\0' || slug == NULL)
		return NULL;
	return asprintf(&url, "%s/%s.md", base, slug) < 0 ? NULL : url;
}

static bool spans_clusters(const struct cli_address *a)
{
	return (a->resource->flags & CLI_RES_WIDE_OUT) != 0;
}

void cli_print_cluster(abx_client *client, const struct cli_address *a)
{
	if (abx_client_cluster(client) != NULL && !spans_clusters(a))
		printf(" · %s", abx_client_cluster(client));
}

bool cli_console_page(abx_client *client, const struct cli_address *a, char *buf,
		      size_t size)
{
	const char *console = abx_client_console(client);
	const char *cluster = abx_client_cluster(client);
	char *parent = NULL, *name = NULL;

	if (console == NULL || cluster == NULL ||
	    (a->resource->flags & CLI_RES_PAGE) == 0)
		return false;
	parent = abx_platform_escape(a->parent_name != NULL ? a->parent_name : "");
	name = abx_platform_escape(a->name != NULL ? a->name : "");
	snprintf(buf, size, "%s/clusters/%s/", console, cluster);
	if (a->resource->parent != NULL)
		snprintf(buf + strlen(buf), size - strlen(buf), "%s/%s/",
			 a->resource->parent, parent != NULL ? parent : "");
	snprintf(buf + strlen(buf), size - strlen(buf), "%s%s%s%s%s", a->resource->plural,
		 a->name != NULL ? "/" : "", name != NULL ? name : "",
		 a->view != NULL ? "/" : "", a->view != NULL ? a->view->segment : "");
	abx_free(parent);
	abx_free(name);
	return true;
}

static void hint(abx_client *client, const struct cli_address *a, const char *behind)
{
	char at[512];

	cli_address_text(a, at, sizeof(at));
	printf("  abx %s%s%s", at, behind[0] != '\0' ? " " : "", behind);
	if (abx_client_cluster(client) != NULL && !spans_clusters(a))
		printf(" --cluster %s", abx_client_cluster(client));
	putchar('\n');
}

static void object_hints(abx_client *client, const struct cli_address *a)
{
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++)
		if (a->resource->parent == NULL && r->parent != NULL &&
		    cli_resource_is(a->resource, r->parent))
			hint(client, a, r->plural);
	for (const struct cli_view *v = a->resource->views;
	     v != NULL && v->segment != NULL; v++)
		if (v->path != NULL)
			hint(client, a, v->segment);
}

void cli_print_links(abx_client *client, const struct cli_address *a,
		     const char *row_name, const char *note)
{
	char *read = cli_docs_url(a->resource->docs);
	char page[1024];

	if (cli_console_page(client, a, page, sizeof(page)))
		printf("\nview:\n  %s\n", page);
	if (read != NULL)
		printf("\nread:\n  %s\n", read);
	free(read);
	printf("\nhint:\n");
	if (note != NULL)
		printf("  # %s\n", note);
	if (a->name != NULL) {
		object_hints(client, a);
	} else if (row_name != NULL && (a->resource->flags & CLI_RES_GET) != 0) {
		struct cli_address row = *a;

		row.name = row_name;
		hint(client, &row, "");
	}
	printf("  abx %s --help\n", a->resource->plural);
}

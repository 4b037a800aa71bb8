/* src/abx/resources.h - the platform's resources: their paths, columns and details. */
#ifndef ABX_CLI_RESOURCES_H
#define ABX_CLI_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>

struct cli_column {
	const char *id;
	const char *path; /* in a row; NULL: the same as `id` */
	bool wide;        /* only with --wide */
};

struct cli_resource {
	const char *plural, *kind;
	const char *parent;     /* plural of the resource it is named under, or NULL */
	const char *path;       /* of the list, behind /v1 or behind its parent's item */
	const char *write_path; /* where create, update and delete go; NULL: `path`, "":
				   nowhere */
	bool one;               /* one of them can be asked for */
	const struct cli_column *columns;
	const struct cli_column *details; /* NULL: the columns */
	const char *text;
};

extern const struct cli_resource cli_resources[];
/* NULL when there is none such under `parent` (NULL: at the top). */
const struct cli_resource *cli_resource_find(const char *plural, const char *parent);
/* Names of those under `parent`, with blanks between. */
void cli_resource_names(const char *parent, char *buf, size_t size);

#endif

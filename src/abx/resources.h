/*
 * src/abx/resources.h - the registry: every resource of the platform, as one table.
 *
 * Parsing, reading, writing, filters, help, completion, the man page and `agent-context`
 * go by it; what is not in it, abx does not know. The rows are in resource-table.c.
 */
#ifndef ABX_CLI_RESOURCES_H
#define ABX_CLI_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CLI_COL_WIDE = 1 << 0,   /* only with --wide */
	CLI_COL_FILTER = 1 << 1, /* --filter knows it */
	CLI_COL_TEXT = 1 << 2,   /* in a detail: a text of its own, below the others */
};

/* A heading: column id, CSV heading and key of --filter in one. */
struct cli_column {
	const char *id;
	const char *text;
	unsigned flags;
	const char *path; /* in a row, names with dots, or field["a.b"]; NULL: `id` */
	const char *const
		*values; /* the only values there are, NULL at the end; or NULL */
};

/* What is looked at of one object besides itself. */
struct cli_view {
	const char *segment;
	const char *text;
	const char *path;  /* behind the item's; NULL: only a console shows it */
	const char *field; /* of the answer's object, printed as it is; NULL: a log */
};

enum {
	CLI_RES_ITEM = 1 << 0,           /* there is a path for one of them */
	CLI_RES_GET = 1 << 1,            /* which can be read */
	CLI_RES_PAGE = 1 << 2,           /* a console has a page for it */
	CLI_RES_ADMIN = 1 << 3,          /* for the admin role alone */
	CLI_RES_PAGED = 1 << 4,          /* the list takes limit and offset */
	CLI_RES_NEVER_BY_AGENT = 1 << 5, /* create is refused to agent keys */
	CLI_RES_TABLE = 1 << 6,          /* shown inside its parent's detail */
	CLI_RES_WIDE_OUT = 1 << 7,       /* spans the clusters: no cluster in its page */
};

enum {
	CLI_VERB_CREATE = 1 << 0,
	CLI_VERB_UPDATE = 1 << 1,
	CLI_VERB_DELETE = 1 << 2,
	CLI_VERB_SCALE = 1 << 3,
};

struct cli_resource {
	const char *plural, *kind;
	const char *parent;     /* plural of the resource it is named under, or NULL */
	const char *path;       /* of the list, behind /v1 or behind its parent's item */
	const char *item_path;  /* what an item's name goes behind; NULL: `path` */
	const char *write_path; /* what create, update and delete go to; NULL: as reads */
	const char *list_field; /* of the answer; NULL: the first array in it */
	unsigned flags, verbs;
	const char *gate; /* feature gate that hides it, or NULL */
	const char *docs; /* slug of its documentation, or NULL */
	const struct cli_column *columns;
	const struct cli_column *details; /* NULL: the columns */
	const struct cli_view *views;     /* NULL: none */
	const char *text;
	const char *example, *example_update; /* bodies, JSON; NULL: none, as create */
};

/* A verb that is a POST of its own on one object. */
struct cli_action {
	const char *verb, *past;
	const char *resource;
	const char *suffix; /* behind the item's path */
	const char *body;   /* NULL: none */
	const char *text;
};

extern const struct cli_resource cli_resources[];
extern const struct cli_action cli_actions[];

/* NULL when there is none such under `parent` (NULL: at the top). */
const struct cli_resource *cli_resource_find(const char *plural, const char *parent);
const struct cli_action *cli_action_find(const char *verb);
const struct cli_view *cli_view_find(const struct cli_resource *resource,
				     const char *segment);
/* Names of those under `parent`, with blanks between; behind them its views'. */
void cli_resource_names(const char *parent, char *buf, size_t size);
/* Keys of --filter, with `between` between. */
void cli_filter_keys(const struct cli_resource *resource, const char *between, char *buf,
		     size_t size);
bool cli_resource_is(const struct cli_resource *resource, const char *plural);

#endif

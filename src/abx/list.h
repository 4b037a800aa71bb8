/* src/abx/list.h - lists of the native API: their rows, fetched, filtered, as cells. */
#ifndef ABX_CLI_LIST_H
#define ABX_CLI_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "cli.h"

#define CLI_LIMIT_DEFAULT 200

struct json_object;

struct cli_list {
	struct json_object *rows; /* an array */
	int64_t total;            /* rows there are; more than those here when cut */
};

/* Refuses filters the resource has not, and values a closed set has not. */
int cli_filters_check(const struct cli_resource *resource, const struct cli_args *args);
/* Fetches, expands and filters. `limit` 0: all rows; else a few, when the platform can
 * cut the list itself. */
int cli_list_fetch(const struct cli_args *args, abx_client *client,
		   const struct cli_address *address, size_t limit, struct cli_list *ret);
void cli_list_done(struct cli_list *list);

/* The value of a row under a heading, or NULL. Borrowed. */
struct json_object *cli_row_value(struct json_object *row,
				  const struct cli_column *column, bool is_first);
/* An object of an answer, out of the member it came in. Borrowed. */
struct json_object *cli_unwrap(struct json_object *answer);
/* Quotas: one row for each instance type. A new array. */
struct json_object *cli_quota_rows(struct json_object *rows);

#endif

/* src/abx/address.h - `RESOURCE [NAME [SUB [SUB-NAME]]] [docs]`, and the path it has in
 * the API. */
#ifndef ABX_CLI_ADDRESS_H
#define ABX_CLI_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "resources.h"

struct cli_address {
	const struct cli_resource *resource; /* the deepest */
	const char *name;                    /* of one object; NULL: the list */
	const char *parent_name;
	bool docs; /* its documentation alone */
};

/* Prints why not and returns 1 when the words are no address. */
int cli_address_parse(const char *const *words, size_t n, struct cli_address *ret);
/* Behind /v1; `write`: where changes go. To be freed with free(); NULL: out of memory. */
char *cli_address_path(const struct cli_address *address, bool write);

#endif

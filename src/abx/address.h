/* src/abx/address.h - `RESOURCE [NAME [SUB [SUB-NAME]]] [VIEW]`, and the path it has in
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
	const struct cli_view *view; /* of the object; NULL: itself */
};

/* Prints why not and returns 1 when the words are no address. */
int cli_address_parse(const char *const *words, size_t n, struct cli_address *ret);
/* Behind /v1; `write`: where changes go. To be freed with free(); NULL: out of memory. */
/* Of the last word; NULL when it has none. */
const char *cli_address_last(const struct cli_address *address);
/* As it is typed: "envs base pools". */
void cli_address_text(const struct cli_address *address, char *buf, size_t size);
/* Refuses `verb` where the resource has none, or the address is not the kind it needs. */
int cli_address_verb(const struct cli_address *address, unsigned verb, const char *word);
char *cli_address_path(const struct cli_address *address, bool write);

#endif

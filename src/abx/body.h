/* src/abx/body.h - the file of a create or an update: what it may hold. */
#ifndef ABX_CLI_BODY_H
#define ABX_CLI_BODY_H

#include "address.h"
#include "cli.h"

struct json_object;

/* {"schema", "describe", "example", "fields", "schemas"}, to be given back; NULL: it has
 * none. */
struct json_object *cli_body(const struct cli_resource *resource, unsigned verb);

#endif

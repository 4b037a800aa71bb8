/* src/abx/sight.h - what this key and this platform have no use for, left out of help. */
#ifndef ABX_CLI_SIGHT_H
#define ABX_CLI_SIGHT_H

#include "cli.h"
#include "resources.h"

struct json_object;

struct cli_sight {
	bool hides_admin;
	struct json_object *gates; /* NULL: not known */
};

/* From what is kept of the last whoami, else asked within three seconds. What is not
 * known hides nothing; no engine is started for it. */
void cli_sight_load(const struct cli_args *args, struct cli_sight *ret);
void cli_sight_done(struct cli_sight *sight);
bool cli_sight_shows(const struct cli_sight *sight, const struct cli_resource *resource);
/* Keeps what whoami answered, beside the file of contexts. */
void cli_whoami_keep(abx_client *client, struct json_object *answer);

#endif

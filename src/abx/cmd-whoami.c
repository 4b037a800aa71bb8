/*
 * src/abx/cmd-whoami.c - whose key this is, and what it may do.
 */
#include <json-c/json.h>

#include "cli.h"
#include "table.h"

int cmd_whoami(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	json_object *answer = NULL;

	if (args->n_words > 0)
		return cli_fail(NULL, "whoami takes no further word, not \"%s\"",
				args->words[0]);
	if (cli_platform(args, &client) != 0 ||
	    cli_fetch(client, NULL, "/auth/whoami", &answer) != 0)
		return 1;
	if (args->json)
		cli_print_json(answer);
	else
		cli_print_pretty(answer);
	json_object_put(answer);
	return 0;
}

/*
 * src/abx/cmd-whoami.c - whose key this is, and what it may do; and why abx does not
 * upgrade itself.
 */
#include <json-c/json.h>

#include "sight.h"
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
	cli_whoami_keep(client, answer);
	if (args->json)
		cli_print_json(answer);
	else
		cli_print_pretty(answer);
	json_object_put(answer);
	return 0;
}

/* Where one abx comes from, another does: a package, a checkout. It names no place that
 * others serve, so it takes nothing from one. */
int cmd_upgrade(const struct cli_args *args)
{
	if (args->n_words > 0)
		return cli_fail("abx update RESOURCE NAME -f FILE changes an object",
				"upgrade takes no address, not \"%s\"", args->words[0]);
	return cli_fail(
		"upgrade it the way it was installed: the distribution's package, "
		"or git pull, make and make install",
		"abx %s was built from source and does not replace itself",
		abx_version());
}

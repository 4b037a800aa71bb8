/*
 * src/abx/cmd-pause.c - `abx pause` and `abx resume`: sandboxes that keep what they are
 * while nothing in them runs.
 */
#include <json-c/json.h>
#include <stdio.h>

#include "cli.h"
#include "table.h"

/* 1: it was done by this call, 0: it was so already, negative: `err` says. */
typedef int (*move_fn)(const struct cli_args *args, abx_sandbox *sandbox,
		       abx_error **err);

static int pause_it(const struct cli_args *args, abx_sandbox *sandbox, abx_error **err)
{
	abx_sandbox_pause_options opts = ABX_SANDBOX_PAUSE_OPTIONS_INIT;

	opts.files_only = args->files_only;
	return abx_sandbox_pause(sandbox, &opts, err);
}

static int resume_it(const struct cli_args *args, abx_sandbox *sandbox, abx_error **err)
{
	abx_sandbox_connect_options opts = ABX_SANDBOX_CONNECT_OPTIONS_INIT;

	opts.reboot = args->reboot;
	if (args->timeout != NULL && cli_args_timeout(args->timeout, &opts.timeout_ms))
		return ABX_EINVAL;
	return abx_sandbox_resume(sandbox, &opts, err);
}

static int move_one(const struct cli_args *args, abx_client *client, const char *id,
		    move_fn move, abx_error **err)
{
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	int r = abx_sandbox_open(client, id, &sandbox, err);

	return r < 0 ? r : move(args, sandbox, err);
}

static void print_moved(json_object *all, const char *id, const char *done, int r)
{
	if (all == NULL) {
		if (r == 1)
			printf("%s %s\n", done, id);
		else
			printf("%s was %s already\n", id, done);
		return;
	}
	json_object *o = json_object_new_object();
	json_object_object_add(o, "sandboxId", json_object_new_string(id));
	json_object_object_add(o, done, json_object_new_boolean(r == 1));
	json_object_array_add(all, o);
}

static int move_all(const struct cli_args *args, move_fn move, const char *done)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	json_object *all = args->json ? json_object_new_array() : NULL;
	int code = cli_client(args, &client);

	for (size_t i = 0; client != NULL && i < args->n_words; i++) {
		abx_error *err = NULL;
		int r = move_one(args, client, args->words[i], move, &err);

		if (r >= 0)
			print_moved(all, args->words[i], done, r);
		else
			code = cli_fail_error(NULL, err);
	}
	if (all != NULL && client != NULL)
		cli_print_json(all);
	json_object_put(all);
	return code;
}

int cmd_pause(const struct cli_args *args)
{
	if (args->n_words == 0)
		return cli_fail("abx pause ID...; abx sandboxes lists those that run",
				"pause needs a sandbox");
	return move_all(args, pause_it, "paused");
}

int cmd_resume(const struct cli_args *args)
{
	uint32_t ms;

	if (args->n_words == 0)
		return cli_fail("abx resume ID...", "resume needs a sandbox");
	if (args->timeout != NULL && cli_args_timeout(args->timeout, &ms) != 0)
		return 1;
	return move_all(args, resume_it, "resumed");
}

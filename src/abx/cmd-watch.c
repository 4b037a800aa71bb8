/*
 * src/abx/cmd-watch.c - `abx watch`: what happens in a directory of a sandbox, a line
 * each, until a signal.
 */
#include <json-c/json.h>
#include <stdio.h>

#include "cli.h"
#include "table.h"

struct watching {
	bool json;
	bool is_done;
	int exit_code;
};

static const char *type_name(int type)
{
	static const char *const names[] = {
		[ABX_WATCH_CREATE] = "create", [ABX_WATCH_WRITE] = "write",
		[ABX_WATCH_REMOVE] = "remove", [ABX_WATCH_RENAME] = "rename",
		[ABX_WATCH_CHMOD] = "chmod",
	};

	return type >= ABX_WATCH_CREATE && type <= ABX_WATCH_CHMOD ? names[type]
								   : "other";
}

static int on_event(void *userdata, const abx_watch_event *event)
{
	struct watching *w = userdata;

	if (w->json) {
		json_object *o = json_object_new_object();
		json_object_object_add(o, "type",
				       json_object_new_string(type_name(event->type)));
		json_object_object_add(o, "name", json_object_new_string(event->name));
		if (event->entry != NULL)
			json_object_object_add(o, "entry", cli_file_json(event->entry));
		cli_print_json(o);
		json_object_put(o);
	} else {
		printf("%-6s  %s\n", type_name(event->type), event->name);
	}
	return fflush(stdout) == 0 ? ABX_OK : ABX_EIO;
}

static void on_end(void *userdata, int r, const abx_error *err)
{
	struct watching *w = userdata;

	(void)r;
	if (w->is_done) /* it was left */
		return;
	w->is_done = true;
	w->exit_code = cli_fail(abx_error_hint(err), "%s", abx_error_message(err));
}

static int run(struct watching *w, abx_client *client, abx_watch *watch)
{
	abx_error *err = NULL;

	if (abx_watch_wait_async(watch, on_end, w, NULL, NULL, &err) < 0)
		return cli_fail_error(NULL, err);
	while (!w->is_done) {
		if (cli_signal_caught() != 0)
			return 128 + cli_signal_caught();
		if (abx_client_wait(client, ABX_NO_TIMEOUT, &err) < 0)
			return cli_fail_error(NULL, err);
	}
	return w->exit_code;
}

int cmd_watch(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	struct watching w = { .json = args->json };
	abx_watch_options opts = ABX_WATCH_OPTIONS_INIT;
	abx_watch *watch = NULL;
	abx_error *err = NULL;
	int r;

	if (args->n_words != 2)
		return cli_fail("abx watch ID PATH", "watch needs a sandbox and a path");
	r = cli_sandbox(args, args->words[0], &client, &sandbox);
	if (r != 0)
		return r;
	opts.on_event = on_event;
	opts.userdata = &w;
	opts.recursive = args->recursive;
	opts.include_entry = args->json;
	opts.user = args->user;
	cli_signals_catch(client);
	if (abx_watch_start(sandbox, args->words[1], &opts, &watch, &err) < 0)
		r = cli_fail_error(args->words[1], err);
	else
		r = run(&w, client, watch);
	cli_signals_release();
	w.is_done = true;
	abx_watch_free(watch);
	return r;
}

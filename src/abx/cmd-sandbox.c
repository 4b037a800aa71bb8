/*
 * src/abx/cmd-sandbox.c - `abx create --template`, `abx kill`, `abx ls`.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "table.h"

int cmd_create_sandbox(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	int r;

	r = cli_client(args, &client);
	if (r != 0)
		return r;
	r = cli_sandbox_create(args, client, &sandbox);
	if (r != 0)
		return r;
	if (!args->json) {
		puts(abx_sandbox_id(sandbox));
		return 0;
	}
	json_object *o = json_object_new_object();
	json_object_object_add(o, "sandboxId",
			       json_object_new_string(abx_sandbox_id(sandbox)));
	if (abx_sandbox_template_id(sandbox) != NULL)
		json_object_object_add(
			o, "templateId",
			json_object_new_string(abx_sandbox_template_id(sandbox)));
	cli_print_json(o);
	json_object_put(o);
	return 0;
}

/* 1 killed, 0 there was none, negative: said already. */
static int kill_one(abx_client *client, const char *id)
{
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	abx_error *err = NULL;
	int r;

	r = abx_sandbox_open(client, id, &sandbox, &err);
	if (r >= 0)
		r = abx_sandbox_kill(sandbox, &err);
	if (r < 0)
		cli_fail_error(id, err);
	return r;
}

int cmd_kill(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	json_object *all = NULL;
	int code = 0;

	if (args->n_words == 0)
		return cli_fail("abx kill ID...; abx sandboxes lists those that run",
				"kill needs a sandbox");
	if (cli_client(args, &client) != 0)
		return 1;
	if (args->json)
		all = json_object_new_array();
	for (size_t i = 0; i < args->n_words; i++) {
		const char *id = args->words[i];
		int r = kill_one(client, id);
		if (r < 0 || (r == 0 && !args->json))
			code = r < 0 ? 1 : cli_fail(NULL, "no sandbox \"%s\"", id);
		else if (!args->json)
			printf("killed %s\n", id);
		if (args->json && r >= 0) {
			json_object *o = json_object_new_object();
			json_object_object_add(o, "sandboxId",
					       json_object_new_string(id));
			json_object_object_add(o, "killed",
					       json_object_new_boolean(r == 1));
			json_object_array_add(all, o);
		}
	}
	if (args->json)
		cli_print_json(all);
	json_object_put(all);
	return code;
}

/* ---- ls ---- */

static const char *type_name(int type)
{
	switch (type) {
	case ABX_FILE_REGULAR:
		return "file";
	case ABX_FILE_DIRECTORY:
		return "dir";
	case ABX_FILE_SYMLINK:
		return "link";
	default:
		return "other";
	}
}

json_object *cli_file_json(const abx_file_info *info)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(info->name));
	json_object_object_add(o, "path", json_object_new_string(info->path));
	json_object_object_add(o, "type", json_object_new_string(type_name(info->type)));
	json_object_object_add(o, "size", json_object_new_int64(info->length_bytes));
	json_object_object_add(o, "permissions",
			       json_object_new_string(info->permissions));
	json_object_object_add(o, "owner", json_object_new_string(info->owner));
	json_object_object_add(o, "group", json_object_new_string(info->group));
	json_object_object_add(o, "modifiedAtMs",
			       json_object_new_int64(info->modified_at_ms));
	if (info->symlink_target != NULL)
		json_object_object_add(o, "symlinkTarget",
				       json_object_new_string(info->symlink_target));
	return o;
}

static void table_row(struct cli_table *table, const abx_file_info *info)
{
	char size[32], when[32] = "";
	time_t t = (time_t)(info->modified_at_ms / 1000);
	struct tm tm;

	snprintf(size, sizeof(size), "%lld", (long long)info->length_bytes);
	if (localtime_r(&t, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	const char *cells[] = { info->permissions, info->owner, info->group, size, when,
				info->name };
	cli_table_add(table, cells);
}

int cmd_ls(const struct cli_args *args)
{
	static const char *const heads[] = { "permissions", "owner",    "group",
					     "size",        "modified", "name" };
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	abx_file_options opts = ABX_FILE_OPTIONS_INIT;
	abx_file_list *list = NULL;
	abx_error *err = NULL;

	if (args->n_words < 1 || args->n_words > 2)
		return cli_fail("abx ls ID [PATH]",
				"ls needs a sandbox, and one path at most");
	if (cli_sandbox(args, args->words[0], &client, &sandbox) != 0)
		return 1;
	opts.user = args->user;
	if (abx_file_list_dir(sandbox, args->n_words == 2 ? args->words[1] : ".", &opts,
			      &list, &err) < 0)
		return cli_fail_error(args->n_words == 2 ? args->words[1] : NULL, err);
	struct cli_table *table = args->json ? NULL : cli_table_new(heads, 6, 1u << 3);
	json_object *all = args->json ? json_object_new_array() : NULL;
	for (size_t i = 0; i < abx_file_list_count(list); i++) {
		const abx_file_info *info = abx_file_list_at(list, i);
		if (args->json)
			json_object_array_add(all, cli_file_json(info));
		else
			table_row(table, info);
	}
	if (args->json)
		cli_print_json(all);
	else
		cli_table_print(table);
	json_object_put(all);
	cli_table_free(table);
	abx_file_list_free(list);
	return 0;
}

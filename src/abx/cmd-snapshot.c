/*
 * src/abx/cmd-snapshot.c - `abx snapshot`, `abx snapshots`, `abx delete snapshots` and
 * `abx fork`: more of what a sandbox is.
 */
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "table.h"

static json_object *snapshot_json(const abx_snapshot_info *info)
{
	json_object *o = json_object_new_object();
	json_object *names = json_object_new_array();

	json_object_object_add(o, "snapshotId", json_object_new_string(info->id));
	for (size_t i = 0; info->names[i] != NULL; i++)
		json_object_array_add(names, json_object_new_string(info->names[i]));
	json_object_object_add(o, "names", names);
	return o;
}

int cmd_snapshot(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	abx_snapshot_options opts = ABX_SNAPSHOT_OPTIONS_INIT;
	abx_snapshot_info *info = NULL;
	abx_error *err = NULL;

	if (args->n_words != 1)
		return cli_fail("abx snapshot ID [--name NAME]; abx snapshots lists them",
				"snapshot needs one sandbox");
	if (cli_client(args, &client) != 0)
		return 1;
	opts.name = args->name;
	if (abx_sandbox_open(client, args->words[0], &sandbox, &err) < 0 ||
	    abx_snapshot_create(sandbox, &opts, &info, &err) < 0)
		return cli_fail_error(NULL, err);
	if (args->json) {
		json_object *o = snapshot_json(info);
		cli_print_json(o);
		json_object_put(o);
	} else {
		puts(info->id);
	}
	abx_snapshot_info_free(info);
	return 0;
}

/* ---- the list ---- */

static void snapshot_row(struct cli_table *table, const abx_snapshot_info *info)
{
	json_object *o = snapshot_json(info);
	char *names = cli_cell(cli_json_at(o, "names"));
	const char *cells[] = { info->id, names };

	cli_table_add(table, cells);
	free(names);
	json_object_put(o);
}

static int print_all(const struct cli_args *args, abx_snapshot_iter *iter,
		     struct cli_table *table, json_object *all, size_t *ret_count)
{
	const abx_snapshot_info *info = NULL;
	abx_error *err = NULL;
	int r;

	while ((r = abx_snapshot_iter_next(iter, &info, &err)) == 1) {
		++*ret_count;
		if (args->json)
			json_object_array_add(all, snapshot_json(info));
		else
			snapshot_row(table, info);
	}
	return r < 0 ? cli_fail_error(NULL, err) : 0;
}

int cmd_snapshots(const struct cli_args *args)
{
	static const char *const heads[] = { "snapshotId", "names" };
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	abx_snapshot_list_options opts = ABX_SNAPSHOT_LIST_OPTIONS_INIT;
	abx_snapshot_iter *iter = NULL;
	abx_error *err = NULL;
	size_t count = 0;

	if (args->n_words > 1)
		return cli_fail("abx snapshots [SANDBOX] [--name NAME]",
				"snapshots takes one sandbox at most");
	if (cli_client(args, &client) != 0)
		return 1;
	opts.sandbox_id = args->n_words == 1 ? args->words[0] : NULL;
	opts.name = args->name;
	if (abx_snapshot_list(client, &opts, &iter, &err) < 0)
		return cli_fail_error(NULL, err);
	json_object *all = args->json ? json_object_new_array() : NULL;
	struct cli_table *table = args->json ? NULL : cli_table_new(heads, 2, 0);
	int r = print_all(args, iter, table, all, &count);
	if (r == 0 && args->json) {
		cli_print_json(all);
	} else if (r == 0) {
		printf("snapshot · %zu total\n\n", count);
		cli_table_print(table);
	}
	json_object_put(all);
	cli_table_free(table);
	abx_snapshot_iter_free(iter);
	return r;
}

int cmd_delete_snapshots(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	int code = 0;

	if (args->n_words < 2)
		return cli_fail("abx delete snapshots ID...",
				"delete snapshots needs at least one");
	if (cli_client(args, &client) != 0)
		return 1;
	for (size_t i = 1; i < args->n_words; i++) {
		const char *id = args->words[i];
		abx_error *err = NULL;
		int r = abx_snapshot_delete(client, id, &err);

		if (r == 1)
			printf("deleted %s\n", id);
		else if (r == 0)
			code = cli_fail("abx snapshots lists them", "no snapshot \"%s\"",
					id);
		else
			code = cli_fail_error(NULL, err);
	}
	return code;
}

/* ---- fork ---- */

static int count_of(const char *text, uint32_t *ret)
{
	char *end;

	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno != 0 || *end != '\0' || end == text || n < 1 || n > 100)
		return cli_fail(NULL, "--count \"%s\" is not a count of 1 to 100", text);
	*ret = (uint32_t)n;
	return 0;
}

/* The id of each, or why there is none; 1 when one failed. */
static int print_forks(const struct cli_args *args, abx_forks *forks)
{
	json_object *all = args->json ? json_object_new_array() : NULL;
	int code = 0;

	for (size_t i = 0; i < abx_forks_count(forks); i++) {
		const abx_fork *one = abx_forks_at(forks, i);
		json_object *o = args->json ? json_object_new_object() : NULL;

		if (one->sandbox == NULL)
			code = cli_fail(abx_error_hint(one->err), "fork %zu of %zu: %s",
					i + 1, abx_forks_count(forks),
					abx_error_message(one->err));
		else if (!args->json)
			puts(abx_sandbox_id(one->sandbox));
		if (!args->json)
			continue;
		json_object_object_add(
			o, one->sandbox != NULL ? "sandboxId" : "error",
			json_object_new_string(one->sandbox != NULL
						       ? abx_sandbox_id(one->sandbox)
						       : abx_error_message(one->err)));
		json_object_array_add(all, o);
	}
	if (args->json)
		cli_print_json(all);
	json_object_put(all);
	return code;
}

int cmd_fork(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	abx_fork_options opts = ABX_FORK_OPTIONS_INIT;
	abx_forks *forks = NULL;
	abx_error *err = NULL;

	if (args->n_words != 1)
		return cli_fail("abx fork ID [--count N]", "fork needs one sandbox");
	if ((args->count != NULL && count_of(args->count, &opts.count) != 0) ||
	    (args->timeout != NULL &&
	     cli_args_timeout(args->timeout, &opts.timeout_ms) != 0) ||
	    cli_client(args, &client) != 0)
		return 1;
	if (abx_sandbox_open(client, args->words[0], &sandbox, &err) < 0 ||
	    abx_sandbox_fork(sandbox, &opts, &forks, &err) < 0)
		return cli_fail_error(NULL, err);
	int code = print_forks(args, forks);
	abx_forks_free(forks);
	return code;
}

/*
 * src/abx/cmd-write.c - changing the platform: create, update, delete, scale.
 *
 * A file is YAML or JSON, whole objects as kubectl takes them or a body of the native
 * API; the library reads and checks it. A PUT is the whole object, so scale reads what
 * may be edited, changes the one number and puts it back.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "cli.h"
#include "table.h"

#define MAX_FILE_BYTES (4u << 20)

static int slurp(FILE *f, const char *name, char **ret, size_t *ret_len)
{
	char *text = malloc(MAX_FILE_BYTES + 1);

	if (text == NULL)
		return cli_fail(NULL, "out of memory");
	size_t n = fread(text, 1, MAX_FILE_BYTES + 1, f);
	if (ferror(f)) {
		free(text);
		return cli_fail(NULL, "%s: %s", name, strerror(errno));
	}
	if (n > MAX_FILE_BYTES) {
		free(text);
		return cli_fail(NULL, "%s: over 4 MiB", name);
	}
	*ret = text;
	*ret_len = n;
	return 0;
}

static int read_file(const char *path, char **ret, size_t *ret_len)
{
	if (strcmp(path, "-") == 0)
		return slurp(stdin, "stdin", ret, ret_len);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return cli_fail(NULL, "%s: %s", path, strerror(errno));
	int r = slurp(f, path, ret, ret_len);
	fclose(f);
	return r;
}

static void print_applied(const char *json, const char *from, bool as_json)
{
	json_object *all = json_tokener_parse(json);

	if (as_json) {
		cli_print_json(all);
	} else {
		for (size_t i = 0; i < json_object_array_length(all); i++) {
			json_object *each = json_object_array_get_idx(all, i);
			printf("%s %s from %s\n",
			       json_object_get_string(cli_json_at(each, "action")),
			       json_object_get_string(cli_json_at(each, "name")), from);
		}
	}
	json_object_put(all);
}

/* Says what to do next where the library cannot know our grammar. */
static int fail_apply(const struct cli_args *args, const struct cli_address *a, int r,
		      abx_error *err)
{
	char hint[512];

	if (r == ABX_EEXISTS)
		snprintf(hint, sizeof(hint), "to change it: abx update %s NAME -f %s",
			 a->resource->plural, args->file);
	else if (r == ABX_ENOTFOUND && a->name != NULL)
		snprintf(hint, sizeof(hint), "update never creates: abx create %s -f %s",
			 a->resource->plural, args->file);
	else
		return cli_fail_error(NULL, err);
	cli_fail(hint, "%s", abx_error_message(err));
	abx_error_free(err);
	return 1;
}

static int apply(const struct cli_args *args, const struct cli_address *a, int mode)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_textp) char *answer = NULL;
	abx_apply_options opts = ABX_APPLY_OPTIONS_INIT;
	abx_error *err = NULL;
	char *text = NULL;
	size_t len = 0;
	int r;

	r = read_file(args->file, &text, &len);
	if (r == 0)
		r = cli_client(args, &client);
	char *path = r == 0 ? cli_address_path(a, true) : NULL;
	if (r == 0) {
		opts.mode = mode;
		opts.resource = path;
		opts.name = strcmp(args->file, "-") == 0 ? "stdin" : args->file;
		r = abx_platform_apply(client, text, len, &opts, &answer, &err);
		if (r < 0)
			r = fail_apply(args, a, r, err);
		else
			print_applied(answer, opts.name, args->json);
	}
	free(path);
	free(text);
	return r != 0;
}

static int writable(const struct cli_address *a, const char *verb)
{
	if (a->docs ||
	    (a->resource->write_path != NULL && a->resource->write_path[0] == '\0'))
		return cli_fail(NULL, "%s cannot be %s",
				a->docs ? "docs" : a->resource->plural, verb);
	return 0;
}

int cmd_create(const struct cli_args *args)
{
	struct cli_address a;
	int r;

	if (args->n_words == 0)
		return cmd_create_sandbox(args);
	r = cli_address_parse(args->words, args->n_words, &a);
	if (r != 0)
		return r;
	if (writable(&a, "created with -f") != 0)
		return 1;
	if (a.name != NULL)
		return cli_fail("the name stands in the file",
				"create needs a collection, not \"%s\"", a.name);
	if (args->file == NULL)
		return cli_fail("-f FILE, or -f - for stdin", "create %s needs a file",
				a.resource->plural);
	return apply(args, &a, ABX_APPLY_CREATE);
}

int cmd_update(const struct cli_args *args)
{
	struct cli_address a;
	int r;

	r = cli_address_parse(args->words, args->n_words, &a);
	if (r != 0)
		return r;
	if (writable(&a, "updated") != 0)
		return 1;
	if (a.name == NULL)
		return cli_fail("abx update envs NAME -f FILE",
				"update needs one object");
	if (args->file == NULL)
		return cli_fail("-f FILE, or -f - for stdin", "update needs a file");
	return apply(args, &a, ABX_APPLY_UPDATE);
}

int cmd_delete(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	struct cli_address a;
	abx_error *err = NULL;
	int r;

	if (args->n_words > 0 && strcmp(args->words[0], "snapshots") == 0)
		return cmd_delete_snapshots(args);
	r = cli_address_parse(args->words, args->n_words, &a);
	if (r != 0)
		return r;
	if (strcmp(a.resource->plural, "sandboxes") == 0)
		return cli_fail("abx kill ID", "sandboxes are killed, not deleted");
	if (writable(&a, "deleted") != 0)
		return 1;
	if (a.name == NULL)
		return cli_fail("abx delete envs NAME", "delete needs one object");
	r = cli_client(args, &client);
	if (r != 0)
		return r;
	char *path = cli_address_path(&a, true);
	r = path != NULL ? abx_platform_delete(client, path, NULL, &err) : ABX_ENOMEM;
	free(path);
	if (r < 0)
		return cli_fail_error(NULL, err);
	if (args->json)
		printf("{\"deleted\":true}\n");
	else
		printf("deleted %s\n", a.name);
	return 0;
}

/* ---- scale ---- */

static int parse_replicas(const char *text, int *ret)
{
	char *end;

	errno = 0;
	long n = strtol(text, &end, 10);
	if (text[0] == '\0' || *end != '\0' || errno != 0 || n < 0 || n > 100000)
		return cli_fail("a whole number, 0 or more",
				"--replicas \"%s\" is not a count", text);
	*ret = (int)n;
	return 0;
}

static int put_replicas(abx_client *client, const char *path, const char *name,
			int replicas)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	CLI_CLEANUP(cli_textp) char *answer = NULL;
	abx_error *err = NULL;

	if (abx_platform_get(client, path, &text, &err) < 0)
		return cli_fail_error(NULL, err);
	json_object *o = json_tokener_parse(text);
	json_object *editable = cli_json_at(o, "editable");
	if (!json_object_is_type(editable, json_type_object)) {
		json_object_put(o);
		return cli_fail(
			NULL, "pool %s: the platform says nothing of what may be edited",
			name);
	}
	json_object_object_add(editable, "replicas", json_object_new_int(replicas));
	int r = abx_platform_request(
		client, "PUT", path,
		json_object_to_json_string_ext(editable, JSON_C_TO_STRING_PLAIN), &answer,
		&err);
	json_object_put(o);
	return r < 0 ? cli_fail_error(NULL, err) : 0;
}

int cmd_scale(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	struct cli_address a;
	int replicas = 0, r;

	r = cli_address_parse(args->words, args->n_words, &a);
	if (r != 0)
		return r;
	if (strcmp(a.resource->plural, "pools") != 0 || a.name == NULL)
		return cli_fail("abx scale envs NAME pools POOL --replicas N",
				"only a pool can be scaled");
	if (args->replicas == NULL)
		return cli_fail("abx scale envs NAME pools POOL --replicas N",
				"scale needs --replicas");
	r = parse_replicas(args->replicas, &replicas);
	if (r == 0)
		r = cli_client(args, &client);
	if (r != 0)
		return r;
	char *path = cli_address_path(&a, false);
	if (path == NULL)
		return cli_fail(NULL, "out of memory");
	r = put_replicas(client, path, a.name, replicas);
	free(path);
	if (r != 0)
		return r;
	if (args->json)
		printf("{\"replicas\":%d}\n", replicas);
	else
		printf("scaled %s to %d\n", a.name, replicas);
	return 0;
}

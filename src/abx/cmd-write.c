/*
 * src/abx/cmd-write.c - changing the platform: create, update, delete, scale, and the
 * actions of the registry.
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

#include "links.h"
#include "list.h"
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

/* What it is called: the name the library knows, or the one the platform gave. */
static const char *applied_name(json_object *each, const struct cli_address *a)
{
	static const char *const members[] = { "name", "object.keyId", "object.name" };

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_object *name = cli_json_at(each, members[i]);

		if (json_object_is_type(name, json_type_string) &&
		    json_object_get_string_len(name) > 0)
			return json_object_get_string(name);
	}
	return cli_address_last(a) != NULL ? cli_address_last(a) : a->resource->kind;
}

static void print_applied(const struct cli_address *a, const char *json, const char *from,
			  bool as_json)
{
	json_object *all = json_tokener_parse(json);

	for (size_t i = 0; !as_json && i < json_object_array_length(all); i++) {
		json_object *each = json_object_array_get_idx(all, i);
		json_object *key = cli_json_at(each, "object.apiKey");

		printf("%s %s from %s\n",
		       json_object_get_string(cli_json_at(each, "action")),
		       applied_name(each, a), from);
		/* The only time it is shown. */
		if (key != NULL)
			printf("apiKey %s\n", json_object_get_string(key));
	}
	if (as_json)
		cli_print_json(all);
	json_object_put(all);
}

/* Says what to do next where the library cannot know our grammar. */
static int fail_apply(const struct cli_args *args, abx_client *client,
		      const struct cli_address *a, int r, abx_error *err)
{
	char hint[512], at[256];
	struct cli_address list = *a;

	list.name = NULL;
	cli_address_text(&list, at, sizeof(at));
	if (r == ABX_EEXISTS)
		snprintf(hint, sizeof(hint), "to change it: abx update %s NAME -f %s", at,
			 args->file);
	else if (r == ABX_ENOTFOUND && a->name != NULL)
		snprintf(hint, sizeof(hint), "update never creates: abx create %s -f %s",
			 at, args->file);
	else if (abx_error_http_status(err) == 403 || abx_error_http_status(err) == 428)
		return cli_fail_platform(client, a, a->name != NULL ? "update" : "create",
					 err);
	else
		return cli_fail_error(NULL, err);
	cli_fail(hint, "%s", abx_error_message(err));
	abx_error_free(err);
	return 1;
}

/* ---- what is looked at before anything is sent ---- */

/* Some writes are never an agent key's; asked first, so that nothing is sent. When the
 * platform does not say, it decides. */
static int stop_agent(abx_client *client, const struct cli_address *a, const char *verb)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	char page[1024], hint[1200];
	struct cli_address list = *a;

	if (abx_platform_get(client, "/auth/whoami", &text, NULL) < 0)
		return 0;
	json_object *who = json_tokener_parse(text);
	json_object *mode = cli_json_at(who, "mode");
	bool is_agent =
		mode != NULL && strcmp(json_object_get_string(mode), "agent") == 0;
	json_object_put(who);
	if (!is_agent)
		return 0;
	list.name = NULL;
	if (cli_console_page(client, &list, page, sizeof(page)))
		snprintf(hint, sizeof(hint), "a person does it at %s", page);
	else
		snprintf(hint, sizeof(hint), "a person does it, with a key of their own");
	return cli_fail(hint, "an agent key may never %s %s; nothing was sent", verb,
			a->resource->plural);
}

static char *env_sizing(abx_client *client, const char *env)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	CLI_CLEANUP(cli_textp) char *name = abx_platform_escape(env);
	char *path = NULL, *sizing = NULL;

	if (name == NULL || asprintf(&path, "/envs/%s", name) < 0)
		return NULL;
	if (abx_platform_get(client, path, &text, NULL) >= 0) {
		json_object *answer = json_tokener_parse(text);
		json_object *value = cli_json_at(cli_unwrap(answer), "poolSizing");

		if (json_object_is_type(value, json_type_string))
			sizing = strdup(json_object_get_string(value));
		json_object_put(answer);
	}
	free(path);
	return sizing;
}

#define QUOTA_LABEL "quota.scitix.ai/url"

static int check_sizing(const char *env, const char *sizing, json_object *body)
{
	bool typed = cli_json_at(body, "instanceType") != NULL;
	bool labelled = cli_json_at(body, "labels[\"" QUOTA_LABEL "\"]") != NULL;

	if (strcmp(sizing, "billed") == 0 && (!typed || !labelled))
		return cli_fail("abx instancetypes and abx quotas list them",
				"pools of %s are billed: the file needs instanceType and "
				"the label " QUOTA_LABEL "; nothing was sent",
				env);
	if (strcmp(sizing, "free-form") == 0 && (typed || labelled))
		return cli_fail("say inlineResources instead",
				"pools of %s are free-form: the file must have neither "
				"instanceType nor the label " QUOTA_LABEL
				"; nothing was sent",
				env);
	return 0;
}

/* A pool's file against its env's rule. What cannot be looked up, the platform decides.
 */
static int check_pools(abx_client *client, const struct cli_address *a, const char *text,
		       size_t len)
{
	CLI_CLEANUP(cli_textp) char *documents = NULL;
	char *sizing;
	int r = 0;

	if (!cli_resource_is(a->resource, "pools") || a->name != NULL ||
	    abx_platform_parse(text, len, &documents, NULL) < 0)
		return 0;
	sizing = env_sizing(client, a->parent_name);
	json_object *all = sizing != NULL ? json_tokener_parse(documents) : NULL;
	for (size_t i = 0; all != NULL && r == 0 && i < json_object_array_length(all);
	     i++)
		r = check_sizing(a->parent_name, sizing,
				 json_object_array_get_idx(all, i));
	json_object_put(all);
	free(sizing);
	return r;
}

static int check_before(const struct cli_args *args, abx_client *client,
			const struct cli_address *a, const char *text, size_t len)
{
	(void)args;
	if ((a->resource->flags & CLI_RES_NEVER_BY_AGENT) != 0 &&
	    stop_agent(client, a, "create") != 0)
		return 1;
	return check_pools(client, a, text, len);
}

/* ---- create, update ---- */

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
		r = cli_platform(args, &client);
	if (r == 0 && mode == ABX_APPLY_CREATE)
		r = check_before(args, client, a, text, len);
	char *path = r == 0 ? cli_address_path(a, true) : NULL;
	if (r == 0) {
		opts.mode = mode;
		opts.resource = path;
		opts.name = strcmp(args->file, "-") == 0 ? "stdin" : args->file;
		r = abx_platform_apply(client, text, len, &opts, &answer, &err);
		if (r < 0)
			r = fail_apply(args, client, a, r, err);
		else
			print_applied(a, answer, opts.name, args->json);
	}
	free(path);
	free(text);
	return r != 0;
}

static int make(const struct cli_args *args, unsigned verb, const char *word, int mode)
{
	struct cli_address a;
	char hint[700], at[256];
	int r;

	r = cli_address_parse(args->words, args->n_words, &a);
	if (r == 0)
		r = cli_address_verb(&a, verb, word);
	if (r != 0)
		return r;
	if (args->file == NULL) {
		cli_address_text(&a, at, sizeof(at));
		snprintf(hint, sizeof(hint),
			 "abx %s %s -f FILE, or -f - for stdin; abx %s %s --help tells "
			 "what is in it",
			 word, at, word, at);
		return cli_fail(hint, "%s needs a file", word);
	}
	return apply(args, &a, mode);
}

int cmd_create(const struct cli_args *args)
{
	if (args->n_words == 0)
		return cmd_create_sandbox(args);
	return make(args, CLI_VERB_CREATE, "create", ABX_APPLY_CREATE);
}

int cmd_update(const struct cli_args *args)
{
	if (args->n_words == 0)
		return cli_fail("abx update RESOURCE NAME -f FILE; abx upgrade is for "
				"abx itself",
				"update needs an object");
	return make(args, CLI_VERB_UPDATE, "update", ABX_APPLY_UPDATE);
}

/* ---- delete, approve, deny, promote ---- */

/* One request on the object itself; `action` NULL: its deletion. */
static int act(const struct cli_args *args, const struct cli_address *a,
	       const struct cli_action *action)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_textp) char *answer = NULL;
	abx_error *err = NULL;
	char *path = NULL, *item;
	int r = cli_platform(args, &client);

	if (r == 0 && action != NULL)
		r = stop_agent(client, a, action->verb);
	if (r != 0)
		return r;
	item = cli_address_path(a, true);
	if (item == NULL ||
	    asprintf(&path, "%s%s", item, action != NULL ? action->suffix : "") < 0)
		path = NULL;
	free(item);
	if (path == NULL)
		return cli_fail(NULL, "out of memory");
	r = abx_platform_request(client, action != NULL ? "POST" : "DELETE", path,
				 action != NULL ? action->body : NULL, &answer, &err);
	free(path);
	if (r < 0)
		return cli_fail_platform(client, a,
					 action != NULL ? action->verb : "delete", err);
	if (args->json)
		puts(answer[0] != '\0' ? answer : "{}");
	else
		printf("%s %s\n", action != NULL ? action->past : "deleted", a->name);
	return 0;
}

int cmd_delete(const struct cli_args *args)
{
	struct cli_address a;
	int r;

	if (args->n_words > 0 && strcmp(args->words[0], "snapshots") == 0)
		return cmd_delete_snapshots(args);
	r = cli_address_parse(args->words, args->n_words, &a);
	if (r != 0)
		return r;
	if (cli_resource_is(a.resource, "sandboxes"))
		return cli_fail("abx kill ID", "sandboxes are killed, not deleted");
	r = cli_address_verb(&a, CLI_VERB_DELETE, "delete");
	return r != 0 ? r : act(args, &a, NULL);
}

static int cmd_action(const struct cli_args *args, const char *verb)
{
	const struct cli_action *action = cli_action_find(verb);
	struct cli_address a;
	char hint[128];
	int r = cli_address_parse(args->words, args->n_words, &a);

	if (r != 0)
		return r;
	snprintf(hint, sizeof(hint), "abx %s %s ID", verb, action->resource);
	if (!cli_resource_is(a.resource, action->resource) || a.view != NULL)
		return cli_fail(hint, "%s is for %s, not for %s", verb, action->resource,
				a.resource->plural);
	if (a.name == NULL)
		return cli_fail(hint, "%s needs one object", verb);
	return act(args, &a, action);
}

int cmd_approve(const struct cli_args *args)
{
	return cmd_action(args, "approve");
}

int cmd_deny(const struct cli_args *args)
{
	return cmd_action(args, "deny");
}

int cmd_promote(const struct cli_args *args)
{
	return cmd_action(args, "promote");
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

/* A pool's part of its env's members, for a platform that sends nothing to edit. */
static json_object *member_config(abx_client *client, const struct cli_address *a)
{
	static const char *const kept[] = { "minReplicas", "maxReplicas",
					    "updateStrategy" };
	struct cli_address env = { .resource = cli_resource_find("envs", NULL),
				   .name = a->parent_name };
	CLI_CLEANUP(cli_textp) char *text = NULL;
	char *path = cli_address_path(&env, false);
	json_object *answer, *clusters, *config = NULL;

	if (path == NULL || abx_platform_get(client, path, &text, NULL) < 0) {
		free(path);
		return NULL;
	}
	free(path);
	answer = json_tokener_parse(text);
	clusters = cli_json_at(cli_unwrap(answer), "spec.clusters");
	for (size_t i = 0; json_object_is_type(clusters, json_type_array) &&
			   i < json_object_array_length(clusters);
	     i++) {
		json_object *members =
			cli_json_at(json_object_array_get_idx(clusters, i), "members");
		for (size_t k = 0; json_object_is_type(members, json_type_array) &&
				   k < json_object_array_length(members);
		     k++) {
			json_object *member = json_object_array_get_idx(members, k);
			json_object *name = cli_json_at(member, "name");
			if (name == NULL ||
			    strcmp(json_object_get_string(name), a->name) != 0)
				continue;
			config = json_object_new_object();
			for (size_t m = 0; m < sizeof(kept) / sizeof(kept[0]); m++) {
				char at[64];
				snprintf(at, sizeof(at), "config.%s", kept[m]);
				json_object *value = cli_json_at(member, at);
				if (value != NULL)
					json_object_object_add(config, kept[m],
							       json_object_get(value));
			}
		}
	}
	json_object_put(answer);
	return config;
}

static int put_replicas(abx_client *client, const struct cli_address *a, const char *path,
			int replicas)
{
	CLI_CLEANUP(cli_textp) char *answer = NULL;
	abx_error *err = NULL;
	json_object *o = NULL, *body;

	if (cli_fetch(client, a, path, &o) != 0)
		return 1;
	body = cli_json_at(o, "editable");
	body = json_object_is_type(body, json_type_object) ? json_object_get(body)
							   : member_config(client, a);
	json_object_put(o);
	if (body == NULL)
		return cli_fail("abx envs NAME pools lists them",
				"pool %s is not among the pools of %s", a->name,
				a->parent_name);
	json_object_object_add(body, "replicas", json_object_new_int(replicas));
	int r = abx_platform_request(
		client, "PUT", path,
		json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN), &answer,
		&err);
	json_object_put(body);
	return r < 0 ? cli_fail_platform(client, a, "scale", err) : 0;
}

int cmd_scale(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	struct cli_address a;
	int replicas = 0, r;

	r = cli_address_parse(args->words, args->n_words, &a);
	if (r != 0)
		return r;
	if (!cli_resource_is(a.resource, "pools") || a.name == NULL || a.view != NULL)
		return cli_fail("abx scale envs NAME pools POOL --replicas N",
				"only a pool can be scaled");
	if (args->replicas == NULL)
		return cli_fail("abx scale envs NAME pools POOL --replicas N",
				"scale needs --replicas");
	r = parse_replicas(args->replicas, &replicas);
	if (r == 0)
		r = cli_platform(args, &client);
	if (r != 0)
		return r;
	char *path = cli_address_path(&a, false);
	if (path == NULL)
		return cli_fail(NULL, "out of memory");
	r = put_replicas(client, &a, path, replicas);
	free(path);
	if (r != 0)
		return r;
	if (args->json)
		printf("{\"replicas\":%d}\n", replicas);
	else
		printf("scaled %s to %d\n", a.name, replicas);
	return 0;
}

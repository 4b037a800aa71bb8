/*
 * src/abx/sight.c - who asks, and what the platform has: for help pages that show what
 * can be used. The answer of whoami is kept in whoami.json beside the file of contexts,
 * by the client's identity; no key is in it.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sight.h"
#include "table.h"

#define ASK_MS 3000

/* "/home/ada/.config/abx/whoami.json"; NULL: no memory. */
static char *cache_path(void)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	json_object *all = NULL;
	char *path = NULL;

	if (abx_context_list(NULL, &text, NULL) < 0)
		return NULL;
	all = json_tokener_parse(text);
	const char *config = json_object_get_string(cli_json_at(all, "path"));
	const char *slash = config != NULL ? strrchr(config, '/') : NULL;
	if (slash != NULL &&
	    asprintf(&path, "%.*s/whoami.json", (int)(slash - config), config) < 0)
		path = NULL;
	json_object_put(all);
	return path;
}

static json_object *cached_role(abx_client *client)
{
	CLI_CLEANUP(cli_textp) char *identity = abx_client_identity(client);
	char *path = cache_path();
	json_object *all = path != NULL ? json_object_from_file(path) : NULL;
	json_object *entry = NULL, *role = NULL;

	free(path);
	if (identity != NULL && json_object_is_type(all, json_type_object) &&
	    json_object_object_get_ex(all, identity, &entry))
		role = json_object_get(cli_json_at(entry, "role"));
	json_object_put(all);
	return role;
}

static void write_cache(const char *path, json_object *all)
{
	char *beside = NULL;
	FILE *f;

	if (asprintf(&beside, "%s.%ld.new", path, (long)getpid()) < 0)
		return;
	unlink(beside);
	mode_t old = umask(077);
	f = fopen(beside, "wxe");
	umask(old);
	if (f != NULL) {
		fprintf(f, "%s\n",
			json_object_to_json_string_ext(
				all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED));
		if (fclose(f) != 0 || rename(beside, path) != 0)
			unlink(beside);
	}
	free(beside);
}

void cli_whoami_keep(abx_client *client, json_object *answer)
{
	static const char *const kept[] = { "role", "mode", "user", "team" };
	CLI_CLEANUP(cli_textp) char *identity = abx_client_identity(client);
	char *path = cache_path(), when[32];
	json_object *all = path != NULL ? json_object_from_file(path) : NULL;
	json_object *entry = json_object_new_object();
	time_t now = time(NULL);
	struct tm tm;

	if (!json_object_is_type(all, json_type_object)) {
		json_object_put(all);
		all = json_object_new_object();
	}
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		json_object_object_add(entry, kept[i],
				       json_object_get(cli_json_at(answer, kept[i])));
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	json_object_object_add(entry, "at", json_object_new_string(when));
	if (identity != NULL && path != NULL) {
		json_object_object_add(all, identity, entry);
		write_cache(path, all);
	} else {
		json_object_put(entry);
	}
	json_object_put(all);
	free(path);
}

static json_object *ask(abx_client *client, const char *path)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;

	return abx_platform_get(client, path, &text, NULL) < 0 ? NULL
							       : json_tokener_parse(text);
}

void cli_sight_load(const struct cli_args *args, struct cli_sight *ret)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	json_object *role, *who;

	memset(ret, 0, sizeof(*ret));
	if (cli_client_briefly(args, ASK_MS, &client) < 0)
		return;
	role = cached_role(client);
	if (role == NULL) {
		who = ask(client, "/auth/whoami");
		role = json_object_get(cli_json_at(who, "role"));
		if (role != NULL)
			cli_whoami_keep(client, who);
		json_object_put(who);
	}
	ret->hides_admin =
		role != NULL && strcmp(json_object_get_string(role), "admin") != 0;
	/* A platform that did not answer the one is not asked the other. */
	ret->gates = role != NULL ? ask(client, "/feature-gates") : NULL;
	json_object_put(role);
}

void cli_sight_done(struct cli_sight *sight)
{
	json_object_put(sight->gates);
	sight->gates = NULL;
}

bool cli_sight_shows(const struct cli_sight *sight, const struct cli_resource *resource)
{
	json_object *gate = resource->gate != NULL && sight->gates != NULL
				    ? cli_json_at(sight->gates, resource->gate)
				    : NULL;

	if (sight->hides_admin && (resource->flags & CLI_RES_ADMIN) != 0)
		return false;
	return gate == NULL || json_object_get_boolean(gate);
}

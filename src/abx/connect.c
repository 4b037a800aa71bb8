/*
 * src/abx/connect.c - from the flags to a client, to a sandbox; and the signals that end
 * a wait.
 */
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "table.h"

void cli_client_freep(abx_client **p)
{
	abx_client_free(*p);
}

void cli_sandbox_freep(abx_sandbox **p)
{
	abx_sandbox_free(*p);
}

void cli_textp(char **p)
{
	abx_free(*p);
}

/* What the library did beside what it was asked for: that it started an engine. */
static void on_log(void *userdata, int level, const char *text, const char *fields)
{
	(void)userdata;
	(void)level;
	fprintf(stderr, "abx: %s%s%s\n", text, *fields != '\0' ? ": " : "", fields);
}

static void options_of(const struct cli_args *args, const char *cluster,
		       abx_client_options *opts)
{
	opts->context = args->context;
	opts->cluster = cluster;
	opts->endpoint = args->endpoint;
	opts->cluster_api = args->cluster_api;
	opts->api_key = args->api_key;
	opts->auth_scheme = args->auth_scheme;
	opts->socket_path = args->socket_path;
	opts->state_dir = args->state_dir;
	opts->log = on_log;
	opts->log_level = ABX_LOG_INFO;
}

static int client_of(const struct cli_args *args, const char *cluster, abx_client **ret)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
	abx_error *err = NULL;

	options_of(args, cluster, &opts);
	if (abx_client_new(&opts, ret, &err) < 0)
		return cli_fail_error(NULL, err);
	return 0;
}

int cli_client(const struct cli_args *args, abx_client **ret)
{
	return client_of(args, args->cluster, ret);
}

/* ---- which cluster ---- */

static json_object *clusters_of(abx_client *client)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	json_object *answer, *list = NULL;

	if (abx_platform_get(client, "/clusters", &text, NULL) < 0)
		return NULL;
	answer = json_tokener_parse(text);
	if (json_object_is_type(answer, json_type_array))
		return answer;
	if (!json_object_object_get_ex(answer, "clusters", &list))
		json_object_object_get_ex(answer, "items", &list);
	list = json_object_is_type(list, json_type_array) ? json_object_get(list) : NULL;
	json_object_put(answer);
	return list;
}

static const char *id_at(json_object *list, size_t i)
{
	json_object *id = cli_json_at(json_object_array_get_idx(list, i), "id");

	return json_object_is_type(id, json_type_string) ? json_object_get_string(id)
							 : "";
}

int cli_client_briefly(const struct cli_args *args, uint32_t timeout_ms, abx_client **ret)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;

	options_of(args, args->cluster, &opts);
	opts.log = NULL;
	opts.request_timeout_ms = opts.connect_timeout_ms = timeout_ms;
	opts.flags = ABX_CLIENT_NO_START;
	int r = abx_client_new(&opts, ret, NULL);
	if (r < 0 || abx_client_console(*ret) == NULL || abx_client_cluster(*ret) != NULL)
		return r;
	json_object *list = clusters_of(*ret);
	abx_client_free(*ret);
	*ret = NULL;
	r = ABX_ENOTFOUND;
	if (list != NULL && json_object_array_length(list) > 0) {
		opts.cluster = id_at(list, 0);
		r = abx_client_new(&opts, ret, NULL);
	}
	json_object_put(list);
	return r;
}

/* The only cluster a console reaches, or a refusal that lists them. */
static int choose_cluster(const struct cli_args *args, abx_client **client)
{
	json_object *list = clusters_of(*client);
	size_t n = list != NULL ? json_object_array_length(list) : 0;
	char hint[1024] = "say one with --cluster:";
	int r;

	if (n == 1) {
		char *only = strdup(id_at(list, 0));

		json_object_put(list);
		abx_client_free(*client);
		*client = NULL;
		r = only != NULL ? client_of(args, only, client)
				 : cli_fail(NULL, "out of memory");
		free(only);
		return r;
	}
	for (size_t i = 0; i < n; i++)
		snprintf(hint + strlen(hint), sizeof(hint) - strlen(hint), " %s",
			 id_at(list, i));
	json_object_put(list);
	if (n == 0)
		return cli_fail("abx clusters tells why",
				"the clusters behind %s cannot "
				"be listed",
				abx_client_address(*client));
	return cli_fail(hint, "%s has several clusters, and none is chosen",
			abx_client_address(*client));
}

/* An address of one cluster answers for that one only. Not known is not refused. */
static int check_cluster(abx_client *client)
{
	const char *wanted = abx_client_cluster(client), *served = NULL;
	json_object *list = clusters_of(client);
	size_t n = list != NULL ? json_object_array_length(list) : 0;
	char hint[256];
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		json_object *local =
			cli_json_at(json_object_array_get_idx(list, i), "local");
		if (n == 1 || json_object_get_boolean(local))
			served = id_at(list, i);
	}
	if (served != NULL && strcmp(served, wanted) != 0) {
		snprintf(hint, sizeof(hint),
			 "it serves %s; a console reaches others: --endpoint URL",
			 served);
		r = cli_fail(hint, "%s does not serve cluster \"%s\"",
			     abx_client_address(client), wanted);
	}
	json_object_put(list);
	return r;
}

int cli_platform(const struct cli_args *args, abx_client **ret)
{
	int r = cli_client(args, ret);

	if (r != 0)
		return r;
	if (abx_client_console(*ret) != NULL && abx_client_cluster(*ret) == NULL)
		return choose_cluster(args, ret);
	if (abx_client_console(*ret) == NULL && abx_client_cluster(*ret) != NULL)
		return check_cluster(*ret);
	return 0;
}

int cli_fetch(abx_client *client, const struct cli_address *address, const char *path,
	      json_object **ret)
{
	CLI_CLEANUP(cli_textp) char *text = NULL;
	abx_error *err = NULL;

	if (abx_platform_get(client, path, &text, &err) < 0)
		return cli_fail_platform(client, address, NULL, err);
	*ret = json_tokener_parse(text);
	if (*ret == NULL)
		return cli_fail(NULL, "%s answered something that is not JSON", path);
	return 0;
}

int cli_sandbox(const struct cli_args *args, const char *id, abx_client **ret_client,
		abx_sandbox **ret)
{
	abx_error *err = NULL;
	int r;

	if (*ret_client == NULL) {
		r = cli_client(args, ret_client);
		if (r != 0)
			return r;
	}
	r = abx_sandbox_connect(*ret_client, id, NULL, ret, &err);
	if (r == ABX_ENOTFOUND) {
		abx_error_free(err);
		return cli_fail("abx sandboxes lists those that run", "no sandbox \"%s\"",
				id);
	}
	return r < 0 ? cli_fail_error(id, err) : 0;
}

/* ---- signals ---- */

static volatile sig_atomic_t caught;
static abx_client *woken; /* abx_client_wakeup() is async-signal-safe */

static void on_signal(int number)
{
	caught = number;
	if (woken != NULL)
		abx_client_wakeup(woken);
}

static void signals_set(void (*handler)(int), int flags)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

/* The second one ends the program at once. */
void cli_signals_catch(abx_client *client)
{
	caught = 0;
	woken = client;
	signals_set(on_signal, (int)SA_RESETHAND);
}

int cli_signal_caught(void)
{
	return caught;
}

void cli_signals_release(void)
{
	signals_set(SIG_DFL, 0);
	woken = NULL;
}

/* ---- a new sandbox ---- */

struct creation {
	bool done;
	int r;
	abx_sandbox *sandbox;
};

static void on_created(void *userdata, int r, abx_sandbox *sandbox, const abx_error *err)
{
	struct creation *creation = userdata;

	creation->done = true;
	creation->r = r;
	creation->sandbox = sandbox;
	if (r < 0 && r != ABX_ECANCELED)
		cli_fail(abx_error_hint(err), "%s", abx_error_message(err));
}

/* Waits for it; a signal cancels, and the library then kills what was made too late. */
static void creation_wait(abx_client *client, struct creation *creation, abx_op *op)
{
	bool cancelled = false;

	while (!creation->done) {
		if (cli_signal_caught() != 0 && !cancelled) {
			abx_op_cancel(op);
			cancelled = true;
		}
		int r = abx_client_wait(client, ABX_NO_TIMEOUT, NULL);
		if (r < 0 || (r == 0 && !creation->done))
			break;
	}
}

int cli_sandbox_create(const struct cli_args *args, abx_client *client, abx_sandbox **ret)
{
	abx_sandbox_options opts = ABX_SANDBOX_OPTIONS_INIT;
	struct creation creation = { 0 };
	abx_error *err = NULL;
	abx_op *op = NULL;

	opts.template_id = args->template_id;
	opts.env_vars = args->n_env_vars > 0 ? args->env_vars : NULL;
	opts.metadata = args->n_metadata > 0 ? args->metadata : NULL;
	opts.image = args->image;
	opts.auto_resume = args->auto_resume;
	if (args->on_timeout != NULL && strcmp(args->on_timeout, "pause") == 0)
		opts.on_timeout = ABX_ON_TIMEOUT_PAUSE;
	else if (args->on_timeout != NULL && strcmp(args->on_timeout, "kill") != 0)
		return cli_fail("--on-timeout kill, --on-timeout pause",
				"--on-timeout is kill or pause, not \"%s\"",
				args->on_timeout);
	if (args->timeout != NULL) {
		int r = cli_args_timeout(args->timeout, &opts.timeout_ms);
		if (r != 0)
			return r;
	}
	cli_signals_catch(client);
	if (abx_sandbox_create_async(client, &opts, on_created, &creation, NULL, &op,
				     &err) < 0) {
		cli_signals_release();
		return cli_fail_error(NULL, err);
	}
	creation_wait(client, &creation, op);
	abx_op_free(op);
	cli_signals_release();
	if (!creation.done || creation.r == ABX_ECANCELED)
		return cli_fail(NULL, "interrupted; no sandbox was kept");
	if (creation.r < 0)
		return 1;
	*ret = creation.sandbox;
	return 0;
}

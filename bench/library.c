/*
 * library.c - a client of the library for the rows that go through it.
 */
#include "library.h"

#include <stdio.h>

void library_die(const char *what, int r, const abx_error *err)
{
	rig_die("%s: %s: %s", what, abx_error_name(r),
		err ? abx_error_message(err) : "no more is known");
}

abx_client *library_client(const bench_rig *rig)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
	abx_client *client = NULL;
	abx_error *err = NULL;
	int r;

	opts.cluster_api = rig->url;
	opts.api_key = rig->key;
	opts.flags =
		ABX_CLIENT_NO_ENVIRONMENT | ABX_CLIENT_NO_CONTEXT | ABX_CLIENT_NO_START;
	r = abx_client_new(&opts, &client, &err);
	if (r < 0)
		library_die("client", r, err);
	return client;
}

abx_sandbox *library_sandbox(abx_client *client, const char *env)
{
	abx_sandbox_options opts = ABX_SANDBOX_OPTIONS_INIT;
	abx_sandbox *sandbox = NULL;
	abx_error *err = NULL;
	int r;

	opts.template_id = env;
	opts.timeout_ms = 600000;
	r = abx_sandbox_create(client, &opts, &sandbox, &err);
	if (r < 0)
		library_die("create", r, err);
	return sandbox;
}

void library_sh(abx_sandbox *sandbox, const char *line)
{
	abx_command_result *result = NULL;
	abx_error *err = NULL;
	int r = abx_command_run(sandbox, line, NULL, &result, &err);

	if (r < 0)
		library_die(line, r, err);
	if (result->exit_code != 0)
		rig_die("%s: exit %d: %s", line, result->exit_code, result->err);
	abx_command_result_free(result);
}

void library_pump(abx_client *client, const int *left)
{
	abx_error *err = NULL;

	while (*left > 0) {
		int r = abx_client_wait(client, 60000, &err);

		if (r < 0)
			library_die("wait", r, err);
	}
}

/*
 * many-sandboxes.c - N sandboxes at once on one thread: each is created, runs a command
 * and is killed; the completions are the only flow. Usage: many-sandboxes [N]
 */
#include <agentbox/agentbox.h>
#include <stdio.h>
#include <stdlib.h>

static int done_count, failed_count;

static void failed(const char *what, int r, const abx_error *err)
{
	failed_count++;
	fprintf(stderr, "%s: %s: %s\n", what, abx_error_name(r), abx_error_message(err));
}

static void on_end(void *sandbox, int r, abx_command_result *result, const abx_error *err)
{
	if (r < 0 || result->exit_code != 0)
		failed("run", r, err);
	else
		printf("%3d  %s  %s", ++done_count, abx_sandbox_id(sandbox), result->out);
	abx_command_result_free(result);
	abx_sandbox_kill_async(sandbox, NULL, NULL, NULL, NULL, NULL);
	abx_sandbox_free(sandbox);
}

static void on_created(void *unused, int r, abx_sandbox *sandbox, const abx_error *err)
{
	(void)unused;
	if (r >= 0)
		r = abx_command_run_async(sandbox, "hostname; exit 0", NULL, on_end,
					  sandbox, NULL, NULL, NULL);
	if (r < 0) {
		failed("create", r, err);
		abx_sandbox_free(sandbox);
	}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
	abx_client *client = NULL;
	abx_error *err = NULL;
	int r = abx_client_new(NULL, &client, &err);

	for (long i = 0; r >= 0 && i < n; i++)
		r = abx_sandbox_create_async(client, NULL, on_created, NULL, NULL, NULL,
					     &err);
	while (r >= 0 && abx_client_wait(client, ABX_NO_TIMEOUT, NULL) > 0)
		;
	if (r < 0)
		failed("client", r, err);
	abx_error_free(err);
	abx_client_free(client);
	printf("%d of %ld sandboxes did it\n", done_count, n);
	return failed_count != 0;
}

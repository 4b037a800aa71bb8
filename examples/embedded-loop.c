/*
 * embedded-loop.c - the library inside a program's own poll(2) loop: create a sandbox,
 * stream a command's output, kill it, all from callbacks. Usage: embedded-loop
 */
#include <agentbox/agentbox.h>
#include <poll.h>
#include <stdio.h>

static void tell(const char *what, int r, const abx_error *err)
{
	if (r < 0)
		fprintf(stderr, "%s: %s\n", what, abx_error_message(err));
}

static int on_output(void *userdata, const char *data, size_t len)
{
	return fwrite(data, 1, len, userdata) == len ? ABX_OK : ABX_EIO;
}

static void on_end(void *sandbox, int r, abx_command_result *result, const abx_error *err)
{
	tell("run", r, err);
	if (r >= 0)
		printf("exit code %d\n", result->exit_code);
	abx_command_result_free(result);
	abx_sandbox_kill_async(sandbox, NULL, NULL, NULL, NULL, NULL);
	abx_sandbox_free(sandbox);
}

static void on_created(void *unused, int r, abx_sandbox *sandbox, const abx_error *err)
{
	abx_command_options how = ABX_COMMAND_OPTIONS_INIT;

	(void)unused;
	tell("create", r, err);
	how.on_stdout = how.on_stderr = on_output;
	how.userdata = stdout;
	if (r >= 0)
		abx_command_run_async(sandbox, "echo one; sleep 1; echo two", &how,
				      on_end, sandbox, NULL, NULL, NULL);
}

int main(void)
{
	abx_client *client = NULL;
	abx_error *err = NULL;
	int r = abx_client_new(NULL, &client, &err);

	if (r >= 0)
		r = abx_sandbox_create_async(client, NULL, on_created, 0, 0, 0, &err);
	while (r >= 0 && (r = abx_client_process(client, &err)) > 0) {
		struct pollfd p = { abx_client_fd(client), POLLIN, 0 }; /* and yours */
		poll(&p, 1, abx_client_timeout_ms(client));
	}
	tell("client", r, err);
	abx_error_free(err);
	abx_client_free(client);
	return r < 0;
}

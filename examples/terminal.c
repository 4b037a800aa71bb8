/* terminal.c - a program types into a terminal in a sandbox, whose directory is watched.
 */
#include <agentbox/agentbox.h>
#include <stdio.h>

static int show(void *unused, const char *data, size_t len)
{
	(void)unused;
	return fwrite(data, 1, len, stdout) == len ? ABX_OK : ABX_EIO;
}

static int tell(void *unused, const abx_watch_event *event)
{
	(void)unused;
	if (event->type == ABX_WATCH_CREATE)
		fprintf(stderr, "[new file: %s]\n", event->name);
	return ABX_OK;
}

static int use(abx_sandbox *sandbox, abx_error **err)
{
	static const char keys[] = "echo hello >greeting.txt; stty size; exit 3\n";
	abx_watch_options watching = { .size = sizeof(watching), .on_event = tell };
	abx_pty_options how = { .size = sizeof(how), .on_output = show };
	abx_command_result *result = NULL;
	abx_process *terminal = NULL;
	abx_watch *watch = NULL;
	int r;

	if ((r = abx_watch_start(sandbox, "/home/user", &watching, &watch, err)) >= 0 &&
	    (r = abx_pty_start(sandbox, &how, &terminal, err)) >= 0 &&
	    (r = abx_pty_send_input(sandbox, abx_process_pid(terminal), keys,
				    sizeof(keys) - 1, err)) >= 0 &&
	    (r = abx_process_wait(terminal, &result, err)) >= 0)
		printf("exit code %d\n", result->exit_code);
	abx_command_result_free(result);
	abx_process_free(terminal);
	abx_watch_free(watch);
	return r;
}

int main(void)
{
	abx_client *client = NULL;
	abx_sandbox *sandbox = NULL;
	abx_error *err = NULL;
	int r;

	if ((r = abx_client_new(NULL, &client, &err)) < 0 ||
	    (r = abx_sandbox_create(client, NULL, &sandbox, &err)) < 0 ||
	    (r = use(sandbox, &err)) < 0)
		fprintf(stderr, "error: %s\n", abx_error_message(err));
	if (sandbox)
		abx_sandbox_kill(sandbox, NULL);
	abx_sandbox_free(sandbox);
	abx_client_free(client);
	abx_error_free(err);
	return r < 0;
}

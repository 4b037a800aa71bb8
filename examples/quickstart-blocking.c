/*
 * quickstart-blocking.c - one sandbox with blocking calls: run a command, write and read
 * a file. The platform is found as agentbox/client.h says. Usage: quickstart-blocking
 */
#include <agentbox/agentbox.h>
#include <stdio.h>
#include <string.h>

static int use(abx_sandbox *sandbox, abx_error **err)
{
	static const char program[] = "print(sum(range(101)))\n";
	abx_command_result *result = NULL;
	char *text = NULL;
	int r;

	r = abx_file_write(sandbox, "sum.py", program, strlen(program), NULL, err);
	if (r < 0)
		return r;
	r = abx_command_run(sandbox, "python3 sum.py | tee sum.txt", NULL, &result, err);
	if (r < 0)
		return r;
	printf("exit code %d, output: %s", result->exit_code, result->out);
	abx_command_result_free(result);
	r = abx_file_read(sandbox, "sum.txt", NULL, &text, NULL, err);
	if (r < 0)
		return r;
	printf("sum.txt: %s", text);
	abx_free(text);
	return ABX_OK;
}

int main(void)
{
	abx_client *client = NULL;
	abx_sandbox *sandbox = NULL;
	abx_error *err = NULL;
	int r;

	r = abx_client_new(NULL, &client, &err);
	if (r >= 0)
		r = abx_sandbox_create(client, NULL, &sandbox,
				       &err); /* from the env "base" */
	if (r >= 0) {
		r = use(sandbox, &err);
		abx_sandbox_kill(sandbox, NULL);
	}
	if (r < 0)
		fprintf(stderr, "%s: %s\n", abx_error_name(r), abx_error_message(err));
	if (abx_error_hint(err))
		fprintf(stderr, "%s\n", abx_error_hint(err));
	abx_error_free(err);
	abx_sandbox_free(sandbox);
	abx_client_free(client);
	return r < 0;
}

/*
 * Claims a sandbox, puts a Python program and a file into it, runs the program, fetches
 * what it wrote. Usage: quickstart PROGRAM.py INPUT     (the platform: as
 * agentbox/client.h finds it)
 */
#include <agentbox/agentbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int print(void *userdata, const char *data, size_t len)
{
	return fwrite(data, 1, len, userdata) == len ? ABX_OK : ABX_EIO;
}

static int read_file(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	*ret_len = fread(buf, 1, size, userdata);
	return ferror((FILE *)userdata) ? ABX_EIO : ABX_OK;
}

#define TRY(call)       \
	if ((call) < 0) \
	goto failed

int main(int argc, char **argv)
{
	abx_command_options how = ABX_COMMAND_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_sandbox *sandbox = NULL;
	abx_client *client = NULL;
	abx_error *err = NULL;
	char *text = NULL;
	double start;
	int code = 1;

	FILE *program = argc == 3 ? fopen(argv[1], "r") : NULL;
	FILE *input = argc == 3 ? fopen(argv[2], "r") : NULL;
	if (program == NULL || input == NULL) {
		fprintf(stderr, "usage: %s PROGRAM.py INPUT\n", argv[0]);
		return 2;
	}
	TRY(abx_client_new(NULL, &client, &err));
	start = now_ms();
	TRY(abx_sandbox_create(client, NULL, &sandbox, &err)); /* from the env "base" */
	printf("sandbox %s in %.1f ms\n", abx_sandbox_id(sandbox), now_ms() - start);
	TRY(abx_file_write_stream(sandbox, "program.py", NULL, read_file, program, &err));
	TRY(abx_file_write_stream(sandbox, "input.txt", NULL, read_file, input, &err));
	how.on_stdout = how.on_stderr = print;
	how.userdata = stdout;
	start = now_ms();
	TRY(abx_command_run(sandbox, "python3 program.py input.txt output.json", &how,
			    &result, &err));
	printf("exit code %d after %.1f ms\n", result->exit_code, now_ms() - start);
	TRY(abx_file_read(sandbox, "output.json", NULL, &text, NULL, &err));
	printf("output.json: %s", text);
	code = result->exit_code;
failed:
	if (err != NULL)
		fprintf(stderr, "error: %s\n%s\n", abx_error_message(err),
			abx_error_hint(err) ? abx_error_hint(err) : "");
	if (sandbox != NULL)
		abx_sandbox_kill(sandbox, NULL);
	abx_free(text);
	abx_command_result_free(result);
	abx_sandbox_free(sandbox);
	abx_client_free(client);
	abx_error_free(err);
	return code;
}

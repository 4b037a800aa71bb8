/*
 * code-interpreter.c - cells that keep their state: output as it comes, results, a plot.
 * Usage: code-interpreter [ENV]
 */
#include <agentbox/agentbox.h>
#include <stdio.h>

static int print(void *userdata, const char *data, size_t len)
{
	(void)userdata;
	fwrite(data, 1, len, stdout);
	return ABX_OK;
}

static int run(abx_sandbox *sandbox, const char *code, abx_error **err)
{
	abx_code_options how = ABX_CODE_OPTIONS_INIT;
	abx_code_execution *cell = NULL;
	int r;

	how.on_stdout = print;
	r = abx_code_run(sandbox, code, &how, &cell, err);
	if (r < 0)
		return r;
	if (cell->error_name)
		printf("%s: %s\n", cell->error_name, cell->error_value);
	for (size_t i = 0; i < cell->result_count; i++)
		printf("%s%s\n", cell->results[i].text,
		       cell->results[i].png ? ", a picture" : "");
	abx_code_execution_free(cell);
	return ABX_OK;
}

int main(int argc, char **argv)
{
	abx_sandbox_options what = ABX_SANDBOX_OPTIONS_INIT;
	abx_client *client = NULL;
	abx_sandbox *sandbox = NULL;
	abx_error *err = NULL;
	int r = abx_client_new(NULL, &client, &err);

	what.template_id = argc > 1 ? argv[1] : "code-interpreter-v1";
	if (r >= 0)
		r = abx_sandbox_create(client, &what, &sandbox, &err);
	if (r >= 0)
		r = run(sandbox, "for i in range(3): print('step', i)\nx = 41", &err);
	if (r >= 0)
		r = run(sandbox, "x + 1", &err);
	if (r >= 0)
		r = run(sandbox, "import pylab; pylab.plot([1, 2]); pylab.show()", &err);
	if (r < 0)
		fprintf(stderr, "error: %s\n", abx_error_message(err));
	if (sandbox)
		abx_sandbox_kill(sandbox, NULL);
	abx_sandbox_free(sandbox);
	abx_client_free(client);
	abx_error_free(err);
	return r < 0;
}

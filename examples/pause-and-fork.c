/* pause-and-fork.c - a sandbox, prepared once, forked for three tries, paused meanwhile.
 */
#include <agentbox/agentbox.h>
#include <stdio.h>

static int try_one(abx_sandbox *sandbox, abx_error **err)
{
	abx_command_result *result = NULL;
	int r = abx_command_run(sandbox, "cat data.txt; echo mine >>data.txt", NULL,
				&result, err);

	if (r >= 0)
		printf("%s: %s", abx_sandbox_id(sandbox), result->out);
	abx_command_result_free(result);
	abx_sandbox_kill(sandbox, NULL);
	return r;
}

static int use(abx_sandbox *sandbox, abx_error **err)
{
	abx_fork_options how = { .size = sizeof(how), .count = 3 };
	abx_forks *forks = NULL;
	int r;

	if ((r = abx_file_write(sandbox, "data.txt", "prepared\n", 9, NULL, err)) >= 0 &&
	    (r = abx_sandbox_fork(sandbox, &how, &forks, err)) >= 0)
		r = abx_sandbox_pause(sandbox, NULL, err);
	for (size_t i = 0; r >= 0 && i < abx_forks_count(forks); i++) {
		const abx_fork *fork = abx_forks_at(forks, i);

		if (fork->sandbox)
			r = try_one(fork->sandbox, err);
		else
			fprintf(stderr, "fork: %s\n", abx_error_message(fork->err));
	}
	if (r >= 0 && (r = abx_sandbox_resume(sandbox, NULL, err)) >= 0)
		r = try_one(sandbox, err);
	abx_forks_free(forks);
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

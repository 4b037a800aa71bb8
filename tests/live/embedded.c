/*
 * embedded.c - for embed.py: a program that knows nothing of the platform and is no easy
 * host: it ignores SIGCHLD, blocks signals and has descriptors open that its children
 * inherit. Creates asynchronously, runs a command, kills. Tells the library's log.
 */
#include <agentbox/agentbox.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void on_log(void *userdata, int level, const char *text, const char *fields)
{
	fprintf(userdata, "log %d %s %s\n", level, text, fields);
}

static int fail(const char *what, const abx_error *err)
{
	printf("%s: %d %s\nhint: %s\n", what, abx_error_code(err), abx_error_message(err),
	       abx_error_hint(err) != NULL ? abx_error_hint(err) : "");
	return 1;
}

struct state {
	abx_sandbox *sandbox;
	int code;
};

static void on_created(void *userdata, int r, abx_sandbox *sandbox, const abx_error *err)
{
	struct state *state = userdata;

	state->sandbox = sandbox;
	state->code = r < 0 ? fail("create", err) : 0;
}

static void be_difficult(void)
{
	sigset_t some;

	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&some);
	sigaddset(&some, SIGTERM);
	sigprocmask(SIG_BLOCK, &some, NULL);
	fcntl(1, F_DUPFD, 100); /* inherited by whatever is started */
}

int main(void)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
	abx_command_result *result = NULL;
	struct state state = { NULL, 1 };
	abx_client *client = NULL;
	abx_error *err = NULL;
	int r;

	be_difficult();
	opts.log = on_log;
	opts.log_userdata = stdout;
	opts.log_level = ABX_LOG_INFO;
	if (abx_client_new(&opts, &client, &err) < 0)
		return fail("client", err);
	r = abx_sandbox_create_async(client, NULL, on_created, &state, NULL, NULL, &err);
	while (r >= 0 && (r = abx_client_wait(client, ABX_NO_TIMEOUT, &err)) > 0)
		;
	if (r < 0)
		return fail("create", err);
	if (state.code == 0 && abx_command_run(state.sandbox, "echo from $(whoami)", NULL,
					       &result, &err) < 0)
		state.code = fail("run", err);
	if (result != NULL)
		printf("%s", result->out);
	if (state.code == 0 && abx_sandbox_kill(state.sandbox, &err) < 0)
		state.code = fail("kill", err);
	abx_command_result_free(result);
	abx_sandbox_free(state.sandbox);
	abx_client_free(client);
	abx_error_free(err);
	return state.code;
}

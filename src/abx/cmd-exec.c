/*
 * src/abx/cmd-exec.c - `abx exec` and `abx run`: a command in a sandbox, its streams and
 * its exit code passed on.
 *
 * One poll loop: the client's descriptor beside stdin. At most one piece of input is
 * under way; output is written as it comes. The first signal kills the command in the
 * sandbox and ends with 128 + its number. So does output that cannot be written: quietly
 * with 128 + SIGPIPE when nobody reads it any more, as a program here would end.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define INPUT_BYTES (64 * 1024)

struct execution {
	abx_client *client;
	abx_sandbox *sandbox;
	abx_process *process;
	bool input;   /* stdin is still to be read */
	bool sending; /* a piece is under way */
	bool done;
	bool quiet; /* a signal ends it: no word about how the command ended */
	int broken; /* errno of output that could not be written; 0: none */
	int exit_code;
};

static int pass_on(struct execution *x, int fd, const char *data, size_t len)
{
	if (cli_write_all(fd, data, len) == ABX_OK)
		return ABX_OK;
	x->broken = errno;
	return ABX_EIO;
}

static int on_stdout(void *userdata, const char *data, size_t len)
{
	return pass_on(userdata, STDOUT_FILENO, data, len);
}

static int on_stderr(void *userdata, const char *data, size_t len)
{
	return pass_on(userdata, STDERR_FILENO, data, len);
}

static void on_end(void *userdata, int r, abx_command_result *result,
		   const abx_error *err)
{
	struct execution *x = userdata;

	x->done = true;
	if (x->quiet || x->broken != 0)
		x->exit_code = 1;
	else if (r < 0)
		x->exit_code =
			cli_fail(abx_error_hint(err), "%s", abx_error_message(err));
	else
		x->exit_code = cli_exit_code(result);
	abx_command_result_free(result);
}

/* A command that ended, or closed its input, takes no more: that is no failure of ours.
 */
static void on_sent(void *userdata, int r, const abx_error *err)
{
	struct execution *x = userdata;

	x->sending = false;
	if (r < 0) {
		x->input = false;
		if (r != ABX_ENOTFOUND && r != ABX_ESTATE && r != ABX_ECANCELED &&
		    !x->done)
			cli_fail(abx_error_hint(err), "stdin: %s",
				 abx_error_message(err));
	}
}

static void send_input(struct execution *x)
{
	char buf[INPUT_BYTES];
	uint32_t pid = abx_process_pid(x->process);
	abx_error *err = NULL;
	int r;

	ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	x->sending = true;
	if (n > 0) {
		r = abx_command_send_stdin_async(x->sandbox, pid, buf, (size_t)n, on_sent,
						 x, NULL, NULL, &err);
	} else {
		x->input = false;
		r = abx_command_close_stdin_async(x->sandbox, pid, on_sent, x, NULL, NULL,
						  &err);
	}
	if (r < 0) {
		x->sending = false;
		x->input = false;
		cli_fail_error("stdin", err);
	}
}

/* What it says of its own end is not news then. */
static int interrupted(struct execution *x)
{
	x->quiet = true;
	abx_command_kill(x->sandbox, abx_process_pid(x->process), NULL);
	return 128 + cli_signal_caught();
}

/* The command would go on writing for nobody. */
static int unread(struct execution *x)
{
	abx_command_kill(x->sandbox, abx_process_pid(x->process), NULL);
	if (x->broken == EPIPE)
		return 128 + SIGPIPE;
	return cli_fail(NULL, "the output could not be written: %s", strerror(x->broken));
}

static int loop(struct execution *x)
{
	while (!x->done) {
		bool reads = x->input && !x->sending;
		struct pollfd fds[2] = { { abx_client_fd(x->client), POLLIN, 0 },
					 { STDIN_FILENO, POLLIN, 0 } };

		if (cli_signal_caught() != 0)
			return interrupted(x);
		int r = poll(fds, reads ? 2 : 1, abx_client_timeout_ms(x->client));
		if (r < 0 && errno != EINTR)
			return cli_fail(NULL, "poll: %s", strerror(errno));
		if (reads && r > 0 && fds[1].revents != 0)
			send_input(x);
		abx_error *err = NULL;
		if (abx_client_process(x->client, &err) < 0)
			return cli_fail_error(NULL, err);
	}
	return x->broken != 0 ? unread(x) : x->exit_code;
}

/* One word with a blank or a shell's sign in it is a line for the shell; otherwise words
 * are the command's own. */
static bool is_shell_line(const char *const *words, size_t n)
{
	return n == 1 && strpbrk(words[0], " \t\n|&;<>()$`*?[") != NULL;
}

static int command_options(const struct cli_args *args, const char *const *words,
			   size_t n, abx_command_options *ret)
{
	ret->argv = is_shell_line(words, n) ? NULL : words;
	ret->user = args->user;
	ret->cwd = args->cwd;
	ret->stdin_open = args->stdin_open || !isatty(STDIN_FILENO);
	ret->on_stdout = on_stdout;
	ret->on_stderr = on_stderr;
	ret->timeout_ms = ABX_NO_TIMEOUT;
	return args->timeout != NULL ? cli_args_timeout(args->timeout, &ret->timeout_ms)
				     : 0;
}

static int execute(const struct cli_args *args, abx_client *client, abx_sandbox *sandbox,
		   const char *const *words, size_t n, const char *const *env_vars)
{
	/* One a program, and never gone: the last piece of input, or the end of a command
	 * that a signal cut short, may be told of as late as when the client is freed. */
	static struct execution x;
	abx_command_options opts = ABX_COMMAND_OPTIONS_INIT;
	abx_error *err = NULL;
	int r;

	x = (struct execution){ .client = client, .sandbox = sandbox };
	r = command_options(args, words, n, &opts);
	if (r != 0)
		return r;
	opts.env_vars = env_vars;
	opts.userdata = &x;
	signal(SIGPIPE, SIG_IGN);
	cli_signals_catch(client);
	r = abx_command_start(sandbox, opts.argv == NULL ? words[0] : NULL, &opts,
			      &x.process, &err);
	if (r < 0) {
		cli_signals_release();
		return cli_fail_error(words[0], err);
	}
	x.input = opts.stdin_open != 0;
	r = abx_process_wait_async(x.process, on_end, &x, NULL, NULL, &err);
	r = r < 0 ? cli_fail_error(words[0], err) : loop(&x);
	cli_signals_release();
	abx_process_free(x.process);
	return r;
}

int cmd_exec(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	int r;

	if (args->n_words < 2)
		return cli_fail("abx exec ID -- COMMAND [ARGUMENT...]",
				"exec needs a sandbox and a command");
	r = cli_sandbox(args, args->words[0], &client, &sandbox);
	if (r != 0)
		return r;
	return execute(args, client, sandbox, args->words + 1, args->n_words - 1,
		       args->n_env_vars > 0 ? args->env_vars : NULL);
}

int cmd_run(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	struct cli_args creation = *args;
	int r;

	if (args->n_words == 0)
		return cli_fail("abx run [--template NAME] -- COMMAND [ARGUMENT...]",
				"run needs a command");
	r = cli_client(args, &client);
	if (r != 0)
		return r;
	creation.timeout = NULL; /* here the command's time; the sandbox has traffic as
				    long as it runs */
	r = cli_sandbox_create(&creation, client, &sandbox);
	if (r != 0)
		return r;
	r = execute(args, client, sandbox, args->words, args->n_words, NULL);
	abx_error *err = NULL;
	if (abx_sandbox_kill(sandbox, &err) < 0)
		cli_fail_error(abx_sandbox_id(sandbox), err);
	return r;
}

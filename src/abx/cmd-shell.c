/*
 * src/abx/cmd-shell.c - `abx shell`: a terminal of a sandbox in ours.
 *
 * One poll loop: the client's descriptor beside stdin. One piece of input and one change
 * of size are under way at most; keys typed meanwhile wait in our terminal. What was
 * typed goes to the sandbox as it is, Ctrl-C included, but for the escape: '~' at the
 * begin of a line, as ssh has it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "terminal.h"

#define INPUT_BYTES 4096

static const char escapes[] = "\r\n~.  ends this shell and leaves\r\n"
			      "~~  types a ~\r\n~?  this text\r\n";

enum escape { AT_BEGIN, AT_TILDE, IN_LINE };

struct shell {
	abx_client *client;
	abx_sandbox *sandbox;
	abx_process *process;
	uint32_t pid;
	enum escape escape;
	bool is_sending, is_resizing;
	bool leaves; /* ~. was typed */
	bool is_done;
	int exit_code;
};

static int on_output(void *userdata, const char *data, size_t len)
{
	(void)userdata;
	return cli_write_all(STDOUT_FILENO, data, len);
}

static void on_end(void *userdata, int r, abx_command_result *result,
		   const abx_error *err)
{
	struct shell *shell = userdata;

	cli_terminal_restore();
	if (!shell->is_done && r < 0)
		shell->exit_code =
			cli_fail(abx_error_hint(err), "%s", abx_error_message(err));
	else if (!shell->is_done)
		shell->exit_code = cli_exit_code(result);
	shell->is_done = true;
	abx_command_result_free(result);
}

/* ---- what is typed ---- */

/* Takes the escapes out of what was typed. */
static size_t filter(struct shell *shell, const char *in, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len && !shell->leaves; i++) {
		char c = in[i];

		if (shell->escape == AT_BEGIN && c == '~') {
			shell->escape = AT_TILDE;
			continue;
		}
		if (shell->escape == AT_TILDE && c == '.') {
			shell->leaves = true;
			continue;
		}
		if (shell->escape == AT_TILDE && c == '?') {
			cli_write_all(STDERR_FILENO, escapes, sizeof(escapes) - 1);
			shell->escape = AT_BEGIN;
			continue;
		}
		if (shell->escape == AT_TILDE && c != '~')
			out[n++] = '~';
		out[n++] = c;
		shell->escape = c == '\r' || c == '\n' ? AT_BEGIN : IN_LINE;
	}
	return n;
}

/* A shell that ended takes no more: that is no failure of ours. */
static void on_sent(void *userdata, int r, const abx_error *err)
{
	struct shell *shell = userdata;

	(void)r;
	(void)err;
	shell->is_sending = false;
}

static void on_resized(void *userdata, int r, const abx_error *err)
{
	struct shell *shell = userdata;

	(void)r;
	(void)err;
	shell->is_resizing = false;
}

static void read_keys(struct shell *shell)
{
	char in[INPUT_BYTES], out[2 * INPUT_BYTES];
	ssize_t n = read(STDIN_FILENO, in, sizeof(in));
	size_t len;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* the terminal is gone */
		raise(SIGHUP);
		return;
	}
	len = filter(shell, in, (size_t)n, out);
	if (len == 0)
		return;
	shell->is_sending =
		abx_pty_send_input_async(shell->sandbox, shell->pid, out, len, on_sent,
					 shell, NULL, NULL, NULL) >= 0;
}

static void resize(struct shell *shell)
{
	uint32_t cols, rows;

	cli_terminal_size(&cols, &rows);
	if (cols != 0 && rows != 0)
		shell->is_resizing =
			abx_pty_resize_async(shell->sandbox, shell->pid, cols, rows,
					     on_resized, shell, NULL, NULL, NULL) >= 0;
}

/* ---- the loop ---- */

/* Ends it from our side: the shell inside does not outlive its terminal. */
static int leave(struct shell *shell, int exit_code)
{
	cli_terminal_restore();
	if (abx_command_kill(shell->sandbox, shell->pid, NULL) < 0)
		cli_fail(NULL, "the shell in the sandbox may run on, as process %u",
			 shell->pid);
	shell->is_done = true;
	fprintf(stderr, "\nleft sandbox %s\n", abx_sandbox_id(shell->sandbox));
	return exit_code;
}

static int loop(struct shell *shell)
{
	while (!shell->is_done) {
		bool reads = !shell->is_sending;
		struct pollfd fds[2] = { { abx_client_fd(shell->client), POLLIN, 0 },
					 { STDIN_FILENO, POLLIN, 0 } };

		if (cli_terminal_signal() != 0)
			return leave(shell, 128 + cli_terminal_signal());
		if (shell->leaves)
			return leave(shell, 0);
		if (!shell->is_resizing && cli_terminal_was_resized())
			resize(shell);
		int r = poll(fds, reads ? 2 : 1, abx_client_timeout_ms(shell->client));
		if (r < 0 && errno != EINTR)
			return cli_fail(NULL, "poll: %s", strerror(errno));
		if (reads && r > 0 && fds[1].revents != 0)
			read_keys(shell);
		abx_error *err = NULL;
		if (abx_client_process(shell->client, &err) < 0)
			return cli_fail_error(NULL, err);
	}
	return shell->exit_code;
}

static int start(const struct cli_args *args, struct shell *shell)
{
	abx_pty_options opts = ABX_PTY_OPTIONS_INIT;
	abx_error *err = NULL;

	cli_terminal_size(&opts.cols, &opts.rows);
	opts.user = args->user;
	opts.cwd = args->cwd;
	opts.env_vars = args->n_env_vars > 0 ? args->env_vars : NULL;
	opts.argv = args->n_words > 1 ? args->words + 1 : NULL;
	opts.on_output = on_output;
	if (abx_pty_start(shell->sandbox, &opts, &shell->process, &err) < 0 ||
	    abx_process_wait_async(shell->process, on_end, shell, NULL, NULL, &err) < 0)
		return cli_fail_error(NULL, err);
	shell->pid = abx_process_pid(shell->process);
	return 0;
}

int cmd_shell(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	struct shell shell = { .exit_code = 1 };
	int r;

	if (args->n_words == 0)
		return cli_fail("abx shell ID [-- COMMAND [ARGUMENT...]]",
				"shell needs a sandbox");
	if (!isatty(STDIN_FILENO))
		return cli_fail("abx exec ID -- COMMAND runs one without",
				"shell needs a terminal on stdin");
	r = cli_sandbox(args, args->words[0], &client, &sandbox);
	if (r != 0)
		return r;
	shell.client = client;
	shell.sandbox = sandbox;
	r = start(args, &shell);
	if (r == 0)
		r = cli_terminal_raw(client);
	if (r == 0)
		r = loop(&shell);
	cli_terminal_restore();
	abx_process_free(shell.process);
	return r;
}

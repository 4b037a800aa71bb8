/*
 * src/abx/terminal.c - raw mode, and every way out of it.
 *
 * A terminal left raw is useless to its owner, so it is put back by atexit(), by each
 * signal that ends or stops the program, and by those of a crash. All handlers use
 * async-signal-safe calls alone.
 */
#include "terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli.h"

static struct termios before, raw;
static volatile sig_atomic_t is_raw, ended_by, resized;
static abx_client *woken; /* abx_client_wakeup() is async-signal-safe */

void cli_terminal_restore(void)
{
	if (!is_raw)
		return;
	is_raw = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void make_raw(void)
{
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0)
		is_raw = 1;
}

static void set_handler(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

/* As if it had not been caught: the program ends or stops by it. */
static void take_default(int number)
{
	sigset_t set;

	set_handler(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
}

static void on_end(int number)
{
	int saved = errno;

	if (ended_by != 0) {
		cli_terminal_restore();
		take_default(number);
	}
	ended_by = number;
	abx_client_wakeup(woken);
	errno = saved;
}

static void on_crash(int number)
{
	cli_terminal_restore();
	take_default(number);
}

static void on_resize(int number)
{
	int saved = errno;

	(void)number;
	resized = 1;
	abx_client_wakeup(woken);
	errno = saved;
}

/* Back from a stop: who ran meanwhile may have changed mode and size. */
static void on_continue(int number)
{
	int saved = errno;

	make_raw();
	on_resize(number);
	errno = saved;
}

static void on_stop(int number)
{
	int saved = errno;

	cli_terminal_restore();
	take_default(number);
	set_handler(number, on_stop);
	on_continue(number);
	errno = saved;
}

static void catch_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	static const int crashes[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		set_handler(ends[i], on_end);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		set_handler(crashes[i], on_crash);
	set_handler(SIGTSTP, on_stop);
	set_handler(SIGCONT, on_continue);
	set_handler(SIGWINCH, on_resize);
	set_handler(SIGPIPE, SIG_IGN);
}

int cli_terminal_raw(abx_client *client)
{
	if (tcgetattr(STDIN_FILENO, &before) != 0)
		return cli_fail(NULL, "stdin: its mode cannot be read: %s",
				strerror(errno));
	raw = before;
	cfmakeraw(&raw);
	woken = client;
	atexit(cli_terminal_restore);
	catch_signals();
	resized = 1; /* it may have been since its size was asked for */
	make_raw();
	return is_raw ? 0
		      : cli_fail(NULL, "stdin: the terminal cannot be made raw: %s",
				 strerror(errno));
}

int cli_terminal_signal(void)
{
	return ended_by;
}

bool cli_terminal_was_resized(void)
{
	bool was = resized != 0;

	resized = 0;
	return was;
}

void cli_terminal_size(uint32_t *cols, uint32_t *rows)
{
	struct winsize size = { 0 };

	ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
	*cols = size.ws_col;
	*rows = size.ws_row;
}

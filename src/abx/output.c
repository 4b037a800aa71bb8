/*
 * src/abx/output.c - errors, as people read them: "error: ..." and then what to do, on
 * stderr; and what a command in a sandbox wrote and how it ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli.h"

int cli_fail(const char *hint, const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("error: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (hint != NULL)
		fprintf(stderr, "%s\n", hint);
	return 1;
}

int cli_fail_error(const char *what, abx_error *err)
{
	const char *message = err != NULL ? abx_error_message(err) : "operation failed";

	if (what != NULL && *what)
		cli_fail(err != NULL ? abx_error_hint(err) : NULL, "%s: %s", what,
			 message);
	else
		cli_fail(err != NULL ? abx_error_hint(err) : NULL, "%s", message);
	abx_error_free(err);
	return 1;
}

int cli_write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ABX_EIO;
		data += n;
		len -= (size_t)n;
	}
	return ABX_OK;
}

int cli_exit_code(const abx_command_result *result)
{
	if (result->exit_code >= 0)
		return result->exit_code & 0xff;
	cli_fail(NULL, "the command was ended by %s",
		 result->error != NULL ? result->error : "a signal");
	return 128 + SIGKILL;
}

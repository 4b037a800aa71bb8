/*
 * src/abx/output.c - errors, as people read them: "error: ..." and then what to do, on
 * stderr.
 */
#include <stdarg.h>
#include <stdio.h>

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

	if (what != NULL)
		cli_fail(err != NULL ? abx_error_hint(err) : NULL, "%s: %s", what,
			 message);
	else
		cli_fail(err != NULL ? abx_error_hint(err) : NULL, "%s", message);
	abx_error_free(err);
	return 1;
}

/*
 * log-lines.h - bytes of a log, cut into lines. Pure; the bytes are foreign. A line over
 * the cap is given as far as it goes, and the rest of it dropped.
 */
#ifndef ABX_SERVE_LOG_LINES_H
#define ABX_SERVE_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define ABX__LOG_LINE_MAX ((size_t)1 << 20)

typedef struct abx__log_lines {
	abx__buf part; /* of a line that has not ended */
	bool dropping; /* the rest of a line that was too long */
	bool cut;      /* some line was */
} abx__log_lines;

/* Without its end ("\n" or "\r\n"); empty lines are not given. Negative stops. */
typedef int (*abx__log_line_fn)(void *userdata, const char *line, size_t len);

/* ABX_OK, ABX_ENOMEM, or what the callback returned. */
int abx__log_lines_feed(abx__log_lines *lines, const char *data, size_t len,
			abx__log_line_fn on_line, void *userdata);
/* The last line, when it has no end. */
int abx__log_lines_finish(abx__log_lines *lines, abx__log_line_fn on_line,
			  void *userdata);
void abx__log_lines_done(abx__log_lines *lines);

/* Where the last `count` lines of the text begin (0: all of it). */
const char *abx__log_lines_tail(const char *text, size_t len, size_t count);

#endif

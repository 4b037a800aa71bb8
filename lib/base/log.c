/*
 * log.c - formatting of log events. A line is capped at 4 KiB; the surplus is cut, never
 * allocated.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define LINE_MAX_BYTES 4096

void abx__log_event(const abx__log *log, int level, const char *text,
		    const char *fields_fmt, ...)
{
	char fields[LINE_MAX_BYTES / 2] = "";
	va_list ap;

	if (!log || !log->write || level < log->level)
		return;
	if (fields_fmt) {
		va_start(ap, fields_fmt);
		vsnprintf(fields, sizeof(fields), fields_fmt, ap);
		va_end(ap);
	}
	log->write(log->userdata, level, text, fields);
}

/* Appends `s` as the inside of a JSON string; stops where the room ends. */
static size_t put_escaped(char *out, size_t size, const char *s)
{
	size_t n = 0;

	for (; *s && n + 7 < size; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\') {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (c < 0x20 || c == 0x7f) {
			n += (size_t)snprintf(out + n, size - n, "\\u%04x", c);
		} else {
			out[n++] = (char)c;
		}
	}
	return n;
}

void abx__log_json_line(void *userdata, int level, const char *text, const char *fields)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	char line[LINE_MAX_BYTES], time[ABX__RFC3339_SIZE];
	size_t n;

	abx__rfc3339_format(abx__wall_ms(), time);
	n = (size_t)snprintf(line, sizeof(line),
			     "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":\"", time,
			     names[level >= 0 && level <= ABX__LOG_ERROR ? level : 1]);
	n += put_escaped(line + n, sizeof(line) / 2 - n, text);
	if (*fields) {
		n += (size_t)snprintf(line + n, sizeof(line) - n, "\",\"fields\":\"");
		n += put_escaped(line + n, sizeof(line) - n - 4, fields);
	}
	memcpy(line + n, "\"}\n", 3);
	if (write((int)(intptr_t)userdata, line, n + 3) < 0)
		return; /* a log that cannot be written has nowhere to complain */
}

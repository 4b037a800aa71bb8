/*
 * log-lines.c - see log-lines.h.
 */
#include "serve/log-lines.h"

#include <string.h>

#include <agentbox/error.h>

static int give(const char *line, size_t len, abx__log_line_fn on_line, void *userdata)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	return len > 0 ? on_line(userdata, line, len) : ABX_OK;
}

/* Of a line: what there is room for. */
static int keep(abx__log_lines *l, const char *data, size_t len)
{
	size_t room = ABX__LOG_LINE_MAX - l->part.len;

	if (l->dropping)
		return ABX_OK;
	if (len > room) {
		l->dropping = l->cut = true;
		len = room;
	}
	l->part.cap = ABX__LOG_LINE_MAX;
	return abx__buf_add(&l->part, data, len) < 0 ? ABX_ENOMEM : ABX_OK;
}

int abx__log_lines_feed(abx__log_lines *l, const char *data, size_t len,
			abx__log_line_fn on_line, void *userdata)
{
	int r = ABX_OK;

	while (r == ABX_OK && len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		r = keep(l, data, n);
		if (r == ABX_OK && end)
			r = abx__log_lines_finish(l, on_line, userdata);
		n += end ? 1 : 0;
		data += n;
		len -= n;
	}
	return r;
}

int abx__log_lines_finish(abx__log_lines *l, abx__log_line_fn on_line, void *userdata)
{
	int r = give(abx__buf_str(&l->part), l->part.len, on_line, userdata);

	abx__buf_clear(&l->part);
	l->dropping = false;
	return r;
}

void abx__log_lines_done(abx__log_lines *l)
{
	abx__buf_done(&l->part);
}

const char *abx__log_lines_tail(const char *text, size_t len, size_t count)
{
	const char *at = text + len;
	size_t lines = 0;

	if (count == 0)
		return text;
	if (at > text && at[-1] == '\n')
		at--;
	while (at > text && !(at[-1] == '\n' && ++lines == count))
		at--;
	return at;
}

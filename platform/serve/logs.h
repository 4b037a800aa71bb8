/*
 * logs.h - a sandbox's log as the E2B API lists it: lines of its container and events of
 * the platform, in the order of time, cut by a query. Pure; the lines are foreign bytes.
 *
 * A line that is a JSON object as our programs write them ({"time", "level", "msg" or
 * "message", "fields"}) says its time and level itself. Of another the time is the one of
 * the line before, and the level is guessed from its first word. Bytes that are no UTF-8
 * become U+FFFD.
 */
#ifndef ABX_SERVE_LOGS_H
#define ABX_SERVE_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "base/map.h"

#define ABX__LOGS_LIMIT_MAX 1000
#define ABX__LOGS_SEARCH_MAX 256
/* Of a container's output this much is looked at, from its end... */
#define ABX__LOGS_TEXT_MAX ((size_t)256 << 10)
/* ... and so many lines of it, of which each is cut at so many bytes. */
#define ABX__LOGS_LINES_MAX 4096
#define ABX__LOGS_LINE_MAX ((size_t)16 << 10)

typedef struct abx__logs_query {
	int64_t from_ms, to_ms; /* wall clock, both ends belong to it */
	unsigned limit;
	bool backward; /* the newest first */
	int level;     /* enum of base/log.h: this one and above */
	char *search;  /* in the message; NULL: any */
} abx__logs_query;

/* `start` (ms) and `limit` of v1; `cursor`, `limit`, `direction`, `level` and `search` of
   v2. `query` may be NULL. ABX_EINVAL names the parameter. */
int abx__logs_query_v1(const char *query, abx__logs_query *ret, abx_error **reterr);
int abx__logs_query_v2(const char *query, abx__logs_query *ret, abx_error **reterr);
void abx__logs_query_done(abx__logs_query *q);

typedef struct abx__logs_line {
	int64_t ms;
	int level;
	const char *logger; /* "main": the container; "sandbox": the platform */
	const char *text;   /* borrowed; not terminated */
	size_t len;
	const abx__map *fields; /* of an event; NULL: a line of the container */
	json_object *json;      /* the line understood; NULL: it is plain */
	size_t seq;
} abx__logs_line;

typedef struct abx__logs {
	abx__logs_line *lines;
	size_t count, size;
} abx__logs;

/* `text`, message and fields are borrowed until abx__logs_done(). */
int abx__logs_add_event(abx__logs *logs, int64_t ms, const char *message,
			const abx__map *fields);
/* `start_ms`: the time of lines before the first that says its own. */
int abx__logs_add_text(abx__logs *logs, const char *text, size_t len, int64_t start_ms);
/* What the query asks for is left, in its order. */
void abx__logs_select(abx__logs *logs, const abx__logs_query *q);
void abx__logs_done(abx__logs *logs);

/* SandboxLogEntry of all; [{timestamp, line}], `line` being JSON of its own with `level`,
   `logger` and `message`. NULL: out of memory. */
json_object *abx__logs_entries(const abx__logs *logs);
json_object *abx__logs_plain(const abx__logs *logs);

#endif

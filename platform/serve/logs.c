/*
 * logs.c - see logs.h.
 */
#include "serve/logs.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "io/json.h"
#include "serve/wire.h"

static const char *const level_names[] = { "debug", "info", "warn", "error" };
#define LEVEL_COUNT (sizeof(level_names) / sizeof(level_names[0]))

/* ---- the query ---- */

/* 1 and the value, 0 when it is absent or empty. */
static int param(const char *query, const char *name, char **ret, abx_error **reterr)
{
	int r = query ? abx__query_get(query, name, ret) : 0;

	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0)
		return abx__error_set(reterr, ABX_EINVAL, "%s is not well encoded", name);
	if (r == 1 && !**ret) {
		abx__free(*ret);
		*ret = NULL;
		return 0;
	}
	return r;
}

static int time_param(const char *query, const char *name, int64_t *ret,
		      abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int r = param(query, name, &text, reterr);

	if (r == 1 && abx__parse_i64(text, 0, INT64_MAX, ret) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s is a time in Unix milliseconds, not \"%s\"",
				      name, text);
	return r;
}

static int limit_param(const char *query, unsigned *ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	uint64_t n = ABX__LOGS_LIMIT_MAX;
	int r = param(query, "limit", &text, reterr);

	if (r == 1 && abx__parse_u64(text, 0, ABX__LOGS_LIMIT_MAX, &n) < 0)
		return abx__error_set(reterr, ABX_EINVAL, "limit is 0 to %d, not \"%s\"",
				      ABX__LOGS_LIMIT_MAX, text);
	*ret = (unsigned)n;
	return r;
}

static int direction_param(const char *query, bool *ret_backward, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int r = param(query, "direction", &text, reterr);

	*ret_backward = !abx__str_eq(text, "forward");
	if (r == 1 && *ret_backward && strcmp(text, "backward") != 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "direction is forward or backward, not \"%s\"",
				      text);
	return r;
}

static int level_of_name(const char *name, size_t len)
{
	for (size_t i = 0; i < LEVEL_COUNT; i++)
		if (strlen(level_names[i]) == len &&
		    strncasecmp(level_names[i], name, len) == 0)
			return (int)i;
	return -1;
}

static int level_param(const char *query, int *ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int r = param(query, "level", &text, reterr);

	*ret = r == 1 ? level_of_name(text, strlen(text)) : ABX__LOG_DEBUG;
	if (r == 1 && *ret < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "level is debug, info, warn or error, not \"%s\"",
				      text);
	return r;
}

int abx__logs_query_v1(const char *query, abx__logs_query *ret, abx_error **reterr)
{
	abx__logs_query q = { .to_ms = INT64_MAX };
	int r = time_param(query, "start", &q.from_ms, reterr);

	if (r >= 0)
		r = limit_param(query, &q.limit, reterr);
	if (r < 0)
		return r;
	*ret = q;
	return ABX_OK;
}

int abx__logs_query_v2(const char *query, abx__logs_query *ret, abx_error **reterr)
{
	abx__logs_query q = { .to_ms = INT64_MAX };
	int64_t cursor = 0;
	int has_cursor = time_param(query, "cursor", &cursor, reterr);
	int r = has_cursor;

	if (r >= 0)
		r = limit_param(query, &q.limit, reterr);
	if (r >= 0)
		r = direction_param(query, &q.backward, reterr);
	if (r >= 0)
		r = level_param(query, &q.level, reterr);
	if (r >= 0)
		r = param(query, "search", &q.search, reterr);
	if (r == 1 && strlen(q.search) > ABX__LOGS_SEARCH_MAX)
		r = abx__error_set(reterr, ABX_EINVAL, "search has over %d bytes",
				   ABX__LOGS_SEARCH_MAX);
	if (r < 0) {
		abx__logs_query_done(&q);
		return r;
	}
	if (has_cursor == 1 && q.backward)
		q.to_ms = cursor;
	else
		q.from_ms = cursor;
	*ret = q;
	return ABX_OK;
}

void abx__logs_query_done(abx__logs_query *q)
{
	abx__free(q->search);
	memset(q, 0, sizeof(*q));
}

/* ---- lines ---- */

static abx__logs_line *add(abx__logs *logs)
{
	abx__logs_line *line;

	if (logs->count == logs->size) {
		size_t size = logs->size ? 2 * logs->size : 64;
		abx__logs_line *more =
			abx__reallocarray(logs->lines, size, sizeof(*more));

		if (!more)
			return NULL;
		logs->lines = more;
		logs->size = size;
	}
	line = &logs->lines[logs->count];
	memset(line, 0, sizeof(*line));
	line->seq = logs->count++;
	line->level = ABX__LOG_INFO;
	return line;
}

int abx__logs_add_event(abx__logs *logs, int64_t ms, const char *message,
			const abx__map *fields)
{
	abx__logs_line *line = add(logs);

	if (!line)
		return ABX_ENOMEM;
	line->ms = ms;
	line->logger = "sandbox";
	line->text = message;
	line->len = strlen(message);
	line->fields = fields;
	return ABX_OK;
}

/* "ERROR: ...", "[warn] ...", "WARNING ...": what people write. */
static int guess_level(const char *text, size_t len)
{
	static const struct {
		const char *word;
		int level;
	} words[] = { { "error", ABX__LOG_ERROR },    { "err", ABX__LOG_ERROR },
		      { "fatal", ABX__LOG_ERROR },    { "panic", ABX__LOG_ERROR },
		      { "critical", ABX__LOG_ERROR }, { "warning", ABX__LOG_WARN },
		      { "warn", ABX__LOG_WARN },      { "debug", ABX__LOG_DEBUG },
		      { "trace", ABX__LOG_DEBUG } };
	size_t n = 0;

	while (len > 0 && (*text == '[' || *text == '<' || *text == ' '))
		text++, len--;
	while (n < len && n < 12 &&
	       ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z')))
		n++;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == n &&
		    strncasecmp(words[i].word, text, n) == 0)
			return words[i].level;
	return ABX__LOG_INFO;
}

static const char *member(json_object *o, const char *key)
{
	json_object *v = NULL;

	json_object_object_get_ex(o, key, &v);
	return v ? abx__json_str(v) : NULL;
}

/* Time never goes back: a line is no earlier than the one before. */
static void understand(abx__logs_line *line, int64_t *now_ms)
{
	const char *time = NULL, *level = NULL;
	int64_t us;
	int known;

	if (line->len > 0 && line->text[0] == '{' &&
	    abx__json_parse_object(line->text, line->len, ABX__LOGS_LINE_MAX, &line->json,
				   NULL) == ABX_OK) {
		time = member(line->json, "time");
		level = member(line->json, "level");
	}
	if (time && abx__rfc3339_parse(time, &us) == ABX_OK && us / 1000 > *now_ms)
		*now_ms = us / 1000;
	known = level ? level_of_name(level, strlen(level)) : -1;
	line->level = known >= 0 ? known : guess_level(line->text, line->len);
	line->ms = *now_ms;
}

/* Where the last ABX__LOGS_LINES_MAX lines begin. */
static const char *last_lines(const char *text, size_t len)
{
	const char *at = text + len;
	size_t lines = 0;

	while (at > text) {
		if (at[-1] == '\n' && at != text + len && ++lines == ABX__LOGS_LINES_MAX)
			break;
		at--;
	}
	return at;
}

int abx__logs_add_text(abx__logs *logs, const char *text, size_t len, int64_t start_ms)
{
	const char *end = text + len, *at = last_lines(text, len);

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at);
		abx__logs_line *line;

		if (n > 0 && at[n - 1] == '\r')
			n--;
		if (n > 0) {
			line = add(logs);
			if (!line)
				return ABX_ENOMEM;
			line->logger = "main";
			line->text = at;
			line->len = n < ABX__LOGS_LINE_MAX ? n : ABX__LOGS_LINE_MAX;
			understand(line, &start_ms);
		}
		at = stop ? stop + 1 : end;
	}
	return ABX_OK;
}

void abx__logs_done(abx__logs *logs)
{
	for (size_t i = 0; i < logs->count; i++)
		json_object_put(logs->lines[i].json);
	abx__free(logs->lines);
	memset(logs, 0, sizeof(*logs));
}

/* ---- selecting ---- */

static void message_of(const abx__logs_line *line, const char **ret, size_t *ret_len)
{
	const char *text = line->json ? member(line->json, "msg") : NULL;

	if (!text && line->json)
		text = member(line->json, "message");
	*ret = text ? text : line->text;
	*ret_len = text ? strlen(text) : line->len;
}

static bool matches(const abx__logs_line *line, const abx__logs_query *q)
{
	const char *message;
	size_t len;

	if (line->ms < q->from_ms || line->ms > q->to_ms || line->level < q->level)
		return false;
	message_of(line, &message, &len);
	return !q->search || memmem(message, len, q->search, strlen(q->search));
}

static int compare(const void *a, const void *b)
{
	const abx__logs_line *x = a, *y = b;

	if (x->ms != y->ms)
		return x->ms < y->ms ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int compare_backward(const void *a, const void *b)
{
	return compare(b, a);
}

void abx__logs_select(abx__logs *logs, const abx__logs_query *q)
{
	size_t kept = 0;

	for (size_t i = 0; i < logs->count; i++) {
		if (matches(&logs->lines[i], q))
			logs->lines[kept++] = logs->lines[i];
		else
			json_object_put(logs->lines[i].json);
	}
	logs->count = kept;
	if (kept > 1)
		qsort(logs->lines, kept, sizeof(*logs->lines),
		      q->backward ? compare_backward : compare);
	while (logs->count > q->limit)
		json_object_put(logs->lines[--logs->count].json);
}

/* ---- JSON ---- */

static int set_message(json_object *o, const abx__logs_line *line)
{
	const char *text;
	size_t len;
	json_object *message;

	message_of(line, &text, &len);
	message = abx__json_clean_text(text, len);
	return message ? abx__json_set_take(o, "message", message) : ABX_ENOMEM;
}

static int set_fields(json_object *o, const abx__logs_line *line)
{
	const char *more = line->json ? member(line->json, "fields") : NULL;
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && line->fields && i < line->fields->count; i++)
		r = abx__json_set_str(o, line->fields->items[i].key,
				      line->fields->items[i].value);
	if (r == ABX_OK && !line->fields)
		r = abx__json_set_str(o, "container", "main");
	if (r == ABX_OK)
		r = abx__json_set_str(o, "source", line->fields ? "platform" : "stdout");
	if (r == ABX_OK && more)
		r = abx__json_set_str(o, "fields", more);
	return r;
}

static json_object *entry(const abx__logs_line *line)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *fields = json_object_new_object();

	if (!o || !fields || abx__json_set_take(o, "fields", fields) < 0) {
		if (!o)
			json_object_put(fields);
		return NULL;
	}
	if (abx__json_set_time(o, "timestamp", line->ms) < 0 ||
	    set_message(o, line) < 0 ||
	    abx__json_set_str(o, "level", level_names[line->level]) < 0 ||
	    set_fields(fields, line) < 0)
		return NULL;
	return abx_take(o);
}

static json_object *plain(const abx__logs_line *line)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *inner = json_object_new_object();

	if (!o || !inner ||
	    abx__json_set_str(inner, "level", level_names[line->level]) < 0 ||
	    abx__json_set_str(inner, "logger", line->logger) < 0 ||
	    set_message(inner, line) < 0 || set_fields(inner, line) < 0 ||
	    abx__json_set_time(o, "timestamp", line->ms) < 0 ||
	    abx__json_set_str(o, "line",
			      json_object_to_json_string_ext(
				      inner, JSON_C_TO_STRING_PLAIN |
						     JSON_C_TO_STRING_NOSLASHESCAPE)) < 0)
		return NULL;
	return abx_take(o);
}

static json_object *all(const abx__logs *logs,
			json_object *(*one)(const abx__logs_line *line))
{
	ABX_CLEANUP_JSON json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < logs->count; i++) {
		json_object *o = one(&logs->lines[i]);

		if (!o || abx__json_push_take(array, o) < 0)
			return NULL;
	}
	return abx_take(array);
}

json_object *abx__logs_entries(const abx__logs *logs)
{
	return all(logs, entry);
}

json_object *abx__logs_plain(const abx__logs *logs)
{
	return all(logs, plain);
}

/*
 * http-head.h - the head of an HTTP/1.x message: bytes in, a checked struct out. Pure.
 *
 * The grammar is http_parser's. Debian builds that library without its strict mode, so
 * what it lets pass and a gateway must not is refused here first: bare CR, bare LF in
 * requests, folded lines, blanks in field names, control characters. In responses a bare
 * LF ends a line, as RFC 9112 section 2.2 allows.
 *
 * The bodies' framing is read from the head here and decoded in http-body.h.
 */
#ifndef ABX_IO_HTTP_HEAD_H
#define ABX_IO_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define ABX__HTTP_HEAD_MAX ((size_t)64 << 10)
#define ABX__HTTP_FIELDS_MAX 100

typedef struct abx__http_field {
	const char *name;
	const char *value;
} abx__http_field;

typedef struct abx__http_head {
	void *block;        /* what all pointers point into */
	const char *method; /* requests */
	const char *target; /* requests: path and query as sent; an absolute form loses
			       its authority */
	const char *path;   /* target up to '?' */
	const char *query;  /* behind '?'; NULL when none */
	int status;         /* responses */
	int minor;          /* HTTP/1.minor */
	const abx__http_field *fields; /* in order of arrival */
	size_t count;
	int64_t content_length; /* -1: not given */
	bool chunked;
	bool keep_alive; /* what version and Connection say */
	bool upgrade; /* Upgrade, and Connection names it (a response: with status 101) */
	bool expect_continue;
} abx__http_head;

/* Length of the head with its blank line, or 0 while that has not come. `from` is where
   the last search ended (0 at first). */
size_t abx__http_head_find(const char *data, size_t len, size_t from);
/* `data` is exactly what abx__http_head_find() measured. A request that is refused gives
   ABX_EPROTO with the status to answer and one line saying why. ABX_ENOMEM. */
int abx__http_head_parse_request(abx__http_head *ret, const char *data, size_t len,
				 int *ret_status, const char **ret_why);
/* ABX_EPROTO with one line saying why; ABX_ENOMEM. */
int abx__http_head_parse_response(abx__http_head *ret, const char *data, size_t len,
				  const char **ret_why);
/* A request whose parts came one by one: `fields` is "name\0value\0"... The same rules
   and results as in abx__http_head_parse_request(). */
int abx__http_head_make_request(abx__http_head *ret, const char *method,
				const char *target, const char *fields, size_t len,
				int *ret_status, const char **ret_why);
void abx__http_head_done(abx__http_head *head);

/* First field of that name, any case; NULL when absent. */
const char *abx__http_head_get(const abx__http_head *head, const char *name);
/* Is `token` an element of the comma-separated lists of all fields of that name? Any
 * case. */
bool abx__http_head_has_token(const abx__http_head *head, const char *name,
			      const char *token);
/* Is `token` (any case) an element of this comma-separated list? */
bool abx__http_list_has(const char *list, const char *token);
/* A field name / a field value that may be sent. */
bool abx__http_name_is_valid(const char *name);
bool abx__http_value_is_valid(const char *value);

#endif

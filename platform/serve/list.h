/*
 * list.h - GET /v2/sandboxes of the E2B API: its query, its order and its pages. Pure: a
 * query string and a table of sandboxes in, a page out.
 *
 * Order: `desc` (default) is start time descending, then id ascending; `asc` is the exact
 * reverse. A token names the last sandbox of its page by time and id, so a page neither
 * repeats nor skips a sandbox that lives through the whole listing, whatever is created
 * or killed meanwhile.
 */
#ifndef ABX_SERVE_LIST_H
#define ABX_SERVE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#include "base/map.h"
#include "control/sandboxes.h"
#include "serve/keys.h"

#define ABX__LIST_LIMIT_MAX 100

typedef struct abx__list_query {
	abx__map metadata; /* all must match */
	bool running;      /* running ones are asked for */
	bool paused;       /* paused ones, too */
	bool asc;
	bool has_after;
	int64_t after_us; /* started at or after */
	char *template_;  /* NULL: any */
	unsigned limit;
	bool has_token;
	int64_t token_us;
	char *token_id;
} abx__list_query;

/* `query` may be NULL. ABX_EINVAL with the text for the caller. */
int abx__list_query_parse(const char *query, abx__list_query *ret, abx_error **reterr);
void abx__list_query_done(abx__list_query *q);

/* The metadata filter in its wire form, already decoded once as a query value:
   percent-encoded twice by the SDKs (e2b-control-api.md, section 4.2). Exactly one '=' a
   pair. */
int abx__list_metadata_parse(const char *text, abx__map *ret, abx_error **reterr);
/* A nextToken of this server, in the order `asc` says; ABX_EINVAL "Invalid next token".
 */
int abx__list_token_parse(const char *token, bool asc, int64_t *ret_us, char **ret_id,
			  abx_error **reterr);
/* NULL when out of memory. */
char *abx__list_token_make(int64_t started_us, const char *id, bool asc);

typedef struct abx__list_page {
	const abx__sandbox_rec **items; /* borrowed until the loop turns */
	size_t count;
	size_t total_running; /* after the filters, before paging */
	char *next_token;     /* NULL on the last page */
} abx__list_page;

/* Can `who` see it: an admin sees all, a tenant what its team and user own. */
bool abx__list_visible(const abx__identity *who, const abx__sandbox_rec *rec);
int abx__list_page_make(const abx__sandboxes *table, const abx__identity *who,
			const abx__list_query *q, abx__list_page *ret,
			abx_error **reterr);
void abx__list_page_done(abx__list_page *page);

#endif

/*
 * list.c - parsing the listing's query and cutting its pages. No I/O; what is foreign
 * here are the query's bytes.
 */
#include "serve/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"

#define PAIRS_MAX 64
#define TOKEN_MAX 256

static int url_error(int r, const char *what, abx_error **reterr)
{
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	return abx__error_set(reterr, ABX_EINVAL, "%s is not well encoded", what);
}

/* ---- metadata ---- */

static int add_pair(const char *pair, size_t len, abx__map *map, abx_error **reterr)
{
	const char *eq = memchr(pair, '=', len);
	ABX_CLEANUP(abx__freep) char *key = NULL;
	ABX_CLEANUP(abx__freep) char *value = NULL;
	int r;

	if (!eq || memchr(eq + 1, '=', len - (size_t)(eq + 1 - pair)))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"Invalid metadata filter: one '=' a pair, as in k=v&k2=v2");
	r = abx__url_decode(pair, (size_t)(eq - pair), true, &key);
	if (r == ABX_OK)
		r = abx__url_decode(eq + 1, len - (size_t)(eq + 1 - pair), true, &value);
	if (r < 0)
		return url_error(r, "metadata filter", reterr);
	if (map->count >= PAIRS_MAX)
		return abx__error_set(reterr, ABX_EINVAL,
				      "metadata filter has over %d pairs", PAIRS_MAX);
	return abx__map_set(map, key, value) < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

int abx__list_metadata_parse(const char *text, abx__map *ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *once = NULL;
	int r = abx__url_decode(text, strlen(text), true, &once);

	if (r < 0)
		return url_error(r, "metadata filter", reterr);
	for (const char *p = once; *p;) {
		size_t len = strcspn(p, "&");

		r = add_pair(p, len, ret, reterr);
		if (r < 0)
			return r;
		p += len;
		if (*p == '&')
			p++;
	}
	return ABX_OK;
}

/* ---- the token ---- */

static int bad_token(abx_error **reterr)
{
	return abx__error_set(reterr, ABX_EINVAL, "Invalid next token");
}

char *abx__list_token_make(int64_t started_us, const char *id, bool asc)
{
	char when[ABX__RFC3339_SIZE];
	ABX_CLEANUP(abx__freep) char *plain = NULL;
	ABX_CLEANUP(abx__freep) char *token = NULL;
	static const char *const pad[] = { "", "", "==", "=" };

	abx__rfc3339_format_us(started_us, when);
	plain = abx__strf("%s__%s%s", when, id, asc ? "__asc" : "");
	if (plain)
		token = abx__base64url_encode(plain, strlen(plain));
	return token ? abx__strf("%s%s", token, pad[strlen(token) % 4]) : NULL;
}

static bool id_is_plain(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-");

	return n > 0 && id[n] == '\0';
}

/* Splits "TIME__ID" or "TIME__ID__asc" in place. */
static int token_split(char *plain, bool asc, int64_t *ret_us, const char **ret_id,
		       abx_error **reterr)
{
	char *id = strstr(plain, "__");
	char *order;

	if (!id)
		return bad_token(reterr);
	*id = '\0';
	id += 2;
	order = strstr(id, "__");
	if (order) {
		*order = '\0';
		if (!abx__str_eq(order + 2, "asc"))
			return bad_token(reterr);
	}
	if ((order != NULL) != asc || !id_is_plain(id) ||
	    abx__rfc3339_parse(plain, ret_us) < 0)
		return bad_token(reterr);
	*ret_id = id;
	return ABX_OK;
}

int abx__list_token_parse(const char *token, bool asc, int64_t *ret_us, char **ret_id,
			  abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) uint8_t *raw = NULL;
	ABX_CLEANUP(abx__freep) char *plain = NULL;
	size_t len = strlen(token), raw_len = 0;
	const char *id = NULL;
	int64_t us = 0;
	int r;

	if (len > TOKEN_MAX)
		return bad_token(reterr);
	while (len > 0 && token[len - 1] == '=')
		len--;
	r = abx__base64url_decode(token, len, &raw, &raw_len);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0 || memchr(raw, '\0', raw_len))
		return bad_token(reterr);
	plain = abx__strndup((const char *)raw, raw_len);
	if (!plain)
		return abx__error_nomem(reterr);
	r = token_split(plain, asc, &us, &id, reterr);
	if (r < 0)
		return r;
	*ret_id = abx__strdup(id);
	*ret_us = us;
	return *ret_id ? ABX_OK : abx__error_nomem(reterr);
}

/* ---- the query ---- */

void abx__list_query_done(abx__list_query *q)
{
	abx__map_done(&q->metadata);
	abx__free(q->template_);
	abx__free(q->token_id);
	memset(q, 0, sizeof(*q));
}

/* 1 and the value, 0 when it is absent or empty, or an error that names the parameter. */
static int param(const char *query, const char *name, char **ret, abx_error **reterr)
{
	int r = query ? abx__query_get(query, name, ret) : 0;

	if (r < 0)
		return url_error(r, name, reterr);
	if (r == 1 && !**ret) {
		abx__free(*ret);
		*ret = NULL;
		return 0;
	}
	return r;
}

static int parse_states(const char *text, abx__list_query *q, abx_error **reterr)
{
	q->running = q->paused = false;
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, ",");

		if (len == 7 && strncmp(p, "running", 7) == 0)
			q->running = true;
		else if (len == 6 && strncmp(p, "paused", 6) == 0)
			q->paused = true;
		else
			return abx__error_set(
				reterr, ABX_EINVAL,
				"state is running, paused or both, not \"%s\"", text);
		p += len;
		if (*p == ',')
			p++;
	}
	return ABX_OK;
}

static int parse_after(char *text, abx__list_query *q, abx_error **reterr)
{
	/* A '+' of an offset that was not encoded arrives as a blank. */
	for (char *p = text; *p; p++)
		if (*p == ' ')
			*p = '+';
	if (abx__rfc3339_parse(text, &q->after_us) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "startedAfter is an RFC 3339 time, not \"%s\"",
				      text);
	q->has_after = true;
	return ABX_OK;
}

static int parse_order(const char *query, abx__list_query *q, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int r = param(query, "order", &text, reterr);

	if (r <= 0)
		return r;
	q->asc = abx__str_eq(text, "asc");
	if (!q->asc && !abx__str_eq(text, "desc"))
		return abx__error_set(reterr, ABX_EINVAL,
				      "order is asc or desc, not \"%s\"", text);
	return ABX_OK;
}

static int parse_limit(const char *query, abx__list_query *q, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	uint64_t n = ABX__LIST_LIMIT_MAX;
	int r = param(query, "limit", &text, reterr);

	if (r < 0)
		return r;
	if (r == 1 && abx__parse_u64(text, 1, ABX__LIST_LIMIT_MAX, &n) < 0)
		return abx__error_set(reterr, ABX_EINVAL, "limit is 1 to %d, not \"%s\"",
				      ABX__LIST_LIMIT_MAX, text);
	q->limit = (unsigned)n;
	return ABX_OK;
}

static int parse_filters(const char *query, abx__list_query *q, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *metadata = NULL;
	ABX_CLEANUP(abx__freep) char *state = NULL;
	ABX_CLEANUP(abx__freep) char *after = NULL;
	int r = param(query, "metadata", &metadata, reterr);

	if (r == 1)
		r = abx__list_metadata_parse(metadata, &q->metadata, reterr);
	if (r < 0)
		return r;
	r = param(query, "state", &state, reterr);
	if (r == 1)
		r = parse_states(state, q, reterr);
	if (r < 0)
		return r;
	r = param(query, "startedAfter", &after, reterr);
	if (r == 1)
		r = parse_after(after, q, reterr);
	if (r < 0)
		return r;
	r = param(query, "template", &q->template_, reterr);
	if (r == 1 && strchr(q->template_, ':') && !strstr(q->template_, "::"))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"template \"%s\": a tag is not accepted in the filter",
			q->template_);
	return r < 0 ? r : ABX_OK;
}

static int parse_all(const char *query, abx__list_query *q, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *token = NULL;
	int r = parse_filters(query, q, reterr);

	if (r == ABX_OK)
		r = parse_order(query, q, reterr);
	if (r == ABX_OK)
		r = parse_limit(query, q, reterr);
	if (r == ABX_OK)
		r = param(query, "nextToken", &token, reterr);
	if (r == 1) {
		q->has_token = true;
		r = abx__list_token_parse(token, q->asc, &q->token_us, &q->token_id,
					  reterr);
	}
	return r;
}

int abx__list_query_parse(const char *query, abx__list_query *ret, abx_error **reterr)
{
	abx__list_query q = { .running = true, .paused = true };
	int r = parse_all(query, &q, reterr);

	if (r < 0) {
		abx__list_query_done(&q);
		return r;
	}
	*ret = q;
	return ABX_OK;
}

/* ---- the page ---- */

bool abx__list_visible(const abx__identity *who, const abx__sandbox_rec *rec)
{
	return abx__identity_sees_all(who) ||
	       (abx__str_eq(who->team, rec->team) && abx__str_eq(who->user, rec->user));
}

static bool matches(const abx__list_query *q, const abx__sandbox_rec *rec)
{
	if (q->has_after && rec->started_us < q->after_us)
		return false;
	if (q->template_ && !abx__str_eq(q->template_, rec->env) &&
	    !abx__str_eq(q->template_, rec->pool) &&
	    !abx__str_eq(q->template_, rec->template_))
		return false;
	for (size_t i = 0; i < q->metadata.count; i++) {
		const abx__map_item *want = &q->metadata.items[i];

		if (!abx__str_eq(abx__map_get(&rec->metadata, want->key), want->value))
			return false;
	}
	return true;
}

/* The default order; `asc` is its reverse. */
static int compare(int64_t a_us, const char *a_id, int64_t b_us, const char *b_id)
{
	if (a_us != b_us)
		return a_us > b_us ? -1 : 1;
	return strcmp(a_id, b_id);
}

static int compare_desc(const void *a, const void *b)
{
	const abx__sandbox_rec *x = *(const abx__sandbox_rec *const *)a;
	const abx__sandbox_rec *y = *(const abx__sandbox_rec *const *)b;

	return compare(x->started_us, x->id, y->started_us, y->id);
}

static int compare_asc(const void *a, const void *b)
{
	return -compare_desc(a, b);
}

static bool behind_token(const abx__list_query *q, const abx__sandbox_rec *rec)
{
	int c;

	if (!q->has_token)
		return true;
	c = compare(rec->started_us, rec->id, q->token_us, q->token_id);
	return q->asc ? c < 0 : c > 0;
}

/* On its way from one to the other it is paused: nobody may count on it. */
static bool in_states(const abx__list_query *q, const abx__sandbox_rec *rec)
{
	switch (rec->state) {
	case ABX__SANDBOX_RUNNING:
		return q->running;
	case ABX__SANDBOX_PAUSING:
	case ABX__SANDBOX_PAUSED:
	case ABX__SANDBOX_RESUMING:
		return q->paused;
	case ABX__SANDBOX_STARTING:
	case ABX__SANDBOX_STOPPING:
		break;
	}
	return false;
}

/* Every sandbox that passes the filters, in no order. */
static int collect(const abx__sandboxes *table, const abx__identity *who,
		   const abx__list_query *q, abx__list_page *page, abx_error **reterr)
{
	const abx__sandbox_rec *rec;
	size_t size = 0;

	for (size_t i = 0; abx__sandboxes_at(table, i, &rec); i++) {
		if (!in_states(q, rec) || !abx__list_visible(who, rec) ||
		    !matches(q, rec))
			continue;
		page->total_running += rec->state == ABX__SANDBOX_RUNNING;
		if (!behind_token(q, rec))
			continue;
		if (page->count == size) {
			void *more;

			size = size ? 2 * size : 64;
			more = abx__reallocarray(page->items, size, sizeof(*page->items));
			if (!more)
				return abx__error_nomem(reterr);
			page->items = more;
		}
		page->items[page->count++] = rec;
	}
	return ABX_OK;
}

int abx__list_page_make(const abx__sandboxes *table, const abx__identity *who,
			const abx__list_query *q, abx__list_page *ret, abx_error **reterr)
{
	abx__list_page page = { 0 };
	int r = collect(table, who, q, &page, reterr);

	if (r == ABX_OK && page.count > 1)
		qsort(page.items, page.count, sizeof(*page.items),
		      q->asc ? compare_asc : compare_desc);
	if (r == ABX_OK && page.count > q->limit) {
		const abx__sandbox_rec *last = page.items[q->limit - 1];

		page.count = q->limit;
		page.next_token =
			abx__list_token_make(last->started_us, last->id, q->asc);
		if (!page.next_token)
			r = abx__error_nomem(reterr);
	}
	if (r < 0) {
		abx__list_page_done(&page);
		return r;
	}
	*ret = page;
	return ABX_OK;
}

void abx__list_page_done(abx__list_page *page)
{
	abx__free(page->items);
	abx__free(page->next_token);
	memset(page, 0, sizeof(*page));
}

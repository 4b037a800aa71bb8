/*
 * sandbox-list.c - the walk over sandboxes: GET /v2/sandboxes and its filters.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "client/client.h"
#include "client/options.h"
#include "client/pages.h"
#include "client/sandbox.h"

struct abx_sandbox_iter {
	abx__pages pages;
};

void abx_sandbox_iter_free(abx_sandbox_iter *iter)
{
	if (!iter)
		return;
	abx__pages_done(&iter->pages);
	abx__free(iter);
}

static int parse_info(json_object *obj, void **ret, abx_error **reterr)
{
	abx_sandbox_info *info = NULL;
	int r = abx__sandbox_info_parse(obj, &info, reterr);

	*ret = info;
	return r;
}

static void free_info(void *item)
{
	abx_sandbox_info_free(item);
}

static const abx__pages_ops sandbox_pages = {
	.what = "list sandboxes",
	.kind = ABX__OP_SANDBOX_NEXT,
	.parse = parse_info,
	.free_item = free_info,
};

/* ---- the query ---- */

/* Key and value are encoded, then the whole once more, as the SDKs do and the servers
 * undo. */
static int add_metadata(abx__buf *query, const char *const *pairs, abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf form = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *coded = NULL;

	for (size_t i = 0; pairs && pairs[i]; i++) {
		const char *equals = strchr(pairs[i], '=');
		ABX_CLEANUP(abx__freep) char *key = NULL;
		ABX_CLEANUP(abx__freep) char *key_coded = NULL;
		ABX_CLEANUP(abx__freep) char *value_coded = NULL;

		if (!equals || equals == pairs[i])
			return abx__error_set(reterr, ABX_EINVAL,
					      "metadata: '%s' is not KEY=VALUE",
					      pairs[i]);
		key = abx__strndup(pairs[i], (size_t)(equals - pairs[i]));
		key_coded = key ? abx__url_encode(key) : NULL;
		value_coded = abx__url_encode(equals + 1);
		if (!key_coded || !value_coded ||
		    abx__buf_addf(&form, "%s%s=%s", form.len ? "&" : "", key_coded,
				  value_coded) < 0)
			return abx__error_nomem(reterr);
	}
	if (!form.len)
		return ABX_OK;
	coded = abx__url_encode(abx__buf_str(&form));
	return coded && abx__buf_addf(query, "&metadata=%s", coded) >= 0
		       ? ABX_OK
		       : abx__error_nomem(reterr);
}

static int add_states(abx__buf *query, uint32_t states, abx_error **reterr)
{
	bool running = states & (1u << ABX_SANDBOX_RUNNING);
	bool paused = states & (1u << ABX_SANDBOX_PAUSED);

	if (states & ~((1u << ABX_SANDBOX_RUNNING) | (1u << ABX_SANDBOX_PAUSED)))
		return abx__error_set(reterr, ABX_EINVAL,
				      "states 0x%x has a state one cannot list by",
				      states);
	if (!states)
		return ABX_OK;
	if (abx__buf_addf(query, "&state=%s%s%s", running ? "running" : "",
			  running && paused ? "," : "", paused ? "paused" : "") < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

static int add_started_after(abx__buf *query, int64_t ms, abx_error **reterr)
{
	char text[ABX__RFC3339_SIZE];

	if (ms < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "started_after_ms is before 1970");
	abx__rfc3339_format(ms, text);
	return abx__buf_addf(query, "&startedAfter=%s", text) < 0
		       ? abx__error_nomem(reterr)
		       : ABX_OK;
}

static int make_query(const abx_sandbox_list_options *opts, char **ret,
		      abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf query = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *template = NULL;
	int r;

	if ((r = abx__pages_limit(opts->page_count, reterr)) < 0)
		return r;
	if (abx__buf_addf(&query, "/v2/sandboxes?limit=%u%s",
			  opts->page_count ? opts->page_count : ABX__PAGE_MAX,
			  opts->oldest_first ? "&order=asc" : "") < 0)
		return abx__error_nomem(reterr);
	if (opts->template_id) {
		template = abx__url_encode(opts->template_id);
		if (!template || abx__buf_addf(&query, "&template=%s", template) < 0)
			return abx__error_nomem(reterr);
	}
	if (opts->started_after_ms &&
	    (r = add_started_after(&query, opts->started_after_ms, reterr)) < 0)
		return r;
	if ((r = add_metadata(&query, opts->metadata, reterr)) < 0 ||
	    (r = add_states(&query, opts->states, reterr)) < 0)
		return r;
	*ret = abx__buf_take(&query);
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

/* ---- the calls ---- */

int abx_sandbox_list(abx_client *client, const abx_sandbox_list_options *user_opts,
		     abx_sandbox_iter **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = NULL;
	abx_sandbox_list_options opts;
	abx_sandbox_iter *iter;
	int r;

	if (!client || !ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_list: an argument is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts,
				   "abx_sandbox_list_options", reterr)) < 0 ||
	    (r = make_query(&opts, &path, reterr)) < 0)
		return r;
	iter = abx__calloc(1, sizeof(*iter));
	if (!iter)
		return abx__error_nomem(reterr);
	abx__pages_init(&iter->pages, client, &sandbox_pages, abx_take(path));
	*ret = iter;
	return ABX_OK;
}

int abx_sandbox_iter_next(abx_sandbox_iter *iter, const abx_sandbox_info **ret,
			  abx_error **reterr)
{
	int r = abx__pages_check(iter, "abx_sandbox_iter_next", reterr);

	return r < 0 ? r : abx__pages_wait(&iter->pages, ret, reterr);
}

int abx_sandbox_iter_next_async(abx_sandbox_iter *iter, abx_sandbox_next_fn done,
				void *userdata, abx_free_fn free_userdata,
				abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_SANDBOX_NEXT, next, done);
	int r = abx__pages_check(iter, "abx_sandbox_iter_next", reterr);

	if (r >= 0)
		r = abx__pages_next(&iter->pages, &then, reterr);
	return abx__then_end(&then, r);
}

/*
 * sandbox-list.c - the walk over sandboxes: GET /v2/sandboxes page by page.
 *
 * Invariants: one step at a time; a page is kept until its last sandbox was given; the
 * server's token is opaque.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/options.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "io/json.h"

#define MAX_PAGE 100
#define MAX_LIST_ANSWER ((size_t)32 << 20)

struct abx_sandbox_iter {
	abx_client *client;
	char *query;       /* filters, without the token */
	char *next_token;  /* NULL: no further page */
	bool is_started;   /* the first page was fetched */
	json_object *page; /* an array, or NULL */
	size_t at;         /* next of the page */
	abx_sandbox_info *info;
	abx_op *op; /* the last step, with a reference; it does not own the iterator */
};

/* The iterator goes; a step whose completion has not run yet gives nothing that belongs
 * to it. */
static void leave_step(abx_op *op)
{
	op->state = NULL;
	abx_op_cancel(op);
	if (op->result) {
		op->result = NULL;
		op->r = abx__error_set(&op->err, ABX_ECANCELED,
				       "list sandboxes: the walk was ended");
	}
	abx_op_free(op);
}

void abx_sandbox_iter_free(abx_sandbox_iter *iter)
{
	if (!iter)
		return;
	if (iter->op)
		leave_step(iter->op);
	json_object_put(iter->page);
	abx_sandbox_info_free(iter->info);
	abx__free(iter->query);
	abx__free(iter->next_token);
	abx__client_unref(iter->client);
	abx__free(iter);
}

ABX_DEFINE_FREEP(iter_freep, abx_sandbox_iter, abx_sandbox_iter_free)

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

static int make_query(const abx_sandbox_list_options *opts, char **ret,
		      abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf query = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *template = NULL;
	int r;

	if (opts->page_count > MAX_PAGE)
		return abx__error_set(reterr, ABX_EINVAL, "page_count %u is over %d",
				      opts->page_count, MAX_PAGE);
	if (abx__buf_addf(&query, "?limit=%u%s",
			  opts->page_count ? opts->page_count : MAX_PAGE,
			  opts->oldest_first ? "&order=asc" : "") < 0)
		return abx__error_nomem(reterr);
	if (opts->template_id) {
		template = abx__url_encode(opts->template_id);
		if (!template || abx__buf_addf(&query, "&template=%s", template) < 0)
			return abx__error_nomem(reterr);
	}
	if ((r = add_metadata(&query, opts->metadata, reterr)) < 0 ||
	    (r = add_states(&query, opts->states, reterr)) < 0)
		return r;
	*ret = abx__buf_take(&query);
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

int abx_sandbox_list(abx_client *client, const abx_sandbox_list_options *user_opts,
		     abx_sandbox_iter **ret, abx_error **reterr)
{
	ABX_CLEANUP(iter_freep) abx_sandbox_iter *iter = NULL;
	abx_sandbox_list_options opts;
	int r;

	if (!client || !ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_list: an argument is NULL");
	r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_sandbox_list_options",
			      reterr);
	if (r < 0)
		return r;
	iter = abx__calloc(1, sizeof(*iter));
	if (!iter)
		return abx__error_nomem(reterr);
	iter->client = abx__client_ref(client);
	r = make_query(&opts, &iter->query, reterr);
	if (r < 0)
		return r;
	*ret = abx_take(iter);
	return ABX_OK;
}

/* The next of the page at hand: 1, or 0 when there is none. */
static int step(abx_sandbox_iter *iter, abx_error **reterr)
{
	abx_sandbox_info *info = NULL;
	int r;

	if (!iter->page || iter->at >= json_object_array_length(iter->page))
		return 0;
	r = abx__sandbox_info_parse(json_object_array_get_idx(iter->page, iter->at),
				    &info, reterr);
	if (r < 0)
		return r;
	iter->at++;
	abx_sandbox_info_free(iter->info);
	iter->info = info;
	return 1;
}

static int take_page(abx_sandbox_iter *iter, abx_op *op, abx_error **reterr)
{
	const char *token = abx__http_call_header(op->call, "X-Next-Token");
	json_object *page = NULL;
	char *copy = NULL;
	int r;

	r = abx__json_parse(abx__buf_str(&op->in), op->in.len, MAX_LIST_ANSWER, &page,
			    reterr);
	if (r < 0 || !json_object_is_type(page, json_type_array)) {
		json_object_put(page);
		return r == ABX_ENOMEM ? r
				       : abx__error_set(reterr, ABX_EPROTO,
							"the answer is not a JSON array");
	}
	if (token && *token && !(copy = abx__url_encode(token))) {
		json_object_put(page);
		return abx__error_nomem(reterr);
	}
	abx__buf_done(&op->in);
	json_object_put(iter->page);
	iter->page = page;
	iter->at = 0;
	iter->is_started = true;
	abx__free(iter->next_token);
	iter->next_token = copy;
	/* A page that is empty and yet has a next one would be walked for ever. */
	if (copy && !json_object_array_length(page))
		return abx__error_set(reterr, ABX_EPROTO, "an empty page has a next one");
	return ABX_OK;
}

static int page_answer(abx_op *op, int status, abx_error **reterr)
{
	abx_sandbox_iter *iter = op->state;
	int r;

	if (!iter)
		return abx__error_set(reterr, ABX_ECANCELED, "the walk was ended");
	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = take_page(iter, op, reterr);
	if (r >= 0)
		r = step(iter, reterr);
	if (r == 1)
		op->result = iter->info;
	return r;
}

static int fetch(abx_sandbox_iter *iter, abx_op *op, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_E2B,
			     .method = "GET",
			     .max_answer = MAX_LIST_ANSWER };
	ABX_CLEANUP(abx__freep) char *path = NULL;

	path = abx__strf("/v2/sandboxes%s%s%s", iter->query,
			 iter->next_token ? "&nextToken=" : "",
			 iter->next_token ? iter->next_token : "");
	if (!path)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	req.path = path;
	return abx__request_send(op, &req, reterr);
}

static void keep_step(abx_sandbox_iter *iter, abx_op *op)
{
	abx_op_free(iter->op);
	op->refs++;
	iter->op = op;
}

static int start_next(abx_sandbox_iter *iter, const abx__then *then, abx_error **reterr)
{
	abx_op *op = NULL;
	abx_error *err = NULL;
	int r;

	if (!iter)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_iter_next: the iterator is NULL");
	if (iter->op && !iter->op->is_finished)
		return abx__error_set(reterr, ABX_ESTATE,
				      "a step of this walk is under way");
	r = abx__op_new(iter->client, then, &op, reterr, "list sandboxes");
	if (r < 0)
		return r;
	op->on_answer = page_answer;
	op->state = iter;
	r = step(iter, &err);
	if (r == 0 && (!iter->is_started || iter->next_token)) {
		r = fetch(iter, op, reterr);
		if (r >= 0)
			keep_step(iter, op);
		return r;
	}
	op->result = r == 1 ? iter->info : NULL;
	abx__op_finish(op, r, err);
	keep_step(iter, op);
	return abx__op_started(op);
}

int abx_sandbox_iter_next(abx_sandbox_iter *iter, const abx_sandbox_info **ret,
			  abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_SANDBOX_NEXT, &wait);
	int r = start_next(iter, &then, reterr);

	if (r < 0)
		return r;
	r = abx__wait_end(iter->client, &wait, r, reterr);
	if (r == 1 && ret)
		*ret = wait.result;
	return r;
}

int abx_sandbox_iter_next_async(abx_sandbox_iter *iter, abx_sandbox_next_fn done,
				void *userdata, abx_free_fn free_userdata,
				abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_SANDBOX_NEXT, next, done);

	return abx__then_end(&then, start_next(iter, &then, reterr));
}

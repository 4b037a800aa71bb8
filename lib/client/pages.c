/*
 * pages.c - fetching the pages of a list and giving their items one by one.
 */
#include "client/pages.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/request.h"
#include "io/json.h"

#define MAX_LIST_ANSWER ((size_t)32 << 20)

void abx__pages_init(abx__pages *pages, abx_client *client, const abx__pages_ops *ops,
		     char *path)
{
	pages->ops = ops;
	pages->client = abx__client_ref(client);
	pages->path = path;
}

/* The walk goes; a step whose completion has not run yet gives nothing that belongs to
 * it. */
static void leave_step(abx__pages *pages)
{
	abx_op *op = pages->op;

	op->state = NULL;
	abx_op_cancel(op);
	if (op->result) {
		op->result = NULL;
		op->r = abx__error_set(&op->err, ABX_ECANCELED, "%s: the walk was ended",
				       pages->ops->what);
	}
	abx_op_free(op);
}

void abx__pages_done(abx__pages *pages)
{
	if (!pages->client)
		return;
	if (pages->op)
		leave_step(pages);
	json_object_put(pages->page);
	if (pages->item)
		pages->ops->free_item(pages->item);
	abx__free(pages->path);
	abx__free(pages->next_token);
	abx__client_unref(pages->client);
	memset(pages, 0, sizeof(*pages));
}

int abx__pages_limit(uint32_t page_count, abx_error **reterr)
{
	if (page_count <= ABX__PAGE_MAX)
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "page_count %u is over %d", page_count,
			      ABX__PAGE_MAX);
}

/* The next of the page at hand: 1, or 0 when there is none. */
static int step(abx__pages *pages, abx_error **reterr)
{
	void *item = NULL;
	int r;

	if (!pages->page || pages->at >= json_object_array_length(pages->page))
		return 0;
	r = pages->ops->parse(json_object_array_get_idx(pages->page, pages->at), &item,
			      reterr);
	if (r < 0)
		return r;
	pages->at++;
	if (pages->item)
		pages->ops->free_item(pages->item);
	pages->item = item;
	return 1;
}

static int take_page(abx__pages *pages, abx_op *op, abx_error **reterr)
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
	json_object_put(pages->page);
	pages->page = page;
	pages->at = 0;
	pages->is_started = true;
	abx__free(pages->next_token);
	pages->next_token = copy;
	/* A page that is empty and yet has a next one would be walked for ever. */
	if (copy && !json_object_array_length(page))
		return abx__error_set(reterr, ABX_EPROTO, "an empty page has a next one");
	return ABX_OK;
}

static int page_answer(abx_op *op, int status, abx_error **reterr)
{
	abx__pages *pages = op->state;
	int r;

	if (!pages)
		return abx__error_set(reterr, ABX_ECANCELED, "the walk was ended");
	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = take_page(pages, op, reterr);
	if (r >= 0)
		r = step(pages, reterr);
	if (r == 1)
		op->result = pages->item;
	return r;
}

static int fetch(abx__pages *pages, abx_op *op, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_E2B,
			     .method = "GET",
			     .max_answer = MAX_LIST_ANSWER };
	ABX_CLEANUP(abx__freep) char *path = NULL;

	path = abx__strf("%s%s%s", pages->path, pages->next_token ? "&nextToken=" : "",
			 pages->next_token ? pages->next_token : "");
	if (!path)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	req.path = path;
	return abx__request_send(op, &req, reterr);
}

static void keep_step(abx__pages *pages, abx_op *op)
{
	abx_op_free(pages->op);
	op->refs++;
	pages->op = op;
}

int abx__pages_check(const void *iter, const char *call, abx_error **reterr)
{
	return iter ? ABX_OK
		    : abx__error_set(reterr, ABX_EINVAL, "%s: the iterator is NULL",
				     call);
}

int abx__pages_next(abx__pages *pages, const abx__then *then, abx_error **reterr)
{
	abx_op *op = NULL;
	abx_error *err = NULL;
	int r;

	if (pages->op && !pages->op->is_finished)
		return abx__error_set(reterr, ABX_ESTATE,
				      "a step of this walk is under way");
	r = abx__op_new(pages->client, then, &op, reterr, "%s", pages->ops->what);
	if (r < 0)
		return r;
	op->on_answer = page_answer;
	op->state = pages;
	r = step(pages, &err);
	if (r == 0 && (!pages->is_started || pages->next_token)) {
		r = fetch(pages, op, reterr);
		if (r >= 0)
			keep_step(pages, op);
		return r;
	}
	op->result = r == 1 ? pages->item : NULL;
	abx__op_finish(op, r, err);
	keep_step(pages, op);
	return abx__op_started(op);
}

int abx__pages_wait(abx__pages *pages, void *ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(pages->ops->kind, &wait);
	int r = abx__pages_next(pages, &then, reterr);

	if (r < 0)
		return r;
	r = abx__wait_end(pages->client, &wait, r, reterr);
	if (r == 1 && ret)
		memcpy(ret, &wait.result, sizeof(wait.result));
	return r;
}

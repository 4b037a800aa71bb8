/*
 * snapshot.c - making, listing and deleting snapshots over the control API.
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/options.h"
#include "client/pages.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "client/strings.h"
#include "io/json.h"

struct stored {
	abx_snapshot_info info; /* first: the public pointer is this one */
	abx__strings strings;
};

void abx_snapshot_info_free(abx_snapshot_info *info)
{
	struct stored *stored = (struct stored *)info;

	if (!stored)
		return;
	abx__strings_done(&stored->strings);
	abx__free(stored);
}

ABX_DEFINE_FREEP(info_freep, abx_snapshot_info, abx_snapshot_info_free)

static int parse_info(json_object *obj, void **ret, abx_error **reterr)
{
	ABX_CLEANUP(info_freep) abx_snapshot_info *info = NULL;
	json_object *names = NULL;
	struct stored *stored;
	const char *id = NULL;

	if (!json_object_is_type(obj, json_type_object) ||
	    abx__json_get_str(obj, "snapshotID", &id, NULL) <= 0)
		return abx__error_set(reterr, ABX_EPROTO, "the answer has no snapshotID");
	stored = abx__calloc(1, sizeof(*stored));
	if (!stored)
		return abx__error_nomem(reterr);
	info = &stored->info;
	info->size = sizeof(*info);
	abx__json_get_array(obj, "names", &names, NULL);
	if (abx__strings_take(&stored->strings, abx__json_text(obj, NULL), &info->json) <
		    0 ||
	    abx__strings_member(&stored->strings, obj, "snapshotID", "", &info->id) < 0 ||
	    abx__strings_list(&stored->strings, names, &info->names) < 0)
		return abx__error_nomem(reterr);
	*ret = abx_take(info);
	return ABX_OK;
}

/* ---- create ---- */

static int create_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	int r;

	if (status != 200 && status != 201)
		return abx__answer_failed(op, status, reterr);
	r = abx__answer_object(op, &obj, reterr);
	return r < 0 ? r : parse_info(obj, &op->result, reterr);
}

static int start_create(abx_sandbox *sandbox, const abx_snapshot_options *user_opts,
			const abx__then *then, abx_error **reterr)
{
	abx_snapshot_options opts;
	json_object *body;
	int r;

	r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_snapshot_options",
			      reterr);
	if (r < 0)
		return r;
	body = json_object_new_object();
	if (!body || (opts.name && abx__json_set_str(body, "name", opts.name) < 0)) {
		json_object_put(body);
		return abx__error_nomem(reterr);
	}
	return abx__sandbox_control(sandbox, then, "make a snapshot of sandbox", "POST",
				    "/snapshots", body, create_answer, reterr);
}

int abx_snapshot_create(abx_sandbox *sandbox, const abx_snapshot_options *opts,
			abx_snapshot_info **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_SNAPSHOT, &wait);

	return abx__wait_object(ABX__CLIENT_OF(sandbox), &then,
				start_create(sandbox, opts, &then, reterr), ret, reterr);
}

int abx_snapshot_create_async(abx_sandbox *sandbox, const abx_snapshot_options *opts,
			      abx_snapshot_info_fn done, void *userdata,
			      abx_free_fn free_userdata, abx_op **ret_op,
			      abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_SNAPSHOT, snapshot, done);

	return abx__then_end(&then, start_create(sandbox, opts, &then, reterr));
}

/* ---- delete ---- */

static int delete_answer(abx_op *op, int status, abx_error **reterr)
{
	if (status >= 200 && status < 300)
		return 1;
	return status == 404 ? 0 : abx__answer_failed(op, status, reterr);
}

static int start_delete(abx_client *client, const char *id, const abx__then *then,
			abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_E2B, .method = "DELETE" };
	ABX_CLEANUP(abx__freep) char *coded = NULL;
	ABX_CLEANUP(abx__freep) char *path = NULL;
	abx_op *op = NULL;
	int r;

	if (!client || !id || !*id)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"abx_snapshot_delete: an argument is NULL or empty");
	r = abx__op_new(client, then, &op, reterr, "delete snapshot %s", id);
	if (r < 0)
		return r;
	op->on_answer = delete_answer;
	coded = abx__url_encode(id);
	path = coded ? abx__strf("/templates/%s", coded) : NULL;
	if (!path)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	req.path = path;
	return abx__request_send(op, &req, reterr);
}

int abx_snapshot_delete(abx_client *client, const char *id, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);

	return abx__wait_end(client, &wait, start_delete(client, id, &then, reterr),
			     reterr);
}

int abx_snapshot_delete_async(abx_client *client, const char *id, abx_done_fn done,
			      void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			      abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_delete(client, id, &then, reterr));
}

/* ---- list ---- */

struct abx_snapshot_iter {
	abx__pages pages;
};

static void free_info(void *item)
{
	abx_snapshot_info_free(item);
}

static const abx__pages_ops snapshot_pages = {
	.what = "list snapshots",
	.kind = ABX__OP_SNAPSHOT_NEXT,
	.parse = parse_info,
	.free_item = free_info,
};

void abx_snapshot_iter_free(abx_snapshot_iter *iter)
{
	if (!iter)
		return;
	abx__pages_done(&iter->pages);
	abx__free(iter);
}

static int add_filter(abx__buf *path, const char *key, const char *value)
{
	ABX_CLEANUP(abx__freep) char *coded = value ? abx__url_encode(value) : NULL;

	if (!value)
		return ABX_OK;
	return coded ? abx__buf_addf(path, "&%s=%s", key, coded) : ABX_ENOMEM;
}

int abx_snapshot_list(abx_client *client, const abx_snapshot_list_options *user_opts,
		      abx_snapshot_iter **ret, abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf path = ABX__BUF_INIT;
	abx_snapshot_list_options opts;
	abx_snapshot_iter *iter;
	char *taken = NULL;
	int r;

	if (!client || !ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_snapshot_list: an argument is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts,
				   "abx_snapshot_list_options", reterr)) < 0 ||
	    (r = abx__pages_limit(opts.page_count, reterr)) < 0)
		return r;
	if (abx__buf_addf(&path, "/snapshots?limit=%u",
			  opts.page_count ? opts.page_count : ABX__PAGE_MAX) < 0 ||
	    add_filter(&path, "sandboxID", opts.sandbox_id) < 0 ||
	    add_filter(&path, "name", opts.name) < 0)
		return abx__error_nomem(reterr);
	iter = abx__calloc(1, sizeof(*iter));
	taken = iter ? abx__buf_take(&path) : NULL;
	if (!taken) {
		abx__free(iter);
		return abx__error_nomem(reterr);
	}
	abx__pages_init(&iter->pages, client, &snapshot_pages, taken);
	*ret = iter;
	return ABX_OK;
}

int abx_snapshot_iter_next(abx_snapshot_iter *iter, const abx_snapshot_info **ret,
			   abx_error **reterr)
{
	int r = abx__pages_check(iter, "abx_snapshot_iter_next", reterr);

	return r < 0 ? r : abx__pages_wait(&iter->pages, ret, reterr);
}

int abx_snapshot_iter_next_async(abx_snapshot_iter *iter, abx_snapshot_next_fn done,
				 void *userdata, abx_free_fn free_userdata,
				 abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_SNAPSHOT_NEXT, snapshot_next, done);
	int r = abx__pages_check(iter, "abx_snapshot_iter_next", reterr);

	if (r >= 0)
		r = abx__pages_next(&iter->pages, &then, reterr);
	return abx__then_end(&then, r);
}

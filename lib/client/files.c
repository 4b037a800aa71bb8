/*
 * files.c - envd's filesystem service: list, stat, exists, make, move, remove.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/file-info.h"
#include "client/options.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "io/json.h"

#define MAX_LIST_ANSWER ((size_t)64 << 20)

typedef int (*answer_fn)(abx_op *op, int status, abx_error **reterr);

/* One call of the service. */
struct call {
	const char *what;
	const char *method; /* "/filesystem.Filesystem/..." */
	answer_fn on_answer;
	const char *path_key;
	const char *path;
	const char *to; /* "destination", or NULL */
	bool has_depth;
};

static int make_message(const struct call *call, const abx_file_options *opts,
			json_object **ret)
{
	ABX_CLEANUP_JSON json_object *message = json_object_new_object();

	if (!message || abx__json_set_str(message, call->path_key, call->path) < 0 ||
	    (call->to && abx__json_set_str(message, "destination", call->to) < 0) ||
	    (call->has_depth &&
	     abx__json_set_i64(message, "depth", opts->depth ? opts->depth : 1) < 0))
		return ABX_ENOMEM;
	*ret = abx_take(message);
	return ABX_OK;
}

int abx__file_check_options(const char *what, const abx_file_options *opts,
			    unsigned known, abx_error **reterr)
{
	const char *option = NULL;

	if (opts->metadata && !(known & ABX__FILE_METADATA))
		option = "metadata";
	else if (opts->offset_bytes && !(known & ABX__FILE_RANGE))
		option = "offset_bytes";
	else if (opts->length_bytes && !(known & ABX__FILE_RANGE))
		option = "length_bytes";
	else if (opts->gzip && !(known & ABX__FILE_GZIP))
		option = "gzip";
	if (option)
		return abx__error_set(reterr, ABX_EINVAL, "%s: %s is not for this call",
				      what, option);
	return ABX_OK;
}

int abx__file_check_path(const char *what, const char *path, abx_error **reterr)
{
	if (path && *path && abx__utf8_is_valid(path, strlen(path)))
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "%s: the path is %s", what,
			      !path   ? "NULL"
			      : *path ? "not UTF-8"
				      : "empty");
}

static int start_call(abx_sandbox *sandbox, const struct call *call,
		      const abx_file_options *user_opts, const abx__then *then,
		      abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .method = "POST",
			     .sandbox = sandbox,
			     .path = call->method,
			     .is_rpc = true,
			     .max_answer = MAX_LIST_ANSWER };
	json_object *message = NULL;
	abx_file_options opts;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL, "%s: the sandbox is NULL",
				      call->what);
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_file_options",
				   reterr)) < 0 ||
	    (r = abx__file_check_options(call->what, &opts, 0, reterr)) < 0 ||
	    (r = abx__file_check_path(call->what, call->path, reterr)) < 0 ||
	    (call->to && (r = abx__file_check_path(call->what, call->to, reterr)) < 0) ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr, "%s %s in sandbox %s",
			     call->what, call->path, sandbox->id)) < 0)
		return r;
	op->on_answer = call->on_answer;
	if (make_message(call, &opts, &message) < 0)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	r = abx__request_json(op, message, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	req.user = opts.user;
	req.timeout_ms = opts.request_timeout_ms;
	return abx__request_send(op, &req, reterr);
}

#define BLOCK(kind, start) ABX__BLOCK(sandbox->client, kind, start)

/* ---- answers ---- */

static int info_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	abx_file_info *info = NULL;
	int r;

	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = abx__answer_object(op, &obj, reterr);
	if (r < 0)
		return r;
	r = abx__file_info_parse(obj, &info);
	if (r < 0)
		return r == ABX_ENOMEM
			       ? abx__error_nomem(reterr)
			       : abx__error_set(reterr, r,
						"the answer does not describe a file");
	op->result = info;
	return ABX_OK;
}

static int list_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	abx_file_list *list = NULL;
	int r;

	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = abx__json_parse_object(abx__buf_str(&op->in), op->in.len, MAX_LIST_ANSWER,
				   &obj, reterr);
	if (r >= 0)
		r = abx__file_list_parse(obj, &list);
	if (r < 0)
		return abx__error_set(reterr, r == ABX_ENOMEM ? r : ABX_EPROTO,
				      "the answer is not a list of files");
	op->result = list;
	return ABX_OK;
}

static int exists_answer(abx_op *op, int status, abx_error **reterr)
{
	if (status == 200)
		return 1;
	if (status == 404 && abx__answer_is_connect(op, "not_found"))
		return 0;
	return abx__answer_failed(op, status, reterr);
}

static int make_dir_answer(abx_op *op, int status, abx_error **reterr)
{
	if (status == 200)
		return 1;
	if (status == 409 && abx__answer_is_connect(op, "already_exists"))
		return 0;
	return abx__answer_failed(op, status, reterr);
}

/* ---- the calls ---- */

static int start_list(abx_sandbox *sandbox, const char *path,
		      const abx_file_options *opts, const abx__then *then,
		      abx_error **reterr)
{
	const struct call call = { .what = "list",
				   .method = "/filesystem.Filesystem/ListDir",
				   .on_answer = list_answer,
				   .path_key = "path",
				   .path = path,
				   .has_depth = true };

	return start_call(sandbox, &call, opts, then, reterr);
}

int abx_file_list_dir(abx_sandbox *sandbox, const char *path,
		      const abx_file_options *opts, abx_file_list **ret,
		      abx_error **reterr)
{
	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_file_list_dir: ret is NULL");
	BLOCK(ABX__OP_FILE_LIST, start_list(sandbox, path, opts, &then, reterr));
	if (r >= 0)
		*ret = wait.result;
	return r;
}

int abx_file_list_dir_async(abx_sandbox *sandbox, const char *path,
			    const abx_file_options *opts, abx_file_list_fn done,
			    void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			    abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_FILE_LIST, file_list, done);

	return abx__then_end(&then, start_list(sandbox, path, opts, &then, reterr));
}

static int start_stat(abx_sandbox *sandbox, const char *path,
		      const abx_file_options *opts, const abx__then *then,
		      abx_error **reterr)
{
	const struct call call = { .what = "look at",
				   .method = "/filesystem.Filesystem/Stat",
				   .on_answer = info_answer,
				   .path_key = "path",
				   .path = path };

	return start_call(sandbox, &call, opts, then, reterr);
}

int abx_file_stat(abx_sandbox *sandbox, const char *path, const abx_file_options *opts,
		  abx_file_info **ret, abx_error **reterr)
{
	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL, "abx_file_stat: ret is NULL");
	BLOCK(ABX__OP_FILE_INFO, start_stat(sandbox, path, opts, &then, reterr));
	if (r >= 0)
		*ret = wait.result;
	return r;
}

int abx_file_stat_async(abx_sandbox *sandbox, const char *path,
			const abx_file_options *opts, abx_file_info_fn done,
			void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_FILE_INFO, file_info, done);

	return abx__then_end(&then, start_stat(sandbox, path, opts, &then, reterr));
}

static int start_exists(abx_sandbox *sandbox, const char *path,
			const abx_file_options *opts, const abx__then *then,
			abx_error **reterr)
{
	const struct call call = { .what = "look for",
				   .method = "/filesystem.Filesystem/Stat",
				   .on_answer = exists_answer,
				   .path_key = "path",
				   .path = path };

	return start_call(sandbox, &call, opts, then, reterr);
}

int abx_file_exists(abx_sandbox *sandbox, const char *path, const abx_file_options *opts,
		    abx_error **reterr)
{
	BLOCK(ABX__OP_DONE, start_exists(sandbox, path, opts, &then, reterr));
	return r;
}

int abx_file_exists_async(abx_sandbox *sandbox, const char *path,
			  const abx_file_options *opts, abx_done_fn done, void *userdata,
			  abx_free_fn free_userdata, abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_exists(sandbox, path, opts, &then, reterr));
}

static int start_make_dir(abx_sandbox *sandbox, const char *path,
			  const abx_file_options *opts, const abx__then *then,
			  abx_error **reterr)
{
	const struct call call = { .what = "make directory",
				   .method = "/filesystem.Filesystem/MakeDir",
				   .on_answer = make_dir_answer,
				   .path_key = "path",
				   .path = path };

	return start_call(sandbox, &call, opts, then, reterr);
}

int abx_file_make_dir(abx_sandbox *sandbox, const char *path,
		      const abx_file_options *opts, abx_error **reterr)
{
	BLOCK(ABX__OP_DONE, start_make_dir(sandbox, path, opts, &then, reterr));
	return r;
}

int abx_file_make_dir_async(abx_sandbox *sandbox, const char *path,
			    const abx_file_options *opts, abx_done_fn done,
			    void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			    abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_make_dir(sandbox, path, opts, &then, reterr));
}

static int start_move(abx_sandbox *sandbox, const char *from, const char *to,
		      const abx_file_options *opts, const abx__then *then,
		      abx_error **reterr)
{
	const struct call call = { .what = "move",
				   .method = "/filesystem.Filesystem/Move",
				   .on_answer = info_answer,
				   .path_key = "source",
				   .path = from,
				   .to = to ? to : "" };

	return start_call(sandbox, &call, opts, then, reterr);
}

int abx_file_move(abx_sandbox *sandbox, const char *from, const char *to,
		  const abx_file_options *opts, abx_file_info **ret, abx_error **reterr)
{
	BLOCK(ABX__OP_FILE_INFO, start_move(sandbox, from, to, opts, &then, reterr));
	if (r >= 0 && ret)
		*ret = wait.result;
	else
		abx_file_info_free(wait.result);
	return r;
}

int abx_file_move_async(abx_sandbox *sandbox, const char *from, const char *to,
			const abx_file_options *opts, abx_file_info_fn done,
			void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_FILE_INFO, file_info, done);

	return abx__then_end(&then, start_move(sandbox, from, to, opts, &then, reterr));
}

static int start_remove(abx_sandbox *sandbox, const char *path,
			const abx_file_options *opts, const abx__then *then,
			abx_error **reterr)
{
	const struct call call = { .what = "remove",
				   .method = "/filesystem.Filesystem/Remove",
				   .on_answer = abx__answer_none,
				   .path_key = "path",
				   .path = path };

	return start_call(sandbox, &call, opts, then, reterr);
}

int abx_file_remove(abx_sandbox *sandbox, const char *path, const abx_file_options *opts,
		    abx_error **reterr)
{
	BLOCK(ABX__OP_DONE, start_remove(sandbox, path, opts, &then, reterr));
	return r;
}

int abx_file_remove_async(abx_sandbox *sandbox, const char *path,
			  const abx_file_options *opts, abx_done_fn done, void *userdata,
			  abx_free_fn free_userdata, abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_remove(sandbox, path, opts, &then, reterr));
}

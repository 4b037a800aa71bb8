/*
 * file-compose.c - several files become one: envd's /files/compose.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/file-info.h"
#include "client/options.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "io/json.h"

static int make_message(const char *const *sources, const char *destination,
			const abx_file_options *opts, json_object **ret)
{
	ABX_CLEANUP_JSON json_object *message = json_object_new_object();
	json_object *paths = json_object_new_array();

	if (!message || !paths ||
	    abx__json_set_take(message, "source_paths", paths) < 0 ||
	    abx__json_set_str(message, "destination", destination) < 0 ||
	    (opts->user && abx__json_set_str(message, "username", opts->user) < 0))
		return ABX_ENOMEM;
	for (size_t i = 0; sources[i]; i++) {
		json_object *path = json_object_new_string(sources[i]);

		if (!path || abx__json_push_take(paths, path) < 0)
			return ABX_ENOMEM;
	}
	*ret = abx_take(message);
	return ABX_OK;
}

static int check(const char *const *sources, const char *destination,
		 const abx_file_options *opts, abx_error **reterr)
{
	int r = abx__file_check_options("compose", opts, 0, reterr);

	if (r >= 0)
		r = abx__file_check_path("compose", destination, reterr);
	if (r >= 0 && (!sources || !sources[0]))
		return abx__error_set(reterr, ABX_EINVAL, "compose %s: no sources",
				      destination);
	for (size_t i = 0; r >= 0 && sources[i]; i++)
		r = abx__file_check_path("compose", sources[i], reterr);
	return r;
}

static int start(abx_sandbox *sandbox, const char *const *sources,
		 const char *destination, const abx_file_options *user_opts,
		 const abx__then *then, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .method = "POST",
			     .sandbox = sandbox,
			     .path = "/files/compose" };
	json_object *message = NULL;
	abx_file_options opts;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL, "compose: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_file_options",
				   reterr)) < 0 ||
	    (r = check(sources, destination, &opts, reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr,
			     "compose %s in sandbox %s", destination, sandbox->id)) < 0)
		return r;
	op->on_answer = abx__answer_none;
	r = make_message(sources, destination, &opts, &message);
	r = r < 0 ? abx__error_nomem(reterr) : abx__request_json(op, message, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	req.timeout_ms = opts.request_timeout_ms;
	return abx__request_send(op, &req, reterr);
}

int abx_file_compose(abx_sandbox *sandbox, const char *const *sources,
		     const char *destination, const abx_file_options *opts,
		     abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start(sandbox, sources, destination, opts, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_file_compose_async(abx_sandbox *sandbox, const char *const *sources,
			   const char *destination, const abx_file_options *opts,
			   abx_done_fn done, void *userdata, abx_free_fn free_userdata,
			   abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then,
			     start(sandbox, sources, destination, opts, &then, reterr));
}

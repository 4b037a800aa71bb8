/*
 * code-context.c - the calls of <agentbox/code.h> for contexts.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "io/json.h"

/* A kernel starts before the answer. */
#define START_TIMEOUT_MS 90000

static int start_call(abx_sandbox *sandbox, const abx__then *then, const char *what,
		      const char *method, const char *path, json_object *body,
		      int (*on_answer)(abx_op *, int, abx_error **), abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .method = method,
			     .path = path,
			     .sandbox = sandbox,
			     .port = ABX__INTERPRETER_PORT,
			     .timeout_ms = START_TIMEOUT_MS };
	abx_op *op = NULL;
	int r = abx__op_new(sandbox->client, then, &op, reterr, "%s in sandbox %s", what,
			    sandbox->id);

	if (r < 0) {
		json_object_put(body);
		return r;
	}
	op->on_answer = on_answer;
	if (body) {
		r = abx__request_json(op, body, reterr);
		if (r < 0)
			return abx__op_abandon(op, r, reterr);
	}
	return abx__request_send(op, &req, reterr);
}

/* ---- create ---- */

static int create_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *context = NULL;
	const char *id = NULL;
	int r;

	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = abx__answer_object(op, &context, reterr);
	if (r < 0)
		return r;
	if (abx__json_get_str(context, "id", &id, NULL) <= 0)
		return abx__error_set(reterr, ABX_EPROTO, "the answer has no id");
	op->result = abx__strdup(id);
	return op->result ? ABX_OK : abx__error_nomem(reterr);
}

static int start_create(abx_sandbox *sandbox, const char *language, const char *cwd,
			const abx__then *then, abx_error **reterr)
{
	json_object *body;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "make a context: the sandbox is NULL");
	body = json_object_new_object();
	r = body ? ABX_OK : ABX_ENOMEM;
	if (r >= 0 && language)
		r = abx__json_set_str(body, "language", language);
	if (r >= 0 && cwd)
		r = abx__json_set_str(body, "cwd", cwd);
	if (r < 0) {
		json_object_put(body);
		return abx__error_nomem(reterr);
	}
	return start_call(sandbox, then, "make a context", "POST", "/contexts", body,
			  create_answer, reterr);
}

int abx_code_context_create(abx_sandbox *sandbox, const char *language, const char *cwd,
			    char **ret_id, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_TEXT, &wait);
	int r = start_create(sandbox, language, cwd, &then, reterr);

	return abx__wait_text(ABX__CLIENT_OF(sandbox), &wait, r, ret_id, reterr);
}

int abx_code_context_create_async(abx_sandbox *sandbox, const char *language,
				  const char *cwd, abx_text_fn done, void *userdata,
				  abx_free_fn free_userdata, abx_op **ret_op,
				  abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_TEXT, text, done);

	return abx__then_end(&then, start_create(sandbox, language, cwd, &then, reterr));
}

/* ---- restart, remove ---- */

static int start_change(abx_sandbox *sandbox, const char *context_id, bool is_restart,
			const abx__then *then, abx_error **reterr)
{
	const char *what = is_restart ? "restart a context" : "remove a context";
	ABX_CLEANUP(abx__freep) char *coded = NULL, *path = NULL;

	if (!sandbox || !context_id || !*context_id)
		return abx__error_set(reterr, ABX_EINVAL, "%s: the %s", what,
				      sandbox ? "id is empty" : "sandbox is NULL");
	coded = abx__url_encode(context_id);
	path = coded ? abx__strf("/contexts/%s%s", coded, is_restart ? "/restart" : "")
		     : NULL;
	if (!path)
		return abx__error_nomem(reterr);
	return start_call(sandbox, then, what, is_restart ? "POST" : "DELETE", path, NULL,
			  abx__answer_none, reterr);
}

int abx_code_context_restart(abx_sandbox *sandbox, const char *context_id,
			     abx_error **reterr)
{
	ABX__BLOCK(sandbox->client, ABX__OP_DONE,
		   start_change(sandbox, context_id, true, &then, reterr));
	return r;
}

int abx_code_context_restart_async(abx_sandbox *sandbox, const char *context_id,
				   abx_done_fn done, void *userdata,
				   abx_free_fn free_userdata, abx_op **ret_op,
				   abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then,
			     start_change(sandbox, context_id, true, &then, reterr));
}

int abx_code_context_remove(abx_sandbox *sandbox, const char *context_id,
			    abx_error **reterr)
{
	ABX__BLOCK(sandbox->client, ABX__OP_DONE,
		   start_change(sandbox, context_id, false, &then, reterr));
	return r;
}

int abx_code_context_remove_async(abx_sandbox *sandbox, const char *context_id,
				  abx_done_fn done, void *userdata,
				  abx_free_fn free_userdata, abx_op **ret_op,
				  abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then,
			     start_change(sandbox, context_id, false, &then, reterr));
}

/*
 * sandbox-control.c - asking about a sandbox, keeping it alive, pausing and ending it.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/op.h"
#include "client/options.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "io/json.h"

int abx__sandbox_control(abx_sandbox *sandbox, const abx__then *then, const char *what,
			 const char *method, const char *tail, json_object *body,
			 int (*on_answer)(abx_op *, int, abx_error **),
			 abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_E2B, .method = method };
	ABX_CLEANUP(abx__freep) char *path = NULL;
	ABX_CLEANUP_JSON json_object *json = body;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL, "%s: the sandbox is NULL",
				      what);
	r = abx__op_new(sandbox->client, then, &op, reterr, "%s %s", what, sandbox->id);
	if (r < 0)
		return r;
	op->on_answer = on_answer;
	path = abx__strf("/sandboxes/%s%s", sandbox->id, tail);
	if (!path)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	if (json) {
		r = abx__request_json(op, abx_take(json), reterr);
		if (r < 0)
			return abx__op_abandon(op, r, reterr);
	}
	req.path = path;
	return abx__request_send(op, &req, reterr);
}

static int info_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	abx_sandbox_info *info = NULL;
	int r;

	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = abx__answer_object(op, &obj, reterr);
	if (r < 0)
		return r;
	json_object_object_del(obj, "envdAccessToken"); /* not for info->json */
	r = abx__sandbox_info_parse(obj, &info, reterr);
	op->result = info;
	return r;
}

static int start_info(abx_sandbox *sandbox, const abx__then *then, abx_error **reterr)
{
	return abx__sandbox_control(sandbox, then, "look at sandbox", "GET", "", NULL,
				    info_answer, reterr);
}

int abx_sandbox_get_info(abx_sandbox *sandbox, abx_sandbox_info **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_SANDBOX_INFO, &wait);
	int r;

	if (!sandbox || !ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_get_info: an argument is NULL");
	r = abx__wait_end(sandbox->client, &wait, start_info(sandbox, &then, reterr),
			  reterr);
	if (r >= 0)
		*ret = wait.result;
	return r;
}

int abx_sandbox_get_info_async(abx_sandbox *sandbox, abx_sandbox_info_fn done,
			       void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			       abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_SANDBOX_INFO, sandbox_info, done);

	return abx__then_end(&then, start_info(sandbox, &then, reterr));
}

static int start_set_timeout(abx_sandbox *sandbox, uint32_t timeout_ms,
			     const abx__then *then, abx_error **reterr)
{
	json_object *body = json_object_new_object();

	if (!body ||
	    abx__json_set_i64(body, "timeout", abx__seconds_up(timeout_ms)) < 0) {
		json_object_put(body);
		return abx__error_nomem(reterr);
	}
	return abx__sandbox_control(sandbox, then, "set the timeout of sandbox", "POST",
				    "/timeout", body, abx__answer_none, reterr);
}

int abx_sandbox_set_timeout(abx_sandbox *sandbox, uint32_t timeout_ms, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_set_timeout(sandbox, timeout_ms, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_sandbox_set_timeout_async(abx_sandbox *sandbox, uint32_t timeout_ms,
				  abx_done_fn done, void *userdata,
				  abx_free_fn free_userdata, abx_op **ret_op,
				  abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then,
			     start_set_timeout(sandbox, timeout_ms, &then, reterr));
}

static int kill_answer(abx_op *op, int status, abx_error **reterr)
{
	if (status >= 200 && status < 300)
		return 1;
	if (status == 404)
		return 0;
	return abx__answer_failed(op, status, reterr);
}

static int start_kill(abx_sandbox *sandbox, const abx__then *then, abx_error **reterr)
{
	return abx__sandbox_control(sandbox, then, "kill sandbox", "DELETE", "", NULL,
				    kill_answer, reterr);
}

int abx_sandbox_kill(abx_sandbox *sandbox, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_kill(sandbox, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_sandbox_kill_async(abx_sandbox *sandbox, abx_done_fn done, void *userdata,
			   abx_free_fn free_userdata, abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_kill(sandbox, &then, reterr));
}

void abx__sandbox_kill_quietly(abx_sandbox *sandbox)
{
	abx__then then = { .kind = ABX__OP_DONE };

	start_kill(sandbox, &then, NULL);
}

static int health_answer(abx_op *op, int status, abx_error **reterr)
{
	if (status >= 200 && status < 300)
		return 1;
	if (status == 502 || status == 404)
		return 0;
	return abx__answer_failed(op, status, reterr);
}

static int start_is_running(abx_sandbox *sandbox, const abx__then *then,
			    abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .method = "GET",
			     .path = "/health",
			     .sandbox = sandbox };
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_is_running: the sandbox is NULL");
	r = abx__op_new(sandbox->client, then, &op, reterr,
			"ask sandbox %s whether it runs", sandbox->id);
	if (r < 0)
		return r;
	op->on_answer = health_answer;
	return abx__request_send(op, &req, reterr);
}

int abx_sandbox_is_running(abx_sandbox *sandbox, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_is_running(sandbox, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_sandbox_is_running_async(abx_sandbox *sandbox, abx_done_fn done, void *userdata,
				 abx_free_fn free_userdata, abx_op **ret_op,
				 abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_is_running(sandbox, &then, reterr));
}

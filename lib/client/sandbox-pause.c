/*
 * sandbox-pause.c - pausing a sandbox and resuming it.
 */
#include <string.h>

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

/* ---- pause ---- */

/* 409 says "paused already" as well as "not now": the message tells which. */
static int pause_answer(abx_op *op, int status, abx_error **reterr)
{
	int code;

	if (status >= 200 && status < 300)
		return 1;
	code = abx__answer_failed(op, status, reterr);
	if (status != 409 || !strstr(abx__buf_str(&op->in), "already paused"))
		return code;
	if (reterr) {
		abx_error_free(*reterr);
		*reterr = NULL;
	}
	return 0;
}

static int start_pause(abx_sandbox *sandbox, const abx_sandbox_pause_options *user_opts,
		       const abx__then *then, abx_error **reterr)
{
	abx_sandbox_pause_options opts;
	json_object *body;
	int r;

	r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_sandbox_pause_options",
			      reterr);
	if (r < 0)
		return r;
	body = json_object_new_object();
	if (!body || (opts.files_only && abx__json_set_bool(body, "memory", false) < 0)) {
		json_object_put(body);
		return abx__error_nomem(reterr);
	}
	return abx__sandbox_control(sandbox, then, "pause sandbox", "POST", "/pause",
				    body, pause_answer, reterr);
}

int abx_sandbox_pause(abx_sandbox *sandbox, const abx_sandbox_pause_options *opts,
		      abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_pause(sandbox, opts, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_sandbox_pause_async(abx_sandbox *sandbox, const abx_sandbox_pause_options *opts,
			    abx_done_fn done, void *userdata, abx_free_fn free_userdata,
			    abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_pause(sandbox, opts, &then, reterr));
}

/* ---- resume ---- */

/* Where it is and what opens it may have changed meanwhile. */
static void renew(abx_sandbox *sandbox, abx_sandbox *fresh)
{
	char *domain = sandbox->domain, *traffic_token = sandbox->traffic_token;
	abx__secret *token = sandbox->token;

	sandbox->domain = fresh->domain;
	sandbox->token = fresh->token;
	sandbox->traffic_token = fresh->traffic_token;
	fresh->domain = domain;
	fresh->token = token;
	fresh->traffic_token = traffic_token;
}

static int resume_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	abx_sandbox *fresh = NULL;
	int r;

	if (status != 200 && status != 201)
		return abx__answer_failed(op, status, reterr);
	r = abx__answer_object(op, &obj, reterr);
	if (r >= 0)
		r = abx__sandbox_parse(op->client, obj, &fresh, reterr);
	abx__wipe(op->in.data, op->in.len); /* a token may be in it */
	if (r < 0)
		return r;
	renew(op->state, fresh);
	abx_sandbox_free(fresh);
	return status == 201;
}

static void free_state(void *state)
{
	abx_sandbox_free(state);
}

static int start_resume(abx_sandbox *sandbox,
			const abx_sandbox_connect_options *user_opts,
			const abx__then *then, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_E2B, .method = "POST" };
	ABX_CLEANUP(abx__freep) char *path = NULL;
	abx_sandbox_connect_options opts;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "resume a sandbox: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts,
				   "abx_sandbox_connect_options", reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr, "resume sandbox %s",
			     sandbox->id)) < 0)
		return r;
	op->on_answer = resume_answer;
	op->state = abx__sandbox_ref(sandbox);
	op->free_state = free_state;
	path = abx__strf("/v2/sandboxes/%s/connect", sandbox->id);
	r = abx__request_json(op, path ? abx__sandbox_connect_body(&opts) : NULL, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	req.path = path;
	return abx__request_send(op, &req, reterr);
}

int abx_sandbox_resume(abx_sandbox *sandbox, const abx_sandbox_connect_options *opts,
		       abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_resume(sandbox, opts, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_sandbox_resume_async(abx_sandbox *sandbox,
			     const abx_sandbox_connect_options *opts, abx_done_fn done,
			     void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			     abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_resume(sandbox, opts, &then, reterr));
}

/*
 * sandbox-create.c - creating sandboxes and connecting to them over the E2B control API.
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

#define STARTUP_GRACE_MS 30000

/* Reserved metadata: directives of a create (e2b-control-api.md section 12). */
#define KEY_IMAGE "agentbox.scitix.ai/image"
#define KEY_STARTUP_TIMEOUT "agentbox.scitix.ai/startup-timeout"
#define KEY_SCALING_GROUP "agentbox.scitix.ai/scaling-group"
#define KEY_NO_WAIT "agentbox.scitix.ai/no-wait"

static int sandbox_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	abx_sandbox *sandbox = NULL;
	int r;

	if (status != 200 && status != 201)
		return abx__answer_failed(op, status, reterr);
	r = abx__answer_object(op, &obj, reterr);
	if (r >= 0)
		r = abx__sandbox_parse(op->client, obj, &sandbox, reterr);
	/* The body may hold a token. */
	abx__wipe(op->in.data, op->in.len);
	if (r >= 0)
		op->result = sandbox;
	return r;
}

/* The name may be one's own mistake, or the instance has no env of the usual name. */
static int create_answer(abx_op *op, int status, abx_error **reterr)
{
	int r = sandbox_answer(op, status, reterr);

	if (r < 0 && reterr && strstr(abx_error_message(*reterr), "env or pool") &&
	    !abx_error_hint(*reterr))
		abx__error_hint(reterr,
				"\"abx envs\" lists the envs; \"abx create envs -f "
				"FILE\" makes one, and \"agentboxd --with-base\" "
				"the env \"base\" where there is none");
	return r;
}

/* Options that travel as reserved metadata. */
static int add_directives(const abx_sandbox_options *opts, json_object *metadata)
{
	ABX_CLEANUP(abx__freep) char *startup = NULL;
	int r = ABX_OK;

	if (opts->image)
		r = abx__json_set_str(metadata, KEY_IMAGE, opts->image);
	if (r >= 0 && opts->startup_timeout_ms) {
		startup = abx__strf("%u", abx__seconds_up(opts->startup_timeout_ms));
		r = startup ? abx__json_set_str(metadata, KEY_STARTUP_TIMEOUT, startup)
			    : ABX_ENOMEM;
	}
	if (r >= 0 && opts->scaling_group)
		r = abx__json_set_str(metadata, KEY_SCALING_GROUP, opts->scaling_group);
	if (r >= 0 && opts->no_wait)
		r = abx__json_set_str(metadata, KEY_NO_WAIT, "true");
	return r;
}

/* Sets a member unless it is an empty object. Takes `value`. */
static int set_unless_empty(json_object *obj, const char *key, json_object *value)
{
	if (json_object_object_length(value))
		return abx__json_set_take(obj, key, value);
	json_object_put(value);
	return ABX_OK;
}

/* What its timeout does. */
static int add_lifecycle(const abx_sandbox_options *opts, json_object *obj)
{
	json_object *resume;
	int r = ABX_OK;

	if (opts->on_timeout == ABX_ON_TIMEOUT_PAUSE)
		r = abx__json_set_bool(obj, "autoPause", true);
	if (r >= 0 && opts->pause_files_only)
		r = abx__json_set_bool(obj, "autoPauseMemory", false);
	if (r < 0 || !opts->auto_resume)
		return r;
	resume = json_object_new_object();
	if (!resume || abx__json_set_take(obj, "autoResume", resume) < 0)
		return ABX_ENOMEM;
	return abx__json_set_bool(resume, "enabled", true);
}

/* Who may reach its ports, and as what. */
static int add_network(const abx_sandbox_options *opts, json_object *obj)
{
	json_object *network;
	int r = ABX_OK;

	if (!opts->private_ports && !opts->mask_request_host)
		return ABX_OK;
	network = json_object_new_object();
	if (!network || abx__json_set_take(obj, "network", network) < 0)
		return ABX_ENOMEM;
	if (opts->private_ports)
		r = abx__json_set_bool(network, "allowPublicTraffic", false);
	if (r >= 0 && opts->mask_request_host)
		r = abx__json_set_str(network, "maskRequestHost",
				      opts->mask_request_host);
	return r;
}

static int check_lifecycle(const abx_sandbox_options *opts, abx_error **reterr)
{
	if (opts->on_timeout != ABX_ON_TIMEOUT_KILL &&
	    opts->on_timeout != ABX_ON_TIMEOUT_PAUSE)
		return abx__error_set(reterr, ABX_EINVAL,
				      "on_timeout %d is not one of enum abx_on_timeout",
				      opts->on_timeout);
	if (opts->pause_files_only && opts->on_timeout != ABX_ON_TIMEOUT_PAUSE)
		return abx__error_set(reterr, ABX_EINVAL,
				      "pause_files_only needs ABX_ON_TIMEOUT_PAUSE");
	if (opts->pause_files_only && opts->auto_resume)
		return abx__error_set(reterr, ABX_EINVAL,
				      "pause_files_only does not go with auto_resume: "
				      "without its memory a sandbox is resumed "
				      "explicitly only");
	return ABX_OK;
}

static int create_body(const abx_sandbox_options *opts, json_object **ret,
		       abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = json_object_new_object();
	ABX_CLEANUP_JSON json_object *metadata = NULL;
	ABX_CLEANUP_JSON json_object *envs = NULL;
	int r;

	if (!obj)
		return abx__error_nomem(reterr);
	if ((r = check_lifecycle(opts, reterr)) < 0 ||
	    (r = abx__pairs_json("metadata", opts->metadata, &metadata, reterr)) < 0 ||
	    (r = abx__pairs_json("env_vars", opts->env_vars, &envs, reterr)) < 0)
		return r;
	if (add_directives(opts, metadata) < 0 ||
	    abx__json_set_str(obj, "templateID",
			      opts->template_id ? opts->template_id : "base") < 0 ||
	    (opts->timeout_ms &&
	     abx__json_set_i64(obj, "timeout", abx__seconds_up(opts->timeout_ms)) < 0) ||
	    set_unless_empty(obj, "metadata", abx_take(metadata)) < 0 ||
	    set_unless_empty(obj, "envVars", abx_take(envs)) < 0 ||
	    add_lifecycle(opts, obj) < 0 || add_network(opts, obj) < 0)
		return abx__error_nomem(reterr);
	*ret = abx_take(obj);
	return ABX_OK;
}

static void end_orphan(void *userdata, int r, abx_sandbox *sandbox, const abx_error *err)
{
	(void)userdata;
	(void)err;
	if (r >= 0)
		abx__sandbox_kill_quietly(sandbox);
	abx_sandbox_free(sandbox);
}

/*
 * The platform may be past the point where it notices that we went, so the request goes
 * on without its caller and what it yields is killed. The caller's part moves to an
 * operation that is over at once.
 */
static void create_cancel(abx_op *op)
{
	abx__then then = op->then;
	abx_error *err = NULL;
	abx_op *told = NULL;

	then.ret_op = NULL;
	abx__error_set(&err, ABX_ECANCELED, "cancelled");
	if (abx__op_new(op->client, &then, &told, NULL, "%s", op->what) < 0) {
		abx_error_free(err);
		abx__http_call_cancel(op->call, ABX_ECANCELED);
		return;
	}
	op->then =
		(abx__then){ .kind = ABX__OP_SANDBOX, .fn = { .sandbox = end_orphan } };
	op->on_cancel = NULL;
	abx__op_finish(told, ABX_ECANCELED, err);
}

static uint32_t create_timeout(const abx_client *client, const abx_sandbox_options *opts)
{
	if (opts->request_timeout_ms)
		return opts->request_timeout_ms;
	if (!opts->startup_timeout_ms)
		return client->settings.create_timeout_ms;
	if (opts->startup_timeout_ms >= ABX_NO_TIMEOUT - STARTUP_GRACE_MS)
		return ABX_NO_TIMEOUT;
	return opts->startup_timeout_ms + STARTUP_GRACE_MS;
}

static int start_create(abx_client *client, const abx_sandbox_options *user_opts,
			const abx__then *then, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_E2B,
			     .method = "POST",
			     .path = "/v2/sandboxes" };
	abx_sandbox_options opts;
	json_object *body = NULL;
	abx_op *op = NULL;
	int r;

	if (!client)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_create: client is NULL");
	r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_sandbox_options",
			      reterr);
	if (r < 0)
		return r;
	r = abx__op_new(client, then, &op, reterr, "create a sandbox from %s",
			opts.template_id ? opts.template_id : "base");
	if (r < 0)
		return r;
	op->on_answer = create_answer;
	op->on_cancel = create_cancel;
	r = create_body(&opts, &body, reterr);
	if (r >= 0)
		r = abx__request_json(op, body, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	req.timeout_ms = create_timeout(client, &opts);
	return abx__request_send(op, &req, reterr);
}

int abx_sandbox_create(abx_client *client, const abx_sandbox_options *opts,
		       abx_sandbox **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_SANDBOX, &wait);
	int r;

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_create: ret is NULL");
	r = abx__wait_end(client, &wait, start_create(client, opts, &then, reterr),
			  reterr);
	if (r >= 0)
		*ret = wait.result;
	return r;
}

int abx_sandbox_create_async(abx_client *client, const abx_sandbox_options *opts,
			     abx_sandbox_fn done, void *userdata,
			     abx_free_fn free_userdata, abx_op **ret_op,
			     abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_SANDBOX, sandbox, done);

	return abx__then_end(&then, start_create(client, opts, &then, reterr));
}

json_object *abx__sandbox_connect_body(const abx_sandbox_connect_options *opts)
{
	ABX_CLEANUP_JSON json_object *body = json_object_new_object();

	if (!body ||
	    (opts->timeout_ms &&
	     abx__json_set_i64(body, "timeout", abx__seconds_up(opts->timeout_ms)) < 0) ||
	    (opts->reboot && abx__json_set_bool(body, "memory", false) < 0))
		return NULL;
	return abx_take(body);
}

static int start_connect(abx_client *client, const char *id,
			 const abx_sandbox_connect_options *user_opts,
			 const abx__then *then, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_E2B, .method = "POST" };
	ABX_CLEANUP(abx__freep) char *path = NULL;
	abx_sandbox_connect_options opts;
	json_object *body;
	abx_op *op = NULL;
	int r;

	if (!client)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_connect: client is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts,
				   "abx_sandbox_connect_options", reterr)) < 0 ||
	    (r = abx__sandbox_check_id(id, reterr)) < 0 ||
	    (r = abx__op_new(client, then, &op, reterr, "connect to sandbox %s", id)) < 0)
		return r;
	op->on_answer = sandbox_answer;
	path = abx__strf("/v2/sandboxes/%s/connect", id);
	body = path ? abx__sandbox_connect_body(&opts) : NULL;
	r = abx__request_json(op, body, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	req.path = path;
	return abx__request_send(op, &req, reterr);
}

int abx_sandbox_connect(abx_client *client, const char *id,
			const abx_sandbox_connect_options *opts, abx_sandbox **ret,
			abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_SANDBOX, &wait);
	int r;

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_connect: ret is NULL");
	r = abx__wait_end(client, &wait, start_connect(client, id, opts, &then, reterr),
			  reterr);
	if (r >= 0)
		*ret = wait.result;
	return r;
}

int abx_sandbox_connect_async(abx_client *client, const char *id,
			      const abx_sandbox_connect_options *opts,
			      abx_sandbox_fn done, void *userdata,
			      abx_free_fn free_userdata, abx_op **ret_op,
			      abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_SANDBOX, sandbox, done);

	return abx__then_end(&then, start_connect(client, id, opts, &then, reterr));
}

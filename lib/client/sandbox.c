/*
 * sandbox.c - creating, finding and ending sandboxes over the E2B control API.
 */
#include "client/sandbox.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/op.h"
#include "client/options.h"
#include "client/request.h"
#include "io/json.h"

#define MAX_ID 128
#define STARTUP_GRACE_MS 30000

/* Reserved metadata: directives of a create (e2b-control-api.md section 12). */
#define KEY_IMAGE "agentbox.scitix.ai/image"
#define KEY_STARTUP_TIMEOUT "agentbox.scitix.ai/startup-timeout"
#define KEY_SCALING_GROUP "agentbox.scitix.ai/scaling-group"
#define KEY_NO_WAIT "agentbox.scitix.ai/no-wait"

/* ---- the handle ---- */

abx_sandbox *abx__sandbox_ref(abx_sandbox *sandbox)
{
	sandbox->refs++;
	return sandbox;
}

void abx_sandbox_free(abx_sandbox *sandbox)
{
	if (!sandbox || --sandbox->refs)
		return;
	abx__client_unref(sandbox->client);
	abx__free(sandbox->id);
	abx__free(sandbox->template_id);
	abx__free(sandbox->domain);
	abx__secret_free(sandbox->token);
	abx__free(sandbox);
}

ABX_DEFINE_FREEP(sandbox_freep, abx_sandbox, abx_sandbox_free)

static abx_sandbox *new_sandbox(abx_client *client, const char *id)
{
	abx_sandbox *sandbox = abx__calloc(1, sizeof(*sandbox));

	if (!sandbox)
		return NULL;
	sandbox->refs = 1;
	sandbox->client = abx__client_ref(client);
	sandbox->id = abx__strdup(id);
	if (!sandbox->id) {
		abx_sandbox_free(sandbox);
		return NULL;
	}
	return sandbox;
}

int abx__sandbox_check_id(const char *id, abx_error **reterr)
{
	size_t len = id ? strlen(id) : 0;

	if (len && len <= MAX_ID &&
	    strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-") == len && id[0] != '.' &&
	    id[0] != '-')
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "'%.40s' is not a sandbox id",
			      id ? id : "");
}

int abx_sandbox_open(abx_client *client, const char *id, abx_sandbox **ret,
		     abx_error **reterr)
{
	int r;

	if (!client || !ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_open: an argument is NULL");
	r = abx__sandbox_check_id(id, reterr);
	if (r < 0)
		return r;
	abx_sandbox *sandbox = new_sandbox(client, id);
	if (!sandbox)
		return abx__error_nomem(reterr);
	*ret = sandbox;
	return ABX_OK;
}

const char *abx_sandbox_id(abx_sandbox *sandbox)
{
	return sandbox->id;
}

const char *abx_sandbox_template_id(abx_sandbox *sandbox)
{
	return sandbox->template_id;
}

/* ---- create and connect ---- */

static int copy_member(json_object *obj, const char *key, char **ret, abx_error **reterr)
{
	const char *value = NULL;
	int r = abx__json_get_str(obj, key, &value, reterr);

	if (r < 0)
		return ABX_EPROTO;
	if (!value || !*value)
		return ABX_OK;
	*ret = abx__strdup(value);
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

/* A `Sandbox` of the control API. */
static int parse_sandbox(abx_client *client, json_object *obj, abx_sandbox **ret,
			 abx_error **reterr)
{
	ABX_CLEANUP(sandbox_freep) abx_sandbox *sandbox = NULL;
	const char *id = NULL;
	const char *token = NULL;
	int r;

	if (abx__json_get_str(obj, "sandboxID", &id, NULL) <= 0 ||
	    abx__sandbox_check_id(id, NULL) < 0)
		return abx__error_set(reterr, ABX_EPROTO, "the answer has no sandboxID");
	sandbox = new_sandbox(client, id);
	if (!sandbox)
		return abx__error_nomem(reterr);
	if ((r = copy_member(obj, "templateID", &sandbox->template_id, reterr)) < 0 ||
	    (r = copy_member(obj, "domain", &sandbox->domain, reterr)) < 0)
		return r;
	if (abx__json_get_str(obj, "envdAccessToken", &token, reterr) < 0)
		return ABX_EPROTO;
	if (token && *token && !strpbrk(token, "\r\n")) {
		sandbox->token = abx__secret_new(token, strlen(token));
		if (!sandbox->token)
			return abx__error_nomem(reterr);
	}
	*ret = abx_take(sandbox);
	return ABX_OK;
}

static int sandbox_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	abx_sandbox *sandbox = NULL;
	int r;

	if (status != 200 && status != 201)
		return abx__answer_failed(op, status, reterr);
	r = abx__answer_object(op, &obj, reterr);
	if (r >= 0)
		r = parse_sandbox(op->client, obj, &sandbox, reterr);
	/* The body may hold a token. */
	abx__wipe(op->in.data, op->in.len);
	if (r >= 0)
		op->result = sandbox;
	return r;
}

int abx__pairs_json(const char *what, const char *const *pairs, json_object **ret,
		    abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = json_object_new_object();

	if (!obj)
		return abx__error_nomem(reterr);
	for (size_t i = 0; pairs && pairs[i]; i++) {
		ABX_CLEANUP(abx__freep) char *key = NULL;
		const char *equals = strchr(pairs[i], '=');

		/* The value may be a secret, so the message shows no more than a key. */
		if (!equals || equals == pairs[i])
			return abx__error_set(reterr, ABX_EINVAL,
					      "%s: entry %zu is not KEY=VALUE", what, i);
		if (!abx__utf8_is_valid(pairs[i], strlen(pairs[i])))
			return abx__error_set(reterr, ABX_EINVAL,
					      "%s: entry %zu is not UTF-8", what, i);
		key = abx__strndup(pairs[i], (size_t)(equals - pairs[i]));
		if (!key || abx__json_set_str(obj, key, equals + 1) < 0)
			return abx__error_nomem(reterr);
	}
	*ret = abx_take(obj);
	return ABX_OK;
}

static uint32_t seconds_up(uint32_t ms)
{
	return ms / 1000 + (ms % 1000 != 0);
}

/* Options that travel as reserved metadata. */
static int add_directives(const abx_sandbox_options *opts, json_object *metadata)
{
	ABX_CLEANUP(abx__freep) char *startup = NULL;
	int r = ABX_OK;

	if (opts->image)
		r = abx__json_set_str(metadata, KEY_IMAGE, opts->image);
	if (r >= 0 && opts->startup_timeout_ms) {
		startup = abx__strf("%u", seconds_up(opts->startup_timeout_ms));
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

static int create_body(const abx_sandbox_options *opts, json_object **ret,
		       abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = json_object_new_object();
	ABX_CLEANUP_JSON json_object *metadata = NULL;
	ABX_CLEANUP_JSON json_object *envs = NULL;
	int r;

	if (!obj)
		return abx__error_nomem(reterr);
	if ((r = abx__pairs_json("metadata", opts->metadata, &metadata, reterr)) < 0 ||
	    (r = abx__pairs_json("env_vars", opts->env_vars, &envs, reterr)) < 0)
		return r;
	if (add_directives(opts, metadata) < 0 ||
	    abx__json_set_str(obj, "templateID",
			      opts->template_id ? opts->template_id : "base") < 0 ||
	    (opts->timeout_ms &&
	     abx__json_set_i64(obj, "timeout", seconds_up(opts->timeout_ms)) < 0) ||
	    set_unless_empty(obj, "metadata", abx_take(metadata)) < 0 ||
	    set_unless_empty(obj, "envVars", abx_take(envs)) < 0)
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

static uint32_t create_timeout(const abx_sandbox_options *opts)
{
	if (opts->request_timeout_ms || !opts->startup_timeout_ms)
		return opts->request_timeout_ms;
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
	op->on_answer = sandbox_answer;
	op->on_cancel = create_cancel;
	r = create_body(&opts, &body, reterr);
	if (r >= 0)
		r = abx__request_json(op, body, reterr);
	if (r < 0)
		return abx__op_abandon(op, r, reterr);
	req.timeout_ms = create_timeout(&opts);
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
	body = path ? json_object_new_object() : NULL;
	if (body && opts.timeout_ms &&
	    abx__json_set_i64(body, "timeout", seconds_up(opts.timeout_ms)) < 0) {
		json_object_put(body);
		body = NULL;
	}
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

/* ---- one sandbox's control calls ---- */

/* An operation on /sandboxes/ID + tail. `what_fmt` has one %s for the id. */
static int start_control(abx_sandbox *sandbox, const abx__then *then, const char *what,
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
	return start_control(sandbox, then, "look at sandbox", "GET", "", NULL,
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

	if (!body || abx__json_set_i64(body, "timeout", seconds_up(timeout_ms)) < 0) {
		json_object_put(body);
		return abx__error_nomem(reterr);
	}
	return start_control(sandbox, then, "set the timeout of sandbox", "POST",
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
	return start_control(sandbox, then, "kill sandbox", "DELETE", "", NULL,
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

/* ---- reaching it ---- */

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

char *abx__sandbox_base(const abx_sandbox *sandbox, unsigned port, const char *path)
{
	const abx__settings *s = &sandbox->client->settings;

	if (s->form == ABX__DATA_HEADERS)
		return abx__strf("%s%s", s->data_base, path);
	if (s->form == ABX__DATA_PATH)
		return abx__strf("%s/sandboxes/%s/%u%s", s->data_base, sandbox->id, port,
				 path);
	return abx__strf("%s://%u-%s.%s%s", s->scheme, port, sandbox->id,
			 sandbox->domain ? sandbox->domain : s->domain, path);
}

static int host_of(abx_sandbox *sandbox, unsigned port, bool with_scheme, char **ret,
		   abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *url = NULL;
	const abx__settings *s;

	if (!sandbox || !ret || port == 0 || port > 65535)
		return abx__error_set(reterr, ABX_EINVAL,
				      "port %u is not one of 1 to 65535", port);
	s = &sandbox->client->settings;
	if (sandbox->domain || s->form == ABX__DATA_HOST)
		url = abx__strf("%s://%u-%s.%s", s->scheme, port, sandbox->id,
				sandbox->domain ? sandbox->domain : s->domain);
	else if (s->public_base)
		url = abx__strf("%s/sandboxes/%s/%u", s->public_base, sandbox->id, port);
	else {
		abx__error_set(reterr, ABX_EUNSUPPORTED,
			       "sandbox %s: the platform is known by its socket %s only",
			       sandbox->id, s->socket_path);
		abx__error_hint(reterr,
				"set AGENTBOX_CLUSTER_API to its address, such as "
				"http://127.0.0.1:8080");
		return ABX_EUNSUPPORTED;
	}
	if (url && !with_scheme)
		memmove(url, strstr(url, "://") + 3, strlen(strstr(url, "://") + 3) + 1);
	if (!url)
		return abx__error_nomem(reterr);
	*ret = abx_take(url);
	return ABX_OK;
}

int abx_sandbox_get_host(abx_sandbox *sandbox, unsigned port, char **ret,
			 abx_error **reterr)
{
	return host_of(sandbox, port, false, ret, reterr);
}

int abx_sandbox_get_url(abx_sandbox *sandbox, unsigned port, char **ret,
			abx_error **reterr)
{
	return host_of(sandbox, port, true, ret, reterr);
}

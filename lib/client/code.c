/*
 * code.c - the calls of <agentbox/code.h> that run a cell: JSON lines of the code
 * interpreter as callbacks and a result.
 *
 * The connection is the cell's life: ending it interrupts the cell, so a time limit, a
 * refusal by a callback and a cancellation need no call of their own.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/options.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "client/strings.h"
#include "io/json.h"

#define DEFAULT_TIMEOUT_MS 300000
#define DEFAULT_MAX_OUTPUT ((size_t)64 << 20)
#define MAX_REFUSAL ((size_t)64 << 10)

/* What an abx_code_execution points to lies behind it. */
struct execution {
	abx_code_execution pub;
	abx__strings strings;
	abx__buf out, err;
	abx_code_result *results;
	size_t size;
};

/* A cell under way; the operation owns it. */
struct cell {
	abx_op *op;
	abx_code_options opts; /* callbacks and caps; its strings are gone */
	bool has_ended;
	struct execution *execution;
	abx__buf line;
	abx__buf refusal; /* the body of an answer that is no success */
};

static void free_execution(struct execution *execution)
{
	if (!execution)
		return;
	abx__strings_done(&execution->strings);
	abx__buf_done(&execution->out);
	abx__buf_done(&execution->err);
	abx__free(execution->results);
	abx__free(execution);
}

void abx_code_execution_free(abx_code_execution *execution)
{
	free_execution((struct execution *)execution);
}

static void free_cell(void *state)
{
	struct cell *cell = state;

	free_execution(cell->execution);
	abx__buf_done(&cell->line);
	abx__buf_done(&cell->refusal);
	abx__free(cell);
}

/* ---- events ---- */

static int take_output(struct cell *cell, json_object *event, abx_sink_fn sink,
		       abx__buf *collected)
{
	json_object *text = NULL;
	size_t len;
	int r;

	json_object_object_get_ex(event, "text", &text);
	if (!json_object_is_type(text, json_type_string))
		return ABX_EPROTO;
	len = (size_t)json_object_get_string_len(text);
	if (!sink)
		return abx__buf_add(collected, json_object_get_string(text), len);
	r = sink(cell->opts.userdata, json_object_get_string(text), len);
	return r == ABX_PAUSE ? ABX_EINVAL : r;
}

static int member_text(abx__strings *strings, json_object *event, const char *key,
		       bool is_json, const char **ret)
{
	json_object *value = NULL;

	json_object_object_get_ex(event, key, &value);
	if (!value)
		return ABX_OK;
	if (is_json)
		return abx__strings_take(strings, abx__json_text(value, NULL), ret);
	if (!json_object_is_type(value, json_type_string))
		return ABX_OK;
	return abx__strings_take(strings, abx__strdup(json_object_get_string(value)),
				 ret);
}

static int read_result(abx__strings *strings, json_object *event, abx_code_result *ret)
{
	const struct {
		const char *key;
		bool is_json;
		const char **at;
	} forms[] = {
		{ "text", false, &ret->text },
		{ "html", false, &ret->html },
		{ "markdown", false, &ret->markdown },
		{ "svg", false, &ret->svg },
		{ "latex", false, &ret->latex },
		{ "javascript", false, &ret->javascript },
		{ "png", false, &ret->png },
		{ "jpeg", false, &ret->jpeg },
		{ "pdf", false, &ret->pdf },
		{ "json", true, &ret->json },
		{ "data", true, &ret->data },
		{ "chart", true, &ret->chart },
		{ "extra", true, &ret->extra },
	};
	bool is_main = false;
	int r = ABX_OK;

	abx__json_get_bool(event, "is_main_result", &is_main, NULL);
	ret->size = sizeof(*ret);
	ret->is_main = is_main;
	for (size_t i = 0; r >= 0 && i < sizeof(forms) / sizeof(forms[0]); i++)
		r = member_text(strings, event, forms[i].key, forms[i].is_json,
				forms[i].at);
	if (ret->extra && strcmp(ret->extra, "{}") == 0)
		ret->extra = NULL;
	return r;
}

static int keep_result(struct execution *execution, const abx_code_result *result)
{
	size_t count = execution->pub.result_count;

	if (count == execution->size) {
		size_t size = execution->size ? execution->size * 2 : 4;
		abx_code_result *more = abx__reallocarray(execution->results, size,
							  sizeof(*execution->results));

		if (!more)
			return ABX_ENOMEM;
		execution->results = more;
		execution->size = size;
	}
	execution->results[count] = *result;
	execution->pub.results = execution->results;
	execution->pub.result_count++;
	if (result->is_main && !execution->pub.text)
		execution->pub.text = result->text;
	return ABX_OK;
}

static int take_result(struct cell *cell, json_object *event)
{
	abx__strings strings = { 0 };
	abx_code_result result = { 0 };
	int r;

	if (!cell->opts.on_result) {
		r = read_result(&cell->execution->strings, event, &result);
		return r < 0 ? r : keep_result(cell->execution, &result);
	}
	r = read_result(&strings, event, &result);
	if (r >= 0)
		r = cell->opts.on_result(cell->opts.userdata, &result);
	abx__strings_done(&strings);
	return r == ABX_PAUSE ? ABX_EINVAL : r;
}

/* Of several the first counts. */
static int take_error(struct execution *execution, json_object *event)
{
	abx_code_execution *pub = &execution->pub;
	abx__strings *strings = &execution->strings;
	int r;

	if (pub->error_name)
		return ABX_OK;
	r = abx__strings_member(strings, event, "value", "", &pub->error_value);
	if (r >= 0)
		r = abx__strings_member(strings, event, "traceback", "",
					&pub->error_traceback);
	return r < 0 ? r
		     : abx__strings_member(strings, event, "name", "", &pub->error_name);
}

/* Kinds that are not known, such as a later release's, are passed over. */
static int take_event(struct cell *cell, json_object *event)
{
	struct execution *execution = cell->execution;
	const char *type = "";

	abx__json_get_str(event, "type", &type, NULL);
	if (strcmp(type, "stdout") == 0)
		return take_output(cell, event, cell->opts.on_stdout, &execution->out);
	if (strcmp(type, "stderr") == 0)
		return take_output(cell, event, cell->opts.on_stderr, &execution->err);
	if (strcmp(type, "result") == 0)
		return take_result(cell, event);
	if (strcmp(type, "error") == 0)
		return take_error(execution, event);
	if (strcmp(type, "number_of_executions") == 0)
		abx__json_get_i64(event, "execution_count", 0, INT64_MAX,
				  &execution->pub.count, NULL);
	else if (strcmp(type, "end_of_execution") == 0)
		cell->has_ended = true;
	return ABX_OK;
}

/* ---- lines ---- */

static int take_line(struct cell *cell)
{
	ABX_CLEANUP_JSON json_object *event = NULL;
	int r;

	if (cell->line.len == 0)
		return ABX_OK;
	r = abx__json_parse_object(cell->line.data, cell->line.len, cell->line.cap,
				   &event, NULL);
	if (r >= 0 && event)
		r = take_event(cell, event);
	else if (r != ABX_ENOMEM)
		r = ABX_EPROTO;
	abx__buf_clear(&cell->line);
	return r;
}

static int on_data(void *userdata, const char *data, size_t len)
{
	struct cell *cell = userdata;

	if (abx__http_call_status(cell->op->call) != 200)
		return abx__buf_add(&cell->refusal, data, len);
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t part = end ? (size_t)(end - data) : len;
		int r = abx__buf_add(&cell->line, data, part);

		if (r >= 0 && end)
			r = take_line(cell);
		if (r < 0)
			return r;
		data += part + (end != NULL);
		len -= part + (end != NULL);
	}
	abx__client_happened(cell->op->client);
	return ABX_OK;
}

/* ---- the end ---- */

static void complete(struct cell *cell)
{
	struct execution *execution = abx_take(cell->execution);
	abx_code_execution *pub = &execution->pub;

	pub->size = sizeof(*pub);
	pub->out = abx__buf_str(&execution->out);
	pub->out_len = execution->out.len;
	pub->err = abx__buf_str(&execution->err);
	pub->err_len = execution->err.len;
	cell->op->result = pub;
}

static int explain(struct cell *cell, int r, const abx_error *http_err,
		   abx_error **reterr)
{
	if (r == ABX_ETOOBIG) {
		abx__error_set(reterr, r, "its output is over %zu bytes",
			       cell->opts.max_output_bytes);
		abx__error_hint(reterr, "raise max_output_bytes, or use on_stdout, "
					"on_stderr and on_result");
		return r;
	}
	if (r == ABX_ETIMEDOUT)
		return abx__error_set(reterr, r, "interrupted after %u ms",
				      cell->opts.timeout_ms);
	*reterr = abx__error_copy(http_err);
	return r;
}

static void on_done(void *userdata, int r, const abx_error *http_err)
{
	struct cell *cell = userdata;
	abx_op *op = cell->op;
	int status = abx__http_call_status(op->call);
	abx_error *err = NULL;

	op->call = NULL;
	if (r < 0)
		r = explain(cell, r, http_err, &err);
	else if (status != 200)
		r = abx__answer_error(status, cell->refusal.data, cell->refusal.len,
				      &err);
	else if (!cell->has_ended)
		r = abx__error_set(&err, ABX_EUNAVAILABLE,
				   "the stream ended before the cell did");
	else
		complete(cell);
	abx__op_finish(op, r, err);
}

/* ---- the start ---- */

static int make_body(abx_op *op, const char *code, const abx_code_options *opts,
		     abx_error **reterr)
{
	json_object *body = json_object_new_object(), *vars = NULL;
	int r = body ? abx__json_set_str(body, "code", code) : ABX_ENOMEM;

	if (r >= 0 && opts->language)
		r = abx__json_set_str(body, "language", opts->language);
	if (r >= 0 && opts->context_id)
		r = abx__json_set_str(body, "context_id", opts->context_id);
	if (r >= 0 && opts->env_vars) {
		r = abx__pairs_json("env_vars", opts->env_vars, &vars, reterr);
		if (r >= 0)
			r = abx__json_set_take(body, "env_vars", vars);
	}
	if (r >= 0)
		return abx__request_json(op, body, reterr);
	json_object_put(body);
	return r == ABX_ENOMEM ? abx__error_nomem(reterr) : r;
}

static struct cell *new_cell(abx_op *op, const abx_code_options *opts)
{
	struct cell *cell = abx__calloc(1, sizeof(*cell));

	if (!cell)
		return NULL;
	op->state = cell;
	op->free_state = free_cell;
	cell->op = op;
	cell->opts = *opts;
	cell->execution = abx__calloc(1, sizeof(*cell->execution));
	if (!cell->execution)
		return NULL;
	if (!opts->max_output_bytes)
		cell->opts.max_output_bytes = DEFAULT_MAX_OUTPUT;
	cell->line.cap = cell->opts.max_output_bytes;
	cell->execution->out.cap = cell->opts.max_output_bytes;
	cell->execution->err.cap = cell->opts.max_output_bytes;
	cell->refusal.cap = MAX_REFUSAL;
	return cell;
}

static int send_cell(struct cell *cell, abx_sandbox *sandbox, abx_error **reterr)
{
	ABX_CLEANUP(abx__prepared_done) abx__prepared prepared = { 0 };
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .method = "POST",
			     .path = "/execute",
			     .sandbox = sandbox,
			     .port = ABX__INTERPRETER_PORT,
			     .timeout_ms = cell->opts.timeout_ms };
	abx__http_call_options http = { .body = cell->op->out,
					.body_len = cell->op->out_len,
					.on_data = on_data,
					.on_done = on_done,
					.userdata = cell };
	int r = abx__request_prepare(sandbox->client, &req, &prepared, reterr);

	if (r < 0)
		return r;
	abx__request_apply(sandbox->client, &req, &prepared, &http);
	return abx__http_call_start(sandbox->client->http, &http, &cell->op->call,
				    reterr);
}

static int check_options(const char *code, const abx_code_options *opts,
			 abx_error **reterr)
{
	if (!code || !abx__utf8_is_valid(code, strlen(code)))
		return abx__error_set(reterr, ABX_EINVAL, "run code: the code is %s",
				      code ? "not UTF-8" : "NULL");
	if (opts->language && opts->context_id)
		return abx__error_set(reterr, ABX_EINVAL,
				      "run code: give a language or a context_id, not "
				      "both");
	return ABX_OK;
}

static int start_code(abx_sandbox *sandbox, const char *code,
		      const abx_code_options *user_opts, const abx__then *then,
		      abx_error **reterr)
{
	abx_code_options opts;
	struct cell *cell;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "run code: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_code_options",
				   reterr)) < 0 ||
	    (r = check_options(code, &opts, reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr, "run code in sandbox %s",
			     sandbox->id)) < 0)
		return r;
	if (!opts.timeout_ms)
		opts.timeout_ms = DEFAULT_TIMEOUT_MS;
	r = make_body(op, code, &opts, reterr);
	if (r >= 0) {
		cell = new_cell(op, &opts);
		r = cell ? send_cell(cell, sandbox, reterr) : abx__error_nomem(reterr);
	}
	return r < 0 ? abx__op_abandon(op, r, reterr) : abx__op_started(op);
}

int abx_code_run(abx_sandbox *sandbox, const char *code, const abx_code_options *opts,
		 abx_code_execution **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_CODE, &wait);
	int r = start_code(sandbox, code, opts, &then, reterr);

	return abx__wait_object(ABX__CLIENT_OF(sandbox), &then, r, ret, reterr);
}

int abx_code_run_async(abx_sandbox *sandbox, const char *code,
		       const abx_code_options *opts, abx_code_fn done, void *userdata,
		       abx_free_fn free_userdata, abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_CODE, code, done);

	return abx__then_end(&then, start_code(sandbox, code, opts, &then, reterr));
}

/*
 * process.c - reading a command's stream. Events are JSON in Connect envelopes; what they
 * mean is envd.md section 7.
 */
#include "client/process.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "client/answer.h"
#include "io/json.h"

#define DEFAULT_MAX_OUTPUT ((size_t)64 << 20)
#define MAX_MESSAGE ((size_t)8 << 20)
#define MAX_REFUSAL ((size_t)64 << 10)
/* Three keepalives missed (request.c asks for one every 50 s). */
#define SILENCE_SECONDS 160
#define DEADLINE_GRACE_MS 5000

struct stored_result {
	abx_command_result result; /* first: the public pointer is this one */
	char *out, *err, *error;
};

void abx_command_result_free(abx_command_result *result)
{
	struct stored_result *stored = (struct stored_result *)result;

	if (!stored)
		return;
	abx__free(stored->out);
	abx__free(stored->err);
	abx__free(stored->error);
	abx__free(stored);
}

ABX_DEFINE_FREEP(result_freep, abx_command_result, abx_command_result_free)

int abx__process_result(abx_process *process, abx_command_result **ret,
			abx_error **reterr)
{
	ABX_CLEANUP(result_freep) abx_command_result *result = NULL;
	struct stored_result *stored = abx__calloc(1, sizeof(*stored));

	if (!stored)
		return abx__error_nomem(reterr);
	result = &stored->result;
	result->size = sizeof(*result);
	result->pid = process->pid;
	result->exit_code = process->exit_code;
	result->out_len = process->out.len;
	result->err_len = process->err.len;
	result->out = stored->out = abx__buf_take(&process->out);
	result->err = stored->err = abx__buf_take(&process->err);
	result->error = stored->error = abx_take(process->error);
	if (!stored->out || !stored->err)
		return abx__error_nomem(reterr);
	*ret = abx_take(result);
	return ABX_OK;
}

static void unref(abx_process *process)
{
	abx_client *client = process->client;

	if (--process->refs)
		return;
	abx__kick_cancel(client, &process->kick);
	abx__connect_parser_done(&process->parser);
	abx__buf_done(&process->request);
	abx__buf_done(&process->backlog);
	abx__buf_done(&process->refusal);
	abx__buf_done(&process->out);
	abx__buf_done(&process->err);
	abx_error_free(process->end_err);
	abx__free(process->error);
	abx__free(process);
	abx__client_unref(client);
}

void abx_process_free(abx_process *process)
{
	abx_error *err = NULL;

	if (!process)
		return;
	process->on_stdout = NULL;
	process->on_stderr = NULL;
	process->collect = false;
	process->is_paused = false;
	if (process->end_op) {
		abx__error_set(&err, ABX_ECANCELED, "its process was freed");
		abx__op_finish(process->end_op, ABX_ECANCELED, err);
		process->end_op = NULL;
	}
	if (process->call && process->has_ended && process->end_r >= 0)
		abx__http_call_resume(
			process->call); /* its last bytes, and the connection stays */
	else if (process->call)
		abx__http_call_cancel(process->call, ABX_ECANCELED);
	unref(process);
}

/* ---- the end ---- */

/* A start that does not come to a process: the handle was never given out, so it goes
 * with its operation. */
static void fail_start(abx_process *process, int r, abx_error *err)
{
	abx_op *op = abx_take(process->start_op);

	abx__op_finish(op, r < 0 ? r : ABX_EPROTO, err);
}

static void tell_end(abx_process *process)
{
	abx_op *op = abx_take(process->end_op);
	abx_command_result *result = NULL;
	abx_error *err = abx_take(process->end_err);
	int r = process->end_r;

	if (r >= 0)
		r = abx__process_result(process, &result, &err);
	op->result = result;
	abx__op_finish(op, r, err);
}

/* Takes `err`. Only the first end counts. */
static void end(abx_process *process, int r, abx_error *err)
{
	if (process->has_ended) {
		abx_error_free(err);
		return;
	}
	process->has_ended = true;
	process->end_r = r;
	if (process->start_op) {
		fail_start(process, r, err);
		return;
	}
	process->end_err = err;
	if (process->end_op)
		tell_end(process);
}

static void end_with(abx_process *process, int code, const char *text)
{
	abx_error *err = NULL;

	abx__error_set(&err, code, "%s", text);
	end(process, code, err);
}

/* ---- events ---- */

static int on_start_event(abx_process *process, json_object *event)
{
	int64_t pid = 0;

	if (abx__json_get_i64(event, "pid", 1, UINT32_MAX, &pid, NULL) <= 0)
		return ABX_EPROTO;
	process->pid = (uint32_t)pid;
	if (process->start_op) {
		abx_op *op = abx_take(process->start_op);

		op->result = op->state;
		op->state = NULL;
		abx__op_finish(op, ABX_OK, NULL);
	}
	return ABX_OK;
}

static int give(abx_process *process, abx_sink_fn sink, abx__buf *collected,
		const char *data, size_t len)
{
	int r;

	if (!sink || process->collect) {
		r = abx__buf_add(collected, data, len);
		if (r < 0)
			return r;
	}
	if (!sink)
		return ABX_OK;
	r = sink(process->userdata, data, len);
	abx__client_happened(process->client);
	if (r != ABX_PAUSE)
		return r;
	if (!process->may_pause)
		return ABX_EINVAL;
	process->is_paused = true;
	return ABX_OK;
}

static int give_member(abx_process *process, json_object *event, const char *key,
		       abx_sink_fn sink, abx__buf *collected)
{
	ABX_CLEANUP(abx__freep) uint8_t *data = NULL;
	const char *coded = NULL;
	size_t len = 0;
	int r;

	r = abx__json_get_str(event, key, &coded, NULL);
	if (r <= 0)
		return r < 0 ? ABX_EPROTO : ABX_OK;
	r = abx__base64_decode(coded, strlen(coded), &data, &len);
	if (r < 0)
		return r == ABX_ENOMEM ? r : ABX_EPROTO;
	return len ? give(process, sink, collected, (const char *)data, len) : ABX_OK;
}

static int on_data_event(abx_process *process, json_object *event)
{
	int r = give_member(process, event, "stdout", process->on_stdout, &process->out);

	if (r >= 0)
		r = give_member(process, event, "stderr", process->on_stderr,
				&process->err);
	return r;
}

static int on_end_event(abx_process *process, json_object *event)
{
	int64_t exit_code = 0;
	const char *error = NULL;

	if (abx__json_get_i64(event, "exitCode", INT32_MIN, INT32_MAX, &exit_code, NULL) <
		    0 ||
	    abx__json_get_str(event, "error", &error, NULL) < 0)
		return ABX_EPROTO;
	process->exit_code = (int)exit_code;
	if (error && !(process->error = abx__strdup(error)))
		return ABX_ENOMEM;
	end(process, ABX_OK, NULL);
	return ABX_OK;
}

static int on_event(abx_process *process, json_object *message)
{
	json_object *event = NULL;
	json_object *kind = NULL;

	if (abx__json_get_object(message, "event", &event, NULL) <= 0)
		return ABX_EPROTO;
	if (abx__json_get_object(event, "start", &kind, NULL) > 0)
		return on_start_event(process, kind);
	if (process->has_ended)
		return ABX_OK;
	if (abx__json_get_object(event, "data", &kind, NULL) > 0)
		return process->pid ? on_data_event(process, kind) : ABX_EPROTO;
	if (abx__json_get_object(event, "end", &kind, NULL) > 0)
		return process->pid ? on_end_event(process, kind) : ABX_EPROTO;
	return ABX_OK; /* keepalives, and what later versions add */
}

static void stream_error(abx_process *process, json_object *error)
{
	abx_error *err = NULL;
	int code = abx__answer_connect_error(error, 0, &err);

	if (code == ABX_ETIMEDOUT)
		abx__error_set(&err, code, "it ran longer than its %u ms",
			       process->timeout_ms);
	end(process, code, err);
}

static int on_message(abx_process *process, unsigned flags, const char *data, size_t len)
{
	ABX_CLEANUP_JSON json_object *message = NULL;
	json_object *error = NULL;
	int r;

	if (flags & ABX__CONNECT_COMPRESSED)
		return ABX_EPROTO;
	r = abx__json_parse_object(data, len, MAX_MESSAGE, &message, NULL);
	if (r < 0)
		return r == ABX_ENOMEM ? r : ABX_EPROTO;
	if (!(flags & ABX__CONNECT_END_STREAM))
		return on_event(process, message);
	if (abx__json_get_object(message, "error", &error, NULL) > 0)
		stream_error(process, error);
	else
		end_with(process, ABX_EPROTO,
			 "the stream ended without the command's end");
	return ABX_OK;
}

static int on_frame(void *userdata, unsigned flags, const char *data, size_t len)
{
	abx_process *process = userdata;

	if (process->is_paused)
		return abx__connect_frame_add(&process->backlog, flags, data, len);
	return on_message(process, flags, data, len);
}

static const char *text_of(int code)
{
	switch (code) {
	case ABX_EPROTO:
		return "the sandbox sent an event that cannot be read";
	case ABX_ETOOBIG:
		return "the output is over max_output_bytes";
	case ABX_ENOMEM:
		return "out of memory";
	default:
		return "ended by its output callback";
	}
}

/* ---- the HTTP call ---- */

static int on_data(void *userdata, const char *data, size_t len)
{
	abx_process *process = userdata;
	int r;

	if (abx__http_call_status(process->call) != 200)
		return abx__buf_add(&process->refusal, data, len);
	r = abx__connect_parser_feed(&process->parser, data, len, on_frame, process);
	if (r < 0) {
		end_with(process, r, text_of(r));
		return r;
	}
	return process->is_paused ? ABX_PAUSE : ABX_OK;
}

static void finish_stream(abx_process *process)
{
	if (!process->has_ended)
		end_with(process, ABX_EUNAVAILABLE,
			 "the stream ended without the command's end");
}

static void on_done(void *userdata, int r, const abx_error *http_err)
{
	abx_process *process = userdata;
	int status = abx__http_call_status(process->call);
	abx_error *err = NULL;

	process->call = NULL;
	process->is_over = true;
	if (r < 0) {
		end(process, r, abx__error_copy(http_err));
	} else if (status != 200) {
		r = abx__answer_error(status, process->refusal.data, process->refusal.len,
				      &err);
		end(process, r, err);
	} else if (!process->backlog.len) {
		finish_stream(process);
	}
	unref(process);
}

/* After a pause: the backlog first, as far as the sinks take it. */
static void give_backlog(abx__kick *kick)
{
	abx_process *process =
		(abx_process *)((char *)kick - offsetof(abx_process, kick));
	abx__connect_parser parser = { .max_bytes = MAX_MESSAGE };
	abx__buf backlog = process->backlog;
	int r;

	process->refs++;
	process->backlog = (abx__buf)ABX__BUF_INIT;
	r = abx__connect_parser_feed(&parser, abx__buf_str(&backlog), backlog.len,
				     on_frame, process);
	if (r < 0)
		end_with(process, r, text_of(r));
	abx__connect_parser_done(&parser);
	abx__buf_done(&backlog);
	if (process->is_over && !process->backlog.len)
		finish_stream(process);
	if (process->call && r < 0)
		abx__http_call_cancel(process->call, r);
	else if (process->call && !process->is_paused)
		abx__http_call_resume(process->call);
	unref(process);
}

void abx_process_resume(abx_process *process)
{
	if (!process || !process->is_paused)
		return;
	process->is_paused = false;
	abx__kick_add(process->client, &process->kick);
}

uint32_t abx_process_pid(abx_process *process)
{
	return process->pid;
}

/* ---- opening ---- */

abx_process *abx__process_new(abx_client *client, const abx_command_options *opts)
{
	abx_process *process = abx__calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->client = abx__client_ref(client);
	process->refs = 1;
	process->parser.max_bytes = MAX_MESSAGE;
	process->kick.fn = give_backlog;
	process->on_stdout = opts->on_stdout;
	process->on_stderr = opts->on_stderr;
	process->userdata = opts->userdata;
	process->collect = opts->collect != 0;
	process->out.cap =
		opts->max_output_bytes ? opts->max_output_bytes : DEFAULT_MAX_OUTPUT;
	process->err.cap = process->out.cap;
	process->refusal.cap = MAX_REFUSAL;
	process->may_pause = true;
	return process;
}

static uint32_t with_grace(uint32_t ms)
{
	if (!ms || ms >= ABX_NO_TIMEOUT - DEADLINE_GRACE_MS)
		return ABX_NO_TIMEOUT;
	return ms + DEADLINE_GRACE_MS;
}

static int wrap(json_object *message, abx__buf *body)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	size_t len = 0;

	text = message ? abx__json_text(message, &len) : NULL;
	json_object_put(message);
	return text ? abx__connect_frame_add(body, 0, text, len) : ABX_ENOMEM;
}

int abx__process_open(abx_process *process, abx__request *req, json_object *message,
		      abx_error **reterr)
{
	ABX_CLEANUP(abx__prepared_done) abx__prepared prepared = { 0 };
	abx__http_call_options opts = {
		.idle_timeout_s = SILENCE_SECONDS,
		.on_data = on_data,
		.on_done = on_done,
		.userdata = process,
	};
	int r;

	r = wrap(message, &process->request);
	if (r < 0)
		return r == ABX_ENOMEM
			       ? abx__error_nomem(reterr)
			       : abx__error_set(reterr, r, "the command is too long");
	process->timeout_ms = req->server_timeout_ms;
	req->method = "POST";
	req->content_type = "application/connect+json";
	req->is_rpc = true;
	req->is_stream = true;
	req->timeout_ms = with_grace(req->server_timeout_ms);
	r = abx__request_prepare(process->client, req, &prepared, reterr);
	if (r < 0)
		return r;
	abx__request_apply(process->client, req, &prepared, &opts);
	opts.body = process->request.data;
	opts.body_len = process->request.len;
	r = abx__http_call_start(process->client->http, &opts, &process->call, reterr);
	if (r < 0)
		return r;
	process->refs++;
	return ABX_OK;
}

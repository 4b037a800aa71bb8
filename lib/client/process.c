/*
 * process.c - reading a command's stream. Events are JSON in Connect envelopes; what they
 * mean is envd.md section 7.
 */
#include "client/process.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "client/output-event.h"
#include "io/json.h"

#define DEFAULT_MAX_OUTPUT ((size_t)64 << 20)

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

/* Takes the collected output along. */
static int result_of(abx__stream *stream, void **ret, abx_error **reterr)
{
	ABX_CLEANUP(result_freep) abx_command_result *result = NULL;
	abx_process *process = (abx_process *)stream;
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

/* ---- events ---- */

static int on_start_event(abx_process *process, json_object *event)
{
	int64_t pid = 0;

	if (abx__json_get_i64(event, "pid", 1, UINT32_MAX, &pid, NULL) <= 0)
		return ABX_EPROTO;
	process->pid = (uint32_t)pid;
	abx__stream_begun(&process->stream);
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
	if (!sink || process->stream.is_closed)
		return ABX_OK;
	return abx__stream_answered(&process->stream, sink(process->userdata, data, len));
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
	if (r >= 0)
		r = give_member(process, event, "pty", process->on_stdout, &process->out);
	return r;
}

static int on_bytes(abx__stream *stream, const char *text, size_t text_len)
{
	ABX_CLEANUP(abx__freep) uint8_t *data = NULL;
	abx_process *process = (abx_process *)stream;
	bool is_stderr = false;
	size_t len = 0;
	int r;

	if (!process->pid || stream->has_ended)
		return 0;
	r = abx__output_event_read(text, text_len, &is_stderr, &data, &len);
	if (r > 0 && len)
		r = is_stderr ? give(process, process->on_stderr, &process->err,
				     (const char *)data, len)
			      : give(process, process->on_stdout, &process->out,
				     (const char *)data, len);
	return r < 0 ? r : data != NULL;
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
	abx__stream_end(&process->stream, ABX_OK, NULL);
	return ABX_OK;
}

static int on_message(abx__stream *stream, json_object *message)
{
	abx_process *process = (abx_process *)stream;
	json_object *event = NULL;
	json_object *kind = NULL;

	if (abx__json_get_object(message, "event", &event, NULL) <= 0)
		return ABX_EPROTO;
	if (abx__json_get_object(event, "start", &kind, NULL) > 0)
		return on_start_event(process, kind);
	if (stream->has_ended)
		return ABX_OK;
	if (abx__json_get_object(event, "data", &kind, NULL) > 0)
		return process->pid ? on_data_event(process, kind) : ABX_EPROTO;
	if (abx__json_get_object(event, "end", &kind, NULL) > 0)
		return process->pid ? on_end_event(process, kind) : ABX_EPROTO;
	return ABX_OK; /* keepalives, and what later versions add */
}

/* ---- the handle ---- */

static void destroy(abx__stream *stream)
{
	abx_process *process = (abx_process *)stream;

	abx__buf_done(&process->out);
	abx__buf_done(&process->err);
	abx__free(process->error);
	abx__free(process);
}

static const abx__stream_ops process_ops = {
	.start_kind = ABX__OP_PROCESS,
	.no_end = "the stream ended without the command's end",
	.on_bytes = on_bytes,
	.on_message = on_message,
	.result = result_of,
	.destroy = destroy,
};

abx_process *abx__process_new(abx_client *client, const abx_command_options *opts)
{
	abx_process *process = abx__calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	abx__stream_init(&process->stream, client, &process_ops);
	process->on_stdout = opts->on_stdout;
	process->on_stderr = opts->on_stderr;
	process->userdata = opts->userdata;
	process->collect = opts->collect != 0;
	process->out.cap =
		opts->max_output_bytes ? opts->max_output_bytes : DEFAULT_MAX_OUTPUT;
	process->err.cap = process->out.cap;
	return process;
}

void abx_process_free(abx_process *process)
{
	if (process)
		abx__stream_close(&process->stream);
}

void abx_process_resume(abx_process *process)
{
	if (process)
		abx__stream_resume(&process->stream);
}

uint32_t abx_process_pid(abx_process *process)
{
	return process->pid;
}

static int start_wait(abx_process *process, const abx__then *then, abx_error **reterr)
{
	char what[32];

	if (!process)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_process_wait: the process is NULL");
	snprintf(what, sizeof(what), "process %u", process->pid);
	return abx__stream_wait(&process->stream, then, what, reterr);
}

int abx_process_wait(abx_process *process, abx_command_result **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_COMMAND, &wait);
	int r = start_wait(process, &then, reterr);

	if (r < 0)
		return r;
	r = abx__wait_end(process->stream.client, &wait, r, reterr);
	if (r >= 0 && ret)
		*ret = wait.result;
	else
		abx_command_result_free(wait.result);
	return r;
}

int abx_process_wait_async(abx_process *process, abx_command_fn done, void *userdata,
			   abx_free_fn free_userdata, abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_COMMAND, command, done);

	return abx__then_end(&then, start_wait(process, &then, reterr));
}

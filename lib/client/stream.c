/*
 * stream.c - opening, reading, pausing and ending a server stream of envd.
 */
#include "client/stream.h"

#include "base/alloc.h"
#include "base/error.h"
#include "client/answer.h"
#include "io/json.h"

#define MAX_REFUSAL ((size_t)64 << 10)
/* Three keepalives missed (request.c asks for one every 50 s). */
#define SILENCE_SECONDS 160
#define DEADLINE_GRACE_MS 5000

static void unref(abx__stream *stream)
{
	abx_client *client = stream->client;

	if (--stream->refs)
		return;
	abx__kick_cancel(client, &stream->kick);
	abx__connect_parser_done(&stream->parser);
	abx__buf_done(&stream->request);
	abx__buf_done(&stream->backlog);
	abx__buf_done(&stream->refusal);
	abx_error_free(stream->end_err);
	stream->ops->destroy(stream);
	abx__client_unref(client);
}

void abx__stream_close(abx__stream *stream)
{
	abx_error *err = NULL;

	stream->is_closed = true;
	stream->is_paused = false;
	if (stream->end_op) {
		abx__error_set(&err, ABX_ECANCELED, "its handle was freed");
		abx__op_finish(stream->end_op, ABX_ECANCELED, err);
		stream->end_op = NULL;
	}
	if (stream->call && stream->has_ended && stream->end_r >= 0)
		abx__http_call_resume(
			stream->call); /* its last bytes, and the connection stays */
	else if (stream->call)
		abx__http_call_cancel(stream->call, ABX_ECANCELED);
	unref(stream);
}

/* ---- begin and end ---- */

void abx__stream_begun(abx__stream *stream)
{
	abx_op *op = abx_take(stream->start_op);

	if (!op)
		return;
	op->result = op->state;
	op->state = NULL;
	abx__op_finish(op, ABX_OK, NULL);
}

/* What the end yields goes to `op`. Takes `err`. */
static void give_end(abx__stream *stream, abx_op *op, abx_error *err)
{
	int r = stream->end_r;

	if (r >= 0 && stream->ops->result)
		r = stream->ops->result(stream, &op->result, &err);
	abx__op_finish(op, r, err);
}

void abx__stream_end(abx__stream *stream, int r, abx_error *err)
{
	if (stream->has_ended) {
		abx_error_free(err);
		return;
	}
	stream->has_ended = true;
	stream->end_r = r;
	/* A start that comes to nothing: the handle was never given out, so it goes with
	 * its operation. */
	if (stream->start_op)
		abx__op_finish(abx_take(stream->start_op), r < 0 ? r : ABX_EPROTO, err);
	else if (stream->end_op)
		give_end(stream, abx_take(stream->end_op), err);
	else
		stream->end_err = err;
}

static void end_with(abx__stream *stream, int code, const char *text)
{
	abx_error *err = NULL;

	abx__error_set(&err, code, "%s", text);
	abx__stream_end(stream, code, err);
}

/* ---- messages ---- */

int abx__stream_answered(abx__stream *stream, int r)
{
	abx__client_happened(stream->client);
	if (r != ABX_PAUSE)
		return r;
	if (!stream->may_pause)
		return ABX_EINVAL;
	stream->is_paused = !stream->is_closed;
	return ABX_OK;
}

static void stream_error(abx__stream *stream, json_object *error)
{
	abx_error *err = NULL;
	int code = abx__answer_connect_error(error, 0, &err);

	if (code == ABX_ETIMEDOUT)
		abx__error_set(&err, code, "it ran longer than its %u ms",
			       stream->timeout_ms);
	abx__stream_end(stream, code, err);
}

static int on_message(abx__stream *stream, unsigned flags, const char *data, size_t len)
{
	ABX_CLEANUP_JSON json_object *message = NULL;
	json_object *error = NULL;
	int r;

	if (flags & ABX__CONNECT_COMPRESSED)
		return ABX_EPROTO;
	if (flags == 0 && stream->ops->on_bytes && !stream->is_closed) {
		r = stream->ops->on_bytes(stream, data, len);
		if (r != 0)
			return r < 0 ? r : ABX_OK;
	}
	r = abx__json_parse_object(data, len, ABX__STREAM_MAX_MESSAGE, &message, NULL);
	if (r < 0)
		return r == ABX_ENOMEM ? r : ABX_EPROTO;
	if (!(flags & ABX__CONNECT_END_STREAM))
		return stream->is_closed ? ABX_OK
					 : stream->ops->on_message(stream, message);
	if (abx__json_get_object(message, "error", &error, NULL) > 0)
		stream_error(stream, error);
	else
		end_with(stream, ABX_EPROTO, stream->ops->no_end);
	return ABX_OK;
}

static int on_frame(void *userdata, unsigned flags, const char *data, size_t len)
{
	abx__stream *stream = userdata;

	if (stream->is_paused)
		return abx__connect_frame_add(&stream->backlog, flags, data, len);
	return on_message(stream, flags, data, len);
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
	abx__stream *stream = userdata;
	int r;

	if (abx__http_call_status(stream->call) != 200)
		return abx__buf_add(&stream->refusal, data, len);
	r = abx__connect_parser_feed(&stream->parser, data, len, on_frame, stream);
	if (r < 0) {
		end_with(stream, r, text_of(r));
		return r;
	}
	return stream->is_paused ? ABX_PAUSE : ABX_OK;
}

static void finish_stream(abx__stream *stream)
{
	if (!stream->has_ended)
		end_with(stream, ABX_EUNAVAILABLE, stream->ops->no_end);
}

static void on_done(void *userdata, int r, const abx_error *http_err)
{
	abx__stream *stream = userdata;
	int status = abx__http_call_status(stream->call);
	abx_error *err = NULL;

	stream->call = NULL;
	stream->is_over = true;
	if (r < 0) {
		abx__stream_end(stream, r, abx__error_copy(http_err));
	} else if (status != 200) {
		r = abx__answer_error(status, stream->refusal.data, stream->refusal.len,
				      &err);
		abx__stream_end(stream, r, err);
	} else if (!stream->backlog.len) {
		finish_stream(stream);
	}
	unref(stream);
}

/* After a pause: the backlog first, as far as the callbacks take it. */
static void give_backlog(abx__kick *kick)
{
	abx__stream *stream = (abx__stream *)((char *)kick - offsetof(abx__stream, kick));
	abx__connect_parser parser = { .max_bytes = ABX__STREAM_MAX_MESSAGE };
	abx__buf backlog = stream->backlog;
	int r;

	stream->refs++;
	stream->backlog = (abx__buf)ABX__BUF_INIT;
	r = abx__connect_parser_feed(&parser, abx__buf_str(&backlog), backlog.len,
				     on_frame, stream);
	if (r < 0)
		end_with(stream, r, text_of(r));
	abx__connect_parser_done(&parser);
	abx__buf_done(&backlog);
	if (stream->is_over && !stream->backlog.len)
		finish_stream(stream);
	if (stream->call && r < 0)
		abx__http_call_cancel(stream->call, r);
	else if (stream->call && !stream->is_paused)
		abx__http_call_resume(stream->call);
	unref(stream);
}

void abx__stream_resume(abx__stream *stream)
{
	if (!stream->is_paused)
		return;
	stream->is_paused = false;
	abx__kick_add(stream->client, &stream->kick);
}

/* ---- opening ---- */

void abx__stream_init(abx__stream *stream, abx_client *client, const abx__stream_ops *ops)
{
	stream->ops = ops;
	stream->client = abx__client_ref(client);
	stream->refs = 1;
	stream->kick.fn = give_backlog;
	stream->parser.max_bytes = ABX__STREAM_MAX_MESSAGE;
	stream->refusal.cap = MAX_REFUSAL;
	stream->may_pause = true;
}

static uint32_t with_grace(uint32_t ms)
{
	if (!ms || ms >= ABX_NO_TIMEOUT - DEADLINE_GRACE_MS)
		return ABX_NO_TIMEOUT;
	return ms + DEADLINE_GRACE_MS;
}

static int wrap(json_object *message, abx__buf *body, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	size_t len = 0;
	int r = ABX_ENOMEM;

	text = message ? abx__json_text(message, &len) : NULL;
	json_object_put(message);
	if (text)
		r = abx__connect_frame_add(body, 0, text, len);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	return r < 0 ? abx__error_set(reterr, r, "the command is too long") : r;
}

static int send_request(abx__stream *stream, abx__request *req, abx_error **reterr)
{
	ABX_CLEANUP(abx__prepared_done) abx__prepared prepared = { 0 };
	abx__http_call_options opts = {
		.idle_timeout_s = SILENCE_SECONDS,
		.on_data = on_data,
		.on_done = on_done,
		.userdata = stream,
	};
	int r;

	stream->timeout_ms = req->server_timeout_ms;
	req->method = "POST";
	req->content_type = "application/connect+json";
	req->is_rpc = true;
	req->is_stream = true;
	req->timeout_ms = with_grace(req->server_timeout_ms);
	r = abx__request_prepare(stream->client, req, &prepared, reterr);
	if (r < 0)
		return r;
	abx__request_apply(stream->client, req, &prepared, &opts);
	opts.body = stream->request.data;
	opts.body_len = stream->request.len;
	r = abx__http_call_start(stream->client->http, &opts, &stream->call, reterr);
	if (r < 0)
		return r;
	stream->refs++;
	return ABX_OK;
}

static void free_state(void *state)
{
	if (state)
		abx__stream_close(state);
}

static void cancel_stream(abx_op *op)
{
	abx__stream *stream = op->state;
	abx_error *err = NULL;

	if (stream->call) {
		abx__http_call_cancel(stream->call, ABX_ECANCELED);
		return;
	}
	abx__error_set(&err, ABX_ECANCELED, "cancelled");
	abx__op_finish(op, ABX_ECANCELED, err);
	stream->start_op = NULL;
	stream->end_op = NULL;
}

static void resume_stream(abx_op *op)
{
	abx__stream_resume(op->state);
}

int abx__stream_open(abx__stream *stream, abx_op *op, abx__request *req,
		     json_object *message, abx_error **reterr)
{
	int r;

	op->state = stream;
	op->free_state = free_state;
	op->on_cancel = cancel_stream;
	op->on_resume = resume_stream;
	if (op->then.kind == stream->ops->start_kind) {
		stream->start_op = op;
	} else {
		stream->end_op = op;
		stream->may_pause = !op->then.wait;
	}
	r = wrap(message, &stream->request, reterr);
	if (r >= 0)
		r = send_request(stream, req, reterr);
	if (r >= 0)
		return abx__op_started(op);
	stream->start_op = NULL;
	stream->end_op = NULL;
	return abx__op_abandon(op, r, reterr);
}

/* ---- waiting ---- */

static void cancel_wait(abx_op *op)
{
	abx__stream *stream = op->state;
	abx_error *err = NULL;

	stream->end_op = NULL;
	stream->was_waited = false;
	abx__error_set(&err, ABX_ECANCELED, "cancelled");
	abx__op_finish(op, ABX_ECANCELED, err);
}

int abx__stream_wait(abx__stream *stream, const abx__then *then, const char *what,
		     abx_error **reterr)
{
	abx_op *op = NULL;
	int r;

	if (stream->was_waited)
		return abx__error_set(reterr, ABX_ESTATE, "%s was waited for before",
				      what);
	r = abx__op_new(stream->client, then, &op, reterr, "wait for %s", what);
	if (r < 0)
		return r;
	stream->was_waited = true;
	op->state = stream;
	op->on_cancel = cancel_wait;
	if (stream->has_ended)
		give_end(stream, op, abx_take(stream->end_err));
	else
		stream->end_op = op;
	return abx__op_started(op);
}

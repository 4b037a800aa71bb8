/*
 * native-logs-stream.c - a sandbox's log as it is written (native-api.md, section 14.2):
 * a JSON object a line, the last of which tells about the stream.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/log-lines.h"
#include "serve/log-query.h"
#include "serve/log-source.h"
#include "serve/native.h"

#define QUEUE_MAX ((size_t)1 << 20)
#define QUEUE_LOW ((size_t)256 << 10)

typedef struct stream {
	abx__call *call;
	abx__log_source *source;
	abx__log_query q;
	char *pod, *namespace_;
	abx__log_lines lines;
	abx__buf before; /* what was there at the beginning, until all of it is */
	bool primed, cut, over;
} stream;

static void stream_free(stream *s)
{
	abx__log_query_done(&s->q);
	abx__free(s->pod);
	abx__free(s->namespace_);
	abx__log_lines_done(&s->lines);
	abx__buf_done(&s->before);
	abx__call_drop(s->call);
	abx__free(s);
}

static void end_stream(stream *s)
{
	s->over = true;
	s->call->on_gone = NULL;
	if (s->source)
		abx__log_source_close(s->source);
	stream_free(s);
}

/* A line of the answer; takes `o`. */
static int send_object(stream *s, json_object *o)
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT_CAP(8 * ABX__LOG_LINE_MAX);
	int r = o ? abx__json_print(o, &text) : ABX_ENOMEM;

	json_object_put(o);
	if (r == ABX_OK)
		r = abx__buf_addc(&text, '\n');
	if (r == ABX_OK && s->call->req)
		r = abx__http_res_write(s->call->req, text.data, text.len);
	return r;
}

static json_object *line_view(stream *s, const char *container, const char *line,
			      size_t len)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *log = abx__json_clean_text(line, len);

	if (!o || !log) {
		json_object_put(log);
		return NULL;
	}
	if (abx__json_set_take(o, "log", log) < 0 ||
	    abx__json_set_str(o, "container_name", container) < 0 ||
	    abx__json_set_str(o, "pod_name", s->pod) < 0 ||
	    abx__json_set_str(o, "namespace_name", s->namespace_) < 0)
		return NULL;
	return abx_take(o);
}

static int send_line(void *userdata, const char *line, size_t len)
{
	stream *s = userdata;

	return send_object(
		s, line_view(s, abx__log_main_container(s->q.template_), line, len));
}

static int send_meta(stream *s)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_bool(o, "_meta", true) < 0 ||
	    abx__json_set_str(o, "source", s->q.file ? "runtime" : "live") < 0 ||
	    abx__json_set_bool(o, "truncated", s->cut || s->lines.cut) < 0 ||
	    (s->pod && abx__json_set_str(o, "pod_name", s->pod) < 0))
		return ABX_ENOMEM;
	return send_object(s, abx_take(o));
}

/* The last line, and the answer's end. */
static void complete(stream *s)
{
	if (s->call->req && (send_meta(s) < 0 || abx__http_res_end(s->call->req) < 0))
		abx__http_res_abort(s->call->req);
	end_stream(s);
}

static void break_off(stream *s)
{
	if (s->call->req)
		abx__http_res_abort(s->call->req);
	end_stream(s);
}

static void slow_down(stream *s)
{
	if (s->source && s->call->req && abx__http_res_queued(s->call->req) > QUEUE_MAX)
		abx__log_source_pause(s->source);
}

static void on_drain(abx__http_req *req, void *userdata)
{
	abx__call *call = userdata;
	stream *s = call->on_gone ? call->gone_userdata : NULL;

	(void)req;
	if (s && s->source)
		abx__log_source_resume(s->source);
}

static void on_stream_data(void *userdata, const char *data, size_t len)
{
	stream *s = userdata;
	int r;

	if (s->over)
		return;
	if (s->primed) {
		r = abx__log_lines_feed(&s->lines, data, len, send_line, s);
	} else {
		r = abx__buf_add(&s->before, data, len);
		if (r == ABX_OK && s->before.len > ABX__LOG_TEXT_MAX) {
			s->cut = true;
			abx__buf_consume(&s->before, s->before.len - ABX__LOG_TEXT_MAX);
		}
	}
	if (r < 0)
		break_off(s);
	else
		slow_down(s);
}

/* All that was there: of it the last lines, as asked for; then what comes. */
static void on_stream_caught_up(void *userdata)
{
	stream *s = userdata;
	const char *text = abx__buf_str(&s->before), *end = text + s->before.len;
	int r;

	if (s->over || s->primed)
		return;
	s->primed = true;
	if (s->cut && memchr(text, '\n', s->before.len))
		text = (const char *)memchr(text, '\n', s->before.len) + 1;
	text = abx__log_lines_tail(text, (size_t)(end - text), s->q.lines);
	r = abx__log_lines_feed(&s->lines, text, (size_t)(end - text), send_line, s);
	abx__buf_done(&s->before);
	if (r < 0)
		break_off(s);
	else
		slow_down(s);
}

static void on_stream_done(void *userdata, int r, const abx_error *err)
{
	stream *s = userdata;
	ABX_CLEANUP(abx__freep) char *text = NULL;
	const char *container =
		s->q.file ? abx__log_main_container(s->q.template_) : "system";

	s->source = NULL;
	if (s->over)
		return;
	if (abx__log_lines_finish(&s->lines, send_line, s) < 0) {
		break_off(s);
		return;
	}
	if (r < 0) {
		text = abx__strf("[agentbox] %s",
				 err ? abx_error_message(err) : "the stream broke off");
		if (!text ||
		    send_object(s, line_view(s, container, text, strlen(text))) < 0) {
			break_off(s);
			return;
		}
	}
	complete(s);
}

static void on_follower_gone(abx__call *call)
{
	end_stream(call->gone_userdata);
}

static int begin(abx__call *call)
{
	abx__call_version(call);
	abx__call_header(call, "Content-Type", "application/x-ndjson");
	abx__call_header(call, "X-Accel-Buffering", "no");
	abx__call_header(call, "Cache-Control", "no-cache");
	return abx__http_res_begin(call->req, 200, -1);
}

static stream *stream_new(abx__call *call, const char *namespace_, const char *pod,
			  abx__log_query *q)
{
	stream *s = abx__calloc(1, sizeof(*s));

	if (!s) {
		abx__log_query_done(q);
		abx__call_nomem(call);
		return NULL;
	}
	s->call = call;
	s->q = *q;
	s->before.cap = 2 * ABX__LOG_TEXT_MAX;
	s->namespace_ = abx__strdup(namespace_);
	s->pod = abx__strdup(pod);
	abx__call_hold(call);
	if (!s->namespace_ || (pod && !s->pod) || begin(call) < 0) {
		break_off(s);
		return NULL;
	}
	return s;
}

static void follow(abx__call *call, const abx__sandbox_rec *rec)
{
	static const abx__log_source_events events = { .data = on_stream_data,
						       .caught_up = on_stream_caught_up,
						       .done = on_stream_done };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__log_query q = { 0 };
	stream *s;
	int r = abx__log_query_parse(call, rec->template_, true, &q, &err);

	if (r == ABX_OK && q.file && rec->state != ABX__SANDBOX_RUNNING)
		r = abx__error_set(&err, ABX_EINVAL, "sandbox \"%s\" is not Running",
				   rec->id);
	if (r < 0) {
		abx__log_query_done(&q);
		abx__call_error(call, err);
		return;
	}
	s = stream_new(call, rec->namespace_, rec->pod, &q);
	if (!s)
		return;
	call->on_gone = on_follower_gone;
	call->gone_userdata = s;
	abx__http_res_on_drain(call->req, QUEUE_LOW, on_drain, call);
	s->primed = s->q.file != NULL; /* tail has counted the lines */
	r = s->q.file ? abx__log_source_file(call->serve, rec, s->q.file, s->q.lines,
					     true, &events, s, &s->source, &err)
		      : abx__log_source_container(call->serve, rec, true, &events, s,
						  &s->source, &err);
	if (r < 0)
		on_stream_done(s, r, err);
}

void abx__native_logs_stream(abx__call *call)
{
	const abx__ended *ended = abx__native_ended(call);
	const abx__sandbox_rec *rec = ended ? NULL : abx__call_sandbox(call);
	abx__log_query q = { 0 };
	stream *s;

	if (rec)
		follow(call, rec);
	if (!ended)
		return;
	s = stream_new(call, ended->namespace_, NULL, &q);
	if (s)
		complete(s);
}

/*
 * native-logs.c - logs of the native API: what a sandbox has written (native-api.md,
 * section 6.5).
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

#define READ_MS 30000

typedef struct reading {
	uv_timer_t timer; /* first */
	abx__call *call;
	abx__log_source *source;
	abx__log_query q;
	char *pod, *namespace_, *id;
	abx__buf text; /* the end of it */
	bool truncated, over;
	size_t entries;
	json_object *list;
} reading;

static void on_reading_closed(uv_handle_t *handle)
{
	reading *r = (reading *)handle;
	abx__serve *serve = r->call->serve;

	abx__log_query_done(&r->q);
	abx__free(r->pod);
	abx__free(r->namespace_);
	abx__free(r->id);
	abx__buf_done(&r->text);
	json_object_put(r->list);
	abx__call_drop(r->call);
	abx__free(r);
	abx__serve_release(serve);
}

static void end_reading(reading *r)
{
	r->over = true;
	r->call->on_gone = NULL;
	if (r->source)
		abx__log_source_close(r->source);
	r->source = NULL;
	uv_close((uv_handle_t *)&r->timer, on_reading_closed);
}

static int add_entry(void *userdata, const char *line, size_t len)
{
	reading *r = userdata;
	json_object *o = json_object_new_object();
	json_object *log = abx__json_clean_text(line, len);
	int result = o && log ? abx__json_set_take(o, "log", log) : ABX_ENOMEM;

	if (result < 0 && !(o && log))
		json_object_put(log);
	if (result == ABX_OK)
		result = abx__json_set_str(o, "container",
					   abx__log_main_container(r->q.template_));
	if (result == ABX_OK)
		return abx__json_push_take(r->list, o);
	json_object_put(o);
	return result;
}

/* The last ABX__LOG_TEXT_MAX bytes, from the beginning of a line on, and of them the
 * lines asked for. */
static int fill_entries(reading *r)
{
	const char *text = abx__buf_str(&r->text), *end = text + r->text.len;
	abx__log_lines lines = { 0 };
	int result;

	if (r->truncated) {
		const char *line = memchr(text, '\n', r->text.len);

		text = line ? line + 1 : text;
	}
	text = abx__log_lines_tail(text, (size_t)(end - text), r->q.lines);
	result = abx__log_lines_feed(&lines, text, (size_t)(end - text), add_entry, r);
	if (result == ABX_OK)
		result = abx__log_lines_finish(&lines, add_entry, r);
	abx__log_lines_done(&lines);
	return result;
}

static json_object *reading_view(reading *r, const char *source)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP_JSON json_object *names = abx__log_containers(r->q.template_);

	if (!o || !names || abx__json_set_str(o, "sandboxId", r->id) < 0 ||
	    abx__json_set_str(o, "namespace", r->namespace_) < 0 ||
	    abx__native_put_str(o, "podName", r->pod) < 0 ||
	    abx__native_put_str(o, "runtimeName", r->q.runtime) < 0 ||
	    abx__json_set_bool(o, "truncated", r->truncated) < 0 ||
	    abx__json_set_str(o, "source", source) < 0 ||
	    abx__json_set_take(o, "containers", abx_take(names)) < 0 ||
	    abx__json_set_take(o, "entries", abx_take(r->list)) < 0)
		return NULL;
	return abx_take(o);
}

static void on_data(void *userdata, const char *data, size_t len)
{
	reading *r = userdata;
	size_t excess;

	if (r->over)
		return;
	if (abx__buf_add(&r->text, data, len) < 0) {
		abx__call_nomem(r->call);
		end_reading(r);
		return;
	}
	excess = r->text.len > ABX__LOG_TEXT_MAX ? r->text.len - ABX__LOG_TEXT_MAX : 0;
	if (excess > 0) {
		r->truncated = true;
		abx__buf_consume(&r->text, excess);
	}
}

static void on_caught_up(void *userdata)
{
	(void)userdata;
}

static void on_read_done(void *userdata, int result, const abx_error *err)
{
	reading *r = userdata;

	r->source = NULL;
	if (r->over)
		return;
	if (result < 0 && err)
		abx__call_error(r->call, err);
	else if (result < 0 || fill_entries(r) < 0)
		abx__call_nomem(r->call);
	else
		abx__call_json(r->call, 200,
			       reading_view(r, r->q.file ? "runtime" : "live"));
	end_reading(r);
}

static void on_read_timer(uv_timer_t *timer)
{
	reading *r = (reading *)timer;

	abx__call_fail(r->call, 504, "the log could not be read within %d s",
		       READ_MS / 1000);
	end_reading(r);
}

static void on_reader_gone(abx__call *call)
{
	end_reading(call->gone_userdata);
}

/* Takes the query; NULL when out of memory, and the call is answered. */
static reading *reading_new(abx__call *call, const char *id, const char *namespace_,
			    const char *pod, abx__log_query *q)
{
	reading *r = abx__calloc(1, sizeof(*r));

	if (!r) {
		abx__log_query_done(q);
		abx__call_nomem(call);
		return NULL;
	}
	r->call = call;
	r->q = *q;
	r->text.cap = 2 * ABX__LOG_TEXT_MAX;
	r->id = abx__strdup(id);
	r->namespace_ = abx__strdup(namespace_);
	r->pod = abx__strdup(pod);
	r->list = json_object_new_array();
	abx__call_hold(call);
	abx__serve_retain(call->serve);
	uv_timer_init(call->serve->loop, &r->timer);
	if (r->id && r->namespace_ && r->pod && r->list)
		return r;
	abx__call_nomem(call);
	end_reading(r);
	return NULL;
}

static void read_live(abx__call *call, const abx__sandbox_rec *rec)
{
	static const abx__log_source_events events = { .data = on_data,
						       .caught_up = on_caught_up,
						       .done = on_read_done };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__log_query q = { 0 };
	reading *r;
	int result = abx__log_query_parse(call, rec->template_, false, &q, &err);

	if (result == ABX_OK && q.file && rec->state != ABX__SANDBOX_RUNNING)
		result = abx__error_set(&err, ABX_EINVAL,
					"sandbox \"%s\" is %s, not Running: a runtime's "
					"log is read in it",
					rec->id, abx__native_sandbox_status(rec));
	if (result < 0) {
		abx__log_query_done(&q);
		abx__call_error(call, err);
		return;
	}
	r = reading_new(call, rec->id, rec->namespace_, rec->pod, &q);
	if (!r)
		return;
	uv_timer_start(&r->timer, on_read_timer, READ_MS, 0);
	call->on_gone = on_reader_gone;
	call->gone_userdata = r;
	result = r->q.file ? abx__log_source_file(call->serve, rec, r->q.file, r->q.lines,
						  false, &events, r, &r->source, &err)
			   : abx__log_source_container(call->serve, rec, false, &events,
						       r, &r->source, &err);
	if (result < 0) {
		abx__call_error(call, err);
		end_reading(r);
	}
}

/* Of one that ended nothing is kept: its Pod belongs to others. */
static void read_ended(abx__call *call, const abx__ended *ended)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__log_query q = { 0 };
	reading *r;

	if (abx__log_query_parse(call, NULL, false, &q, &err) < 0) {
		abx__log_query_done(&q);
		abx__call_error(call, err);
		return;
	}
	r = reading_new(call, ended->id, ended->namespace_, ended->pod, &q);
	if (!r)
		return;
	r->truncated = true;
	abx__call_json(call, 200, reading_view(r, "cached"));
	end_reading(r);
}

void abx__native_logs(abx__call *call)
{
	const abx__ended *ended = abx__native_ended(call);
	const abx__sandbox_rec *rec = ended ? NULL : abx__call_sandbox(call);

	if (ended)
		read_ended(call, ended);
	else if (rec)
		read_live(call, rec);
}

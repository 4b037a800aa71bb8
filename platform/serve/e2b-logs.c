/*
 * e2b-logs.c - a sandbox's log: what its container has written, and when the platform
 * started and paused it. The log is read off the loop's thread.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "serve/e2b.h"
#include "serve/logs.h"

#define PIECE ((size_t)64 << 10)

/* One call's reading; it ends before the call does. */
typedef struct reading {
	abx__call *call;
	uv_fs_t fs; /* first asked of by uv; its data is this */
	int fd;
	bool v2;
	abx__logs_query query;
	abx__buf text; /* the last of it, at most twice what is looked at */
	char piece[PIECE];
} reading;

static void reading_free(reading *r)
{
	if (r->fd >= 0)
		close(r->fd);
	abx__logs_query_done(&r->query);
	abx__buf_done(&r->text);
	abx__call_drop(r->call);
	abx__free(r);
}

/* ---- answering ---- */

static int add_events(const abx__sandbox_rec *rec, abx__map *fields, abx__logs *logs)
{
	if (abx__map_set(fields, "env", rec->env) < 0 ||
	    abx__map_set(fields, "image", rec->image) < 0 ||
	    abx__map_set(fields, "pod", rec->pod) < 0 ||
	    abx__logs_add_event(logs, rec->started_ms, "sandbox started", fields) < 0)
		return ABX_ENOMEM;
	return rec->paused_ms ? abx__logs_add_event(logs, rec->paused_ms,
						    "sandbox paused", fields)
			      : ABX_OK;
}

static json_object *body_of(const reading *r, const abx__logs *logs)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *entries = abx__logs_entries(logs);
	json_object *plain = r->v2 || !entries ? NULL : abx__logs_plain(logs);

	if (!o || !entries || (!r->v2 && !plain)) {
		json_object_put(entries);
		json_object_put(plain);
		return NULL;
	}
	if (!r->v2 && abx__json_set_take(o, "logs", plain) < 0) {
		json_object_put(entries);
		return NULL;
	}
	if (abx__json_set_take(o, r->v2 ? "logs" : "logEntries", entries) < 0)
		return NULL;
	return abx_take(o);
}

static void answer(reading *r)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(r->call);
	size_t len = r->text.len;
	const char *text = abx__buf_str(&r->text);
	abx__logs logs = { 0 };
	abx__map fields = ABX__MAP_INIT;

	if (!rec)
		return; /* it ended meanwhile, and the call is answered */
	if (len > ABX__LOGS_TEXT_MAX) {
		text += len - ABX__LOGS_TEXT_MAX;
		len = ABX__LOGS_TEXT_MAX;
	}
	if (add_events(rec, &fields, &logs) < 0 ||
	    abx__logs_add_text(&logs, text, len, rec->claimed_ms) < 0) {
		abx__call_nomem(r->call);
	} else {
		abx__logs_select(&logs, &r->query);
		abx__call_json(r->call, 200, body_of(r, &logs));
	}
	abx__logs_done(&logs);
	abx__map_done(&fields);
}

/* ---- reading ---- */

static void read_more(reading *r);

static void on_read(uv_fs_t *fs)
{
	reading *r = fs->data;
	ssize_t n = fs->result;

	uv_fs_req_cleanup(fs);
	if (n > 0 && r->call->req) {
		/* Only the end of it is looked at. */
		if (r->text.len > 2 * ABX__LOGS_TEXT_MAX)
			abx__buf_consume(&r->text, r->text.len - ABX__LOGS_TEXT_MAX);
		if (abx__buf_add(&r->text, r->piece, (size_t)n) == ABX_OK) {
			read_more(r);
			return;
		}
		abx__call_nomem(r->call);
	} else if (n < 0) {
		abx__call_fail(r->call, 500, "the sandbox's log cannot be read: %s",
			       uv_strerror((int)n));
	} else {
		answer(r);
	}
	reading_free(r);
}

static void read_more(reading *r)
{
	uv_buf_t buf = uv_buf_init(r->piece, PIECE);

	r->fs.data = r;
	if (uv_fs_read(r->call->serve->loop, &r->fs, r->fd, &buf, 1, -1, on_read) < 0) {
		abx__call_nomem(r->call);
		reading_free(r);
	}
}

static void on_log(void *userdata, int result, int fd, const abx_error *err)
{
	reading *r = userdata;

	r->fd = fd;
	if (result == ABX_OK) {
		read_more(r);
		return;
	}
	if (result == ABX_ENOTFOUND)
		answer(r); /* nothing was written yet */
	else
		abx__call_error(r->call, err);
	reading_free(r);
}

static void logs(abx__call *call, bool v2)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(call);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const char *query = abx__http_req_query(call->req);
	abx__logs_query q = { 0 };
	reading *r;

	if (!rec)
		return;
	if ((v2 ? abx__logs_query_v2 : abx__logs_query_v1)(query, &q, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	r = abx__calloc(1, sizeof(*r));
	if (!r) {
		abx__logs_query_done(&q);
		abx__call_nomem(call);
		return;
	}
	r->call = call;
	r->fd = -1;
	r->v2 = v2;
	r->query = q;
	abx__call_hold(call);
	if (abx__control_open_log(call->serve->control, rec->id, on_log, r, &err) < 0) {
		abx__call_error(call, err);
		reading_free(r);
	}
}

void abx__e2b_logs_v1(abx__call *call)
{
	logs(call, false);
}

void abx__e2b_logs_v2(abx__call *call)
{
	logs(call, true);
}

/*
 * pod-call.c - see pod-call.h. A call lives until its timer is closed and the engine has
 * answered for its connection, which cannot be taken back.
 */
#include "serve/pod-call.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "io/http-conn.h"
#include "serve/call.h"

#define HEAD_MAX 8192

struct abx__pod_call {
	uv_timer_t timer; /* first */
	abx__serve *serve;
	abx__pod_call *prev, *next; /* of the room's, while it goes on */
	abx__pod_call_options opts; /* of its pointers only the callbacks' stay valid */
	char *name;                 /* "Pod NS/NAME, port N" for messages */
	abx__buf request;           /* head and body; secrets may be in it */
	size_t head_len;
	abx__http_conn *conn;
	abx__buf answer;
	int status;
	bool over, connecting, paused;
	unsigned refs; /* timer, connecting */
};

static void unref(abx__pod_call *call)
{
	if (--call->refs > 0)
		return;
	abx__free(call->name);
	abx__free(call);
}

static void on_timer_closed(uv_handle_t *handle)
{
	abx__pod_call *call = (abx__pod_call *)handle;
	abx__serve *serve = call->serve;

	unref(call);
	abx__serve_release(serve);
}

/* No callback runs any more; what it held is given back. */
static void stop(abx__pod_call *call)
{
	call->over = true;
	if (call->prev)
		call->prev->next = call->next;
	else
		call->serve->pod_calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
	abx__http_conn_close(call->conn);
	call->conn = NULL;
	if (call->request.data)
		abx__wipe(call->request.data, call->request.len);
	abx__buf_done(&call->request);
	uv_close((uv_handle_t *)&call->timer, on_timer_closed);
}

static void finish(abx__pod_call *call, int r, const abx_error *err)
{
	const abx__pod_call_options *o = &call->opts;
	abx__buf answer = call->answer;
	int status = call->status;

	call->answer = (abx__buf){ 0 };
	stop(call);
	o->done(o->userdata, r, status, abx__buf_str(&answer), answer.len, err);
	abx__buf_done(&answer);
}

static void fail(abx__pod_call *call, int r, const char *why)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__error_set(&err, r, "%s: %s", call->name, why);
	finish(call, r, err);
}

void abx__pod_call_cancel(abx__pod_call *call)
{
	if (!call || call->over)
		return;
	stop(call);
	abx__buf_done(&call->answer);
}

void abx__pod_calls_abort(abx__serve *serve)
{
	while (serve->pod_calls)
		fail(serve->pod_calls, ABX_ECANCELED, "the server is closing");
}

/* ---- the answer ---- */

static void on_head(void *userdata, const abx__http_head *head)
{
	((abx__pod_call *)userdata)->status = head->status;
}

static void on_body(void *userdata, const char *data, size_t len)
{
	abx__pod_call *call = userdata;

	if (!data) {
		finish(call, ABX_OK, NULL);
		return;
	}
	if (call->opts.on_data) {
		call->opts.on_data(call->opts.userdata, call->status, data, len);
		return;
	}
	if (len > call->opts.most - call->answer.len)
		fail(call, ABX_ETOOBIG, "its answer is too long");
	else if (abx__buf_add(&call->answer, data, len) < 0)
		fail(call, ABX_ENOMEM, "out of memory");
}

static void on_fail(void *userdata, int r, const char *why)
{
	fail(userdata, r, why);
}

static const abx__http_conn_events events = {
	.head = on_head,
	.body = on_body,
	.fail = on_fail,
};

/* ---- the request ---- */

static void send_request(abx__pod_call *call)
{
	size_t body_len = call->request.len - call->head_len;
	int r = abx__http_conn_request(call->conn, call->request.data, call->head_len,
				       body_len ? ABX__HTTP_LENGTH : ABX__HTTP_NO_BODY,
				       body_len, false, &events, call);

	if (r == ABX_OK && body_len > 0)
		r = abx__http_conn_write(call->conn, call->request.data + call->head_len,
					 body_len);
	if (r == ABX_OK && body_len > 0)
		r = abx__http_conn_end(call->conn);
	if (r < 0)
		fail(call, r, "the request could not be sent");
	else if (call->paused)
		abx__http_conn_pause(call->conn);
}

static void on_connected(void *userdata, int r, int fd, const abx_error *err)
{
	abx__pod_call *call = userdata;

	call->connecting = false;
	if (call->over) {
		if (r == ABX_OK && fd >= 0)
			close(fd);
	} else if (r < 0) {
		fail(call, r, err ? abx_error_message(err) : "it cannot be reached");
	} else {
		r = abx__http_conn_new(call->serve->loop, fd, &call->serve->scratch,
				       &call->conn, NULL);
		if (r < 0) {
			close(fd);
			fail(call, r, "out of memory");
		} else {
			send_request(call);
		}
	}
	unref(call);
}

static void on_timer(uv_timer_t *timer)
{
	fail((abx__pod_call *)timer, ABX_ETIMEDOUT, "no answer in time");
}

static int make_request(abx__pod_call *call, const abx__pod_call_options *o)
{
	abx__buf *b = &call->request;

	b->cap = HEAD_MAX + o->body_len;
	if (abx__buf_addf(b, "%s %s HTTP/1.1\r\nHost: localhost:%u\r\n%s", o->method,
			  o->path, o->port, o->headers) < 0)
		return ABX_ENOMEM;
	if (o->body_len > 0 &&
	    abx__buf_addf(b, "Content-Length: %zu\r\n", o->body_len) < 0)
		return ABX_ENOMEM;
	if (abx__buf_adds(b, "\r\n") < 0)
		return ABX_ENOMEM;
	call->head_len = b->len;
	return abx__buf_add(b, o->body, o->body_len);
}

abx__pod_call *abx__pod_call_start(abx__serve *serve, const abx__pod_call_options *opts)
{
	abx__pod_call *call = abx__calloc(1, sizeof(*call));

	if (call)
		call->name = abx__strf("Pod %s/%s, port %u", opts->namespace_, opts->pod,
				       opts->port);
	if (!call || !call->name || make_request(call, opts) < 0) {
		if (call) {
			abx__buf_done(&call->request);
			abx__free(call->name);
		}
		abx__free(call);
		return NULL;
	}
	call->serve = serve;
	call->opts = *opts;
	call->answer.cap = opts->most;
	call->refs = 2;
	call->connecting = true;
	call->next = serve->pod_calls;
	if (call->next)
		call->next->prev = call;
	serve->pod_calls = call;
	abx__serve_retain(serve);
	uv_timer_init(serve->loop, &call->timer);
	if (opts->timeout_ms)
		uv_timer_start(&call->timer, on_timer, opts->timeout_ms, 0);
	serve->engine->ops->connect_pod(serve->engine, opts->namespace_, opts->pod,
					opts->port, on_connected, call);
	return call;
}

void abx__pod_call_pause(abx__pod_call *call)
{
	call->paused = true;
	if (call->conn)
		abx__http_conn_pause(call->conn);
}

void abx__pod_call_resume(abx__pod_call *call)
{
	call->paused = false;
	if (call->conn)
		abx__http_conn_resume(call->conn);
}

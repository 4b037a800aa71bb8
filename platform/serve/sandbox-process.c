/*
 * sandbox-process.c - see sandbox-process.h: a process.Process/Start stream of envd, and
 * its unary calls for what is typed, sizes and signals, one after the other.
 */
#include "serve/sandbox-process.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "io/connect-code.h"
#include "io/connect-frame.h"
#include "serve/call.h"
#include "serve/pod-call.h"

#define TYPE_MAX ((size_t)1 << 20) /* that waits */
#define TYPE_PIECE ((size_t)32 << 10)
#define CALL_MS 10000
#define HANGUP_MS 3000
#define KILL_MS 5000
#define KILLED 137 /* what a shell says of a process that a signal ended */
#define ANSWER_MAX ((size_t)64 << 10)

struct size {
	unsigned cols, rows;
};

struct abx__sandbox_process {
	uv_timer_t timer; /* first; between hangup, kill and oblivion */
	abx__serve *serve;
	abx__sandbox_process *prev, *next;
	char *namespace_, *pod, *headers;
	uint16_t port;
	bool pty;
	abx__sandbox_process_events events;
	void *userdata;
	abx__pod_call *stream, *unary;
	abx__connect_parser frames;
	abx__buf refusal; /* what a status that is not 200 says */
	unsigned pid;     /* 0: not known yet */
	bool ended;       /* the end was told, or there never was a beginning */
	int exit_code;
	abx_error *failure; /* from the stream's end */
	abx__buf typed;
	struct size sizes[ABX__SANDBOX_PROCESS_RESIZES];
	size_t size_count;
	bool closed, hangup, kill, failed, gone;
};

/* ---- life ---- */

static void on_timer_closed(uv_handle_t *handle)
{
	abx__sandbox_process *p = (abx__sandbox_process *)handle;
	abx__serve *serve = p->serve;

	abx__free(p->namespace_);
	abx__free(p->pod);
	if (p->headers)
		abx__wipe(p->headers, strlen(p->headers));
	abx__free(p->headers);
	abx__connect_parser_done(&p->frames);
	abx__buf_done(&p->refusal);
	abx__buf_done(&p->typed);
	abx_error_free(p->failure);
	abx__free(p);
	abx__serve_release(serve);
}

static void destroy(abx__sandbox_process *p)
{
	if (p->gone)
		return;
	p->gone = true;
	abx__pod_call_cancel(p->stream);
	abx__pod_call_cancel(p->unary);
	p->stream = p->unary = NULL;
	if (p->prev)
		p->prev->next = p->next;
	else
		p->serve->processes = p->next;
	if (p->next)
		p->next->prev = p->prev;
	uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

void abx__sandbox_processes_abort(abx__serve *serve)
{
	while (serve->processes) {
		abx__sandbox_process *p = serve->processes;

		if (!p->closed)
			p->events.done(p->userdata, ABX_ECANCELED, -1, NULL);
		p->closed = true;
		destroy(p);
	}
}

/* ---- unary calls: one at a time, signals first, then sizes, then what is typed ---- */

static void next_unary(abx__sandbox_process *p);

static void on_unary(void *userdata, int r, int status, const char *body, size_t len,
		     const abx_error *err)
{
	abx__sandbox_process *p = userdata;

	/* A process that has ended cannot be told anything; its end comes by the
	 * stream. */
	(void)r;
	(void)status;
	(void)body;
	(void)len;
	(void)err;
	p->unary = NULL;
	next_unary(p);
}

/* Takes the rest of the message: `{"process":{"pid":N},REST}`. */
static bool start_unary(abx__sandbox_process *p, const char *method, const char *rest)
{
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT;
	char path[64];

	if (abx__buf_addf(&body, "{\"process\":{\"pid\":%u},%s}", p->pid, rest) < 0)
		return false;
	snprintf(path, sizeof(path), "/process.Process/%s", method);
	const abx__pod_call_options o = { .namespace_ = p->namespace_,
					  .pod = p->pod,
					  .port = p->port,
					  .method = "POST",
					  .path = path,
					  .headers = p->headers,
					  .body = body.data,
					  .body_len = body.len,
					  .timeout_ms = CALL_MS,
					  .most = ANSWER_MAX,
					  .done = on_unary,
					  .userdata = p };

	p->unary = abx__pod_call_start(p->serve, &o);
	return p->unary != NULL;
}

static bool send_kill(abx__sandbox_process *p)
{
	p->kill = false;
	return start_unary(p, "SendSignal", "\"signal\":\"SIGNAL_SIGKILL\"");
}

static bool send_size(abx__sandbox_process *p)
{
	char rest[96];

	snprintf(rest, sizeof(rest), "\"pty\":{\"size\":{\"cols\":%u,\"rows\":%u}}",
		 p->sizes[0].cols, p->sizes[0].rows);
	memmove(p->sizes, p->sizes + 1, --p->size_count * sizeof(p->sizes[0]));
	return start_unary(p, "Update", rest);
}

static bool send_typed(abx__sandbox_process *p)
{
	size_t n = p->typed.len < TYPE_PIECE ? p->typed.len : TYPE_PIECE;
	ABX_CLEANUP_BUF abx__buf rest = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *code = abx__base64_encode(p->typed.data, n);

	if (!code || abx__buf_addf(&rest, "\"input\":{\"pty\":\"%s\"}", code) < 0)
		return false;
	abx__buf_consume(&p->typed, n);
	return start_unary(p, "SendInput", abx__buf_str(&rest));
}

static void on_timer(uv_timer_t *timer);

static void next_unary(abx__sandbox_process *p)
{
	bool ok = true;

	if (p->gone || p->unary)
		return;
	if (p->pid && !p->ended) {
		if (p->kill)
			ok = send_kill(p);
		else if (p->size_count > 0)
			ok = send_size(p);
		else if (p->typed.len > 0)
			ok = send_typed(p);
	}
	if (!ok && !p->failed) {
		p->failed = true;
		uv_timer_start(&p->timer, on_timer, 0, 0);
	}
}

/* ---- the stream ---- */

/* Ends it for the owner. */
static void report(abx__sandbox_process *p, int r, const abx_error *err)
{
	bool told = p->closed;

	p->ended = true;
	p->closed = true;
	if (!told)
		p->events.done(p->userdata, r, p->exit_code, err);
	destroy(p);
}

static json_object *member(json_object *o, const char *key)
{
	json_object *v = NULL;

	return o && json_object_object_get_ex(o, key, &v) ? v : NULL;
}

static void on_output(abx__sandbox_process *p, json_object *data)
{
	static const char *const names[] = {
		[ABX__STDOUT] = "stdout", [ABX__STDERR] = "stderr", [ABX__PTY] = "pty"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *code = NULL;
		ABX_CLEANUP(abx__freep) uint8_t *bytes = NULL;
		size_t len = 0;

		if (!p->closed && abx__json_get_str(data, names[i], &code, NULL) == 1 &&
		    abx__base64_decode(code, strlen(code), &bytes, &len) == ABX_OK)
			p->events.output(p->userdata, (enum abx__output)i,
					 (const char *)bytes, len);
	}
}

static void on_event(abx__sandbox_process *p, json_object *event)
{
	json_object *start = member(event, "start"), *end = member(event, "end");
	int64_t n = 0;

	if (start && abx__json_get_i64(start, "pid", 1, INT32_MAX, &n, NULL) == 1) {
		p->pid = (unsigned)n;
		next_unary(p);
	}
	if (member(event, "data"))
		on_output(p, member(event, "data"));
	if (end) {
		bool exited = false;

		n = 0;
		abx__json_get_bool(end, "exited", &exited, NULL);
		abx__json_get_i64(end, "exitCode", INT32_MIN, INT32_MAX, &n, NULL);
		p->exit_code = exited ? (int)n : KILLED;
		p->ended = true;
	}
}

/* The trailer of a Connect stream: {} or {"error": {code, message}}. */
static int on_trailer(abx__sandbox_process *p, json_object *trailer)
{
	json_object *error = member(trailer, "error");
	const char *code = NULL, *message = NULL;

	if (!error || p->failure)
		return ABX_OK;
	abx__json_get_str(error, "code", &code, NULL);
	abx__json_get_str(error, "message", &message, NULL);
	abx__error_set(
		&p->failure, abx__connect_code_error(abx__connect_code_from_name(code)),
		"envd: %s", message ? message : "the process could not be started");
	return ABX_OK;
}

static int on_frame(void *userdata, unsigned flags, const char *data, size_t len)
{
	abx__sandbox_process *p = userdata;
	ABX_CLEANUP_JSON json_object *o = NULL;

	if (p->gone || abx__json_parse_object(data, len, 0, &o, NULL) < 0)
		return p->gone ? ABX_ECANCELED : ABX_EPROTO;
	if (flags & ABX__CONNECT_END_STREAM)
		return on_trailer(p, o);
	on_event(p, member(o, "event"));
	return p->gone ? ABX_ECANCELED : ABX_OK;
}

static void on_data(void *userdata, int status, const char *data, size_t len)
{
	abx__sandbox_process *p = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r;

	if (status != 200) {
		if (p->refusal.len < ANSWER_MAX)
			abx__buf_add(&p->refusal, data, len);
		return;
	}
	r = abx__connect_parser_feed(&p->frames, data, len, on_frame, p);
	if (r < 0 && !p->gone) {
		abx__error_set(&err, r, "envd does not speak Connect");
		report(p, r, err);
	}
}

static void on_stream_done(void *userdata, int r, int status, const char *body,
			   size_t len, const abx_error *err)
{
	abx__sandbox_process *p = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	(void)body;
	(void)len;
	p->stream = NULL;
	if (r == ABX_OK && status != 200) {
		r = abx__error_set(&own, ABX_EPROTO, "envd answered %d: %.200s", status,
				   abx__buf_str(&p->refusal));
		err = own;
	} else if (r == ABX_OK && p->failure) {
		r = abx_error_code(p->failure);
		err = p->failure;
	} else if (r == ABX_OK && !p->ended) {
		r = abx__error_set(&own, ABX_EIO, "the process's stream broke off");
		err = own;
	} else if (p->ended) {
		r = ABX_OK; /* it ended, whatever became of the connection */
	}
	report(p, r, err);
}

/* ---- the face ---- */

/* Connect's headers, root by Basic, and the sandbox's own token when it has one. */
static char *make_headers(const abx__sandbox_rec *rec, const char *type)
{
	ABX_CLEANUP_BUF abx__buf b = ABX__BUF_INIT;

	if (abx__buf_addf(&b,
			  "Content-Type: %s\r\nConnect-Protocol-Version: 1\r\n"
			  "Authorization: Basic cm9vdDo=\r\n",
			  type) < 0)
		return NULL;
	if (rec->access_token && abx__buf_addf(&b, "X-Access-Token: %s\r\n",
					       abx__secret_reveal(rec->access_token)) < 0)
		return NULL;
	return abx__buf_take(&b);
}

static json_object *pty_json(const abx__sandbox_command *c)
{
	ABX_CLEANUP_JSON json_object *pty = json_object_new_object();
	json_object *size = json_object_new_object();

	if (!pty || !size || abx__json_set_i64(size, "cols", c->cols) < 0 ||
	    abx__json_set_i64(size, "rows", c->rows) < 0) {
		json_object_put(size);
		return NULL;
	}
	return abx__json_set_take(pty, "size", size) < 0 ? NULL : abx_take(pty);
}

static json_object *process_json(const abx__sandbox_command *c)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *args = json_object_new_array(), *envs = NULL;
	int r = o && args ? abx__json_set_str(o, "cmd", c->cmd) : ABX_ENOMEM;

	for (size_t i = 0; r == ABX_OK && c->args[i]; i++) {
		json_object *arg = json_object_new_string(c->args[i]);

		r = arg ? abx__json_push_take(args, arg) : ABX_ENOMEM;
	}
	if (r < 0) {
		json_object_put(args);
		return NULL;
	}
	if (abx__json_set_take(o, "args", args) < 0)
		return NULL;
	if (c->pty) {
		envs = json_object_new_object();
		if (!envs || abx__json_set_take(o, "envs", envs) < 0 ||
		    abx__json_set_str(envs, "TERM", "xterm-256color") < 0)
			return NULL;
	}
	return abx_take(o);
}

/* The StartRequest in its envelope. */
static int make_start(const abx__sandbox_command *c, abx__buf *ret)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *process = process_json(c), *pty = NULL;
	size_t mark = 0;
	int r = o && process ? ABX_OK : ABX_ENOMEM;

	if (r < 0) {
		json_object_put(process);
		return r;
	}
	r = abx__json_set_take(o, "process", process);
	if (r == ABX_OK && c->pty) {
		pty = pty_json(c);
		r = pty ? abx__json_set_take(o, "pty", pty) : ABX_ENOMEM;
	}
	if (r == ABX_OK && !c->pty)
		r = abx__json_set_bool(o, "stdin", false);
	if (r == ABX_OK)
		r = abx__connect_frame_open(ret, 0, &mark);
	if (r == ABX_OK)
		r = abx__json_print(o, ret);
	if (r == ABX_OK)
		abx__connect_frame_close(ret, mark);
	return r;
}

static int start_stream(abx__sandbox_process *p, const abx__sandbox_rec *rec,
			const abx__sandbox_command *command)
{
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep)
	char *headers = make_headers(rec, "application/connect+json");

	if (!headers || make_start(command, &body) < 0)
		return ABX_ENOMEM;
	const abx__pod_call_options o = { .namespace_ = p->namespace_,
					  .pod = p->pod,
					  .port = p->port,
					  .method = "POST",
					  .path = "/process.Process/Start",
					  .headers = headers,
					  .body = body.data,
					  .body_len = body.len,
					  .on_data = on_data,
					  .done = on_stream_done,
					  .userdata = p };

	p->stream = abx__pod_call_start(p->serve, &o);
	abx__wipe(headers, strlen(headers));
	return p->stream ? ABX_OK : ABX_ENOMEM;
}

int abx__sandbox_process_start(abx__serve *serve, const abx__sandbox_rec *rec,
			       const abx__sandbox_command *command,
			       const abx__sandbox_process_events *events, void *userdata,
			       abx__sandbox_process **ret, abx_error **reterr)
{
	abx__sandbox_process *p = abx__calloc(1, sizeof(*p));

	if (!p)
		return abx__error_nomem(reterr);
	p->serve = serve;
	p->port = rec->runtime_port;
	p->pty = command->pty;
	p->events = *events;
	p->userdata = userdata;
	p->exit_code = -1;
	p->next = serve->processes;
	if (p->next)
		p->next->prev = p;
	serve->processes = p;
	abx__serve_retain(serve);
	uv_timer_init(serve->loop, &p->timer);
	p->namespace_ = abx__strdup(rec->namespace_);
	p->pod = abx__strdup(rec->pod);
	p->headers = make_headers(rec, "application/json");
	if (!p->namespace_ || !p->pod || !p->headers ||
	    start_stream(p, rec, command) < 0) {
		p->closed = true;
		destroy(p);
		return abx__error_nomem(reterr);
	}
	*ret = p;
	return ABX_OK;
}

int abx__sandbox_process_type(abx__sandbox_process *p, const char *data, size_t len)
{
	if (len > TYPE_MAX - p->typed.len)
		return ABX_ETOOBIG;
	if (abx__buf_add(&p->typed, data, len) < 0)
		return ABX_ENOMEM;
	next_unary(p);
	return ABX_OK;
}

void abx__sandbox_process_resize(abx__sandbox_process *p, unsigned cols, unsigned rows)
{
	if (p->size_count == ABX__SANDBOX_PROCESS_RESIZES)
		return; /* the surplus is dropped, as documented */
	p->sizes[p->size_count++] = (struct size){ cols, rows };
	next_unary(p);
}

size_t abx__sandbox_process_waiting(const abx__sandbox_process *p)
{
	return p->typed.len;
}

void abx__sandbox_process_pause(abx__sandbox_process *p)
{
	if (p->stream)
		abx__pod_call_pause(p->stream);
}

void abx__sandbox_process_resume(abx__sandbox_process *p)
{
	if (p->stream)
		abx__pod_call_resume(p->stream);
}

/* Memory is out; or its terminal was hung up and it goes on: it is killed; or that was
   tried and nothing came of it: it is left to the sandbox. */
static void on_timer(uv_timer_t *timer)
{
	abx__sandbox_process *p = (abx__sandbox_process *)timer;
	bool tried = !p->hangup;

	if (p->failed && !p->closed) {
		report(p, ABX_ENOMEM, NULL);
	} else if (p->failed || tried) {
		destroy(p);
	} else {
		p->hangup = false;
		p->kill = true;
		uv_timer_start(timer, on_timer, KILL_MS, 0);
		next_unary(p);
	}
}

void abx__sandbox_process_close(abx__sandbox_process *p, bool hangup)
{
	if (p->closed)
		return;
	p->closed = true;
	p->hangup = hangup;
	p->kill = !hangup;
	/* Whatever it still writes must not stand in the way of its end. */
	abx__sandbox_process_resume(p);
	if (p->gone)
		return;
	uv_timer_start(&p->timer, on_timer, hangup ? HANGUP_MS : KILL_MS, 0);
	if (hangup)
		abx__sandbox_process_type(p, "\x04", 1);
	else
		next_unary(p);
}

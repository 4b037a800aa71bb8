/*
 * native-exec.c - commands in a sandbox by the native API: one to its end (deprecated),
 * the token that opens a terminal, and whether its runtimes are ready.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/native.h"
#include "serve/pod-call.h"
#include "serve/sandbox-process.h"
#include "serve/view.h"

#define TIMEOUT_DEFAULT_S 30
#define TIMEOUT_MAX_S 300
#define OUTPUT_MAX ((size_t)4 << 20) /* of each stream */
#define PROBE_MS 2000
#define PROBE_ANSWER_MAX ((size_t)64 << 10)

/* The sandbox of the path if a command can run in it now; else the call is answered. */
static const abx__sandbox_rec *running(abx__call *call)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(call);

	if (rec && (rec->state != ABX__SANDBOX_RUNNING || !rec->runtime_port)) {
		abx__call_fail(call, 400, "sandbox \"%s\" is %s, not Running", rec->id,
			       rec->runtime_port ? abx__native_sandbox_status(rec)
						 : "without a runtime");
		return NULL;
	}
	return rec;
}

/* ---- the terminal's token ---- */

void abx__native_exec_token(abx__call *call)
{
	const abx__sandbox_rec *rec = running(call);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	char token[ABX__EXEC_TOKEN_LEN + 1];

	if (!rec)
		return;
	abx__call_header(call, "Cache-Control", "no-store");
	if (abx__exec_tokens_mint(
		    &call->serve->exec_tokens, rec->id,
		    call->serve->clock->mono_ms(call->serve->clock->userdata), token,
		    &err) < 0)
		abx__call_error(call, err);
	else if (!o || abx__json_set_str(o, "token", token) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
	abx__wipe(token, sizeof(token));
}

/* ---- one command ---- */

typedef struct exec_op {
	uv_timer_t timer; /* first */
	abx__call *call;
	abx__sandbox_process *process;
	abx__buf out, err;
	int64_t timeout_s;
	bool over;
} exec_op;

static void on_exec_closed(uv_handle_t *handle)
{
	exec_op *op = (exec_op *)handle;
	abx__serve *serve = op->call->serve;

	abx__buf_done(&op->out);
	abx__buf_done(&op->err);
	abx__call_drop(op->call);
	abx__free(op);
	abx__serve_release(serve);
}

static void end_exec(exec_op *op)
{
	op->over = true;
	op->call->on_gone = NULL;
	if (op->process)
		abx__sandbox_process_close(op->process, false);
	op->process = NULL;
	uv_close((uv_handle_t *)&op->timer, on_exec_closed);
}

static void on_output(void *userdata, enum abx__output which, const char *data,
		      size_t len)
{
	exec_op *op = userdata;
	abx__buf *buf = which == ABX__STDERR ? &op->err : &op->out;

	if (op->over || abx__buf_add(buf, data, len) == ABX_OK)
		return;
	abx__call_fail(op->call, 413,
		       "the command writes over %zu bytes; redirect it into a file and "
		       "read that",
		       OUTPUT_MAX);
	end_exec(op);
}

static int put_output(json_object *o, const char *key, const abx__buf *buf)
{
	json_object *text = abx__json_clean_text(abx__buf_str(buf), buf->len);

	return text ? abx__json_set_take(o, key, text) : ABX_ENOMEM;
}

static void on_exec_done(void *userdata, int r, int exit_code, const abx_error *err)
{
	exec_op *op = userdata;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	op->process = NULL;
	if (op->over)
		return;
	if (r < 0 && err)
		abx__call_error(op->call, err);
	else if (r < 0 || !o || abx__json_set_i64(o, "exitCode", exit_code) < 0 ||
		 put_output(o, "stdout", &op->out) < 0 ||
		 put_output(o, "stderr", &op->err) < 0)
		abx__call_nomem(op->call);
	else
		abx__call_json(op->call, 200, abx_take(o));
	end_exec(op);
}

static void on_exec_timer(uv_timer_t *timer)
{
	exec_op *op = (exec_op *)timer;

	abx__call_fail(op->call, 504, "the command did not end within %lld s: killed",
		       (long long)op->timeout_s);
	end_exec(op);
}

static void on_exec_gone(abx__call *call)
{
	end_exec(call->gone_userdata);
}

void abx__native_exec(abx__call *call)
{
	static const abx__sandbox_process_events events = { .output = on_output,
							    .done = on_exec_done };
	const abx__sandbox_rec *rec = running(call);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const char *args[] = { "-c", NULL, NULL };
	const abx__sandbox_command command = { .cmd = "/bin/sh", .args = args };
	int64_t seconds = 0;
	exec_op *op;

	if (!rec)
		return;
	abx__json_get_str(call->body, "command", &args[1], NULL);
	abx__json_get_i64(call->body, "timeoutSeconds", INT32_MIN, INT32_MAX, &seconds,
			  NULL);
	op = abx__calloc(1, sizeof(*op));
	if (!op) {
		abx__call_nomem(call);
		return;
	}
	op->call = call;
	op->timeout_s = seconds <= 0              ? TIMEOUT_DEFAULT_S
			: seconds > TIMEOUT_MAX_S ? TIMEOUT_MAX_S
						  : seconds;
	op->out.cap = op->err.cap = OUTPUT_MAX;
	abx__call_hold(call);
	abx__serve_retain(call->serve);
	uv_timer_init(call->serve->loop, &op->timer);
	uv_timer_start(&op->timer, on_exec_timer, (uint64_t)op->timeout_s * 1000, 0);
	call->on_gone = on_exec_gone;
	call->gone_userdata = op;
	if (abx__sandbox_process_start(call->serve, rec, &command, &events, op,
				       &op->process, &err) < 0) {
		abx__call_error(call, err);
		end_exec(op);
	}
}

/* ---- readiness ---- */

typedef struct probing {
	abx__call *call;
	json_object *endpoints;
	unsigned waiting;
	bool ready;
} probing;

typedef struct probe {
	probing *all;
	char *name; /* of the runtime */
} probe;

static void answer_probing(probing *all)
{
	abx__call *call = all->call;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "sandboxId", call->subject) < 0 ||
	    abx__json_set_bool(o, "ready", all->ready) < 0 ||
	    abx__json_set_take(o, "endpoints", abx_take(all->endpoints)) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, all->ready ? 200 : 503, abx_take(o));
	json_object_put(all->endpoints);
	abx__call_drop(call);
	abx__free(all);
}

static int put_probe(probing *all, const char *name, bool ready, const char *message)
{
	json_object *o = json_object_new_object();

	all->ready = all->ready && ready;
	if (!o || abx__json_set_take(all->endpoints, name, o) < 0 ||
	    abx__json_set_bool(o, "ready", ready) < 0)
		return ABX_ENOMEM;
	return message ? abx__json_set_str(o, "message", message) : ABX_OK;
}

static void on_probed(void *userdata, int r, int status, const char *body, size_t len,
		      const abx_error *err)
{
	probe *p = userdata;
	probing *all = p->all;
	bool ready = r == ABX_OK && status >= 200 && status < 400;
	char text[64] = "";

	(void)body;
	(void)len;
	snprintf(text, sizeof(text), "HTTP %d", status);
	put_probe(all, p->name, ready, r < 0 ? abx_error_message(err) : text);
	abx__free(p->name);
	abx__free(p);
	if (--all->waiting == 0)
		answer_probing(all);
}

/* Asks the runtime's HTTP probe; one without such a probe is ready. */
static int start_probe(probing *all, const abx__sandbox_rec *rec, json_object *runtime)
{
	const char *name = abx__view_str(runtime, "name");
	json_object *get = abx__view_path(runtime, "readinessProbe", "httpGet");
	json_object *port = abx__view_path(get, "port");
	const char *path = abx__view_str(get, "path");
	probe *p;

	if (!name)
		return ABX_OK;
	if (!get || !port)
		return put_probe(all, name, true, NULL);
	p = abx__calloc(1, sizeof(*p));
	if (p)
		p->name = abx__strdup(name);
	if (!p || !p->name) {
		abx__free(p);
		return ABX_ENOMEM;
	}
	p->all = all;
	const abx__pod_call_options o = {
		.namespace_ = rec->namespace_,
		.pod = rec->pod,
		.port = (uint16_t)json_object_get_int(port),
		.method = "GET",
		.path = path && *path == '/' ? path : "/",
		.headers = "",
		.timeout_ms = PROBE_MS,
		.most = PROBE_ANSWER_MAX,
		.done = on_probed,
		.userdata = p,
	};
	all->waiting++;
	if (abx__pod_call_start(all->call->serve, &o))
		return ABX_OK;
	all->waiting--;
	abx__free(p->name);
	abx__free(p);
	return ABX_ENOMEM;
}

void abx__native_is_ready(abx__call *call)
{
	const abx__sandbox_rec *rec = abx__call_sandbox(call);
	ABX_CLEANUP_JSON json_object *template_ = NULL;
	json_object *runtimes;
	probing *all;
	int r = ABX_OK;

	if (!rec)
		return;
	all = abx__calloc(1, sizeof(*all));
	if (all)
		all->endpoints = json_object_new_object();
	call->subject = abx__strdup(rec->id);
	if (!all || !all->endpoints || !call->subject) {
		abx__free(all);
		abx__call_nomem(call);
		return;
	}
	all->call = call;
	all->ready = rec->state == ABX__SANDBOX_RUNNING;
	all->waiting = 1; /* this function */
	abx__call_hold(call);
	if (abx__control_template_get(call->serve->control, rec->template_, &template_,
				      NULL) < 0)
		template_ = NULL;
	runtimes = abx__view_path(template_, "spec", "runtimes");
	for (size_t i = 0;
	     runtimes && r == ABX_OK && i < json_object_array_length(runtimes); i++) {
		json_object *runtime = json_object_array_get_idx(runtimes, i);

		if (rec->state == ABX__SANDBOX_RUNNING)
			r = start_probe(all, rec, runtime);
		else if (abx__view_str(runtime, "name"))
			r = put_probe(all, abx__view_str(runtime, "name"), false,
				      abx__native_sandbox_status(rec));
	}
	if (r < 0)
		abx__call_nomem(call);
	if (--all->waiting == 0)
		answer_probing(all);
}

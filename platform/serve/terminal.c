/*
 * terminal.c - a shell in a sandbox over a WebSocket (native-api.md, section 14.1): what
 * comes in binary frames is typed, text frames are {op: "stdin", data} and {op: "resize",
 * cols, rows}; what the shell writes goes out in binary frames.
 *
 * The token is the credential: it is used up before the connection changes protocols.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "io/websocket.h"
#include "serve/native.h"
#include "serve/sandbox-process.h"

#define MESSAGE_MAX ((size_t)256 << 10)
#define QUEUE_MAX ((size_t)1 << 20) /* of the shell's output, unsent */
#define QUEUE_LOW ((size_t)256 << 10)
#define TYPED_MAX ((size_t)256 << 10) /* that envd has not taken: then none is read */
#define COLS_DEFAULT 80
#define ROWS_DEFAULT 24
#define SIZE_MAX_CELLS 4096

typedef struct terminal {
	abx__call *call;
	abx__sandbox_process *shell;
	abx__ws_parser parser;
	bool over;
} terminal;

static void terminal_free(terminal *t)
{
	abx__ws_parser_done(&t->parser);
	abx__call_drop(t->call);
	abx__free(t);
}

/* The peer is gone, or has been told; the shell hangs up. */
static void end_terminal(terminal *t)
{
	if (t->over)
		return;
	t->over = true;
	t->call->on_gone = NULL;
	if (t->shell)
		abx__sandbox_process_close(t->shell, true);
	t->shell = NULL;
	terminal_free(t);
}

static void on_gone(abx__call *call)
{
	end_terminal(call->gone_userdata);
}

static int send_frame(terminal *t, enum abx__ws_opcode opcode, const void *data,
		      size_t len)
{
	ABX_CLEANUP_BUF abx__buf frame = ABX__BUF_INIT;
	int r = abx__ws_frame_add(&frame, opcode, data, len);

	if (r == ABX_OK && t->call->req)
		r = abx__http_res_write(t->call->req, frame.data, frame.len);
	return r;
}

/* Says goodbye; the connection is closed once that is out and the peer has closed too. */
static void hang_up(terminal *t, unsigned code, const char *text)
{
	ABX_CLEANUP_BUF abx__buf frame = ABX__BUF_INIT;

	if (!t->call->req || abx__ws_close_add(&frame, code, text) < 0 ||
	    abx__http_res_write(t->call->req, frame.data, frame.len) < 0 ||
	    abx__http_res_end(t->call->req) < 0) {
		if (t->call->req)
			abx__http_res_abort(t->call->req);
	}
	end_terminal(t);
}

/* ---- the shell's side ---- */

static void on_output(void *userdata, enum abx__output which, const char *data,
		      size_t len)
{
	terminal *t = userdata;

	(void)which;
	if (t->over)
		return;
	if (send_frame(t, ABX__WS_BINARY, data, len) < 0)
		abx__http_res_abort(t->call->req);
	else if (abx__http_res_queued(t->call->req) > QUEUE_MAX)
		abx__sandbox_process_pause(t->shell);
}

static void on_drain(abx__http_req *req, void *userdata)
{
	abx__call *call = userdata;
	terminal *t = call->on_gone ? call->gone_userdata : NULL;

	(void)req;
	if (t && t->shell)
		abx__sandbox_process_resume(t->shell);
}

/* One text frame when it never came to be. */
static void send_error(terminal *t, const char *message)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP(abx__freep) char *text = NULL;
	size_t len = 0;

	if (o && abx__json_set_str(o, "error", message) == ABX_OK)
		text = abx__json_text(o, &len);
	if (text)
		send_frame(t, ABX__WS_TEXT, text, len);
}

static void on_shell_done(void *userdata, int r, int exit_code, const abx_error *err)
{
	terminal *t = userdata;

	(void)exit_code;
	t->shell = NULL;
	if (t->over)
		return;
	if (r < 0)
		send_error(t, err ? abx_error_message(err) : "out of memory");
	hang_up(t, r < 0 ? ABX__WS_INTERNAL : ABX__WS_NORMAL, "");
}

/* ---- the client's side ---- */

static void type(terminal *t, const char *data, size_t len)
{
	if (t->shell && len > 0)
		abx__sandbox_process_type(t->shell, data, len);
}

/* Anything else is ignored, as documented. */
static void do_op(terminal *t, const char *data, size_t len)
{
	ABX_CLEANUP_JSON json_object *o = NULL;
	const char *op = NULL, *text = NULL;
	int64_t cols = 0, rows = 0;

	if (abx__json_parse_object(data, len, MESSAGE_MAX, &o, NULL) < 0 ||
	    abx__json_get_str(o, "op", &op, NULL) != 1)
		return;
	if (strcmp(op, "stdin") == 0 && abx__json_get_str(o, "data", &text, NULL) == 1)
		type(t, text, strlen(text));
	else if (strcmp(op, "resize") == 0 && t->shell &&
		 abx__json_get_i64(o, "cols", 1, SIZE_MAX_CELLS, &cols, NULL) == 1 &&
		 abx__json_get_i64(o, "rows", 1, SIZE_MAX_CELLS, &rows, NULL) == 1)
		abx__sandbox_process_resize(t->shell, (unsigned)cols, (unsigned)rows);
}

static int on_message(void *userdata, enum abx__ws_opcode opcode, const char *data,
		      size_t len)
{
	terminal *t = userdata;

	switch (opcode) {
	case ABX__WS_BINARY:
		type(t, data, len);
		break;
	case ABX__WS_TEXT:
		do_op(t, data, len);
		break;
	case ABX__WS_PING:
		return send_frame(t, ABX__WS_PONG, data, len);
	case ABX__WS_CLOSE:
		return ABX_ECANCELED;
	default:
		break;
	}
	return ABX_OK;
}

static void on_bytes(abx__http_req *req, const char *data, size_t len, int r,
		     void *userdata)
{
	abx__call *call = userdata;
	terminal *t = call->on_gone ? call->gone_userdata : NULL;

	(void)req;
	if (!t)
		return;
	if (!data || r < 0) { /* it left without a word */
		hang_up(t, ABX__WS_GOING_AWAY, "");
		return;
	}
	r = abx__ws_parser_feed(&t->parser, data, len, on_message, t);
	if (r < 0)
		hang_up(t, r == ABX_ECANCELED ? ABX__WS_NORMAL : abx__ws_close_code(r),
			"");
}

/* ---- the beginning ---- */

/* What an upgrade to a WebSocket must say; false when the call was answered. */
static bool check_upgrade(abx__call *call, char accept[ABX__WS_ACCEPT_SIZE])
{
	const char *key = abx__http_req_header(call->req, "Sec-WebSocket-Key");
	const char *version = abx__http_req_header(call->req, "Sec-WebSocket-Version");

	if (!abx__http_req_is_upgrade(call->req) ||
	    !abx__http_req_header_has(call->req, "Upgrade", "websocket") || !key ||
	    !abx__str_eq(version, "13") || abx__ws_accept(key, accept) < 0) {
		abx__call_header(call, "Sec-WebSocket-Version", "13");
		abx__call_fail(call, 400,
			       "the terminal is a WebSocket (RFC 6455, over HTTP/1.1)");
		return false;
	}
	return true;
}

/* False when the call was answered. */
static bool spend_token(abx__call *call, const char *id)
{
	const char *query = abx__http_req_query(call->req);
	const abx__clock *clock = call->serve->clock;
	ABX_CLEANUP(abx__freep) char *token = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (!query || abx__query_get(query, "token", &token) != 1 || !*token) {
		abx__call_fail(call, 401, "missing terminal token");
		return false;
	}
	if (abx__exec_tokens_spend(&call->serve->exec_tokens, token, id,
				   clock->mono_ms(clock->userdata), &err) < 0) {
		abx__call_error(call, err);
		return false;
	}
	return true;
}

static int switch_protocols(abx__call *call, const char *accept)
{
	ABX_CLEANUP(abx__freep)
	char *head = abx__strf("HTTP/1.1 101 Switching Protocols\r\n"
			       "Upgrade: websocket\r\nConnection: Upgrade\r\n"
			       "Sec-WebSocket-Accept: %s\r\n"
			       "X-AgentBox-Server-Version: %s\r\n\r\n",
			       accept, abx_version());
	int r = head ? abx__http_req_hijack(call->req) : ABX_ENOMEM;

	return r < 0 ? r : abx__http_res_write(call->req, head, strlen(head));
}

static void start(abx__call *call, const abx__sandbox_rec *rec, const char *accept)
{
	static const char *const args[] = { "-c", "bash || sh", NULL };
	static const abx__sandbox_process_events events = { .output = on_output,
							    .done = on_shell_done };
	const abx__sandbox_command command = { .cmd = "/bin/sh",
					       .args = args,
					       .pty = true,
					       .cols = COLS_DEFAULT,
					       .rows = ROWS_DEFAULT };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	terminal *t = abx__calloc(1, sizeof(*t));

	if (!t || switch_protocols(call, accept) < 0) {
		abx__free(t);
		abx__http_res_abort(call->req);
		return;
	}
	t->call = call;
	t->parser.max_bytes = MESSAGE_MAX;
	abx__call_hold(call);
	call->on_gone = on_gone;
	call->gone_userdata = t;
	abx__http_res_on_drain(call->req, QUEUE_LOW, on_drain, call);
	if (abx__sandbox_process_start(call->serve, rec, &command, &events, t, &t->shell,
				       &err) < 0) {
		send_error(t, abx_error_message(err));
		hang_up(t, ABX__WS_INTERNAL, "");
		return;
	}
	abx__http_req_read(call->req, on_bytes, call);
}

void abx__native_terminal(abx__call *call)
{
	/* The public address has the cluster before the sandbox. */
	const char *id = call->params[call->params[1] ? 1 : 0];
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(abx__control_sandboxes(call->serve->control), id);
	char accept[ABX__WS_ACCEPT_SIZE];

	if (!spend_token(call, rec ? rec->id : id))
		return;
	if (!rec || rec->state != ABX__SANDBOX_RUNNING || !rec->runtime_port)
		abx__call_fail(call, 404, "sandbox \"%s\" does not run any more", id);
	else if (check_upgrade(call, accept))
		start(call, rec, accept);
}

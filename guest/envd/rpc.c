/*
 * rpc.c - Connect's unary and streaming exchanges over the HTTP server.
 */
#include "envd/rpc.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/envd.h"
#include "io/json.h"
#include "io/proto-json.h"

#define DEFAULT_MAX_BYTES ((size_t)8 << 20)
#define DEFAULT_KEEPALIVE_MS 90000
#define ACCEPT_POST                                                               \
	"application/connect+json, application/connect+proto, application/json, " \
	"application/json; charset=utf-8, application/proto"

static bool is_stream(const abx__rpc *rpc)
{
	return rpc->method->kind != ABX__RPC_UNARY;
}

static size_t max_bytes(const abx__rpc *rpc)
{
	return rpc->method->max_bytes ? rpc->method->max_bytes : DEFAULT_MAX_BYTES;
}

/* ---- life ---- */

static void free_timer(uv_handle_t *handle)
{
	abx__free(handle);
}

static void stop_timer(abx__rpc *rpc)
{
	if (!rpc->timer)
		return;
	rpc->timer->data = NULL;
	uv_close((uv_handle_t *)rpc->timer, free_timer);
	rpc->timer = NULL;
}

abx__rpc *abx__rpc_ref(abx__rpc *rpc)
{
	rpc->refs++;
	return rpc;
}

void abx__rpc_unref(abx__rpc *rpc)
{
	if (!rpc || --rpc->refs > 0)
		return;
	stop_timer(rpc);
	abx__connect_parser_done(&rpc->parser);
	abx__proto_free(rpc->in);
	abx__user_done(&rpc->user);
	abx__free(rpc);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	abx__rpc *rpc = userdata;

	(void)req;
	(void)answered;
	rpc->req = NULL;
	rpc->is_done = true;
	stop_timer(rpc);
	if (rpc->on_gone)
		rpc->on_gone(rpc);
	rpc->on_gone = NULL;
	abx__rpc_unref(rpc);
}

/* ---- deadline and keepalive ---- */

static void arm_timer(abx__rpc *rpc);

static void on_timer(uv_timer_t *timer)
{
	abx__rpc *rpc = timer->data;
	uint64_t now = uv_now(timer->loop);

	if (!rpc || rpc->is_done)
		return;
	if (rpc->deadline_ms && now >= rpc->deadline_ms) {
		abx__rpc_fail(rpc, ABX__CONNECT_DEADLINE_EXCEEDED, "deadline exceeded");
		return;
	}
	if (rpc->keepalive && now >= rpc->sent_ms + rpc->keepalive_ms)
		abx__rpc_send(rpc, rpc->keepalive);
	arm_timer(rpc);
}

/* One timer for both: it fires at the nearer of the two and looks again. */
static void arm_timer(abx__rpc *rpc)
{
	uint64_t now = uv_now(rpc->envd->loop), next = UINT64_MAX;

	if (rpc->deadline_ms)
		next = rpc->deadline_ms;
	if (rpc->keepalive && rpc->sent_ms + rpc->keepalive_ms < next)
		next = rpc->sent_ms + rpc->keepalive_ms;
	if (next == UINT64_MAX || rpc->is_done)
		return;
	if (!rpc->timer) {
		rpc->timer = abx__calloc(1, sizeof(*rpc->timer));
		if (!rpc->timer) {
			abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED,
				      "out of memory");
			return;
		}
		uv_timer_init(rpc->envd->loop, rpc->timer);
		rpc->timer->data = rpc;
	}
	uv_timer_start(rpc->timer, on_timer, next > now ? next - now : 0, 0);
}

void abx__rpc_set_keepalive(abx__rpc *rpc, const ProtobufCMessage *msg)
{
	rpc->keepalive = msg;
	if (!rpc->is_done && rpc->req)
		arm_timer(rpc);
}

static int read_timeout(abx__rpc *rpc)
{
	const char *text = abx__http_req_header(rpc->req, "Connect-Timeout-Ms");

	/* Connect allows at most ten digits. */
	if (!text)
		return ABX_OK;
	if (abx__parse_u64(text, 0, 9999999999u, &rpc->timeout_ms) < 0)
		return ABX_EINVAL;
	rpc->timeout_ms = rpc->timeout_ms ? rpc->timeout_ms : 1;
	rpc->deadline_ms = uv_now(rpc->envd->loop) + rpc->timeout_ms;
	return ABX_OK;
}

/* Zero and negative values, which the reference stumbles over, count as not given. */
static void read_keepalive(abx__rpc *rpc)
{
	const char *text = abx__http_req_header(rpc->req, "Keepalive-Ping-Interval");
	uint64_t seconds;

	rpc->keepalive_ms = DEFAULT_KEEPALIVE_MS;
	if (text && abx__parse_u64(text, 1, 1000000, &seconds) == ABX_OK)
		rpc->keepalive_ms = seconds * 1000;
}

/* ---- answers ---- */

static int print_error(enum abx__connect_code code, const char *message, bool wrap,
		       abx__buf *buf)
{
	ABX_CLEANUP_JSON json_object *obj = json_object_new_object();
	int r;

	if (!obj || abx__json_set_str(obj, "code", abx__connect_code_name(code)) < 0 ||
	    (*message && abx__json_set_str(obj, "message", message) < 0))
		return ABX_ENOMEM;
	r = wrap ? abx__buf_adds(buf, "{\"error\":") : ABX_OK;
	if (r >= 0)
		r = abx__json_print(obj, buf);
	return r < 0 || !wrap ? r : abx__buf_addc(buf, '}');
}

void abx__rpc_refuse(abx__http_req *req, enum abx__connect_code code, const char *message)
{
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT;

	if (print_error(code, message, false, &body) < 0)
		abx__http_res_send(req, 500, NULL, NULL, 0);
	else
		abx__http_res_send(req, abx__connect_code_http(code), "application/json",
				   body.data, body.len);
}

static int begin_stream(abx__rpc *rpc)
{
	if (abx__http_res_begun(rpc->req))
		return ABX_OK;
	abx__http_res_header(rpc->req, "Content-Type",
			     rpc->is_json ? "application/connect+json"
					  : "application/connect+proto");
	return abx__http_res_begin(rpc->req, 200, -1);
}

/* Sends what is in `buf` and ends the stream. */
static void finish_stream(abx__rpc *rpc, const abx__buf *buf)
{
	rpc->is_done = true;
	if (begin_stream(rpc) < 0 ||
	    abx__http_res_write(rpc->req, buf->data, buf->len) < 0 ||
	    abx__http_res_end(rpc->req) < 0)
		abx__http_res_abort(rpc->req);
}

static void fail_call(abx__rpc *rpc, enum abx__connect_code code, const char *message)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;
	size_t mark = 0;
	int r;

	if (!is_stream(rpc)) {
		rpc->is_done = true;
		abx__rpc_refuse(rpc->req, code, message);
		return;
	}
	r = abx__connect_frame_open(&buf, ABX__CONNECT_END_STREAM, &mark);
	if (r >= 0)
		r = print_error(code, message, true, &buf);
	if (r < 0) {
		rpc->is_done = true;
		abx__http_res_abort(rpc->req);
		return;
	}
	abx__connect_frame_close(&buf, mark);
	finish_stream(rpc, &buf);
}

void abx__rpc_fail(abx__rpc *rpc, enum abx__connect_code code, const char *fmt, ...)
{
	ABX_CLEANUP_BUF abx__buf message = ABX__BUF_INIT;
	va_list ap;

	if (rpc->is_done || !rpc->req)
		return;
	va_start(ap, fmt);
	abx__buf_vaddf(&message, fmt, ap);
	va_end(ap);
	fail_call(rpc, code, abx__buf_str(&message));
}

void abx__rpc_fail_error(abx__rpc *rpc, const abx_error *err)
{
	abx__rpc_fail(rpc, abx__connect_code_from_error(abx_error_code(err)), "%s",
		      abx_error_message(err));
}

static int print_message(bool is_json, const ProtobufCMessage *msg, abx__buf *buf)
{
	return is_json ? abx__proto_json_print(msg, buf) : abx__proto_pack(msg, buf);
}

int abx__rpc_encode(bool is_json, const ProtobufCMessage *msg, abx__buf *buf)
{
	size_t mark;
	int r = abx__connect_frame_open(buf, 0, &mark);

	if (r >= 0)
		r = print_message(is_json, msg, buf);
	if (r >= 0)
		abx__connect_frame_close(buf, mark);
	return r;
}

void abx__rpc_reply(abx__rpc *rpc, const ProtobufCMessage *msg)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;

	if (rpc->is_done || !rpc->req)
		return;
	if (is_stream(rpc)) {
		abx__rpc_send_last(rpc, msg);
		return;
	}
	if (print_message(rpc->is_json, msg, &buf) < 0)
		fail_call(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED, "the answer is too big");
	else
		abx__rpc_reply_encoded(rpc, &buf);
}

void abx__rpc_reply_encoded(abx__rpc *rpc, const abx__buf *encoded)
{
	if (rpc->is_done || !rpc->req)
		return;
	rpc->is_done = true;
	abx__http_res_send(rpc->req, 200,
			   rpc->is_json ? "application/json" : "application/proto",
			   abx__buf_str(encoded), encoded->len);
}

void abx__rpc_send_encoded(abx__rpc *rpc, const void *encoded, size_t len)
{
	if (rpc->is_done || !rpc->req)
		return;
	rpc->sent_ms = uv_now(rpc->envd->loop);
	if (begin_stream(rpc) < 0 || abx__http_res_write(rpc->req, encoded, len) < 0) {
		rpc->is_done = true;
		abx__http_res_abort(rpc->req);
		return;
	}
	if (!rpc->timer)
		arm_timer(rpc);
}

void abx__rpc_send(abx__rpc *rpc, const ProtobufCMessage *msg)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;

	if (rpc->is_done || !rpc->req)
		return;
	if (abx__rpc_encode(rpc->is_json, msg, &buf) < 0)
		fail_call(rpc, ABX__CONNECT_INTERNAL, "out of memory");
	else
		abx__rpc_send_encoded(rpc, buf.data, buf.len);
}

static void send_end(abx__rpc *rpc, abx__buf *buf)
{
	if (abx__connect_frame_add(buf, ABX__CONNECT_END_STREAM, "{}", 2) < 0)
		fail_call(rpc, ABX__CONNECT_INTERNAL, "out of memory");
	else
		finish_stream(rpc, buf);
}

void abx__rpc_send_last(abx__rpc *rpc, const ProtobufCMessage *msg)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;

	if (rpc->is_done || !rpc->req)
		return;
	if (abx__rpc_encode(rpc->is_json, msg, &buf) < 0)
		fail_call(rpc, ABX__CONNECT_INTERNAL, "out of memory");
	else
		send_end(rpc, &buf);
}

/* ---- requests ---- */

static int parse_message(abx__rpc *rpc, const char *data, size_t len,
			 ProtobufCMessage **ret)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r;

	if (rpc->is_json)
		r = abx__proto_json_parse(rpc->method->input, data, len, max_bytes(rpc),
					  ret, &err);
	else
		r = abx__proto_unpack(rpc->method->input, data, len, ret, &err);
	if (r < 0)
		abx__rpc_fail(rpc,
			      r == ABX_EINVAL ? ABX__CONNECT_INVALID_ARGUMENT
					      : ABX__CONNECT_RESOURCE_EXHAUSTED,
			      "unmarshal message: %s", abx_error_message(err));
	return r;
}

static void call_handler(abx__rpc *rpc)
{
	abx__rpc_ref(rpc);
	rpc->method->handle(rpc);
	if (!rpc->is_done && rpc->req)
		arm_timer(rpc);
	abx__rpc_unref(rpc);
}

static int on_frame(void *userdata, unsigned flags, const char *data, size_t len)
{
	abx__rpc *rpc = userdata;
	ABX_CLEANUP(abx__proto_freep) ProtobufCMessage *msg = NULL;

	if (flags & ABX__CONNECT_END_STREAM)
		return ABX_OK; /* clients do not send it; harmless */
	if (flags & ABX__CONNECT_COMPRESSED) {
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL,
			      "protocol error: sent compressed message without "
			      "compression support");
		return ABX_EPROTO;
	}
	if (rpc->method->kind == ABX__RPC_SERVER_STREAM && rpc->in) {
		abx__rpc_fail(rpc, ABX__CONNECT_UNIMPLEMENTED,
			      "unary request has multiple messages");
		return ABX_EPROTO;
	}
	if (parse_message(rpc, data, len, &msg) < 0)
		return ABX_EPROTO;
	if (rpc->method->kind == ABX__RPC_SERVER_STREAM)
		rpc->in = abx_take(msg);
	else
		rpc->method->on_message(rpc, msg);
	return rpc->is_done ? ABX_EPROTO : ABX_OK;
}

static void on_stream_body(abx__http_req *req, const char *data, size_t len, int r,
			   void *userdata)
{
	abx__rpc *rpc = userdata;

	(void)req;
	if (rpc->is_done)
		return;
	abx__rpc_ref(rpc);
	if (r == ABX_OK && data)
		r = abx__connect_parser_feed(&rpc->parser, data, len, on_frame, rpc);
	else if (r == ABX_OK)
		r = abx__connect_parser_finish(&rpc->parser);
	if (r < 0)
		/* Says nothing when on_frame() has answered. */
		abx__rpc_fail(rpc,
			      r == ABX_ETOOBIG || r == ABX_ENOMEM
				      ? ABX__CONNECT_RESOURCE_EXHAUSTED
				      : ABX__CONNECT_INVALID_ARGUMENT,
			      r == ABX_ETOOBIG ? "message is larger than %zu bytes"
					       : "protocol error: incomplete envelope "
						 "(of at most %zu bytes)",
			      max_bytes(rpc));
	else if (!data && rpc->method->kind == ABX__RPC_CLIENT_STREAM)
		rpc->method->on_end(rpc);
	else if (!data && !rpc->in)
		abx__rpc_fail(rpc, ABX__CONNECT_UNIMPLEMENTED,
			      "unary request has zero messages");
	else if (!data)
		call_handler(rpc);
	abx__rpc_unref(rpc);
}

static void on_unary_body(abx__http_req *req, int r, const char *data, size_t len,
			  void *userdata)
{
	abx__rpc *rpc = userdata;

	(void)req;
	if (r == ABX_ETOOBIG)
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED,
			      "message is larger than %zu bytes", max_bytes(rpc));
	else if (r < 0)
		abx__rpc_fail(rpc, ABX__CONNECT_INVALID_ARGUMENT,
			      "the request body is broken");
	else if (parse_message(rpc, data, len, &rpc->in) == ABX_OK)
		call_handler(rpc);
}

/* "application/json; charset=utf-8" counts; any other parameter does not change what we
 * read. */
static bool type_is(const char *type, const char *want)
{
	size_t len = strlen(want);

	return type && strncasecmp(type, want, len) == 0 &&
	       (type[len] == '\0' || type[len] == ';' || type[len] == ' ');
}

static int read_codec(abx__rpc *rpc)
{
	const char *type = abx__http_req_header(rpc->req, "Content-Type");

	rpc->is_json = type_is(type, is_stream(rpc) ? "application/connect+json"
						    : "application/json");
	if (rpc->is_json || type_is(type, is_stream(rpc) ? "application/connect+proto"
							 : "application/proto"))
		return ABX_OK;
	return ABX_EUNSUPPORTED;
}

static const char *find_compression(const abx__rpc *rpc)
{
	const char *encoding =
		abx__http_req_header(rpc->req, is_stream(rpc) ? "Connect-Content-Encoding"
							      : "Content-Encoding");

	return encoding && *encoding && strcasecmp(encoding, "identity") != 0 ? encoding
									      : NULL;
}

static void start_call(abx__rpc *rpc)
{
	const char *compression = find_compression(rpc);

	if (compression) {
		abx__rpc_fail(
			rpc, ABX__CONNECT_UNIMPLEMENTED,
			"unknown compression \"%.32s\": supported encodings are identity",
			compression);
		return;
	}
	if (read_timeout(rpc) < 0) {
		abx__rpc_fail(rpc, ABX__CONNECT_INVALID_ARGUMENT,
			      "Connect-Timeout-Ms is not a number");
		return;
	}
	read_keepalive(rpc);
	rpc->parser.max_bytes = max_bytes(rpc);
	if (is_stream(rpc))
		abx__http_req_read(rpc->req, on_stream_body, rpc);
	else
		abx__http_req_read_all(rpc->req, max_bytes(rpc), on_unary_body, rpc);
}

void abx__rpc_accept(struct abx__envd *envd, abx__http_req *req,
		     const abx__rpc_method *method, const abx__user *user)
{
	abx__rpc *rpc;

	if (strcmp(abx__http_req_method(req), "POST") != 0) {
		abx__http_res_header(req, "Allow", "POST");
		abx__http_res_send(req, 405, NULL, NULL, 0);
		return;
	}
	rpc = abx__calloc(1, sizeof(*rpc));
	if (!rpc || abx__user_copy(&rpc->user, user) < 0) {
		abx__free(rpc);
		abx__rpc_refuse(req, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	rpc->envd = envd;
	rpc->req = req;
	rpc->method = method;
	rpc->refs = 1;
	rpc->sent_ms = uv_now(envd->loop);
	abx__http_req_on_closed(req, on_closed, rpc);
	if (read_codec(rpc) < 0) {
		rpc->is_done = true;
		abx__http_res_header(req, "Accept-Post", ACCEPT_POST);
		abx__http_res_send(req, 415, NULL, NULL, 0);
		return;
	}
	abx__rpc_ref(rpc);
	start_call(rpc);
	abx__rpc_unref(rpc);
}

/*
 * answer.c - plain HTTP answers. Running out of memory answers 500 without a body, never
 * nothing.
 */
#include "envd/answer.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "io/json.h"

static void answer_500(abx__http_req *req)
{
	abx__http_res_send(req, 500, NULL, NULL, 0);
}

void abx__answer_error(abx__http_req *req, int status, const char *fmt, ...)
{
	ABX_CLEANUP_BUF abx__buf message = ABX__BUF_INIT, body = ABX__BUF_INIT;
	ABX_CLEANUP_JSON json_object *obj = json_object_new_object();
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = abx__buf_vaddf(&message, fmt, ap);
	va_end(ap);
	if (r < 0 || !obj || abx__json_set_i64(obj, "code", status) < 0 ||
	    abx__json_set_str(obj, "message", abx__buf_str(&message)) < 0 ||
	    abx__json_print(obj, &body) < 0 || abx__buf_addc(&body, '\n') < 0 ||
	    abx__http_res_header(req, "X-Content-Type-Options", "nosniff") < 0) {
		answer_500(req);
		return;
	}
	abx__http_res_send(req, status, "application/json; charset=utf-8", body.data,
			   body.len);
}

void abx__answer_text(abx__http_req *req, int status, const char *fmt, ...)
{
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = abx__buf_vaddf(&body, fmt, ap);
	va_end(ap);
	if (r < 0 || abx__http_res_header(req, "X-Content-Type-Options", "nosniff") < 0) {
		answer_500(req);
		return;
	}
	abx__http_res_send(req, status, "text/plain; charset=utf-8", abx__buf_str(&body),
			   body.len);
}

void abx__answer_json_take(abx__http_req *req, int status, const char *content_type,
			   json_object *value)
{
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT;

	if (!value || abx__json_print(value, &body) < 0)
		answer_500(req);
	else
		abx__http_res_send(req, status, content_type, body.data, body.len);
	json_object_put(value);
}

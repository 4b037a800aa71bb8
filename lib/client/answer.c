/*
 * answer.c - error bodies of every surface become one error: code, message, hint.
 */
#include "client/answer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/connect-code.h"
#include "io/json.h"

#define MAX_RAW_TEXT 300

static const char *text_of(json_object *obj, const char *key)
{
	const char *value = NULL;

	return abx__json_get_str(obj, key, &value, NULL) > 0 ? value : NULL;
}

/* `detail` of the native API: a text, or an object that may have a hint and is shown as
 * it is otherwise. */
static void hint_of_detail(json_object *body, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	json_object *detail = NULL;
	const char *hint;

	if (!json_object_object_get_ex(body, "detail", &detail) || !detail)
		return;
	if (json_object_is_type(detail, json_type_string))
		hint = abx__json_str(detail);
	else
		hint = text_of(detail, "hint");
	if (!hint)
		hint = text = abx__json_text(detail, NULL);
	if (hint && *hint)
		abx__error_hint(reterr, "%s", hint);
}

/* A full disk of the platform's is 429 to E2B's clients, as every lack is. */
static bool is_full_disk(const abx_error *err)
{
	const char *message = abx_error_message(err);

	return strstr(message, ": full") || strstr(message, "No space left");
}

static void hint_exhausted(const char *after, abx_error **reterr)
{
	if (is_full_disk(*reterr))
		abx__error_hint(reterr, "free disk space where the platform keeps its "
					"state, or delete what is no longer needed");
	else if (after)
		abx__error_hint(reterr,
				"try again in %s seconds, or give the env more replicas",
				after);
	else
		abx__error_hint(reterr, "try again later, or give the env more replicas");
}

static void usual_hint(int code, abx_error **reterr)
{
	if (!reterr || !*reterr || abx_error_hint(*reterr))
		return;
	if (code == ABX_EUNAUTHENTICATED)
		abx__error_hint(reterr, "set AGENTBOX_API_KEY (or E2B_API_KEY) to a key "
					"of this platform");
	else if (code == ABX_EEXHAUSTED)
		hint_exhausted(NULL, reterr);
}

static int code_of(int status, json_object *body, const char *message)
{
	int code = abx__error_code_from_http(status);

	/* The gateway: a sandbox that is not there (any more) is 502 to E2B's clients. */
	if (status == 502 && message && strcasestr(message, "not found"))
		return ABX_ENOTFOUND;
	if (status == 409 && message && strcasestr(message, "exist"))
		return ABX_EEXISTS;
	if (status == 401 && body && json_object_object_get_ex(body, "code", NULL) &&
	    message && abx__str_starts(message, "error looking up user"))
		return ABX_EINVAL;
	return code;
}

static int raw_error(int status, const char *body, size_t len, abx_error **reterr)
{
	int code = abx__error_code_from_http(status);
	size_t end;

	while (len && strchr(" \r\n\t", body[len - 1]))
		len--;
	for (end = 0; end < len && end < MAX_RAW_TEXT && body[end] != '\n'; end++)
		;
	if (!end || !abx__utf8_is_valid(body, end))
		abx__error_http(reterr, code, status, "HTTP status %d", status);
	else
		abx__error_http(reterr, code, status, "HTTP status %d: %.*s", status,
				(int)end, body);
	usual_hint(code, reterr);
	return code;
}

int abx__answer_connect_error(json_object *error, int status, abx_error **reterr)
{
	enum abx__connect_code connect =
		abx__connect_code_from_name(text_of(error, "code"));
	const char *message = text_of(error, "message");
	int code = abx__connect_code_error(connect);

	/* An unknown user is a wrong option here, not a wrong credential. */
	if (code == ABX_EUNAUTHENTICATED && message &&
	    abx__str_starts(message, "invalid username"))
		code = ABX_EINVAL;
	if (!message || !*message)
		message = abx__connect_code_name(connect);
	abx__error_http(reterr, code, status, "%s", message);
	usual_hint(code, reterr);
	return code;
}

static int object_error(int status, json_object *body, abx_error **reterr)
{
	const char *message = text_of(body, "message");
	json_object *code_member = NULL;
	int code;

	json_object_object_get_ex(body, "code", &code_member);
	if (json_object_is_type(code_member, json_type_string))
		return abx__answer_connect_error(body, status, reterr);
	if (!message)
		message = text_of(body, "error");
	code = code_of(status, body, message);
	abx__error_http(reterr, code, status, "%s",
			message ? message : "no reason given");
	hint_of_detail(body, reterr);
	usual_hint(code, reterr);
	abx__error_detail(reterr, json_object_to_json_string_ext(
					  body, JSON_C_TO_STRING_PLAIN |
							JSON_C_TO_STRING_NOSLASHESCAPE));
	return code;
}

int abx__answer_error(int status, const char *body, size_t len, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *object = NULL;
	int r;

	if (status >= 200 && status < 300)
		return abx__error_http(reterr, ABX_EPROTO, status,
				       "unexpected HTTP status %d", status);
	r = len ? abx__json_parse_object(body, len, 0, &object, NULL) : ABX_EINVAL;
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0 || !object)
		return raw_error(status, body ? body : "", len, reterr);
	return object_error(status, object, reterr);
}

int abx__answer_failed(abx_op *op, int status, abx_error **reterr)
{
	int code = abx__answer_error(status, op->in.data, op->in.len, reterr);
	const char *after = abx__http_call_header(op->call, "Retry-After");

	if (code == ABX_EEXHAUSTED && after && reterr && *reterr)
		hint_exhausted(after, reterr);
	return code;
}

bool abx__answer_is_connect(abx_op *op, const char *code)
{
	ABX_CLEANUP_JSON json_object *object = NULL;

	if (abx__json_parse_object(abx__buf_str(&op->in), op->in.len, 0, &object, NULL) <
	    0)
		return false;
	return abx__str_eq(text_of(object, "code"), code);
}

int abx__answer_object(abx_op *op, json_object **ret, abx_error **reterr)
{
	int r = abx__json_parse_object(abx__buf_str(&op->in), op->in.len, 0, ret, reterr);

	if (r < 0 && r != ABX_ENOMEM)
		return abx__error_set(reterr, ABX_EPROTO,
				      "the answer is not a JSON object");
	return r;
}

int abx__answer_none(abx_op *op, int status, abx_error **reterr)
{
	if (status >= 200 && status < 300)
		return ABX_OK;
	return abx__answer_failed(op, status, reterr);
}

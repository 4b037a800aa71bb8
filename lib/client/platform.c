/*
 * platform.c - the native API as it is: a method, a path, JSON text in and out.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/request.h"
#include "io/json.h"

#define MAX_BODY ((size_t)4 << 20)
#define MAX_ANSWER ((size_t)64 << 20)

static int text_answer(abx_op *op, int status, abx_error **reterr)
{
	if (status < 200 || status >= 300)
		return abx__answer_failed(op, status, reterr);
	op->result_len = op->in.len;
	op->result = op->in.len ? abx__buf_take(&op->in) : abx__strdup("");
	return op->result ? ABX_OK : abx__error_nomem(reterr);
}

static bool is_method(const char *method)
{
	static const char *const methods[] = { "GET", "POST", "PUT", "DELETE" };

	for (size_t i = 0; method && i < sizeof(methods) / sizeof(methods[0]); i++)
		if (abx__str_eq(method, methods[i]))
			return true;
	return false;
}

static int check_request(const char *method, const char *path, const char *body,
			 abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *json = NULL;
	size_t len = body ? strlen(body) : 0;
	int r;

	if (!is_method(method))
		return abx__error_set(reterr, ABX_EINVAL,
				      "'%s' is none of GET, POST, PUT, DELETE",
				      method ? method : "");
	if (!path || path[0] != '/')
		return abx__error_set(reterr, ABX_EINVAL,
				      "path '%s' does not begin with '/'",
				      path ? path : "");
	for (const char *p = path; *p; p++)
		if (*p <= ' ' || *p == 0x7f || *p == '#')
			return abx__error_set(
				reterr, ABX_EINVAL,
				"path '%s' has a character that must be encoded", path);
	if (!body)
		return ABX_OK;
	r = abx__json_parse(body, len, MAX_BODY, &json, reterr);
	return r < 0 ? abx__error_prefix(reterr, "the body for %s", path) : ABX_OK;
}

static int start_request(abx_client *client, const char *method, const char *path,
			 const char *body, const abx__then *then, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_NATIVE,
			     .method = method,
			     .path = path,
			     .max_answer = MAX_ANSWER };
	abx_op *op = NULL;
	int r;

	if (!client)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_platform_request: client is NULL");
	if (path && abx__str_eq(path, "/clusters"))
		req.where = ABX__TO_CONSOLE; /* one level up: it needs no cluster */
	if ((r = check_request(method, path, body, reterr)) < 0 ||
	    (r = abx__op_new(client, then, &op, reterr, "%s %s", method, path)) < 0)
		return r;
	op->on_answer = text_answer;
	if (body) {
		op->out = abx__strdup(body);
		op->out_len = strlen(body);
		if (!op->out)
			return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	}
	return abx__request_send(op, &req, reterr);
}

int abx_platform_request(abx_client *client, const char *method, const char *path,
			 const char *body, char **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_TEXT, &wait);
	int r = start_request(client, method, path, body, &then, reterr);

	return abx__wait_text(client, &wait, r, ret, reterr);
}

int abx_platform_request_async(abx_client *client, const char *method, const char *path,
			       const char *body, abx_text_fn done, void *userdata,
			       abx_free_fn free_userdata, abx_op **ret_op,
			       abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_TEXT, text, done);

	return abx__then_end(&then,
			     start_request(client, method, path, body, &then, reterr));
}

int abx_platform_get(abx_client *client, const char *path, char **ret, abx_error **reterr)
{
	return abx_platform_request(client, "GET", path, NULL, ret, reterr);
}

int abx_platform_delete(abx_client *client, const char *path, char **ret,
			abx_error **reterr)
{
	return abx_platform_request(client, "DELETE", path, NULL, ret, reterr);
}

char *abx_platform_escape(const char *text)
{
	return text ? abx__url_encode(text) : NULL;
}

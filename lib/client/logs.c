/*
 * logs.c - the calls of <agentbox/logs.h>: /v2/sandboxes/ID/logs of the control API.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/options.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "client/strings.h"
#include "io/json.h"

#define MAX_ANSWER ((size_t)64 << 20)
#define MAX_LIMIT 1000
#define MAX_SEARCH 256

static const char *const levels[] = {
	[ABX_LOG_DEBUG] = "debug",
	[ABX_LOG_INFO] = "info",
	[ABX_LOG_WARN] = "warn",
	[ABX_LOG_ERROR] = "error",
};

struct abx_logs {
	abx_log_entry *items;
	size_t count;
	abx__strings strings;
};

size_t abx_logs_count(abx_logs *logs)
{
	return logs->count;
}

const abx_log_entry *abx_logs_at(abx_logs *logs, size_t index)
{
	return index < logs->count ? &logs->items[index] : NULL;
}

void abx_logs_free(abx_logs *logs)
{
	if (!logs)
		return;
	abx__strings_done(&logs->strings);
	abx__free(logs->items);
	abx__free(logs);
}

ABX_DEFINE_FREEP(logs_freep, abx_logs, abx_logs_free)

/* ---- the answer ---- */

static int level_of(json_object *obj)
{
	const char *name = NULL;

	abx__json_get_str(obj, "level", &name, NULL);
	for (int i = ABX_LOG_DEBUG; i <= ABX_LOG_ERROR; i++)
		if (abx__str_eq(name, levels[i]))
			return i;
	return ABX_LOG_INFO;
}

static int parse_one(abx__strings *strings, json_object *obj, abx_log_entry *entry)
{
	json_object *fields = NULL;
	const char *timestamp = NULL;
	int64_t us = 0;
	int r;

	if (!json_object_is_type(obj, json_type_object) ||
	    abx__json_get_str(obj, "timestamp", &timestamp, NULL) <= 0 ||
	    abx__rfc3339_parse(timestamp, &us) < 0)
		return ABX_EPROTO;
	entry->size = sizeof(*entry);
	entry->timestamp_ms = us / 1000;
	entry->level = level_of(obj);
	abx__json_get_object(obj, "fields", &fields, NULL);
	r = abx__strings_member(strings, obj, "message", "", &entry->message);
	if (r >= 0)
		r = abx__strings_pairs(strings, fields, &entry->fields);
	return r;
}

static int parse_all(json_object *obj, abx_logs **ret)
{
	ABX_CLEANUP(logs_freep) abx_logs *logs = abx__calloc(1, sizeof(*logs));
	json_object *array = NULL;
	size_t count;

	if (!logs)
		return ABX_ENOMEM;
	if (abx__json_get_array(obj, "logs", &array, NULL) <= 0)
		return ABX_EPROTO;
	count = json_object_array_length(array);
	logs->items = abx__calloc(count + 1, sizeof(*logs->items));
	if (!logs->items)
		return ABX_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int r = parse_one(&logs->strings, json_object_array_get_idx(array, i),
				  &logs->items[i]);

		if (r < 0)
			return r;
		logs->count++;
	}
	*ret = abx_take(logs);
	return ABX_OK;
}

static int logs_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	abx_logs *logs = NULL;
	int r;

	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = abx__json_parse_object(abx__buf_str(&op->in), op->in.len, MAX_ANSWER, &obj,
				   NULL);
	if (r >= 0)
		r = parse_all(obj, &logs);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0)
		return abx__error_set(reterr, ABX_EPROTO, "the answer is not a log");
	op->result = logs;
	return ABX_OK;
}

/* ---- the question ---- */

static int check(const abx_logs_options *opts, abx_error **reterr)
{
	if (opts->limit_count > MAX_LIMIT)
		return abx__error_set(reterr, ABX_EINVAL, "limit_count %u is over %d",
				      opts->limit_count, MAX_LIMIT);
	if (opts->cursor_ms < 0)
		return abx__error_set(reterr, ABX_EINVAL, "cursor_ms is before 1970");
	if (opts->level < ABX_LOG_DEBUG || opts->level > ABX_LOG_ERROR)
		return abx__error_set(reterr, ABX_EINVAL,
				      "level %d is not one of enum abx_log_level",
				      opts->level);
	if (opts->search && strlen(opts->search) > MAX_SEARCH)
		return abx__error_set(reterr, ABX_EINVAL, "search is over %d bytes",
				      MAX_SEARCH);
	return ABX_OK;
}

static char *make_path(const abx_sandbox *sandbox, const abx_logs_options *opts)
{
	ABX_CLEANUP_BUF abx__buf path = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *search = NULL;

	if (opts->search && !(search = abx__url_encode(opts->search)))
		return NULL;
	if (abx__buf_addf(&path, "/v2/sandboxes/%s/logs?direction=%s&limit=%u",
			  sandbox->id, opts->newest_first ? "backward" : "forward",
			  opts->limit_count ? opts->limit_count : MAX_LIMIT) < 0 ||
	    (opts->cursor_ms &&
	     abx__buf_addf(&path, "&cursor=%" PRId64, opts->cursor_ms) < 0) ||
	    (opts->level && abx__buf_addf(&path, "&level=%s", levels[opts->level]) < 0) ||
	    (search && abx__buf_addf(&path, "&search=%s", search) < 0))
		return NULL;
	return abx__buf_take(&path);
}

static int start_logs(abx_sandbox *sandbox, const abx_logs_options *user_opts,
		      const abx__then *then, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_E2B,
			     .method = "GET",
			     .max_answer = MAX_ANSWER };
	ABX_CLEANUP(abx__freep) char *path = NULL;
	abx_logs_options opts;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "read the log of a sandbox: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_logs_options",
				   reterr)) < 0 ||
	    (r = check(&opts, reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr,
			     "read the log of sandbox %s", sandbox->id)) < 0)
		return r;
	op->on_answer = logs_answer;
	path = make_path(sandbox, &opts);
	if (!path)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	req.path = path;
	return abx__request_send(op, &req, reterr);
}

int abx_sandbox_get_logs(abx_sandbox *sandbox, const abx_logs_options *opts,
			 abx_logs **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_LOGS, &wait);

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_get_logs: ret is NULL");
	return abx__wait_object(ABX__CLIENT_OF(sandbox), &then,
				start_logs(sandbox, opts, &then, reterr), ret, reterr);
}

int abx_sandbox_get_logs_async(abx_sandbox *sandbox, const abx_logs_options *opts,
			       abx_logs_fn done, void *userdata,
			       abx_free_fn free_userdata, abx_op **ret_op,
			       abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_LOGS, logs, done);

	return abx__then_end(&then, start_logs(sandbox, opts, &then, reterr));
}

/*
 * fork.c - more of a sandbox: a list of which each has a sandbox or an error.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/options.h"
#include "client/sandbox.h"
#include "io/json.h"

#define MAX_COUNT 100
#define MAX_ANSWER ((size_t)4 << 20)

struct abx_forks {
	abx_fork *items;
	size_t count;
};

size_t abx_forks_count(abx_forks *forks)
{
	return forks->count;
}

const abx_fork *abx_forks_at(abx_forks *forks, size_t index)
{
	return index < forks->count ? &forks->items[index] : NULL;
}

abx_sandbox *abx_forks_take(abx_forks *forks, size_t index)
{
	return index < forks->count ? abx_take(forks->items[index].sandbox) : NULL;
}

void abx_forks_free(abx_forks *forks)
{
	if (!forks)
		return;
	for (size_t i = 0; i < forks->count; i++) {
		abx_sandbox_free(forks->items[i].sandbox);
		abx_error_free((abx_error *)(uintptr_t)forks->items[i].err);
	}
	abx__free(forks->items);
	abx__free(forks);
}

ABX_DEFINE_FREEP(forks_freep, abx_forks, abx_forks_free)

/* Why one failed, as the whole call would have said it. */
static int parse_error(json_object *obj, abx_error **ret)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int64_t status = 0;
	size_t len = 0;

	if (abx__json_get_i64(obj, "code", 400, 599, &status, NULL) <= 0)
		return ABX_EPROTO;
	text = abx__json_text(obj, &len);
	if (!text)
		return ABX_ENOMEM;
	abx__answer_error((int)status, text, len, ret);
	return *ret ? ABX_OK : ABX_ENOMEM;
}

static int parse_one(abx_client *client, json_object *obj, abx_fork *ret)
{
	json_object *sandbox = NULL, *error = NULL;
	abx_error *err = NULL;
	int r;

	ret->size = sizeof(*ret);
	if (!json_object_is_type(obj, json_type_object))
		return ABX_EPROTO;
	if (abx__json_get_object(obj, "sandbox", &sandbox, NULL) > 0)
		return abx__sandbox_parse(client, sandbox, &ret->sandbox, NULL);
	if (abx__json_get_object(obj, "error", &error, NULL) <= 0)
		return ABX_EPROTO;
	r = parse_error(error, &err);
	ret->err = err;
	return r;
}

/* How many have a sandbox. */
static int parse_all(abx_client *client, json_object *array, abx_forks **ret)
{
	ABX_CLEANUP(forks_freep) abx_forks *forks = abx__calloc(1, sizeof(*forks));
	size_t count;
	int made = 0;

	if (!forks)
		return ABX_ENOMEM;
	if (!json_object_is_type(array, json_type_array))
		return ABX_EPROTO;
	count = json_object_array_length(array);
	forks->items = abx__calloc(count + 1, sizeof(*forks->items));
	if (!forks->items)
		return ABX_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int r;

		forks->count++;
		r = parse_one(client, json_object_array_get_idx(array, i),
			      &forks->items[i]);
		if (r < 0)
			return r;
		made += forks->items[i].sandbox != NULL;
	}
	*ret = abx_take(forks);
	return made;
}

static int fork_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *array = NULL;
	abx_forks *forks = NULL;
	int r;

	if (status != 200 && status != 201)
		return abx__answer_failed(op, status, reterr);
	r = abx__json_parse(abx__buf_str(&op->in), op->in.len, MAX_ANSWER, &array, NULL);
	if (r >= 0)
		r = parse_all(op->client, array, &forks);
	abx__wipe(op->in.data, op->in.len); /* tokens may be in it */
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0)
		return abx__error_set(reterr, ABX_EPROTO,
				      "the answer is not a list of forks");
	op->result = forks;
	return r;
}

static int start_fork(abx_sandbox *sandbox, const abx_fork_options *user_opts,
		      const abx__then *then, abx_error **reterr)
{
	abx_fork_options opts;
	json_object *body;
	int r;

	r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_fork_options", reterr);
	if (r < 0)
		return r;
	if (opts.count > MAX_COUNT)
		return abx__error_set(reterr, ABX_EINVAL, "fork: count %u is over %d",
				      opts.count, MAX_COUNT);
	body = json_object_new_object();
	if (!body || abx__json_set_i64(body, "count", opts.count ? opts.count : 1) < 0 ||
	    (opts.timeout_ms &&
	     abx__json_set_i64(body, "timeout", abx__seconds_up(opts.timeout_ms)) < 0)) {
		json_object_put(body);
		return abx__error_nomem(reterr);
	}
	return abx__sandbox_control(sandbox, then, "fork sandbox", "POST", "/fork", body,
				    fork_answer, reterr);
}

int abx_sandbox_fork(abx_sandbox *sandbox, const abx_fork_options *opts, abx_forks **ret,
		     abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_FORKS, &wait);

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_fork: ret is NULL");
	return abx__wait_object(ABX__CLIENT_OF(sandbox), &then,
				start_fork(sandbox, opts, &then, reterr), ret, reterr);
}

int abx_sandbox_fork_async(abx_sandbox *sandbox, const abx_fork_options *opts,
			   abx_forks_fn done, void *userdata, abx_free_fn free_userdata,
			   abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_FORKS, forks, done);

	return abx__then_end(&then, start_fork(sandbox, opts, &then, reterr));
}

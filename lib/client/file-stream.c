/*
 * file-stream.c - contents of files over envd's /files: whole or piece by piece, at
 * constant memory.
 *
 * Contents have no deadline for the whole; they end when nothing moved for the request
 * timeout.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/file-gzip.h"
#include "client/file-info.h"
#include "client/options.h"
#include "client/request.h"
#include "client/sandbox.h"

#define DEFAULT_MAX_BYTES ((size_t)256 << 20)
#define MAX_REFUSAL ((size_t)64 << 10)
#define BULK_FROM ((size_t)256 << 10)

/* One transfer; the operation owns it. */
struct transfer {
	abx_op *op;
	abx_sink_fn sink; /* NULL: collected into op->in */
	abx_source_fn source;
	void *userdata;
	int64_t left; /* of a source with a known length; -1: not known */
	bool may_pause;
	bool is_part; /* of a file: behind its end there is nothing */
	bool is_too_long, is_too_short;
	size_t max_bytes;
	const char *data; /* of a write: not yet packed */
	size_t data_len;
	abx__gzip *gzip;
	abx__buf refusal; /* the body of an answer that is no success */
};

static void free_transfer(void *state)
{
	struct transfer *transfer = state;

	abx__gzip_free(transfer->gzip);
	abx__buf_done(&transfer->refusal);
	abx__free(transfer);
}

static bool is_success(const struct transfer *transfer, int status)
{
	return status == (transfer->is_part ? 206 : 200);
}

static int on_data(void *userdata, const char *data, size_t len)
{
	struct transfer *transfer = userdata;
	abx_op *op = transfer->op;
	int r;

	if (!is_success(transfer, abx__http_call_status(op->call)))
		return abx__buf_add(&transfer->refusal, data, len);
	if (!transfer->sink)
		return abx__buf_add(&op->in, data, len);
	r = transfer->sink(transfer->userdata, data, len);
	abx__client_happened(op->client);
	return r == ABX_PAUSE && !transfer->may_pause ? ABX_EINVAL : r;
}

static int read_source(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	struct transfer *transfer = userdata;
	int r;

	r = transfer->source(transfer->userdata, buf, size, ret_len);
	if (r == ABX_PAUSE)
		return transfer->may_pause ? r : ABX_EINVAL;
	if (r < 0 || transfer->left < 0)
		return r;
	if (*ret_len > (uint64_t)transfer->left)
		transfer->is_too_long = true;
	else if (*ret_len == 0 && transfer->left > 0)
		transfer->is_too_short = true;
	else
		transfer->left -= (int64_t)*ret_len;
	return transfer->is_too_long || transfer->is_too_short ? ABX_EINVAL : r;
}

/* The bytes of a whole write, for packing. */
static int read_data(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	struct transfer *transfer = userdata;

	*ret_len = transfer->data_len < size ? transfer->data_len : size;
	if (*ret_len)
		memcpy(buf, transfer->data, *ret_len);
	transfer->data += *ret_len;
	transfer->data_len -= *ret_len;
	return ABX_OK;
}

static int read_packed(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	struct transfer *transfer = userdata;

	return abx__gzip_read(transfer->gzip, buf, size, ret_len);
}

static int explain(struct transfer *transfer, int r, const abx_error *http_err,
		   abx_error **reterr)
{
	if (transfer->is_too_long || transfer->is_too_short)
		return abx__error_set(reterr, ABX_EINVAL,
				      "the source gave %s bytes than content_length",
				      transfer->is_too_long ? "more" : "fewer");
	if (r == ABX_ETOOBIG && !transfer->sink) {
		abx__error_set(reterr, r, "it is over %zu bytes", transfer->max_bytes);
		abx__error_hint(reterr, "raise max_bytes, or use abx_file_read_stream()");
		return r;
	}
	*reterr = abx__error_copy(http_err);
	return r;
}

static void on_done(void *userdata, int r, const abx_error *http_err)
{
	struct transfer *transfer = userdata;
	abx_op *op = transfer->op;
	int status = abx__http_call_status(op->call);
	abx_error *err = NULL;

	op->call = NULL;
	if (r < 0) {
		r = explain(transfer, r, http_err, &err);
	} else if (!is_success(transfer, status) &&
		   !(status == 416 && transfer->is_part)) {
		r = abx__answer_error(status, transfer->refusal.data,
				      transfer->refusal.len, &err);
	} else if (op->then.kind == ABX__OP_DATA) {
		op->result_len = op->in.len;
		op->result = abx__buf_take(&op->in);
		if (!op->result)
			r = abx__error_nomem(&err);
	}
	abx__op_finish(op, r, err);
}

static char *files_path(const char *path, const char *user)
{
	ABX_CLEANUP(abx__freep) char *coded = abx__url_encode(path);
	ABX_CLEANUP(abx__freep) char *user_coded = user ? abx__url_encode(user) : NULL;

	if (!coded || (user && !user_coded))
		return NULL;
	return abx__strf("/files?path=%s%s%s", coded, user ? "&username=" : "",
			 user ? user_coded : "");
}

static uint32_t idle_seconds(const abx_client *client, const abx_file_options *opts)
{
	uint32_t ms = opts->request_timeout_ms ? opts->request_timeout_ms
					       : client->settings.request_timeout_ms;

	if (ms == ABX_NO_TIMEOUT || ms == 0)
		return 0;
	return ms / 1000 + (ms % 1000 != 0);
}

/* Headers a transfer adds; the texts are owned. */
struct extras {
	char *texts[ABX__MAX_METADATA + 3];
	size_t count;
};

static void extras_done(struct extras *extras)
{
	for (size_t i = 0; i < extras->count; i++)
		abx__free(extras->texts[i]);
}

static int add_extra(struct extras *extras, char *text)
{
	if (!text)
		return ABX_ENOMEM;
	extras->texts[extras->count++] = text;
	return ABX_OK;
}

static int add_metadata(struct extras *extras, const char *const *pairs)
{
	int r = ABX_OK;

	for (size_t i = 0; r >= 0 && pairs && pairs[i]; i++) {
		const char *equals = strchr(pairs[i], '=');
		int key_len = (int)(equals - pairs[i]);

		/* curl sends a header without a value when it ends so. */
		r = add_extra(extras, equals[1] ? abx__strf("X-Metadata-%.*s: %s",
							    key_len, pairs[i], equals + 1)
						: abx__strf("X-Metadata-%.*s;", key_len,
							    pairs[i]));
	}
	return r;
}

static int add_range(struct extras *extras, const abx_file_options *opts)
{
	if (!opts->offset_bytes && !opts->length_bytes)
		return ABX_OK;
	if (!opts->length_bytes)
		return add_extra(extras, abx__strf("Range: bytes=%" PRId64 "-",
						   opts->offset_bytes));
	return add_extra(extras, abx__strf("Range: bytes=%" PRId64 "-%" PRId64,
					   opts->offset_bytes,
					   opts->offset_bytes + opts->length_bytes - 1));
}

static int make_extras(struct extras *extras, const abx_file_options *opts, bool is_write)
{
	int r = add_range(extras, opts);

	if (r >= 0)
		r = add_metadata(extras, opts->metadata);
	if (r >= 0 && is_write && opts->gzip)
		r = add_extra(extras, abx__strdup("Content-Encoding: gzip"));
	return r;
}

/* Where the body of a write comes from. */
static int set_body(struct transfer *transfer, const abx_file_options *opts,
		    const char *data, size_t len, abx__http_call_options *http)
{
	if (!opts->gzip) {
		http->body = transfer->source ? NULL : (len ? data : "");
		http->body_len = len;
		http->read = transfer->source ? read_source : NULL;
		http->read_length = transfer->left;
		return ABX_OK;
	}
	transfer->data = data;
	transfer->data_len = len;
	transfer->gzip =
		abx__gzip_new(transfer->source ? read_source : read_data, transfer);
	if (!transfer->gzip)
		return ABX_ENOMEM;
	http->read = read_packed;
	http->read_length = -1;
	return ABX_OK;
}

static int send_transfer(struct transfer *transfer, abx_sandbox *sandbox,
			 const char *path, const abx_file_options *opts, const char *data,
			 size_t len, bool is_write, abx_error **reterr)
{
	ABX_CLEANUP(abx__prepared_done) abx__prepared prepared = { 0 };
	ABX_CLEANUP(extras_done) struct extras extras = { 0 };
	ABX_CLEANUP(abx__freep) char *target = files_path(path, opts->user);
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .method = is_write ? "POST" : "GET",
			     .path = target,
			     .sandbox = sandbox,
			     .timeout_ms = ABX_NO_TIMEOUT,
			     .content_type = "application/octet-stream",
			     .headers = (const char *const *)extras.texts };
	abx__http_call_options http = { .on_data = on_data,
					.on_done = on_done,
					.userdata = transfer };
	abx_client *client = sandbox->client;
	int r;

	if (!target || make_extras(&extras, opts, is_write) < 0)
		return abx__error_nomem(reterr);
	r = abx__request_prepare(client, &req, &prepared, reterr);
	if (r < 0)
		return r;
	abx__request_apply(client, &req, &prepared, &http);
	http.idle_timeout_s = idle_seconds(client, opts);
	http.is_bulk = transfer->sink || transfer->source || len >= BULK_FROM;
	http.takes_gzip = !is_write && opts->gzip;
	if (is_write && set_body(transfer, opts, data, len, &http) < 0)
		return abx__error_nomem(reterr);
	return abx__http_call_start(client->http, &http, &transfer->op->call, reterr);
}

/* What the four kinds of transfer have in common. */
struct plan {
	const char *what;
	const char *path;
	bool is_write;
	abx_sink_fn sink;
	abx_source_fn source;
	void *userdata;
	const char *data;
	size_t len;
};

static int check_plan(const struct plan *plan, abx_error **reterr)
{
	if (!plan->path || !*plan->path ||
	    !abx__utf8_is_valid(plan->path, strlen(plan->path)))
		return abx__error_set(reterr, ABX_EINVAL, "%s a file: the path is %s",
				      plan->what,
				      plan->path && *plan->path ? "not UTF-8" : "empty");
	if (plan->len && !plan->data)
		return abx__error_set(reterr, ABX_EINVAL, "%s %s: data is NULL",
				      plan->what, plan->path);
	return ABX_OK;
}

/* A pair that can be a header: what envd would refuse is refused here, by its number. */
static int check_pair(const char *pair, size_t index, abx_error **reterr)
{
	const char *equals = strchr(pair, '=');

	if (!equals || equals == pair)
		return abx__error_set(reterr, ABX_EINVAL,
				      "metadata: entry %zu is not KEY=VALUE", index);
	for (const char *p = pair; *p; p++)
		if (*p < 0x20 || *p > 0x7e ||
		    (p < equals && strchr("()<>@,;:\\\"/[]?{} ", *p)))
			return abx__error_set(reterr, ABX_EINVAL,
					      "metadata: entry %zu has a byte that "
					      "cannot be kept",
					      index);
	return ABX_OK;
}

static int check_options(const struct plan *plan, const abx_file_options *opts,
			 abx_error **reterr)
{
	unsigned known =
		ABX__FILE_GZIP | (plan->is_write ? ABX__FILE_METADATA : ABX__FILE_RANGE);
	int r = abx__file_check_options(plan->what, opts, known, reterr);
	size_t i;

	if (r >= 0 && (opts->offset_bytes < 0 || opts->length_bytes < 0 ||
		       opts->length_bytes > INT64_MAX - opts->offset_bytes))
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s %s: the range is not one of a file", plan->what,
				      plan->path);
	for (i = 0; r >= 0 && opts->metadata && opts->metadata[i]; i++)
		r = i < ABX__MAX_METADATA
			    ? check_pair(opts->metadata[i], i, reterr)
			    : abx__error_set(reterr, ABX_EINVAL, "metadata: over %d keys",
					     ABX__MAX_METADATA);
	return r;
}

static struct transfer *new_transfer(abx_op *op, const struct plan *plan,
				     const abx_file_options *opts)
{
	struct transfer *transfer = abx__calloc(1, sizeof(*transfer));

	if (!transfer)
		return NULL;
	transfer->op = op;
	transfer->sink = plan->sink;
	transfer->source = plan->source;
	transfer->userdata = plan->userdata;
	transfer->left = opts->content_length > 0 ? opts->content_length : -1;
	transfer->may_pause = !op->then.wait;
	transfer->is_part = opts->offset_bytes || opts->length_bytes;
	transfer->refusal.cap = MAX_REFUSAL;
	transfer->max_bytes = opts->max_bytes ? opts->max_bytes : DEFAULT_MAX_BYTES;
	op->in.cap = transfer->max_bytes;
	op->state = transfer;
	op->free_state = free_transfer;
	return transfer;
}

static int start(abx_sandbox *sandbox, const struct plan *plan,
		 const abx_file_options *user_opts, const abx__then *then,
		 abx_error **reterr)
{
	struct transfer *transfer;
	abx_file_options opts;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s a file: the sandbox is NULL", plan->what);
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_file_options",
				   reterr)) < 0 ||
	    (r = check_plan(plan, reterr)) < 0 ||
	    (r = check_options(plan, &opts, reterr)) < 0 ||
	    (r = abx__op_new(sandbox->client, then, &op, reterr, "%s %s in sandbox %s",
			     plan->what, plan->path, sandbox->id)) < 0)
		return r;
	transfer = new_transfer(op, plan, &opts);
	if (!transfer)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	r = send_transfer(transfer, sandbox, plan->path, &opts, plan->data, plan->len,
			  plan->is_write, reterr);
	return r < 0 ? abx__op_abandon(op, r, reterr) : abx__op_started(op);
}

/* ---- the calls ---- */

int abx_file_read(abx_sandbox *sandbox, const char *path, const abx_file_options *opts,
		  char **ret, size_t *ret_len, abx_error **reterr)
{
	const struct plan plan = { .what = "read", .path = path };
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DATA, &wait);
	int r;

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL, "abx_file_read: ret is NULL");
	r = start(sandbox, &plan, opts, &then, reterr);
	if (r < 0)
		return r;
	r = abx__wait_end(sandbox->client, &wait, r, reterr);
	if (r < 0)
		return r;
	*ret = wait.result;
	if (ret_len)
		*ret_len = wait.len;
	return r;
}

int abx_file_read_async(abx_sandbox *sandbox, const char *path,
			const abx_file_options *opts, abx_file_data_fn done,
			void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			abx_error **reterr)
{
	const struct plan plan = { .what = "read", .path = path };
	abx__then then = ABX__THEN(ABX__OP_DATA, data, done);

	return abx__then_end(&then, start(sandbox, &plan, opts, &then, reterr));
}

int abx_file_write(abx_sandbox *sandbox, const char *path, const char *data, size_t len,
		   const abx_file_options *opts, abx_error **reterr)
{
	const struct plan plan = {
		.what = "write", .path = path, .is_write = true, .data = data, .len = len
	};
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start(sandbox, &plan, opts, &then, reterr);

	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_file_write_async(abx_sandbox *sandbox, const char *path, const char *data,
			 size_t len, const abx_file_options *opts, abx_done_fn done,
			 void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			 abx_error **reterr)
{
	const struct plan plan = {
		.what = "write", .path = path, .is_write = true, .data = data, .len = len
	};
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start(sandbox, &plan, opts, &then, reterr));
}

int abx_file_read_stream(abx_sandbox *sandbox, const char *path,
			 const abx_file_options *opts, abx_sink_fn sink,
			 void *sink_userdata, abx_error **reterr)
{
	const struct plan plan = {
		.what = "read", .path = path, .sink = sink, .userdata = sink_userdata
	};
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r;

	if (!sink)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_file_read_stream: sink is NULL");
	r = start(sandbox, &plan, opts, &then, reterr);
	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_file_read_stream_async(abx_sandbox *sandbox, const char *path,
			       const abx_file_options *opts, abx_sink_fn sink,
			       void *sink_userdata, abx_done_fn done, void *userdata,
			       abx_free_fn free_userdata, abx_op **ret_op,
			       abx_error **reterr)
{
	const struct plan plan = {
		.what = "read", .path = path, .sink = sink, .userdata = sink_userdata
	};
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);
	int r;

	r = sink ? start(sandbox, &plan, opts, &then, reterr)
		 : abx__error_set(reterr, ABX_EINVAL,
				  "abx_file_read_stream_async: sink is NULL");
	return abx__then_end(&then, r);
}

int abx_file_write_stream(abx_sandbox *sandbox, const char *path,
			  const abx_file_options *opts, abx_source_fn source,
			  void *source_userdata, abx_error **reterr)
{
	const struct plan plan = { .what = "write",
				   .path = path,
				   .is_write = true,
				   .source = source,
				   .userdata = source_userdata };
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r;

	if (!source)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_file_write_stream: source is NULL");
	r = start(sandbox, &plan, opts, &then, reterr);
	return r < 0 ? r : abx__wait_end(sandbox->client, &wait, r, reterr);
}

int abx_file_write_stream_async(abx_sandbox *sandbox, const char *path,
				const abx_file_options *opts, abx_source_fn source,
				void *source_userdata, abx_done_fn done, void *userdata,
				abx_free_fn free_userdata, abx_op **ret_op,
				abx_error **reterr)
{
	const struct plan plan = { .what = "write",
				   .path = path,
				   .is_write = true,
				   .source = source,
				   .userdata = source_userdata };
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);
	int r;

	r = source ? start(sandbox, &plan, opts, &then, reterr)
		   : abx__error_set(reterr, ABX_EINVAL,
				    "abx_file_write_stream_async: source is NULL");
	return abx__then_end(&then, r);
}

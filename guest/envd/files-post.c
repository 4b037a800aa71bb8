/*
 * files-post.c - POST /files: the ferry between the connection and the worker that
 * writes.
 *
 * Two buffers take turns: the loop fills one while the worker empties the other; when
 * both are full the connection is not read. A small body that came whole is written
 * without a worker.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/encoding.h"
#include "envd/envd.h"
#include "envd/files.h"
#include "envd/metadata.h"
#include "envd/path.h"
#include "envd/upload.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define SMALL_BYTES ((size_t)64 << 10)
#define SMALL_GZIP_BYTES ((size_t)512)

struct post {
	abx__http_req *req; /* NULL once the exchange is over */
	uv_work_t work;
	abx__upload upload;
	abx__buf filling, writing;
	bool is_working;
	bool is_paused;
	bool is_last; /* the piece being written is the body's last: the worker's to read
		       */
	bool has_ended;   /* the body came to its end */
	bool is_finished; /* answered, or broken: nothing more is taken */
	bool is_broken;   /* the body did not */
};

static void free_post(struct post *post)
{
	abx__upload_done(&post->upload);
	abx__buf_done(&post->filling);
	abx__buf_done(&post->writing);
	abx__free(post);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct post *post = userdata;

	(void)req;
	(void)answered;
	post->req = NULL;
	if (!post->is_working)
		free_post(post);
}

static void answer(struct post *post)
{
	post->is_finished = true;
	if (post->upload.status)
		abx__answer_error(post->req, post->upload.status, "%s",
				  abx_error_message(post->upload.err));
	else
		/* The reference sets no JSON type, and clients do not ask for one. */
		abx__answer_json_take(post->req, 200, "text/plain; charset=utf-8",
				      abx__upload_answer(&post->upload));
}

static void write_out(struct post *post)
{
	if (post->writing.len)
		abx__upload_feed(&post->upload, post->writing.data, post->writing.len);
	abx__buf_clear(&post->writing);
	if (post->is_last)
		abx__upload_finish(&post->upload);
}

static void run_write(uv_work_t *work)
{
	write_out(work->data);
}

static void after_write(uv_work_t *work, int status);

/* Hands what was filled to the worker; the last piece together with the end. */
static void start_write(struct post *post)
{
	abx__buf swap = post->writing;

	post->writing = post->filling;
	post->filling = swap;
	post->is_last = post->has_ended;
	post->is_working = true;
	uv_queue_work(abx__http_req_loop(post->req), &post->work, run_write, after_write);
}

static void after_write(uv_work_t *work, int status)
{
	struct post *post = work->data;

	(void)status;
	post->is_working = false;
	if (!post->req) {
		free_post(post);
		return;
	}
	if (post->is_broken)
		return; /* answered already; on_closed() frees */
	if (post->upload.status || post->is_last) {
		answer(post);
		return;
	}
	if (post->filling.len >= SMALL_BYTES || post->has_ended)
		start_write(post);
	if (post->is_paused) {
		post->is_paused = false;
		abx__http_req_resume(post->req);
	}
}

static void on_body_end(struct post *post)
{
	/* A packed body may be far longer than it looks. */
	bool is_small = post->filling.len <=
				(post->upload.gunzip ? SMALL_GZIP_BYTES : SMALL_BYTES) &&
			!post->upload.is_saving && post->upload.count == 0;

	post->has_ended = true;
	if (post->is_working)
		return;
	if (!is_small) {
		start_write(post);
		return;
	}
	post->writing = post->filling;
	post->filling = (abx__buf){ 0 };
	post->is_last = true;
	write_out(post);
	answer(post);
}

static void on_body_broken(struct post *post, int r)
{
	post->is_broken = true;
	post->is_finished = true;
	if (r == ABX_EPROTO)
		abx__answer_error(post->req, 400, "the request body is broken");
}

static void on_body(abx__http_req *req, const char *data, size_t len, int r,
		    void *userdata)
{
	struct post *post = userdata;

	if (post->is_finished)
		return;
	if (r == ABX_OK && data)
		r = abx__buf_add(&post->filling, data, len);
	else if (r == ABX_OK)
		on_body_end(post);
	if (r == ABX_ENOMEM) {
		post->is_broken = true;
		post->is_finished = true;
		abx__answer_error(req, 500, "out of memory");
		return;
	}
	if (r < 0) {
		on_body_broken(post, r);
		return;
	}
	if (!data || post->filling.len < BUFFER_BYTES)
		return;
	if (!post->is_working) {
		start_write(post);
	} else {
		post->is_paused = true;
		abx__http_req_pause(req);
	}
}

/* ---- the request's head ---- */

static bool type_is(const char *type, const char *want)
{
	size_t len = strlen(want);

	return type && strncasecmp(type, want, len) == 0 &&
	       (type[len] == '\0' || strchr("; \t", type[len]));
}

/* Answers 400 for a coding we cannot undo. */
static bool read_encoding(abx__http_req *req, bool *ret_is_gzip)
{
	const char *header = abx__http_req_header(req, "Content-Encoding");
	enum abx__encoding encoding = abx__encoding_of_body(header);

	*ret_is_gzip = encoding == ABX__ENCODING_GZIP;
	if (encoding != ABX__ENCODING_NONE)
		return true;
	abx__answer_error(req, 400,
			  "error decompressing request body: unsupported "
			  "Content-Encoding: %.64s, supported: [gzip]",
			  header);
	return false;
}

static bool read_metadata(abx__http_req *req, abx__map *metadata)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const char *name, *value;
	int r = ABX_OK;

	for (size_t i = 0; r >= 0 && abx__http_req_header_at(req, i, &name, &value); i++)
		r = abx__metadata_add_header(metadata, name, value, &err);
	if (r >= 0)
		r = abx__metadata_check(metadata, &err);
	if (r < 0)
		abx__answer_error(req, r == ABX_EINVAL ? 400 : 500, "%s",
				  abx_error_message(err));
	return r >= 0;
}

static bool check_type(abx__http_req *req, const char *type, const char *given)
{
	if (type_is(type, "multipart/form-data"))
		return true;
	if (!type_is(type, "application/octet-stream"))
		abx__answer_error(req, 400, "unsupported content type: %.128s",
				  type ? type : "");
	else if (!given || !*given)
		abx__answer_error(req, 400,
				  "path query parameter is required for raw body upload");
	else
		return true;
	return false;
}

/* How to read a body: from the head. */
struct body_kind {
	const char *type;
	bool is_gzip;
};

/* Takes `user`, `path` and `metadata` over. */
static void start(abx__http_req *req, abx__user *user, const char *workdir, char *path,
		  abx__map *metadata, const struct body_kind *kind)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct post *post = abx__calloc(1, sizeof(*post));

	if (!post) {
		abx__free(path);
		abx__answer_error(req, 500, "out of memory");
		return;
	}
	if (abx__upload_init(&post->upload, user, workdir, path,
			     type_is(kind->type, "multipart/form-data") ? kind->type
									: NULL,
			     abx__http_req_content_length(req), &err) < 0) {
		abx__answer_error(req, abx_error_code(err) == ABX_EINVAL ? 400 : 500,
				  "%s", abx_error_message(err));
		free_post(post);
		return;
	}
	if (kind->is_gzip) {
		post->upload.gunzip = abx__gunzip_new();
		if (!post->upload.gunzip) {
			abx__answer_error(req, 500, "out of memory");
			free_post(post);
			return;
		}
	}
	post->upload.metadata = *metadata;
	*metadata = (abx__map){ 0 };
	post->req = req;
	post->work.data = post;
	abx__http_req_on_closed(req, on_closed, post);
	abx__http_req_read(req, on_body, post);
}

void abx__files_handle_post(struct abx__envd *envd, abx__http_req *req)
{
	ABX_CLEANUP(abx__signing_done) abx__signing query = { 0 };
	ABX_CLEANUP(abx__user_done) abx__user user = { 0 };
	ABX_CLEANUP(abx__map_done) abx__map metadata = ABX__MAP_INIT;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct body_kind kind = { .type = abx__http_req_header(req, "Content-Type") };
	const char *name;
	char *path = NULL;

	if (!abx__files_authorize(envd, req, ABX__SIGNING_WRITE, &query))
		return;
	name = abx__files_username(envd, req, query.username);
	if (!name || !read_encoding(req, &kind.is_gzip) ||
	    !abx__files_find_user(envd, req, name, &user) ||
	    !read_metadata(req, &metadata) || !check_type(req, kind.type, query.path))
		return;
	if (query.path && *query.path &&
	    abx__path_resolve(query.path, &user, envd->default_workdir, &path, &err) <
		    0) {
		abx__answer_error(req, 400, "%s", abx_error_message(err));
		return;
	}
	start(req, &user, envd->default_workdir, path, &metadata, &kind);
}

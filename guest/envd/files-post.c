/*
 * files-post.c - POST /files: what is to be written, and how its body is to be read. The
 * ferry does the rest.
 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/encoding.h"
#include "envd/envd.h"
#include "envd/ferry.h"
#include "envd/files.h"
#include "envd/metadata.h"
#include "envd/path.h"
#include "envd/upload.h"

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
	abx__upload *upload = abx__calloc(1, sizeof(*upload));
	int r;

	if (!upload) {
		abx__free(path);
		abx__answer_error(req, 500, "out of memory");
		return;
	}
	r = abx__upload_init(upload, user, workdir, path,
			     type_is(kind->type, "multipart/form-data") ? kind->type
									: NULL,
			     abx__http_req_content_length(req), &err);
	if (r == ABX_OK && kind->is_gzip) {
		upload->gunzip = abx__gunzip_new();
		r = upload->gunzip ? ABX_OK : abx__error_nomem(&err);
	}
	if (r < 0) {
		abx__answer_error(req, r == ABX_EINVAL ? 400 : 500, "%s",
				  abx_error_message(err));
		abx__upload_done(upload);
		abx__free(upload);
		return;
	}
	upload->metadata = *metadata;
	*metadata = (abx__map){ 0 };
	abx__ferry_start(req, upload);
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

/*
 * upload.c - parts to files.
 */
#include "envd/upload.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/metadata.h"
#include "envd/path.h"
#include "io/json.h"

/* Read out of a tube at once. */
#define PIECE_BYTES ((size_t)128 << 10)

static int fail(abx__upload *upload, int status)
{
	if (!upload->status)
		upload->status = status;
	return ABX_EFAIL;
}

static int status_of(int r)
{
	switch (r) {
	case ABX_EINVAL:
	case ABX_EEXISTS:
		return 400;
	case ABX_EEXHAUSTED:
		return 507;
	default:
		return 500;
	}
}

static int fail_save(abx__upload *upload, int r)
{
	if (r == ABX_EEXHAUSTED && upload->length >= 0)
		abx__error_prefix(&upload->err, "attempted to write %lld bytes",
				  (long long)upload->length);
	return fail(upload, status_of(r));
}

static int remember_path(abx__upload *upload, char *path)
{
	char **paths;

	for (size_t i = 0; i < upload->count; i++)
		if (strcmp(upload->paths[i], path) == 0) {
			abx__error_set(&upload->err, ABX_EINVAL,
				       "you cannot upload multiple files to the same "
				       "path '%s' in one "
				       "upload request",
				       path);
			abx__free(path);
			return fail(upload, 400);
		}
	if (upload->count >= ABX__UPLOAD_MAX_FILES) {
		abx__error_set(&upload->err, ABX_ETOOBIG,
			       "more than %d files in one upload request",
			       ABX__UPLOAD_MAX_FILES);
		abx__free(path);
		return fail(upload, 400);
	}
	paths = abx__reallocarray(upload->paths, upload->count + 1, sizeof(*paths));
	if (!paths) {
		abx__free(path);
		abx__error_nomem(&upload->err);
		return fail(upload, 500);
	}
	upload->paths = paths;
	upload->paths[upload->count++] = path;
	return ABX_OK;
}

/* Takes `path` over. */
static int begin_file(abx__upload *upload, char *path)
{
	int r = remember_path(upload, path);

	if (r < 0)
		return r;
	upload->is_saving = true;
	r = abx__save_open(&upload->save, path, upload->user.uid, upload->user.gid,
			   &upload->err);
	upload->save.metadata = &upload->metadata;
	return r < 0 ? fail_save(upload, r) : ABX_OK;
}

static int end_file(abx__upload *upload)
{
	int r = abx__save_commit(&upload->save, &upload->err);

	abx__save_done(&upload->save);
	upload->is_saving = false;
	return r < 0 ? fail_save(upload, r) : ABX_OK;
}

static int write_file(abx__upload *upload, const char *data, size_t len)
{
	int r = abx__save_write(&upload->save, data, len, &upload->err);

	return r < 0 ? fail_save(upload, r) : ABX_OK;
}

/* ---- parts; those of another name than "file" are skipped ---- */

static int on_begin(void *userdata, const char *name, const char *filename)
{
	abx__upload *upload = userdata;
	char *path = NULL;

	if (!name || strcmp(name, "file") != 0)
		return ABX_OK;
	if (upload->path) {
		path = abx__strdup(upload->path);
	} else if (abx__path_resolve(filename ? filename : "", &upload->user,
				     upload->workdir, &path, &upload->err) < 0) {
		return fail(upload, 400);
	}
	if (!path) {
		abx__error_nomem(&upload->err);
		return fail(upload, 500);
	}
	return begin_file(upload, path);
}

static int on_data(void *userdata, const char *data, size_t len)
{
	abx__upload *upload = userdata;

	return upload->is_saving ? write_file(upload, data, len) : ABX_OK;
}

static int on_end(void *userdata)
{
	abx__upload *upload = userdata;

	return upload->is_saving ? end_file(upload) : ABX_OK;
}

static const abx__multipart_ops part_ops = { on_begin, on_data, on_end };

/* ---- the body ---- */

int abx__upload_init(abx__upload *upload, abx__user *user, const char *workdir,
		     char *path, const char *content_type, int64_t length,
		     abx_error **reterr)
{
	int r = ABX_OK;

	memset(upload, 0, sizeof(*upload));
	upload->save = (abx__save)ABX__SAVE_INIT;
	upload->user = *user;
	*user = (abx__user){ 0 };
	upload->path = path;
	upload->length = length;
	upload->is_multipart = content_type != NULL;
	if (workdir) {
		upload->workdir = abx__strdup(workdir);
		if (!upload->workdir)
			return abx__error_nomem(reterr);
	}
	if (content_type)
		r = abx__multipart_init(&upload->parser, content_type, &part_ops, upload);
	if (r == ABX_EINVAL)
		return abx__error_set(
			reterr, r, "the multipart content type has no usable boundary");
	return r < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

static int feed_plain(void *userdata, const char *data, size_t len)
{
	abx__upload *upload = userdata;
	int r;

	if (!upload->is_multipart) {
		r = upload->is_saving ? ABX_OK
				      : begin_file(upload, abx_take(upload->path));
		return r < 0 ? r : write_file(upload, data, len);
	}
	r = abx__multipart_feed(&upload->parser, data, len);
	if (r >= 0 || upload->status)
		return r;
	abx__error_set(&upload->err, r, "error reading multipart body: %s",
		       r == ABX_EPROTO ? "it is malformed" : "out of memory");
	return fail(upload, 500);
}

/* A body that has to be read. */
static void feed_from_tube(abx__upload *upload, abx__tube *tube)
{
	ABX_CLEANUP(abx__freep) char *piece = abx__malloc(PIECE_BYTES);

	if (!piece) {
		abx__error_nomem(&upload->err);
		fail(upload, 500);
	}
	while (!upload->status && tube->held > 0)
		abx__upload_feed(upload, piece, abx__tube_take(tube, piece, PIECE_BYTES));
}

void abx__upload_pour(abx__upload *upload, abx__tube *tube)
{
	int r;

	if (upload->status)
		return;
	if (upload->is_multipart || upload->gunzip) {
		feed_from_tube(upload, tube);
		return;
	}
	if (!upload->is_saving && begin_file(upload, abx_take(upload->path)) < 0)
		return;
	r = abx__save_pour(&upload->save, tube, &upload->err);
	if (r < 0)
		fail_save(upload, r);
}

static void finish_plain(abx__upload *upload)
{
	if (!upload->is_multipart) {
		/* An empty body makes an empty file. */
		if (!upload->is_saving && begin_file(upload, abx_take(upload->path)) < 0)
			return;
		end_file(upload);
	} else if (abx__multipart_finish(&upload->parser) < 0) {
		abx__error_set(
			&upload->err, ABX_EPROTO,
			"error reading multipart body: it ends before its last boundary");
		fail(upload, 500);
	}
}

static void fail_gunzip(abx__upload *upload, int r)
{
	fail(upload, r == ABX_ENOMEM ? 500 : r == ABX_ETOOBIG ? 413 : 400);
}

void abx__upload_feed(abx__upload *upload, const char *data, size_t len)
{
	int r;

	if (upload->status)
		return;
	if (!upload->gunzip) {
		feed_plain(upload, data, len);
		return;
	}
	r = abx__gunzip_feed(upload->gunzip, data, len, feed_plain, upload, &upload->err);
	if (r < 0)
		fail_gunzip(upload, r);
}

void abx__upload_finish(abx__upload *upload)
{
	int r;

	if (upload->status)
		return;
	r = upload->gunzip ? abx__gunzip_finish(upload->gunzip, &upload->err) : ABX_OK;
	if (r < 0)
		fail_gunzip(upload, r);
	else
		finish_plain(upload);
}

/* What was kept, not what was sent: some file systems keep none. */
static int add_metadata(json_object *obj, const char *path)
{
	abx__map kept = ABX__MAP_INIT;
	json_object *set = NULL;
	int r = abx__metadata_read(path, &kept);

	if (r >= 0 && kept.count) {
		set = json_object_new_object();
		r = set ? abx__json_set_take(obj, "metadata", set) : ABX_ENOMEM;
	}
	for (size_t i = 0; r >= 0 && i < kept.count; i++)
		r = abx__json_set_str(set, kept.items[i].key, kept.items[i].value);
	abx__map_done(&kept);
	return r;
}

json_object *abx__upload_describe(const char *path)
{
	json_object *obj = json_object_new_object();

	if (obj && (abx__json_set_str(obj, "path", path) < 0 ||
		    abx__json_set_str(obj, "name", abx__path_base(path)) < 0 ||
		    abx__json_set_str(obj, "type", "file") < 0)) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
}

json_object *abx__upload_answer(const abx__upload *upload)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < upload->count; i++) {
		json_object *file = abx__upload_describe(upload->paths[i]);

		if (file && upload->metadata.count > 0 &&
		    add_metadata(file, upload->paths[i]) < 0) {
			json_object_put(file);
			file = NULL;
		}
		if (!file || abx__json_push_take(list, file) < 0) {
			json_object_put(list);
			return NULL;
		}
	}
	return list;
}

void abx__upload_done(abx__upload *upload)
{
	abx__save_done(&upload->save);
	if (upload->is_multipart)
		abx__multipart_done(&upload->parser);
	for (size_t i = 0; i < upload->count; i++)
		abx__free(upload->paths[i]);
	abx__free(upload->paths);
	abx__free(upload->path);
	abx__free(upload->workdir);
	abx__map_done(&upload->metadata);
	abx__gunzip_free(upload->gunzip);
	abx__user_done(&upload->user);
	abx_error_free(upload->err);
}

/*
 * upload.h - the content of one POST /files: its bytes in, files out. Blocks; runs on a
 * worker and touches nothing of the loop's.
 */
#ifndef ABX_ENVD_UPLOAD_H
#define ABX_ENVD_UPLOAD_H

#include <json-c/json.h>

#include "base/error.h"
#include "envd/gzip.h"
#include "envd/multipart.h"
#include "envd/save.h"
#include "envd/users.h"

#define ABX__UPLOAD_MAX_FILES 10000

typedef struct abx__upload {
	abx__user user;
	char *workdir;
	char *path;          /* of the query, resolved; NULL: each part's file name */
	int64_t length;      /* of the body; -1: not known */
	abx__map metadata;   /* of every file; filled after init */
	abx__gunzip *gunzip; /* the body is packed; set after init; NULL: it is plain */
	bool is_multipart;
	abx__multipart parser;
	abx__save save;
	bool is_saving;
	char **paths; /* written so far */
	size_t count;
	int status; /* HTTP status of a failure; 0: none */
	abx_error *err;
} abx__upload;

/* `content_type` NULL: raw bytes. Takes `user`'s strings and `path` over. ABX_EINVAL for
   a multipart type without boundary. */
int abx__upload_init(abx__upload *upload, abx__user *user, const char *workdir,
		     char *path, const char *content_type, int64_t length,
		     abx_error **reterr);
/* After a failure `status` and `err` say what to answer; feeding goes on without effect.
 */
void abx__upload_feed(abx__upload *upload, const char *data, size_t len);
/* The same for what a tube holds; empties it, but for a failure. Bytes that are the
   file's as they are do not pass through memory. */
void abx__upload_pour(abx__upload *upload, abx__tube *tube);
void abx__upload_finish(abx__upload *upload);
/* [{"path","name","type":"file","metadata"?}]; NULL when out of memory. */
json_object *abx__upload_answer(const abx__upload *upload);
/* What the answers of the file endpoints say of one file: {"path","name","type":"file"}.
 */
json_object *abx__upload_describe(const char *path);
void abx__upload_done(abx__upload *upload);

#endif

/*
 * files-get.c - GET /files: which file, which of its bytes, in which coding. Sending them
 * is download.c's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/conditions.h"
#include "envd/content.h"
#include "envd/download.h"
#include "envd/encoding.h"
#include "envd/envd.h"
#include "envd/files.h"
#include "envd/path.h"
#include "envd/ranges.h"

#define BOUNDARY_LEN 24

struct file {
	const char *path;
	int fd;
	int64_t size; /* -1: known at its end; files of /proc have no size but content */
	time_t mtime;
	const char *type;
	char etag[ABX__ETAG_SIZE];
};

/* ---- the file ---- */

/* Answers when it cannot be served. */
static bool open_file(abx__http_req *req, const char *path, struct file *file)
{
	char head[512];
	struct stat st;
	ssize_t n = 0;

	*file = (struct file){ .path = path };
	file->fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (file->fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		abx__answer_error(req, 404, "path '%s' does not exist", path);
		return false;
	}
	if (file->fd < 0 || fstat(file->fd, &st) < 0) {
		abx__answer_error(req, 500, "error opening file '%s': %s", path,
				  strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		abx__answer_error(req, 400,
				  S_ISDIR(st.st_mode) ? "path '%s' is a directory"
						      : "path '%s' is not a regular file",
				  path);
		return false;
	}
	n = pread(file->fd, head, sizeof(head), 0);
	if (n < 0) {
		abx__answer_error(req, 500, "error reading file '%s': %s", path,
				  strerror(errno));
		return false;
	}
	file->size = st.st_size == 0 && n > 0 ? -1 : st.st_size;
	file->mtime = st.st_mtim.tv_sec;
	file->type = abx__content_type(path, head, (size_t)n);
	abx__etag_of(&st, file->etag);
	return true;
}

/* What all answers say of the file; a packed body is another representation, so its tag
 * is a weak one. */
static int set_headers(abx__http_req *req, const struct file *file, bool is_packed)
{
	ABX_CLEANUP(abx__freep)
	char *disposition = abx__content_disposition(abx__path_base(file->path));
	char date[ABX__HTTP_DATE_SIZE], etag[ABX__ETAG_SIZE + 2];
	int r;

	if (!disposition)
		return ABX_ENOMEM;
	abx__http_date(file->mtime, date);
	snprintf(etag, sizeof(etag), "%s%s", is_packed ? "W/" : "", file->etag);
	r = abx__http_res_header(req, "Vary", "Accept-Encoding");
	if (r >= 0)
		r = abx__http_res_header(req, "Content-Disposition", disposition);
	if (r >= 0 && file->size >= 0)
		r = abx__http_res_header(req, "ETag", etag);
	if (r >= 0 && file->size >= 0 && !is_packed)
		r = abx__http_res_header(req, "Accept-Ranges", "bytes");
	return r < 0 ? r : abx__http_res_header(req, "Last-Modified", date);
}

/* ---- bodies ---- */

static void answer_nomem(abx__http_req *req)
{
	abx__answer_error(req, 500, "out of memory");
}

static void serve_segments(abx__http_req *req, struct file *file, int status,
			   const char *type, abx__segment *segments, size_t count)
{
	if (abx__http_res_header(req, "Content-Type", type) >= 0) {
		abx__download_start(req, status, abx_take_fd(file->fd), segments, count);
		return;
	}
	abx__segments_free(segments, count);
	answer_nomem(req);
}

static void serve_one(abx__http_req *req, struct file *file, int status, int64_t start,
		      int64_t length)
{
	abx__segment *segment = abx__calloc(1, sizeof(*segment));

	if (!segment) {
		answer_nomem(req);
		return;
	}
	*segment = (abx__segment){ .offset = start, .length = length };
	serve_segments(req, file, status, file->type, segment, 1);
}

static char *content_range(const abx__range *range, int64_t size)
{
	return abx__strf("bytes %" PRId64 "-%" PRId64 "/%" PRId64, range->start,
			 range->start + range->length - 1, size);
}

static void serve_range(abx__http_req *req, struct file *file, const abx__range *range)
{
	ABX_CLEANUP(abx__freep) char *text = content_range(range, file->size);

	if (!text || abx__http_res_header(req, "Content-Range", text) < 0)
		answer_nomem(req);
	else
		serve_one(req, file, 206, range->start, range->length);
}

/* A part for each range, then the closing line (RFC 9110, section 14.6). */
static abx__segment *make_parts(const struct file *file, const abx__range *ranges,
				size_t count, const char *boundary)
{
	abx__segment *parts = abx__calloc(count + 1, sizeof(*parts));
	bool is_whole = parts != NULL;

	for (size_t i = 0; is_whole && i < count; i++) {
		ABX_CLEANUP(abx__freep)
		char *range = content_range(&ranges[i], file->size);

		parts[i].offset = ranges[i].start;
		parts[i].length = ranges[i].length;
		if (range)
			parts[i].text = abx__strf(
				"%s--%s\r\nContent-Range: %s\r\nContent-Type: %s\r\n\r\n",
				i ? "\r\n" : "", boundary, range, file->type);
		is_whole = parts[i].text != NULL;
	}
	if (is_whole)
		parts[count].text = abx__strf("\r\n--%s--\r\n", boundary);
	if (parts && (!is_whole || !parts[count].text)) {
		abx__segments_free(parts, count + 1);
		return NULL;
	}
	return parts;
}

static void serve_ranges(abx__http_req *req, struct file *file, const abx__range *ranges,
			 size_t count)
{
	char boundary[BOUNDARY_LEN + 1], type[BOUNDARY_LEN + 40];
	abx__segment *parts = NULL;

	if (abx__id_random(boundary, BOUNDARY_LEN) >= 0)
		parts = make_parts(file, ranges, count, boundary);
	if (!parts) {
		answer_nomem(req);
		return;
	}
	snprintf(type, sizeof(type), "multipart/byteranges; boundary=%s", boundary);
	serve_segments(req, file, 206, type, parts, count + 1);
}

/* ---- what was asked for ---- */

static void refuse_range(abx__http_req *req, const struct file *file,
			 const abx_error *err)
{
	ABX_CLEANUP(abx__freep) char *text = abx__strf("bytes */%" PRId64, file->size);

	if (!text || abx__http_res_header(req, "Content-Range", text) < 0)
		answer_nomem(req);
	else
		abx__answer_error(req, 416, "%s", abx_error_message(err));
}

static void serve_plain(abx__http_req *req, struct file *file, const char *range_header)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__range ranges[ABX__RANGES_MAX];
	int count = file->size < 0
			    ? 0
			    : abx__ranges_parse(range_header, file->size, ranges, &err);

	if (count < 0)
		refuse_range(req, file, err);
	else if (count == 0)
		serve_one(req, file, 200, 0, file->size);
	else if (count == 1)
		serve_range(req, file, &ranges[0]);
	else
		serve_ranges(req, file, ranges, (size_t)count);
}

static abx__conditions read_conditions(const abx__http_req *req)
{
	return (abx__conditions){
		.if_match = abx__http_req_header(req, "If-Match"),
		.if_unmodified_since = abx__http_req_header(req, "If-Unmodified-Since"),
		.if_none_match = abx__http_req_header(req, "If-None-Match"),
		.if_modified_since = abx__http_req_header(req, "If-Modified-Since"),
		.if_range = abx__http_req_header(req, "If-Range"),
	};
}

/* Ranges and validators speak of the bytes of the file, so they force them unpacked. */
static bool wants_plain(const abx__conditions *c, const char *range)
{
	const char *const headers[] = { range, c->if_modified_since, c->if_none_match,
					c->if_range };

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		if (headers[i] && *headers[i])
			return true;
	return false;
}

/* ABX__ENCODING_NONE when it was answered. */
static enum abx__encoding choose_encoding(abx__http_req *req, bool wants_identity)
{
	const char *accept = abx__http_req_header(req, "Accept-Encoding");
	enum abx__encoding encoding = abx__encoding_to_send(accept);

	if (encoding == ABX__ENCODING_NONE) {
		abx__answer_error(req, 406,
				  "error parsing Accept-Encoding: no acceptable encoding "
				  "found, supported: [gzip]");
	} else if (wants_identity && !abx__encoding_takes_identity(accept)) {
		abx__answer_error(req, 406,
				  "identity encoding not acceptable for Range or "
				  "conditional request");
		return ABX__ENCODING_NONE;
	}
	return wants_identity && encoding != ABX__ENCODING_NONE ? ABX__ENCODING_IDENTITY
								: encoding;
}

static void serve(abx__http_req *req, struct file *file)
{
	abx__conditions conditions = read_conditions(req);
	const char *range = abx__http_req_header(req, "Range");
	enum abx__encoding encoding =
		choose_encoding(req, wants_plain(&conditions, range));
	int status;

	if (encoding == ABX__ENCODING_NONE)
		return;
	if (set_headers(req, file, encoding == ABX__ENCODING_GZIP) < 0) {
		answer_nomem(req);
		return;
	}
	status = abx__conditions_judge(&conditions, file->etag, file->mtime);
	if (status == 304)
		abx__http_res_send(req, 304, NULL, NULL, 0);
	else if (status == 412)
		abx__answer_error(req, 412, "precondition failed");
	else if (encoding == ABX__ENCODING_GZIP &&
		 abx__http_res_header(req, "Content-Type", file->type) < 0)
		answer_nomem(req);
	else if (encoding == ABX__ENCODING_GZIP)
		abx__download_start_gzip(req, abx_take_fd(file->fd));
	else
		serve_plain(
			req, file,
			abx__conditions_keep_range(&conditions, file->etag, file->mtime)
				? range
				: NULL);
}

void abx__files_handle_get(struct abx__envd *envd, abx__http_req *req)
{
	ABX_CLEANUP(abx__signing_done) abx__signing query = { 0 };
	ABX_CLEANUP(abx__user_done) abx__user user = { 0 };
	ABX_CLEANUP(abx__freep) char *path = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct file file = { .fd = -1 };
	const char *name;

	if (!abx__files_authorize(envd, req, ABX__SIGNING_READ, &query))
		return;
	name = abx__files_username(envd, req, query.username);
	if (!name || !abx__files_find_user(envd, req, name, &user))
		return;
	if (abx__path_resolve(query.path ? query.path : "", &user, envd->default_workdir,
			      &path, &err) < 0)
		abx__answer_error(req, 400, "%s", abx_error_message(err));
	else if (open_file(req, path, &file))
		serve(req, &file);
	abx__closep(&file.fd);
}

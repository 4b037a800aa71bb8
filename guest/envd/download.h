/*
 * download.h - a file, or parts of it, as the body of an answer whose headers are set:
 * streamed at constant memory.
 */
#ifndef ABX_ENVD_DOWNLOAD_H
#define ABX_ENVD_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/http-server.h"

/* Text, then bytes of the file behind it. */
typedef struct abx__segment {
	char *text; /* NULL: none */
	int64_t offset;
	int64_t length; /* -1: until the end of the file, for the last segment only */
} abx__segment;

/* Answers `status`. Takes over `fd`, and the segments with their texts (an array of
   abx__calloc()). A file that turns out shorter, or that cannot be read, breaks the
   answer off. Answers 500 when it cannot begin. */
void abx__download_start(abx__http_req *req, int status, int fd, abx__segment *segments,
			 size_t count);
/* The whole file packed with gzip, status 200; sets Content-Encoding. */
void abx__download_start_gzip(abx__http_req *req, int fd);

/* Between the files of it; the answer has begun, and both take over what they are given.
   False: not this answer, nothing was taken over. */
bool abx__download_by_tube(abx__http_req *req, int fd, abx__segment *segment);
void abx__download_by_pieces(abx__http_req *req, int fd, abx__segment *segments,
			     size_t count);
void abx__segments_free(abx__segment *segments, size_t count);

#endif

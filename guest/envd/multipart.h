/*
 * multipart.h - multipart/form-data, incrementally: bytes in at any split, parts out (RFC
 * 7578, RFC 2046 section 5.1).
 *
 * Pure. Data is passed on where it lies; held is the head of a part (16 KiB at most) or
 * what may be the begin of a boundary. Lines end in CRLF.
 */
#ifndef ABX_ENVD_MULTIPART_H
#define ABX_ENVD_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define ABX__MULTIPART_MAX_BOUNDARY 200 /* RFC 2046 says 70; clients have used more */
#define ABX__MULTIPART_MAX_HEAD ((size_t)16 << 10)

/* A negative result stops the parser and is what feed() returns. */
typedef struct abx__multipart_ops {
	/* Strings live for the call; either may be NULL when the head does not give it.
	 */
	int (*begin)(void *userdata, const char *name, const char *filename);
	int (*data)(void *userdata, const char *data, size_t len);
	int (*end)(void *userdata);
} abx__multipart_ops;

typedef struct abx__multipart {
	const abx__multipart_ops *ops;
	void *userdata;
	int state;
	char delimiter[ABX__MULTIPART_MAX_BOUNDARY + 8]; /* CR LF - - boundary */
	size_t delimiter_len;
	abx__buf pending;
} abx__multipart;

/* The boundary of a Content-Type: ABX_EINVAL when it has none that is usable. */
int abx__multipart_init(abx__multipart *parser, const char *content_type,
			const abx__multipart_ops *ops, void *userdata);
void abx__multipart_done(abx__multipart *parser);
/* ABX_EPROTO for broken input, ABX_ENOMEM, or what a callback returned. */
int abx__multipart_feed(abx__multipart *parser, const char *data, size_t len);
/* ABX_EPROTO when the closing boundary has not been seen. */
int abx__multipart_finish(const abx__multipart *parser);
/* One parameter of a header value such as `form-data; name="file"`: 1 with a new string,
   0, ABX_ENOMEM. NAME* is preferred over NAME (RFC 5987, UTF-8 only). */
int abx__header_param(const char *value, const char *name, char **ret);

#endif

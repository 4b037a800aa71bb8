/*
 * http-body.h - the framing of an HTTP/1.1 body: bytes in, payload out. Pure.
 *
 * http_parser would do this too, but Debian builds it without its strict mode: it takes
 * any two bytes as the end of a chunk and any byte behind the CR of a chunk's size. Here
 * every CR has its LF. Trailer fields are read within a cap, and kept where somebody
 * gives a buffer for them.
 */
#ifndef ABX_IO_HTTP_BODY_H
#define ABX_IO_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum abx__http_framing {
	ABX__HTTP_NO_BODY,
	ABX__HTTP_LENGTH,
	ABX__HTTP_CHUNKED,
	ABX__HTTP_UNTIL_CLOSE, /* ends with the connection; never done by itself */
};

typedef struct abx__http_body {
	enum abx__http_framing framing;
	uint64_t left;     /* of the body, or of the present chunk */
	uint32_t overhead; /* bytes of the present size line, or of the trailers */
	uint8_t state;
	bool done;
	abx__buf *trailers; /* their lines go here; NULL: they are dropped */
} abx__http_body;

/* `length` counts for ABX__HTTP_LENGTH only. Trailers are dropped until `trailers` is
 * set.
 */
void abx__http_body_init(abx__http_body *body, enum abx__http_framing framing,
			 uint64_t length);
/* Eats bytes up to the end of the next piece of payload: the count eaten (more may follow
   at once while it is less than `len` and the body is not done), or ABX_EPROTO. *ret_data
   is inside `data`; *ret_len may be 0. */
ssize_t abx__http_body_next(abx__http_body *body, const char *data, size_t len,
			    const char **ret_data, size_t *ret_len);
/* So many bytes of payload went another way: for ABX__HTTP_LENGTH, and not more than are
   left. */
void abx__http_body_skip(abx__http_body *body, uint64_t len);

/* ---- trailer fields ---- */

/* Makes "name\0value\0"... of the lines, in place. Fields that may not come behind a
   body (RFC 9110 section 6.5.1: framing, routing, credentials, what tells how to read the
   body) are dropped. ABX_EPROTO: a line that is no field. */
int abx__http_trailers_split(abx__buf *trailers);
/* Adds one by the same rule. ABX_EPROTO: no field, or too many. */
int abx__http_trailers_add(abx__buf *trailers, const char *name, size_t name_len,
			   const char *value, size_t value_len);
/* All in order: false when `index` is past the end. */
bool abx__http_trailers_at(const abx__buf *trailers, size_t index, const char **ret_name,
			   const char **ret_value);

#endif

/*
 * http-body.h - the framing of an HTTP/1.1 body: bytes in, payload out. Pure.
 *
 * http_parser would do this too, but Debian builds it without its strict mode: it takes
 * any two bytes as the end of a chunk and any byte behind the CR of a chunk's size. Here
 * every CR has its LF. Trailer fields are read within a cap and dropped, as RFC 9110
 * section 6.5.1 allows.
 */
#ifndef ABX_IO_HTTP_BODY_H
#define ABX_IO_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
} abx__http_body;

/* `length` counts for ABX__HTTP_LENGTH only. */
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

#endif

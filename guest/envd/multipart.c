/*
 * multipart.c - the parser. The input is treated as if CR LF stood before it, so that
 * every boundary looks alike.
 */
#include "envd/multipart.h"

#include <string.h>
#include <strings.h>

#include <agentbox/error.h>

#include "base/alloc.h"
#include "base/str.h"

/* What is taken of the input to finish what was left of the input before it. */
#define JOIN_BYTES ((size_t)1 << 10)

/* Most bytes held: a head that is not whole, and such a piece. */
#define MAX_PENDING (2 * ABX__MULTIPART_MAX_HEAD + JOIN_BYTES)

/* Blanks a peer may put behind a boundary. */
#define MAX_BLANKS 256

enum { PREAMBLE, AFTER_BOUNDARY, HEAD, DATA_START, DATA, EPILOGUE };

/* ---- parameters of a header ---- */

/* Go's rule: a backslash escapes only what would need it. */
static bool is_special(char c)
{
	return c && strchr("()<>@,;:\\\"/[]?=", c);
}

/* Behind a value that starts at `p`; the value itself into `out`. */
static const char *read_value(const char *p, abx__buf *out, int *r)
{
	if (*p != '"') {
		size_t len = strcspn(p, "; \t");

		*r = abx__buf_add(out, p, len);
		return p + len;
	}
	for (p++; *p && *p != '"' && *r >= 0; p++) {
		if (*p == '\\' && is_special(p[1]))
			p++;
		*r = abx__buf_addc(out, *p);
	}
	return *p == '"' ? p + 1 : p;
}

/* UTF-8''percent-encoded */
static int decode_extended(const char *value, char **ret)
{
	const char *quote;

	if (strncasecmp(value, "utf-8'", 6) != 0)
		return ABX_EINVAL;
	quote = strchr(value + 6, '\'');
	if (!quote)
		return ABX_EINVAL;
	return abx__url_decode(quote + 1, strlen(quote + 1), false, ret);
}

static int take_param(abx__buf *value, bool extended, char **ret)
{
	char *decoded = NULL;

	if (extended) {
		int r = decode_extended(abx__buf_str(value), &decoded);

		if (r == ABX_ENOMEM)
			return r;
		if (r < 0)
			return 0;
	} else {
		decoded = abx__buf_take(value);
		if (!decoded)
			return ABX_ENOMEM;
	}
	abx__free(*ret);
	*ret = decoded;
	return 1;
}

int abx__header_param(const char *value, const char *name, char **ret)
{
	ABX_CLEANUP(abx__freep) char *found = NULL;
	bool has_extended = false;
	const char *p = strchr(value, ';');

	while (p && *p == ';') {
		ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;
		size_t len;
		int r = ABX_OK;
		const char *key;
		bool extended, same;

		p += 1 + strspn(p + 1, " \t");
		key = p;
		len = strcspn(p, "=; \t");
		p += len;
		if (*p != '=') {
			p = strchr(p, ';');
			continue;
		}
		p = read_value(p + 1, &buf, &r);
		if (r < 0)
			return r;
		extended = len > 0 && key[len - 1] == '*';
		same = strlen(name) == len - extended &&
		       strncasecmp(key, name, len - extended) == 0;
		if (same && !has_extended && (extended || !found)) {
			r = take_param(&buf, extended, &found);
			if (r < 0)
				return r;
			has_extended = extended && r > 0;
		}
		p += strspn(p, " \t");
	}
	if (!found)
		return 0;
	*ret = abx_take(found);
	return 1;
}

/* ---- the parser ---- */

int abx__multipart_init(abx__multipart *parser, const char *content_type,
			const abx__multipart_ops *ops, void *userdata)
{
	ABX_CLEANUP(abx__freep) char *boundary = NULL;
	int r = abx__header_param(content_type, "boundary", &boundary);

	if (r <= 0)
		return r < 0 ? r : ABX_EINVAL;
	if (!*boundary || strlen(boundary) > ABX__MULTIPART_MAX_BOUNDARY)
		return ABX_EINVAL;
	memset(parser, 0, sizeof(*parser));
	parser->ops = ops;
	parser->userdata = userdata;
	parser->pending.cap = MAX_PENDING;
	memcpy(parser->delimiter, "\r\n--", 4);
	memcpy(parser->delimiter + 4, boundary, strlen(boundary) + 1);
	parser->delimiter_len = strlen(boundary) + 4;
	return abx__buf_adds(&parser->pending, "\r\n");
}

void abx__multipart_done(abx__multipart *parser)
{
	abx__buf_done(&parser->pending);
}

/* The value of a header line in a part's head, up to its end; NULL when it is not there.
 */
static char *find_header(const char *head, const char *name)
{
	size_t len = strlen(name);

	while (head) {
		const char *end = strstr(head, "\r\n");

		if (strncasecmp(head, name, len) == 0 && head[len] == ':') {
			const char *value =
				head + len + 1 + strspn(head + len + 1, " \t");

			return abx__strndup(value, strcspn(value, "\r"));
		}
		head = end ? end + 2 : NULL;
	}
	return NULL;
}

static int begin_part(abx__multipart *parser, const char *head)
{
	ABX_CLEANUP(abx__freep)
	char *disposition = find_header(head, "Content-Disposition");
	ABX_CLEANUP(abx__freep) char *name = NULL;
	ABX_CLEANUP(abx__freep) char *filename = NULL;

	if (disposition && (abx__header_param(disposition, "name", &name) < 0 ||
			    abx__header_param(disposition, "filename", &filename) < 0))
		return ABX_ENOMEM;
	return parser->ops->begin(parser->userdata, name, filename);
}

/* Each step takes from the front of `p`: *ret_used bytes, 0 when it needs more input. */
static int step_preamble(abx__multipart *parser, const char *p, size_t len,
			 size_t *ret_used)
{
	const char *at = memmem(p, len, parser->delimiter, parser->delimiter_len);

	if (at) {
		*ret_used = (size_t)(at - p) + parser->delimiter_len;
		parser->state = AFTER_BOUNDARY;
	} else if (len >= parser->delimiter_len) {
		*ret_used = len - parser->delimiter_len + 1;
	}
	return ABX_OK;
}

static int step_boundary(abx__multipart *parser, const char *p, size_t len,
			 size_t *ret_used)
{
	const char *end = memmem(p, len, "\r\n", 2);

	if (len >= 2 && p[0] == '-' && p[1] == '-') {
		*ret_used = 2;
		parser->state = EPILOGUE;
		return ABX_OK;
	}
	if (!end)
		return len > MAX_BLANKS ? ABX_EPROTO : ABX_OK;
	for (const char *c = p; c < end; c++)
		if (*c != ' ' && *c != '\t')
			return ABX_EPROTO;
	*ret_used = (size_t)(end - p) + 2;
	parser->state = HEAD;
	return ABX_OK;
}

static int step_head(abx__multipart *parser, const char *p, size_t len, size_t *ret_used)
{
	ABX_CLEANUP(abx__freep) char *head = NULL;
	const char *end =
		len >= 2 && memcmp(p, "\r\n", 2) == 0 ? p : memmem(p, len, "\r\n\r\n", 4);
	size_t head_len = end ? (size_t)(end - p) : len;

	if (head_len > ABX__MULTIPART_MAX_HEAD || memchr(p, '\0', head_len))
		return ABX_EPROTO;
	if (!end)
		return ABX_OK;
	head = abx__strndup(p, head_len);
	if (!head)
		return ABX_ENOMEM;
	*ret_used = head_len + (end == p ? 2 : 4);
	parser->state = DATA_START;
	return begin_part(parser, head);
}

/* A part without any data may lack the boundary's CR LF, as Go's reader allows. */
static int step_data_start(abx__multipart *parser, const char *p, size_t len,
			   size_t *ret_used)
{
	size_t dashes = parser->delimiter_len - 2;

	if (len < dashes)
		return ABX_OK;
	parser->state = DATA;
	if (memcmp(p, parser->delimiter + 2, dashes) != 0)
		return ABX_OK;
	*ret_used = dashes;
	parser->state = AFTER_BOUNDARY;
	return parser->ops->end(parser->userdata);
}

/* Passes on what cannot be part of a boundary. */
static int step_data(abx__multipart *parser, const char *p, size_t len, size_t *ret_used)
{
	const char *at = memmem(p, len, parser->delimiter, parser->delimiter_len);
	size_t data = at                             ? (size_t)(at - p)
		      : len >= parser->delimiter_len ? len - parser->delimiter_len + 1
						     : 0;
	int r = data ? parser->ops->data(parser->userdata, p, data) : ABX_OK;

	*ret_used = data;
	if (r < 0 || !at)
		return r;
	*ret_used += parser->delimiter_len;
	parser->state = AFTER_BOUNDARY;
	return parser->ops->end(parser->userdata);
}

static int step(abx__multipart *parser, const char *p, size_t len, size_t *ret_used)
{
	switch (parser->state) {
	case PREAMBLE:
		return step_preamble(parser, p, len, ret_used);
	case AFTER_BOUNDARY:
		return step_boundary(parser, p, len, ret_used);
	case HEAD:
		return step_head(parser, p, len, ret_used);
	case DATA_START:
		return step_data_start(parser, p, len, ret_used);
	case DATA:
		return step_data(parser, p, len, ret_used);
	default: /* what follows the last boundary is not ours */
		*ret_used = len;
		return ABX_OK;
	}
}

/* As many steps as the bytes allow; *ret_used is what they took. */
static int run(abx__multipart *parser, const char *data, size_t len, size_t *ret_used)
{
	size_t at = 0;
	int r = ABX_OK;

	while (r >= 0) {
		size_t used = 0;
		int before = parser->state;

		r = step(parser, data + at, len - at, &used);
		at += used;
		if (used == 0 && parser->state == before)
			break;
	}
	*ret_used = at;
	return r;
}

/* Puts some of the input behind what was left over, and takes from both. When the
 * leftover is gone, the input goes on where the steps stopped. */
static int join(abx__multipart *parser, const char *data, size_t len, size_t *ret_used)
{
	size_t left = parser->pending.len, n = len < JOIN_BYTES ? len : JOIN_BYTES, used;
	int r = abx__buf_add(&parser->pending, data, n);

	if (r < 0)
		return r;
	r = run(parser, parser->pending.data, parser->pending.len, &used);
	*ret_used = used >= left ? used - left : n;
	if (used >= left)
		abx__buf_clear(&parser->pending);
	else
		abx__buf_consume(&parser->pending, used);
	return r;
}

int abx__multipart_feed(abx__multipart *parser, const char *data, size_t len)
{
	int r = ABX_OK;

	while (r >= 0 && len > 0) {
		bool joins = parser->pending.len > 0;
		size_t used = 0;

		r = joins ? join(parser, data, len, &used)
			  : run(parser, data, len, &used);
		data += used;
		len -= used;
		if (!joins)
			break;
	}
	return r < 0 ? r : abx__buf_add(&parser->pending, data, len);
}

int abx__multipart_finish(const abx__multipart *parser)
{
	return parser->state == EPILOGUE ? ABX_OK : ABX_EPROTO;
}

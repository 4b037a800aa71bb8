/*
 * http-head.c - see http-head.h.
 *
 * A head is parsed when it is whole, in one call, so http_parser's callbacks see every
 * element in one piece. The result is one allocation: field table, the head's bytes with
 * NULs written over the separators, and the path.
 */
#include "io/http-head.h"

#include <http_parser.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include <agentbox/error.h>

struct span {
	const char *at;
	size_t len;
};

/* What the callbacks collect. */
struct collected {
	struct span target;
	struct span names[ABX__HTTP_FIELDS_MAX];
	struct span values[ABX__HTTP_FIELDS_MAX];
	size_t count;
	bool complete;
	bool upgrade;
	bool too_many;
};

static const char token_chars[256] = {
	['!'] = 1,         ['#'] = 1,         ['$'] = 1,         ['%'] = 1, ['&'] = 1,
	['\''] = 1,        ['*'] = 1,         ['+'] = 1,         ['-'] = 1, ['.'] = 1,
	['^'] = 1,         ['_'] = 1,         ['`'] = 1,         ['|'] = 1, ['~'] = 1,
	['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

size_t abx__http_head_find(const char *data, size_t len, size_t from)
{
	const char *p, *end = data + len;

	/* The blank line may have begun up to three bytes before. */
	from = from > 3 ? from - 3 : 0;
	for (p = data + from; (p = memchr(p, '\n', (size_t)(end - p))); p++) {
		if (p + 1 < end && p[1] == '\n')
			return (size_t)(p + 2 - data);
		if (p + 2 < end && p[1] == '\r' && p[2] == '\n')
			return (size_t)(p + 3 - data);
	}
	return 0;
}

static int on_url(http_parser *parser, const char *at, size_t len)
{
	struct collected *c = parser->data;

	c->target = (struct span){ at, len };
	return 0;
}

static int on_field(http_parser *parser, const char *at, size_t len)
{
	struct collected *c = parser->data;

	if (c->count == ABX__HTTP_FIELDS_MAX) {
		c->too_many = true;
		return 1;
	}
	c->names[c->count] = (struct span){ at, len };
	return 0;
}

static int on_value(http_parser *parser, const char *at, size_t len)
{
	struct collected *c = parser->data;

	while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
		len--;
	c->values[c->count++] = (struct span){ at, len };
	return 0;
}

static int on_complete(http_parser *parser)
{
	struct collected *c = parser->data;

	c->complete = true;
	c->upgrade = parser->upgrade;
	return 2; /* no body here: http-body.h decodes it (this sets parser->upgrade) */
}

static const http_parser_settings settings = {
	.on_url = on_url,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_headers_complete = on_complete,
};

/* Line ends and folding, which http_parser does not check in the way Debian builds it. */
static const char *check_lines(const char *data, size_t len, bool bare_lf)
{
	const char *end = data + len;

	for (const char *p = data; (p = memchr(p, '\r', (size_t)(end - p))); p++) {
		if (p + 1 == end || p[1] != '\n')
			return "a CR without its LF in the head";
	}
	for (const char *p = data; (p = memchr(p, '\n', (size_t)(end - p))); p++) {
		if (!bare_lf && (p == data || p[-1] != '\r'))
			return "a LF without its CR in the head";
		if (p + 1 < end && (p[1] == ' ' || p[1] == '\t'))
			return "a folded header line";
	}
	return NULL;
}

static const char *check_fields(const struct collected *c)
{
	for (size_t i = 0; i < c->count; i++) {
		if (c->names[i].len == 0)
			return "a header without a name";
		for (size_t j = 0; j < c->names[i].len; j++) {
			if (!token_chars[(unsigned char)c->names[i].at[j]])
				return "an invalid character in a header name";
		}
		for (size_t j = 0; j < c->values[i].len; j++) {
			unsigned char ch = (unsigned char)c->values[i].at[j];

			if ((ch < ' ' && ch != '\t') || ch == 0x7f)
				return "a control character in a header";
		}
	}
	for (size_t j = 0; j < c->target.len; j++) {
		unsigned char ch = (unsigned char)c->target.at[j];

		if (ch <= ' ' || ch == 0x7f)
			return "an invalid character in the request target";
	}
	return NULL;
}

static char *terminated(char *text, const char *data, struct span span)
{
	char *at = text + (span.at - data);

	at[span.len] = '\0';
	return at;
}

/* Copies the head behind the field table and points into the copy. */
static int materialise(abx__http_head *head, const struct collected *c, const char *data,
		       size_t len)
{
	size_t table = c->count * sizeof(abx__http_field);
	char *block = abx__malloc(table + len + 1 + c->target.len + 1);
	abx__http_field *fields = (abx__http_field *)(void *)block;
	char *text = block + table, *path = text + len + 1;

	if (!block)
		return ABX_ENOMEM;
	memcpy(text, data, len);
	text[len] = '\0';
	for (size_t i = 0; i < c->count; i++) {
		fields[i].name = terminated(text, data, c->names[i]);
		/* http_parser finds an empty value where the next line begins: nothing
		 * may be written there. */
		fields[i].value = c->values[i].len ? terminated(text, data, c->values[i])
						   : fields[i].name + c->names[i].len;
	}
	head->block = block;
	head->fields = fields;
	head->count = c->count;
	if (c->target.at) {
		char *target = terminated(text, data, c->target);
		char *mark = strchr(target, '?');
		size_t path_len = mark ? (size_t)(mark - target) : c->target.len;

		memcpy(path, target, path_len);
		path[path_len] = '\0';
		head->target = target;
		head->path = path;
		head->query = mark ? mark + 1 : NULL;
	}
	return ABX_OK;
}

/* Parses what both kinds share. NULL when fine, else why not; *ret_error is
 * http_parser's. */
static const char *parse(http_parser *parser, enum http_parser_type type,
			 struct collected *c, const char *data, size_t len)
{
	size_t used;
	const char *why;

	http_parser_init(parser, type);
	parser->data = c;
	c->target = (struct span){ 0 };
	c->count = 0;
	c->complete = c->upgrade = c->too_many = false;
	why = check_lines(data, len, type == HTTP_RESPONSE);
	if (why)
		return why;
	used = http_parser_execute(parser, &settings, data, len);
	if (c->too_many)
		return "too many headers";
	if (HTTP_PARSER_ERRNO(parser) != HPE_OK)
		return http_errno_description(HTTP_PARSER_ERRNO(parser));
	if (!c->complete || used + 1 < len)
		return "not an HTTP/1.1 message";
	return check_fields(c);
}

static size_t count_named(const struct collected *c, const char *name,
			  const struct span **ret)
{
	size_t n = 0, len = strlen(name);

	for (size_t i = 0; i < c->count; i++) {
		if (c->names[i].len == len &&
		    strncasecmp(c->names[i].at, name, len) == 0) {
			n++;
			*ret = &c->values[i];
		}
	}
	return n;
}

static bool span_is(const struct span *span, const char *text)
{
	return span->len == strlen(text) && strncasecmp(span->at, text, span->len) == 0;
}

/* Content-Length and Transfer-Encoding; http_parser has refused both together and two
 * lengths. */
static const char *read_framing(abx__http_head *head, const http_parser *parser,
				const struct collected *c)
{
	const struct span *coding = NULL;

	head->content_length = -1;
	if (parser->flags & F_CONTENTLENGTH) {
		if (parser->content_length > INT64_MAX)
			return "Content-Length is out of range";
		head->content_length = (int64_t)parser->content_length;
	}
	if (!parser->uses_transfer_encoding)
		return NULL;
	if (count_named(c, "transfer-encoding", &coding) != 1 ||
	    !span_is(coding, "chunked"))
		return "a transfer coding other than chunked";
	if (head->content_length >= 0)
		return "both Content-Length and Transfer-Encoding";
	if (parser->http_minor == 0)
		return "Transfer-Encoding in an HTTP/1.0 message";
	head->chunked = true;
	return NULL;
}

static void read_connection(abx__http_head *head, const http_parser *parser,
			    const struct collected *c)
{
	head->minor = parser->http_minor;
	if (parser->http_minor > 0)
		head->keep_alive = !(parser->flags & F_CONNECTION_CLOSE);
	else
		head->keep_alive = (parser->flags & F_CONNECTION_KEEP_ALIVE) != 0;
	head->upgrade = c->upgrade && parser->http_minor > 0;
}

/* "http://authority/path": the target becomes what is behind the authority, which Host
 * must repeat. */
static const char *strip_authority(struct collected *c, const struct span *host)
{
	static const char root[] = "/";
	const char *p, *end = c->target.at + c->target.len;

	if (c->target.len > 0 && (c->target.at[0] == '/' || span_is(&c->target, "*")))
		return NULL;
	if (c->target.len < 7 || strncasecmp(c->target.at, "http://", 7) != 0)
		return "the request target is neither a path nor an http URL";
	for (p = c->target.at + 7; p < end && *p != '/' && *p != '?' && *p != '#'; p++)
		;
	if (!host || host->len != (size_t)(p - c->target.at - 7) ||
	    strncasecmp(host->at, c->target.at + 7, host->len) != 0)
		return "the request target's authority differs from Host";
	if (p < end && *p != '/')
		return "the request target has no path";
	/* An empty path is "/": the slash before the authority serves. */
	c->target = p < end ? (struct span){ p, (size_t)(end - p) }
			    : (struct span){ c->target.at + 6, strlen(root) };
	return NULL;
}

static int refusal_status(const http_parser *parser, const struct collected *c,
			  const char *data)
{
	size_t n = 0;

	if (c->too_many || HTTP_PARSER_ERRNO(parser) == HPE_HEADER_OVERFLOW)
		return 431;
	if (HTTP_PARSER_ERRNO(parser) != HPE_INVALID_METHOD)
		return 400;
	/* A well-formed method this parser does not know is 501; anything else is not
	 * HTTP. */
	while (n < 32 && token_chars[(unsigned char)data[n]])
		n++;
	return n > 0 && data[n] == ' ' && strncmp(data, "PRI ", 4) != 0 ? 501 : 400;
}

static const char *check_request(abx__http_head *head, const http_parser *parser,
				 struct collected *c, int *ret_status)
{
	const struct span *host = NULL;
	const char *why;
	size_t hosts;

	if (parser->http_major != 1) {
		*ret_status = parser->http_major > 1 ? 505 : 400;
		return "only HTTP/1.1 and HTTP/1.0 are spoken here";
	}
	if (parser->method == HTTP_CONNECT) {
		*ret_status = 501;
		return "CONNECT is not supported";
	}
	hosts = count_named(c, "host", &host);
	if (hosts > 1 || (hosts == 0 && parser->http_minor > 0))
		return hosts ? "more than one Host header" : "the Host header is missing";
	why = read_framing(head, parser, c);
	if (why)
		return why;
	return strip_authority(c, host);
}

int abx__http_head_parse_request(abx__http_head *ret, const char *data, size_t len,
				 int *ret_status, const char **ret_why)
{
	struct collected c;
	http_parser parser;
	int r;

	memset(ret, 0, sizeof(*ret));
	*ret_status = 400;
	*ret_why = parse(&parser, HTTP_REQUEST, &c, data, len);
	if (*ret_why)
		*ret_status = refusal_status(&parser, &c, data);
	else
		*ret_why = check_request(ret, &parser, &c, ret_status);
	if (*ret_why)
		return ABX_EPROTO;
	read_connection(ret, &parser, &c);
	ret->method = http_method_str((enum http_method)parser.method);
	r = materialise(ret, &c, data, len);
	if (r < 0)
		return r;
	ret->expect_continue =
		ret->minor > 0 && abx__http_head_has_token(ret, "expect", "100-continue");
	return ABX_OK;
}

int abx__http_head_parse_response(abx__http_head *ret, const char *data, size_t len,
				  const char **ret_why)
{
	struct collected c;
	http_parser parser;

	memset(ret, 0, sizeof(*ret));
	*ret_why = parse(&parser, HTTP_RESPONSE, &c, data, len);
	if (!*ret_why && (parser.http_major != 1 || parser.status_code < 100))
		*ret_why = "not an HTTP/1.1 answer";
	if (!*ret_why)
		*ret_why = read_framing(ret, &parser, &c);
	if (*ret_why)
		return ABX_EPROTO;
	read_connection(ret, &parser, &c);
	ret->status = (int)parser.status_code;
	return materialise(ret, &c, data, len);
}

/* ---- a head in parts ---- */

/* The static name of a method http_parser knows. */
static const char *known_method(const char *method)
{
	for (int i = HTTP_DELETE; i <= HTTP_SOURCE; i++) {
		if (strcmp(http_method_str((enum http_method)i), method) == 0)
			return http_method_str((enum http_method)i);
	}
	return NULL;
}

static const char *check_target(const char *method, const char *target)
{
	if (target[0] != '/' &&
	    !(strcmp(target, "*") == 0 && strcmp(method, "OPTIONS") == 0))
		return "the request target is no path";
	for (; *target; target++) {
		if ((unsigned char)*target <= ' ' || *target == 0x7f)
			return "an invalid character in the request target";
	}
	return NULL;
}

static const char *read_field(abx__http_head *head, const char *name, const char *value)
{
	uint64_t length;

	if (!abx__http_name_is_valid(name))
		return "an invalid character in a header name";
	if (!abx__http_value_is_valid(value))
		return "a control character in a header";
	if (strcasecmp(name, "transfer-encoding") == 0)
		return "a transfer coding in HTTP/2";
	if (strcasecmp(name, "content-length") != 0)
		return NULL;
	if (head->content_length >= 0 || abx__parse_u64(value, 0, INT64_MAX, &length) < 0)
		return "Content-Length is there twice, or is no number";
	head->content_length = (int64_t)length;
	return NULL;
}

/* The copies' places: table, fields' text, target, path. */
static int place(abx__http_head *head, const char *target, const char *fields, size_t len)
{
	size_t table = head->count * sizeof(abx__http_field);
	size_t target_len = strlen(target), path_len = strcspn(target, "?");
	char *block = abx__malloc(table + len + target_len + path_len + 2);
	abx__http_field *list = (abx__http_field *)(void *)block;
	char *at;

	if (!block)
		return ABX_ENOMEM;
	head->block = block;
	head->fields = list;
	at = block + table;
	memcpy(at, fields, len);
	for (size_t i = 0; i < head->count; i++) {
		list[i].name = at;
		list[i].value = at + strlen(at) + 1;
		at = (char *)list[i].value + strlen(list[i].value) + 1;
	}
	at = block + table + len;
	memcpy(at, target, target_len + 1);
	head->target = at;
	head->query = target[path_len] ? at + path_len + 1 : NULL;
	at += target_len + 1;
	memcpy(at, target, path_len);
	at[path_len] = '\0';
	head->path = at;
	return ABX_OK;
}

int abx__http_head_make_request(abx__http_head *ret, const char *method,
				const char *target, const char *fields, size_t len,
				int *ret_status, const char **ret_why)
{
	const char *end = fields + len;

	memset(ret, 0, sizeof(*ret));
	ret->minor = 1;
	ret->content_length = -1;
	ret->method = known_method(method);
	*ret_status = ret->method && strcmp(method, "CONNECT") != 0 ? 400 : 501;
	*ret_why = *ret_status == 501 ? "the method is not supported"
				      : check_target(method, target);
	for (const char *at = fields; at < end && !*ret_why; ret->count++) {
		const char *value = at + strlen(at) + 1;

		*ret_why = read_field(ret, at, value);
		at = value + strlen(value) + 1;
	}
	if (*ret_why)
		return ABX_EPROTO;
	*ret_status = 0;
	if (place(ret, target, fields, len) < 0)
		return ABX_ENOMEM;
	ret->expect_continue = abx__http_head_has_token(ret, "expect", "100-continue");
	return ABX_OK;
}

void abx__http_head_done(abx__http_head *head)
{
	abx__free(head->block);
	memset(head, 0, sizeof(*head));
}

const char *abx__http_head_get(const abx__http_head *head, const char *name)
{
	for (size_t i = 0; i < head->count; i++) {
		if (strcasecmp(head->fields[i].name, name) == 0)
			return head->fields[i].value;
	}
	return NULL;
}

bool abx__http_list_has(const char *list, const char *token)
{
	size_t len = strlen(token);

	while (*list) {
		size_t n;

		list += strspn(list, " \t,");
		n = strcspn(list, ",");
		while (n > 0 && (list[n - 1] == ' ' || list[n - 1] == '\t'))
			n--;
		if (n == len && strncasecmp(list, token, len) == 0)
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

bool abx__http_head_has_token(const abx__http_head *head, const char *name,
			      const char *token)
{
	for (size_t i = 0; i < head->count; i++) {
		if (strcasecmp(head->fields[i].name, name) == 0 &&
		    abx__http_list_has(head->fields[i].value, token))
			return true;
	}
	return false;
}

bool abx__http_name_is_valid(const char *name)
{
	size_t n = 0;

	while (token_chars[(unsigned char)name[n]])
		n++;
	return n > 0 && !name[n];
}

bool abx__http_value_is_valid(const char *value)
{
	for (; *value; value++) {
		unsigned char ch = (unsigned char)*value;

		if ((ch < ' ' && ch != '\t') || ch == 0x7f)
			return false;
	}
	return true;
}

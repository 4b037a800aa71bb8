/*
 * content.c - media types and headers of files.
 */
#include "envd/content.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"

#define TEXT "text/plain; charset=utf-8"
#define BINARY "application/octet-stream"

static const struct {
	const char *extension;
	const char *type;
} extensions[] = {
	{ "avif", "image/avif" },
	{ "css", "text/css; charset=utf-8" },
	{ "csv", "text/csv; charset=utf-8" },
	{ "gif", "image/gif" },
	{ "gz", "application/gzip" },
	{ "htm", "text/html; charset=utf-8" },
	{ "html", "text/html; charset=utf-8" },
	{ "jpeg", "image/jpeg" },
	{ "jpg", "image/jpeg" },
	{ "js", "text/javascript; charset=utf-8" },
	{ "json", "application/json" },
	{ "md", "text/markdown; charset=utf-8" },
	{ "mjs", "text/javascript; charset=utf-8" },
	{ "pdf", "application/pdf" },
	{ "png", "image/png" },
	{ "svg", "image/svg+xml" },
	{ "tar", "application/x-tar" },
	{ "txt", TEXT },
	{ "wasm", "application/wasm" },
	{ "webp", "image/webp" },
	{ "xml", "text/xml; charset=utf-8" },
	{ "zip", "application/zip" },
};

static const struct {
	const char *bytes;
	size_t len;
	const char *type;
} magics[] = {
	{ "\x89PNG\r\n\x1a\n", 8, "image/png" },
	{ "\xff\xd8\xff", 3, "image/jpeg" },
	{ "GIF87a", 6, "image/gif" },
	{ "GIF89a", 6, "image/gif" },
	{ "%PDF-", 5, "application/pdf" },
	{ "\x1f\x8b\x08", 3, "application/x-gzip" },
	{ "PK\x03\x04", 4, "application/zip" },
	{ "\xef\xbb\xbf", 3, TEXT },
};

/* Bytes no text has (the rule of the WHATWG's sniffing). */
static int is_binary(unsigned char c)
{
	return c <= 0x08 || c == 0x0b || (c >= 0x0e && c <= 0x1a) ||
	       (c >= 0x1c && c <= 0x1f);
}

const char *abx__content_type(const char *name, const void *head, size_t len)
{
	const char *dot = strrchr(name, '.');
	const unsigned char *p = head;

	for (size_t i = 0; dot && i < sizeof(extensions) / sizeof(extensions[0]); i++)
		if (strcasecmp(extensions[i].extension, dot + 1) == 0)
			return extensions[i].type;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (len >= magics[i].len &&
		    memcmp(head, magics[i].bytes, magics[i].len) == 0)
			return magics[i].type;
	for (size_t i = 0; i < len && i < 512; i++)
		if (is_binary(p[i]))
			return BINARY;
	return TEXT;
}

static int is_token(const char *s)
{
	if (!*s)
		return 0;
	for (; *s; s++)
		if (*s <= 0x20 || *s >= 0x7f || strchr("()<>@,;:\\\"/[]?=", *s))
			return 0;
	return 1;
}

static int is_printable(const char *s)
{
	for (; *s; s++)
		if (*s < 0x20 || *s >= 0x7f)
			return 0;
	return 1;
}

char *abx__content_disposition(const char *name)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *encoded = NULL;
	int r;

	if (is_token(name))
		return abx__strf("inline; filename=%s", name);
	if (!is_printable(name)) {
		encoded = abx__url_encode(name);
		return encoded ? abx__strf("inline; filename*=utf-8''%s", encoded) : NULL;
	}
	r = abx__buf_adds(&out, "inline; filename=\"");
	for (; r >= 0 && *name; name++) {
		if (*name == '"' || *name == '\\')
			r = abx__buf_addc(&out, '\\');
		if (r >= 0)
			r = abx__buf_addc(&out, *name);
	}
	if (r < 0 || abx__buf_addc(&out, '"') < 0)
		return NULL;
	return abx__buf_take(&out);
}

void abx__http_date(time_t when, char out[ABX__HTTP_DATE_SIZE])
{
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct tm tm = { .tm_mday = 1, .tm_year = 70, .tm_wday = 4 };
	char format[ABX__HTTP_DATE_SIZE];

	/* Names by hand: strftime(3) would ask the locale. */
	gmtime_r(&when, &tm);
	strftime(format, sizeof(format), "DDD, %d MMM %Y %H:%M:%S GMT", &tm);
	memcpy(format, days[tm.tm_wday % 7], 3);
	memcpy(format + 8, months[tm.tm_mon % 12], 3);
	memcpy(out, format, sizeof(format));
}

/*
 * error.c - the one error type. Codes, names and default texts come from ABX_ERROR_MAP
 * alone.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

struct abx_error {
	int code;
	int http_status;
	int errnum;
	char *message;
	char *hint;
	char *detail;
};

/* Handed out when an error cannot be allocated; never freed, never changed. */
static const abx_error nomem_error = { .code = ABX_ENOMEM };

static const struct {
	int code;
	const char *name;
	const char *text;
} codes[] = {
#define ROW(n, value, text) { value, #n, text },
	ABX_ERROR_MAP(ROW)
#undef ROW
};

static const char *code_text(int code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return codes[i].text;
	return "unknown error";
}

const char *abx_error_name(int code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return codes[i].name;
	return "EUNKNOWN";
}

int abx_error_code(const abx_error *err)
{
	return err ? err->code : 0;
}

const char *abx_error_message(const abx_error *err)
{
	if (!err)
		return "";
	return err->message ? err->message : code_text(err->code);
}

const char *abx_error_hint(const abx_error *err)
{
	return err ? err->hint : NULL;
}

const char *abx_error_detail(const abx_error *err)
{
	return err ? err->detail : NULL;
}

int abx_error_http_status(const abx_error *err)
{
	return err ? err->http_status : 0;
}

int abx_error_errno(const abx_error *err)
{
	return err ? err->errnum : 0;
}

void abx_error_free(abx_error *err)
{
	if (!err || err == &nomem_error)
		return;
	abx__free(err->message);
	abx__free(err->hint);
	abx__free(err->detail);
	abx__free(err);
}

static abx_error *static_nomem(void)
{
	return (abx_error *)&nomem_error;
}

int abx__error_nomem(abx_error **reterr)
{
	if (reterr) {
		abx_error_free(*reterr);
		*reterr = static_nomem();
	}
	return ABX_ENOMEM;
}

/* Formats through the allocator seam; NULL when out of memory. */
__attribute__((format(printf, 1, 0))) static char *format(const char *fmt, va_list ap)
{
	va_list again;
	char *s = NULL;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0)
		return NULL;
	s = abx__malloc((size_t)len + 1);
	if (s) {
		vsnprintf(s, (size_t)len + 1, fmt, ap);
		abx__utf8_repair(s); /* "%.64s" cuts within a character */
	}
	return s;
}

static int set(abx_error **reterr, int code, int status, int errnum, char *message)
{
	abx_error *err;

	if (!reterr) {
		abx__free(message);
		return code;
	}
	err = message ? abx__calloc(1, sizeof(*err)) : NULL;
	if (!err) {
		abx__free(message);
		abx__error_nomem(reterr);
		return code;
	}
	err->code = code;
	err->http_status = status;
	err->errnum = errnum;
	err->message = message;
	abx_error_free(*reterr);
	*reterr = err;
	return code;
}

int abx__error_set(abx_error **reterr, int code, const char *fmt, ...)
{
	char *message = NULL;
	va_list ap;

	if (reterr) {
		va_start(ap, fmt);
		message = format(fmt, ap);
		va_end(ap);
	}
	return set(reterr, code, 0, 0, message);
}

int abx__error_http(abx_error **reterr, int code, int status, const char *fmt, ...)
{
	char *message = NULL;
	va_list ap;

	if (reterr) {
		va_start(ap, fmt);
		message = format(fmt, ap);
		va_end(ap);
	}
	return set(reterr, code, status, 0, message);
}

static char *join(const char *a, const char *sep, const char *b)
{
	size_t len = strlen(a) + strlen(sep) + strlen(b) + 1;
	char *s = abx__malloc(len);

	if (s)
		snprintf(s, len, "%s%s%s", a, sep, b);
	return s;
}

int abx__error_errno(abx_error **reterr, int code, int errnum, const char *fmt, ...)
{
	char *text, *message;
	va_list ap;

	if (!reterr)
		return code;
	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	message = text ? join(text, ": ",
			      strerrordesc_np(errnum) ? strerrordesc_np(errnum)
						      : "unknown errno")
		       : NULL;
	abx__free(text);
	return set(reterr, code, 0, errnum, message);
}

int abx__error_prefix(abx_error **reterr, const char *fmt, ...)
{
	char *context, *message;
	va_list ap;

	if (!reterr || !*reterr)
		return ABX_EFAIL;
	if (*reterr == &nomem_error)
		return ABX_ENOMEM;
	va_start(ap, fmt);
	context = format(fmt, ap);
	va_end(ap);
	message = context ? join(context, ": ", abx_error_message(*reterr)) : NULL;
	abx__free(context);
	if (message) {
		abx__free((*reterr)->message);
		(*reterr)->message = message;
	}
	return (*reterr)->code;
}

void abx__error_hint(abx_error **reterr, const char *fmt, ...)
{
	va_list ap;

	if (!reterr || !*reterr || *reterr == &nomem_error)
		return;
	abx__free((*reterr)->hint);
	va_start(ap, fmt);
	(*reterr)->hint = format(fmt, ap);
	va_end(ap);
}

void abx__error_detail(abx_error **reterr, const char *json)
{
	if (!reterr || !*reterr || *reterr == &nomem_error)
		return;
	abx__free((*reterr)->detail);
	(*reterr)->detail = abx__strdup(json);
}

abx_error *abx__error_copy(const abx_error *err)
{
	abx_error *copy = NULL;
	char *message;

	if (!err || err == &nomem_error)
		return (abx_error *)err;
	message = abx__strdup(abx_error_message(err));
	set(&copy, err->code, err->http_status, err->errnum, message);
	if (err->hint)
		abx__error_hint(&copy, "%s", err->hint);
	if (err->detail)
		abx__error_detail(&copy, err->detail);
	return copy;
}

static const struct {
	int status;
	int code;
} http_codes[] = {
	/* The first row of a code is the one used for the way back. */
	{ 400, ABX_EINVAL },       { 401, ABX_EUNAUTHENTICATED },
	{ 403, ABX_EDENIED },      { 404, ABX_ENOTFOUND },
	{ 409, ABX_ECONFLICT },    { 409, ABX_EEXISTS },
	{ 409, ABX_ESTATE },       { 413, ABX_ETOOBIG },
	{ 429, ABX_EEXHAUSTED },   { 499, ABX_ECANCELED },
	{ 501, ABX_EUNSUPPORTED }, { 502, ABX_EUNAVAILABLE },
	{ 503, ABX_EUNAVAILABLE }, { 504, ABX_ETIMEDOUT },
	{ 507, ABX_EEXHAUSTED },   { 408, ABX_ETIMEDOUT },
	{ 422, ABX_EINVAL },
};

int abx__error_code_from_http(int status)
{
	for (size_t i = 0; i < sizeof(http_codes) / sizeof(http_codes[0]); i++)
		if (http_codes[i].status == status)
			return http_codes[i].code;
	return status >= 400 && status < 500 ? ABX_EINVAL : ABX_EFAIL;
}

int abx__error_http_from_code(int code)
{
	if (code == ABX_EUNAVAILABLE)
		return 503;
	for (size_t i = 0; i < sizeof(http_codes) / sizeof(http_codes[0]); i++)
		if (http_codes[i].code == code)
			return http_codes[i].status;
	return 500;
}

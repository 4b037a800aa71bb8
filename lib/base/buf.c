/*
 * buf.c - the byte buffer. Grows by doubling, never past its cap.
 */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include <agentbox/error.h>

void abx__buf_done(abx__buf *buf)
{
	abx__free(buf->data);
	buf->data = NULL;
	buf->len = buf->size = 0;
}

void abx__buf_clear(abx__buf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

int abx__buf_reserve(abx__buf *buf, size_t extra)
{
	size_t cap = buf->cap ? buf->cap : ABX__BUF_DEFAULT_CAP;
	size_t want, size;
	char *data;

	if (extra > cap || buf->len > cap - extra)
		return ABX_ETOOBIG;
	want = buf->len + extra + 1;
	if (want <= buf->size)
		return ABX_OK;
	size = buf->size ? buf->size : 64;
	while (size < want)
		size *= 2;
	data = abx__realloc(buf->data, size);
	if (!data)
		return ABX_ENOMEM;
	if (!buf->data)
		data[0] = '\0';
	buf->data = data;
	buf->size = size;
	return ABX_OK;
}

int abx__buf_add(abx__buf *buf, const void *data, size_t len)
{
	int r = abx__buf_reserve(buf, len);

	if (r < 0)
		return r;
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
	return ABX_OK;
}

int abx__buf_adds(abx__buf *buf, const char *s)
{
	return abx__buf_add(buf, s, strlen(s));
}

int abx__buf_addc(abx__buf *buf, char c)
{
	return abx__buf_add(buf, &c, 1);
}

int abx__buf_vaddf(abx__buf *buf, const char *fmt, va_list ap)
{
	va_list again;
	int len, r;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0)
		return ABX_EINVAL;
	r = abx__buf_reserve(buf, (size_t)len);
	if (r < 0)
		return r;
	vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, ap);
	buf->len += (size_t)len;
	return ABX_OK;
}

int abx__buf_addf(abx__buf *buf, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = abx__buf_vaddf(buf, fmt, ap);
	va_end(ap);
	return r;
}

void abx__buf_consume(abx__buf *buf, size_t len)
{
	if (len >= buf->len) {
		abx__buf_clear(buf);
		return;
	}
	memmove(buf->data, buf->data + len, buf->len - len);
	buf->len -= len;
	buf->data[buf->len] = '\0';
}

const char *abx__buf_str(const abx__buf *buf)
{
	return buf->data ? buf->data : "";
}

char *abx__buf_take(abx__buf *buf)
{
	char *data;

	if (!buf->data && abx__buf_reserve(buf, 0) < 0)
		return NULL;
	data = buf->data;
	buf->data = NULL;
	buf->len = buf->size = 0;
	return data;
}

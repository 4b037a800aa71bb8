/*
 * alloc.c - the allocator seam over libc's malloc. The failure counter is per thread, so
 * a test that fails allocations does not disturb a worker.
 */
#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

static _Thread_local bool failing;
static _Thread_local unsigned remaining;

void abx__test_fail_alloc_after(unsigned n)
{
	failing = true;
	remaining = n;
}

void abx__test_alloc_reset(void)
{
	failing = false;
}

static bool refuse(void)
{
	if (!failing)
		return false;
	if (remaining == 0)
		return true;
	remaining--;
	return false;
}

void *abx__malloc(size_t size)
{
	return refuse() ? NULL : malloc(size ? size : 1);
}

void *abx__calloc(size_t count, size_t size)
{
	return refuse() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void *abx__realloc(void *p, size_t size)
{
	return refuse() ? NULL : realloc(p, size ? size : 1);
}

void *abx__reallocarray(void *p, size_t count, size_t size)
{
	return refuse() ? NULL : reallocarray(p, count ? count : 1, size ? size : 1);
}

void *abx__memdup(const void *src, size_t len)
{
	void *p = abx__malloc(len);

	if (p && len)
		memcpy(p, src, len);
	return p;
}

char *abx__strndup(const char *s, size_t len)
{
	size_t n = strnlen(s, len);
	char *p = abx__malloc(n + 1);

	if (!p)
		return NULL;
	memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

char *abx__strdup(const char *s)
{
	return s ? abx__strndup(s, strlen(s)) : NULL;
}

void abx__free(void *p)
{
	free(p);
}

void abx_free(void *p)
{
	free(p);
}

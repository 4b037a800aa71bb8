/*
 * alloc.h - the allocator seam. Everything in lib/ and platform/ allocates through here,
 * so that a test can fail the n-th allocation and see a documented error instead of a
 * crash.
 */
#ifndef ABX_BASE_ALLOC_H
#define ABX_BASE_ALLOC_H

#include <stddef.h>

#include "base/cleanup.h"

void *abx__malloc(size_t size);
void *abx__calloc(size_t count, size_t size);
void *abx__realloc(void *p, size_t size);
void *abx__reallocarray(void *p, size_t count, size_t size);
char *abx__strdup(const char *s); /* NULL gives NULL */
char *abx__strndup(const char *s, size_t len);
void *abx__memdup(const void *p, size_t len);
void abx__free(void *p);

/* Tests only: the next `n` allocations of this thread succeed, then all fail until reset.
 */
void abx__test_fail_alloc_after(unsigned n);
void abx__test_alloc_reset(void);

static inline __attribute__((unused)) void abx__freep(void *p)
{
	abx__free(*(void **)p);
}

#endif

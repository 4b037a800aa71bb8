/*
 * cleanup.h - give things back at the end of their scope, and hand them over on success.
 */
#ifndef ABX_BASE_CLEANUP_H
#define ABX_BASE_CLEANUP_H

#include <unistd.h>

#define ABX_CLEANUP(fn) __attribute__((cleanup(fn)))

/* The pointer's value, leaving NULL behind, so that its cleanup does nothing. */
#define abx_take(ptr)                             \
	({                                        \
		__typeof__(ptr) *abx__p = &(ptr); \
		__typeof__(ptr) abx__v = *abx__p; \
		*abx__p = NULL;                   \
		abx__v;                           \
	})

/* The same for a descriptor, leaving -1. */
#define abx_take_fd(fd)               \
	({                            \
		int *abx__p = &(fd);  \
		int abx__v = *abx__p; \
		*abx__p = -1;         \
		abx__v;               \
	})

/* Defines `static void NAME(TYPE **)` calling `free_fn` for use with ABX_CLEANUP. */
#define ABX_DEFINE_FREEP(name, type, free_fn)                     \
	static inline __attribute__((unused)) void name(type **p) \
	{                                                         \
		free_fn(*p);                                      \
	}

static inline __attribute__((unused)) void abx__closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#endif

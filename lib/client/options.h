/*
 * options.h - the rule of options structs: `size` first, shorter is fine, longer only
 * when the surplus is zero.
 */
#ifndef ABX_CLIENT_OPTIONS_H
#define ABX_CLIENT_OPTIONS_H

#include <stddef.h>

#include <agentbox/error.h>

/* Copies `src` (NULL: all defaults) into the zeroed `dst` of `size` bytes, whose first
 * member is the size_t `size`. */
int abx__options_copy(void *dst, size_t size, const void *src, const char *name,
		      abx_error **reterr);

#define ABX__OPTIONS(dst, src, reterr) \
	abx__options_copy(&(dst), sizeof(dst), (src), #src, (reterr))

#endif

/*
 * route.c - a path against the pattern of a route, segment by segment. Pure; the path is
 * foreign.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "serve/call.h"

void abx__route_params_free(char *params[ABX__CALL_PARAMS])
{
	for (size_t i = 0; i < ABX__CALL_PARAMS; i++) {
		abx__free(params[i]);
		params[i] = NULL;
	}
}

/* One segment of the pattern against one of the path: 1, 0 or ABX_ENOMEM. */
static int match_part(const char *pattern, size_t pattern_len, const char *path,
		      size_t path_len, char **ret_param)
{
	int r;

	if (pattern[0] != '{')
		return pattern_len == path_len && strncmp(pattern, path, path_len) == 0;
	if (path_len == 0)
		return 0;
	r = abx__url_decode(path, path_len, false, ret_param);
	if (r < 0)
		return r == ABX_ENOMEM ? r : 0;
	return 1;
}

int abx__route_match(const char *pattern, const char *path,
		     char *params[ABX__CALL_PARAMS])
{
	size_t used = 0;

	while (*pattern == '/' && *path == '/') {
		size_t a = strcspn(++pattern, "/"), b = strcspn(++path, "/");
		char *param = NULL;
		int r = match_part(pattern, a, path, b, &param);

		if (param && used < ABX__CALL_PARAMS)
			params[used++] = param;
		if (r <= 0) {
			abx__route_params_free(params);
			return r;
		}
		pattern += a;
		path += b;
	}
	if (*pattern == '\0' && *path == '\0')
		return 1;
	abx__route_params_free(params);
	return 0;
}

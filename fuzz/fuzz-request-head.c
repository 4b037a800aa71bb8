/* What envd reads from a request's head: Basic users, query parameters, parameters of
 * headers, paths. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/auth.h"
#include "envd/content.h"
#include "envd/multipart.h"
#include "envd/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP(abx__freep) char *text = abx__strndup((const char *)data, size);
	ABX_CLEANUP(abx__freep) char *user = NULL;
	ABX_CLEANUP(abx__freep) char *value = NULL;
	ABX_CLEANUP(abx__freep) char *param = NULL;
	ABX_CLEANUP(abx__freep) char *path = NULL;
	ABX_CLEANUP(abx__freep) char *disposition = NULL;
	abx__user who = { .name = (char *)(uintptr_t) "u",
			  .home = (char *)(uintptr_t) "/h" };

	if (!text)
		return 0;
	abx__auth_basic_user(text, &user);
	abx__query_get(text, "path", &value);
	abx__header_param(text, "filename", &param);
	disposition = abx__content_disposition(param ? param : text);
	if (disposition && strpbrk(disposition, "\r\n"))
		abort();
	if (abx__path_resolve(param ? param : text, &who, NULL, &path, NULL) == ABX_OK &&
	    *path != '/')
		abort();
	return 0;
}

/*
 * files.c - what GET and POST /files have in common: who asks, for which path.
 */
#include "envd/files.h"

#include "base/alloc.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/envd.h"

bool abx__files_find_user(struct abx__envd *envd, abx__http_req *req, abx__user *ret)
{
	ABX_CLEANUP(abx__freep) char *name = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (abx__query_get(abx__http_req_query(req), "username", &name) < 0) {
		abx__answer_error(req, 400, "the username parameter is broken");
		return false;
	}
	if (!name || !*name) {
		abx__free(name);
		name = abx__strdup(envd->default_user);
	}
	if (!name || !*name) {
		abx__answer_error(req, 400, "username not provided");
		return false;
	}
	if (abx__users_find(&envd->users, name, ret, &err) == ABX_OK)
		return true;
	abx__answer_error(req, 401, "error looking up user '%.256s': %s", name,
			  abx_error_message(err));
	return false;
}

bool abx__files_read_path(abx__http_req *req, char **ret)
{
	if (abx__query_get(abx__http_req_query(req), "path", ret) >= 0)
		return true;
	abx__answer_error(req, 400, "the path parameter is broken or holds a NUL byte");
	return false;
}

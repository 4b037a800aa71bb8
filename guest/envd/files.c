/*
 * files.c - what the file endpoints have in common: who asks, for which path.
 */
#include "envd/files.h"

#include "base/alloc.h"
#include "envd/answer.h"
#include "envd/auth.h"
#include "envd/envd.h"

bool abx__files_authorize(struct abx__envd *envd, abx__http_req *req,
			  const char *operation, abx__signing *ret)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = abx__signing_read(abx__http_req_query(req), ret, &err);

	if (r >= 0)
		return abx__auth_check_file_token(envd, req, ret, operation);
	abx__answer_error(req, r == ABX_ENOMEM ? 500 : 400, "%s", abx_error_message(err));
	return false;
}

const char *abx__files_username(struct abx__envd *envd, abx__http_req *req,
				const char *given)
{
	const char *name = given && *given ? given : envd->default_user;

	if (*name)
		return name;
	abx__answer_error(req, 400, "username not provided");
	return NULL;
}

bool abx__files_find_user(struct abx__envd *envd, abx__http_req *req, const char *name,
			  abx__user *ret)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (abx__users_find(&envd->users, name, ret, &err) == ABX_OK)
		return true;
	abx__answer_error(req, 401, "error looking up user '%.256s': %s", name,
			  abx_error_message(err));
	return false;
}

/*
 * file-url.c - addresses others can fetch a file from or send one to, signed as envd
 * checks them. Nothing is sent.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file-signature.h"
#include "base/str.h"
#include "client/file-info.h"
#include "client/options.h"
#include "client/request.h"
#include "client/sandbox.h"

/* "?path=P[&username=U]", encoded. */
static char *make_query(const char *path, const char *user)
{
	ABX_CLEANUP(abx__freep) char *coded = abx__url_encode(path);
	ABX_CLEANUP(abx__freep) char *user_coded = user ? abx__url_encode(user) : NULL;

	if (!coded || (user && !user_coded))
		return NULL;
	return abx__strf("/files?path=%s%s%s", coded, user ? "&username=" : "",
			 user ? user_coded : "");
}

/* "&signature=S[&signature_expiration=N]", or "" for a sandbox that has no token. */
static int make_signature(const abx_sandbox *sandbox, const char *path,
			  const char *operation, const abx_file_url_options *opts,
			  char **ret, abx_error **reterr)
{
	char signature[ABX__FILE_SIGNATURE_SIZE];
	ABX_CLEANUP(abx__freep) char *coded = NULL;
	int64_t expires_s = 0;

	if (!sandbox->token) {
		*ret = abx__strdup("");
		return *ret ? ABX_OK : abx__error_nomem(reterr);
	}
	if (opts->expires_in_ms)
		expires_s = (abx__wall_ms() + opts->expires_in_ms + 999) / 1000;
	if (abx__file_signature(path, operation, opts->user ? opts->user : "",
				sandbox->token, expires_s ? &expires_s : NULL,
				signature) < 0)
		return abx__error_nomem(reterr);
	coded = abx__url_encode(signature);
	if (coded && expires_s)
		*ret = abx__strf("&signature=%s&signature_expiration=%" PRId64, coded,
				 expires_s);
	else if (coded)
		*ret = abx__strf("&signature=%s", coded);
	return coded && *ret ? ABX_OK : abx__error_nomem(reterr);
}

static int file_url(abx_sandbox *sandbox, const char *path, const char *operation,
		    const abx_file_url_options *user_opts, char **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *base = NULL;
	ABX_CLEANUP(abx__freep) char *query = NULL;
	ABX_CLEANUP(abx__freep) char *signature = NULL;
	abx_file_url_options opts;
	int r;

	if (!sandbox || !ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "the URL of a file: an argument is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_file_url_options",
				   reterr)) < 0 ||
	    (r = abx__file_check_path("the URL of a file", path, reterr)) < 0)
		return r;
	if (opts.expires_in_ms && !sandbox->token) {
		abx__error_set(reterr, ABX_EINVAL,
			       "a URL of sandbox %s cannot expire: no access token of it "
			       "is known",
			       sandbox->id);
		abx__error_hint(reterr, "make the handle with abx_sandbox_create() or "
					"abx_sandbox_connect()");
		return ABX_EINVAL;
	}
	if ((r = abx_sandbox_get_url(sandbox, ABX__ENVD_PORT, &base, reterr)) < 0 ||
	    (r = make_signature(sandbox, path, operation, &opts, &signature, reterr)) < 0)
		return r;
	query = make_query(path, opts.user);
	if (!query || !(*ret = abx__strf("%s%s%s", base, query, signature)))
		return abx__error_nomem(reterr);
	return ABX_OK;
}

int abx_file_get_download_url(abx_sandbox *sandbox, const char *path,
			      const abx_file_url_options *opts, char **ret,
			      abx_error **reterr)
{
	return file_url(sandbox, path, "read", opts, ret, reterr);
}

int abx_file_get_upload_url(abx_sandbox *sandbox, const char *path,
			    const abx_file_url_options *opts, char **ret,
			    abx_error **reterr)
{
	return file_url(sandbox, path, "write", opts, ret, reterr);
}

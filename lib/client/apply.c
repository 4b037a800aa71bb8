/*
 * apply.c - manifests become requests of the native API.
 */
#include "base/error.h"
#include "client/client.h"

int abx_platform_apply(abx_client *client, const char *text, size_t len,
		       const abx_apply_options *opts, char **ret, abx_error **reterr)
{
	(void)client, (void)text, (void)len, (void)opts, (void)ret;
	return abx__error_set(reterr, ABX_EUNSUPPORTED,
			      "manifests cannot be applied yet");
}

int abx_platform_apply_async(abx_client *client, const char *text, size_t len,
			     const abx_apply_options *opts, abx_text_fn done,
			     void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			     abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_TEXT, text, done);

	return abx__then_end(&then,
			     abx_platform_apply(client, text, len, opts, NULL, reterr));
}

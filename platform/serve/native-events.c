/*
 * native-events.c - what happened to an env and its pools (native-api.md, section 7.3).
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/native.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 500

void abx__native_events(abx__call *call)
{
	const char *query = abx__http_req_query(call->req);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *text = NULL;
	ABX_CLEANUP_JSON json_object *env = abx__native_env_of(call);
	json_object *events = NULL;
	uint64_t limit = LIMIT_DEFAULT;
	int r;

	if (!env)
		return;
	r = query ? abx__query_get(query, "limit", &text) : 0;
	if (r < 0 || (r == 1 && abx__parse_u64(text, 1, LIMIT_MAX, &limit) < 0))
		abx__call_fail(call, 400, "limit is 1 to %d", LIMIT_MAX);
	else if (abx__control_env_events(call->serve->control, call->who.namespace_,
					 call->params[0], limit, &events, &err) < 0)
		abx__call_error(call, err);
	else
		abx__native_page(call, events, false);
}

/*
 * auth.c - who asks: the key of a request, in any of the headers clients use for it.
 */
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "serve/call.h"

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* The presented key, blanks around it cut, into `out`; false when there is none or it is
 * longer than any key. */
static bool presented(const abx__http_req *req, char *out, size_t size)
{
	static const char *const headers[] = { "X-API-Key", "AGENTBOX-API-KEY" };
	const char *value = NULL;
	size_t len;

	for (size_t i = 0; !value && i < sizeof(headers) / sizeof(headers[0]); i++)
		value = abx__http_req_header(req, headers[i]);
	if (!value) {
		value = abx__http_req_header(req, "Authorization");
		if (!value || strncasecmp(value, "Bearer ", 7) != 0)
			return false;
		value += 7;
	}
	value = skip_blanks(value);
	len = strlen(value);
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	if (len == 0 || len >= size)
		return false;
	memcpy(out, value, len);
	out[len] = '\0';
	return true;
}

const abx__identity *abx__auth_check(const abx__serve *serve, const abx__http_req *req,
				     const char **ret_why)
{
	const abx__api_key *key;
	char text[257];

	if (abx__http_req_is_unix(req))
		return &abx__identity_local;
	if (!presented(req, text, sizeof(text))) {
		*ret_why = "missing api key";
		return NULL;
	}
	key = abx__keys_find(serve->keys, text);
	abx__wipe(text, sizeof(text));
	if (key)
		return &key->who;
	*ret_why = "invalid api key";
	return NULL;
}

bool abx__serve_is_authenticated(abx__serve *serve, const abx__http_req *req)
{
	const char *why;

	return abx__auth_check(serve, req, &why) != NULL;
}

void abx__serve_refuse(abx__serve *serve, abx__http_req *req)
{
	static const char body[] = "{\"error\":\"unauthorized\"}";

	(void)serve;
	if (abx__http_res_send(req, 401, "application/json", body, strlen(body)) < 0)
		abx__http_res_abort(req);
}

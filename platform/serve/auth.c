/*
 * auth.c - who asks: the console session or the key of a request, in any of the headers
 * clients use for it, and whom an admin acts as.
 */
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "serve/call.h"
#include "serve/jwt.h"

#define PERSON_MAX 253

/* `value` without the blanks around it, into `out`; false when nothing is left or it does
 * not fit. */
static bool trim(const char *value, char *out, size_t size)
{
	size_t len;

	if (!value)
		return false;
	value += strspn(value, " \t");
	len = strlen(value);
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	if (len == 0 || len >= size)
		return false;
	memcpy(out, value, len);
	out[len] = '\0';
	return true;
}

static const char *bearer(const abx__http_req *req)
{
	const char *value = abx__http_req_header(req, "Authorization");

	return value && strncasecmp(value, "Bearer ", 7) == 0 ? value + 7 : NULL;
}

/* ---- keys ---- */

static bool presented_key(const abx__http_req *req, char *out, size_t size)
{
	static const char *const headers[] = { "X-API-Key", "AGENTBOX-API-KEY" };
	const char *value = NULL;

	for (size_t i = 0; !value && i < sizeof(headers) / sizeof(headers[0]); i++)
		value = abx__http_req_header(req, headers[i]);
	return trim(value ? value : bearer(req), out, size);
}

static int check_key(const abx__serve *serve, const abx__http_req *req,
		     abx__identity *ret, abx_error **reterr)
{
	const abx__api_key *key;
	char text[257];

	if (!presented_key(req, text, sizeof(text)))
		return abx__error_set(reterr, ABX_EUNAUTHENTICATED, "missing api key");
	key = abx__keys_find(serve->keys, text);
	abx__wipe(text, sizeof(text));
	if (!key || !*key->who.team || !*key->who.user)
		return abx__error_set(reterr, ABX_EUNAUTHENTICATED, "invalid api key");
	return abx__identity_copy(ret, &key->who) < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

/* ---- sessions ---- */

/* A bearer that begins as our keys do is one of them: clients that know the console alone
   send it so. */
static bool is_session(const abx__serve *serve, const char *token)
{
	return serve->jwt_secret && token && !abx__str_starts(token, "agbx_") &&
	       !abx__str_starts(token, "e2b_");
}

static int check_session(const abx__serve *serve, const char *token, abx__identity *ret,
			 abx_error **reterr)
{
	char text[ABX__JWT_MAX + 1];
	abx__jwt jwt;
	int r;

	if (!trim(token, text, sizeof(text)))
		return abx__error_set(reterr, ABX_EUNAUTHENTICATED,
				      "invalid session token");
	r = abx__jwt_verify(text, serve->jwt_secret,
			    serve->clock->wall_ms(serve->clock->userdata), &jwt, reterr);
	abx__wipe(text, sizeof(text));
	if (r < 0)
		return r;
	const abx__identity who = {
		.admin = jwt.admin,
		.session = true,
		.team = jwt.team,
		.user = jwt.user,
		.namespace_ = abx__keys_namespace_of(serve->keys, jwt.team, jwt.user),
		.key_name = "",
		.email = jwt.email,
	};
	return abx__identity_copy(ret, &who) < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

/* Whoever may open the socket may do all. One that shows an agent's key there says that
 * it is an agent, and is taken at its word. */
static int check_socket(const abx__serve *serve, const abx__http_req *req,
			abx__identity *ret, abx_error **reterr)
{
	if (check_key(serve, req, ret, NULL) == ABX_OK && ret->agent)
		return ABX_OK;
	abx__identity_done(ret);
	return abx__identity_copy(ret, &abx__identity_local) < 0
		       ? abx__error_nomem(reterr)
		       : ABX_OK;
}

int abx__auth_check(const abx__serve *serve, const abx__http_req *req, abx__identity *ret,
		    abx_error **reterr)
{
	const char *token = bearer(req);

	if (abx__http_req_is_unix(req))
		return check_socket(serve, req, ret, reterr);
	if (token)
		token += strspn(token, " \t");
	if (is_session(serve, token))
		return check_session(serve, token, ret, reterr);
	return check_key(serve, req, ret, reterr);
}

/* ---- acting as somebody else ---- */

/* 1; 0: absent or blank; ABX_EINVAL. */
static int person(const abx__http_req *req, const char *header, char out[PERSON_MAX + 1],
		  abx_error **reterr)
{
	const char *value = abx__http_req_header(req, header);

	if (!value || !value[strspn(value, " \t")])
		return 0;
	if (!trim(value, out, PERSON_MAX + 1))
		return abx__error_set(reterr, ABX_EINVAL, "%s has at most %d bytes",
				      header, PERSON_MAX);
	return 1;
}

int abx__auth_impersonate(const abx__serve *serve, const abx__http_req *req,
			  abx__identity *who, abx_error **reterr)
{
	char team[PERSON_MAX + 1], user[PERSON_MAX + 1];
	int has_team, has_user;

	if (!who->admin)
		return ABX_OK;
	has_team = person(req, "X-Impersonate-Team", team, reterr);
	if (has_team < 0)
		return has_team;
	has_user = person(req, "X-Impersonate-User", user, reterr);
	if (has_user <= 0 || has_team == 0)
		return has_user < 0 ? has_user : ABX_OK;
	if (abx__identity_set(&who->team, team) < 0 ||
	    abx__identity_set(&who->user, user) < 0 ||
	    abx__identity_set(&who->namespace_,
			      abx__keys_namespace_of(serve->keys, team, user)) < 0)
		return abx__error_nomem(reterr);
	who->acts_as = true;
	return ABX_OK;
}

/* ---- the data plane ---- */

bool abx__serve_is_authenticated(abx__serve *serve, const abx__http_req *req)
{
	abx__identity who = { 0 };
	bool ok = abx__auth_check(serve, req, &who, NULL) == ABX_OK;

	abx__identity_done(&who);
	return ok;
}

void abx__serve_refuse(abx__serve *serve, abx__http_req *req)
{
	static const char body[] = "{\"error\":\"unauthorized\"}";

	(void)serve;
	if (abx__http_res_send(req, 401, "application/json", body, strlen(body)) < 0)
		abx__http_res_abort(req);
}

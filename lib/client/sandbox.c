/*
 * sandbox.c - the handle of a sandbox: making one, from an id or an answer, and where its
 * ports are.
 */
#include "client/sandbox.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/client.h"
#include "io/json.h"

#define MAX_ID 128

/* ---- the handle ---- */

abx_sandbox *abx__sandbox_ref(abx_sandbox *sandbox)
{
	sandbox->refs++;
	return sandbox;
}

void abx_sandbox_free(abx_sandbox *sandbox)
{
	if (!sandbox || --sandbox->refs)
		return;
	abx__client_unref(sandbox->client);
	abx__free(sandbox->id);
	abx__free(sandbox->template_id);
	abx__free(sandbox->domain);
	abx__secret_free(sandbox->token);
	if (sandbox->traffic_token)
		abx__wipe(sandbox->traffic_token, strlen(sandbox->traffic_token));
	abx__free(sandbox->traffic_token);
	abx__free(sandbox);
}

abx_sandbox *abx__sandbox_new(abx_client *client, const char *id)
{
	abx_sandbox *sandbox = abx__calloc(1, sizeof(*sandbox));

	if (!sandbox)
		return NULL;
	sandbox->refs = 1;
	sandbox->client = abx__client_ref(client);
	sandbox->id = abx__strdup(id);
	if (!sandbox->id) {
		abx_sandbox_free(sandbox);
		return NULL;
	}
	return sandbox;
}

int abx__sandbox_check_id(const char *id, abx_error **reterr)
{
	size_t len = id ? strlen(id) : 0;

	if (len && len <= MAX_ID &&
	    strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-") == len && id[0] != '.' &&
	    id[0] != '-')
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "'%.40s' is not a sandbox id",
			      id ? id : "");
}

int abx_sandbox_open(abx_client *client, const char *id, abx_sandbox **ret,
		     abx_error **reterr)
{
	int r;

	if (!client || !ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_sandbox_open: an argument is NULL");
	r = abx__sandbox_check_id(id, reterr);
	if (r < 0)
		return r;
	abx_sandbox *sandbox = abx__sandbox_new(client, id);
	if (!sandbox)
		return abx__error_nomem(reterr);
	*ret = sandbox;
	return ABX_OK;
}

const char *abx_sandbox_id(abx_sandbox *sandbox)
{
	return sandbox->id;
}

const char *abx_sandbox_template_id(abx_sandbox *sandbox)
{
	return sandbox->template_id;
}

const char *abx_sandbox_traffic_token(abx_sandbox *sandbox)
{
	return sandbox->traffic_token;
}

/* ---- from an answer ---- */

ABX_DEFINE_FREEP(sandbox_freep, abx_sandbox, abx_sandbox_free)

static int copy_member(json_object *obj, const char *key, char **ret, abx_error **reterr)
{
	const char *value = NULL;
	int r = abx__json_get_str(obj, key, &value, reterr);

	if (r < 0)
		return ABX_EPROTO;
	if (!value || !*value)
		return ABX_OK;
	*ret = abx__strdup(value);
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

int abx__sandbox_parse(abx_client *client, json_object *obj, abx_sandbox **ret,
		       abx_error **reterr)
{
	ABX_CLEANUP(sandbox_freep) abx_sandbox *sandbox = NULL;
	const char *id = NULL;
	const char *token = NULL;
	int r;

	if (abx__json_get_str(obj, "sandboxID", &id, NULL) <= 0 ||
	    abx__sandbox_check_id(id, NULL) < 0)
		return abx__error_set(reterr, ABX_EPROTO, "the answer has no sandboxID");
	sandbox = abx__sandbox_new(client, id);
	if (!sandbox)
		return abx__error_nomem(reterr);
	if ((r = copy_member(obj, "templateID", &sandbox->template_id, reterr)) < 0 ||
	    (r = copy_member(obj, "domain", &sandbox->domain, reterr)) < 0 ||
	    (r = copy_member(obj, "trafficAccessToken", &sandbox->traffic_token,
			     reterr)) < 0)
		return r;
	if (abx__json_get_str(obj, "envdAccessToken", &token, reterr) < 0)
		return ABX_EPROTO;
	if (token && *token && !strpbrk(token, "\r\n")) {
		sandbox->token = abx__secret_new(token, strlen(token));
		if (!sandbox->token)
			return abx__error_nomem(reterr);
	}
	*ret = abx_take(sandbox);
	return ABX_OK;
}

/* A variable with such a name could be set, and no shell could ever use it: always a
 * mistake in quoting. */
static bool name_has_blank(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f)
			return true;
	return false;
}

int abx__pairs_json(const char *what, const char *const *pairs, json_object **ret,
		    abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = json_object_new_object();

	if (!obj)
		return abx__error_nomem(reterr);
	for (size_t i = 0; pairs && pairs[i]; i++) {
		ABX_CLEANUP(abx__freep) char *key = NULL;
		const char *equals = strchr(pairs[i], '=');

		/* The value may be a secret, so the message shows no more than a key. */
		if (!equals || equals == pairs[i])
			return abx__error_set(reterr, ABX_EINVAL,
					      "%s: entry %zu is not KEY=VALUE", what, i);
		if (!abx__utf8_is_valid(pairs[i], strlen(pairs[i])))
			return abx__error_set(reterr, ABX_EINVAL,
					      "%s: entry %zu is not UTF-8", what, i);
		if (abx__str_eq(what, "env_vars") &&
		    name_has_blank(pairs[i], (size_t)(equals - pairs[i])))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"%s: the name of entry %zu has a blank or a "
				"control character in it",
				what, i);
		key = abx__strndup(pairs[i], (size_t)(equals - pairs[i]));
		if (!key || abx__json_set_str(obj, key, equals + 1) < 0)
			return abx__error_nomem(reterr);
	}
	*ret = abx_take(obj);
	return ABX_OK;
}

uint32_t abx__seconds_up(uint32_t ms)
{
	return ms / 1000 + (ms % 1000 != 0);
}

/* ---- reaching it ---- */

char *abx__sandbox_base(const abx_sandbox *sandbox, unsigned port, const char *path)
{
	const abx__settings *s = &sandbox->client->settings;

	if (s->form == ABX__DATA_HEADERS)
		return abx__strf("%s%s", s->data_base, path);
	if (s->form == ABX__DATA_PATH)
		return abx__strf("%s/sandboxes/%s/%u%s", s->data_base, sandbox->id, port,
				 path);
	return abx__strf("%s://%u-%s.%s%s", s->scheme, port, sandbox->id,
			 sandbox->domain ? sandbox->domain : s->domain, path);
}

static int host_of(abx_sandbox *sandbox, unsigned port, bool with_scheme, char **ret,
		   abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *url = NULL;
	const abx__settings *s;

	if (!sandbox || !ret || port == 0 || port > 65535)
		return abx__error_set(reterr, ABX_EINVAL,
				      "port %u is not one of 1 to 65535", port);
	s = &sandbox->client->settings;
	if (sandbox->domain || s->form == ABX__DATA_HOST)
		url = abx__strf("%s://%u-%s.%s", s->scheme, port, sandbox->id,
				sandbox->domain ? sandbox->domain : s->domain);
	else if (s->public_base)
		url = abx__strf("%s/sandboxes/%s/%u", s->public_base, sandbox->id, port);
	else {
		abx__error_set(reterr, ABX_EUNSUPPORTED,
			       "sandbox %s: the platform is known by its socket %s only",
			       sandbox->id, s->socket_path);
		abx__error_hint(reterr,
				"set AGENTBOX_CLUSTER_API to its address, such as "
				"http://127.0.0.1:8080");
		return ABX_EUNSUPPORTED;
	}
	if (url && !with_scheme)
		memmove(url, strstr(url, "://") + 3, strlen(strstr(url, "://") + 3) + 1);
	if (!url)
		return abx__error_nomem(reterr);
	*ret = abx_take(url);
	return ABX_OK;
}

int abx_sandbox_get_host(abx_sandbox *sandbox, unsigned port, char **ret,
			 abx_error **reterr)
{
	return host_of(sandbox, port, false, ret, reterr);
}

int abx_sandbox_get_url(abx_sandbox *sandbox, unsigned port, char **ret,
			abx_error **reterr)
{
	return host_of(sandbox, port, true, ret, reterr);
}

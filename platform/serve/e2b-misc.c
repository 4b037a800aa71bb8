/*
 * e2b-misc.c - the small calls of the E2B API that SDKs and CLI make beside the rest.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/e2b.h"
#include "serve/view.h"

/* ---- template aliases: what `Template.exists()` asks ---- */

/* [NAMESPACE/]NAME[:TAG] of E2B, trimmed and lower-cased: an env has the tag "default"
   alone, and no namespace but the caller's. */
static int read_alias(const char *text, const char *namespace_, char **ret_name,
		      char **ret_tag, abx_error **reterr)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
	ABX_CLEANUP(abx__freep) char *name = NULL;
	size_t len = strlen(text);
	char *tag, *slash;

	while (len > 0 && strchr(" \t", *text))
		text++, len--;
	while (len > 0 && strchr(" \t", text[len - 1]))
		len--;
	name = abx__strndup(text, len);
	if (!name)
		return abx__error_nomem(reterr);
	for (char *c = name; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	tag = strchr(name, ':');
	if (tag)
		*tag++ = '\0';
	slash = strchr(name, '/');
	if (slash)
		*slash++ = '\0';
	if ((slash && strcmp(name, namespace_) != 0) || !*(slash ? slash : name) ||
	    (slash ? slash : name)[strspn(slash ? slash : name, plain)] ||
	    (tag &&
	     (!*tag || tag[strspn(tag, "abcdefghijklmnopqrstuvwxyz0123456789-_.")])))
		return abx__error_set(reterr, ABX_EINVAL, "Invalid alias format: \"%s\"",
				      text);
	*ret_name = abx__strdup(slash ? slash : name);
	*ret_tag = abx__strdup(tag ? tag : "default");
	return *ret_name && *ret_tag ? ABX_OK : abx__error_nomem(reterr);
}

static json_object *alias_of(const char *name)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_str(o, "templateID", name) < 0 ||
	    abx__json_set_bool(o, "public", false) < 0)
		return NULL;
	return abx_take(o);
}

void abx__e2b_template_alias(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *name = NULL;
	ABX_CLEANUP(abx__freep) char *tag = NULL;
	ABX_CLEANUP_JSON json_object *env = NULL;
	int r = read_alias(call->params[0], call->who.namespace_, &name, &tag, &err);

	if (r == ABX_OK)
		r = abx__control_env_get(call->serve->control, call->who.namespace_, name,
					 &env, &err);
	if (r == ABX_ENOTFOUND)
		abx__call_fail(call, 404, "template '%s' not found", name);
	else if (r < 0)
		abx__call_error(call, err);
	else if (!abx__view_visible(&call->who, env))
		abx__call_fail(call, 403, "You don't have access to this template alias");
	else if (strcmp(tag, "default") != 0)
		abx__call_fail(call, 404, "tag '%s' does not exist for template '%s'",
			       tag, name);
	else
		abx__call_json(call, 200, alias_of(name));
}

/* ---- teams and access tokens ---- */

/* A key is told once, when it is made: `apiKey` stays empty. */
void abx__e2b_teams(abx__call *call)
{
	ABX_CLEANUP_JSON json_object *array = json_object_new_array();
	json_object *o = json_object_new_object();

	if (!array || !o || abx__json_set_str(o, "teamID", call->who.team) < 0 ||
	    abx__json_set_str(o, "name", call->who.team) < 0 ||
	    abx__json_set_str(o, "apiKey", "") < 0 ||
	    abx__json_set_bool(o, "isDefault", true) < 0) {
		json_object_put(o);
		abx__call_nomem(call);
		return;
	}
	abx__call_json(call, 200,
		       abx__json_push_take(array, o) < 0 ? NULL : abx_take(array));
}

/* There are keys and no other credential; E2B deprecates access tokens itself. */
void abx__e2b_access_token(abx__call *call)
{
	if (strcmp(abx__http_req_method(call->req), "POST") == 0)
		abx__call_fail(call, 410,
			       "access tokens are not issued by this server; use an API "
			       "key");
	else
		abx__call_fail(call, 404, "access token '%s' not found", call->params[0]);
}

/* ---- egress rules ---- */

/* An update replaces the egress rules; without any there are none to clear. */
void abx__e2b_network_update(abx__call *call)
{
	static const char *const known[] = {
		"allowOut", "denyOut", "egressProxy", "rules", "allow_internet_access",
		NULL
	};
	const abx__sandbox_rec *rec = abx__call_sandbox(call);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r;

	if (!rec)
		return;
	r = abx__json_only(call->body, known, &err);
	if (r == ABX_OK)
		r = abx__e2b_egress_check(call->body, &err);
	if (r == ABX_OK)
		r = abx__e2b_only_bool(call->body, "allow_internet_access",
				       "allow_internet_access: false", true, &err);
	if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_empty(call, 204);
}

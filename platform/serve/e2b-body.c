/*
 * e2b-body.c - what a create asks for. Every field is honoured or refused by name; the
 * reserved metadata keys are read and not kept (e2b-control-api.md, sections 5 and 12).
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "model/keys.h"
#include "serve/e2b.h"

#define MAP_MAX 256
#define MCP_MAX 64

int abx__e2b_unsupported(const char *field, abx_error **reterr)
{
	return abx__error_set(reterr, ABX_EUNSUPPORTED,
			      "%s is not supported by this server yet", field);
}

int abx__e2b_seconds(json_object *body, const char *key, int64_t *ret_ms,
		     abx_error **reterr)
{
	json_object *v = NULL;
	int64_t n;

	if (!json_object_object_get_ex(body, key, &v) || !v)
		return 0;
	n = json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : 0;
	if (n <= 0 || n > INT32_MAX)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s must be a positive integer number of seconds",
				      key);
	*ret_ms = n * 1000;
	return 1;
}

/* ---- fields that may only say what is the case anyway ---- */

int abx__e2b_only_bool(json_object *o, const char *key, const char *name, bool allowed,
		       abx_error **reterr)
{
	bool v = allowed;
	int r = abx__json_get_bool(o, key, &v, reterr);

	if (r < 0)
		return r;
	return v == allowed ? ABX_OK : abx__e2b_unsupported(name, reterr);
}

int abx__e2b_only_empty(json_object *o, const char *key, const char *name,
			abx_error **reterr)
{
	json_object *v = NULL;
	bool empty;

	if (!json_object_object_get_ex(o, key, &v) || !v)
		return ABX_OK;
	empty = (json_object_is_type(v, json_type_object) &&
		 json_object_object_length(v) == 0) ||
		(json_object_is_type(v, json_type_array) &&
		 json_object_array_length(v) == 0) ||
		(json_object_is_type(v, json_type_string) &&
		 json_object_get_string_len(v) == 0);
	return empty ? ABX_OK : abx__e2b_unsupported(name, reterr);
}

static int check_nested(json_object *body, const char *object, const char *key,
			abx_error **reterr)
{
	const char *const known[] = { key, NULL };
	ABX_CLEANUP(abx__freep) char *name = abx__strf("%s.%s", object, key);
	json_object *o = NULL;
	int r = abx__json_get_object(body, object, &o, reterr);

	if (r <= 0)
		return r;
	if (!name)
		return abx__error_nomem(reterr);
	r = abx__json_only(o, known, reterr);
	if (r < 0)
		return abx__error_prefix(reterr, "%s", object);
	return abx__e2b_only_empty(o, key, name, reterr);
}

/* What its timeout does to it, and traffic once it is paused. */
static int parse_lifecycle(json_object *body, abx__lifecycle *ret, abx_error **reterr)
{
	static const char *const known[] = { "enabled", NULL };
	json_object *resume = NULL;
	bool memory = true;
	int r = abx__json_get_bool(body, "autoPause", &ret->auto_pause, reterr);

	if (r >= 0)
		r = abx__json_get_bool(body, "autoPauseMemory", &memory, reterr);
	if (r >= 0)
		r = abx__json_get_object(body, "autoResume", &resume, reterr);
	if (r == 1) {
		r = abx__json_only(resume, known, reterr);
		if (r >= 0)
			r = abx__json_get_bool(resume, "enabled", &ret->auto_resume,
					       reterr);
		if (r == 0)
			r = abx__error_set(reterr, ABX_EINVAL, "enabled is required");
		if (r < 0)
			return abx__error_prefix(reterr, "autoResume");
	}
	if (r < 0)
		return r;
	ret->files_only = !memory;
	if (!memory && !ret->auto_pause)
		return abx__error_set(reterr, ABX_EINVAL,
				      "autoPauseMemory: false says how a timeout pauses: "
				      "it needs autoPause");
	if (!memory && ret->auto_resume)
		return abx__error_set(reterr, ABX_EINVAL,
				      "autoPauseMemory: false does not go with "
				      "autoResume: without its memory a sandbox is "
				      "resumed explicitly only");
	return ABX_OK;
}

/* The SDK starts the gateway in the sandbox itself, with this as its configuration. What
   a server does is note which servers were asked for; their settings may be secret. */
static int parse_mcp(json_object *body, abx__e2b_create *c, abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf names = ABX__BUF_INIT;
	json_object *mcp = NULL;
	int r = abx__json_get_object(body, "mcp", &mcp, reterr);

	if (r <= 0)
		return r;
	if (json_object_object_length(mcp) > MCP_MAX)
		return abx__error_set(reterr, ABX_EINVAL, "mcp has over %d servers",
				      MCP_MAX);
	json_object_object_foreach(mcp, name, settings)
	{
		if (!json_object_is_type(settings, json_type_object))
			return abx__error_set(reterr, ABX_EINVAL,
					      "mcp[\"%s\"] must be an object", name);
		if (abx__buf_addf(&names, "%s%.64s", names.len ? "," : "", name) < 0)
			return abx__error_nomem(reterr);
	}
	c->mcp = abx__buf_take(&names);
	return c->mcp ? ABX_OK : abx__error_nomem(reterr);
}

static int check_unhonoured(json_object *body, abx_error **reterr)
{
	int r = abx__e2b_only_bool(body, "allow_internet_access",
				   "allow_internet_access: false", true, reterr);

	if (r == ABX_OK)
		r = check_nested(body, "iam", "tokens", reterr);
	if (r == ABX_OK)
		r = abx__e2b_only_empty(body, "volumeMounts", "volumeMounts", reterr);
	return r;
}

/* ---- reserved metadata ---- */

/* "true" and "1", or their opposites. */
static int flag(const char *key, const char *value, bool *ret, abx_error **reterr)
{
	*ret = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
	if (*ret || strcmp(value, "false") == 0 || strcmp(value, "0") == 0)
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL,
			      "metadata \"%s\" is true or false, not \"%s\"", key, value);
}

static int copy_to(char **ret, const char *key, const char *value, abx_error **reterr)
{
	if (!*value)
		return abx__error_set(reterr, ABX_EINVAL, "metadata \"%s\" is empty",
				      key);
	abx__free(*ret);
	*ret = abx__strdup(value);
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

static int take_reserved(abx__e2b_create *c, const char *key, const char *value,
			 abx_error **reterr)
{
	bool on = false;
	int64_t s = 0;
	int r;

	if (strcmp(key, ABX__METADATA_IMAGE) == 0)
		return copy_to(&c->image, key, value, reterr);
	if (strcmp(key, ABX__METADATA_SCALING_GROUP) == 0)
		return copy_to(&c->scaling_group, key, value, reterr);
	if (strcmp(key, ABX__METADATA_NO_WAIT) == 0)
		return flag(key, value, &c->no_wait, reterr);
	if (strcmp(key, ABX__METADATA_STARTUP_TIMEOUT) == 0) {
		if (abx__parse_i64(value, 1, 86400, &s) < 0)
			return abx__error_set(
				reterr, ABX_EINVAL,
				"metadata \"%s\" is 1 to 86400 seconds, not \"%s\"", key,
				value);
		c->startup_timeout_ms = s * 1000;
		return ABX_OK;
	}
	if (strcmp(key, ABX__METADATA_ALLOW_PRIVATE) == 0) {
		r = flag(key, value, &on, reterr);
		return r == ABX_OK && on
			       ? abx__e2b_unsupported(
					 "metadata " ABX__METADATA_ALLOW_PRIVATE, reterr)
			       : r;
	}
	return abx__error_set(reterr, ABX_EINVAL,
			      "metadata \"%s\" is not a reserved key known here", key);
}

static int split_metadata(abx__e2b_create *c, abx_error **reterr)
{
	size_t i = 0;

	if (c->metadata.count > MAP_MAX)
		return abx__error_set(reterr, ABX_EINVAL, "metadata has over %d keys",
				      MAP_MAX);
	while (i < c->metadata.count) {
		const abx__map_item *item = &c->metadata.items[i];
		int r;

		if (!abx__str_starts(item->key, ABX__METADATA_PREFIX)) {
			i++;
			continue;
		}
		r = take_reserved(c, item->key, item->value, reterr);
		if (r < 0)
			return r;
		abx__map_remove(&c->metadata, item->key);
	}
	return ABX_OK;
}

/* ---- the body ---- */

static int parse_secure(json_object *body, bool v2, bool *ret, abx_error **reterr)
{
	int r;

	*ret = v2;
	r = abx__json_get_bool(body, "secure", ret, reterr);
	if (r < 0)
		return r;
	if (v2 && !*ret)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"secure: sandboxes created with v2 are always secure");
	return ABX_OK;
}

static int check_env_vars(const abx__map *vars, abx_error **reterr)
{
	if (vars->count > MAP_MAX)
		return abx__error_set(reterr, ABX_EINVAL, "envVars has over %d names",
				      MAP_MAX);
	for (size_t i = 0; i < vars->count; i++)
		if (strchr(vars->items[i].key, '='))
			return abx__error_set(reterr, ABX_EINVAL,
					      "envVars: \"%s\" is not a name",
					      vars->items[i].key);
	return ABX_OK;
}

static int parse_address(json_object *body, abx__e2b_create *c, abx_error **reterr)
{
	const char *id = NULL;
	int r = abx__json_get_str(body, "templateID", &id, reterr);

	if (r < 0)
		return r;
	if (r == 0 || id[strspn(id, " \t")] == '\0')
		return abx__error_set(reterr, ABX_EINVAL, "templateID is required");
	r = abx__address_parse(id, &c->address, reterr);
	if (r < 0)
		return abx__error_prefix(reterr, "templateID");
	return ABX_OK;
}

static int parse_fields(json_object *body, bool v2, abx__e2b_create *c,
			abx_error **reterr)
{
	int r = parse_address(body, c, reterr);

	if (r == ABX_OK)
		r = abx__e2b_seconds(body, "timeout", &c->idle_timeout_ms, reterr);
	if (r >= 0)
		r = parse_secure(body, v2, &c->secure, reterr);
	if (r == ABX_OK)
		r = abx__json_get_map(body, "envVars", &c->env_vars, reterr);
	if (r >= 0)
		r = check_env_vars(&c->env_vars, reterr);
	if (r == ABX_OK)
		r = abx__json_get_map(body, "metadata", &c->metadata, reterr);
	if (r >= 0)
		r = split_metadata(c, reterr);
	if (r == ABX_OK)
		r = parse_lifecycle(body, &c->lifecycle, reterr);
	if (r == ABX_OK)
		r = check_unhonoured(body, reterr);
	if (r == ABX_OK)
		r = parse_mcp(body, c, reterr);
	if (r == ABX_OK)
		r = abx__e2b_network_parse(body, c->secure, &c->ingress, reterr);
	/* The metadata key wins over the address. */
	if (r == ABX_OK && !c->image && c->address.image) {
		c->image = abx__strdup(c->address.image);
		if (!c->image)
			r = abx__error_nomem(reterr);
	}
	return r;
}

int abx__e2b_create_parse(json_object *body, bool v2, abx__e2b_create *ret,
			  abx_error **reterr)
{
	static const char *const known[] = {
		"templateID",      "timeout",    "autoPause",
		"autoPauseMemory", "autoResume", "secure",
		"metadata",        "envVars",    "allow_internet_access",
		"network",         "mcp",        "iam",
		"volumeMounts",    NULL
	};
	abx__e2b_create c = { 0 };
	int r = abx__json_only(body, known, reterr);

	if (r == ABX_OK)
		r = parse_fields(body, v2, &c, reterr);
	if (r < 0) {
		abx__e2b_create_done(&c);
		return r;
	}
	*ret = c;
	return ABX_OK;
}

void abx__e2b_create_done(abx__e2b_create *create)
{
	abx__address_done(&create->address);
	abx__map_done(&create->metadata);
	abx__map_done(&create->env_vars);
	abx__free(create->image);
	abx__free(create->scaling_group);
	abx__free(create->mcp);
	memset(create, 0, sizeof(*create));
}

/*
 * names.c - checked names and derived names.
 */
#include "model/names.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/quantity.h"

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(const char *s, size_t len)
{
	if (len == 0 || len > ABX__DNS_LABEL_MAX || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_lower_alnum(s[i]) && s[i] != '-')
			return false;
	return true;
}

bool abx__dns_label_is_valid(const char *s)
{
	return is_label(s, strnlen(s, ABX__DNS_LABEL_MAX + 1));
}

bool abx__dns_subdomain_is_valid(const char *s)
{
	if (strnlen(s, ABX__DNS_SUBDOMAIN_MAX + 1) > ABX__DNS_SUBDOMAIN_MAX)
		return false;
	for (;;) {
		size_t len = strcspn(s, ".");

		if (!is_label(s, len))
			return false;
		if (!s[len])
			return true;
		s += len + 1;
	}
}

int abx__env_name_check(const char *name, abx_error **reterr)
{
	size_t len = strnlen(name, ABX__ENV_NAME_MAX + 1);

	if (len > ABX__ENV_NAME_MAX) {
		abx__error_set(reterr, ABX_EINVAL,
			       "env name \"%.64s\" is longer than %d characters", name,
			       ABX__ENV_NAME_MAX);
		abx__error_hint(
			reterr,
			"pool and Pod names are derived from it; choose a shorter "
			"one");
		return ABX_EINVAL;
	}
	if (is_label(name, len) && name[0] >= 'a')
		return ABX_OK;
	abx__error_set(reterr, ABX_EINVAL, "env name \"%s\" is not valid", name);
	abx__error_hint(reterr,
			"1 to %d lower-case letters, digits and '-', a letter first, no "
			"'-' last",
			ABX__ENV_NAME_MAX);
	return ABX_EINVAL;
}

int abx__object_name_check(const char *what, const char *name, abx_error **reterr)
{
	if (abx__dns_label_is_valid(name))
		return ABX_OK;
	abx__error_set(reterr, ABX_EINVAL, "%s name \"%.80s\" is not valid", what, name);
	abx__error_hint(
		reterr,
		"1 to %d lower-case letters, digits and '-', a letter or digit at "
		"both ends",
		ABX__DNS_LABEL_MAX);
	return ABX_EINVAL;
}

int abx__resource_key(int64_t cpu_milli, int64_t memory_bytes,
		      char out[ABX__RESOURCE_KEY_SIZE], abx_error **reterr)
{
	bool whole_cores = cpu_milli % 1000 == 0;
	bool whole_gib = memory_bytes % GIB == 0;
	int64_t memory = whole_gib ? memory_bytes / GIB
				   : memory_bytes / MIB + (memory_bytes % MIB != 0);

	if (cpu_milli < 0 || memory_bytes < 0 || (cpu_milli == 0 && memory_bytes == 0)) {
		abx__error_set(reterr, ABX_EINVAL,
			       "no pool can be named without a CPU or memory "
			       "size");
		abx__error_hint(reterr, "give inlineResources with requests.cpu and "
					"requests.memory");
		return ABX_EINVAL;
	}
	snprintf(out, ABX__RESOURCE_KEY_SIZE, "%lld%s%lld%s",
		 (long long)(whole_cores ? cpu_milli / 1000 : cpu_milli),
		 whole_cores ? "c" : "mc", (long long)memory, whole_gib ? "gi" : "mi");
	return ABX_OK;
}

/* A quantity in a resource list: a JSON number is taken as its text, as Kubernetes does.
 */
static int resource(json_object *list, const char *list_name, const char *name,
		    bool milli, int64_t *ret, abx_error **reterr)
{
	json_object *value = json_object_object_get(list, name);
	enum json_type type = json_object_get_type(value);
	const char *text;
	int r;

	*ret = 0;
	if (!value)
		return ABX_OK;
	if (type != json_type_string && type != json_type_int && type != json_type_double)
		return abx__error_set(reterr, ABX_EINVAL, "%s.%s: expected a quantity",
				      list_name, name);
	text = json_object_get_string(value);
	if (!text)
		return abx__error_nomem(reterr);
	r = milli ? abx__quantity_milli(text, ret, reterr)
		  : abx__quantity_bytes(text, ret, reterr);
	if (r < 0)
		abx__error_prefix(reterr, "%s.%s", list_name, name);
	return r;
}

int abx__resources_shape(json_object *resources, int64_t *ret_cpu_milli,
			 int64_t *ret_memory_bytes, abx_error **reterr)
{
	json_object *list = json_object_object_get(resources, "requests");
	const char *list_name = "requests";
	int64_t cpu, memory;
	int r;

	if (!list || (json_object_is_type(list, json_type_object) &&
		      json_object_object_length(list) == 0)) {
		list_name = "limits";
		list = json_object_object_get(resources, "limits");
	}
	if (list && !json_object_is_type(list, json_type_object))
		return abx__error_set(reterr, ABX_EINVAL, "%s: expected an object",
				      list_name);
	r = resource(list, list_name, "cpu", true, &cpu, reterr);
	if (r < 0)
		return r;
	r = resource(list, list_name, "memory", false, &memory, reterr);
	if (r < 0)
		return r;
	*ret_cpu_milli = cpu;
	*ret_memory_bytes = memory;
	return ABX_OK;
}

int abx__pool_name(const char *env, const char *resource_key, const char *quota_short,
		   char **ret, abx_error **reterr)
{
	bool with_quota = quota_short && *quota_short;
	ABX_CLEANUP(abx__freep)
	char *name = abx__strf("%s-%s%s%s", env, resource_key, with_quota ? "-" : "",
			       with_quota ? quota_short : "");
	int r;

	if (!name)
		return abx__error_nomem(reterr);
	r = abx__object_name_check("pool", name, reterr);
	if (r < 0)
		return r;
	*ret = abx_take(name);
	return ABX_OK;
}

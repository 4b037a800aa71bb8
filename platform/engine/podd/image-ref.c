/*
 * image-ref.c - what a reference means on this machine: the alias table, the schemes of
 * our own, and references as registries' clients complete them. Pure.
 */
#include "engine/podd/image.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

#define REFERENCE_MAX 512

static const char *alias_lookup(json_object *aliases, const char *reference)
{
	json_object *value;

	if (!aliases)
		return NULL;
	if (json_object_object_get_ex(aliases, reference, &value) &&
	    json_object_is_type(value, json_type_string))
		return json_object_get_string(value);
	json_object_object_foreach(aliases, key, v)
	{
		size_t len = strlen(key);

		if (len > 1 && key[len - 1] == '*' &&
		    strncmp(reference, key, len - 1) == 0 &&
		    json_object_is_type(v, json_type_string))
			return json_object_get_string(v);
	}
	return NULL;
}

/* "docker:29-dind" as the registries' clients complete it. NULL when out of memory. */
static char *complete_reference(const char *reference)
{
	const char *slash = strchr(reference, '/');
	size_t head = slash ? (size_t)(slash - reference) : 0;
	bool host =
		slash && (memchr(reference, '.', head) || memchr(reference, ':', head) ||
			  strncmp(reference, "localhost/", 10) == 0);
	const char *last = strrchr(reference, '/');
	bool tagged = strchr(last ? last : reference, ':') || strchr(reference, '@');

	return abx__strf("%s%s%s%s", host ? "" : "docker.io/",
			 host || slash ? "" : "library/", reference,
			 tagged ? "" : ":latest");
}

bool abx__image_is_local(const char *reference)
{
	return abx__str_starts(reference, "oci:") ||
	       abx__str_starts(reference, "oci-archive:") ||
	       abx__str_starts(reference, ABX__SNAPSHOT_SCHEME) ||
	       strcmp(reference, "host:") == 0 || strcmp(reference, "runtime:") == 0 ||
	       strcmp(reference, "idle:") == 0;
}

char *abx__image_resolve(json_object *aliases, const char *reference)
{
	const char *to = alias_lookup(aliases, reference);
	char *whole;

	if (to)
		return abx__strdup(to);
	if (abx__image_is_local(reference))
		return abx__strdup(reference);
	whole = complete_reference(reference);
	to = whole ? alias_lookup(aliases, whole) : NULL;
	if (to) {
		abx__free(whole);
		return abx__strdup(to);
	}
	return whole;
}

bool abx__image_name_is_valid(const char *reference)
{
	size_t len = strlen(reference);

	return len >= 1 && len <= REFERENCE_MAX && reference[0] != '-' &&
	       !strstr(reference, "..") &&
	       strspn(reference,
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		      "._:/@+-") == len;
}

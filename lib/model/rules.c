/*
 * rules.c - rules between fields.
 */
#include "model/rules.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "model/image-ref.h"
#include "model/names.h"

#define CONTAINERS_MAX 16

int abx__rules_replica_bounds(const char *path, int32_t min, bool has_max, int32_t max,
			      abx_error **reterr)
{
	if (!has_max || min <= max)
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL,
			      "%sminReplicas: %d is more than maxReplicas, which is %d",
			      path, min, max);
}

int abx__rules_group(const char *path, int32_t min, bool has_max, int32_t max,
		     enum abx__m_scale_up_mode mode, abx_error **reterr)
{
	if (mode == ABX__M_SCALE_UP_MODE_AGGRESSIVE && !has_max) {
		abx__error_set(
			reterr, ABX_EINVAL,
			"%smaxReplicas: required with scaleUpPolicy.mode Aggressive",
			path);
		abx__error_hint(reterr, "give maxReplicas, or another mode");
		return ABX_EINVAL;
	}
	return abx__rules_replica_bounds(path, min, has_max, max, reterr);
}

static const char *member_string(json_object *object, const char *key)
{
	json_object *value = json_object_object_get(object, key);

	return json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : NULL;
}

static int check_container(json_object *list, size_t index, const char *where,
			   abx_error **reterr)
{
	json_object *container = json_object_array_get_idx(list, index);
	const char *name, *image;
	int r;

	if (!json_object_is_type(container, json_type_object))
		return abx__error_set(reterr, ABX_EINVAL, "%s: expected an object",
				      where);
	name = member_string(container, "name");
	if (!name || !abx__dns_label_is_valid(name))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"%s.name: required, in lower-case letters, digits and '-'",
			where);
	for (size_t i = 0; i < index; i++)
		if (abx__str_eq(name, member_string(json_object_array_get_idx(list, i),
						    "name")))
			return abx__error_set(reterr, ABX_EINVAL,
					      "%s.name: \"%s\" is there twice", where,
					      name);
	image = member_string(container, "image");
	if (!image)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s.image: required, but not given", where);
	r = abx__image_ref_check(image, reterr);
	if (r < 0)
		abx__error_prefix(reterr, "%s.image", where);
	return r;
}

static int check_containers(const char *path, json_object *spec, const char *key,
			    bool required, abx_error **reterr)
{
	json_object *list = json_object_object_get(spec, key);

	if (!list && !required)
		return ABX_OK;
	if (!json_object_is_type(list, json_type_array) ||
	    (required && json_object_array_length(list) == 0))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"%sspec.%s: expected an array with at least one container", path,
			key);
	if (json_object_array_length(list) > CONTAINERS_MAX)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%sspec.%s: more than %d containers", path, key,
				      CONTAINERS_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		char where[128];
		int r;

		snprintf(where, sizeof(where), "%sspec.%s[%zu]", path, key, i);
		r = check_container(list, i, where, reterr);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

int abx__rules_pod_template(const char *path, json_object *pod_template,
			    abx_error **reterr)
{
	json_object *spec = json_object_object_get(pod_template, "spec");
	int r;

	if (!json_object_is_type(spec, json_type_object))
		return abx__error_set(reterr, ABX_EINVAL,
				      "%sspec: required, but not given", path);
	r = check_containers(path, spec, "containers", true, reterr);
	return r < 0 ? r : check_containers(path, spec, "initContainers", false, reterr);
}

int32_t abx__rules_max_unavailable(const char *text, int32_t replicas)
{
	size_t len = text ? strspn(text, "0123456789") : 0;
	int64_t value = 20;
	char digits[16];
	bool percent = !text || text[len] == '%';

	if (len > 0 && len < sizeof(digits)) {
		memcpy(digits, text, len);
		digits[len] = '\0';
		if (abx__parse_i64(digits, 0, INT32_MAX, &value) < 0)
			value = INT32_MAX;
	}
	if (percent)
		value = value * replicas / 100;
	if (value > INT32_MAX)
		value = INT32_MAX;
	return value < 1 ? 1 : (int32_t)value;
}

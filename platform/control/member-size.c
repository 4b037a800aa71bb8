/*
 * member-size.c - the size of a member's Pods: inline resources, or an instance type
 * times a multiplier, by the rule of its env (native-api.md, section 9.2). What is
 * derived is written into the member when it is made, so a catalogue that changes later
 * changes no pool.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/members.h"
#include "model/quantity.h"

#define SIZING_BILLED "billed"
#define SIZING_FREE "free-form"
#define SIZING_EITHER "either"
#define MULTIPLIER_MAX 10000

bool abx__pool_sizing_is_valid(const char *sizing)
{
	return strcmp(sizing, SIZING_BILLED) == 0 || strcmp(sizing, SIZING_FREE) == 0 ||
	       strcmp(sizing, SIZING_EITHER) == 0;
}

static const char *sizing_of(json_object *env_doc)
{
	const char *sizing = abx__field_str(
		abx__field_object(abx__field_object(env_doc, "metadata"), "labels"),
		ABX__LABEL_POOL_SIZING);

	return sizing ? sizing : SIZING_EITHER;
}

/* --- the catalogue --- */

const abx__instance_type *abx__instance_type_find(const abx__control *control,
						  const char *name)
{
	const abx__capacity *capacity = control->config.capacity;
	const abx__instance_type *type;

	if (!capacity || !name)
		return NULL;
	for (size_t i = 0; (type = capacity->ops->type_at(capacity, i)); i++)
		if (strcmp(type->name, name) == 0)
			return type;
	return NULL;
}

const abx__quota *abx__quota_find(const abx__control *control, const char *url)
{
	const abx__capacity *capacity = control->config.capacity;
	const abx__quota *quota;

	if (!capacity || !url)
		return NULL;
	for (size_t i = 0; (quota = capacity->ops->quota_at(capacity, i)); i++)
		if (strcmp(quota->url, url) == 0)
			return quota;
	return NULL;
}

/* CPU in thousandths, memory in bytes, anything else in thousandths. */
static int quantity(const char *resource, const char *text, int64_t *ret,
		    abx_error **reterr)
{
	return strcmp(resource, "memory") == 0 ? abx__quantity_bytes(text, ret, reterr)
					       : abx__quantity_milli(text, ret, reterr);
}

static int times(const char *resource, const char *base, int64_t multiplier,
		 char out[ABX__QUANTITY_SIZE], abx_error **reterr)
{
	int64_t n;
	int r = quantity(resource, base, &n, reterr);

	if (r < 0)
		return r;
	if (n > INT64_MAX / multiplier)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s %s times %" PRId64 " is too much", resource,
				      base, multiplier);
	if (strcmp(resource, "memory") == 0)
		abx__quantity_print_bytes(n * multiplier, out);
	else
		abx__quantity_print_milli(n * multiplier, out);
	return ABX_OK;
}

/* {requests, limits}, both the whole envelope. */
static int envelope(const abx__instance_type *type, int64_t multiplier, json_object **ret,
		    abx_error **reterr)
{
	ABX_CLEANUP(abx__json_putp) json_object *resources = json_object_new_object();
	ABX_CLEANUP(abx__json_putp) json_object *requests = json_object_new_object();
	ABX_CLEANUP(abx__json_putp) json_object *limits = json_object_new_object();

	if (!resources || !requests || !limits)
		return abx__error_nomem(reterr);
	json_object_object_foreach(type->base_resources, key, value)
	{
		char text[ABX__QUANTITY_SIZE];
		int r = times(key, json_object_get_string(value), multiplier, text,
			      reterr);

		if (r < 0)
			return abx__error_prefix(reterr, "config.instanceType %s",
						 type->name);
		if (abx__field_set_str(requests, key, text) < 0 ||
		    abx__field_set_str(limits, key, text) < 0)
			return abx__error_nomem(reterr);
	}
	if (abx__field_share(resources, "requests", requests) < 0 ||
	    abx__field_share(resources, "limits", limits) < 0)
		return abx__error_nomem(reterr);
	*ret = abx_take(resources);
	return ABX_OK;
}

/* Every dimension asked for is in the envelope. */
static int fits(const char *part, json_object *asked, json_object *most, const char *type,
		abx_error **reterr)
{
	if (!asked)
		return ABX_OK;
	json_object_object_foreach(asked, key, value)
	{
		const char *text = json_object_get_string(value);
		const char *limit = abx__field_str(most, key);
		int64_t wants = 0, may = 0;
		int r = quantity(key, text ? text : "", &wants, reterr);

		if (r == ABX_OK && limit)
			r = quantity(key, limit, &may, reterr);
		if (r < 0)
			return abx__error_prefix(reterr, "config.inlineResources.%s.%s",
						 part, key);
		if (wants > may)
			return abx__error_set(
				reterr, ABX_EINVAL,
				"config.inlineResources.%s.%s is %s; instanceType %s "
				"with its multiplier has %s",
				part, key, text, type, limit ? limit : "none of it");
	}
	return ABX_OK;
}

/* --- a new member --- */

static int check_sizing(const char *sizing, json_object *config, abx_error **reterr)
{
	const char *quota =
		abx__field_str(abx__field_object(config, "labels"), ABX__LABEL_QUOTA);
	bool type = abx__field_str(config, "instanceType") != NULL;
	bool inline_ = abx__field_object(config, "inlineResources") != NULL;
	const char *refused = type                               ? "config.instanceType"
			      : abx__field(config, "multiplier") ? "config.multiplier"
			      : quota ? "config.labels[\"" ABX__LABEL_QUOTA "\"]"
				      : NULL;

	if (strcmp(sizing, SIZING_BILLED) == 0 && (!quota || !type))
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s is required: pools of this env are billed "
				      "(poolSizing billed)",
				      quota ? "config.instanceType"
					    : "config.labels[\"" ABX__LABEL_QUOTA "\"]");
	if (strcmp(sizing, SIZING_FREE) == 0 && refused)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s is refused: pools of this env are sized by "
				      "inlineResources alone (poolSizing free-form)",
				      refused);
	if (strcmp(sizing, SIZING_FREE) == 0 && !inline_)
		return abx__error_set(reterr, ABX_EINVAL,
				      "config.inlineResources is required: it is the "
				      "Pod's size (poolSizing free-form)");
	if (!type && !inline_)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"config.inlineResources is required: it is the Pod's size "
			"(or config.instanceType, where there is a catalogue)");
	if (!type && abx__field(config, "multiplier"))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"config.multiplier multiplies an instanceType; there is none");
	return ABX_OK;
}

static int check_type(const abx__control *control, json_object *config,
		      const abx__instance_type **ret, int64_t *ret_multiplier,
		      abx_error **reterr)
{
	const char *name = abx__field_str(config, "instanceType");
	int64_t multiplier = abx__field_int(config, "multiplier", 1);

	*ret = abx__instance_type_find(control, name);
	*ret_multiplier = multiplier;
	if (!name)
		return ABX_OK;
	if (!control->config.capacity ||
	    !control->config.capacity->ops->has_types(control->config.capacity))
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"config.instanceType %s: this cluster has no instance type "
			"catalogue; give inlineResources",
			name);
	if (!*ret) {
		abx__error_set(reterr, ABX_EINVAL,
			       "config.instanceType %s is not in the catalogue", name);
		abx__error_hint(reterr, "see: abx instancetypes");
		return ABX_EINVAL;
	}
	if (multiplier < 1 || multiplier > MULTIPLIER_MAX ||
	    ((*ret)->max_multiplier > 0 && multiplier > (*ret)->max_multiplier))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"config.multiplier is %" PRId64 "; instanceType %s allows 1..%d",
			multiplier, name,
			(*ret)->max_multiplier ? (*ret)->max_multiplier : MULTIPLIER_MAX);
	return ABX_OK;
}

static bool may_use(const abx__quota *quota, json_object *env_doc)
{
	json_object *labels =
		abx__field_object(abx__field_object(env_doc, "metadata"), "labels");

	return (!quota->team ||
		abx__str_eq(quota->team, abx__field_str(labels, ABX__LABEL_TEAM))) &&
	       (!quota->user ||
		abx__str_eq(quota->user, abx__field_str(labels, ABX__LABEL_USER)));
}

/* Where there are quotas, the label names one of them. */
static int check_quota(const abx__control *control, json_object *env_doc,
		       json_object *member, const abx__instance_type *type,
		       int64_t multiplier, abx_error **reterr)
{
	const abx__capacity *capacity = control->config.capacity;
	json_object *config = abx__field_object(member, "config");
	const char *url =
		abx__field_str(abx__field_object(config, "labels"), ABX__LABEL_QUOTA);
	int64_t replicas =
		abx__field_int(abx__field_object(member, "spec"), "replicas", 0);
	const abx__quota *quota = abx__quota_find(control, url);
	int64_t most;

	if (!url || !capacity || !capacity->ops->has_quotas(capacity))
		return ABX_OK;
	if (!quota || !may_use(quota, env_doc)) {
		abx__error_set(reterr, ABX_EINVAL,
			       "config.labels[\"" ABX__LABEL_QUOTA
			       "\"]: there is no quota %s for you",
			       url);
		abx__error_hint(reterr, "see: abx quotas");
		return ABX_EINVAL;
	}
	if (!type)
		return abx__error_set(reterr, ABX_EINVAL,
				      "config.instanceType is required with a quota: "
				      "quotas count instance types");
	most = capacity->ops->ceiling(capacity, quota, type->name);
	if (replicas == 0 || most == ABX__CEILING_NONE || most >= multiplier)
		return ABX_OK;
	abx__error_set(reterr, ABX_EEXHAUSTED,
		       "quota %s allows %" PRId64 " of instance type %s, a Pod takes "
		       "%" PRId64,
		       url, most, type->name, multiplier);
	abx__error_hint(reterr, "ask whoever owns the quota for an allocation");
	return ABX_EEXHAUSTED;
}

/* What a Pod takes of its quota, for whoever reads the pool. */
static int note_reservation(json_object *config, const abx__instance_type *type,
			    int64_t multiplier, abx_error **reterr)
{
	json_object *annotations = abx__field_object(config, "annotations");
	ABX_CLEANUP(abx__json_putp) json_object *counts = json_object_new_object();
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, multiplier);
	if (!annotations &&
	    abx__field_take(config, "annotations", json_object_new_object()) < 0)
		return abx__error_nomem(reterr);
	annotations = abx__field_object(config, "annotations");
	if (!counts || abx__field_set_str(counts, type->name, text) < 0 ||
	    abx__field_set_str(
		    annotations, ABX__ANNOTATION_RESERVATION_QUOTA,
		    json_object_to_json_string_ext(counts, JSON_C_TO_STRING_PLAIN)) < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

int abx__member_size_new(const abx__control *control, json_object *env_doc,
			 json_object *member, abx_error **reterr)
{
	json_object *config = abx__field_object(member, "config");
	json_object *asked = abx__field_object(config, "inlineResources");
	ABX_CLEANUP(abx__json_putp) json_object *most = NULL;
	const abx__instance_type *type = NULL;
	int64_t multiplier = 1;
	int r = check_sizing(sizing_of(env_doc), config, reterr);

	if (r == ABX_OK)
		r = check_type(control, config, &type, &multiplier, reterr);
	if (r == ABX_OK)
		r = check_quota(control, env_doc, member, type, multiplier, reterr);
	if (r < 0 || !type)
		return r;
	r = envelope(type, multiplier, &most, reterr);
	if (r == ABX_OK && asked)
		r = fits("requests", abx__field_object(asked, "requests"),
			 abx__field_object(most, "requests"), type->name, reterr);
	if (r == ABX_OK && asked)
		r = fits("limits", abx__field_object(asked, "limits"),
			 abx__field_object(most, "limits"), type->name, reterr);
	if (r == ABX_OK && !asked &&
	    abx__field_share(config, "inlineResources", most) < 0)
		r = abx__error_nomem(reterr);
	return r < 0 ? r : note_reservation(config, type, multiplier, reterr);
}

/* --- any member --- */

/* Without inline resources it is a new one, sized by its type alone. */
static int shape(const abx__control *control, json_object *config, int64_t *ret_cpu,
		 int64_t *ret_memory, abx_error **reterr)
{
	json_object *resources = abx__field_object(config, "inlineResources");
	ABX_CLEANUP(abx__json_putp) json_object *most = NULL;
	const abx__instance_type *type = NULL;
	int64_t multiplier;
	int r;

	if (resources)
		return abx__resources_shape(resources, ret_cpu, ret_memory, reterr);
	r = check_type(control, config, &type, &multiplier, reterr);
	if (r < 0)
		return r;
	if (!type)
		return check_sizing(SIZING_EITHER, config, reterr);
	r = envelope(type, multiplier, &most, reterr);
	return r < 0 ? r : abx__resources_shape(most, ret_cpu, ret_memory, reterr);
}

int abx__member_key(const abx__control *control, json_object *member,
		    char key[ABX__RESOURCE_KEY_SIZE], int64_t *ret_cpu,
		    int64_t *ret_memory, abx_error **reterr)
{
	int r = shape(control, abx__field_object(member, "config"), ret_cpu, ret_memory,
		      reterr);

	return r < 0 ? r : abx__resource_key(*ret_cpu, *ret_memory, key, reterr);
}

const char *abx__member_quota_short(const abx__control *control, json_object *member)
{
	const char *url = abx__field_str(
		abx__field_object(abx__field_object(member, "config"), "labels"),
		ABX__LABEL_QUOTA);
	const abx__quota *quota = abx__quota_find(control, url);

	return quota ? quota->short_name : NULL;
}

/*
 * capacity.h - what a Pod may be sized by and how many of them an owner may have: the
 * catalogue of instance types and the quotas (native-api.md, sections 9 and 11). A port:
 * control/ owns it; capacity-docs.c fills it from two documents, a deployment with an
 * accounting system of its own fills it from that.
 *
 * Calls answer at once, from memory. What they give lives as long as the provider.
 */
#ifndef ABX_CONTROL_CAPACITY_H
#define ABX_CONTROL_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

typedef struct abx__instance_type {
	const char *name;
	json_object *base_resources; /* map of quantities */
	int max_multiplier;          /* 0: no cap */
	json_object *document;       /* as it is listed: InstanceType of native.yaml */
} abx__instance_type;

#define ABX__CEILING_NONE INT64_C(-1)

typedef struct abx__quota {
	const char *id;
	const char *url;         /* what a pool's label quota.scitix.ai/url says */
	const char *short_name;  /* the end of its pools' names; NULL: none */
	const char *team, *user; /* who may use it; NULL: anybody */
	json_object *total;      /* map: instance type to count, as strings; NULL: none */
	json_object *metadata;   /* map of strings; NULL: none */
} abx__quota;

typedef struct abx__capacity abx__capacity;
typedef struct abx__capacity_ops {
	const char *name;
	bool (*has_types)(const abx__capacity *capacity);
	bool (*has_quotas)(const abx__capacity *capacity);
	/* By name; NULL past the end. */
	const abx__instance_type *(*type_at)(const abx__capacity *capacity, size_t index);
	const abx__quota *(*quota_at)(const abx__capacity *capacity, size_t index);
	/* Units of the type that may be used in all; 0: none; ABX__CEILING_NONE: nothing
	   limits them. */
	int64_t (*ceiling)(const abx__capacity *capacity, const abx__quota *quota,
			   const char *type);
	/* Of these, what is set aside for others. */
	int64_t (*reserved)(const abx__capacity *capacity, const abx__quota *quota,
			    const char *type);
	void (*free)(abx__capacity *capacity);
} abx__capacity_ops;

struct abx__capacity {
	const abx__capacity_ops *ops;
	/* a filling's own struct starts with this one */
};

/* From {items: [...]} documents, as api/capacity.yaml describes them; either may be NULL:
   there is no such thing here. Copied. ABX_EINVAL naming the entry and the field. */
int abx__capacity_docs_new(json_object *types, json_object *quotas, abx__capacity **ret,
			   abx_error **reterr);
void abx__capacity_free(abx__capacity *capacity);

#define ABX__QUOTA_SKIP_CHECK "quota.scitix.ai/skip-check"

struct abx__control;

/* For GET /feature-gates. */
bool abx__control_has_instance_types(const struct abx__control *control);
bool abx__control_has_quotas(const struct abx__control *control);
/* New arrays: InstanceType objects by name; Quota objects {id, name, team, user,
   resources {total, used, reserved, free: map of type to count}, metadata} by name, those
   that this team and user may use (NULL, NULL: all). Empty without a provider.
   ABX_ENOMEM. */
int abx__control_instance_types(const struct abx__control *control, json_object **ret,
				abx_error **reterr);
int abx__control_quotas(const struct abx__control *control, const char *team,
			const char *user, json_object **ret, abx_error **reterr);

#endif

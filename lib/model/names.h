/*
 * names.h - the names that are checked and the names that are derived (crds.md, section
 * 6).
 */
#ifndef ABX_MODEL_NAMES_H
#define ABX_MODEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#define ABX__ENV_NAME_MAX 24
#define ABX__DNS_LABEL_MAX 63
#define ABX__DNS_SUBDOMAIN_MAX 253
#define ABX__RESOURCE_KEY_SIZE 48

/* RFC 1123: 1..63 of [a-z0-9-], a letter or digit at both ends. */
bool abx__dns_label_is_valid(const char *s);
/* Labels joined by dots, at most 253. */
bool abx__dns_subdomain_is_valid(const char *s);
/* 1..24, `^[a-z]([a-z0-9-]*[a-z0-9])?$`. ABX_EINVAL naming the name and the rule. */
int abx__env_name_check(const char *name, abx_error **reterr);
/* For pools, templates and groups: `what` ("pool") names the object in the error.
 * ABX_EINVAL. */
int abx__object_name_check(const char *what, const char *name, abx_error **reterr);

/* "2c8gi". ABX_EINVAL when both are zero: there is no key for that. */
int abx__resource_key(int64_t cpu_milli, int64_t memory_bytes,
		      char out[ABX__RESOURCE_KEY_SIZE], abx_error **reterr);
/* Of a {requests, limits} object: requests, or limits when there are no requests. Absent
   counts as zero. ABX_EINVAL for a bad quantity, naming it as `requests.cpu`. */
int abx__resources_shape(json_object *resources, int64_t *ret_cpu_milli,
			 int64_t *ret_memory_bytes, abx_error **reterr);
/* "{env}-{key}", plus "-{quota_short}" when that is neither NULL nor empty. A new string.
   ABX_EINVAL when the result is not a DNS label. */
int abx__pool_name(const char *env, const char *resource_key, const char *quota_short,
		   char **ret, abx_error **reterr);

#endif

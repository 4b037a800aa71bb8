/*
 * rules.h - rules between fields, which a schema cannot say. Each error names the field,
 * below `path` ("" at the root of a body, else ending in a dot).
 */
#ifndef ABX_MODEL_RULES_H
#define ABX_MODEL_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "model/gen/crds.h"

/* min <= max, where a maximum is given. ABX_EINVAL. */
int abx__rules_replica_bounds(const char *path, int32_t min, bool has_max, int32_t max,
			      abx_error **reterr);
/* The same, and a maximum for mode Aggressive (crds.md, section 2.3). */
int abx__rules_group(const char *path, int32_t min, bool has_max, int32_t max,
		     enum abx__m_scale_up_mode mode, abx_error **reterr);
/* A Pod template has the shape everything else relies on: spec.containers with at least
   one entry, each with a name of its own and an image; init containers the same. What an
   engine can honour is the engine's to say. */
int abx__rules_pod_template(const char *path, json_object *pod_template,
			    abx_error **reterr);
/* crds.md, section 2.1 and native-api.md, section 9.2: how many idle Pods may be
   unavailable at once, from "3" or "20%" (NULL: 20%) of `replicas`, rounded down, at
   least 1. */
int32_t abx__rules_max_unavailable(const char *text, int32_t replicas);

#endif

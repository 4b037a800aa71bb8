/*
 * revision.h - the hash that tells whether an idle Pod still is what its pool describes
 * (crds.md, section 5).
 */
#ifndef ABX_MODEL_REVISION_H
#define ABX_MODEL_REVISION_H

#include <agentbox/error.h>
#include <json-c/json.h>

#define ABX__REVISION_SIZE 9

/* FNV-1a-32 as 8 hex digits over the normalised pool spec with sorted keys; "" for NULL.
   The spec is not changed. Left out: replicas, default timeouts, maxUnavailable,
   templateName, the template-hash label. Under the policy IdleImage the first container's
   image does not count, idleImage does. ABX_EINVAL for a spec nested past 64. */
int abx__revision(json_object *pool_spec, char out[ABX__REVISION_SIZE],
		  abx_error **reterr);

#endif

/*
 * ingress.h - how traffic to a sandbox's own ports is let in (struct abx__ingress): the
 * rules for its values, and its form as JSON, in which it stands on the Pod and in the
 * answers of the E2B API: {allowPublicTraffic, maskRequestHost?, httpsPorts?}. Pure.
 *
 * Rules from e2b-control-api.md sections 0 and 7.
 */
#ifndef ABX_CONTROL_INGRESS_H
#define ABX_CONTROL_INGRESS_H

#include <agentbox/error.h>
#include <json-c/json.h>

#include "control/sandboxes.h"

#define ABX__ANNOTATION_INGRESS ABX__KEY_PREFIX "ingress"

/* HOST or HOST:PORT; "${PORT}" may stand for any part of it. Nothing that is not
   printable ASCII, and nothing that could end a header's line. ABX_EINVAL with E2B's
   text. */
int abx__ingress_check_mask(const char *mask, abx_error **reterr);
/* 1 to 65535 and not the runtime's own port, which is no user's. */
int abx__ingress_check_https_port(int64_t port, abx_error **reterr);
/* Whether it says anything but the default. */
bool abx__ingress_is_set(const abx__ingress *ingress);
/* A new object; NULL: out of memory. */
json_object *abx__ingress_json(const abx__ingress *ingress);
/* Reads what abx__ingress_json() wrote; what is missing or broken is left at the safe
   value: a document nobody can read keeps the traffic out. */
void abx__ingress_read(json_object *obj, abx__ingress *ret);

#endif

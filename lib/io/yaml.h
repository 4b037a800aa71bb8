/*
 * yaml.h - YAML text becomes json-c objects, through libyaml's events.
 *
 * Plain scalars follow YAML 1.2's core schema, with one exception kept for manifests
 * written for Kubernetes: an integer with a leading zero is octal, as kubectl reads it.
 * Quoted and block scalars are strings. Refused, with the line: anchors and aliases, tags
 * other than the core ones, merge keys, duplicate or non-scalar keys, infinities and NaN,
 * and whatever is over a cap.
 */
#ifndef ABX_IO_YAML_H
#define ABX_IO_YAML_H

#include <stddef.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#define ABX__YAML_MAX_DEPTH 64
#define ABX__YAML_MAX_DOCUMENTS 1000
#define ABX__YAML_DEFAULT_MAX_BYTES ((size_t)4 << 20)

/* All documents of the text as a JSON array; empty documents are left out. `max_bytes` 0:
   the default. ABX_EINVAL or ABX_ETOOBIG, with "YAML, line N: ...". */
int abx__yaml_parse(const char *text, size_t len, size_t max_bytes, json_object **ret,
		    abx_error **reterr);

#endif

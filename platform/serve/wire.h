/*
 * wire.h - pieces of bodies both surfaces share. Pure; inside of serve/ only.
 */
#ifndef ABX_SERVE_WIRE_H
#define ABX_SERVE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "base/map.h"

/* Adds to `o`; ABX_ENOMEM. */
int abx__json_set_time(json_object *o, const char *key, int64_t wall_ms);
int abx__json_set_map(json_object *o, const char *key, const abx__map *map);
/* A member that is an object of strings into `ret`: 1, 0 when absent or null, ABX_EINVAL
 * naming what is wrong. */
int abx__json_get_map(json_object *o, const char *key, abx__map *ret, abx_error **reterr);
/* Foreign bytes as a string: what is no UTF-8 becomes U+FFFD. NULL: out of memory. */
json_object *abx__json_clean_text(const char *s, size_t len);

#endif

/*
 * json.h - the one door to json-c: capped strict parsing, compact printing, checked
 * getters.
 *
 * Parsing is RFC 8259 and nothing more: UTF-8 only, no comments, no trailing commas, no
 * NaN, nothing behind the value. A string with a NUL in it parses, but the getters refuse
 * it, so no C string is ever silently cut. Of two equal keys the last one counts.
 */
#ifndef ABX_IO_JSON_H
#define ABX_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define ABX__JSON_MAX_DEPTH 64
#define ABX__JSON_DEFAULT_MAX_BYTES ((size_t)16 << 20)

/* Parses the whole of `text`. `max_bytes` 0: the default. ABX_ETOOBIG over the byte or
   depth cap; ABX_EINVAL with line and offset for everything else. A JSON null gives
   ABX_OK and *ret NULL. */
int abx__json_parse(const char *text, size_t len, size_t max_bytes, json_object **ret,
		    abx_error **reterr);
/* As above, and the value must be an object. */
int abx__json_parse_object(const char *text, size_t len, size_t max_bytes,
			   json_object **ret, abx_error **reterr);

/* Appends compact JSON. ABX_ENOMEM, ABX_ETOOBIG (the buffer's cap). */
int abx__json_print(json_object *value, abx__buf *buf);
/* Compact JSON as a new string; NULL when out of memory. `ret_len` may be NULL. */
char *abx__json_text(json_object *value, size_t *ret_len);

/* Getters of an object's member: 1 found, 0 absent or null (*ret untouched), ABX_EINVAL
   naming the key when it is of another type, out of range, or a string with a NUL byte.
   Strings are borrowed from `obj`. */
int abx__json_get_str(json_object *obj, const char *key, const char **ret,
		      abx_error **reterr);
int abx__json_get_i64(json_object *obj, const char *key, int64_t min, int64_t max,
		      int64_t *ret, abx_error **reterr);
int abx__json_get_bool(json_object *obj, const char *key, bool *ret, abx_error **reterr);
int abx__json_get_object(json_object *obj, const char *key, json_object **ret,
			 abx_error **reterr);
int abx__json_get_array(json_object *obj, const char *key, json_object **ret,
			abx_error **reterr);
/* The string of a value that must be one; NULL when it is not, or has a NUL inside. */
const char *abx__json_str(json_object *value);
/* Refuses members that are not in `known` (NULL-terminated): ABX_EINVAL naming the first.
 */
int abx__json_only(json_object *obj, const char *const *known, abx_error **reterr);

/* Setters of an object's member; ABX_ENOMEM. `_take` also gives `value` back when it
 * fails. */
int abx__json_set_take(json_object *obj, const char *key, json_object *value);
int abx__json_set_str(json_object *obj, const char *key,
		      const char *value); /* NULL: JSON null */
int abx__json_set_i64(json_object *obj, const char *key, int64_t value);
int abx__json_set_bool(json_object *obj, const char *key, bool value);
/* Printed with the fewest digits that read back as the same number: 0.1, 5.0. */
json_object *abx__json_new_double(double value);
int abx__json_set_double(json_object *obj, const char *key, double value);
/* Appends to an array; gives `value` back when it fails. */
int abx__json_push_take(json_object *array, json_object *value);

ABX_DEFINE_FREEP(abx__json_putp, json_object, json_object_put)
#define ABX_CLEANUP_JSON ABX_CLEANUP(abx__json_putp)

#endif

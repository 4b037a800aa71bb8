/*
 * fields.h - reading documents that serve/ has validated: absent, null and the wrong type
 * all give the default.
 */
#ifndef ABX_CONTROL_FIELDS_H
#define ABX_CONTROL_FIELDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <agentbox/error.h>
#include <json-c/json.h>

static inline json_object *abx__field(json_object *obj, const char *key)
{
	json_object *value = NULL;

	if (!json_object_is_type(obj, json_type_object))
		return NULL;
	json_object_object_get_ex(obj, key, &value);
	return value;
}

static inline json_object *abx__field_of(json_object *obj, const char *key,
					 json_type type)
{
	json_object *value = abx__field(obj, key);

	return json_object_is_type(value, type) ? value : NULL;
}

static inline json_object *abx__field_object(json_object *obj, const char *key)
{
	return abx__field_of(obj, key, json_type_object);
}

static inline json_object *abx__field_array(json_object *obj, const char *key)
{
	return abx__field_of(obj, key, json_type_array);
}

/* NULL also for a string with a NUL inside. */
static inline const char *abx__field_str(json_object *obj, const char *key)
{
	json_object *value = abx__field_of(obj, key, json_type_string);
	const char *s = value ? json_object_get_string(value) : NULL;

	return s && strlen(s) == (size_t)json_object_get_string_len(value) ? s : NULL;
}

static inline int64_t abx__field_int(json_object *obj, const char *key, int64_t absent)
{
	json_object *value = abx__field_of(obj, key, json_type_int);

	return value ? json_object_get_int64(value) : absent;
}

static inline bool abx__field_bool(json_object *obj, const char *key, bool absent)
{
	json_object *value = abx__field_of(obj, key, json_type_boolean);

	return value ? json_object_get_boolean(value) : absent;
}

static inline size_t abx__array_count(json_object *array)
{
	return array ? json_object_array_length(array) : 0;
}

/* Takes `value`, also on failure. A NULL value is memory that ran out. */
static inline int abx__field_take(json_object *obj, const char *key, json_object *value)
{
	if (value && json_object_object_add(obj, key, value) == 0)
		return ABX_OK;
	json_object_put(value);
	return ABX_ENOMEM;
}

static inline int abx__field_set_str(json_object *obj, const char *key, const char *value)
{
	return abx__field_take(obj, key, json_object_new_string(value));
}

static inline int abx__field_set_int(json_object *obj, const char *key, int64_t value)
{
	return abx__field_take(obj, key, json_object_new_int64(value));
}

static inline int abx__field_set_bool(json_object *obj, const char *key, bool value)
{
	return abx__field_take(obj, key, json_object_new_boolean(value));
}

/* Another reference to `value`; NULL adds nothing. */
static inline int abx__field_share(json_object *obj, const char *key, json_object *value)
{
	return value ? abx__field_take(obj, key, json_object_get(value)) : ABX_OK;
}

/* Adds `value` to the array; takes it, also on failure, which leaves no array: NULL. */
static inline void abx__array_take(json_object **array, json_object *value)
{
	if (value && *array && json_object_array_add(*array, value) == 0)
		return;
	json_object_put(value);
	json_object_put(*array);
	*array = NULL;
}

static inline void abx__json_putp(json_object **obj)
{
	json_object_put(*obj);
}

#endif

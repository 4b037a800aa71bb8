/*
 * schema-print.c - structs into JSON, and schemas into text for people.
 */
#include <string.h>

#include "base/str.h"
#include "model/schema-private.h"

static json_object *print_object(const abx__schema *schema, const void *object,
				 unsigned flags);

static json_object *print_map(const abx__map *map)
{
	json_object *json = json_object_new_object();

	for (size_t i = 0; json && i < map->count; i++) {
		json_object *value = json_object_new_string(map->items[i].value);

		if (!value ||
		    json_object_object_add(json, map->items[i].key, value) < 0) {
			json_object_put(value);
			json_object_put(json);
			return NULL;
		}
	}
	return json;
}

static json_object *print_item(const abx__schema_field *field, const void *item,
			       unsigned flags)
{
	switch (field->type) {
	case ABX__SCHEMA_STRING:
		return json_object_new_string(*(char *const *)item);
	case ABX__SCHEMA_INT32:
		return json_object_new_int(*(const int32_t *)item);
	case ABX__SCHEMA_INT64:
		return json_object_new_int64(*(const int64_t *)item);
	default:
		return print_object(field->object, item, flags);
	}
}

static json_object *print_array(const abx__schema_field *field, const void *object,
				unsigned flags)
{
	const char *items = *(void **)abx__schema_at(object, field->offset);
	size_t count = *(size_t *)abx__schema_at(object, field->aux);
	size_t size = field->type == ABX__SCHEMA_OBJECT  ? field->object->size
		      : field->type == ABX__SCHEMA_INT32 ? sizeof(int32_t)
		      : field->type == ABX__SCHEMA_INT64 ? sizeof(int64_t)
							 : sizeof(char *);
	json_object *json = json_object_new_array();

	for (size_t i = 0; json && i < count; i++) {
		json_object *item = print_item(field, items + i * size, flags);

		if (!item || json_object_array_add(json, item) < 0) {
			json_object_put(item);
			json_object_put(json);
			return NULL;
		}
	}
	return json;
}

static json_object *print_value(const abx__schema_field *field, const void *object,
				unsigned flags)
{
	const void *at = abx__schema_at(object, field->offset);
	const abx__secret *secret;

	if (field->flags & ABX__FIELD_ARRAY)
		return print_array(field, object, flags);
	switch ((enum abx__schema_type)field->type) {
	case ABX__SCHEMA_STRING:
		return json_object_new_string(*(char *const *)at);
	case ABX__SCHEMA_SECRET:
		secret = *(abx__secret *const *)at;
		return json_object_new_string_len(abx__secret_reveal(secret),
						  (int)abx__secret_len(secret));
	case ABX__SCHEMA_ENUM:
		return json_object_new_string(field->names[*(const int *)at - 1]);
	case ABX__SCHEMA_BOOL:
		return json_object_new_boolean(*(const bool *)at);
	case ABX__SCHEMA_INT32:
		return json_object_new_int(*(const int32_t *)at);
	case ABX__SCHEMA_INT64:
		return json_object_new_int64(*(const int64_t *)at);
	case ABX__SCHEMA_NUMBER:
		return json_object_new_double(*(const double *)at);
	case ABX__SCHEMA_OBJECT:
		return print_object(field->object, *(void *const *)at, flags);
	case ABX__SCHEMA_MAP:
		return print_map(at);
	case ABX__SCHEMA_ANY:
		return json_object_get(*(json_object *const *)at);
	}
	return NULL;
}

static int64_t number_of(const abx__schema_field *field, const void *object)
{
	const void *at = abx__schema_at(object, field->offset);

	switch (field->type) {
	case ABX__SCHEMA_ENUM:
		return *(const int *)at;
	case ABX__SCHEMA_BOOL:
		return *(const bool *)at;
	case ABX__SCHEMA_INT32:
		return *(const int32_t *)at;
	case ABX__SCHEMA_INT64:
		return *(const int64_t *)at;
	default:
		return INT64_MIN;
	}
}

static bool equals_default(const abx__schema_field *field, const void *object)
{
	if (!(field->flags & ABX__FIELD_DEFAULT) || (field->flags & ABX__FIELD_ARRAY))
		return false;
	if (field->type == ABX__SCHEMA_STRING)
		return abx__str_eq(*(char **)abx__schema_at(object, field->offset),
				   field->default_text);
	if (field->type == ABX__SCHEMA_OBJECT)
		return false;
	return number_of(field, object) == field->default_number;
}

/* 1 to print it, 0 to leave it out, -1 for a null. */
static int shows(const abx__schema_field *field, const void *object, unsigned flags)
{
	bool required = field->flags & ABX__FIELD_REQUIRED;

	if (!abx__schema_is_given(field, object)) {
		if (!required)
			return 0;
		if ((field->flags & ABX__FIELD_ARRAY) || field->type == ABX__SCHEMA_MAP)
			return 1;
		return field->flags & ABX__FIELD_NULLABLE ? -1 : 0;
	}
	if ((field->flags & ABX__FIELD_OMIT_ZERO) && number_of(field, object) == 0)
		return 0;
	return required || !(flags & ABX__SCHEMA_OMIT_DEFAULTS) ||
	       !equals_default(field, object);
}

/* An object whose members all equal their defaults is itself its default. */
static bool is_empty_default(const abx__schema_field *field, json_object *value,
			     unsigned flags)
{
	return (flags & ABX__SCHEMA_OMIT_DEFAULTS) &&
	       (field->flags & ABX__FIELD_DEFAULT) &&
	       !(field->flags & ABX__FIELD_ARRAY) && field->type == ABX__SCHEMA_OBJECT &&
	       json_object_object_length(value) == 0;
}

static json_object *print_object(const abx__schema *schema, const void *object,
				 unsigned flags)
{
	json_object *json = json_object_new_object();

	for (size_t i = 0; json && i < schema->count; i++) {
		const abx__schema_field *field = &schema->fields[i];
		int show = shows(field, object, flags);
		json_object *value = NULL;

		if (show == 0)
			continue;
		if (show > 0)
			value = print_value(field, object, flags);
		if (value && is_empty_default(field, value, flags)) {
			json_object_put(value);
			continue;
		}
		if ((show > 0 && !value) ||
		    json_object_object_add(json, field->name, value) < 0) {
			json_object_put(value);
			json_object_put(json);
			return NULL;
		}
	}
	return json;
}

json_object *abx__schema_print(const abx__schema *schema, const void *object,
			       unsigned flags)
{
	return print_object(schema, object, flags);
}

/* ---- for people ---- */

static const char *type_name(const abx__schema_field *field)
{
	static const char *const formats[] = {
		[ABX__FORMAT_NONE] = "string",
		[ABX__FORMAT_QUANTITY] = "quantity",
		[ABX__FORMAT_DURATION] = "duration",
		[ABX__FORMAT_DATE_TIME] = "time",
		[ABX__FORMAT_IMAGE] = "image",
		[ABX__FORMAT_ENV_NAME] = "name",
		[ABX__FORMAT_DNS_LABEL] = "name",
		[ABX__FORMAT_DNS_SUBDOMAIN] = "name",
		[ABX__FORMAT_INT_OR_PERCENT] = "number or percentage",
	};

	switch ((enum abx__schema_type)field->type) {
	case ABX__SCHEMA_STRING:
		return formats[field->format];
	case ABX__SCHEMA_SECRET:
		return "secret string";
	case ABX__SCHEMA_ENUM:
		return "one of";
	case ABX__SCHEMA_BOOL:
		return "bool";
	case ABX__SCHEMA_INT32:
	case ABX__SCHEMA_INT64:
		return "integer";
	case ABX__SCHEMA_NUMBER:
		return "number";
	case ABX__SCHEMA_OBJECT:
		return "object";
	case ABX__SCHEMA_MAP:
		return field->format ? "map of quantities" : "map of strings";
	case ABX__SCHEMA_ANY:
		return "any";
	}
	return "";
}

static int describe_default(const abx__schema_field *field, abx__buf *buf)
{
	if (!(field->flags & ABX__FIELD_DEFAULT) || field->type == ABX__SCHEMA_OBJECT)
		return ABX_OK;
	if (field->type == ABX__SCHEMA_STRING)
		return abx__buf_addf(buf, " (default %s)", field->default_text);
	if (field->type == ABX__SCHEMA_ENUM)
		return abx__buf_addf(buf, " (default %s)",
				     field->names[field->default_number - 1]);
	if (field->type == ABX__SCHEMA_BOOL)
		return abx__buf_addf(buf, " (default %s)",
				     field->default_number ? "true" : "false");
	return abx__buf_addf(buf, " (default %lld)", (long long)field->default_number);
}

static int describe_field(const abx__schema_field *field, unsigned indent, abx__buf *buf)
{
	const char *array = field->flags & ABX__FIELD_ARRAY ? "[]" : "";
	int r = abx__buf_addf(buf, "%*s%s%s%s  %s", (int)indent * 2, "", field->name,
			      array, field->flags & ABX__FIELD_REQUIRED ? "*" : "",
			      type_name(field));

	for (size_t i = 0;
	     r == ABX_OK && field->type == ABX__SCHEMA_ENUM && field->names[i]; i++)
		r = abx__buf_addf(buf, "%s%s", i ? ", " : " ", field->names[i]);
	if (r == ABX_OK)
		r = describe_default(field, buf);
	if (r == ABX_OK && (field->flags & ABX__FIELD_IMMUTABLE))
		r = abx__buf_adds(buf, " (fixed at create)");
	if (r == ABX_OK && field->description)
		r = abx__buf_addf(buf, "  %s", field->description);
	return r < 0 ? r : abx__buf_addc(buf, '\n');
}

static int describe(const abx__schema *schema, unsigned indent, unsigned depth,
		    abx__buf *buf)
{
	for (size_t i = 0; i < schema->count; i++) {
		const abx__schema_field *field = &schema->fields[i];
		int r;

		if (field->flags & ABX__FIELD_READ_ONLY)
			continue;
		r = describe_field(field, indent, buf);
		if (r == ABX_OK && field->type == ABX__SCHEMA_OBJECT &&
		    indent + 1 < depth)
			r = describe(field->object, indent + 1, depth, buf);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

int abx__schema_describe(const abx__schema *schema, unsigned depth, abx__buf *buf)
{
	return describe(schema, 0,
			depth > ABX__SCHEMA_DEPTH_MAX ? ABX__SCHEMA_DEPTH_MAX : depth,
			buf);
}

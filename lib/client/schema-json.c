/*
 * schema-json.c - what the body of an operation must be, told as JSON.
 *
 * The operation is looked up in the routes and its body in the schema tables, both made
 * of api/native.yaml, so that what is told here is what the platform checks.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/json.h"
#include <agentbox/platform.h>

#include "model/gen/routes.h"

#define INLINE_LEVELS 3

/* Objects met below the last inline level, each once. */
struct deep {
	const abx__schema *schemas[64];
	size_t count;
};

static const char *scalar_name(const abx__schema_field *field)
{
	switch (field->type) {
	case ABX__SCHEMA_BOOL:
		return "bool";
	case ABX__SCHEMA_INT32:
	case ABX__SCHEMA_INT64:
		return "int";
	case ABX__SCHEMA_NUMBER:
		return "number";
	case ABX__SCHEMA_MAP:
		return "map[string]string";
	case ABX__SCHEMA_ANY:
		return "any";
	default:
		return "string";
	}
}

static char *choice_name(const char *const *names)
{
	abx__buf text = ABX__BUF_INIT;

	for (size_t i = 0; names[i]; i++)
		if (abx__buf_addf(&text, "%s%s", i ? " | " : "", names[i]) < 0) {
			abx__buf_done(&text);
			return NULL;
		}
	return abx__buf_take(&text);
}

static char *type_name(const abx__schema_field *field)
{
	const char *many = field->flags & ABX__FIELD_ARRAY ? "[]" : "";

	if (field->type == ABX__SCHEMA_OBJECT)
		return abx__strf("<%s>%s", field->object->name, many);
	if (field->type == ABX__SCHEMA_ENUM)
		return choice_name(field->names);
	return abx__strf("%s%s", scalar_name(field), many);
}

static int put_values(json_object *o, const abx__schema_field *field)
{
	json_object *values;

	if (field->type != ABX__SCHEMA_ENUM)
		return ABX_OK;
	values = json_object_new_array();
	if (!values || abx__json_set_take(o, "values", values) < 0)
		return ABX_ENOMEM;
	for (size_t i = 0; field->names[i]; i++)
		if (abx__json_push_take(values, json_object_new_string(field->names[i])) <
		    0)
			return ABX_ENOMEM;
	return ABX_OK;
}

static int put_default(json_object *o, const abx__schema_field *field)
{
	if (!(field->flags & ABX__FIELD_DEFAULT))
		return ABX_OK;
	switch (field->type) {
	case ABX__SCHEMA_STRING:
		return abx__json_set_str(o, "default", field->default_text);
	case ABX__SCHEMA_ENUM:
		return abx__json_set_str(o, "default",
					 field->names[field->default_number - 1]);
	case ABX__SCHEMA_BOOL:
		return abx__json_set_bool(o, "default", field->default_number != 0);
	case ABX__SCHEMA_INT32:
	case ABX__SCHEMA_INT64:
		return abx__json_set_take(o, "default",
					  json_object_new_int64(field->default_number));
	default:
		return ABX_OK;
	}
}

static json_object *fields_json(const abx__schema *schema, int level, struct deep *deep);

static int put_object(json_object *o, const abx__schema_field *field, int level,
		      struct deep *deep)
{
	if (field->type != ABX__SCHEMA_OBJECT)
		return ABX_OK;
	if (abx__json_set_str(o, "ref", field->object->name) < 0)
		return ABX_ENOMEM;
	if (level < INLINE_LEVELS)
		return abx__json_set_take(o, "fields",
					  fields_json(field->object, level + 1, deep));
	for (size_t i = 0; i < deep->count; i++)
		if (deep->schemas[i] == field->object)
			return ABX_OK;
	if (deep->count == sizeof(deep->schemas) / sizeof(deep->schemas[0]))
		return ABX_ETOOBIG;
	deep->schemas[deep->count++] = field->object;
	return ABX_OK;
}

static json_object *field_json(const abx__schema_field *field, int level,
			       struct deep *deep)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP(abx__freep) char *type = type_name(field);

	if (!o || !type || abx__json_set_str(o, "name", field->name) < 0 ||
	    abx__json_set_str(o, "type", type) < 0 ||
	    abx__json_set_bool(o, "required", field->flags & ABX__FIELD_REQUIRED) < 0 ||
	    abx__json_set_bool(o, "fixed", field->flags & ABX__FIELD_IMMUTABLE) < 0 ||
	    (field->lever && abx__json_set_str(o, "lever", field->lever) < 0) ||
	    put_values(o, field) < 0 || put_default(o, field) < 0 ||
	    abx__json_set_str(o, "describe",
			      field->description ? field->description : "") < 0 ||
	    put_object(o, field, level, deep) < 0)
		return NULL;
	return abx_take(o);
}

static json_object *fields_json(const abx__schema *schema, int level, struct deep *deep)
{
	ABX_CLEANUP_JSON json_object *fields = json_object_new_array();

	for (size_t i = 0; fields && i < schema->count; i++) {
		const abx__schema_field *field = &schema->fields[i];
		json_object *each;

		if (field->flags & ABX__FIELD_READ_ONLY)
			continue;
		each = field_json(field, level, deep);
		if (!each || abx__json_push_take(fields, each) < 0)
			return NULL;
	}
	return abx_take(fields);
}

/* Grows while it goes: a deep object may hold deeper ones. */
static int put_deep(json_object *o, struct deep *deep)
{
	json_object *schemas;

	if (!deep->count)
		return ABX_OK;
	schemas = json_object_new_object();
	if (!schemas || abx__json_set_take(o, "schemas", schemas) < 0)
		return ABX_ENOMEM;
	for (size_t i = 0; i < deep->count; i++) {
		json_object *fields = fields_json(deep->schemas[i], INLINE_LEVELS, deep);

		if (!fields ||
		    abx__json_set_take(schemas, deep->schemas[i]->name, fields) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

/* "/envs/x" and "/envs/{name}" are "/v1/envs/{name}". */
static bool is_path(const char *pattern, const char *path)
{
	if (!abx__str_starts(pattern, "/v1/"))
		return false;
	for (pattern += 3; *pattern && *path; pattern++, path++) {
		if (*pattern == '{') {
			pattern += strcspn(pattern, "}");
			if (*path == '/')
				return false;
			path += strcspn(path, "/") - 1;
		} else if (*pattern != *path) {
			return false;
		}
	}
	return !*pattern && !*path;
}

static const abx__schema *body_of(const char *method, const char *path)
{
	for (size_t i = 0; i < ABX__M_NATIVE_ROUTE_COUNT; i++) {
		const abx__route *route = &abx__m_native_routes[i];

		if (abx__str_eq(route->method, method) && is_path(route->path, path))
			return route->request;
	}
	return NULL;
}

int abx_platform_schema(const char *method, const char *path, char **ret,
			abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *o = NULL;
	const abx__schema *schema = method && path ? body_of(method, path) : NULL;
	struct deep deep = { .count = 0 };
	char *text;

	if (!schema)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "%s %s is no operation with a body",
				      method ? method : "", path ? path : "");
	o = json_object_new_object();
	if (!o || abx__json_set_str(o, "schema", schema->name) < 0 ||
	    abx__json_set_str(o, "describe",
			      schema->description ? schema->description : "") < 0 ||
	    abx__json_set_take(o, "fields", fields_json(schema, 1, &deep)) < 0 ||
	    put_deep(o, &deep) < 0)
		return abx__error_nomem(reterr);
	text = abx__json_text(o, NULL);
	if (!text)
		return abx__error_nomem(reterr);
	*ret = text;
	return ABX_OK;
}

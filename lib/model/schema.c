/*
 * schema.c - JSON into structs, defaults, and giving structs back.
 *
 * A struct under construction hangs from the root from the moment it is allocated, so a
 * failure anywhere frees everything by freeing the root.
 */
#include "model/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/schema-private.h"

typedef struct parser {
	unsigned flags;
	unsigned depth;
	abx_error **reterr;
} parser;

/* ---- errors ---- */

static int add_path(abx__buf *buf, const abx__schema_path *path)
{
	int r;

	if (!path)
		return ABX_OK;
	r = add_path(buf, path->up);
	if (r < 0)
		return r;
	if (!path->name)
		return abx__buf_addf(buf, "[%zu]", path->index);
	if (path->is_key)
		return abx__buf_addf(buf, "[\"%.200s\"]", path->name);
	return abx__buf_addf(buf, "%s%.200s", buf->len ? "." : "", path->name);
}

int abx__schema_fail(const abx__schema_path *path, abx_error **reterr, const char *fmt,
		     ...)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT_CAP(8192);
	va_list ap;
	int r;

	r = add_path(&buf, path);
	if (r == ABX_OK && path)
		r = abx__buf_adds(&buf, ": ");
	va_start(ap, fmt);
	if (r == ABX_OK)
		r = abx__buf_vaddf(&buf, fmt, ap);
	va_end(ap);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	return abx__error_set(reterr, ABX_EINVAL, "%s", abx__buf_str(&buf));
}

int abx__schema_fail_at(const abx__schema_path *path, abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT_CAP(8192);

	if (!path)
		return ABX_EINVAL;
	if (add_path(&buf, path) == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	abx__error_prefix(reterr, "%s", abx__buf_str(&buf));
	return ABX_EINVAL;
}

/* What was given, for a message. Values of secrets and maps are not shown. */
static const char *given(const abx__schema_field *field, json_object *json, char *out,
			 size_t size)
{
	const char *text;

	switch (json_object_get_type(json)) {
	case json_type_null:
		return "null";
	case json_type_object:
		return "an object";
	case json_type_array:
		return "an array";
	case json_type_boolean:
		return json_object_get_boolean(json) ? "true" : "false";
	default:
		break;
	}
	if (field->type == ABX__SCHEMA_SECRET || field->type == ABX__SCHEMA_MAP)
		return json_object_is_type(json, json_type_string) ? "a string"
								   : "a number";
	text = json_object_to_json_string_ext(
		json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	snprintf(out, size, "%.80s%s", text ? text : "",
		 text && strlen(text) > 80 ? "..." : "");
	return out;
}

static int wrong_type(parser *p, const abx__schema_field *field, json_object *json,
		      const char *expected, const abx__schema_path *path)
{
	char text[128];

	return abx__schema_fail(path, p->reterr, "expected %s, got %s", expected,
				given(field, json, text, sizeof(text)));
}

/* ---- values ---- */

static int set_presence(const abx__schema_field *field, void *object)
{
	*(bool *)abx__schema_at(object, field->aux) = true;
	return ABX_OK;
}

/* The text of a string; of a number where the format takes one. NULL when it is neither.
 */
static const char *text_of(const abx__schema_field *field, json_object *json)
{
	enum json_type type = json_object_get_type(json);

	if (type == json_type_string)
		return json_object_get_string(json);
	if (type == json_type_int && (field->format == ABX__FORMAT_QUANTITY ||
				      field->format == ABX__FORMAT_INT_OR_PERCENT))
		return json_object_get_string(json);
	if (type == json_type_double && field->format == ABX__FORMAT_QUANTITY)
		return json_object_get_string(json);
	return NULL;
}

/* Checks what no struct can hold: a NUL inside, broken UTF-8, a length past every bound.
 */
static int check_text(parser *p, json_object *json, const char *text, int64_t max,
		      const abx__schema_path *path)
{
	size_t len = strlen(text);

	if (json_object_is_type(json, json_type_string) &&
	    (size_t)json_object_get_string_len(json) != len)
		return abx__schema_fail(path, p->reterr, "a NUL byte is not allowed");
	if (!abx__utf8_is_valid(text, len))
		return abx__schema_fail(path, p->reterr, "not valid UTF-8");
	if (len / 4 > (size_t)max)
		return abx__schema_fail(path, p->reterr, "longer than %lld characters",
					(long long)max);
	return ABX_OK;
}

static const char *text_expected(const abx__schema_field *field)
{
	switch (field->format) {
	case ABX__FORMAT_QUANTITY:
		return "a quantity such as 500m or 2Gi";
	case ABX__FORMAT_INT_OR_PERCENT:
		return "a number or a percentage";
	case ABX__FORMAT_DURATION:
		return "a duration such as \"30s\"";
	default:
		return "a string";
	}
}

static int parse_string(parser *p, const abx__schema_field *field, json_object *json,
			char **ret, const abx__schema_path *path)
{
	const char *text = text_of(field, json);
	int r;

	if (!text)
		return wrong_type(p, field, json, text_expected(field), path);
	r = check_text(p, json, text, field->maximum, path);
	if (r < 0)
		return r;
	*ret = abx__strdup(text);
	return *ret ? ABX_OK : abx__error_nomem(p->reterr);
}

static int parse_secret(parser *p, const abx__schema_field *field, json_object *json,
			abx__secret **ret, const abx__schema_path *path)
{
	const char *text = text_of(field, json);
	int r;

	if (!text)
		return wrong_type(p, field, json, "a string", path);
	r = check_text(p, json, text, field->maximum, path);
	if (r < 0)
		return r;
	*ret = abx__secret_new(text, strlen(text));
	return *ret ? ABX_OK : abx__error_nomem(p->reterr);
}

static int enum_failed(parser *p, const abx__schema_field *field, json_object *json,
		       const abx__schema_path *path)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT_CAP(1024);
	char text[128];
	int r = ABX_OK;

	for (size_t i = 0; field->names[i] && r == ABX_OK; i++)
		r = abx__buf_addf(&buf, "%s\"%s\"", i ? ", " : "", field->names[i]);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(p->reterr);
	return abx__schema_fail(path, p->reterr, "expected %s%s, got %s",
				field->names[1] ? "one of " : "", abx__buf_str(&buf),
				given(field, json, text, sizeof(text)));
}

static int parse_enum(parser *p, const abx__schema_field *field, json_object *json,
		      void *object, const abx__schema_path *path)
{
	const char *text = json_object_is_type(json, json_type_string)
				   ? json_object_get_string(json)
				   : NULL;

	for (int i = 0; text && field->names[i]; i++) {
		if (strcmp(field->names[i], text) != 0)
			continue;
		*(int *)abx__schema_at(object, field->offset) = i + 1;
		return ABX_OK;
	}
	return enum_failed(p, field, json, path);
}

static int parse_integer(parser *p, const abx__schema_field *field, json_object *json,
			 int64_t *ret, const abx__schema_path *path)
{
	char expected[80];
	int64_t value = json_object_get_int64(json);

	if (field->minimum == INT64_MIN && field->maximum == INT64_MAX)
		snprintf(expected, sizeof(expected), "an integer");
	else if (field->maximum >= INT32_MAX)
		snprintf(expected, sizeof(expected), "an integer of at least %lld",
			 (long long)field->minimum);
	else
		snprintf(expected, sizeof(expected), "an integer from %lld to %lld",
			 (long long)field->minimum, (long long)field->maximum);
	if (!json_object_is_type(json, json_type_int))
		return wrong_type(p, field, json, expected, path);
	/* json-c saturates; nobody means the last value. */
	if (value == INT64_MAX || value == INT64_MIN)
		return abx__schema_fail(path, p->reterr, "the number is too large");
	if (value > field->maximum && field->maximum >= INT32_MAX)
		return abx__schema_fail(path, p->reterr, "the number is too large");
	if (value < field->minimum || value > field->maximum)
		return wrong_type(p, field, json, expected, path);
	*ret = value;
	return ABX_OK;
}

static int parse_number(parser *p, const abx__schema_field *field, json_object *json,
			void *object, const abx__schema_path *path)
{
	int64_t value;
	int r;

	if (field->type == ABX__SCHEMA_NUMBER) {
		if (!json_object_is_type(json, json_type_double) &&
		    !json_object_is_type(json, json_type_int))
			return wrong_type(p, field, json, "a number", path);
		*(double *)abx__schema_at(object, field->offset) =
			json_object_get_double(json);
		return set_presence(field, object);
	}
	r = parse_integer(p, field, json, &value, path);
	if (r < 0)
		return r;
	if (field->type == ABX__SCHEMA_INT32)
		*(int32_t *)abx__schema_at(object, field->offset) = (int32_t)value;
	else
		*(int64_t *)abx__schema_at(object, field->offset) = value;
	return set_presence(field, object);
}

static int parse_map(parser *p, const abx__schema_field *field, json_object *json,
		     abx__map *map, const abx__schema_path *path)
{
	int64_t max = field->maximum;

	if (!json_object_is_type(json, json_type_object))
		return wrong_type(p, field, json, "an object", path);
	if (json_object_object_length(json) > max)
		return abx__schema_fail(path, p->reterr, "more than %lld entries",
					(long long)max);
	json_object_object_foreach(json, key, value)
	{
		abx__schema_path at = { .up = path, .name = key, .is_key = true };
		const char *text = text_of(field, value);
		int r;

		if (!text)
			return wrong_type(p, field, value, text_expected(field), &at);
		if (strlen(key) > ABX__SCHEMA_MAP_MAX ||
		    !abx__utf8_is_valid(key, strlen(key)))
			return abx__schema_fail(path, p->reterr,
						"a key is too long or not UTF-8");
		r = check_text(p, value, text, ABX__SCHEMA_STRING_MAX, &at);
		if (r < 0)
			return r;
		if (abx__map_set(map, key, text) < 0)
			return abx__error_nomem(p->reterr);
	}
	return ABX_OK;
}

static bool is_too_deep(json_object *json, unsigned depth)
{
	if (depth > ABX__SCHEMA_DEPTH_MAX)
		return true;
	if (json_object_is_type(json, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(json); i++)
			if (is_too_deep(json_object_array_get_idx(json, i), depth + 1))
				return true;
	} else if (json_object_is_type(json, json_type_object)) {
		json_object_object_foreach(json, key, value)
		{
			(void)key;
			if (is_too_deep(value, depth + 1))
				return true;
		}
	}
	return false;
}

/* ---- objects and arrays ---- */

static int parse_object(parser *p, const abx__schema *schema, json_object *json,
			void *object, const abx__schema_path *path);

static int parse_new_object(parser *p, const abx__schema *schema, json_object *json,
			    void **ret, const abx__schema_path *path)
{
	*ret = abx__calloc(1, schema->size);
	if (!*ret)
		return abx__error_nomem(p->reterr);
	return parse_object(p, schema, json, *ret, path);
}

static size_t item_size(const abx__schema_field *field)
{
	switch (field->type) {
	case ABX__SCHEMA_OBJECT:
		return field->object->size;
	case ABX__SCHEMA_INT32:
		return sizeof(int32_t);
	case ABX__SCHEMA_INT64:
		return sizeof(int64_t);
	default:
		return sizeof(char *);
	}
}

static int parse_item(parser *p, const abx__schema_field *field, json_object *json,
		      void *item, const abx__schema_path *path)
{
	int64_t value = 0;
	int r;

	switch (field->type) {
	case ABX__SCHEMA_OBJECT:
		return parse_object(p, field->object, json, item, path);
	case ABX__SCHEMA_INT32:
		r = parse_integer(p, field, json, &value, path);
		*(int32_t *)item = (int32_t)value;
		return r;
	case ABX__SCHEMA_INT64:
		return parse_integer(p, field, json, item, path);
	default:
		return parse_string(p, field, json, item, path);
	}
}

static int parse_array(parser *p, const abx__schema_field *field, json_object *json,
		       void *object, const abx__schema_path *path)
{
	void **items = abx__schema_at(object, field->offset);
	size_t *n_items = abx__schema_at(object, field->aux);
	size_t count, size = item_size(field);

	if (!json_object_is_type(json, json_type_array))
		return wrong_type(p, field, json, "an array", path);
	count = json_object_array_length(json);
	if (count > field->max_items)
		return abx__schema_fail(path, p->reterr, "more than %u items",
					field->max_items);
	if (count == 0)
		return ABX_OK;
	*items = abx__calloc(count, size);
	if (!*items)
		return abx__error_nomem(p->reterr);
	*n_items = count;
	for (size_t i = 0; i < count; i++) {
		abx__schema_path at = { .up = path, .index = i };
		int r = parse_item(p, field, json_object_array_get_idx(json, i),
				   (char *)*items + i * size, &at);

		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int parse_value(parser *p, const abx__schema_field *field, json_object *json,
		       void *object, const abx__schema_path *path)
{
	void *at = abx__schema_at(object, field->offset);

	if (field->flags & ABX__FIELD_ARRAY)
		return parse_array(p, field, json, object, path);
	switch ((enum abx__schema_type)field->type) {
	case ABX__SCHEMA_STRING:
		return parse_string(p, field, json, at, path);
	case ABX__SCHEMA_SECRET:
		return parse_secret(p, field, json, at, path);
	case ABX__SCHEMA_ENUM:
		return parse_enum(p, field, json, object, path);
	case ABX__SCHEMA_BOOL:
		if (!json_object_is_type(json, json_type_boolean))
			return wrong_type(p, field, json, "true or false", path);
		*(bool *)at = json_object_get_boolean(json);
		return set_presence(field, object);
	case ABX__SCHEMA_INT32:
	case ABX__SCHEMA_INT64:
	case ABX__SCHEMA_NUMBER:
		return parse_number(p, field, json, object, path);
	case ABX__SCHEMA_OBJECT:
		return parse_new_object(p, field->object, json, at, path);
	case ABX__SCHEMA_MAP:
		return parse_map(p, field, json, at, path);
	case ABX__SCHEMA_ANY:
		if (is_too_deep(json, p->depth))
			return abx__schema_fail(path, p->reterr,
						"nested more than %d levels deep",
						ABX__SCHEMA_DEPTH_MAX);
		*(json_object **)at = json_object_get(json);
		return ABX_OK;
	}
	return ABX_EFAIL;
}

static const abx__schema_field *find_field(const abx__schema *schema, const char *name)
{
	for (size_t i = 0; i < schema->count; i++)
		if (strcmp(schema->fields[i].name, name) == 0)
			return &schema->fields[i];
	return NULL;
}

static int unknown_field(parser *p, const abx__schema *schema,
			 const abx__schema_path *path)
{
	ABX_CLEANUP_BUF abx__buf known = ABX__BUF_INIT_CAP(1024);
	int r = ABX_OK;

	for (size_t i = 0; i < schema->count && r == ABX_OK; i++)
		if (!(schema->fields[i].flags & ABX__FIELD_READ_ONLY))
			r = abx__buf_addf(&known, "%s%s", known.len ? ", " : "",
					  schema->fields[i].name);
	abx__schema_fail(path, p->reterr, "unknown field");
	abx__error_hint(p->reterr, "fields here: %s", abx__buf_str(&known));
	return ABX_EINVAL;
}

static int parse_members(parser *p, const abx__schema *schema, json_object *json,
			 void *object, const abx__schema_path *path)
{
	json_object_object_foreach(json, key, value)
	{
		abx__schema_path at = { .up = path, .name = key };
		const abx__schema_field *field = find_field(schema, key);
		int r;

		if (!field && (p->flags & ABX__SCHEMA_TOLERANT))
			continue;
		if (!field)
			return unknown_field(p, schema, &at);
		if (!value)
			continue;
		r = parse_value(p, field, value, object, &at);
		if (r == ABX_OK)
			r = abx__schema_check_field(field, object, &at, false, p->reterr);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int check_required(parser *p, const abx__schema *schema, json_object *json,
			  const void *object, const abx__schema_path *path)
{
	for (size_t i = 0; i < schema->count; i++) {
		const abx__schema_field *field = &schema->fields[i];
		abx__schema_path at = { .up = path, .name = field->name };

		if (!(field->flags & ABX__FIELD_REQUIRED) ||
		    abx__schema_is_given(field, object))
			continue;
		/* Empty arrays and maps are given, though the struct cannot tell. */
		if (json_object_object_get(json, field->name) &&
		    ((field->flags & ABX__FIELD_ARRAY) || field->type == ABX__SCHEMA_MAP))
			continue;
		return abx__schema_fail(&at, p->reterr, "required, but not given");
	}
	return ABX_OK;
}

static int parse_object(parser *p, const abx__schema *schema, json_object *json,
			void *object, const abx__schema_path *path)
{
	static const abx__schema_field any = { .type = ABX__SCHEMA_ANY };
	int r;

	if (!json_object_is_type(json, json_type_object))
		return wrong_type(p, &any, json, "an object", path);
	if (p->depth >= ABX__SCHEMA_DEPTH_MAX)
		return abx__schema_fail(path, p->reterr,
					"nested more than %d levels deep",
					ABX__SCHEMA_DEPTH_MAX);
	p->depth++;
	r = parse_members(p, schema, json, object, path);
	p->depth--;
	return r < 0 ? r : check_required(p, schema, json, object, path);
}

int abx__schema_parse(const abx__schema *schema, json_object *json, unsigned flags,
		      void **ret, abx_error **reterr)
{
	parser p = { .flags = flags, .reterr = reterr };
	void *object = NULL;
	int r = parse_new_object(&p, schema, json, &object, NULL);

	if (r == ABX_OK && (flags & ABX__SCHEMA_DEFAULTS))
		r = abx__schema_apply_defaults(schema, object, reterr);
	if (r < 0) {
		abx__schema_free(schema, object);
		return r;
	}
	*ret = object;
	return ABX_OK;
}

int abx__schema_parse_text(const abx__schema *schema, const char *text, size_t len,
			   unsigned flags, void **ret, abx_error **reterr)
{
	json_tokener *tokener = NULL;
	json_object *json = NULL;
	enum json_tokener_error why;
	int r;

	if (len > INT32_MAX)
		return abx__error_set(reterr, ABX_ETOOBIG, "the body is too large");
	tokener = json_tokener_new_ex(ABX__SCHEMA_DEPTH_MAX + 1);
	if (!tokener)
		return abx__error_nomem(reterr);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	json = json_tokener_parse_ex(tokener, text, (int)len);
	why = json_tokener_get_error(tokener);
	if (why == json_tokener_continue) /* a number or an unfinished value at the end */
		json = json_tokener_parse_ex(tokener, "", 1);
	if (why == json_tokener_continue)
		why = json_tokener_get_error(tokener);
	if (why != json_tokener_success)
		r = abx__error_set(
			reterr, ABX_EINVAL, "the body is not valid JSON: %s at byte %zu",
			why == json_tokener_continue ? "it ends too early"
						     : json_tokener_error_desc(why),
			json_tokener_get_parse_end(tokener));
	else
		r = abx__schema_parse(schema, json, flags, ret, reterr);
	json_object_put(json);
	json_tokener_free(tokener);
	return r;
}

/* ---- defaults ---- */

static int default_object(const abx__schema_field *field, void **at, abx_error **reterr)
{
	if (!*at && (field->flags & ABX__FIELD_DEFAULT)) {
		*at = abx__calloc(1, field->object->size);
		if (!*at)
			return abx__error_nomem(reterr);
	}
	return *at ? abx__schema_apply_defaults(field->object, *at, reterr) : ABX_OK;
}

static int default_items(const abx__schema_field *field, void *object, abx_error **reterr)
{
	char *items = *(void **)abx__schema_at(object, field->offset);
	size_t count = *(size_t *)abx__schema_at(object, field->aux);
	int r = ABX_OK;

	for (size_t i = 0; i < count && r == ABX_OK && field->type == ABX__SCHEMA_OBJECT;
	     i++)
		r = abx__schema_apply_defaults(field->object,
					       items + i * field->object->size, reterr);
	return r;
}

static int default_field(const abx__schema_field *field, void *object, abx_error **reterr)
{
	void *at = abx__schema_at(object, field->offset);

	if (field->flags & ABX__FIELD_ARRAY)
		return default_items(field, object, reterr);
	if (field->type == ABX__SCHEMA_OBJECT)
		return default_object(field, at, reterr);
	if (!(field->flags & ABX__FIELD_DEFAULT) || abx__schema_is_given(field, object))
		return ABX_OK;
	switch (field->type) {
	case ABX__SCHEMA_STRING:
		*(char **)at = abx__strdup(field->default_text);
		return *(char **)at ? ABX_OK : abx__error_nomem(reterr);
	case ABX__SCHEMA_ENUM:
		*(int *)at = (int)field->default_number;
		return ABX_OK;
	case ABX__SCHEMA_BOOL:
		*(bool *)at = field->default_number;
		break;
	case ABX__SCHEMA_INT32:
		*(int32_t *)at = (int32_t)field->default_number;
		break;
	case ABX__SCHEMA_INT64:
		*(int64_t *)at = field->default_number;
		break;
	default:
		return ABX_EFAIL;
	}
	return set_presence(field, object);
}

int abx__schema_apply_defaults(const abx__schema *schema, void *object,
			       abx_error **reterr)
{
	int r = ABX_OK;

	for (size_t i = 0; i < schema->count && r == ABX_OK; i++)
		r = default_field(&schema->fields[i], object, reterr);
	return r;
}

/* ---- giving back ---- */

static void free_items(const abx__schema_field *field, void *object)
{
	char *items = *(void **)abx__schema_at(object, field->offset);
	size_t count = *(size_t *)abx__schema_at(object, field->aux);

	for (size_t i = 0; i < count; i++) {
		if (field->type == ABX__SCHEMA_OBJECT)
			abx__schema_done(field->object, items + i * field->object->size);
		else if (field->type == ABX__SCHEMA_STRING)
			abx__free(((char **)items)[i]);
	}
	abx__free(items);
}

void abx__schema_done(const abx__schema *schema, void *object)
{
	for (size_t i = 0; i < schema->count; i++) {
		const abx__schema_field *field = &schema->fields[i];
		void *at = abx__schema_at(object, field->offset);

		if (field->flags & ABX__FIELD_ARRAY)
			free_items(field, object);
		else if (field->type == ABX__SCHEMA_STRING)
			abx__free(*(char **)at);
		else if (field->type == ABX__SCHEMA_SECRET)
			abx__secret_free(*(abx__secret **)at);
		else if (field->type == ABX__SCHEMA_OBJECT)
			abx__schema_free(field->object, *(void **)at);
		else if (field->type == ABX__SCHEMA_MAP)
			abx__map_done(at);
		else if (field->type == ABX__SCHEMA_ANY)
			json_object_put(*(json_object **)at);
	}
	memset(object, 0, schema->size);
}

void abx__schema_free(const abx__schema *schema, void *object)
{
	if (!object)
		return;
	abx__schema_done(schema, object);
	abx__free(object);
}

int abx__schema_set_string(char **field, const char *value)
{
	char *copy = abx__strdup(value);

	if (value && !copy)
		return ABX_ENOMEM;
	abx__free(*field);
	*field = copy;
	return ABX_OK;
}

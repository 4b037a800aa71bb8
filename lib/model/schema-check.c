/*
 * schema-check.c - bounds, patterns, formats and uniqueness of what is in a struct.
 */
#include <regex.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "model/duration.h"
#include "model/image-ref.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/schema-private.h"

bool abx__schema_is_given(const abx__schema_field *field, const void *object)
{
	const void *at = abx__schema_at(object, field->offset);

	if (field->flags & ABX__FIELD_ARRAY)
		return *(size_t *)abx__schema_at(object, field->aux) > 0;
	switch ((enum abx__schema_type)field->type) {
	case ABX__SCHEMA_STRING:
	case ABX__SCHEMA_SECRET:
	case ABX__SCHEMA_OBJECT:
	case ABX__SCHEMA_ANY:
		return *(void *const *)at != NULL;
	case ABX__SCHEMA_ENUM:
		return *(const int *)at != 0;
	case ABX__SCHEMA_MAP:
		return ((const abx__map *)at)->count > 0;
	default:
		return *(bool *)abx__schema_at(object, field->aux);
	}
}

/* ---- formats ---- */

static bool is_number(const char *s, size_t len, unsigned min, unsigned max)
{
	unsigned value = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		value = value * 10 + (unsigned)(s[i] - '0');
	}
	return value >= min && value <= max;
}

/* RFC 3339: 2026-12-01T01:02:03[.4](Z|+00:00). */
static bool is_date_time(const char *s)
{
	static const char shape[] = "0000-00-00T00:00:00";
	size_t len = strnlen(s, 64);

	if (len < strlen(shape) + 1 || len == 64)
		return false;
	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == '0'
			    ? s[i] < '0' || s[i] > '9'
			    : s[i] != shape[i] && (s[i] != 't' || shape[i] != 'T'))
			return false;
	if (!is_number(s + 5, 2, 1, 12) || !is_number(s + 8, 2, 1, 31) ||
	    !is_number(s + 11, 2, 0, 23) || !is_number(s + 14, 2, 0, 59) ||
	    !is_number(s + 17, 2, 0, 60))
		return false;
	s += strlen(shape);
	if (*s == '.') {
		len = strspn(s + 1, "0123456789");
		if (len == 0 || len > 9)
			return false;
		s += len + 1;
	}
	if (strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
		return true;
	return (*s == '+' || *s == '-') && strlen(s) == 6 && s[3] == ':' &&
	       is_number(s + 1, 2, 0, 23) && is_number(s + 4, 2, 0, 59);
}

static bool is_int_or_percent(const char *s)
{
	size_t len = strspn(s, "0123456789");

	return len > 0 && len < 10 && (!s[len] || strcmp(s + len, "%") == 0);
}

static int not_a(const char *text, const char *what, abx_error **reterr)
{
	return abx__error_set(reterr, ABX_EINVAL, "\"%.80s\" is not %s", text, what);
}

int abx__schema_check_format(enum abx__schema_format format, const char *text,
			     abx_error **reterr)
{
	int64_t value;

	switch (format) {
	case ABX__FORMAT_NONE:
		return ABX_OK;
	case ABX__FORMAT_QUANTITY:
		/* The finest grain any resource has; what a resource is counted in is
		 * checked where it is used. */
		return abx__quantity_milli(text, &value, NULL) == ABX_OK
			       ? ABX_OK
			       : abx__quantity_bytes(text, &value, reterr);
	case ABX__FORMAT_DURATION:
		return abx__duration_parse(text, &value, reterr);
	case ABX__FORMAT_IMAGE:
		return abx__image_ref_check(text, reterr);
	case ABX__FORMAT_ENV_NAME:
		return abx__env_name_check(text, reterr);
	case ABX__FORMAT_DATE_TIME:
		return is_date_time(text)
			       ? ABX_OK
			       : not_a(text, "a time such as 2026-12-01T09:30:00Z",
				       reterr);
	case ABX__FORMAT_DNS_LABEL:
		return abx__dns_label_is_valid(text)
			       ? ABX_OK
			       : not_a(text,
				       "a name (lower-case letters, digits and '-')",
				       reterr);
	case ABX__FORMAT_DNS_SUBDOMAIN:
		return abx__dns_subdomain_is_valid(text)
			       ? ABX_OK
			       : not_a(text,
				       "a name (lower-case letters, digits, '-' and '.')",
				       reterr);
	case ABX__FORMAT_INT_OR_PERCENT:
		return is_int_or_percent(text)
			       ? ABX_OK
			       : not_a(text, "a number or a percentage such as 20%",
				       reterr);
	}
	return ABX_EFAIL;
}

/* ---- strings ---- */

static int64_t characters(const char *s)
{
	int64_t count = 0;

	for (; *s; s++)
		count += ((unsigned char)*s & 0xC0) != 0x80;
	return count;
}

static int check_length(const abx__schema_field *field, int64_t length,
			const abx__schema_path *path, abx_error **reterr)
{
	if (length > field->maximum)
		return abx__schema_fail(path, reterr, "longer than %lld characters",
					(long long)field->maximum);
	if (length < field->minimum)
		return field->minimum == 1
			       ? abx__schema_fail(path, reterr, "must not be empty")
			       : abx__schema_fail(path, reterr,
						  "shorter than %lld characters",
						  (long long)field->minimum);
	return ABX_OK;
}

static int check_pattern(const char *pattern, const char *text,
			 const abx__schema_path *path, abx_error **reterr)
{
	regex_t regex;
	int r = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);

	if (r == REG_ESPACE)
		return abx__error_nomem(reterr);
	if (r != 0)
		return abx__schema_fail(path, reterr, "its pattern %s is broken",
					pattern);
	r = regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	if (r == 0)
		return ABX_OK;
	return abx__schema_fail(path, reterr, "\"%.80s\" does not match %s", text,
				pattern);
}

static int check_string(const abx__schema_field *field, const char *text,
			const abx__schema_path *path, abx_error **reterr)
{
	int r = check_length(field, characters(text), path, reterr);

	if (r < 0)
		return r;
	if (!abx__utf8_is_valid(text, strlen(text)))
		return abx__schema_fail(path, reterr, "not valid UTF-8");
	if (field->pattern) {
		r = check_pattern(field->pattern, text, path, reterr);
		if (r < 0)
			return r;
	}
	r = abx__schema_check_format(field->format, text, reterr);
	if (r == ABX_EINVAL)
		return abx__schema_fail_at(path, reterr);
	return r < 0 ? r : ABX_OK;
}

static int check_secret(const abx__schema_field *field, const abx__secret *secret,
			const abx__schema_path *path, abx_error **reterr)
{
	return check_length(field, (int64_t)abx__secret_len(secret), path, reterr);
}

static int check_map(const abx__schema_field *field, const abx__map *map,
		     const abx__schema_path *path, abx_error **reterr)
{
	if ((int64_t)map->count > field->maximum)
		return abx__schema_fail(path, reterr, "more than %lld entries",
					(long long)field->maximum);
	for (size_t i = 0; i < map->count; i++) {
		abx__schema_path at = { .up = path,
					.name = map->items[i].key,
					.is_key = true };
		int r = abx__schema_check_format(field->format, map->items[i].value,
						 reterr);

		if (r == ABX_EINVAL)
			return abx__schema_fail_at(&at, reterr);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int check_integer(const abx__schema_field *field, int64_t value,
			 const abx__schema_path *path, abx_error **reterr)
{
	if (value >= field->minimum && value <= field->maximum)
		return ABX_OK;
	return abx__schema_fail(
		path, reterr, "expected an integer from %lld to %lld, got %lld",
		(long long)field->minimum, (long long)field->maximum, (long long)value);
}

/* ---- arrays and objects ---- */

static int validate_object(const abx__schema *schema, const void *object,
			   const abx__schema_path *path, abx_error **reterr);

static const char *key_of(const abx__schema *schema, const char *key, const void *item)
{
	for (size_t i = 0; i < schema->count; i++)
		if (strcmp(schema->fields[i].name, key) == 0 &&
		    schema->fields[i].type == ABX__SCHEMA_STRING)
			return *(char **)abx__schema_at(item, schema->fields[i].offset);
	return NULL;
}

static int check_unique(const abx__schema_field *field, const char *items, size_t count,
			const abx__schema_path *path, abx_error **reterr)
{
	size_t size = field->object->size;

	for (size_t i = 1; i < count; i++) {
		abx__schema_path item = { .up = path, .index = i };
		abx__schema_path at = { .up = &item, .name = field->list_key };
		const char *key =
			key_of(field->object, field->list_key, items + i * size);

		for (size_t j = 0; key && j < i; j++)
			if (abx__str_eq(key, key_of(field->object, field->list_key,
						    items + j * size)))
				return abx__schema_fail(&at, reterr,
							"\"%.80s\" is there twice", key);
	}
	return ABX_OK;
}

static int check_item(const abx__schema_field *field, const void *item,
		      const abx__schema_path *path, bool deep, abx_error **reterr)
{
	switch (field->type) {
	case ABX__SCHEMA_STRING:
		return *(char *const *)item
			       ? check_string(field, *(char *const *)item, path, reterr)
			       : abx__schema_fail(path, reterr, "is NULL");
	case ABX__SCHEMA_INT32:
		return check_integer(field, *(const int32_t *)item, path, reterr);
	case ABX__SCHEMA_INT64:
		return check_integer(field, *(const int64_t *)item, path, reterr);
	default:
		return deep ? validate_object(field->object, item, path, reterr) : ABX_OK;
	}
}

static int check_items(const abx__schema_field *field, const void *object,
		       const abx__schema_path *path, bool deep, abx_error **reterr)
{
	const char *items = *(void **)abx__schema_at(object, field->offset);
	size_t count = *(size_t *)abx__schema_at(object, field->aux);
	size_t size = field->type == ABX__SCHEMA_OBJECT  ? field->object->size
		      : field->type == ABX__SCHEMA_INT32 ? sizeof(int32_t)
		      : field->type == ABX__SCHEMA_INT64 ? sizeof(int64_t)
							 : sizeof(char *);

	if (count > field->max_items)
		return abx__schema_fail(path, reterr, "more than %u items",
					field->max_items);
	if (count < field->min_items)
		return abx__schema_fail(path, reterr, "fewer than %u items",
					field->min_items);
	for (size_t i = 0; i < count; i++) {
		abx__schema_path at = { .up = path, .index = i };
		int r = check_item(field, items + i * size, &at, deep, reterr);

		if (r < 0)
			return r;
	}
	return field->list_key ? check_unique(field, items, count, path, reterr) : ABX_OK;
}

static int check_enum(const abx__schema_field *field, int value,
		      const abx__schema_path *path, abx_error **reterr)
{
	int count = 0;

	while (field->names[count])
		count++;
	if (value >= 1 && value <= count)
		return ABX_OK;
	return abx__schema_fail(path, reterr, "value %d has no name", value);
}

int abx__schema_check_field(const abx__schema_field *field, const void *object,
			    const abx__schema_path *path, bool deep, abx_error **reterr)
{
	const void *at = abx__schema_at(object, field->offset);

	if (field->flags & ABX__FIELD_ARRAY)
		return check_items(field, object, path, deep, reterr);
	if (!abx__schema_is_given(field, object))
		return ABX_OK;
	switch ((enum abx__schema_type)field->type) {
	case ABX__SCHEMA_STRING:
		return check_string(field, *(char *const *)at, path, reterr);
	case ABX__SCHEMA_SECRET:
		return check_secret(field, *(abx__secret *const *)at, path, reterr);
	case ABX__SCHEMA_ENUM:
		return check_enum(field, *(const int *)at, path, reterr);
	case ABX__SCHEMA_INT32:
		return check_integer(field, *(const int32_t *)at, path, reterr);
	case ABX__SCHEMA_INT64:
		return check_integer(field, *(const int64_t *)at, path, reterr);
	case ABX__SCHEMA_MAP:
		return check_map(field, at, path, reterr);
	case ABX__SCHEMA_OBJECT:
		return deep ? validate_object(field->object, *(void *const *)at, path,
					      reterr)
			    : ABX_OK;
	case ABX__SCHEMA_BOOL:
	case ABX__SCHEMA_NUMBER:
	case ABX__SCHEMA_ANY:
		return ABX_OK;
	}
	return ABX_EFAIL;
}

static int validate_object(const abx__schema *schema, const void *object,
			   const abx__schema_path *path, abx_error **reterr)
{
	for (size_t i = 0; i < schema->count; i++) {
		const abx__schema_field *field = &schema->fields[i];
		abx__schema_path at = { .up = path, .name = field->name };
		bool may_be_empty =
			(field->flags & (ABX__FIELD_ARRAY | ABX__FIELD_NULLABLE)) ||
			field->type == ABX__SCHEMA_MAP;
		int r;

		if ((field->flags & ABX__FIELD_REQUIRED) && !may_be_empty &&
		    !abx__schema_is_given(field, object))
			return abx__schema_fail(&at, reterr, "required, but not given");
		r = abx__schema_check_field(field, object, &at, true, reterr);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

int abx__schema_validate(const abx__schema *schema, const void *object,
			 abx_error **reterr)
{
	return validate_object(schema, object, NULL, reterr);
}

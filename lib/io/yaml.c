/*
 * yaml.c - see yaml.h. A recursive descent over libyaml's events, as deep as
 * ABX__YAML_MAX_DEPTH.
 */
#include "io/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/str.h"
#include "io/json.h"

struct reader {
	yaml_parser_t parser;
	abx_error **reterr;
};

static int fail(struct reader *rd, int code, const yaml_mark_t *mark, const char *what,
		const char *detail)
{
	return abx__error_set(rd->reterr, code, "YAML, line %zu: %s%s%.100s",
			      mark->line + 1, what, *detail ? ": " : "", detail);
}

static int next_event(struct reader *rd, yaml_event_t *event)
{
	if (yaml_parser_parse(&rd->parser, event))
		return ABX_OK;
	if (rd->parser.error == YAML_MEMORY_ERROR)
		return abx__error_nomem(rd->reterr);
	if (rd->parser.error == YAML_READER_ERROR)
		return abx__error_set(rd->reterr, ABX_EINVAL, "YAML, byte %zu: %s",
				      rd->parser.problem_offset, rd->parser.problem);
	return fail(rd, ABX_EINVAL, &rd->parser.problem_mark, rd->parser.problem,
		    rd->parser.context ? rd->parser.context : "");
}

/* ---- plain scalars ---- */

static bool is_one_of(const char *s, const char *const *words)
{
	while (*words && strcmp(*words, s) != 0)
		words++;
	return *words != NULL;
}

static bool all_of(const char *s, const char *set)
{
	return *s && s[strspn(s, set)] == '\0';
}

/* [-+]?[0-9]+, with a leading zero octal; 0o7, 0x1f. */
static bool is_integer(const char *s, int *ret_base, const char **ret_digits)
{
	const char *digits = s + (*s == '-' || *s == '+');

	*ret_base = 10;
	*ret_digits = digits;
	if (strncmp(s, "0o", 2) == 0) {
		*ret_base = 8;
		*ret_digits = s + 2;
		return all_of(s + 2, "01234567");
	}
	if (strncmp(s, "0x", 2) == 0) {
		*ret_base = 16;
		*ret_digits = s + 2;
		return all_of(s + 2, "0123456789abcdefABCDEF");
	}
	if (!all_of(digits, "0123456789"))
		return false;
	if (digits[0] == '0' && digits[1] && all_of(digits, "01234567"))
		*ret_base = 8;
	return true;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_float(const char *s)
{
	size_t before, after = 0;

	s += *s == '-' || *s == '+';
	before = strspn(s, "0123456789");
	s += before;
	if (*s == '.') {
		after = strspn(s + 1, "0123456789");
		s += 1 + after;
	}
	if (before + after == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		return all_of(s, "0123456789");
	}
	return *s == '\0';
}

static int number(struct reader *rd, const yaml_event_t *event, const char *s,
		  json_object **ret)
{
	const char *digits;
	int base;

	if (is_integer(s, &base, &digits)) {
		bool negative = *s == '-';
		unsigned long long n;

		errno = 0;
		n = strtoull(digits, NULL, base);
		if (errno == 0 && !negative && n <= INT64_MAX)
			*ret = json_object_new_int64((int64_t)n);
		else if (errno == 0 && negative && n <= (unsigned long long)INT64_MAX + 1)
			*ret = json_object_new_int64((int64_t)(0 - n));
		else if (errno == 0 && !negative)
			*ret = json_object_new_uint64(n);
		else
			return fail(rd, ABX_EINVAL, &event->start_mark,
				    "the number is out of range", s);
		return *ret ? ABX_OK : abx__error_nomem(rd->reterr);
	}
	double value = strtod(s, NULL);

	if (!isfinite(value))
		return fail(rd, ABX_EINVAL, &event->start_mark,
			    "the number is out of range", s);
	*ret = abx__json_new_double(value);
	return *ret ? ABX_OK : abx__error_nomem(rd->reterr);
}

static int plain(struct reader *rd, const yaml_event_t *event, const char *s, size_t len,
		 json_object **ret)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	static const char *const odd[] = { ".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf",
					   "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
					   ".NaN",  ".NAN",  NULL };
	const char *digits;
	int base;

	if (is_one_of(s, nulls)) {
		*ret = NULL;
		return ABX_OK;
	}
	if (is_one_of(s, odd))
		return fail(rd, ABX_EINVAL, &event->start_mark,
			    "infinity and NaN are not taken", s);
	if (is_integer(s, &base, &digits) || is_float(s))
		return number(rd, event, s, ret);
	if (is_one_of(s, trues))
		*ret = json_object_new_boolean(true);
	else if (is_one_of(s, falses))
		*ret = json_object_new_boolean(false);
	else
		*ret = json_object_new_string_len(s, (int)len);
	return *ret ? ABX_OK : abx__error_nomem(rd->reterr);
}

/* ---- nodes ---- */

static int refuse_extras(struct reader *rd, const yaml_event_t *event,
			 const yaml_char_t *anchor)
{
	if (!anchor)
		return ABX_OK;
	return fail(rd, ABX_EINVAL, &event->start_mark,
		    "anchors and aliases are not taken; write the value out",
		    (const char *)anchor);
}

static int refuse_tag(struct reader *rd, const yaml_event_t *event,
		      const yaml_char_t *tag, const char *allowed)
{
	if (!tag || strcmp((const char *)tag, allowed) == 0)
		return ABX_OK;
	return fail(rd, ABX_EINVAL, &event->start_mark, "this tag is not taken",
		    (const char *)tag);
}

static int scalar(struct reader *rd, const yaml_event_t *event, json_object **ret)
{
	const char *s = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	const yaml_char_t *tag = event->data.scalar.tag;
	bool is_string = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	int r;

	r = refuse_extras(rd, event, event->data.scalar.anchor);
	if (r < 0)
		return r;
	if (tag && (strcmp((const char *)tag, "!") == 0 ||
		    strcmp((const char *)tag, YAML_STR_TAG) == 0))
		is_string = true;
	else if (tag)
		return refuse_tag(rd, event, tag, YAML_STR_TAG);
	if (!is_string)
		return plain(rd, event, s, len, ret);
	*ret = json_object_new_string_len(s, (int)len);
	return *ret ? ABX_OK : abx__error_nomem(rd->reterr);
}

static int node(struct reader *rd, const yaml_event_t *event, unsigned depth,
		json_object **ret);

static int sequence(struct reader *rd, const yaml_event_t *start, unsigned depth,
		    json_object **ret)
{
	ABX_CLEANUP_JSON json_object *array = json_object_new_array();
	int r;

	r = refuse_extras(rd, start, start->data.sequence_start.anchor);
	if (r == ABX_OK)
		r = refuse_tag(rd, start, start->data.sequence_start.tag, YAML_SEQ_TAG);
	if (r < 0)
		return r;
	if (!array)
		return abx__error_nomem(rd->reterr);
	for (;;) {
		ABX_CLEANUP(yaml_event_delete) yaml_event_t event = { 0 };
		json_object *item = NULL;

		r = next_event(rd, &event);
		if (r < 0)
			return r;
		if (event.type == YAML_SEQUENCE_END_EVENT)
			break;
		r = node(rd, &event, depth + 1, &item);
		if (r < 0)
			return r;
		if (abx__json_push_take(array, item) < 0)
			return abx__error_nomem(rd->reterr);
	}
	*ret = abx_take(array);
	return ABX_OK;
}

/* Is this event a key that may be added to `object`? */
static int check_key(struct reader *rd, const yaml_event_t *event, json_object *object)
{
	const char *key = (const char *)event->data.scalar.value;
	int r;

	if (event->type != YAML_SCALAR_EVENT)
		return fail(rd, ABX_EINVAL, &event->start_mark, "a key must be a scalar",
			    "");
	r = refuse_extras(rd, event, event->data.scalar.anchor);
	if (r == ABX_OK)
		r = refuse_tag(rd, event, event->data.scalar.tag, YAML_STR_TAG);
	if (r < 0)
		return r;
	if (strlen(key) != event->data.scalar.length)
		return fail(rd, ABX_EINVAL, &event->start_mark, "a NUL byte in a key",
			    key);
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(key, "<<") == 0)
		return fail(rd, ABX_EINVAL, &event->start_mark,
			    "merge keys are not taken; write the values out", key);
	if (json_object_object_get_ex(object, key, NULL))
		return fail(rd, ABX_EINVAL, &event->start_mark, "duplicate key", key);
	return ABX_OK;
}

static int pair(struct reader *rd, const yaml_event_t *key, unsigned depth,
		json_object *object)
{
	ABX_CLEANUP(yaml_event_delete) yaml_event_t event = { 0 };
	json_object *value = NULL;
	int r;

	r = check_key(rd, key, object);
	if (r == ABX_OK)
		r = next_event(rd, &event);
	if (r == ABX_OK)
		r = node(rd, &event, depth + 1, &value);
	if (r < 0)
		return r;
	if (abx__json_set_take(object, (const char *)key->data.scalar.value, value) < 0)
		return abx__error_nomem(rd->reterr);
	return ABX_OK;
}

static int mapping(struct reader *rd, const yaml_event_t *start, unsigned depth,
		   json_object **ret)
{
	ABX_CLEANUP_JSON json_object *object = json_object_new_object();
	int r;

	r = refuse_extras(rd, start, start->data.mapping_start.anchor);
	if (r == ABX_OK)
		r = refuse_tag(rd, start, start->data.mapping_start.tag, YAML_MAP_TAG);
	if (r < 0)
		return r;
	if (!object)
		return abx__error_nomem(rd->reterr);
	for (;;) {
		ABX_CLEANUP(yaml_event_delete) yaml_event_t event = { 0 };

		r = next_event(rd, &event);
		if (r < 0)
			return r;
		if (event.type == YAML_MAPPING_END_EVENT)
			break;
		r = pair(rd, &event, depth, object);
		if (r < 0)
			return r;
	}
	*ret = abx_take(object);
	return ABX_OK;
}

static int node(struct reader *rd, const yaml_event_t *event, unsigned depth,
		json_object **ret)
{
	if (depth > ABX__YAML_MAX_DEPTH)
		return fail(rd, ABX_ETOOBIG, &event->start_mark, "nested too deeply", "");
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return scalar(rd, event, ret);
	case YAML_SEQUENCE_START_EVENT:
		return sequence(rd, event, depth, ret);
	case YAML_MAPPING_START_EVENT:
		return mapping(rd, event, depth, ret);
	case YAML_ALIAS_EVENT:
		return refuse_extras(rd, event, event->data.alias.anchor);
	default:
		return fail(rd, ABX_EINVAL, &event->start_mark, "unexpected end", "");
	}
}

static int documents(struct reader *rd, json_object *array)
{
	for (;;) {
		ABX_CLEANUP(yaml_event_delete) yaml_event_t event = { 0 };
		json_object *document = NULL;
		int r;

		r = next_event(rd, &event);
		if (r < 0)
			return r;
		if (event.type == YAML_STREAM_END_EVENT)
			return ABX_OK;
		if (event.type == YAML_STREAM_START_EVENT ||
		    event.type == YAML_DOCUMENT_START_EVENT ||
		    event.type == YAML_DOCUMENT_END_EVENT)
			continue;
		r = node(rd, &event, 1, &document);
		if (r < 0)
			return r;
		if (!document)
			continue;
		if (json_object_array_length(array) >= ABX__YAML_MAX_DOCUMENTS) {
			json_object_put(document);
			return fail(rd, ABX_ETOOBIG, &event.start_mark,
				    "too many documents", "");
		}
		if (abx__json_push_take(array, document) < 0)
			return abx__error_nomem(rd->reterr);
	}
}

int abx__yaml_parse(const char *text, size_t len, size_t max_bytes, json_object **ret,
		    abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *array = NULL;
	struct reader rd = { .reterr = reterr };
	int r;

	if (max_bytes == 0)
		max_bytes = ABX__YAML_DEFAULT_MAX_BYTES;
	if (len > max_bytes)
		return abx__error_set(reterr, ABX_ETOOBIG,
				      "YAML of %zu bytes; at most %zu are taken", len,
				      max_bytes);
	if (!abx__utf8_is_valid(text, len))
		return abx__error_set(reterr, ABX_EINVAL, "YAML: not valid UTF-8");
	array = json_object_new_array();
	if (!array || !yaml_parser_initialize(&rd.parser))
		return abx__error_nomem(reterr);
	yaml_parser_set_encoding(&rd.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&rd.parser, (const unsigned char *)text, len);
	r = documents(&rd, array);
	yaml_parser_delete(&rd.parser);
	if (r == ABX_OK)
		*ret = abx_take(array);
	return r;
}

/*
 * json.c - json-c behind caps and checks.
 *
 * json-c's strict mode still lets a few things through (NaN, Infinity, raw control
 * characters in strings, what stands behind a NUL); those are refused here, so that what
 * we accept is what every peer reads alike.
 */
#include "io/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

static void tokener_freep(json_tokener **tok)
{
	if (*tok)
		json_tokener_free(*tok);
}

static int fail_at(abx_error **reterr, int code, const char *text, size_t offset,
		   const char *what)
{
	size_t line = 1;

	for (size_t i = 0; i < offset; i++)
		line += text[i] == '\n';
	return abx__error_set(reterr, code, "JSON, line %zu, byte %zu: %s", line, offset,
			      what);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t count_digits(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] >= '0' && s[n] <= '9')
		n++;
	return n;
}

/* RFC 8259 section 6. */
static bool is_number(const char *s, size_t len)
{
	size_t i = 0, n;

	i += len > 0 && s[0] == '-';
	n = count_digits(s + i, len - i);
	if (n == 0 || (n > 1 && s[i] == '0'))
		return false;
	i += n;
	if (i < len && s[i] == '.') {
		n = count_digits(s + i + 1, len - i - 1);
		if (n == 0)
			return false;
		i += 1 + n;
	}
	if (i < len && (s[i] == 'e' || s[i] == 'E')) {
		i++;
		i += i < len && (s[i] == '+' || s[i] == '-');
		n = count_digits(s + i, len - i);
		if (n == 0)
			return false;
		i += n;
	}
	return i == len;
}

static bool is_word(const char *s, size_t len)
{
	return (len == 4 && memcmp(s, "true", 4) == 0) ||
	       (len == 4 && memcmp(s, "null", 4) == 0) ||
	       (len == 5 && memcmp(s, "false", 5) == 0);
}

/* Behind the string that starts at text[i], or where a control character stands raw in
 * it. */
static size_t skip_string(const char *text, size_t len, size_t i, const char **ret_what)
{
	for (i++; i < len && text[i] != '"'; i++) {
		if ((unsigned char)text[i] < 0x20) {
			*ret_what = "a control character in a string must be escaped";
			return i;
		}
		if (text[i] == '\\')
			i++;
	}
	return i < len ? i + 1 : len;
}

/* Looks at the tokens alone, where json-c is more lenient than the RFC; how they nest is
   json-c's. Returns the offset of the first one that is none, with *ret_what set; len
   when all are fine. */
static size_t find_bad_token(const char *text, size_t len, const char **ret_what)
{
	size_t i = 0;

	while (i < len && !*ret_what) {
		size_t n = 0;

		if (text[i] == '"') {
			i = skip_string(text, len, i, ret_what);
			continue;
		}
		if (is_blank(text[i]) || (text[i] && strchr("{}[],:", text[i]))) {
			i++;
			continue;
		}
		while (i + n < len && !is_blank(text[i + n]) &&
		       (!text[i + n] || !strchr("{}[],:\"", text[i + n])))
			n++;
		if (!is_number(text + i, n) && !is_word(text + i, n))
			*ret_what = "neither a string, a number, true, false nor null";
		else
			i += n;
	}
	return i;
}

static bool has_odd_number(json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_double:
		return !isfinite(json_object_get_double(value));
	case json_type_array:
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			if (has_odd_number(json_object_array_get_idx(value, i)))
				return true;
		}
		return false;
	case json_type_object: {
		json_object_object_foreach(value, key, member)
		{
			(void)key;
			if (has_odd_number(member))
				return true;
		}
		return false;
	}
	default:
		return false;
	}
}

static int tokenise(const char *text, size_t len, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(tokener_freep)
	json_tokener *tok = json_tokener_new_ex(ABX__JSON_MAX_DEPTH);
	ABX_CLEANUP_JSON json_object *value = NULL;
	enum json_tokener_error err;
	size_t end;

	if (!tok)
		return abx__error_nomem(reterr);
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	value = json_tokener_parse_ex(tok, text, (int)len);
	err = json_tokener_get_error(tok);
	end = err == json_tokener_continue ? len : json_tokener_get_parse_end(tok);
	if (err == json_tokener_continue) {
		/* A bare number or word ends only where the text does. */
		value = json_tokener_parse_ex(tok, "", 1);
		err = json_tokener_get_error(tok);
	}
	if (err == json_tokener_continue || err == json_tokener_error_parse_eof)
		return fail_at(reterr, ABX_EINVAL, text, len, "the text ends too early");
	if (err == json_tokener_error_depth)
		return fail_at(reterr, ABX_ETOOBIG, text, end, "nested too deeply");
	if (err != json_tokener_success)
		return fail_at(reterr, ABX_EINVAL, text, end,
			       json_tokener_error_desc(err));
	while (end < len && is_blank(text[end]))
		end++;
	if (end < len)
		return fail_at(reterr, ABX_EINVAL, text, end,
			       "unexpected text behind the value");
	if (has_odd_number(value))
		return fail_at(reterr, ABX_EINVAL, text, len, "a number is out of range");
	*ret = abx_take(value);
	return ABX_OK;
}

int abx__json_parse(const char *text, size_t len, size_t max_bytes, json_object **ret,
		    abx_error **reterr)
{
	const char *what = NULL;
	size_t bad;

	if (max_bytes == 0)
		max_bytes = ABX__JSON_DEFAULT_MAX_BYTES;
	if (max_bytes > INT32_MAX)
		max_bytes = INT32_MAX;
	if (len > max_bytes)
		return abx__error_set(reterr, ABX_ETOOBIG,
				      "JSON of %zu bytes; at most %zu are taken", len,
				      max_bytes);
	if (!abx__utf8_is_valid(text, len))
		return abx__error_set(reterr, ABX_EINVAL, "JSON: not valid UTF-8");
	bad = find_bad_token(text, len, &what);
	if (what)
		return fail_at(reterr, ABX_EINVAL, text, bad, what);
	return tokenise(text, len, ret, reterr);
}

int abx__json_parse_object(const char *text, size_t len, size_t max_bytes,
			   json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *value = NULL;
	int r;

	r = abx__json_parse(text, len, max_bytes, &value, reterr);
	if (r < 0)
		return r;
	if (!json_object_is_type(value, json_type_object))
		return abx__error_set(reterr, ABX_EINVAL,
				      "JSON: an object is expected, not %s",
				      json_type_to_name(json_object_get_type(value)));
	*ret = abx_take(value);
	return ABX_OK;
}

#define PRINT_FLAGS (JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)

int abx__json_print(json_object *value, abx__buf *buf)
{
	const char *text;
	size_t len;

	if (!value)
		return abx__buf_adds(buf, "null");
	text = json_object_to_json_string_length(value, PRINT_FLAGS, &len);
	if (!text)
		return ABX_ENOMEM;
	return abx__buf_add(buf, text, len);
}

char *abx__json_text(json_object *value, size_t *ret_len)
{
	const char *text = "null";
	size_t len = 4;
	char *copy;

	if (value)
		text = json_object_to_json_string_length(value, PRINT_FLAGS, &len);
	copy = text ? abx__strndup(text, len) : NULL;
	if (copy && ret_len)
		*ret_len = len;
	return copy;
}

static int get_typed(json_object *obj, const char *key, json_type type, json_object **ret,
		     abx_error **reterr)
{
	json_object *value = NULL;

	if (!json_object_is_type(obj, json_type_object) ||
	    !json_object_object_get_ex(obj, key, &value) || !value)
		return 0;
	if (!json_object_is_type(value, type))
		return abx__error_set(reterr, ABX_EINVAL, "%s: %s expected, not %s", key,
				      json_type_to_name(type),
				      json_type_to_name(json_object_get_type(value)));
	*ret = value;
	return 1;
}

const char *abx__json_str(json_object *value)
{
	const char *s;

	if (!json_object_is_type(value, json_type_string))
		return NULL;
	s = json_object_get_string(value);
	return strlen(s) == (size_t)json_object_get_string_len(value) ? s : NULL;
}

int abx__json_get_str(json_object *obj, const char *key, const char **ret,
		      abx_error **reterr)
{
	json_object *value = NULL;
	const char *s;
	int r;

	r = get_typed(obj, key, json_type_string, &value, reterr);
	if (r <= 0)
		return r;
	s = abx__json_str(value);
	if (!s)
		return abx__error_set(reterr, ABX_EINVAL, "%s: a NUL byte is not allowed",
				      key);
	*ret = s;
	return 1;
}

int abx__json_get_i64(json_object *obj, const char *key, int64_t min, int64_t max,
		      int64_t *ret, abx_error **reterr)
{
	json_object *value = NULL;
	int64_t n;
	int r;

	r = get_typed(obj, key, json_type_int, &value, reterr);
	if (r <= 0)
		return r;
	n = json_object_get_int64(value);
	if (n < min || n > max)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s: %lld is outside %lld..%lld", key, (long long)n,
				      (long long)min, (long long)max);
	*ret = n;
	return 1;
}

int abx__json_get_bool(json_object *obj, const char *key, bool *ret, abx_error **reterr)
{
	json_object *value = NULL;
	int r;

	r = get_typed(obj, key, json_type_boolean, &value, reterr);
	if (r > 0)
		*ret = json_object_get_boolean(value);
	return r;
}

int abx__json_get_object(json_object *obj, const char *key, json_object **ret,
			 abx_error **reterr)
{
	return get_typed(obj, key, json_type_object, ret, reterr);
}

int abx__json_get_array(json_object *obj, const char *key, json_object **ret,
			abx_error **reterr)
{
	return get_typed(obj, key, json_type_array, ret, reterr);
}

int abx__json_only(json_object *obj, const char *const *known, abx_error **reterr)
{
	if (!json_object_is_type(obj, json_type_object))
		return abx__error_set(reterr, ABX_EINVAL, "an object is expected");
	json_object_object_foreach(obj, key, value)
	{
		const char *const *name = known;

		(void)value;
		while (*name && strcmp(*name, key) != 0)
			name++;
		if (!*name)
			return abx__error_set(reterr, ABX_EINVAL, "unknown field %.100s",
					      key);
	}
	return ABX_OK;
}

int abx__json_set_take(json_object *obj, const char *key, json_object *value)
{
	if (json_object_object_add(obj, key, value) == 0)
		return ABX_OK;
	json_object_put(value);
	return ABX_ENOMEM;
}

static int set_new(json_object *obj, const char *key, json_object *value)
{
	return value ? abx__json_set_take(obj, key, value) : ABX_ENOMEM;
}

int abx__json_set_str(json_object *obj, const char *key, const char *value)
{
	if (!value)
		return abx__json_set_take(obj, key, NULL);
	return set_new(obj, key, json_object_new_string(value));
}

int abx__json_set_i64(json_object *obj, const char *key, int64_t value)
{
	return set_new(obj, key, json_object_new_int64(value));
}

int abx__json_set_bool(json_object *obj, const char *key, bool value)
{
	return set_new(obj, key, json_object_new_boolean(value));
}

json_object *abx__json_new_double(double value)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	if (!strpbrk(text, ".en")) /* still a number with a fraction when read back */
		memcpy(text + strlen(text), ".0", 3);
	return json_object_new_double_s(value, text);
}

int abx__json_set_double(json_object *obj, const char *key, double value)
{
	return set_new(obj, key, abx__json_new_double(value));
}

int abx__json_push_take(json_object *array, json_object *value)
{
	if (json_object_array_add(array, value) == 0)
		return ABX_OK;
	json_object_put(value);
	return ABX_ENOMEM;
}

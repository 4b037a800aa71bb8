/*
 * spec-read.c - reading a template's JSON: objects, lists, strings, numbers, quantities.
 */
#include "engine/podd/spec-read.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define PATH_SIZE 256
#define STRING_MAX_LEN ((size_t)64 << 10)

int abx__spec_refuse(const struct spec_at *at, const char *why)
{
	return abx__error_set(at->reterr, ABX_EUNSUPPORTED, "%s: %s", at->path, why);
}

int abx__spec_invalid(const struct spec_at *at, const char *why)
{
	return abx__error_set(at->reterr, ABX_EINVAL, "%s: %s", at->path, why);
}

static int sub_path(char out[PATH_SIZE], const char *base, const char *key)
{
	abx__buf buf = ABX__BUF_INIT_CAP(PATH_SIZE - 1);
	int r = abx__buf_addf(&buf, "%s%s%s", base, *base ? "." : "", key);

	if (r == ABX_OK)
		r = abx__str_copy(out, PATH_SIZE, abx__buf_str(&buf));
	abx__buf_done(&buf);
	if (r < 0)
		abx__str_copy(out, PATH_SIZE, "(a path too long to show)");
	return r == ABX_ETOOBIG ? ABX_OK : r;
}

/* Walks an object; every key must be in the table. */
int abx__spec_object(const struct spec_at *at, json_object *o,
		     const struct spec_field *fields, void *into)
{
	if (!json_object_is_type(o, json_type_object))
		return abx__spec_invalid(at, "must be an object");
	json_object_object_foreach(o, key, value)
	{
		char path[PATH_SIZE];
		struct spec_at here = { path, at->reterr };
		const struct spec_field *f;
		int r = sub_path(path, at->path, key);

		if (r < 0)
			return abx__error_nomem(at->reterr);
		for (f = fields; f->key && strcmp(f->key, key) != 0; f++)
			;
		if (!f->key)
			return abx__spec_refuse(
				&here, "the local engine does not honour this field");
		if (!value)
			continue; /* null is absent, as in Kubernetes */
		r = f->read(&here, value, into);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

int abx__spec_array(const struct spec_at *at, json_object *a, spec_read_fn read,
		    void *into)
{
	if (!json_object_is_type(a, json_type_array))
		return abx__spec_invalid(at, "must be a list");
	for (size_t i = 0; i < json_object_array_length(a); i++) {
		char path[PATH_SIZE];
		struct spec_at here = { path, at->reterr };
		abx__buf buf = ABX__BUF_INIT_CAP(PATH_SIZE - 1);
		json_object *item = json_object_array_get_idx(a, i);
		int r = abx__buf_addf(&buf, "%s[%zu]", at->path, i);

		abx__str_copy(path, sizeof(path), r < 0 ? at->path : abx__buf_str(&buf));
		abx__buf_done(&buf);
		if (!item)
			return abx__spec_invalid(&here, "must not be null");
		r = read(&here, item, into);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

int abx__spec_string(const struct spec_at *at, json_object *v, char **ret)
{
	const char *s = json_object_get_string(v);
	size_t len = (size_t)json_object_get_string_len(v);
	char *copy;

	if (!json_object_is_type(v, json_type_string))
		return abx__spec_invalid(at, "must be a string");
	if (len > STRING_MAX_LEN)
		return abx__spec_invalid(at, "is longer than 64 KiB");
	if (strlen(s) != len)
		return abx__spec_invalid(at, "holds a NUL byte");
	copy = abx__strndup(s, len);
	if (!copy)
		return abx__error_nomem(at->reterr);
	abx__free(*ret);
	*ret = copy;
	return ABX_OK;
}

int abx__spec_bool(const struct spec_at *at, json_object *v, bool *ret)
{
	if (!json_object_is_type(v, json_type_boolean))
		return abx__spec_invalid(at, "must be true or false");
	*ret = json_object_get_boolean(v);
	return ABX_OK;
}

int abx__spec_id(const struct spec_at *at, json_object *v, int64_t *ret)
{
	int64_t n = json_object_get_int64(v);

	if (!json_object_is_type(v, json_type_int) || n < 0 || n > 65535)
		return abx__spec_invalid(at, "must be a number from 0 to 65535");
	*ret = n;
	return ABX_OK;
}

static bool name_is_valid(const char *s)
{
	size_t len = strlen(s);

	return len >= 1 && len <= 63 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && s[0] != '-' &&
	       s[len - 1] != '-';
}

int abx__spec_label(const struct spec_at *at, json_object *v, char **ret)
{
	int r = abx__spec_string(at, v, ret);

	if (r < 0)
		return r;
	return name_is_valid(*ret)
		       ? ABX_OK
		       : abx__spec_invalid(at,
					   "must be a DNS label: [a-z0-9-], at most 63");
}

bool abx__spec_path_is_clean(const char *path)
{
	if (path[0] != '/' || path[1] == '\0')
		return false;
	for (const char *p = path; *p;) {
		size_t len = strcspn(++p, "/");

		if (len == 0 || (len == 1 && p[0] == '.') ||
		    (len == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += len;
	}
	return true;
}

int abx__spec_text(const struct spec_at *at, json_object *v, void *into)
{
	(void)into;
	return json_object_is_type(v, json_type_string)
		       ? ABX_OK
		       : abx__spec_invalid(at, "must be a string");
}

/* ---- string vectors ---- */

void abx__spec_strv_free(abx__spec_strv v)
{
	for (size_t i = 0; v && v[i]; i++)
		abx__free(v[i]);
	abx__free(v);
}

size_t abx__spec_strv_len(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

/* Appends an owned string. */
int abx__spec_strv_take(abx__spec_strv *v, char *s)
{
	size_t n = abx__spec_strv_len(*v);
	char **grown = abx__reallocarray(*v, n + 2, sizeof(*grown));

	if (!grown)
		return ABX_ENOMEM;
	grown[n] = s;
	grown[n + 1] = NULL;
	*v = grown;
	return ABX_OK;
}

static int read_strv_item(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec_strv *strv = into;
	char *s = NULL;
	int r = abx__spec_string(at, v, &s);

	if (r == ABX_OK && abx__spec_strv_len(*strv) >= ABX__SPEC_ARG_MAX)
		r = abx__spec_invalid(at, "too many items");
	if (r == ABX_OK) {
		r = abx__spec_strv_take(strv, s);
		if (r < 0)
			abx__error_nomem(at->reterr);
	}
	if (r < 0)
		abx__free(s);
	return r;
}

int abx__spec_strings(const struct spec_at *at, json_object *v, abx__spec_strv *into)
{
	abx__spec_strv_free(*into);
	*into = abx__calloc(1, sizeof(char *));
	if (!*into)
		return abx__error_nomem(at->reterr);
	return abx__spec_array(at, v, read_strv_item, into);
}

/* ---- quantities ---- */

static const struct {
	const char *suffix;
	double factor;
} suffixes[] = {
	{ "", 1 },
	{ "m", 1e-3 },
	{ "k", 1e3 },
	{ "M", 1e6 },
	{ "G", 1e9 },
	{ "T", 1e12 },
	{ "P", 1e15 },
	{ "Ki", 1024.0 },
	{ "Mi", 1048576.0 },
	{ "Gi", 1073741824.0 },
	{ "Ti", 1099511627776.0 },
	{ "Pi", 1125899906842624.0 },
};

static int parse_quantity(const char *s, double *ret)
{
	size_t len = strspn(s, "0123456789.");
	char number[40];
	char *end;
	double n;

	if (len == 0 || len >= sizeof(number) || s[0] == '.')
		return ABX_EINVAL;
	if (s[len] == 'e' || (s[len] == 'E' && isdigit((unsigned char)s[len + 1]))) {
		size_t digits = strspn(s + len + 1, "0123456789");

		if (digits < 1 || digits > 2)
			return ABX_EINVAL;
		len += 1 + digits;
	}
	if (len >= sizeof(number))
		return ABX_EINVAL;
	memcpy(number, s, len);
	number[len] = '\0';
	n = strtod(number, &end);
	if (*end || !isfinite(n))
		return ABX_EINVAL;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strcmp(s + len, suffixes[i].suffix) == 0) {
			*ret = n * suffixes[i].factor;
			return ABX_OK;
		}
	return ABX_EINVAL;
}

int abx__spec_parse_cpu(const char *s, int64_t *ret_milli)
{
	double n;

	if (parse_quantity(s, &n) < 0 || n * 1000 > 1e9)
		return ABX_EINVAL;
	*ret_milli = (int64_t)ceil(n * 1000 - 1e-9);
	return ABX_OK;
}

int abx__spec_parse_bytes(const char *s, uint64_t *ret_bytes)
{
	double n;

	if (parse_quantity(s, &n) < 0 || n > 1e18)
		return ABX_EINVAL;
	*ret_bytes = (uint64_t)ceil(n - 1e-9);
	return ABX_OK;
}

/* A quantity may be a JSON number or a string. */
static int get_quantity(const struct spec_at *at, json_object *v, const char **ret)
{
	if (!json_object_is_type(v, json_type_string) &&
	    !json_object_is_type(v, json_type_int) &&
	    !json_object_is_type(v, json_type_double))
		return abx__spec_invalid(
			at, "must be a quantity such as \"500m\" or \"2Gi\"");
	*ret = json_object_get_string(v);
	return ABX_OK;
}

int abx__spec_cpu(const struct spec_at *at, json_object *v, int64_t *into)
{
	const char *s;
	int r = get_quantity(at, v, &s);

	if (r < 0)
		return r;
	return abx__spec_parse_cpu(s, into) < 0
		       ? abx__spec_invalid(at, "is no CPU quantity")
		       : ABX_OK;
}

int abx__spec_bytes(const struct spec_at *at, json_object *v, uint64_t *into)
{
	const char *s;
	int r = get_quantity(at, v, &s);

	if (r < 0)
		return r;
	return abx__spec_parse_bytes(s, into) < 0
		       ? abx__spec_invalid(at, "is no quantity of bytes")
		       : ABX_OK;
}

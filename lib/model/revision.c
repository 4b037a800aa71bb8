/*
 * revision.c - the revision hash of a pool spec.
 *
 * The normalised text is written straight from the caller's object, so nothing of it is
 * copied or changed: the writer knows by its path what to skip and what to replace.
 */
#include "model/revision.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "model/keys.h"

#define DEPTH_MAX 64

/* Where in the spec the writer is; everything else is copied as it is. */
enum place {
	ELSEWHERE,
	SPEC,
	TEMPLATE,
	METADATA,
	LABELS,
	POD_SPEC,
	CONTAINERS,
	MAIN_CONTAINER
};

typedef struct writer {
	abx__buf buf;
	const char *idle_image; /* stands for the main image when not NULL */
} writer;

static const struct {
	enum place at;
	const char *key;
	enum place to;
} steps[] = {
	{ SPEC, "template", TEMPLATE },         { TEMPLATE, "metadata", METADATA },
	{ METADATA, "labels", LABELS },         { TEMPLATE, "spec", POD_SPEC },
	{ POD_SPEC, "containers", CONTAINERS },
};

static const struct {
	enum place at;
	const char *key;
} left_out[] = {
	{ SPEC, "replicas" },
	{ SPEC, "defaultStartupTimeout" },
	{ SPEC, "defaultIdleTimeout" },
	{ SPEC, "maxUnavailable" },
	{ SPEC, "templateName" },
	{ SPEC, "podCreationImagePolicy" }, /* written apart */
	{ LABELS, ABX__LABEL_TEMPLATE_HASH },
};

static enum place step(enum place at, const char *key)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].at == at && strcmp(steps[i].key, key) == 0)
			return steps[i].to;
	return ELSEWHERE;
}

static bool is_left_out(enum place at, const char *key, json_object *value)
{
	if (!value)
		return true; /* null is absent */
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (left_out[i].at == at && strcmp(left_out[i].key, key) == 0)
			return true;
	/* A switched-off gateway is none. */
	if (at == SPEC && strcmp(key, "gateway") == 0)
		return !json_object_get_boolean(json_object_object_get(value, "enabled"));
	return false;
}

static int write_value(writer *w, json_object *value, enum place at, unsigned depth);

static int write_text(writer *w, json_object *value)
{
	const char *s = json_object_to_json_string_ext(
		value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	return s ? abx__buf_adds(&w->buf, s) : ABX_ENOMEM;
}

static int write_name(writer *w, const char *key)
{
	json_object *name = json_object_new_string(key);
	int r = name ? write_text(w, name) : ABX_ENOMEM;

	json_object_put(name);
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Members whose values come out empty at METADATA and LABELS vanish, so that a pool
   stamped with the hash label and one not yet stamped are the same. */
static int write_member(writer *w, enum place at, const char *key, json_object *value,
			unsigned depth)
{
	size_t before = w->buf.len, start;
	enum place to = step(at, key);
	int r;

	if (w->buf.data[w->buf.len - 1] != '{') {
		r = abx__buf_addc(&w->buf, ',');
		if (r < 0)
			return r;
	}
	r = write_name(w, key);
	if (r == ABX_OK)
		r = abx__buf_addc(&w->buf, ':');
	if (r < 0)
		return r;
	start = w->buf.len;
	if (at == MAIN_CONTAINER && w->idle_image && strcmp(key, "image") == 0)
		return write_name(w, w->idle_image);
	r = write_value(w, value, to, depth + 1);
	if (r == ABX_OK && (to == METADATA || to == LABELS) &&
	    strcmp(w->buf.data + start, "{}") == 0) {
		w->buf.len = before;
		w->buf.data[before] = '\0';
	}
	return r;
}

static int write_object(writer *w, json_object *object, enum place at, unsigned depth)
{
	ABX_CLEANUP(abx__freep) const char **names = NULL;
	size_t count = 0;
	int r;

	names = abx__calloc((size_t)json_object_object_length(object) + 1,
			    sizeof(*names));
	if (!names)
		return ABX_ENOMEM;
	json_object_object_foreach(object, key, value)
	{
		if (!is_left_out(at, key, value))
			names[count++] = key;
	}
	qsort(names, count, sizeof(*names), by_name);
	r = abx__buf_addc(&w->buf, '{');
	for (size_t i = 0; i < count && r == ABX_OK; i++)
		r = write_member(w, at, names[i],
				 json_object_object_get(object, names[i]), depth);
	return r < 0 ? r : abx__buf_addc(&w->buf, '}');
}

static int write_array(writer *w, json_object *array, enum place at, unsigned depth)
{
	size_t count = json_object_array_length(array);
	int r = abx__buf_addc(&w->buf, '[');

	for (size_t i = 0; i < count && r == ABX_OK; i++) {
		if (i)
			r = abx__buf_addc(&w->buf, ',');
		if (r == ABX_OK)
			r = write_value(w, json_object_array_get_idx(array, i),
					at == CONTAINERS && i == 0 ? MAIN_CONTAINER
								   : ELSEWHERE,
					depth + 1);
	}
	return r < 0 ? r : abx__buf_addc(&w->buf, ']');
}

static int write_value(writer *w, json_object *value, enum place at, unsigned depth)
{
	if (depth > DEPTH_MAX)
		return ABX_EINVAL;
	if (json_object_is_type(value, json_type_object))
		return write_object(w, value, at, depth);
	if (json_object_is_type(value, json_type_array))
		return write_array(w, value, at, depth);
	return value ? write_text(w, value) : abx__buf_adds(&w->buf, "null");
}

static const char *member_string(json_object *object, const char *key)
{
	json_object *value = json_object_object_get(object, key);

	return json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : "";
}

int abx__revision(json_object *pool_spec, char out[ABX__REVISION_SIZE],
		  abx_error **reterr)
{
	bool pool_default = strcmp(member_string(pool_spec, "podCreationImagePolicy"),
				   "PoolDefaultImage") == 0;
	const char *idle_image = member_string(pool_spec, "idleImage");
	writer w = { .idle_image = !pool_default && *idle_image ? idle_image : NULL };
	int r;

	out[0] = '\0';
	if (!pool_spec)
		return ABX_OK;
	r = abx__buf_adds(&w.buf, pool_default ? "PoolDefaultImage" : "IdleImage");
	if (r == ABX_OK)
		r = write_value(&w, pool_spec, SPEC, 0);
	if (r == ABX_OK)
		snprintf(out, ABX__REVISION_SIZE, "%08x",
			 abx__fnv1a32(w.buf.data, w.buf.len));
	abx__buf_done(&w.buf);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	return r < 0 ? abx__error_set(reterr, r,
				      "pool spec is nested too deeply or too large")
		     : r;
}

/*
 * spec-read.h - how a template's JSON is read: objects by a table of readers, lists,
 * strings, numbers, quantities; every refusal names the path.
 */
#ifndef ABX_ENGINE_PODD_SPEC_READ_H
#define ABX_ENGINE_PODD_SPEC_READ_H

#include "engine/podd/spec.h"

/* Where the parser is: the path so far and the error to fill. */
struct spec_at {
	const char *path;
	abx_error **reterr;
};

typedef int (*spec_read_fn)(const struct spec_at *at, json_object *value, void *into);
struct spec_field {
	const char *key;
	spec_read_fn read;
};

/* ABX_EUNSUPPORTED and ABX_EINVAL: "path: why". */
int abx__spec_refuse(const struct spec_at *at, const char *why);
int abx__spec_invalid(const struct spec_at *at, const char *why);

/* Walks an object; every key must be in the table, which ends with {0}. */
int abx__spec_object(const struct spec_at *at, json_object *o,
		     const struct spec_field *fields, void *into);
int abx__spec_array(const struct spec_at *at, json_object *a, spec_read_fn read,
		    void *into);
/* The string, list of strings before is freed. */
int abx__spec_string(const struct spec_at *at, json_object *v, char **ret);
int abx__spec_label(const struct spec_at *at, json_object *v, char **ret);
int abx__spec_strings(const struct spec_at *at, json_object *v, abx__spec_strv *into);
int abx__spec_bool(const struct spec_at *at, json_object *v, bool *ret);
int abx__spec_id(const struct spec_at *at, json_object *v, int64_t *ret);
int abx__spec_cpu(const struct spec_at *at, json_object *v, int64_t *into);
int abx__spec_bytes(const struct spec_at *at, json_object *v, uint64_t *into);
/* A string nobody uses here. */
int abx__spec_text(const struct spec_at *at, json_object *v, void *into);

size_t abx__spec_strv_len(char *const *v);
/* Appends an owned string; on failure it stays the caller's. */
int abx__spec_strv_take(abx__spec_strv *v, char *s);

/* ---- spec-container.c ---- */

int abx__spec_container_read(const struct spec_at *at, json_object *v,
			     abx__spec_container *c);
void abx__spec_container_done(abx__spec_container *c);

#endif

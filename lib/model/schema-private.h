/*
 * schema-private.h - what the files of the schema engine share.
 */
#ifndef ABX_MODEL_SCHEMA_PRIVATE_H
#define ABX_MODEL_SCHEMA_PRIVATE_H

#include "model/schema.h"

/* Where in a document the engine is; links live on the C stack. */
typedef struct abx__schema_path {
	const struct abx__schema_path *up; /* NULL at the root */
	const char *name;                  /* a member; NULL: an item */
	size_t index;
	bool is_key; /* of a map: printed in brackets */
} abx__schema_path;

/* "path: message" as ABX_EINVAL. */
int abx__schema_fail(const abx__schema_path *path, abx_error **reterr, const char *fmt,
		     ...) __attribute__((format(printf, 3, 4)));
/* Puts the path before the error that is there. */
int abx__schema_fail_at(const abx__schema_path *path, abx_error **reterr);

/* The value at `field` in the struct keeps to its bounds, pattern and format, down to its
 * leaves when `deep`. */
int abx__schema_check_field(const abx__schema_field *field, const void *object,
			    const abx__schema_path *path, bool deep, abx_error **reterr);
/* A text is of the format; the error has no path. */
int abx__schema_check_format(enum abx__schema_format format, const char *text,
			     abx_error **reterr);
bool abx__schema_is_given(const abx__schema_field *field, const void *object);

static inline void *abx__schema_at(const void *object, uint16_t offset)
{
	return (char *)(uintptr_t)object + offset;
}

#endif

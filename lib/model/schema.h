/*
 * schema.h - one engine over the tables that api/gen/generate.py makes of the files of
 * api/.
 *
 * A schema describes a C struct field by field. The engine parses JSON into the struct,
 * checks it, fills in defaults, prints it back, describes it for people and frees it.
 * Errors are ABX_EINVAL and start with the full path of the field, such as
 * `spec.clusters[0].members[1].config.foo: unknown field`; they say what was expected and
 * what was given, never the value of a secret or of a map.
 *
 * In the structs: a string is NULL when not given; an enum is 0; a number or bool has
 * `has_NAME` beside it; an object is a pointer; an array NAME has `n_NAME`; a map is an
 * abx__map. JSON null is "not given". A field without fixed shape is a json_object,
 * shared with what it was parsed from and not to be changed.
 */
#ifndef ABX_MODEL_SCHEMA_H
#define ABX_MODEL_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/secret.h"

#define ABX__SCHEMA_DEPTH_MAX 32
#define ABX__SCHEMA_ITEMS_MAX 10000
#define ABX__SCHEMA_STRING_MAX 65536
#define ABX__SCHEMA_MAP_MAX 1024

enum abx__schema_type {
	ABX__SCHEMA_STRING, /* char * */
	ABX__SCHEMA_SECRET, /* abx__secret * */
	ABX__SCHEMA_ENUM, /* its own enum: 0 not given, then 1, 2, ... in the order of the
			     names */
	ABX__SCHEMA_BOOL, /* bool */
	ABX__SCHEMA_INT32,  /* int32_t */
	ABX__SCHEMA_INT64,  /* int64_t */
	ABX__SCHEMA_NUMBER, /* double */
	ABX__SCHEMA_OBJECT, /* pointer to the struct of `object` */
	ABX__SCHEMA_MAP,    /* abx__map */
	ABX__SCHEMA_ANY,    /* json_object * */
};

/* What a string, or each value of a map, must be. */
enum abx__schema_format {
	ABX__FORMAT_NONE,
	ABX__FORMAT_QUANTITY, /* a JSON number is taken as its text */
	ABX__FORMAT_DURATION,
	ABX__FORMAT_DATE_TIME,
	ABX__FORMAT_IMAGE,
	ABX__FORMAT_ENV_NAME,
	ABX__FORMAT_DNS_LABEL,
	ABX__FORMAT_DNS_SUBDOMAIN,
	ABX__FORMAT_INT_OR_PERCENT, /* a JSON integer is taken as its text */
};

enum {
	ABX__FIELD_REQUIRED = 1 << 0,
	ABX__FIELD_ARRAY =
		1 << 1, /* of STRING, INT32, INT64 or OBJECT (structs side by side) */
	ABX__FIELD_IMMUTABLE = 1 << 2, /* fixed at create */
	ABX__FIELD_NULLABLE = 1 << 3,  /* required and absent prints as null */
	ABX__FIELD_READ_ONLY = 1 << 4, /* the server's */
	ABX__FIELD_OMIT_ZERO = 1 << 5, /* a zero is not printed */
	ABX__FIELD_DEFAULT = 1 << 6,   /* has a default */
};

typedef struct abx__schema abx__schema;

typedef struct abx__schema_field {
	const char *name; /* on the wire */
	const char *description;
	const char *lever; /* of an immutable one: what to do instead of changing it */
	const abx__schema *object;
	const char *const *names; /* of an enum, NULL at the end */
	const char *pattern;      /* POSIX extended */
	const char *list_key;     /* items differ in this member */
	const char *default_text; /* of a string */
	int64_t default_number;   /* of a bool, integer or enum */
	int64_t minimum,
		maximum; /* of a number; of a string's characters; of a map's entries */
	uint32_t min_items, max_items;
	uint16_t offset;
	uint16_t aux; /* offset of has_NAME or n_NAME */
	uint16_t flags;
	uint8_t type;
	uint8_t format;
} abx__schema_field;

struct abx__schema {
	const char *name;
	const char *description;
	const abx__schema_field *fields;
	size_t count;
	size_t size; /* of the struct */
};

enum {
	/* parse: members the schema does not know are skipped, at any depth, instead of
	   refused */
	ABX__SCHEMA_TOLERANT = 1 << 0,
	/* parse: what was not given takes its default */
	ABX__SCHEMA_DEFAULTS = 1 << 1,
	/* print: what equals its default is left out */
	ABX__SCHEMA_OMIT_DEFAULTS = 1 << 2,
};

/* A new struct, freed with abx__schema_free(). `*ret` is set on success only. ABX_EINVAL,
 * ABX_ENOMEM. */
int abx__schema_parse(const abx__schema *schema, json_object *json, unsigned flags,
		      void **ret, abx_error **reterr);
/* The same from text, which must be one JSON value in UTF-8. */
int abx__schema_parse_text(const abx__schema *schema, const char *text, size_t len,
			   unsigned flags, void **ret, abx_error **reterr);
/* A struct made by hand keeps to its schema. */
int abx__schema_validate(const abx__schema *schema, const void *object,
			 abx_error **reterr);
int abx__schema_apply_defaults(const abx__schema *schema, void *object,
			       abx_error **reterr);
/* A new JSON object, or NULL when out of memory. Secrets are printed: this is for the
 * wire. */
json_object *abx__schema_print(const abx__schema *schema, const void *object,
			       unsigned flags);
void abx__schema_free(const abx__schema *schema, void *object); /* NULL is fine */
void abx__schema_done(const abx__schema *schema,
		      void *object); /* what is in it; zeroes it */
/* The fields as indented text, one a line, down to `depth` levels: for --help. */
int abx__schema_describe(const abx__schema *schema, unsigned depth, abx__buf *buf);

/* Helpers for those who build structs by hand. */
int abx__schema_set_string(char **field, const char *value); /* copies; ABX_ENOMEM */

/* An operation of api/native.yaml or api/e2b.yaml. */
enum abx__route_auth {
	ABX__AUTH_NONE,
	ABX__AUTH_KEY,     /* any key or session */
	ABX__AUTH_ADMIN,   /* the admin role */
	ABX__AUTH_SESSION, /* a console session */
};

typedef struct abx__route {
	const char *method;
	const char *path; /* with {parameters} and the base path: "/v1/envs/{name}" */
	const char *operation_id;
	const abx__schema *request;  /* NULL: none, or not described yet */
	const abx__schema *response; /* of success; NULL as above, or an array */
	uint16_t success;            /* status of success */
	uint8_t auth;
	bool strict; /* unknown members of the body are refused */
} abx__route;

/* What a generated header says for each struct abx__m_NAME. */
#define ABX__SCHEMA_TYPED(name)                                                          \
	extern const abx__schema name##_schema;                                          \
	static inline __attribute__((unused)) int name##_parse(                          \
		json_object *json, unsigned flags, name **ret, abx_error **reterr)       \
	{                                                                                \
		void *object = NULL;                                                     \
		int r = abx__schema_parse(&name##_schema, json, flags, &object, reterr); \
		if (r >= 0)                                                              \
			*ret = object;                                                   \
		return r;                                                                \
	}                                                                                \
	static inline __attribute__((unused)) int name##_parse_text(                     \
		const char *text, size_t len, unsigned flags, name **ret,                \
		abx_error **reterr)                                                      \
	{                                                                                \
		void *object = NULL;                                                     \
		int r = abx__schema_parse_text(&name##_schema, text, len, flags,         \
					       &object, reterr);                         \
		if (r >= 0)                                                              \
			*ret = object;                                                   \
		return r;                                                                \
	}                                                                                \
	static inline __attribute__((unused))                                            \
	json_object *name##_print(const name *object, unsigned flags)                    \
	{                                                                                \
		return abx__schema_print(&name##_schema, object, flags);                 \
	}                                                                                \
	static inline __attribute__((unused)) void name##_done(name *object)             \
	{                                                                                \
		abx__schema_done(&name##_schema, object);                                \
	}                                                                                \
	static inline __attribute__((unused)) void name##_free(name *object)             \
	{                                                                                \
		abx__schema_free(&name##_schema, object);                                \
	}                                                                                \
	static inline __attribute__((unused)) void name##_freep(name **object)           \
	{                                                                                \
		abx__schema_free(&name##_schema, *object);                               \
	}

#endif

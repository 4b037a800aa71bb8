/*
 * context-file.h - reading the file of known deployments; context.c writes it.
 */
#ifndef ABX_CLIENT_CONTEXT_FILE_H
#define ABX_CLIENT_CONTEXT_FILE_H

#include <agentbox/error.h>
#include <json-c/json.h>

/* The usual place, or a copy of `path`; NULL: out of memory. */
char *abx__context_path(const char *path);
/* 1 it was read, 0 there is none, ABX_EINVAL it is no JSON object, ABX_ENOMEM. */
int abx__context_read(const char *path, json_object **ret, abx_error **reterr);
/* The name a client takes when none is asked for, or NULL; borrowed from `file`. */
const char *abx__context_current(json_object *file);
/* "no context NAME in PATH", with the known ones. */
int abx__context_unknown(json_object *file, const char *path, const char *name,
			 abx_error **reterr);

#endif

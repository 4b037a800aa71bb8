/*
 * view.h - reading control's documents ({apiVersion, kind, metadata, spec, status}) for
 * answers. Everything returned is borrowed from the document. Inside of serve/ only.
 */
#ifndef ABX_SERVE_VIEW_H
#define ABX_SERVE_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "serve/keys.h"

/* The member at the end of the path of keys; NULL when a step is missing or null. */
json_object *abx__view_get(json_object *o, const char *const *keys);
#define abx__view_path(o, ...) \
	abx__view_get((o), (const char *const[]){ __VA_ARGS__, NULL })
/* Its text; NULL when missing or no string. */
const char *abx__view_text(json_object *o, const char *const *keys);
#define abx__view_str(o, ...) \
	abx__view_text((o), (const char *const[]){ __VA_ARGS__, NULL })
/* A string of metadata; a label; an annotation. */
const char *abx__view_meta(json_object *doc, const char *key);
const char *abx__view_label(json_object *doc, const char *key);
const char *abx__view_annotation(json_object *doc, const char *key);
/* The n-th member of the env's first segment that has any; NULL past the end. */
json_object *abx__view_member_at(json_object *env, size_t index);
/* The member of that name in any segment; NULL. */
json_object *abx__view_member(json_object *env, const char *name);
/* By the team and user labels: an admin sees all, unlabelled objects are everybody's. */
bool abx__view_visible(const abx__identity *who, json_object *doc);
/* A template's visibility rules (crds.md, section 1). */
bool abx__view_template_visible(const abx__identity *who, json_object *template_);

#endif

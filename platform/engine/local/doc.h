/*
 * doc.h - a Pod's document: {labels, annotations, image, generation,
 * template, activity?, keep?}. Pure.
 */
#ifndef ABX_ENGINE_LOCAL_DOC_H
#define ABX_ENGINE_LOCAL_DOC_H

#include <json-c/json.h>

#include "base/map.h"
#include "control/port-engine.h"

/* What of a Pod is durable. */
typedef struct abx__pod_doc {
	abx__map labels, annotations;
	char *image;
	uint64_t generation;
	enum abx__pod_activity activity; /* RUN, FREEZE or STOP */
	bool keep; /* this generation goes on with the file system of the one before */
	json_object *template_json;
} abx__pod_doc;

void abx__pod_doc_done(abx__pod_doc *doc);
/* `dst` is replaced, unchanged on failure. The template is shared: nobody changes it. */
int abx__pod_doc_copy(abx__pod_doc *dst, const abx__pod_doc *src);
/* The activity's word on the wire and on disk. */
const char *abx__pod_activity_name(enum abx__pod_activity activity);
/* Applies a change; 1 when the container must be made anew. */
int abx__pod_doc_apply(abx__pod_doc *doc, const abx__pod_change *change);
/* A new string, or NULL when out of memory. */
char *abx__pod_doc_print(const abx__pod_doc *doc, size_t *ret_len);
int abx__pod_doc_parse(const char *text, size_t len, abx__pod_doc *ret);

#endif

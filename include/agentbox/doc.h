/*
 * agentbox/doc.h - looking into the JSON documents of platform.h without a JSON library.
 *
 * A path is names with dots between, positions of arrays in brackets, and names with dots
 * of their own in quotes: "status.phase", "items[0].name",
 * "metadata.labels[\"a.b/c\"]". "" is the document itself. What is not there, is null or
 * is of another type is the fallback; no call fails for it.
 *
 *     abx_doc *doc = NULL;
 *     if (abx_platform_get(client, "/envs/base", &json, &err) == ABX_OK &&
 *         abx_doc_new(json, &doc, &err) == ABX_OK)
 *             puts(abx_doc_string(doc, "env.spec.templateRef.name", "?"));
 *
 * Threads: one document belongs to one thread at a time.
 */
#ifndef AGENTBOX_DOC_H
#define AGENTBOX_DOC_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A parsed document. */
typedef struct abx_doc abx_doc;

/**
 * Parses one JSON value of at most 64 MiB.
 * Errors: ABX_EINVAL, ABX_ETOOBIG. Owner: the caller, abx_doc_free(). Since: 0.1.0
 */
ABX_API int abx_doc_new(const char *json, abx_doc **ret, abx_error **reterr);
/** Gives a document back. NULL is fine. Since: 0.1.0 */
ABX_API void abx_doc_free(abx_doc *doc);
/** A string. Owner: the document; `fallback` as it was given. Since: 0.1.0 */
ABX_API const char *abx_doc_string(abx_doc *doc, const char *path, const char *fallback);
/** An integer; one that does not fit is the nearest. Since: 0.1.0 */
ABX_API int64_t abx_doc_int(abx_doc *doc, const char *path, int64_t fallback);
/** 1, 0, or `fallback`. Since: 0.1.0 */
ABX_API int abx_doc_bool(abx_doc *doc, const char *path, int fallback);
/** How many items an array, or members an object, has; else 0. Since: 0.1.0 */
ABX_API size_t abx_doc_count(abx_doc *doc, const char *path);
/** What is there, of any type, as JSON text; NULL: nothing, or out of memory. Owner: the
 * caller, abx_free(). Since: 0.1.0 */
ABX_API char *abx_doc_json(abx_doc *doc, const char *path);

#ifdef __cplusplus
}
#endif
#endif

/*
 * doc.c - <agentbox/doc.h>: values of a JSON document by their path.
 */
#include <agentbox/doc.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/json.h"

#define MAX_TEXT ((size_t)64 << 20)
#define MAX_NAME 256

struct abx_doc {
	json_object *root;
};

int abx_doc_new(const char *json, abx_doc **ret, abx_error **reterr)
{
	abx_doc *doc;
	int r;

	if (!json)
		return abx__error_set(reterr, ABX_EINVAL, "abx_doc_new: json is NULL");
	doc = abx__calloc(1, sizeof(*doc));
	if (!doc)
		return abx__error_nomem(reterr);
	r = abx__json_parse(json, strlen(json), MAX_TEXT, &doc->root, reterr);
	if (r < 0) {
		abx_doc_free(doc);
		return r;
	}
	*ret = doc;
	return ABX_OK;
}

void abx_doc_free(abx_doc *doc)
{
	if (!doc)
		return;
	json_object_put(doc->root);
	abx__free(doc);
}

/* One step into `o` by a name of `len` bytes. */
static json_object *member(json_object *o, const char *name, size_t len)
{
	char text[MAX_NAME];
	json_object *value = NULL;

	if (len >= sizeof(text) || !json_object_is_type(o, json_type_object))
		return NULL;
	memcpy(text, name, len);
	text[len] = '\0';
	json_object_object_get_ex(o, text, &value);
	return value;
}

/* One step by "[N]"; moves `*path` behind it. */
static json_object *item(json_object *o, const char **path)
{
	char *end;
	unsigned long long at;

	errno = 0;
	if (!isdigit((unsigned char)(*path)[1]))
		return NULL;
	at = strtoull(*path + 1, &end, 10);
	if (*end != ']' || errno || !json_object_is_type(o, json_type_array) ||
	    at >= json_object_array_length(o))
		return NULL;
	*path = end + 1;
	return json_object_array_get_idx(o, (size_t)at);
}

static json_object *step(json_object *o, const char **path)
{
	size_t len;

	if ((*path)[0] == '[' && (*path)[1] == '"') {
		const char *name = *path + 2;

		len = strcspn(name, "\"");
		if (name[len] != '"' || name[len + 1] != ']')
			return NULL;
		*path = name + len + 2;
		return member(o, name, len);
	}
	if ((*path)[0] == '[')
		return item(o, path);
	const char *name = *path;

	len = strcspn(name, ".[");
	*path += len;
	return len ? member(o, name, len) : NULL;
}

static json_object *find(abx_doc *doc, const char *path)
{
	json_object *o = doc ? doc->root : NULL;

	while (o && path && *path) {
		o = step(o, &path);
		if (*path == '.' && path[1])
			path++;
		else if (*path && *path != '[')
			return NULL;
	}
	return path ? o : NULL;
}

const char *abx_doc_string(abx_doc *doc, const char *path, const char *fallback)
{
	json_object *o = find(doc, path);

	return json_object_is_type(o, json_type_string) ? json_object_get_string(o)
							: fallback;
}

int64_t abx_doc_int(abx_doc *doc, const char *path, int64_t fallback)
{
	json_object *o = find(doc, path);

	return json_object_is_type(o, json_type_int) ? json_object_get_int64(o)
						     : fallback;
}

int abx_doc_bool(abx_doc *doc, const char *path, int fallback)
{
	json_object *o = find(doc, path);

	return json_object_is_type(o, json_type_boolean) ? json_object_get_boolean(o)
							 : fallback;
}

size_t abx_doc_count(abx_doc *doc, const char *path)
{
	json_object *o = find(doc, path);

	if (json_object_is_type(o, json_type_array))
		return json_object_array_length(o);
	return json_object_is_type(o, json_type_object)
		       ? (size_t)json_object_object_length(o)
		       : 0;
}

char *abx_doc_json(abx_doc *doc, const char *path)
{
	json_object *o = find(doc, path);

	return o ? abx__json_text(o, NULL) : NULL;
}

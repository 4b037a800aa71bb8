/*
 * agentboxd-capacity.c - the files of instance types and quotas. Read once, at start.
 */
#include "agentboxd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "io/json.h"
#include "io/yaml.h"
#include "model/gen/capacity.h"

#define FILE_MAX ((size_t)4 << 20)

static int read_file(const char *path, abx__buf *buf, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[8192];
	ssize_t n;

	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "open %s", path);
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "read %s", path);
		r = abx__buf_add(buf, chunk, (size_t)n);
		if (r < 0)
			return abx__error_set(reterr, r, "%s: more than %zu bytes", path,
					      FILE_MAX);
	}
	return ABX_OK;
}

static int load(const char *path, const abx__schema *schema, json_object **ret,
		abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT_CAP(FILE_MAX);
	ABX_CLEANUP_JSON json_object *docs = NULL;
	json_object *doc = NULL;
	void *object = NULL;
	int r;

	if (!path)
		return ABX_OK;
	r = read_file(path, &buf, reterr);
	if (r < 0)
		return r;
	r = abx__yaml_parse(buf.data ? buf.data : "", buf.len, FILE_MAX, &docs, reterr);
	if (r == ABX_OK && json_object_array_length(docs) != 1)
		r = abx__error_set(reterr, ABX_EINVAL, "not one document, but %zu",
				   json_object_array_length(docs));
	if (r == ABX_OK) {
		doc = json_object_array_get_idx(docs, 0);
		r = abx__schema_parse(schema, doc, 0, &object, reterr);
	}
	if (r < 0)
		return abx__error_prefix(reterr, "%s", path);
	abx__schema_free(schema, object);
	*ret = json_object_get(doc);
	return ABX_OK;
}

int agentboxd_capacity_load(const agentboxd_settings *s, abx__capacity **ret,
			    abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *types = NULL;
	ABX_CLEANUP_JSON json_object *quotas = NULL;
	int r;

	if (!s->instance_types && !s->quotas)
		return ABX_OK;
	r = load(s->instance_types, &abx__m_capacity_instance_types_schema, &types,
		 reterr);
	if (r == ABX_OK)
		r = load(s->quotas, &abx__m_capacity_quotas_schema, &quotas, reterr);
	return r < 0 ? r : abx__capacity_docs_new(types, quotas, ret, reterr);
}

/*
 * context-file.c - the file of known deployments,
 * ${XDG_CONFIG_HOME:-~/.config}/abx/config.json.
 *
 * Read here, written in context.c. Two shapes: the five keys at top level, or `contexts`
 * by name and `currentContext`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "client/context-file.h"
#include "client/settings.h"
#include "io/json.h"

#define MAX_FILE_BYTES (1u << 20)

void abx__context_done(abx__context *context)
{
	abx__free(context->name);
	abx__free(context->endpoint);
	abx__free(context->cluster_api);
	abx__free(context->cluster);
	abx__free(context->auth_scheme);
	abx__secret_free(context->key);
	memset(context, 0, sizeof(*context));
}

char *abx__context_path(const char *path)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");

	if (path)
		return abx__strdup(path);
	if (config && *config)
		return abx__strf("%s/abx/config.json", config);
	return abx__strf("%s/.config/abx/config.json", home ? home : "");
}

/* 1 read, 0 not there or not readable. The text holds keys, so its owner wipes it. */
static int read_file(const char *path, abx__buf *text)
{
	ABX_CLEANUP(abx__closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0;
	for (;;) {
		if (text->len > MAX_FILE_BYTES || abx__buf_reserve(text, 4096) < 0)
			return ABX_ETOOBIG;
		n = read(fd, text->data + text->len, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return 0;
		if (n == 0)
			return 1;
		text->len += (size_t)n;
	}
}

static int copy_str(json_object *entry, const char *key, char **ret, abx_error **reterr)
{
	const char *value = NULL;
	int r = abx__json_get_str(entry, key, &value, reterr);

	if (r <= 0 || !*value)
		return r < 0 ? r : ABX_OK;
	*ret = abx__strdup(value);
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

static int fill(abx__context *context, json_object *entry, abx_error **reterr)
{
	const char *key = NULL;
	int r;

	if ((r = copy_str(entry, "endpoint", &context->endpoint, reterr)) < 0 ||
	    (r = copy_str(entry, "clusterApi", &context->cluster_api, reterr)) < 0 ||
	    (r = copy_str(entry, "cluster", &context->cluster, reterr)) < 0 ||
	    (r = copy_str(entry, "authScheme", &context->auth_scheme, reterr)) < 0 ||
	    (r = abx__json_get_str(entry, "apiKey", &key, reterr)) < 0)
		return r;
	if (key && *key && !(context->key = abx__secret_new(key, strlen(key))))
		return abx__error_nomem(reterr);
	return ABX_OK;
}

/* The known names, for messages. */
static char *names_of(json_object *contexts)
{
	abx__buf names = ABX__BUF_INIT;

	if (!contexts)
		return abx__strdup("none");
	json_object_object_foreach(contexts, name, entry)
	{
		(void)entry;
		abx__buf_addf(&names, "%s%s", names.len ? ", " : "", name);
	}
	return abx__buf_take(&names);
}

int abx__context_unknown(json_object *file, const char *path, const char *name,
			 abx_error **reterr)
{
	json_object *contexts = NULL;
	ABX_CLEANUP(abx__freep) char *names = NULL;

	if (file)
		abx__json_get_object(file, "contexts", &contexts, NULL);
	names = names_of(contexts);

	abx__error_set(reterr, ABX_ENOTFOUND, "no context '%s' in %s", name, path);
	abx__error_hint(reterr, "known contexts: %s", names ? names : "?");
	return ABX_ENOTFOUND;
}

static int ambiguous(json_object *contexts, const char *path, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *names = names_of(contexts);

	abx__error_set(reterr, ABX_EINVAL,
		       "%s has several contexts and none of them is current", path);
	abx__error_hint(reterr, "run \"abx context use NAME\" with one of: %s",
			names ? names : "?");
	return ABX_EINVAL;
}

/* Selection of abx-cli.md section 5. *ret NULL: the flat shape. */
static int choose(json_object *file, const char *path, const char *wanted,
		  const char **ret_name, json_object **ret, abx_error **reterr)
{
	json_object *contexts = NULL;
	const char *current = NULL;
	int r;

	if ((r = abx__json_get_object(file, "contexts", &contexts, reterr)) < 0 ||
	    (r = abx__json_get_str(file, "currentContext", &current, reterr)) < 0)
		return abx__error_prefix(reterr, "%s", path);
	if (wanted) {
		if (!contexts || !json_object_object_get_ex(contexts, wanted, ret))
			return abx__context_unknown(file, path, wanted, reterr);
		*ret_name = wanted;
		return ABX_OK;
	}
	if (!contexts || !json_object_object_length(contexts))
		return ABX_OK;
	if (current && json_object_object_get_ex(contexts, current, ret)) {
		*ret_name = current;
		return ABX_OK;
	}
	if (json_object_object_length(contexts) > 1)
		return ambiguous(contexts, path, reterr);
	json_object_object_foreach(contexts, name, entry)
	{
		*ret_name = name;
		*ret = entry;
	}
	return ABX_OK;
}

static int load(abx__context *context, json_object *file, const char *path,
		const char *wanted, abx_error **reterr)
{
	json_object *entry = NULL;
	const char *name = NULL;
	int r;

	r = choose(file, path, wanted, &name, &entry, reterr);
	if (r < 0)
		return r;
	if (!name)
		entry = file;
	else if (!json_object_is_type(entry, json_type_object))
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s: context '%s' is not an object", path, name);
	if (name && !(context->name = abx__strdup(name)))
		return abx__error_nomem(reterr);
	r = fill(context, entry, reterr);
	return r < 0 ? abx__error_prefix(reterr, "%s", path) : ABX_OK;
}

static void wipe_buf(abx__buf *buf)
{
	abx__wipe(buf->data, buf->size);
	abx__buf_done(buf);
}

int abx__context_read(const char *path, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(wipe_buf) abx__buf text = ABX__BUF_INIT;
	int r = read_file(path, &text);

	if (r == 0)
		return 0;
	if (r > 0)
		r = abx__json_parse_object(text.data, text.len, MAX_FILE_BYTES, ret,
					   reterr);
	else
		abx__error_set(reterr, r, "it is too big");
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r >= 0)
		return 1;
	abx__error_prefix(reterr, "%s", path);
	return ABX_EINVAL;
}

const char *abx__context_current(json_object *file)
{
	json_object *entry = NULL;
	const char *name = NULL;

	return choose(file, "", NULL, &name, &entry, NULL) < 0 ? NULL : name;
}

int abx__context_load(abx__context *context, const char *path, const char *wanted,
		      abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *place = abx__context_path(path);
	ABX_CLEANUP_JSON json_object *file = NULL;

	if (!place)
		return abx__error_nomem(reterr);
	if (abx__context_read(place, &file, NULL) == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (!file) /* missing or unreadable is empty, by the contract */
		return wanted ? abx__context_unknown(NULL, place, wanted, reterr)
			      : ABX_OK;
	return load(context, file, place, wanted, reterr);
}

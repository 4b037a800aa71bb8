/*
 * context.c - <agentbox/context.h>: listing and changing the file of known deployments.
 */
#include <agentbox/context.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "client/context-file.h"
#include "client/options.h"
#include "client/settings.h"
#include "io/json.h"

/* ---- writing ---- */

/* The folders above the file, each for its owner alone. */
static int make_folders(char *path, abx_error **reterr)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = '\0';
		r = mkdir(path, 0700);
		if (r < 0 && errno != EEXIST) {
			r = errno;
			abx__error_errno(reterr, ABX_EIO, r, "%s", path);
			*slash = '/';
			return ABX_EIO;
		}
		*slash = '/';
	}
	return ABX_OK;
}

static int write_fd(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* Beside it and renamed: nobody sees half of it, and nobody else its keys. */
static int write_text(const char *path, const char *text, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep)
	char *beside = abx__strf("%s.%ld.new", path, (long)getpid());
	ABX_CLEANUP(abx__closep) int fd = -1;
	int r;

	if (!beside)
		return abx__error_nomem(reterr);
	unlink(beside);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", beside);
	r = fchmod(fd, 0600) < 0 ? -errno : write_fd(fd, text, strlen(text));
	if (r == 0 && rename(beside, path) < 0)
		r = -errno;
	if (r == 0)
		return ABX_OK;
	unlink(beside);
	return abx__error_errno(reterr, ABX_EIO, -r, "%s", path);
}

static int save(char *path, json_object *file, abx_error **reterr)
{
	const char *json = json_object_to_json_string_ext(
		file, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			      JSON_C_TO_STRING_NOSLASHESCAPE);
	ABX_CLEANUP(abx__freep) char *text = json ? abx__strf("%s\n", json) : NULL;
	int r;

	if (!text)
		return abx__error_nomem(reterr);
	r = make_folders(path, reterr);
	if (r >= 0)
		r = write_text(path, text, reterr);
	abx__wipe(text, strlen(text));
	return r;
}

/* The file as it is, to be changed: an empty one when there is none, but what is no JSON
 * is somebody's and not overwritten. */
static int open_file(const char *config_path, char **path, json_object **file,
		     abx_error **reterr)
{
	int r;

	*path = abx__context_path(config_path);
	if (!*path)
		return abx__error_nomem(reterr);
	r = abx__context_read(*path, file, reterr);
	if (r == ABX_EINVAL)
		abx__error_hint(reterr, "repair it, or move it away");
	if (r < 0)
		return r;
	if (!*file)
		*file = json_object_new_object();
	return *file ? ABX_OK : abx__error_nomem(reterr);
}

static json_object *contexts_of(json_object *file)
{
	json_object *contexts = NULL;

	abx__json_get_object(file, "contexts", &contexts, NULL);
	return contexts;
}

/* ---- list ---- */

static int describe(json_object *list, const char *name, json_object *entry)
{
	static const char *const shown[] = { "endpoint", "clusterApi", "cluster",
					     "authScheme" };
	json_object *one = json_object_new_object();
	json_object *value;

	if (!one || abx__json_push_take(list, one) < 0 ||
	    abx__json_set_str(one, "name", name) < 0)
		return ABX_ENOMEM;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (json_object_object_get_ex(entry, shown[i], &value) && value &&
		    abx__json_set_take(one, shown[i], json_object_get(value)) < 0)
			return ABX_ENOMEM;
	return abx__json_set_bool(one, "hasKey",
				  json_object_object_get_ex(entry, "apiKey", &value));
}

int abx_context_list(const char *config_path, char **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = abx__context_path(config_path);
	ABX_CLEANUP_JSON json_object *file = NULL;
	ABX_CLEANUP_JSON json_object *all = json_object_new_object();
	json_object *list = json_object_new_array(), *contexts = NULL;
	char *text;

	if (!path || abx__context_read(path, &file, NULL) == ABX_ENOMEM || !all ||
	    abx__json_set_str(all, "path", path) < 0 ||
	    abx__json_set_str(all, "current", file ? abx__context_current(file) : NULL) <
		    0 ||
	    abx__json_set_take(all, "contexts", list) < 0)
		return abx__error_nomem(reterr);
	contexts = file ? contexts_of(file) : NULL;
	if (contexts) {
		json_object_object_foreach(contexts, name, entry)
		{
			if (json_object_is_type(entry, json_type_object) &&
			    describe(list, name, entry) < 0)
				return abx__error_nomem(reterr);
		}
	}
	text = abx__json_text(all, NULL);
	if (!text)
		return abx__error_nomem(reterr);
	*ret = text;
	return ABX_OK;
}

/* ---- set ---- */

static int put_address(json_object *entry, const char *key, const char *other,
		       const char *url, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *clean = NULL;
	int r;

	if (!url)
		return ABX_OK;
	r = abx__settings_check_url(key, url, reterr);
	if (r < 0)
		return r;
	clean = abx__settings_normalised(url);
	if (!clean || abx__json_set_str(entry, key, clean) < 0)
		return abx__error_nomem(reterr);
	json_object_object_del(entry, other);
	return ABX_OK;
}

static int put_text(json_object *entry, const char *key, const char *text,
		    abx_error **reterr)
{
	if (!text)
		return ABX_OK;
	return abx__json_set_str(entry, key, text) < 0 ? abx__error_nomem(reterr)
						       : ABX_OK;
}

static int check_set(const char *name, const abx_context_options *opts,
		     abx_error **reterr)
{
	if (!name || !*name || strpbrk(name, "\r\n"))
		return abx__error_set(reterr, ABX_EINVAL, "a context needs a name");
	if (opts->endpoint && opts->cluster_api)
		return abx__error_set(reterr, ABX_EINVAL,
				      "context %s: a console's address or a cluster's, "
				      "not both",
				      name);
	if (opts->api_key && strpbrk(opts->api_key, "\r\n"))
		return abx__error_set(reterr, ABX_EINVAL,
				      "context %s: the API key has a line end in it",
				      name);
	if (opts->auth_scheme && !abx__str_eq(opts->auth_scheme, "api-key") &&
	    !abx__str_eq(opts->auth_scheme, "bearer"))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"auth scheme '%s' is neither \"api-key\" nor \"bearer\"",
			opts->auth_scheme);
	return ABX_OK;
}

static int fill(json_object *entry, const char *name, const abx_context_options *opts,
		abx_error **reterr)
{
	int r;

	if ((r = put_address(entry, "endpoint", "clusterApi", opts->endpoint, reterr)) <
		    0 ||
	    (r = put_address(entry, "clusterApi", "endpoint", opts->cluster_api,
			     reterr)) < 0 ||
	    (r = put_text(entry, "apiKey", opts->api_key, reterr)) < 0 ||
	    (r = put_text(entry, "cluster", opts->cluster, reterr)) < 0 ||
	    (r = put_text(entry, "authScheme", opts->auth_scheme, reterr)) < 0)
		return r;
	if (json_object_object_get_ex(entry, "endpoint", NULL) ||
	    json_object_object_get_ex(entry, "clusterApi", NULL))
		return ABX_OK;
	abx__error_set(reterr, ABX_EINVAL, "context %s has no address", name);
	abx__error_hint(reterr, "give the console's (--endpoint URL) or one cluster's "
				"(--cluster-api URL)");
	return ABX_EINVAL;
}

/* The entry of a name, made when there is none. */
static json_object *entry_of(json_object *file, const char *name)
{
	json_object *contexts = contexts_of(file), *entry = NULL;

	if (!contexts) {
		contexts = json_object_new_object();
		if (!contexts || abx__json_set_take(file, "contexts", contexts) < 0)
			return NULL;
	}
	if (abx__json_get_object(contexts, name, &entry, NULL) > 0)
		return entry;
	entry = json_object_new_object();
	return entry && abx__json_set_take(contexts, name, entry) >= 0 ? entry : NULL;
}

int abx_context_set(const char *config_path, const char *name,
		    const abx_context_options *user_opts, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = NULL;
	ABX_CLEANUP_JSON json_object *file = NULL;
	abx_context_options opts;
	json_object *entry;
	bool first;
	int r;

	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_context_options",
				   reterr)) < 0 ||
	    (r = check_set(name, &opts, reterr)) < 0 ||
	    (r = open_file(config_path, &path, &file, reterr)) < 0)
		return r;
	first = !contexts_of(file) || !json_object_object_length(contexts_of(file));
	entry = entry_of(file, name);
	if (!entry)
		return abx__error_nomem(reterr);
	r = fill(entry, name, &opts, reterr);
	if (r < 0)
		return r;
	if (first && abx__json_set_str(file, "currentContext", name) < 0)
		return abx__error_nomem(reterr);
	r = save(path, file, reterr);
	return r < 0 ? r : abx__str_eq(abx__context_current(file), name);
}

/* ---- use, remove ---- */

int abx_context_use(const char *config_path, const char *name, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = NULL;
	ABX_CLEANUP_JSON json_object *file = NULL;
	int r = open_file(config_path, &path, &file, reterr);

	if (r < 0)
		return r;
	if (!name || !contexts_of(file) ||
	    !json_object_object_get_ex(contexts_of(file), name, NULL))
		return abx__context_unknown(file, path, name ? name : "", reterr);
	if (abx__json_set_str(file, "currentContext", name) < 0)
		return abx__error_nomem(reterr);
	return save(path, file, reterr);
}

int abx_context_remove(const char *config_path, const char *name, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = NULL;
	ABX_CLEANUP_JSON json_object *file = NULL;
	json_object *contexts;
	const char *current = NULL;
	bool was_current;
	int r = open_file(config_path, &path, &file, reterr);

	if (r < 0)
		return r;
	contexts = contexts_of(file);
	if (!name || !contexts || !json_object_object_get_ex(contexts, name, NULL))
		return abx__context_unknown(file, path, name ? name : "", reterr);
	was_current = abx__json_get_str(file, "currentContext", &current, NULL) > 0 &&
		      abx__str_eq(current, name);
	json_object_object_del(contexts, name);
	if (was_current) {
		json_object_object_del(file, "currentContext");
		json_object_object_foreach(contexts, left, entry)
		{
			(void)entry;
			if (abx__json_set_str(file, "currentContext", left) < 0)
				return abx__error_nomem(reterr);
			break;
		}
	}
	return save(path, file, reterr);
}

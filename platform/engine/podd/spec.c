/*
 * spec.c - parses a Pod template field by field against what the engine honours.
 *
 * Each object is walked over its keys with a table of readers; a key without a reader is
 * refused by its path. The table is the documentation: what is not in it does not exist
 * here.
 */
#include "engine/podd/spec.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define PATH_SIZE 256
#define STRING_MAX_LEN ((size_t)64 << 10)

/* Where the parser is: the path so far and the error to fill. */
struct at {
	const char *path;
	abx_error **reterr;
};

typedef int (*read_fn)(const struct at *at, json_object *value, void *into);
struct field {
	const char *key;
	read_fn read;
};

static int refuse(const struct at *at, const char *why)
{
	return abx__error_set(at->reterr, ABX_EUNSUPPORTED, "%s: %s", at->path, why);
}

static int invalid(const struct at *at, const char *why)
{
	return abx__error_set(at->reterr, ABX_EINVAL, "%s: %s", at->path, why);
}

static int sub_path(char out[PATH_SIZE], const char *base, const char *key)
{
	abx__buf buf = ABX__BUF_INIT_CAP(PATH_SIZE - 1);
	int r = abx__buf_addf(&buf, "%s%s%s", base, *base ? "." : "", key);

	if (r == ABX_OK)
		r = abx__str_copy(out, PATH_SIZE, abx__buf_str(&buf));
	abx__buf_done(&buf);
	if (r < 0)
		abx__str_copy(out, PATH_SIZE, "(a path too long to show)");
	return r == ABX_ETOOBIG ? ABX_OK : r;
}

/* Walks an object; every key must be in the table. */
static int read_object(const struct at *at, json_object *o, const struct field *fields,
		       void *into)
{
	if (!json_object_is_type(o, json_type_object))
		return invalid(at, "must be an object");
	json_object_object_foreach(o, key, value)
	{
		char path[PATH_SIZE];
		struct at here = { path, at->reterr };
		const struct field *f;
		int r = sub_path(path, at->path, key);

		if (r < 0)
			return abx__error_nomem(at->reterr);
		for (f = fields; f->key && strcmp(f->key, key) != 0; f++)
			;
		if (!f->key)
			return refuse(&here,
				      "the local engine does not honour this field");
		if (!value)
			continue; /* null is absent, as in Kubernetes */
		r = f->read(&here, value, into);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int read_array(const struct at *at, json_object *a, read_fn read, void *into)
{
	if (!json_object_is_type(a, json_type_array))
		return invalid(at, "must be a list");
	for (size_t i = 0; i < json_object_array_length(a); i++) {
		char path[PATH_SIZE];
		struct at here = { path, at->reterr };
		abx__buf buf = ABX__BUF_INIT_CAP(PATH_SIZE - 1);
		json_object *item = json_object_array_get_idx(a, i);
		int r = abx__buf_addf(&buf, "%s[%zu]", at->path, i);

		abx__str_copy(path, sizeof(path), r < 0 ? at->path : abx__buf_str(&buf));
		abx__buf_done(&buf);
		if (!item)
			return invalid(&here, "must not be null");
		r = read(&here, item, into);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int get_string(const struct at *at, json_object *v, char **ret)
{
	const char *s = json_object_get_string(v);
	size_t len = (size_t)json_object_get_string_len(v);
	char *copy;

	if (!json_object_is_type(v, json_type_string))
		return invalid(at, "must be a string");
	if (len > STRING_MAX_LEN)
		return invalid(at, "is longer than 64 KiB");
	if (strlen(s) != len)
		return invalid(at, "holds a NUL byte");
	copy = abx__strndup(s, len);
	if (!copy)
		return abx__error_nomem(at->reterr);
	abx__free(*ret);
	*ret = copy;
	return ABX_OK;
}

static int get_bool(const struct at *at, json_object *v, bool *ret)
{
	if (!json_object_is_type(v, json_type_boolean))
		return invalid(at, "must be true or false");
	*ret = json_object_get_boolean(v);
	return ABX_OK;
}

static int get_id(const struct at *at, json_object *v, int64_t *ret)
{
	int64_t n = json_object_get_int64(v);

	if (!json_object_is_type(v, json_type_int) || n < 0 || n > 65535)
		return invalid(at, "must be a number from 0 to 65535");
	*ret = n;
	return ABX_OK;
}

static bool name_is_valid(const char *s)
{
	size_t len = strlen(s);

	return len >= 1 && len <= 63 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && s[0] != '-' &&
	       s[len - 1] != '-';
}

static int get_name(const struct at *at, json_object *v, char **ret)
{
	int r = get_string(at, v, ret);

	if (r < 0)
		return r;
	return name_is_valid(*ret)
		       ? ABX_OK
		       : invalid(at, "must be a DNS label: [a-z0-9-], at most 63");
}

bool abx__spec_path_is_clean(const char *path)
{
	if (path[0] != '/' || path[1] == '\0')
		return false;
	for (const char *p = path; *p;) {
		size_t len = strcspn(++p, "/");

		if (len == 0 || (len == 1 && p[0] == '.') ||
		    (len == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += len;
	}
	return true;
}

/* ---- string vectors ---- */

void abx__spec_strv_free(abx__spec_strv v)
{
	for (size_t i = 0; v && v[i]; i++)
		abx__free(v[i]);
	abx__free(v);
}

static size_t strv_len(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

/* Appends an owned string. */
static int strv_take(abx__spec_strv *v, char *s)
{
	size_t n = strv_len(*v);
	char **grown = abx__reallocarray(*v, n + 2, sizeof(*grown));

	if (!grown)
		return ABX_ENOMEM;
	grown[n] = s;
	grown[n + 1] = NULL;
	*v = grown;
	return ABX_OK;
}

static int read_strv_item(const struct at *at, json_object *v, void *into)
{
	abx__spec_strv *strv = into;
	char *s = NULL;
	int r = get_string(at, v, &s);

	if (r == ABX_OK && strv_len(*strv) >= ABX__SPEC_ARG_MAX)
		r = invalid(at, "too many items");
	if (r == ABX_OK) {
		r = strv_take(strv, s);
		if (r < 0)
			abx__error_nomem(at->reterr);
	}
	if (r < 0)
		abx__free(s);
	return r;
}

static int read_strv(const struct at *at, json_object *v, abx__spec_strv *into)
{
	abx__spec_strv_free(*into);
	*into = abx__calloc(1, sizeof(char *));
	if (!*into)
		return abx__error_nomem(at->reterr);
	return read_array(at, v, read_strv_item, into);
}

/* ---- quantities ---- */

static const struct {
	const char *suffix;
	double factor;
} suffixes[] = {
	{ "", 1 },
	{ "m", 1e-3 },
	{ "k", 1e3 },
	{ "M", 1e6 },
	{ "G", 1e9 },
	{ "T", 1e12 },
	{ "P", 1e15 },
	{ "Ki", 1024.0 },
	{ "Mi", 1048576.0 },
	{ "Gi", 1073741824.0 },
	{ "Ti", 1099511627776.0 },
	{ "Pi", 1125899906842624.0 },
};

static int parse_quantity(const char *s, double *ret)
{
	size_t len = strspn(s, "0123456789.");
	char number[40];
	char *end;
	double n;

	if (len == 0 || len >= sizeof(number) || s[0] == '.')
		return ABX_EINVAL;
	if (s[len] == 'e' || (s[len] == 'E' && isdigit((unsigned char)s[len + 1]))) {
		size_t digits = strspn(s + len + 1, "0123456789");

		if (digits < 1 || digits > 2)
			return ABX_EINVAL;
		len += 1 + digits;
	}
	if (len >= sizeof(number))
		return ABX_EINVAL;
	memcpy(number, s, len);
	number[len] = '\0';
	n = strtod(number, &end);
	if (*end || !isfinite(n))
		return ABX_EINVAL;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strcmp(s + len, suffixes[i].suffix) == 0) {
			*ret = n * suffixes[i].factor;
			return ABX_OK;
		}
	return ABX_EINVAL;
}

int abx__spec_parse_cpu(const char *s, int64_t *ret_milli)
{
	double n;

	if (parse_quantity(s, &n) < 0 || n * 1000 > 1e9)
		return ABX_EINVAL;
	*ret_milli = (int64_t)ceil(n * 1000 - 1e-9);
	return ABX_OK;
}

int abx__spec_parse_bytes(const char *s, uint64_t *ret_bytes)
{
	double n;

	if (parse_quantity(s, &n) < 0 || n > 1e18)
		return ABX_EINVAL;
	*ret_bytes = (uint64_t)ceil(n - 1e-9);
	return ABX_OK;
}

/* A quantity may be a JSON number or a string. */
static int get_quantity(const struct at *at, json_object *v, const char **ret)
{
	if (!json_object_is_type(v, json_type_string) &&
	    !json_object_is_type(v, json_type_int) &&
	    !json_object_is_type(v, json_type_double))
		return invalid(at, "must be a quantity such as \"500m\" or \"2Gi\"");
	*ret = json_object_get_string(v);
	return ABX_OK;
}

static int get_cpu(const struct at *at, json_object *v, int64_t *into)
{
	const char *s;
	int r = get_quantity(at, v, &s);

	if (r < 0)
		return r;
	return abx__spec_parse_cpu(s, into) < 0 ? invalid(at, "is no CPU quantity")
						: ABX_OK;
}

static int get_bytes(const struct at *at, json_object *v, uint64_t *into)
{
	const char *s;
	int r = get_quantity(at, v, &s);

	if (r < 0)
		return r;
	return abx__spec_parse_bytes(s, into) < 0 ? invalid(at, "is no quantity of bytes")
						  : ABX_OK;
}

/* ---- containers ---- */

static int c_name(const struct at *at, json_object *v, void *into)
{
	return get_name(at, v, &((abx__spec_container *)into)->name);
}

static int c_image(const struct at *at, json_object *v, void *into)
{
	return get_string(at, v, &((abx__spec_container *)into)->image);
}

static int c_pull(const struct at *at, json_object *v, void *into)
{
	abx__spec_container *c = into;
	const char *s = json_object_get_string(v);

	c->pull_always = strcmp(s, "Always") == 0;
	c->pull_never = strcmp(s, "Never") == 0;
	if (!c->pull_always && !c->pull_never && strcmp(s, "IfNotPresent") != 0)
		return invalid(at, "must be Always, IfNotPresent or Never");
	return ABX_OK;
}

static int c_command(const struct at *at, json_object *v, void *into)
{
	return read_strv(at, v, &((abx__spec_container *)into)->command);
}

static int c_args(const struct at *at, json_object *v, void *into)
{
	return read_strv(at, v, &((abx__spec_container *)into)->args);
}

static int c_working_dir(const struct at *at, json_object *v, void *into)
{
	abx__spec_container *c = into;
	int r = get_string(at, v, &c->working_dir);

	if (r < 0)
		return r;
	return c->working_dir[0] == '/' ? ABX_OK
					: invalid(at, "must be an absolute path");
}

struct env_item {
	char *name;
	char *value;
};

static int e_name(const struct at *at, json_object *v, void *into)
{
	struct env_item *e = into;
	int r = get_string(at, v, &e->name);

	if (r < 0)
		return r;
	return *e->name && !strchr(e->name, '=')
		       ? ABX_OK
		       : invalid(at, "is no name of a variable");
}

static int e_value(const struct at *at, json_object *v, void *into)
{
	return get_string(at, v, &((struct env_item *)into)->value);
}

static const struct field env_fields[] = { { "name", e_name },
					   { "value", e_value },
					   { 0 } };

/* Adds NAME=value, its $(OTHER) references resolved from what came before. */
static int env_add(const struct at *at, abx__spec_container *c, const struct env_item *e)
{
	char *value = NULL, *line;
	int r;

	if (!e->name)
		return invalid(at, "needs a name");
	if (strv_len(c->env) >= ABX__SPEC_ENV_MAX)
		return invalid(at, "too many variables");
	r = abx__spec_expand(e->value ? e->value : "", c->env, &value);
	if (r < 0)
		return abx__error_set(at->reterr, r, "%s: cannot be expanded", at->path);
	line = abx__strf("%s=%s", e->name, value);
	abx__free(value);
	if (!line)
		return abx__error_nomem(at->reterr);
	r = strv_take(&c->env, line);
	if (r < 0) {
		abx__free(line);
		return abx__error_nomem(at->reterr);
	}
	return ABX_OK;
}

static int read_env_item(const struct at *at, json_object *v, void *into)
{
	struct env_item e = { 0 };
	int r = read_object(at, v, env_fields, &e);

	if (r == ABX_OK)
		r = env_add(at, into, &e);
	abx__free(e.name);
	abx__free(e.value);
	return r;
}

static int c_env(const struct at *at, json_object *v, void *into)
{
	return read_array(at, v, read_env_item, into);
}

static int limit_cpu(const struct at *at, json_object *v, void *into)
{
	return get_cpu(at, v, &((abx__spec_container *)into)->cpu_milli);
}

static int limit_memory(const struct at *at, json_object *v, void *into)
{
	return get_bytes(at, v, &((abx__spec_container *)into)->memory_bytes);
}

static int request_cpu(const struct at *at, json_object *v, void *into)
{
	return get_cpu(at, v, &((abx__spec_container *)into)->cpu_request_milli);
}

/* A request is a promise about scheduling; on one machine the limit is what holds.
 * Checked all the same. */
static int request_memory(const struct at *at, json_object *v, void *into)
{
	uint64_t unused;

	(void)into;
	return get_bytes(at, v, &unused);
}

static const struct field limit_fields[] = { { "cpu", limit_cpu },
					     { "memory", limit_memory },
					     { 0 } };
static const struct field request_fields[] = { { "cpu", request_cpu },
					       { "memory", request_memory },
					       { 0 } };

static int r_limits(const struct at *at, json_object *v, void *into)
{
	return read_object(at, v, limit_fields, into);
}

static int r_requests(const struct at *at, json_object *v, void *into)
{
	return read_object(at, v, request_fields, into);
}

static const struct field resource_fields[] = { { "limits", r_limits },
						{ "requests", r_requests },
						{ 0 } };

static int c_resources(const struct at *at, json_object *v, void *into)
{
	return read_object(at, v, resource_fields, into);
}

static int s_user(const struct at *at, json_object *v, void *into)
{
	return get_id(at, v, &((abx__spec_container *)into)->uid);
}

static int s_group(const struct at *at, json_object *v, void *into)
{
	return get_id(at, v, &((abx__spec_container *)into)->gid);
}

static int s_privileged(const struct at *at, json_object *v, void *into)
{
	return get_bool(at, v, &((abx__spec_container *)into)->privileged);
}

static const struct field security_fields[] = { { "runAsUser", s_user },
						{ "runAsGroup", s_group },
						{ "privileged", s_privileged },
						{ 0 } };

static int c_security(const struct at *at, json_object *v, void *into)
{
	return read_object(at, v, security_fields, into);
}

static int m_name(const struct at *at, json_object *v, void *into)
{
	return get_name(at, v, &((abx__spec_mount *)into)->volume);
}

static bool path_is_reserved(const char *path)
{
	static const char *const tops[] = { "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		size_t len = strlen(tops[i]);

		if (strncmp(path, tops[i], len) == 0 &&
		    (path[len] == '\0' || path[len] == '/'))
			return true;
	}
	return false;
}

static int m_path(const struct at *at, json_object *v, void *into)
{
	abx__spec_mount *m = into;
	int r = get_string(at, v, &m->path);

	if (r < 0)
		return r;
	if (!abx__spec_path_is_clean(m->path))
		return invalid(at, "must be an absolute, clean path other than /");
	/* /dev/shm is the one place below /dev that templates mount memory volumes on. */
	if (path_is_reserved(m->path) && strcmp(m->path, "/dev/shm") != 0)
		return invalid(at, "must not lie at or below /proc, /sys or /dev");
	return ABX_OK;
}

static int m_read_only(const struct at *at, json_object *v, void *into)
{
	return get_bool(at, v, &((abx__spec_mount *)into)->read_only);
}

static int m_sub_path(const struct at *at, json_object *v, void *into)
{
	abx__spec_mount *m = into;
	char *full;
	bool clean;
	int r = get_string(at, v, &m->sub_path);

	if (r < 0)
		return r;
	if (!*m->sub_path) {
		abx__free(abx_take(m->sub_path));
		return ABX_OK;
	}
	full = abx__strf("/%s", m->sub_path);
	if (!full)
		return abx__error_nomem(at->reterr);
	clean = abx__spec_path_is_clean(full);
	abx__free(full);
	return clean ? ABX_OK : invalid(at, "must be a relative, clean path");
}

static const struct field mount_fields[] = { { "name", m_name },
					     { "mountPath", m_path },
					     { "readOnly", m_read_only },
					     { "subPath", m_sub_path },
					     { 0 } };

static int read_mount(const struct at *at, json_object *v, void *into)
{
	abx__spec_container *c = into;
	abx__spec_mount *m;
	int r;

	if (c->mount_count >= ABX__SPEC_MOUNT_MAX)
		return invalid(at, "too many mounts");
	m = &c->mounts[c->mount_count++];
	r = read_object(at, v, mount_fields, m);
	if (r < 0)
		return r;
	if (!m->volume || !m->path)
		return invalid(at, "needs name and mountPath");
	for (size_t i = 0; i + 1 < c->mount_count; i++)
		if (strcmp(c->mounts[i].path, m->path) == 0)
			return invalid(at, "mounts a path a second time");
	return ABX_OK;
}

static int c_mounts(const struct at *at, json_object *v, void *into)
{
	return read_array(at, v, read_mount, into);
}

static int p_number(const struct at *at, json_object *v, void *into)
{
	int64_t n = json_object_get_int64(v);

	(void)into;
	if (!json_object_is_type(v, json_type_int) || n < 1 || n > 65535)
		return invalid(at, "must be a port from 1 to 65535");
	return ABX_OK;
}

static int p_text(const struct at *at, json_object *v, void *into)
{
	(void)into;
	return json_object_is_type(v, json_type_string) ? ABX_OK
							: invalid(at, "must be a string");
}

/* Ports are information, as in Kubernetes: every port can be reached. hostPort would be a
 * promise, so it is refused. */
static const struct field port_fields[] = {
	{ "containerPort", p_number }, { "name", p_text }, { "protocol", p_text }, { 0 }
};

static int read_port(const struct at *at, json_object *v, void *into)
{
	return read_object(at, v, port_fields, into);
}

static int c_ports(const struct at *at, json_object *v, void *into)
{
	return read_array(at, v, read_port, into);
}

static const struct field container_fields[] = {
	{ "name", c_name },
	{ "image", c_image },
	{ "imagePullPolicy", c_pull },
	{ "command", c_command },
	{ "args", c_args },
	{ "env", c_env },
	{ "workingDir", c_working_dir },
	{ "resources", c_resources },
	{ "securityContext", c_security },
	{ "volumeMounts", c_mounts },
	{ "ports", c_ports },
	{ 0 },
};

static int read_container(const struct at *at, json_object *v, abx__spec_container *c)
{
	int r;

	c->uid = c->gid = -1;
	r = read_object(at, v, container_fields, c);
	if (r < 0)
		return r;
	if (!c->name || !c->image || !*c->image)
		return invalid(at, "needs a name and an image");
	return ABX_OK;
}

/* ---- the Pod ---- */

static int read_main(const struct at *at, json_object *v, void *into)
{
	return read_container(at, v, &((abx__spec *)into)->main);
}

static int read_init(const struct at *at, json_object *v, void *into)
{
	abx__spec *spec = into;

	if (spec->init_count >= ABX__SPEC_INIT_MAX)
		return invalid(at, "too many init containers");
	return read_container(at, v, &spec->init[spec->init_count++]);
}

static int s_containers(const struct at *at, json_object *v, void *into)
{
	if (json_object_is_type(v, json_type_array) && json_object_array_length(v) > 1)
		return refuse(at, "the local engine runs one main container a Pod");
	return read_array(at, v, read_main, into);
}

static int s_init_containers(const struct at *at, json_object *v, void *into)
{
	return read_array(at, v, read_init, into);
}

static int v_name(const struct at *at, json_object *v, void *into)
{
	return get_name(at, v, &((abx__spec_volume *)into)->name);
}

static int ed_medium(const struct at *at, json_object *v, void *into)
{
	const char *s = json_object_get_string(v);

	if (*s && strcmp(s, "Memory") != 0)
		return invalid(at, "must be \"\" or Memory");
	((abx__spec_volume *)into)->memory = *s != '\0';
	return ABX_OK;
}

static int ed_size(const struct at *at, json_object *v, void *into)
{
	return get_bytes(at, v, &((abx__spec_volume *)into)->size_bytes);
}

static const struct field empty_dir_fields[] = { { "medium", ed_medium },
						 { "sizeLimit", ed_size },
						 { 0 } };

static int v_empty_dir(const struct at *at, json_object *v, void *into)
{
	abx__spec_volume *volume = into;
	int r = read_object(at, v, empty_dir_fields, volume);

	if (r == ABX_OK && volume->size_bytes && !volume->memory)
		return refuse(at, "sizeLimit is kept only with medium: Memory here");
	return r;
}

static const struct field volume_fields[] = { { "name", v_name },
					      { "emptyDir", v_empty_dir },
					      { 0 } };

static int read_volume(const struct at *at, json_object *v, void *into)
{
	abx__spec *spec = into;
	abx__spec_volume *volume;
	int r;

	if (spec->volume_count >= ABX__SPEC_VOLUME_MAX)
		return invalid(at, "too many volumes");
	volume = &spec->volumes[spec->volume_count++];
	r = read_object(at, v, volume_fields, volume);
	if (r < 0)
		return r;
	if (!volume->name)
		return invalid(at, "needs a name");
	if (!json_object_object_get_ex(v, "emptyDir", NULL))
		return invalid(
			at,
			"needs emptyDir, the one kind of volume the local engine has");
	if (abx__spec_find_volume(spec, volume->name) != volume)
		return invalid(at, "has the name of another volume");
	return ABX_OK;
}

static int s_volumes(const struct at *at, json_object *v, void *into)
{
	return read_array(at, v, read_volume, into);
}

static int s_runtime_class(const struct at *at, json_object *v, void *into)
{
	return get_string(at, v, &((abx__spec *)into)->runtime_class);
}

static int s_hostname(const struct at *at, json_object *v, void *into)
{
	return get_name(at, v, &((abx__spec *)into)->hostname);
}

/* True and false come to the same here: there is no API server to mount a token of, no
 * services to link. */
static int s_inert_bool(const struct at *at, json_object *v, void *into)
{
	bool unused;

	(void)into;
	return get_bool(at, v, &unused);
}

static int s_only_false(const struct at *at, json_object *v, void *into)
{
	bool b = false;
	int r = get_bool(at, v, &b);

	(void)into;
	return r == ABX_OK && b
		       ? refuse(at, "only false is supported by the local engine")
		       : r;
}

static int s_grace(const struct at *at, json_object *v, void *into)
{
	(void)into;
	if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0)
		return invalid(at, "must be a number of seconds");
	return ABX_OK;
}

static int s_restart_policy(const struct at *at, json_object *v, void *into)
{
	const char *s = json_object_get_string(v);

	(void)into;
	if (strcmp(s, "Always") != 0 && strcmp(s, "OnFailure") != 0 &&
	    strcmp(s, "Never") != 0)
		return invalid(at, "must be Always, OnFailure or Never");
	return ABX_OK;
}

static const struct field spec_fields[] = {
	{ "containers", s_containers },
	{ "initContainers", s_init_containers },
	{ "volumes", s_volumes },
	{ "runtimeClassName", s_runtime_class },
	{ "hostname", s_hostname },
	{ "automountServiceAccountToken", s_inert_bool },
	{ "enableServiceLinks", s_inert_bool },
	{ "shareProcessNamespace", s_only_false },
	{ "hostNetwork", s_only_false },
	{ "hostPID", s_only_false },
	{ "hostIPC", s_only_false },
	{ "terminationGracePeriodSeconds", s_grace },
	{ "restartPolicy", s_restart_policy },
	{ 0 },
};

static int t_spec(const struct at *at, json_object *v, void *into)
{
	return read_object(at, v, spec_fields, into);
}

static int meta_map(const struct at *at, json_object *v, void *into)
{
	(void)into;
	return json_object_is_type(v, json_type_object)
		       ? ABX_OK
		       : invalid(at, "must be an object");
}

static const struct field metadata_fields[] = { { "labels", meta_map },
						{ "annotations", meta_map },
						{ "creationTimestamp", p_text },
						{ 0 } };

static int t_metadata(const struct at *at, json_object *v, void *into)
{
	return read_object(at, v, metadata_fields, into);
}

static const struct field template_fields[] = { { "spec", t_spec },
						{ "metadata", t_metadata },
						{ 0 } };

const abx__spec_volume *abx__spec_find_volume(const abx__spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->volume_count; i++)
		if (spec->volumes[i].name && strcmp(spec->volumes[i].name, name) == 0)
			return &spec->volumes[i];
	return NULL;
}

static int check_mounts(const abx__spec *spec, const abx__spec_container *c,
			abx_error **reterr)
{
	for (size_t i = 0; i < c->mount_count; i++)
		if (!abx__spec_find_volume(spec, c->mounts[i].volume))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"container %s mounts volume %s, which spec.volumes lacks",
				c->name, c->mounts[i].volume);
	return ABX_OK;
}

static int check_whole(const abx__spec *spec, abx_error **reterr)
{
	int r;

	if (!spec->main.name)
		return abx__error_set(reterr, ABX_EINVAL,
				      "spec.containers: needs one container");
	r = check_mounts(spec, &spec->main, reterr);
	for (size_t i = 0; r == ABX_OK && i < spec->init_count; i++) {
		r = check_mounts(spec, &spec->init[i], reterr);
		if (r == ABX_OK && spec->init[i].privileged && !spec->main.privileged)
			r = abx__error_set(reterr, ABX_EUNSUPPORTED,
					   "spec.initContainers[%zu].securityContext."
					   "privileged: only "
					   "together with a privileged main container",
					   i);
	}
	return r;
}

int abx__spec_parse(json_object *template_json, abx__spec **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__spec_freep) abx__spec *spec = abx__calloc(1, sizeof(*spec));
	struct at at = { "", reterr };
	int r;

	if (!spec)
		return abx__error_nomem(reterr);
	r = read_object(&at, template_json, template_fields, spec);
	if (r == ABX_OK)
		r = check_whole(spec, reterr);
	if (r < 0)
		return r;
	*ret = abx_take(spec);
	return ABX_OK;
}

static void container_done(abx__spec_container *c)
{
	abx__free(c->name);
	abx__free(c->image);
	abx__free(c->working_dir);
	abx__spec_strv_free(c->command);
	abx__spec_strv_free(c->args);
	abx__spec_strv_free(c->env);
	for (size_t i = 0; i < c->mount_count; i++) {
		abx__free(c->mounts[i].volume);
		abx__free(c->mounts[i].path);
		abx__free(c->mounts[i].sub_path);
	}
}

void abx__spec_free(abx__spec *spec)
{
	if (!spec)
		return;
	container_done(&spec->main);
	for (size_t i = 0; i < spec->init_count; i++)
		container_done(&spec->init[i]);
	for (size_t i = 0; i < spec->volume_count; i++)
		abx__free(spec->volumes[i].name);
	abx__free(spec->runtime_class);
	abx__free(spec->hostname);
	abx__free(spec);
}

/* ---- $(NAME) ---- */

static const char *env_find(char *const *env, const char *name, size_t len)
{
	const char *found = NULL;

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			found = env[i] + len + 1;
	return found;
}

int abx__spec_expand(const char *s, char *const *env, char **ret)
{
	abx__buf out = ABX__BUF_INIT_CAP((size_t)1 << 20);
	int r = abx__buf_reserve(&out, strlen(s));

	while (r == ABX_OK && *s) {
		const char *end, *value;

		if (s[0] == '$' && s[1] == '$' && s[2] == '(') {
			r = abx__buf_adds(&out, "$(");
			s += 3;
		} else if (s[0] == '$' && s[1] == '(' && (end = strchr(s, ')')) &&
			   (value = env_find(env, s + 2, (size_t)(end - s - 2)))) {
			r = abx__buf_adds(&out, value);
			s = end + 1;
		} else {
			r = abx__buf_addc(&out, *s++);
		}
	}
	if (r < 0) {
		abx__buf_done(&out);
		return r;
	}
	*ret = abx__buf_take(&out);
	return *ret ? ABX_OK : ABX_ENOMEM;
}

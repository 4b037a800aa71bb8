/*
 * spec-container.c - one container of a Pod template, and what its variables mean.
 */
#include "engine/podd/spec-read.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

static int c_name(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_label(at, v, &((abx__spec_container *)into)->name);
}

static int c_image(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_string(at, v, &((abx__spec_container *)into)->image);
}

static int c_pull(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec_container *c = into;
	const char *s = json_object_get_string(v);

	c->pull_always = strcmp(s, "Always") == 0;
	c->pull_never = strcmp(s, "Never") == 0;
	if (!c->pull_always && !c->pull_never && strcmp(s, "IfNotPresent") != 0)
		return abx__spec_invalid(at, "must be Always, IfNotPresent or Never");
	return ABX_OK;
}

static int c_command(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_strings(at, v, &((abx__spec_container *)into)->command);
}

static int c_args(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_strings(at, v, &((abx__spec_container *)into)->args);
}

static int c_working_dir(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec_container *c = into;
	int r = abx__spec_string(at, v, &c->working_dir);

	if (r < 0)
		return r;
	return c->working_dir[0] == '/'
		       ? ABX_OK
		       : abx__spec_invalid(at, "must be an absolute path");
}

struct env_item {
	char *name;
	char *value;
};

static int e_name(const struct spec_at *at, json_object *v, void *into)
{
	struct env_item *e = into;
	int r = abx__spec_string(at, v, &e->name);

	if (r < 0)
		return r;
	return *e->name && !strchr(e->name, '=')
		       ? ABX_OK
		       : abx__spec_invalid(at, "is no name of a variable");
}

static int e_value(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_string(at, v, &((struct env_item *)into)->value);
}

static const struct spec_field env_fields[] = { { "name", e_name },
						{ "value", e_value },
						{ 0 } };

/* Adds NAME=value, its $(OTHER) references resolved from what came before. */
static int env_add(const struct spec_at *at, abx__spec_container *c,
		   const struct env_item *e)
{
	char *value = NULL, *line;
	int r;

	if (!e->name)
		return abx__spec_invalid(at, "needs a name");
	if (abx__spec_strv_len(c->env) >= ABX__SPEC_ENV_MAX)
		return abx__spec_invalid(at, "too many variables");
	r = abx__spec_expand(e->value ? e->value : "", c->env, &value);
	if (r < 0)
		return abx__error_set(at->reterr, r, "%s: cannot be expanded", at->path);
	line = abx__strf("%s=%s", e->name, value);
	abx__free(value);
	if (!line)
		return abx__error_nomem(at->reterr);
	r = abx__spec_strv_take(&c->env, line);
	if (r < 0) {
		abx__free(line);
		return abx__error_nomem(at->reterr);
	}
	return ABX_OK;
}

static int read_env_item(const struct spec_at *at, json_object *v, void *into)
{
	struct env_item e = { 0 };
	int r = abx__spec_object(at, v, env_fields, &e);

	if (r == ABX_OK)
		r = env_add(at, into, &e);
	abx__free(e.name);
	abx__free(e.value);
	return r;
}

static int c_env(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_array(at, v, read_env_item, into);
}

static int limit_cpu(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_cpu(at, v, &((abx__spec_container *)into)->cpu_milli);
}

static int limit_memory(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_bytes(at, v, &((abx__spec_container *)into)->memory_bytes);
}

static int request_cpu(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_cpu(at, v, &((abx__spec_container *)into)->cpu_request_milli);
}

/* A request is a promise about scheduling; on one machine the limit is what holds.
 * Checked all the same. */
static int request_memory(const struct spec_at *at, json_object *v, void *into)
{
	uint64_t unused;

	(void)into;
	return abx__spec_bytes(at, v, &unused);
}

static const struct spec_field limit_fields[] = { { "cpu", limit_cpu },
						  { "memory", limit_memory },
						  { 0 } };
static const struct spec_field request_fields[] = { { "cpu", request_cpu },
						    { "memory", request_memory },
						    { 0 } };

static int r_limits(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_object(at, v, limit_fields, into);
}

static int r_requests(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_object(at, v, request_fields, into);
}

static const struct spec_field resource_fields[] = { { "limits", r_limits },
						     { "requests", r_requests },
						     { 0 } };

static int c_resources(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_object(at, v, resource_fields, into);
}

static int s_user(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_id(at, v, &((abx__spec_container *)into)->uid);
}

static int s_group(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_id(at, v, &((abx__spec_container *)into)->gid);
}

static int s_privileged(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_bool(at, v, &((abx__spec_container *)into)->privileged);
}

static const struct spec_field security_fields[] = { { "runAsUser", s_user },
						     { "runAsGroup", s_group },
						     { "privileged", s_privileged },
						     { 0 } };

static int c_security(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_object(at, v, security_fields, into);
}

static int m_name(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_label(at, v, &((abx__spec_mount *)into)->volume);
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

static int m_path(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec_mount *m = into;
	int r = abx__spec_string(at, v, &m->path);

	if (r < 0)
		return r;
	if (!abx__spec_path_is_clean(m->path))
		return abx__spec_invalid(at,
					 "must be an absolute, clean path other than /");
	/* /dev/shm is the one place below /dev that templates mount memory volumes on. */
	if (path_is_reserved(m->path) && strcmp(m->path, "/dev/shm") != 0)
		return abx__spec_invalid(at,
					 "must not lie at or below /proc, /sys or /dev");
	return ABX_OK;
}

static int m_read_only(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_bool(at, v, &((abx__spec_mount *)into)->read_only);
}

static int m_sub_path(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec_mount *m = into;
	char *full;
	bool clean;
	int r = abx__spec_string(at, v, &m->sub_path);

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
	return clean ? ABX_OK : abx__spec_invalid(at, "must be a relative, clean path");
}

static const struct spec_field mount_fields[] = { { "name", m_name },
						  { "mountPath", m_path },
						  { "readOnly", m_read_only },
						  { "subPath", m_sub_path },
						  { 0 } };

static int read_mount(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec_container *c = into;
	abx__spec_mount *m;
	int r;

	if (c->mount_count >= ABX__SPEC_MOUNT_MAX)
		return abx__spec_invalid(at, "too many mounts");
	m = &c->mounts[c->mount_count++];
	r = abx__spec_object(at, v, mount_fields, m);
	if (r < 0)
		return r;
	if (!m->volume || !m->path)
		return abx__spec_invalid(at, "needs name and mountPath");
	for (size_t i = 0; i + 1 < c->mount_count; i++)
		if (strcmp(c->mounts[i].path, m->path) == 0)
			return abx__spec_invalid(at, "mounts a path a second time");
	return ABX_OK;
}

static int c_mounts(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_array(at, v, read_mount, into);
}

static int p_number(const struct spec_at *at, json_object *v, void *into)
{
	int64_t n = json_object_get_int64(v);

	(void)into;
	if (!json_object_is_type(v, json_type_int) || n < 1 || n > 65535)
		return abx__spec_invalid(at, "must be a port from 1 to 65535");
	return ABX_OK;
}

static int p_protocol(const struct spec_at *at, json_object *v, void *into)
{
	const char *s = json_object_get_string(v);

	(void)into;
	return strcmp(s, "TCP") == 0 || strcmp(s, "UDP") == 0 || strcmp(s, "SCTP") == 0
		       ? ABX_OK
		       : abx__spec_invalid(at, "must be TCP, UDP or SCTP");
}

/* Ports are information, as in Kubernetes: every port can be reached. hostPort would be a
 * promise, so it is refused. */
static const struct spec_field port_fields[] = { { "containerPort", p_number },
						 { "name", abx__spec_text },
						 { "protocol", p_protocol },
						 { 0 } };

static int read_port(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_object(at, v, port_fields, into);
}

static int c_ports(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_array(at, v, read_port, into);
}

static const struct spec_field container_fields[] = {
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

int abx__spec_container_read(const struct spec_at *at, json_object *v,
			     abx__spec_container *c)
{
	int r;

	c->uid = c->gid = -1;
	r = abx__spec_object(at, v, container_fields, c);
	if (r < 0)
		return r;
	if (!c->name || !c->image || !*c->image)
		return abx__spec_invalid(at, "needs a name and an image");
	return ABX_OK;
}

void abx__spec_container_done(abx__spec_container *c)
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

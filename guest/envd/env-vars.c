/*
 * env-vars.c - which variables a command sees.
 */
#include "envd/env-vars.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/envd.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

bool abx__env_var_is_name(const char *name)
{
	return *name != '\0' && !strchr(name, '=');
}

static int set_all(abx__map *dst, const abx__map *src)
{
	for (size_t i = 0; i < src->count; i++) {
		int r = abx__map_set(dst, src->items[i].key, src->items[i].value);

		if (r < 0)
			return r;
	}
	return ABX_OK;
}

int abx__env_vars_defaults(const struct abx__envd *envd, abx__map *ret)
{
	int r = set_all(ret, &envd->user_vars);

	return r < 0 ? r : set_all(ret, &envd->internal_vars);
}

int abx__env_vars_of_user(const struct abx__envd *envd, const abx__user *user,
			  abx__map *ret)
{
	const char *path = getenv("PATH");
	int r;

	r = abx__map_set(ret, "PATH", path && *path ? path : DEFAULT_PATH);
	if (r >= 0)
		r = abx__map_set(ret, "HOME", user->home);
	if (r >= 0)
		r = abx__map_set(ret, "USER", user->name);
	if (r >= 0)
		r = abx__map_set(ret, "LOGNAME", user->name);
	return r < 0 ? r : abx__env_vars_defaults(envd, ret);
}

char **abx__env_vars_block(const abx__map *vars)
{
	size_t size = (vars->count + 1) * sizeof(char *);
	char **block, *text;

	for (size_t i = 0; i < vars->count; i++)
		size += strlen(vars->items[i].key) + strlen(vars->items[i].value) + 2;
	block = abx__malloc(size);
	if (!block)
		return NULL;
	text = (char *)(block + vars->count + 1);
	for (size_t i = 0; i < vars->count; i++) {
		block[i] = text;
		text = stpcpy(text, vars->items[i].key);
		*text++ = '=';
		text = stpcpy(text, vars->items[i].value) + 1;
	}
	block[vars->count] = NULL;
	return block;
}

/* ---- the image's environment for login shells ---- */

/* What describes this process or the account rather than the image. */
static bool is_of_image(const char *name, size_t len)
{
	static const char *const own[] = { "HOME",   "USER",  "LOGNAME",  "PWD",
					   "OLDPWD", "SHLVL", "HOSTNAME", "TERM",
					   "SHELL",  "_",     "PPID",     "IFS",
					   "OPTIND", "PS1",   "PS2",      "PS4" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strlen(own[i]) == len && strncmp(own[i], name, len) == 0)
			return false;
	if (strncmp(name, "AGENTBOX_", 9) == 0 ||
	    (len > 0 && *name >= '0' && *name <= '9'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') ||
		      (name[i] >= 'A' && name[i] <= 'Z') ||
		      (name[i] >= '0' && name[i] <= '9') || name[i] == '_'))
			return false;
	return len > 0;
}

static int add_quoted(abx__buf *buf, const char *value)
{
	int r = abx__buf_addc(buf, '\'');

	for (; r >= 0 && *value; value++)
		r = *value == '\'' ? abx__buf_adds(buf, "'\\''")
				   : abx__buf_addc(buf, *value);
	return r < 0 ? r : abx__buf_addc(buf, '\'');
}

static int add_variable(abx__buf *buf, const char *name, size_t len, const char *value)
{
	bool always = len == 4 && strncmp(name, "PATH", 4) == 0;
	int r = ABX_OK;

	if (!always)
		r = abx__buf_addf(buf, "[ -n \"${%.*s+x}\" ] || ", (int)len, name);
	if (r >= 0)
		r = abx__buf_addf(buf, "export %.*s=", (int)len, name);
	if (r >= 0)
		r = add_quoted(buf, value);
	return r < 0 ? r : abx__buf_addc(buf, '\n');
}

static int write_whole(const char *file, const abx__buf *text, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t done = 0;

	while (fd >= 0 && done < text->len) {
		ssize_t n = write(fd, text->data + done, text->len - done);

		if (n < 0 && errno != EINTR)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || done < text->len)
		return abx__error_errno(reterr, ABX_EIO, errno, "write %s", file);
	return ABX_OK;
}

int abx__env_vars_write_profile(const char *file, char **environ_vars, abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	int r;

	r = abx__buf_adds(&text, "# The image's environment, for login shells; written "
				 "by agentbox-envd.\n");
	for (; r >= 0 && *environ_vars; environ_vars++) {
		size_t len = strcspn(*environ_vars, "=");

		if ((*environ_vars)[len] == '=' && is_of_image(*environ_vars, len))
			r = add_variable(&text, *environ_vars, len,
					 *environ_vars + len + 1);
	}
	if (r < 0)
		return abx__error_nomem(reterr);
	return write_whole(file, &text, reterr);
}

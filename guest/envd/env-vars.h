/*
 * env-vars.h - the environment of commands (contract/envd.md, sections 1, 5 and 7).
 */
#ifndef ABX_ENVD_ENV_VARS_H
#define ABX_ENVD_ENV_VARS_H

#include <stdbool.h>

#include "base/map.h"
#include "envd/users.h"

struct abx__envd;

/* A name a variable may have: not empty, no '='. */
bool abx__env_var_is_name(const char *name);
/* PATH, HOME, USER, LOGNAME, then the defaults, then what the caller sets on top of
 * `ret`. */
int abx__env_vars_of_user(const struct abx__envd *envd, const abx__user *user,
			  abx__map *ret);
/* The defaults: the user-set variables under the platform's. */
int abx__env_vars_defaults(const struct abx__envd *envd, abx__map *ret);
/* "NAME=VALUE" strings, NULL-terminated, in one allocation; NULL when out of memory. */
char **abx__env_vars_block(const abx__map *vars);
/* Writes a shell file that sets the variables of `environ` which are not set yet, and
   PATH in any case, so that a login shell keeps the image's environment. */
int abx__env_vars_write_profile(const char *file, char **environ_vars,
				abx_error **reterr);

#endif

/*
 * path.h - what a path of a request means (contract/envd.md, section 3), and parents made
 * on the way.
 */
#ifndef ABX_ENVD_PATH_H
#define ABX_ENVD_PATH_H

#include <sys/types.h>

#include "base/error.h"
#include "envd/users.h"

/* A new absolute path. ABX_EINVAL for "~other". `workdir` may be NULL. */
int abx__path_resolve(const char *path, const abx__user *user, const char *workdir,
		      char **ret, abx_error **reterr);
/* As Go's filepath.Clean for absolute paths; NULL when out of memory. */
char *abx__path_clean(const char *path);
/* The last component, borrowed; "/" for the root. */
const char *abx__path_base(const char *path);
/* The part before the last component, "/" at least; NULL when out of memory. */
char *abx__path_parent(const char *path);
/* Makes `path` and the parents it lacks, 0755, the new ones owned by uid:gid. ABX_EEXISTS
   "path is a file: X" when something else is in the way; 1 when `path` itself was there
   already. Blocks. */
int abx__path_make_dirs(const char *path, uid_t uid, gid_t gid, abx_error **reterr);

#endif

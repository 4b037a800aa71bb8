/*
 * envd-root.h - a root for envd_child.root that holds the daemon (/envd), busybox with
 * /bin/sh, /dev/null, and nothing else.
 */
#ifndef ABX_TESTS_ENVD_ROOT_H
#define ABX_TESTS_ENVD_ROOT_H

#include <stdbool.h>

/* Root's rights, busybox-static, and a daemon that is static (no sanitizers). */
bool envd_root_is_possible(void);
bool envd_root_make(char root[64]);
/* A file in it; its directory must be there. */
void envd_root_put(const char *root, const char *path, const char *text);
void envd_root_remove(const char *root);

#endif

/*
 * agentboxd-tree.h - removing a state directory, and nothing else.
 */
#ifndef AGENTBOXD_TREE_H
#define AGENTBOXD_TREE_H

#include <stdbool.h>

#include <agentbox/error.h>

/* Is it a directory that agentboxd or agentbox-podd made, or an empty one? */
bool agentboxd_tree_is_ours(const char *path);
/* Everything in it and itself; stays on its file system, follows no link. Absent is fine.
 */
int agentboxd_tree_remove(const char *path, abx_error **reterr);

#endif

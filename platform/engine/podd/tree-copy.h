/*
 * tree-copy.h - a container's files, as overlayfs keeps them, copied into a layer another
 * Pod can use: whiteouts, opaque folders, attributes, holes and hard links stay what they
 * are, and ids are shifted back to what they are inside.
 */
#ifndef ABX_ENGINE_PODD_TREE_COPY_H
#define ABX_ENGINE_PODD_TREE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/error.h>

struct tree_copy {
	uint32_t id_base; /* that the tree's ids are shifted by; 0: not at all */
	bool devices;     /* device nodes are copied, else left out */
	uint64_t bytes_max, entries_max;
	/* what was copied, over all calls */
	uint64_t bytes, entries;
	struct tree_link *links;
};

/* Everything below `from_fd` into the folder `to_fd`, and the folder's own mode, owner
   and attributes. Blocks; nobody may change the tree meanwhile. ABX_ETOOBIG beyond a
   limit. */
int abx__tree_copy(struct tree_copy *copy, int from_fd, int to_fd, abx_error **reterr);
void abx__tree_copy_done(struct tree_copy *copy);

#endif

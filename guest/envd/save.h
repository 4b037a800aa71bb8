/*
 * save.h - one file written whole: its content goes to an unnamed file beside the target,
 * which takes the target's place when all of it is there. An upload that breaks off
 * leaves nothing behind and what was there before untouched.
 *
 * A new file appears by linking. An existing one keeps its inode, mode and links: small
 * content, or content of a file with several names, is copied into it; content of 8 MiB
 * and more replaces it by rename. Devices, pipes and dangling links are written directly.
 * The file's user metadata becomes what `metadata` says; a file system that keeps none is
 * no error. All of it blocks: for a worker.
 */
#ifndef ABX_ENVD_SAVE_H
#define ABX_ENVD_SAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/map.h"
#include "io/tube.h"

/* How the name of a file in writing begins, where it has to have one. */
#define ABX__SAVE_TEMP_PREFIX ".agentbox-upload-"
#define ABX__SAVE_RENAME_BYTES ((uint64_t)8 << 20)

typedef struct abx__save {
	int fd;
	char *path;
	char *temp;      /* name of the file in writing; NULL: it has none */
	bool is_direct;  /* `fd` is the target itself */
	bool has_target; /* a regular file is there already */
	struct stat target;
	uid_t uid;
	gid_t gid;
	uint64_t written;
	const abx__map *metadata; /* set between open and commit; borrowed; NULL: none */
} abx__save;

#define ABX__SAVE_INIT   \
	{                \
		.fd = -1 \
	}

/* Errors hold the errno underneath. ABX_EINVAL "path is a directory: P", "path is not a
 * regular file: P" (the commit's, too, when it became a FIFO meanwhile); ABX_EEXHAUSTED
 * for a full disk; ABX_EIO. */
int abx__save_open(abx__save *save, const char *path, uid_t uid, gid_t gid,
		   abx_error **reterr);
int abx__save_write(abx__save *save, const void *data, size_t len, abx_error **reterr);
/* All that the tube holds. */
int abx__save_pour(abx__save *save, abx__tube *tube, abx_error **reterr);
int abx__save_commit(abx__save *save, abx_error **reterr);
/* Without a commit before it: the content is dropped. */
void abx__save_done(abx__save *save);

#endif

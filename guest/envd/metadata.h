/*
 * metadata.h - what users attach to files: X-Metadata-KEY headers of an upload, kept in
 * the extended attributes user.e2b.KEY (contract/envd.md, 4.2), shown in EntryInfo.
 */
#ifndef ABX_ENVD_METADATA_H
#define ABX_ENVD_METADATA_H

#include "base/error.h"
#include "base/map.h"

#define ABX__METADATA_PREFIX "user.e2b."
#define ABX__METADATA_MAX_KEY 246    /* a name of 255 bytes, less the prefix */
#define ABX__METADATA_MAX_SET 4096   /* bytes of names and values: one block of ext4 */
#define ABX__METADATA_MAX_READ 65536 /* bytes of values taken from one file */

/* Adds one header to the set: 1 when it was one of ours, 0 when not, negative when it
   cannot be kept: ABX_EINVAL says why, ABX_ENOMEM. The first of two equal keys counts. */
int abx__metadata_add_header(abx__map *metadata, const char *name, const char *value,
			     abx_error **reterr);
/* Whether the set is small enough to be kept. */
int abx__metadata_check(const abx__map *metadata, abx_error **reterr);

/* Makes `metadata` (NULL: none) the file's whole set. A negative errno; a file system
   without attributes is -ENOTSUP. */
int abx__metadata_write(int fd, const abx__map *metadata);
/* What the file at `path` carries, links followed. Values that are not text are left out,
   as is what passes the cap. Fails with ABX_ENOMEM only: no attributes is an empty set.
 */
int abx__metadata_read(const char *path, abx__map *ret);

#endif

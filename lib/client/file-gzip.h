/*
 * file-gzip.h - a source whose bytes leave packed: pulled from another one as they are
 * needed, at constant memory.
 */
#ifndef ABX_CLIENT_FILE_GZIP_H
#define ABX_CLIENT_FILE_GZIP_H

#include <agentbox/op.h>

typedef struct abx__gzip abx__gzip;

/* NULL when out of memory. */
abx__gzip *abx__gzip_new(abx_source_fn source, void *userdata);
void abx__gzip_free(abx__gzip *gzip);
/* An abx_source_fn whose userdata is the abx__gzip. */
int abx__gzip_read(void *gzip, char *buf, size_t size, size_t *ret_len);

#endif

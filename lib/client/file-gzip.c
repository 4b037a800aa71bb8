/*
 * file-gzip.c - packing a source with zlib.
 */
#include "client/file-gzip.h"

#include <stdbool.h>
#include <zlib.h>

#include "base/alloc.h"

#define INPUT_BYTES ((size_t)64 << 10)
#define LEVEL 1 /* who packs waits for the network, not for the last per cent */
#define GZIP_WRAPPER 16

struct abx__gzip {
	z_stream z;
	abx_source_fn source;
	void *userdata;
	bool is_drained; /* the source has ended */
	bool is_done;    /* and all of it left */
	char in[INPUT_BYTES];
};

abx__gzip *abx__gzip_new(abx_source_fn source, void *userdata)
{
	abx__gzip *gzip = abx__calloc(1, sizeof(*gzip));

	if (!gzip)
		return NULL;
	if (deflateInit2(&gzip->z, LEVEL, Z_DEFLATED, MAX_WBITS + GZIP_WRAPPER, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		abx__free(gzip);
		return NULL;
	}
	gzip->source = source;
	gzip->userdata = userdata;
	return gzip;
}

void abx__gzip_free(abx__gzip *gzip)
{
	if (!gzip)
		return;
	deflateEnd(&gzip->z);
	abx__free(gzip);
}

/* More of the source, when what it gave is used up. */
static int fill(abx__gzip *gzip)
{
	size_t len = 0;
	int r;

	if (gzip->z.avail_in || gzip->is_drained)
		return ABX_OK;
	r = gzip->source(gzip->userdata, gzip->in, sizeof(gzip->in), &len);
	if (r != ABX_OK)
		return r;
	gzip->is_drained = len == 0;
	gzip->z.next_in = (Bytef *)gzip->in;
	gzip->z.avail_in = (uInt)len;
	return ABX_OK;
}

int abx__gzip_read(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	abx__gzip *gzip = userdata;
	int r = ABX_OK;

	if (size > INPUT_BYTES)
		size = INPUT_BYTES;
	gzip->z.next_out = (Bytef *)buf;
	gzip->z.avail_out = (uInt)size;
	while (!gzip->is_done && gzip->z.avail_out) {
		r = fill(gzip);
		if (r != ABX_OK)
			break;
		r = deflate(&gzip->z, gzip->is_drained ? Z_FINISH : Z_NO_FLUSH);
		gzip->is_done = r == Z_STREAM_END;
		r = r == Z_STREAM_ERROR ? ABX_EFAIL : ABX_OK;
		if (r < 0)
			break;
	}
	*ret_len = size - gzip->z.avail_out;
	return r == ABX_PAUSE && *ret_len ? ABX_OK : r;
}

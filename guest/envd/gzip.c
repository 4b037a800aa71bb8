/*
 * gzip.c - zlib behind a narrow door.
 */
#include "envd/gzip.h"

#include <zlib.h>

#include "base/alloc.h"

#define GZIP_WINDOW (MAX_WBITS + 16) /* zlib's way to say: with gzip's frame */
#define MEMORY_LEVEL 8
#define PIECE_BYTES ((size_t)32 << 10)
/* Below this gain compressing is not worth its time. */
#define PROBE_BYTES ((uint64_t)256 << 10)
#define POOR_NUMERATOR 95
#define POOR_DENOMINATOR 100

static voidpf zalloc_fn(voidpf opaque, uInt items, uInt size)
{
	(void)opaque;
	return abx__calloc(items, size);
}

static void zfree_fn(voidpf opaque, voidpf p)
{
	(void)opaque;
	abx__free(p);
}

/* ---- reading ---- */

struct abx__gunzip {
	z_stream z;
	bool is_inside; /* a member has begun and not ended */
	bool is_used;   /* a member was there */
	int failed;
	uint64_t in, out;
	char piece[PIECE_BYTES];
};

abx__gunzip *abx__gunzip_new(void)
{
	abx__gunzip *gunzip = abx__calloc(1, sizeof(*gunzip));

	if (!gunzip)
		return NULL;
	gunzip->z.zalloc = zalloc_fn;
	gunzip->z.zfree = zfree_fn;
	if (inflateInit2(&gunzip->z, GZIP_WINDOW) != Z_OK) {
		abx__free(gunzip);
		return NULL;
	}
	return gunzip;
}

void abx__gunzip_free(abx__gunzip *gunzip)
{
	if (!gunzip)
		return;
	inflateEnd(&gunzip->z);
	abx__free(gunzip);
}

static bool is_bomb(const abx__gunzip *gunzip)
{
	return gunzip->out > ABX__GUNZIP_FREE_BYTES &&
	       gunzip->out / ABX__GUNZIP_MAX_RATIO > gunzip->in;
}

static int fail(abx__gunzip *gunzip, int code, abx_error **reterr)
{
	gunzip->failed = code;
	switch (code) {
	case ABX_ENOMEM:
		return abx__error_nomem(reterr);
	case ABX_ETOOBIG:
		return abx__error_set(
			reterr, code,
			"the gzip body unpacks to more than %d times its size; send it "
			"without Content-Encoding",
			ABX__GUNZIP_MAX_RATIO);
	default:
		return abx__error_set(reterr, code,
				      "error decompressing request body: %s",
				      gunzip->z.msg ? gunzip->z.msg : "it is no gzip");
	}
}

/* One call of zlib; the member's end is 1. */
static int inflate_piece(abx__gunzip *gunzip, abx__gunzip_sink sink, void *userdata)
{
	z_stream *z = &gunzip->z;
	uInt before = z->avail_in;
	size_t made;
	int r;

	z->next_out = (Bytef *)gunzip->piece;
	z->avail_out = sizeof(gunzip->piece);
	r = inflate(z, Z_NO_FLUSH);
	made = sizeof(gunzip->piece) - z->avail_out;
	gunzip->in += before - z->avail_in;
	gunzip->out += made;
	if (made) {
		int taken = sink(userdata, gunzip->piece, made);

		if (taken < 0) {
			gunzip->failed = taken;
			return taken;
		}
	}
	if (r == Z_MEM_ERROR)
		return ABX_ENOMEM;
	if (r != Z_OK && r != Z_BUF_ERROR && r != Z_STREAM_END)
		return ABX_EPROTO;
	if (is_bomb(gunzip))
		return ABX_ETOOBIG;
	return r == Z_STREAM_END;
}

int abx__gunzip_feed(abx__gunzip *gunzip, const char *data, size_t len,
		     abx__gunzip_sink sink, void *userdata, abx_error **reterr)
{
	z_stream *z = &gunzip->z;

	if (gunzip->failed)
		return gunzip->failed;
	z->next_in = (z_const Bytef *)data;
	z->avail_in = (uInt)len; /* pieces of a body: far below 4 GiB */
	while (z->avail_in > 0 || (gunzip->is_inside && z->avail_out == 0)) {
		int r;

		gunzip->is_inside = gunzip->is_used = true;
		r = inflate_piece(gunzip, sink, userdata);
		if (r == 1) {
			gunzip->is_inside = false;
			r = inflateReset(z) == Z_OK ? 0 : ABX_EPROTO;
		}
		if (r < 0)
			return gunzip->failed ? r : fail(gunzip, r, reterr);
	}
	return ABX_OK;
}

int abx__gunzip_finish(const abx__gunzip *gunzip, abx_error **reterr)
{
	if (gunzip->is_used && !gunzip->is_inside)
		return ABX_OK;
	return abx__error_set(reterr, ABX_EPROTO,
			      "error decompressing request body: it is cut short");
}

/* ---- writing ---- */

struct abx__gzip {
	z_stream z;
	bool is_probed;
};

abx__gzip *abx__gzip_new(void)
{
	abx__gzip *gzip = abx__calloc(1, sizeof(*gzip));

	if (!gzip)
		return NULL;
	gzip->z.zalloc = zalloc_fn;
	gzip->z.zfree = zfree_fn;
	/* The way out is a local network far more often than a thin line. */
	if (deflateInit2(&gzip->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		abx__free(gzip);
		return NULL;
	}
	return gzip;
}

void abx__gzip_free(abx__gzip *gzip)
{
	if (!gzip)
		return;
	deflateEnd(&gzip->z);
	abx__free(gzip);
}

/* Runs zlib until it asks for more. */
static int drain(abx__gzip *gzip, int flush, int level, abx__buf *out)
{
	z_stream *z = &gzip->z;
	int r;

	do {
		if (abx__buf_reserve(out, PIECE_BYTES) < 0)
			return ABX_ENOMEM;
		z->next_out = (Bytef *)out->data + out->len;
		z->avail_out = (uInt)PIECE_BYTES;
		r = level >= 0 ? deflateParams(z, level, Z_DEFAULT_STRATEGY)
			       : deflate(z, flush);
		if (r == Z_STREAM_ERROR)
			return ABX_EFAIL;
		out->len += PIECE_BYTES - z->avail_out;
		out->data[out->len] = '\0';
	} while (z->avail_out == 0 || (level >= 0 && r == Z_BUF_ERROR));
	return ABX_OK;
}

static bool is_poor(const z_stream *z)
{
	return z->total_out / POOR_NUMERATOR > z->total_in / POOR_DENOMINATOR;
}

int abx__gzip_feed(abx__gzip *gzip, const char *data, size_t len, bool last,
		   abx__buf *out)
{
	z_stream *z = &gzip->z;
	int r;

	z->next_in = (z_const Bytef *)data;
	z->avail_in = (uInt)len;
	r = drain(gzip, last ? Z_FINISH : Z_NO_FLUSH, -1, out);
	if (r < 0 || last || gzip->is_probed || z->total_in < PROBE_BYTES)
		return r;
	/* What zlib still holds back would look like a gain. */
	gzip->is_probed = true;
	r = drain(gzip, Z_SYNC_FLUSH, -1, out);
	return r < 0 || !is_poor(z) ? r : drain(gzip, 0, Z_NO_COMPRESSION, out);
}

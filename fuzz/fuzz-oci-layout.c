/*
 * An OCI layout's JSON: index, manifest, config, apart by NUL. Blobs are known by their
 * digest, so "@config@" and "@manifest@" stand for the digests of what they name, and
 * "@layer@" for one that is unpacked already.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/id.h"
#include "engine/podd/image.h"

#define LAYER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct podd podd = { .dir_fd = -1 };
static char dir[64], layout[96];

static void done(void)
{
	abx__fs_empty(podd.dir_fd);
	rmdir(dir);
}

static void open_folder(void)
{
	char path[160];

	if (podd.dir_fd >= 0)
		return;
	snprintf(dir, sizeof(dir), "/tmp/agentbox-fuzz-XXXXXX");
	if (!mkdtemp(dir))
		abort();
	podd.dir = dir;
	podd.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(layout, sizeof(layout), "%s/oci", dir);
	mkdirat(podd.dir_fd, "tmp", 0700);
	mkdirat(podd.dir_fd, "layers", 0700);
	mkdirat(podd.dir_fd, "layers/" LAYER, 0700);
	mkdirat(podd.dir_fd, "oci", 0700);
	snprintf(path, sizeof(path), "%s/blobs", layout);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/blobs/sha256", layout);
	mkdir(path, 0700);
	atexit(done);
}

/* `text` with each `mark` replaced. */
static void put_in(abx__buf *out, const char *text, size_t len, const char *mark,
		   const char *value)
{
	while (len) {
		const char *at = memmem(text, len, mark, strlen(mark));
		size_t before = at ? (size_t)(at - text) : len;

		abx__buf_add(out, text, before);
		text += before;
		len -= before;
		if (at) {
			abx__buf_adds(out, value);
			text += strlen(mark);
			len -= strlen(mark);
		}
	}
}

static void write_blob(const abx__buf *b, char digest[80], char path[128])
{
	uint8_t hash[ABX__SHA256_LEN];

	abx__sha256(abx__buf_str(b), b->len, hash);
	memcpy(digest, "sha256:", 8);
	abx__hex(hash, sizeof(hash), digest + 7);
	snprintf(path, 128, "oci/blobs/sha256/%s", digest + 7);
	abx__fs_write(podd.dir_fd, path, abx__buf_str(b), b->len, 0600);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = text + size, *part[3];
	size_t len[3];
	char digest[2][80], path[2][128];
	ABX_CLEANUP_BUF abx__buf config = ABX__BUF_INIT, manifest = ABX__BUF_INIT,
				 half = ABX__BUF_INIT, index = ABX__BUF_INIT;
	struct image_job job = { .podd = &podd, .reference = "oci:x" };
	abx_error *err = NULL;
	json_object *layers;
	int r;

	open_folder();
	for (int i = 0; i < 3; i++) {
		const char *nul = memchr(text, 0, (size_t)(end - text));

		part[i] = text;
		len[i] = (size_t)((nul && i < 2 ? nul : end) - text);
		text += len[i] + (nul && i < 2);
	}
	abx__buf_add(&config, part[2], len[2]);
	write_blob(&config, digest[0], path[0]);
	put_in(&half, part[1], len[1], "@config@", digest[0]);
	put_in(&manifest, abx__buf_str(&half), half.len, "@layer@", "sha256:" LAYER);
	write_blob(&manifest, digest[1], path[1]);
	put_in(&index, part[0], len[0], "@manifest@", digest[1]);
	abx__fs_write(podd.dir_fd, "oci/index.json", abx__buf_str(&index), index.len,
		      0600);

	job.result = json_object_new_object();
	r = abx__image_build_layout(&job, layout, size % 2 ? "latest" : NULL, &err);
	if ((r == ABX_OK) == (err != NULL) ||
	    (r == ABX_OK && (!json_object_object_get_ex(job.result, "layers", &layers) ||
			     json_object_array_length(layers) == 0)))
		abort();
	abx_error_free(err);
	json_object_put(job.result);
	unlinkat(podd.dir_fd, path[0], 0);
	unlinkat(podd.dir_fd, path[1], 0);
	unlinkat(podd.dir_fd, "oci/index.json", 0);
	return 0;
}

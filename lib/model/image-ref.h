/*
 * image-ref.h - image references: what may be written where an image is named.
 *
 * - `host:` the host's own /usr under a synthetic /etc; no download
 * - `runtime:` and `idle:` a static busybox with the runtime; the second marked idle
 * - `oci:NAME[:TAG]` an OCI layout in an image folder of this machine
 * - `oci-archive:NAME[:TAG]` the same in a tar file
 * - `[REGISTRY/]PATH[:TAG][@DIGEST]` a registry's image, with Docker's defaults
 *
 * NAME is relative to an image folder, or the absolute path of something in one; podd
 * holds it to that.
 */
#ifndef ABX_MODEL_IMAGE_REF_H
#define ABX_MODEL_IMAGE_REF_H

#include <agentbox/error.h>

#include "base/cleanup.h"

#define ABX__IMAGE_REF_MAX 1024

enum abx__image_kind {
	ABX__IMAGE_HOST,
	ABX__IMAGE_OCI,
	ABX__IMAGE_OCI_ARCHIVE,
	ABX__IMAGE_REGISTRY,
	ABX__IMAGE_RUNTIME,
	ABX__IMAGE_IDLE,
};

typedef struct abx__image_ref {
	enum abx__image_kind kind;
	char *registry; /* registry images: "docker.io" when not written */
	char *path;     /* repository ("library/python"), or the folder or file */
	char *tag;      /* NULL when not written; "latest" for a registry image without a
			   digest */
	char *digest;   /* "sha256:..." or NULL */
} abx__image_ref;

/* ABX_EINVAL names the reference and the part that is wrong. `*ret` is filled on success
 * only. */
int abx__image_ref_parse(const char *s, abx__image_ref *ret, abx_error **reterr);
int abx__image_ref_check(const char *s, abx_error **reterr);
void abx__image_ref_done(abx__image_ref *ref);
/* The full spelling: "python" becomes "docker.io/library/python:latest". NULL when out of
 * memory. */
char *abx__image_ref_print(const abx__image_ref *ref);

#define ABX__CLEANUP_IMAGE_REF ABX_CLEANUP(abx__image_ref_done)

#endif

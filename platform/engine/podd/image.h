/*
 * image.h - what the stages of an image share: the table and job (image.c), and in the
 * job's child the builders of built-in images (image-host.c), OCI layouts (image-oci.c)
 * and layers (image-unpack.c).
 *
 * On disk, below podd's folder: layers/NAME/ (an unpacked layer; complete, since it is
 * renamed into place), images/HASH.json (what a reference came to), tmp/ (work in
 * progress; emptied at start).
 */
#ifndef ABX_ENGINE_PODD_IMAGE_H
#define ABX_ENGINE_PODD_IMAGE_H

#include "engine/podd/podd.h"

/* Where a job puts its findings. */
struct image_job {
	struct podd *podd;
	const char *reference; /* as the template has it */
	char *resolved;        /* after the alias table */
	const char *reason;    /* of a failure: "ErrImagePull", ... */
	json_object *result;   /* see image.c, load() */
};

/* "ErrImagePull" and the like, with the message in *reterr; returns `code`. */
int abx__image_refuse(struct image_job *job, const char *reason, int code,
		      abx_error **reterr, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

int abx__image_build_runtime(struct image_job *job, bool idle, abx_error **reterr);
int abx__image_build_host(struct image_job *job, abx_error **reterr);
int abx__image_build_layout(struct image_job *job, const char *layout, const char *tag,
			    abx_error **reterr);
int abx__image_build_archive(struct image_job *job, const char *file, abx_error **reterr);
int abx__image_pull(struct image_job *job, abx_error **reterr);

/* Unpacks a tar (plain, gzip or zstd) into an empty folder, by a child confined to it.
   `whiteouts`: OCI whiteouts become overlay's. `digest`: hex of the file's SHA-256, or
   NULL. */
int abx__image_unpack(int tar_fd, int into_fd, bool whiteouts, const char *digest,
		      abx_error **reterr);

/* A fresh folder tmp/NAME, owned by root, mode 0755; its name in `name`. */
int abx__image_tmp(struct podd *podd, char name[64], abx_error **reterr);
/* tmp/NAME becomes layers/LAYER, unless that is there already. */
int abx__image_keep_layer(struct podd *podd, const char *tmp, const char *layer,
			  abx_error **reterr);
bool abx__image_has_layer(struct podd *podd, const char *layer);
void abx__image_add_layer(struct image_job *job, const char *layer);

#endif

/*
 * image.h - what the stages of an image share: references (image-ref.c), records
 * (image-record.c), the table and jobs (image.c), and in a job's child (image-build.c)
 * the builders of built-in images (image-host.c), OCI layouts (image-oci.c) and layers
 * (image-unpack.c).
 *
 * On disk, below podd's folder: layers/NAME/ (an unpacked layer; complete, since it is
 * renamed into place), images/HASH.json (what a reference came to), tmp/ (work in
 * progress; emptied at start).
 */
#ifndef ABX_ENGINE_PODD_IMAGE_H
#define ABX_ENGINE_PODD_IMAGE_H

#include "engine/podd/podd.h"

/* What `reference` comes to by the alias table, which may be NULL; caller frees. NULL
 * when out of memory. */
char *abx__image_resolve(json_object *aliases, const char *reference);
/* host:, runtime:, idle:, oci:, oci-archive:, snapshot:. */
bool abx__image_is_local(const char *reference);
bool abx__image_name_is_valid(const char *reference);
/* "images/HASH.json" of a reference. */
void abx__image_file(const char *reference, char out[96]);
/* In a job's child. The exit status says how it went; a failure's reason and message go
 * through `fd`, a line each. */
_Noreturn void abx__image_job_main(struct podd *podd, json_object *aliases,
				   const char *reference, int fd);

/* Where a job puts its findings. */
struct image_job {
	struct podd *podd;
	const char *reference; /* as the template has it */
	char *resolved;        /* after the alias table */
	const char *reason;    /* of a failure: "ErrImagePull", ... */
	json_object *result;   /* see image.c, load_entry() */
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

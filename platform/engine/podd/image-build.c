/*
 * image-build.c - in a job's child: a reference is resolved, what it means is built or
 * fetched, and a small file of our own making says what came of it.
 */
#include "engine/podd/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"

int abx__image_refuse(struct image_job *job, const char *reason, int code,
		      abx_error **reterr, const char *fmt, ...)
{
	abx__buf buf = ABX__BUF_INIT_CAP(2048);
	va_list ap;

	job->reason = reason;
	va_start(ap, fmt);
	if (abx__buf_vaddf(&buf, fmt, ap) < 0)
		code = abx__error_nomem(reterr);
	else
		abx__error_set(reterr, code, "%s", abx__buf_str(&buf));
	va_end(ap);
	abx__buf_done(&buf);
	return code;
}

int abx__image_tmp(struct podd *podd, char name[64], abx_error **reterr)
{
	char id[13];

	if (abx__id_random(id, 12) < 0)
		return abx__error_set(reterr, ABX_EIO, "no random bytes");
	snprintf(name, 64, "tmp/%s", id);
	if (abx__fs_mkdir(podd->dir_fd, name, 0755, 0) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", name);
	return ABX_OK;
}

bool abx__image_has_layer(struct podd *podd, const char *layer)
{
	char path[160];

	return snprintf(path, sizeof(path), "layers/%s", layer) < (int)sizeof(path) &&
	       faccessat(podd->dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int abx__image_keep_layer(struct podd *podd, const char *tmp, const char *layer,
			  abx_error **reterr)
{
	char path[160];

	snprintf(path, sizeof(path), "layers/%s", layer);
	if (renameat2(podd->dir_fd, tmp, podd->dir_fd, path, RENAME_NOREPLACE) == 0 ||
	    errno == EEXIST)
		return ABX_OK;
	return abx__error_errno(reterr, ABX_EIO, errno, "layer %s", layer);
}

void abx__image_add_layer(struct image_job *job, const char *layer)
{
	json_object *a;

	if (!json_object_object_get_ex(job->result, "layers", &a)) {
		a = json_object_new_array();
		json_object_object_add(job->result, "layers", a);
	}
	json_object_array_add(a, json_object_new_string(layer));
}

/* An `oci:` path may lie in the image folders only: a reference comes from whoever
 * creates a sandbox. */
static char *locate(struct podd *podd, const char *path, abx_error **reterr)
{
	for (size_t i = 0; i < podd->options.image_dir_count; i++) {
		const char *base = podd->options.image_dirs[i];
		size_t len = strlen(base);
		char *full;

		if (path[0] == '/' && (strncmp(path, base, len) != 0 || path[len] != '/'))
			continue;
		full = path[0] == '/' ? abx__strdup(path)
				      : abx__strf("%s/%s", base, path);
		if (!full) {
			abx__error_nomem(reterr);
			return NULL;
		}
		if (access(full, F_OK) == 0)
			return full;
		abx__free(full);
	}
	abx__error_set(reterr, ABX_ENOTFOUND,
		       "there is no %s in the image folders of this machine", path);
	return NULL;
}

static int build_oci(struct image_job *job, const char *path_and_tag, bool archive,
		     abx_error **reterr)
{
	char *path = abx__strdup(path_and_tag), *full, *tag = NULL, *colon;
	int r;

	if (!path)
		return abx__error_nomem(reterr);
	colon = archive ? NULL : strrchr(path, ':');
	if (colon) {
		*colon = '\0';
		tag = colon + 1;
	}
	full = locate(job->podd, path, reterr);
	if (!full) {
		abx__free(path);
		job->reason = "ErrImagePull";
		return ABX_ENOTFOUND;
	}
	r = archive ? abx__image_build_archive(job, full, reterr)
		    : abx__image_build_layout(job, full, tag, reterr);
	abx__free(full);
	abx__free(path);
	return r;
}

static int build(struct image_job *job, abx_error **reterr)
{
	const char *ref = job->resolved;

	if (strcmp(ref, "host:") == 0)
		return abx__image_build_host(job, reterr);
	if (strcmp(ref, "runtime:") == 0 || strcmp(ref, "idle:") == 0)
		return abx__image_build_runtime(job, ref[0] == 'i', reterr);
	if (abx__snapshot_id_of(ref))
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "there is no such snapshot any more");
	if (abx__str_starts(ref, "oci:"))
		return build_oci(job, ref + 4, false, reterr);
	if (abx__str_starts(ref, "oci-archive:"))
		return build_oci(job, ref + 12, true, reterr);
	return abx__image_pull(job, reterr);
}

/* The marks of a placeholder, as the runtime's entrypoint reads them. */
static void note_idle(struct image_job *job)
{
	json_object *layers = NULL, *env = NULL;
	bool idle = false;

	json_object_object_get_ex(job->result, "layers", &layers);
	for (size_t i = 0; layers && i < json_object_array_length(layers); i++) {
		char path[200];

		snprintf(path, sizeof(path), "layers/%s/etc/agentbox_is_idle_image",
			 json_object_get_string(json_object_array_get_idx(layers, i)));
		idle |= faccessat(job->podd->dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) ==
			0;
	}
	json_object_object_get_ex(job->result, "env", &env);
	for (size_t i = 0; env && i < json_object_array_length(env); i++)
		idle |= strcmp(json_object_get_string(json_object_array_get_idx(env, i)),
			       "AGENTBOX_IS_IDLE_IMAGE=true") == 0;
	json_object_object_add(job->result, "is_idle", json_object_new_boolean(idle));
}

void abx__image_file(const char *reference, char out[96])
{
	uint8_t hash[ABX__SHA256_LEN];
	char hex[2 * ABX__SHA256_LEN + 1];

	abx__sha256(reference, strlen(reference), hash);
	abx__hex(hash, sizeof(hash), hex);
	snprintf(out, 96, "images/%s.json", hex);
}

_Noreturn void abx__image_job_main(struct podd *podd, json_object *aliases,
				   const char *reference, int fd)
{
	struct image_job job = { .podd = podd,
				 .reference = reference,
				 .reason = "ErrImagePull" };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	char file[96];
	int r;

	job.result = json_object_new_object();
	job.resolved = abx__image_resolve(aliases, reference);
	umask(022);
	r = job.resolved && job.result ? build(&job, &err) : abx__error_nomem(&err);
	if (r == ABX_OK) {
		note_idle(&job);
		json_object_object_add(job.result, "resolved_ms",
				       json_object_new_int64(abx__wall_ms()));
		abx__image_file(reference, file);
		if (abx__fs_replace_json(podd->dir_fd, file, job.result) < 0)
			r = abx__error_errno(&err, ABX_EIO, errno, "%s", file);
	}
	if (r < 0)
		dprintf(fd, "%s\n%s", job.reason, abx_error_message(err));
	_exit(r < 0 ? 1 : 0);
}

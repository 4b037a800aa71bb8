/*
 * image-oci.c - OCI layouts, archives of them, and registries (through skopeo, without
 * root, into a layout).
 *
 * Runs in an image job's child. Everything in a layout is foreign: JSON behind caps,
 * digests checked, names of blobs made from checked hex only.
 */
#include "engine/podd/image.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"

#define JSON_MAX ((size_t)4 << 20)
/* skopeo's account: a number of no account and of no Pod, so that what a registry makes
 * of it can reach neither agentboxd's files and socket nor anything nobody owns. */
#define SKOPEO_ID 0x0fffffffu

/* <sys/mount.h> does not agree with <linux/mount.h> in this libc; see start.c. */
extern int mount(const char *source, const char *target, const char *type,
		 unsigned long flags, const void *data);

static const char *text_of(json_object *o, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(o, key, &v) &&
			       json_object_is_type(v, json_type_string)
		       ? json_object_get_string(v)
		       : NULL;
}

/* "sha256:HEX" to HEX; NULL for anything else. */
static const char *hex_of(const char *digest)
{
	if (!digest || strncmp(digest, "sha256:", 7) != 0 || strlen(digest + 7) != 64 ||
	    strspn(digest + 7, "0123456789abcdef") != 64)
		return NULL;
	return digest + 7;
}

static int open_blob(int layout_fd, const char *hex)
{
	char path[96];

	snprintf(path, sizeof(path), "blobs/sha256/%s", hex);
	return abx__fs_open_beneath(layout_fd, path, O_RDONLY);
}

static json_object *parse(const char *text, size_t len)
{
	json_tokener *tok = json_tokener_new_ex(32);
	json_object *o = tok ? json_tokener_parse_ex(tok, text, (int)len) : NULL;

	if (o && (json_tokener_get_error(tok) != json_tokener_success ||
		  !json_object_is_type(o, json_type_object))) {
		json_object_put(o);
		o = NULL;
	}
	if (tok)
		json_tokener_free(tok);
	return o;
}

/* A JSON blob whose content has the digest asked for; NULL otherwise. */
static json_object *read_blob_json(int layout_fd, const char *hex)
{
	char path[96], got[65];
	uint8_t hash[ABX__SHA256_LEN];
	json_object *o = NULL;
	size_t len;
	char *text;
	ABX_CLEANUP(abx__closep) int fd = open_blob(layout_fd, hex);

	if (fd < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	text = abx__fs_read(AT_FDCWD, path, JSON_MAX, &len);
	if (text && abx__sha256(text, len, hash) == ABX_OK) {
		abx__hex(hash, sizeof(hash), got);
		if (strcmp(got, hex) == 0)
			o = parse(text, len);
	}
	abx__free(text);
	return o;
}

static bool is_index(json_object *descriptor)
{
	const char *type = text_of(descriptor, "mediaType");

	return type && (strstr(type, "image.index") || strstr(type, "manifest.list"));
}

static bool platform_fits(json_object *descriptor)
{
#if defined(__aarch64__)
	const char *ours = "arm64";
#else
	const char *ours = "amd64";
#endif
	json_object *p;
	const char *arch, *os;

	if (!json_object_object_get_ex(descriptor, "platform", &p))
		return true;
	arch = text_of(p, "architecture");
	os = text_of(p, "os");
	return (!arch || strcmp(arch, ours) == 0) && (!os || strcmp(os, "linux") == 0);
}

static bool tag_fits(json_object *descriptor, const char *tag)
{
	json_object *a;
	const char *name;

	if (!tag)
		return true;
	if (!json_object_object_get_ex(descriptor, "annotations", &a))
		return false;
	name = text_of(a, "org.opencontainers.image.ref.name");
	return name && strcmp(name, tag) == 0;
}

/* The manifest for this machine, through nested indexes. Caller puts it. */
static json_object *find_manifest(int layout_fd, json_object *index, const char *tag,
				  int depth)
{
	json_object *list, *found = NULL;

	if (depth > 4 || !json_object_object_get_ex(index, "manifests", &list) ||
	    !json_object_is_type(list, json_type_array))
		return NULL;
	for (size_t i = 0; !found && i < json_object_array_length(list) && i < 1000;
	     i++) {
		json_object *d = json_object_array_get_idx(list, i), *inner;
		const char *hex = hex_of(text_of(d, "digest"));

		if (!hex || !tag_fits(d, tag) || !platform_fits(d))
			continue;
		inner = read_blob_json(layout_fd, hex);
		if (inner && is_index(d)) {
			found = find_manifest(layout_fd, inner, NULL, depth + 1);
			json_object_put(inner);
		} else {
			found = inner;
		}
	}
	return found;
}

static int copy_list(struct image_job *job, json_object *config, const char *from,
		     const char *to)
{
	json_object *v;

	if (!json_object_object_get_ex(config, from, &v) ||
	    !json_object_is_type(v, json_type_array))
		return ABX_OK;
	if (json_object_array_length(v) > 1024)
		return ABX_ETOOBIG;
	for (size_t i = 0; i < json_object_array_length(v); i++)
		if (!json_object_is_type(json_object_array_get_idx(v, i),
					 json_type_string))
			return ABX_EINVAL;
	json_object_object_add(job->result, to, json_object_get(v));
	return ABX_OK;
}

static int take_config(struct image_job *job, int layout_fd, json_object *manifest,
		       abx_error **reterr)
{
	json_object *d, *blob, *config;
	const char *hex, *s;
	int r = ABX_OK;

	if (!json_object_object_get_ex(manifest, "config", &d) ||
	    !(hex = hex_of(text_of(d, "digest"))))
		return abx__error_set(reterr, ABX_EPROTO, "its manifest names no config");
	blob = read_blob_json(layout_fd, hex);
	if (!blob)
		return abx__error_set(
			reterr, ABX_EPROTO,
			"its config is missing or does not match its digest");
	if (json_object_object_get_ex(blob, "config", &config) &&
	    json_object_is_type(config, json_type_object)) {
		r = copy_list(job, config, "Entrypoint", "entrypoint");
		if (r == ABX_OK)
			r = copy_list(job, config, "Cmd", "cmd");
		if (r == ABX_OK)
			r = copy_list(job, config, "Env", "env");
		if ((s = text_of(config, "User")) && *s)
			json_object_object_add(job->result, "user",
					       json_object_new_string(s));
		if ((s = text_of(config, "WorkingDir")) && *s)
			json_object_object_add(job->result, "working_dir",
					       json_object_new_string(s));
	}
	json_object_put(blob);
	return r < 0 ? abx__error_set(reterr, ABX_EPROTO, "its config is not well formed")
		     : ABX_OK;
}

static int take_layer(struct image_job *job, int layout_fd, const char *hex,
		      abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int tar = -1, into = -1;
	char tmp[64];
	int r;

	if (!abx__image_has_layer(job->podd, hex)) {
		tar = open_blob(layout_fd, hex);
		if (tar < 0)
			return abx__error_set(reterr, ABX_EPROTO,
					      "layer sha256:%s is missing", hex);
		r = abx__image_tmp(job->podd, tmp, reterr);
		if (r < 0)
			return r;
		into = openat(job->podd->dir_fd, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (into < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "%s", tmp);
		r = abx__image_unpack(tar, into, true, hex, reterr);
		if (r == ABX_OK)
			r = abx__image_keep_layer(job->podd, tmp, hex, reterr);
		if (r < 0) {
			abx__fs_empty(into);
			unlinkat(job->podd->dir_fd, tmp, AT_REMOVEDIR);
			return r;
		}
	}
	abx__image_add_layer(job, hex);
	return ABX_OK;
}

static int take_layers(struct image_job *job, int layout_fd, json_object *manifest,
		       abx_error **reterr)
{
	json_object *list;
	int r = ABX_OK;

	if (!json_object_object_get_ex(manifest, "layers", &list) ||
	    !json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) == 0)
		return abx__error_set(reterr, ABX_EPROTO, "its manifest lists no layers");
	if (json_object_array_length(list) > ABX__IMAGE_LAYER_MAX)
		return abx__error_set(reterr, ABX_ETOOBIG, "it has more than %d layers",
				      ABX__IMAGE_LAYER_MAX);
	for (size_t i = 0; r == ABX_OK && i < json_object_array_length(list); i++) {
		const char *hex =
			hex_of(text_of(json_object_array_get_idx(list, i), "digest"));

		r = hex ? take_layer(job, layout_fd, hex, reterr)
			: abx__error_set(reterr, ABX_EPROTO,
					 "a layer has no sha256 digest");
	}
	return r;
}

static int build_from(struct image_job *job, int layout_fd, const char *tag,
		      abx_error **reterr)
{
	json_object *index = NULL, *manifest;
	size_t len;
	char *text = NULL;
	int r;
	char path[64];
	ABX_CLEANUP(abx__closep)
	int fd = abx__fs_open_beneath(layout_fd, "index.json", O_RDONLY);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0)
		text = abx__fs_read(AT_FDCWD, path, JSON_MAX, &len);
	if (text)
		index = parse(text, len);
	abx__free(text);
	if (!index)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "is no OCI layout: it has no index.json");
	manifest = find_manifest(layout_fd, index, tag, 0);
	json_object_put(index);
	if (!manifest)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "holds no image %s%s for this machine",
				      tag ? "tagged " : "", tag ? tag : "");
	r = take_config(job, layout_fd, manifest, reterr);
	if (r == ABX_OK)
		r = take_layers(job, layout_fd, manifest, reterr);
	json_object_put(manifest);
	return r;
}

static void note_source(struct image_job *job, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	json_object_object_add(job->result, "source", json_object_new_string(path));
	json_object_object_add(job->result, "source_stamp",
			       json_object_new_int64(st.st_mtim.tv_sec * 1000000000LL +
						     st.st_mtim.tv_nsec +
						     (int64_t)st.st_size));
}

int abx__image_build_layout(struct image_job *job, const char *layout, const char *tag,
			    abx_error **reterr)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(layout, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char index[PATH_MAX];

	if (fd < 0)
		return abx__error_errno(reterr, ABX_ENOTFOUND, errno, "OCI layout");
	if (snprintf(index, sizeof(index), "%s/index.json", layout) < (int)sizeof(index))
		note_source(job, index);
	return build_from(job, fd, tag && *tag ? tag : NULL, reterr);
}

static void drop_tmp(struct podd *podd, const char *tmp)
{
	ABX_CLEANUP(abx__closep)
	int fd = openat(podd->dir_fd, tmp,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		abx__fs_empty(fd);
	unlinkat(podd->dir_fd, tmp, AT_REMOVEDIR);
}

int abx__image_build_archive(struct image_job *job, const char *file, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int tar = open(file, O_RDONLY | O_CLOEXEC), into = -1;
	char tmp[64];
	int r;

	if (tar < 0)
		return abx__error_errno(reterr, ABX_ENOTFOUND, errno, "archive");
	r = abx__image_tmp(job->podd, tmp, reterr);
	if (r < 0)
		return r;
	into = openat(job->podd->dir_fd, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	note_source(job, file);
	r = into < 0 ? abx__error_errno(reterr, ABX_EIO, errno, "%s", tmp)
		     : abx__image_unpack(tar, into, false, NULL, reterr);
	if (r == ABX_OK)
		r = build_from(job, into, NULL, reterr);
	drop_tmp(job->podd, tmp);
	return r;
}

/* ---- registries ---- */

static bool is_loopback(const char *reference)
{
	return abx__str_starts(reference, "127.0.0.1:") ||
	       abx__str_starts(reference, "localhost:") ||
	       abx__str_starts(reference, "127.0.0.1/") ||
	       abx__str_starts(reference, "localhost/");
}

/* The folder skopeo fills is its /tmp: the way to it leads through folders that are
 * closed to it. */
static int enter_folder(const char *to)
{
	return unshare(CLONE_NEWNS) < 0 ||
			       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			       mount(to, "/tmp", NULL, MS_BIND, NULL) < 0 ||
			       chdir("/tmp") < 0
		       ? -1
		       : 0;
}

/* In the child's child: everything given up, then skopeo. Errors go to `err_fd`. */
static _Noreturn void exec_skopeo(const char *reference, const char *to, int err_fd)
{
	const char *argv[12];
	char *from = abx__strf("docker://%s", reference);
	char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	char home[] = "HOME=/tmp", tmp[] = "TMPDIR=/tmp";
	char *const envp[] = { path, home, tmp, NULL };
	size_t n = 0;

	argv[n++] = "skopeo";
	argv[n++] = "copy";
	argv[n++] = "--quiet";
	argv[n++] = "--insecure-policy";
	if (is_loopback(reference))
		argv[n++] = "--src-tls-verify=false";
	argv[n++] = from;
	argv[n++] = "oci:.:image";
	argv[n] = NULL;
	dup2(err_fd, STDERR_FILENO);
	if (!from || enter_folder(to) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(SKOPEO_ID, SKOPEO_ID, SKOPEO_ID) < 0 ||
	    setresuid(SKOPEO_ID, SKOPEO_ID, SKOPEO_ID) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(126);
	/* After the change of ids, which clears it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execve("/usr/bin/skopeo", (char *const *)argv, envp);
	dprintf(STDERR_FILENO, "skopeo is not installed");
	_exit(127);
}

/* The part of skopeo's complaint a person wants: the last line's last msg. */
static void tidy(char *text)
{
	char *msg = strstr(text, "msg=\"");
	size_t len;

	if (msg) {
		memmove(text, msg + 5, strlen(msg + 5) + 1);
		len = strcspn(text, "\n");
		text[len] = '\0';
		while (len && (text[len - 1] == '"' || text[len - 1] == ' '))
			text[--len] = '\0';
	}
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 32)
			*p = ' ';
}

static int run_skopeo(const char *reference, const char *to, abx_error **reterr)
{
	char text[1500];
	size_t len = 0;
	ssize_t n = 0;
	int fds[2], status = -1;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "pipe");
	pid = abx__child_fork();
	if (pid == 0)
		exec_skopeo(reference, to, fds[1]);
	close(fds[1]);
	while (pid > 0 && (n = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	text[len] = '\0';
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return ABX_OK;
	tidy(text);
	return abx__error_set(reterr, ABX_ENOTFOUND, "%s",
			      *text ? text : "skopeo failed");
}

int abx__image_pull(struct image_job *job, abx_error **reterr)
{
	struct podd *podd = job->podd;
	ABX_CLEANUP(abx__closep) int fd = -1;
	char tmp[64], *full;
	int r = abx__image_tmp(podd, tmp, reterr);

	if (r < 0)
		return r;
	full = abx__strf("%s/%s", podd->dir, tmp);
	if (!full)
		return abx__error_nomem(reterr);
	r = abx__fs_mkdir(podd->dir_fd, tmp, 0700, SKOPEO_ID);
	if (r == ABX_OK)
		r = run_skopeo(job->resolved, full, reterr);
	abx__free(full);
	/* What lies there belongs to an account that may still run: no link is followed,
	 * digests are checked. */
	fd = openat(podd->dir_fd, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r == ABX_OK)
		r = fd < 0 ? abx__error_errno(reterr, ABX_EIO, errno, "%s", tmp)
			   : build_from(job, fd, NULL, reterr);
	drop_tmp(podd, tmp);
	return r;
}

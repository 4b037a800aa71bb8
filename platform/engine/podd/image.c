/*
 * image.c - references to unpacked images: the alias table, the table of what is known,
 * and one child a build.
 *
 * podd's own process never reads an image: a child resolves, pulls (without root, by
 * skopeo), checks digests and unpacks, and leaves a small JSON file of our own making
 * behind. Concurrent wishes for one reference share a job.
 */
#include "engine/podd/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"

#define JOBS_MAX 4
#define REFERENCE_MAX 512
#define JOB_DEADLINE_MS (15 * 60 * 1000)

struct entry {
	char *reference;
	enum image_state state;
	bool queued; /* WORKING, but not started yet */
	struct image *image;
	int64_t resolved_ms;
	char *source; /* file whose stamp tells whether the image is still that, or NULL
		       */
	int64_t source_stamp;
	char *reason, *message; /* FAILED */
	struct child job;
	int pipe_fd;
	uv_timer_t deadline;
	bool timed_out;
	struct podd *podd;
	UT_hash_handle hh;
};

struct image_table {
	struct entry *entries;
	json_object *aliases;
	unsigned running;
};

/* ---- images ---- */

static void strv_free(char **v)
{
	abx__spec_strv_free(v);
}

struct image *abx__image_ref(struct image *image)
{
	image->refs++;
	return image;
}

void abx__image_unref(struct image *image)
{
	if (!image || --image->refs > 0)
		return;
	abx__free(image->reference);
	abx__free(image->user);
	abx__free(image->working_dir);
	strv_free(image->layers);
	strv_free(image->entrypoint);
	strv_free(image->cmd);
	strv_free(image->env);
	abx__free(image);
}

static char **get_strv(json_object *o, const char *key)
{
	json_object *a;
	size_t n;
	char **v;

	if (!json_object_object_get_ex(o, key, &a) ||
	    !json_object_is_type(a, json_type_array))
		return NULL;
	n = json_object_array_length(a);
	v = abx__calloc(n + 1, sizeof(*v));
	for (size_t i = 0; v && i < n; i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));

		v[i] = abx__strdup(s ? s : "");
		if (!v[i]) {
			strv_free(v);
			return NULL;
		}
	}
	return v;
}

static char *get_str(json_object *o, const char *key)
{
	json_object *s;

	return json_object_object_get_ex(o, key, &s) &&
			       json_object_is_type(s, json_type_string)
		       ? abx__strdup(json_object_get_string(s))
		       : NULL;
}

static bool get_flag(json_object *o, const char *key)
{
	json_object *b;

	return json_object_object_get_ex(o, key, &b) && json_object_get_boolean(b);
}

struct image *abx__image_from_json(struct podd *podd, const char *reference,
				   json_object *o)
{
	struct image *image = abx__calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->refs = 1;
	image->reference = abx__strdup(reference);
	image->host_usr = get_flag(o, "host_usr");
	image->is_idle = get_flag(o, "is_idle");
	image->layers = get_strv(o, "layers");
	image->entrypoint = get_strv(o, "entrypoint");
	image->cmd = get_strv(o, "cmd");
	image->env = get_strv(o, "env");
	image->user = get_str(o, "user");
	image->working_dir = get_str(o, "working_dir");
	for (size_t i = 0; image->layers && image->layers[i]; i++)
		if (!abx__image_has_layer(podd, image->layers[i]))
			strv_free(abx_take(image->layers));
	if (!image->reference || !image->layers || !image->layers[0]) {
		abx__image_unref(image);
		return NULL;
	}
	return image;
}

static void add_strv(json_object *o, const char *key, char **v)
{
	json_object *a = v ? json_object_new_array() : NULL;

	for (size_t i = 0; a && v[i]; i++)
		json_object_array_add(a, json_object_new_string(v[i]));
	if (a)
		json_object_object_add(o, key, a);
}

json_object *abx__image_to_json(const struct image *image)
{
	json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "host_usr", json_object_new_boolean(image->host_usr));
	json_object_object_add(o, "is_idle", json_object_new_boolean(image->is_idle));
	add_strv(o, "layers", image->layers);
	add_strv(o, "entrypoint", image->entrypoint);
	add_strv(o, "cmd", image->cmd);
	add_strv(o, "env", image->env);
	if (image->user)
		json_object_object_add(o, "user", json_object_new_string(image->user));
	if (image->working_dir)
		json_object_object_add(o, "working_dir",
				       json_object_new_string(image->working_dir));
	return o;
}

/* ---- the alias table ---- */

static bool aliases_open(struct image_table *t, const char *path)
{
	t->aliases = abx__fs_read_json(AT_FDCWD, path);
	return t->aliases != NULL;
}

static const char *alias_lookup(struct image_table *t, const char *reference)
{
	json_object *value;

	if (!t->aliases)
		return NULL;
	if (json_object_object_get_ex(t->aliases, reference, &value) &&
	    json_object_is_type(value, json_type_string))
		return json_object_get_string(value);
	json_object_object_foreach(t->aliases, key, v)
	{
		size_t len = strlen(key);

		if (len > 1 && key[len - 1] == '*' &&
		    strncmp(reference, key, len - 1) == 0 &&
		    json_object_is_type(v, json_type_string))
			return json_object_get_string(v);
	}
	return NULL;
}

/* "docker:29-dind" as the registries' clients complete it. NULL when out of memory. */
static char *complete_reference(const char *reference)
{
	const char *slash = strchr(reference, '/');
	size_t head = slash ? (size_t)(slash - reference) : 0;
	bool host =
		slash && (memchr(reference, '.', head) || memchr(reference, ':', head) ||
			  strncmp(reference, "localhost/", 10) == 0);
	const char *last = strrchr(reference, '/');
	bool tagged = strchr(last ? last : reference, ':') || strchr(reference, '@');

	return abx__strf("%s%s%s%s", host ? "" : "docker.io/",
			 host || slash ? "" : "library/", reference,
			 tagged ? "" : ":latest");
}

static bool is_local_scheme(const char *reference)
{
	return abx__str_starts(reference, "oci:") ||
	       abx__str_starts(reference, "oci-archive:") ||
	       abx__str_starts(reference, ABX__SNAPSHOT_SCHEME) ||
	       strcmp(reference, "host:") == 0 || strcmp(reference, "runtime:") == 0 ||
	       strcmp(reference, "idle:") == 0;
}

/* Caller frees. NULL when out of memory. */
static char *resolve(struct image_table *t, const char *reference)
{
	const char *to = alias_lookup(t, reference);
	char *whole;

	if (to)
		return abx__strdup(to);
	if (is_local_scheme(reference))
		return abx__strdup(reference);
	whole = complete_reference(reference);
	to = whole ? alias_lookup(t, whole) : NULL;
	if (to) {
		abx__free(whole);
		return abx__strdup(to);
	}
	return whole;
}

static bool reference_is_valid(const char *reference)
{
	size_t len = strlen(reference);

	return len >= 1 && len <= REFERENCE_MAX && reference[0] != '-' &&
	       !strstr(reference, "..") &&
	       strspn(reference,
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		      "._:/@+-") == len;
}

/* ---- in the job's child ---- */

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

static void image_file(const char *reference, char out[96])
{
	uint8_t hash[ABX__SHA256_LEN];
	char hex[2 * ABX__SHA256_LEN + 1];

	abx__sha256(reference, strlen(reference), hash);
	abx__hex(hash, sizeof(hash), hex);
	snprintf(out, 96, "images/%s.json", hex);
}

/* Never returns. The exit status says it; a failure's reason and message go through the
 * pipe. */
static _Noreturn void job_main(struct podd *podd, const char *reference, int fd)
{
	struct image_job job = { .podd = podd,
				 .reference = reference,
				 .reason = "ErrImagePull" };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	char file[96];
	int r;

	job.result = json_object_new_object();
	job.resolved = resolve(podd->images, reference);
	umask(022);
	r = job.resolved && job.result ? build(&job, &err) : abx__error_nomem(&err);
	if (r == ABX_OK) {
		note_idle(&job);
		json_object_object_add(job.result, "resolved_ms",
				       json_object_new_int64(abx__wall_ms()));
		image_file(reference, file);
		if (abx__fs_replace_json(podd->dir_fd, file, job.result) < 0)
			r = abx__error_errno(&err, ABX_EIO, errno, "%s", file);
	}
	if (r < 0)
		dprintf(fd, "%s\n%s", job.reason, abx_error_message(err));
	_exit(r < 0 ? 1 : 0);
}

/* ---- in podd ---- */

static int64_t stamp(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -1;
	return st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec +
	       (int64_t)st.st_size;
}

static int load_entry(struct podd *podd, struct entry *e)
{
	char file[96];
	json_object *o, *v;

	image_file(e->reference, file);
	o = abx__snapshot_id_of(e->reference)
		    ? abx__snapshot_read(podd, abx__snapshot_id_of(e->reference))
		    : abx__fs_read_json(podd->dir_fd, file);
	if (!o)
		return ABX_ENOTFOUND;
	e->image = abx__image_from_json(podd, e->reference, o);
	e->resolved_ms = json_object_object_get_ex(o, "resolved_ms", &v)
				 ? json_object_get_int64(v)
				 : 0;
	abx__free(e->source);
	e->source = get_str(o, "source");
	e->source_stamp = json_object_object_get_ex(o, "source_stamp", &v)
				  ? json_object_get_int64(v)
				  : 0;
	json_object_put(o);
	if (!e->image)
		return ABX_ENOTFOUND;
	e->state = IMAGE_READY;
	return ABX_OK;
}

static void fail(struct entry *e, const char *text)
{
	const char *nl = strchr(text, '\n');

	e->state = IMAGE_FAILED;
	e->reason = nl ? abx__strndup(text, (size_t)(nl - text))
		       : abx__strdup("ErrImagePull");
	e->message = abx__strf("image %s: %s", e->reference, nl ? nl + 1 : text);
}

static void entry_free(struct entry *e)
{
	abx__image_unref(e->image);
	abx__free(e->reference);
	abx__free(e->source);
	abx__free(e->reason);
	abx__free(e->message);
	abx__free(e);
}

static void on_timer_closed(uv_handle_t *handle)
{
	entry_free(handle->data);
}

/* Out of the table at once; the memory goes when the timer's handle is closed. */
static void entry_drop(struct podd *podd, struct entry *e)
{
	HASH_DEL(podd->images->entries, e);
	uv_close((uv_handle_t *)&e->deadline, on_timer_closed);
}

static void start_next(struct podd *podd);

static void on_job_exit(struct child *child, int status)
{
	struct entry *e = child->owner;
	struct podd *podd = e->podd;
	char text[2048];
	ssize_t n = read(e->pipe_fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	close(e->pipe_fd);
	uv_timer_stop(&e->deadline);
	podd->images->running--;
	if (e->timed_out)
		fail(e, "ErrImagePull\nwas not there within 15 minutes");
	else if (status != 0)
		fail(e, n > 0 ? text : "ErrImagePull\nthe unpacking process died");
	else if (load_entry(podd, e) < 0)
		fail(e, "ErrImagePull\nthe unpacked layers are not complete");
	if (e->state == IMAGE_FAILED)
		abx__log_warn(podd->log, "image not usable", "reason=%s message=%s",
			      e->reason, e->message);
	abx__pods_step(podd);
	/* A failure is told to those who waited; the next wish tries anew. */
	if (e->state == IMAGE_FAILED)
		entry_drop(podd, e);
	start_next(podd);
}

static void on_deadline(uv_timer_t *timer)
{
	struct entry *e = timer->data;

	e->timed_out = true;
	kill(-e->job.pid, SIGKILL);
}

static void job_start(struct podd *podd, struct entry *e)
{
	int fds[2];
	pid_t pid;

	e->queued = false;
	if (pipe2(fds, O_CLOEXEC) < 0) {
		fail(e, "ErrImagePull\nno pipe");
		return;
	}
	pid = abx__child_fork();
	if (pid == 0) {
		setpgid(0, 0);
		job_main(podd, e->reference, fds[1]);
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		fail(e, "ErrImagePull\nno process");
		return;
	}
	setpgid(pid, pid);
	e->pipe_fd = fds[0];
	e->job = (struct child){ .pid = pid, .on_exit = on_job_exit, .owner = e };
	abx__child_add(podd, &e->job);
	podd->images->running++;
	uv_timer_start(&e->deadline, on_deadline, JOB_DEADLINE_MS, 0);
}

static void start_next(struct podd *podd)
{
	struct entry *e, *tmp;

	HASH_ITER(hh, podd->images->entries, e, tmp)
	if (podd->images->running < JOBS_MAX && e->state == IMAGE_WORKING && e->queued)
		job_start(podd, e);
}

void abx__image_forget(struct podd *podd, const char *snapshot_id)
{
	char *reference = abx__strf(ABX__SNAPSHOT_SCHEME "%s", snapshot_id);
	struct entry *e = NULL;

	if (reference && podd->images)
		HASH_FIND_STR(podd->images->entries, reference, e);
	if (e && e->state != IMAGE_WORKING)
		entry_drop(podd, e);
	abx__free(reference);
}

static struct entry *entry_new(struct podd *podd, const char *reference)
{
	struct entry *e = abx__calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->podd = podd;
	e->reference = abx__strdup(reference);
	if (!e->reference) {
		abx__free(e);
		return NULL;
	}
	e->state = IMAGE_WORKING;
	e->queued = true;
	uv_timer_init(&podd->loop, &e->deadline);
	e->deadline.data = e;
	HASH_ADD_KEYPTR(hh, podd->images->entries, e->reference, strlen(e->reference), e);
	return e;
}

static bool is_stale(const struct entry *e, bool pull_always, int64_t since_ms)
{
	if (e->source && stamp(e->source) != e->source_stamp)
		return true;
	return pull_always && !is_local_scheme(e->reference) && e->resolved_ms < since_ms;
}

static bool is_builtin(struct podd *podd, const char *reference)
{
	char *to = resolve(podd->images, reference);
	bool builtin = to && (strcmp(to, "host:") == 0 || strcmp(to, "runtime:") == 0 ||
			      strcmp(to, "idle:") == 0);

	abx__free(to);
	return builtin;
}

enum image_state abx__image_want(struct podd *podd, const char *reference,
				 bool pull_always, bool pull_never, int64_t since_ms,
				 struct image **ret, const char **ret_reason,
				 const char **ret_message)
{
	struct entry *e = NULL;

	*ret_reason = "InvalidImageName";
	*ret_message = "the image's name is not valid";
	if (!reference_is_valid(reference))
		return IMAGE_FAILED;
	HASH_FIND_STR(podd->images->entries, reference, e);
	if (!e) {
		e = entry_new(podd, reference);
		*ret_message = "out of memory";
		if (!e)
			return IMAGE_FAILED;
		/* Built-in images follow the host, so they are looked at once a life of
		 * podd. */
		if (!is_builtin(podd, reference))
			load_entry(podd, e);
	}
	if (e->state == IMAGE_READY && is_stale(e, pull_always, since_ms)) {
		abx__image_unref(abx_take(e->image));
		e->state = IMAGE_WORKING;
		e->queued = true;
	}
	if (e->state == IMAGE_WORKING && e->queued && pull_never &&
	    !is_local_scheme(reference) && !is_builtin(podd, reference)) {
		entry_drop(podd, e);
		*ret_reason = "ErrImageNeverPull";
		*ret_message = "the image is not here and imagePullPolicy is Never";
		return IMAGE_FAILED;
	}
	if (e->state == IMAGE_WORKING && e->queued && podd->images->running < JOBS_MAX) {
		job_start(podd, e);
		if (e->state == IMAGE_FAILED) {
			entry_drop(podd, e);
			*ret_reason = "ErrImagePull";
			*ret_message = "no process could be started to fetch the image";
			return IMAGE_FAILED;
		}
	}
	*ret = e->image;
	*ret_reason = e->reason;
	*ret_message = e->message;
	return e->state;
}

int abx__images_open(struct podd *podd, abx_error **reterr)
{
	static const char *const folders[] = { "layers", "images", "tmp" };
	struct image_table *t = abx__calloc(1, sizeof(*t));

	if (!t)
		return abx__error_nomem(reterr);
	podd->images = t;
	for (size_t i = 0; i < 3; i++)
		if (abx__fs_mkdir(podd->dir_fd, folders[i], 0700, 0) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "%s/%s",
						podd->dir, folders[i]);
	if (abx__snapshots_open(podd) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s/snapshots",
					podd->dir);
	abx__folder_trash_entries(podd, "tmp");
	if (podd->options.alias_file && !aliases_open(t, podd->options.alias_file))
		return abx__error_set(reterr, ABX_EINVAL,
				      "alias file %s is no JSON object of strings",
				      podd->options.alias_file);
	return ABX_OK;
}

void abx__images_close(struct podd *podd)
{
	struct entry *e, *tmp;

	if (!podd->images)
		return;
	HASH_ITER(hh, podd->images->entries, e, tmp)
	{
		if (e->state == IMAGE_WORKING && !e->queued) {
			kill(-e->job.pid, SIGKILL);
			abx__child_forget(podd, &e->job);
			close(e->pipe_fd);
		}
		entry_drop(podd, e);
	}
	json_object_put(podd->images->aliases);
}

/*
 * image.c - references to unpacked images: the table of what is known, and one child a
 * build (image-build.c).
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
#include "base/error.h"
#include "base/str.h"

#define JOBS_MAX 4
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

static bool aliases_open(struct image_table *t, const char *path)
{
	t->aliases = abx__fs_read_json(AT_FDCWD, path);
	return t->aliases != NULL;
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

	abx__image_file(e->reference, file);
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
	e->source = json_object_object_get_ex(o, "source", &v)
			    ? abx__strdup(json_object_get_string(v))
			    : NULL;
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
			      e->reason ? e->reason : "", e->message ? e->message : "");
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
		abx__image_job_main(podd, podd->images->aliases, e->reference, fds[1]);
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
	return pull_always && !abx__image_is_local(e->reference) &&
	       e->resolved_ms < since_ms;
}

static bool is_builtin(struct podd *podd, const char *reference)
{
	char *to = abx__image_resolve(podd->images->aliases, reference);
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
	if (!abx__image_name_is_valid(reference))
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
	    !abx__image_is_local(reference) && !is_builtin(podd, reference)) {
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
	/* NULL when there was no memory for them. */
	*ret_reason = e->reason ? e->reason : "ErrImagePull";
	*ret_message = e->message ? e->message : "out of memory";
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
